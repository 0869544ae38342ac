/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookup of a burst: hash all and prefetch the bucket lines, then match tags and prefetch the
 * entries, then verify. Cache misses of one stage overlap; only what is not found in the head line
 * goes on one by one.
 */
#include "private.h"

#define NO_LOOKUP (PKT_L4_BAD | PKT_UNTRACKED | PKT_DROPPED)

static inline bool
wanted(const struct pkt *p)
{
	return (p->flags & (PKT_IP | NO_LOOKUP)) == PKT_IP;
}

/* The reference of the first slot whose tag matches, 0 if none does; its entry is prefetched. */
static inline uint32_t
candidate(const struct ct *ct, const struct ct_line *l, uint64_t hash)
{
	unsigned int mask = ct_line_match(l, ct_tag(hash));
	const struct ct_entry *e;
	uint32_t ref;

	if (mask == 0)
		return 0;
	ref = __atomic_load_n(&l->ref[__builtin_ctz(mask)], __ATOMIC_ACQUIRE);
	e = &ct->pool[ref >> 1];
	__builtin_prefetch(&e->lock, 1);
	rte_prefetch0(ref & 1 ? &e->reply : &e->orig);
	return ref;
}

static inline void
verify(const struct ct *ct, struct pkt *p, uint32_t ref)
{
	unsigned int dir;

	if (likely(ref != 0 && ct_ref_is(ct, ref, &p->tuple, &p->ct_gen))) {
		p->ct = &ct->pool[ref >> 1];
		p->ct_dir = ref & 1;
		return;
	}
	p->ct = ct_find(ct, &p->tuple, p->hash, &p->ct_gen, &dir);
	if (p->ct != NULL)
		p->ct_dir = (uint8_t)dir;
}

void
ct_lookup_bulk(struct ct_thread *t, struct pkt *p, unsigned int n)
{
	const struct ct *ct = t->ct;
	const struct ct_lines *l = sl_rcu_dereference(&ct->lines);
	uint32_t ref[CT_LOOKUP_MAX];
	unsigned int i, looked = 0, found = 0;

	sl_hash_bulk(&ct->hasher, &p->tuple, sizeof(*p), n, &p->hash, sizeof(*p));
	for (i = 0; i < n; i++)
		rte_prefetch0(ct_head(l, p[i].hash));
	for (i = 0; i < n; i++)
		ref[i] = wanted(&p[i]) ? candidate(ct, ct_head(l, p[i].hash), p[i].hash) : 0;
	for (i = 0; i < n; i++) {
		p[i].ct = NULL;
		if (!wanted(&p[i]))
			continue;
		verify(ct, &p[i], ref[i]);
		looked++;
		found += p[i].ct != NULL;
	}
	netns_counter_add(&t->stats.lookups, looked);
	netns_counter_add(&t->stats.found, found);
}
