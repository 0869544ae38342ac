/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of a source's address and port from a pool with exclusive mappings, or one that is cut
 * into blocks. A source that has a mapping gets that; else one is made, of any of the pool's
 * addresses as for a range, or of the blocks of its host. An entry has a reference to its block,
 * but that of an exclusive mapping is the mapping's.
 */
#include "block.h"

#include "drop.h"

#define BLOCK_COST 8u /* of the budget: what a block without a free port takes */

/* With the mapping that the source has. CT_CLASH: it has none. */
static enum ct_verdict
bind_known(struct nat_search *s)
{
	struct nat_mapping m;
	struct tuple key;
	enum ct_verdict v;
	uint32_t ref;

	nat_source_key_of_pool(&key, &s->p->ct->orig.tuple, s->pool);
	ref = nat_source_hold(s->t->nat->sources, &key, &m);
	if (ref == 0)
		return CT_CLASH;
	s->cand.dst = m.addr;
	v = nat_try(s, rte_be_to_cpu_16(m.port), 0);
	nat_put_source(s->t, ref);
	return v;
}

/* A port of the block. */
static enum ct_verdict
bind_in(struct nat_search *s, const struct nat_block_place *at)
{
	uint16_t own = rte_be_to_cpu_16(s->p->ct->orig.tuple.sport);
	enum ct_verdict v = CT_CLASH;

	s->cand.dst = at->addr;
	s->lo = at->lo;
	s->hi = at->hi;
	if (!s->has_ports || (own >= at->lo && own <= at->hi))
		v = nat_try(s, own, 0);
	return v == CT_CLASH && s->budget > 0 ? nat_search(s) : v;
}

static enum ct_verdict
bind_in_block(struct nat_search *s, struct nat_pool *pool, const struct nat_block_place *at)
{
	struct nat_slot *slot = nat_slot(s->p->ct);
	enum ct_verdict v;

	if (s->exclusive) {
		s->block = at->block + 1;
		v = bind_in(s, at);
		s->block = 0;
		nat_block_put(s->t, pool, at->block);
		return v;
	}
	slot->block = at->block + 1; /* the entry's, or the aborted embryo's */
	v = bind_in(s, at);
	if (v == CT_CLASH) {
		slot->block = 0;
		nat_block_put(s->t, pool, at->block);
	}
	return v;
}

static enum ct_verdict
bind_blocks(struct nat_search *s, const struct nat_pool_use *use)
{
	enum nat_block_take take = NAT_BLOCK_LIMIT;
	struct nat_block_place at;
	enum ct_verdict v;
	uint32_t nth;

	for (nth = 0; nth <= use->blocks && s->budget > 0; nth++) {
		take = nat_block_take(s->t, use, &s->p->ct->orig.tuple, nth, &at);
		if (take != NAT_BLOCK_TAKEN)
			break;
		v = bind_in_block(s, use->pool, &at);
		if (v != CT_CLASH)
			return v;
		s->budget -= RTE_MIN(s->budget, BLOCK_COST);
	}
	netns_counter_add(&s->counters->exhausted, 1);
	v = nat_refuse(s->t, s->p, take == NAT_BLOCK_NONE ? SL_DROP_NAT_EXHAUSTED
							     : SL_DROP_NAT_HOST_LIMIT);
	if (take == NAT_BLOCK_NONE)
		nat_pool_exhausted(s->t, use->pool);
	else
		netns_counter_add(&use->pool->counters[s->t->index].exhausted, 1);
	return v;
}

enum ct_verdict
nat_bind_pool(struct nat_search *s, const struct nat_request *r)
{
	enum ct_verdict v = s->exclusive ? bind_known(s) : CT_CLASH;

	if (v != CT_CLASH || (s->exclusive && s->budget == 0))
		return v;
	return r->use->block_size != 0 ? bind_blocks(s, r->use) : nat_bind_range(s, r);
}
