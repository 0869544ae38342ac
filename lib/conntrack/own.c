/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Own tables for TCP: bucket lines of the same kind as those of all, which a scope has as long as
 * it has links (ct_lines_of() in private.h). Stripes, overflow lines and entries are shared. They
 * are not resized.
 *
 * Made and unmade by the control thread: the pointer is published before a worker can have a packet
 * of the scope, and taken away when none can any more.
 */
#include "private.h"

#include <errno.h>

#include "err.h"

/* Entries to a bucket at which an own table counts as full. Chains have room for four times as many
 * (ct_lines_bound()) and then refuse: one that is much too small is not to take a worker's time. */
#define OWN_FULL 4u

static int
reserve(struct ct *ct, struct sl_err *err)
{
	size_t len = NETNS_MAX * sizeof(*ct->own);
	int ret;

	if (ct->own != NULL)
		return 0;
	ret = sl_region_reserve(&ct->own_region, len, err);
	if (ret == 0)
		ret = sl_region_grow(&ct->own_region, len, err);
	if (ret < 0)
		return ret;
	sl_rcu_publish(&ct->own, (struct ct_lines **)(void *)ct->own_region.base);
	return 0;
}

int
ct_own_create(struct ct *ct, uint32_t scope, uint32_t buckets, struct sl_err *err)
{
	struct ct_lines *l;
	int ret;

	if (scope >= NETNS_MAX || buckets < 1 || buckets > CT_OWN_BUCKETS_MAX)
		return sl_refuse(err, EINVAL, "%u buckets are out of range (1-%u)", buckets,
			CT_OWN_BUCKETS_MAX);
	ret = reserve(ct, err);
	if (ret < 0)
		return ret;
	if (ct->own[scope] != NULL)
		return sl_refuse(err, EEXIST, "the namespace has a table of its own");
	buckets = rte_align32pow2(buckets);
	ret = ct_lines_create(&l, RTE_MAX(buckets, CT_SLOTS), buckets * OWN_FULL, err);
	if (ret < 0)
		return ret;
	l->buckets = buckets;
	ct->own_tables++;
	ct->own_present += l->present;
	sl_rcu_publish(&ct->own[scope], l);
	return 0;
}

void
ct_own_destroy(struct ct_thread *t, uint32_t scope)
{
	struct ct *ct = t->ct;
	struct ct_lines *l = ct->own != NULL && scope < NETNS_MAX ? ct->own[scope] : NULL;
	uint32_t line = 0;

	if (l == NULL)
		return;
	sl_rcu_publish(&ct->own[scope], NULL);
	ct_lines_free_overflow(t, l, &line, UINT32_MAX);
	ct->own_tables--;
	ct->own_present -= l->present;
	ct_lines_destroy(l);
}

uint32_t
ct_own_buckets(const struct ct *ct, uint32_t scope)
{
	const struct ct_lines *l = ct->own != NULL && scope < NETNS_MAX ? ct->own[scope] : NULL;

	return l == NULL ? 0 : l->buckets;
}

/* Entries whose original tuple is in a chain, by index; at most max. */
static unsigned int
collect(struct ct *ct, const struct ct_lines *l, uint32_t line, uint32_t *index, unsigned int max)
{
	struct sl_stripe *s = ct_stripe(ct, l, line);
	const struct ct_line *at = &l->line[line];
	unsigned int n = 0, i;

	sl_lock(&s->lock);
	for (;;) {
		for (i = 0; i < CT_SLOTS && n < max; i++)
			if (at->ref[i] != 0 && (at->ref[i] & 1) == CT_ORIGINAL)
				index[n++] = at->ref[i] >> 1;
		if (at->next == 0 || n == max)
			break;
		at = &ct->overflow[at->next];
	}
	sl_unlock(&s->lock);
	return n;
}

bool
ct_own_purge_slice(struct ct_thread *t, uint32_t scope, uint32_t *line, unsigned int lines,
	uint64_t *destroyed)
{
	const struct ct_lines *l = t->ct->own[scope];
	uint32_t index[CT_SWEEP_BATCH];
	unsigned int n = 0;

	for (; lines > 0 && *line <= l->mask; lines--) {
		n += collect(t->ct, l, *line, &index[n], CT_SWEEP_BATCH - n);
		if (n < CT_SWEEP_BATCH) {
			++*line;
			continue;
		}
		/* There may be more in the chain: it is looked at again. */
		*destroyed += ct_purge_batch(t, index, n);
		n = 0;
	}
	*destroyed += ct_purge_batch(t, index, n);
	return *line <= l->mask;
}

void
ct_own_fini(struct ct *ct)
{
	uint32_t i;

	for (i = 0; ct->own != NULL && i < NETNS_MAX; i++)
		ct_lines_destroy(ct->own[i]);
	sl_region_release(&ct->own_region);
}
