/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resize while traffic flows, driven by the control thread. New lines are hung beside the old, then
 * stripe after stripe is copied under its lock; from then on its writers use the new lines
 * (lines_of() in table.c). Readers look into the old lines and then into the new ones: what was
 * copied they find in either, what came later in the new. When all stripes have moved the new lines
 * are published, and the old ones are freed after a grace period, when no worker can be reading
 * them or their overflow lines.
 */
#include "private.h"

#include <errno.h>

#include "err.h"

int
ct_resize_start(struct ct *ct, uint32_t buckets, struct sl_err *err)
{
	struct ct_lines *next;
	int ret = ct_buckets_round(&buckets, err);

	if (ret < 0)
		return ret;
	if (ct->lines->next != NULL || ct->retired != NULL)
		return sl_refuse(err, EBUSY, "another resize is going on");
	ret = sl_region_grow(&ct->overflow_region,
		(size_t)ct->line_ids.limit * sizeof(struct ct_line), err);
	if (ret == 0)
		ret = ct_lines_create(&next, buckets, ct_max(ct), err);
	if (ret < 0)
		return ret;
	ct->resize_next = 0;
	ct->resize_buckets = buckets;
	__atomic_store_n(&ct->lines->next, next, __ATOMIC_RELEASE);
	return 0;
}

bool
ct_resize_slice(struct ct_thread *t, unsigned int stripes)
{
	struct ct *ct = t->ct;

	for (; stripes > 0 && ct->resize_next < CT_STRIPES; stripes--)
		ct_move_stripe(t, ct->lines, ct->resize_next++);
	return ct->resize_next < CT_STRIPES;
}

void
ct_resize_finish(struct ct *ct)
{
	ct->retired = ct->lines;
	ct->buckets = ct->resize_buckets;
	sl_rcu_publish(&ct->lines, ct->retired->next);
}

void
ct_resize_release(struct ct_thread *t)
{
	struct ct *ct = t->ct;

	if (ct->retired == NULL)
		return;
	ct_lines_free_overflow(t, ct->retired);
	ct_lines_destroy(ct->retired);
	ct->retired = NULL;
}
