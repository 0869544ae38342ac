/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resize while traffic flows, driven by the control thread in slices, between which it does other
 * things. New lines are made, and with the first slice hung beside the old; then stripe after
 * stripe is copied under its lock; from then on its writers use the new lines (lines_of() in
 * table.c). Readers look into the old lines and then into the new ones: what was copied they find
 * in either, what came later in the new. When all stripes have moved the new lines are published,
 * and the old ones are freed after a grace period, when no worker can be reading them or their
 * overflow lines.
 */
#include "private.h"

#include <errno.h>

#include "err.h"

bool
ct_resize_busy(const struct ct *ct)
{
	return ct->resizing != NULL || ct->retired != NULL;
}

int
ct_resize_start(struct ct *ct, uint32_t buckets, struct sl_err *err)
{
	struct ct_lines *next;
	int ret = ct_buckets_round(&buckets, err);

	if (ret < 0)
		return ret;
	if (ct_resize_busy(ct))
		return sl_refuse(err, EBUSY,
			"nf_conntrack_buckets: the table is being resized: wait for its end");
	ret = sl_region_grow(&ct->overflow_region,
		(size_t)ct->line_ids.limit * sizeof(struct ct_line), err);
	if (ret == 0)
		ret = ct_lines_create(&next, buckets, ct_max(ct), err);
	if (ret < 0)
		return ret;
	ct->resize_next = 0;
	ct->resize_buckets = buckets;
	ct->resizing = next;
	return 0;
}

uint32_t
ct_resize_target(const struct ct *ct)
{
	return ct->resizing != NULL ? ct->resize_buckets : ct->buckets;
}

void
ct_resize_cancel(struct ct *ct)
{
	ct_lines_destroy(ct->resizing);
	ct->resizing = NULL;
}

bool
ct_resize_slice(struct ct_thread *t, unsigned int lines)
{
	struct ct *ct = t->ct;
	uint32_t most = RTE_MAX(ct->lines->mask, ct->resizing->mask) + 1;
	uint32_t stripes = RTE_MAX(lines / (most / CT_STRIPES), 1u);

	__atomic_store_n(&ct->lines->next, ct->resizing, __ATOMIC_RELEASE);
	for (; stripes > 0 && ct->resize_next < CT_STRIPES; stripes--)
		ct_move_stripe(t, ct->lines, ct->resize_next++);
	return ct->resize_next < CT_STRIPES;
}

void
ct_resize_finish(struct ct *ct)
{
	ct->retired = ct->lines;
	ct->buckets = ct->resize_buckets;
	ct->resize_next = 0;
	sl_rcu_publish(&ct->lines, ct->resizing);
	ct->resizing = NULL;
}

bool
ct_resize_release(struct ct_thread *t, unsigned int lines)
{
	struct ct *ct = t->ct;

	if (ct->retired == NULL)
		return false;
	if (ct_lines_free_overflow(t, ct->retired, &ct->resize_next, lines))
		return true;
	ct_lines_destroy(ct->retired);
	ct->retired = NULL;
	return false;
}
