/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an admission is going to touch, fetched while other packets are worked on. It is a guess: by
 * the packet's tuple alone, and with the port that the source has, which most connections keep.
 * Nothing is locked, and nothing but fetching, and the hash of a tuple, comes of it.
 */
#include "pool_private.h"

static bool
keeps_port(const struct tuple *original, const struct nat_request *r)
{
	uint16_t port = rte_be_to_cpu_16(original->sport);

	if (r->flags & (NAT_RANDOM | NAT_FULLY_RANDOM))
		return false;
	return !(r->flags & NAT_PORTS) || (port >= r->port_min && port <= r->port_max);
}

/* Of the original tuple the public end that it may be for. */
static void
expect_inside(const struct nat_sources *s, const struct tuple *original)
{
	struct tuple end;

	nat_source_end(&end, original, &original->dst,
		nat_is_icmp(original->proto) ? original->sport : original->dport);
	nat_source_end_prefetch(s, nat_source_hash(s, &end));
}

static void
expect_exclusive(const struct nat_sources *s, const struct tuple *original, uint16_t pool,
	struct nat_ahead *a)
{
	bool by_id = nat_is_icmp(original->proto);
	struct tuple key;

	nat_source_key_of_pool(&key, original, pool);
	a->key = nat_source_hash(s, &key);
	nat_source_prefetch(s, a->key);
	nat_source_end(&key, &a->reply, &a->reply.dst, *nat_reply_port(&a->reply, by_id));
	nat_source_end_prefetch(s, nat_source_hash(s, &key));
}

void
nat_ahead_begin(struct nat_thread *t, const struct pkt *p, const struct nat_request *r,
	struct nat_ahead *a)
{
	const struct nat_sources *s = t->nat->sources;

	a->hash = 0;
	a->key = 0;
	if (nat_sources_exclusive(s))
		expect_inside(s, &p->tuple);
	if ((r->flags & NAT_ADDR && r->family != p->tuple.family) || !keeps_port(&p->tuple, r) ||
		(r->use != NULL && r->use->block_size != 0) ||
		!tuple_invert(&a->reply, &p->tuple))
		return;
	nat_prefer(t, &p->tuple, r, &a->reply.dst);
	a->hash = ct_tuple_hash(t->ct, &a->reply);
	ct_tuple_prefetch(t->ct, &a->reply, a->hash);
	if (r->use != NULL && r->use->endpoint_independent)
		expect_exclusive(s, &p->tuple, r->use->pool->id, a);
}

void
nat_ahead_finish(const struct nat_thread *t, const struct nat_ahead *a)
{
	if (unlikely(a->key != 0))
		nat_source_prefetch_first(t->nat->sources, a->key);
}
