/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for a port. What decides is the insertion; before it, candidates are looked at without
 * a lock, some at once so that their cache misses overlap. Where few ports are free a map of them
 * (crowd.h) says which are worth a look, so that the search is as short at 99 % as it is at none,
 * and at 100 % it is over before it begins. A range too small for that is gone through.
 */
#include "nat_private.h"

#define BATCH   8u
#define SMALL   64u /* ports of a range that is gone through */

/* A source's mapping is remembered from before the entry can be seen, since whoever destroys it, or
 * aborts it, gives the reference back. */
static void
remember(struct nat_search *s, uint16_t port, struct nat_slot *slot)
{
	struct ct_entry *e = s->p->ct;
	struct nat_mapping m = {
		.addr = s->cand.dst,
		.port = rte_cpu_to_be_16(port),
		.family = s->cand.family,
	};
	struct tuple key;

	if (!s->remember || m.port == e->orig.tuple.sport)
		return;
	nat_source_key(&key, &e->orig.tuple);
	slot->source = nat_source_get(s->t->nat->sources, &key, &m);
}

static inline void
set_port(struct nat_search *s, uint16_t port)
{
	if (s->has_ports)
		*nat_reply_port(&s->cand, s->by_id) = rte_cpu_to_be_16(port);
}

enum ct_verdict
nat_try(struct nat_search *s, uint16_t port, uint64_t hash)
{
	struct ct_entry *e = s->p->ct;
	struct nat_slot *slot = nat_slot(e);
	const struct tuple *o = &e->orig.tuple;
	enum ct_verdict v;

	set_port(s, port);
	if (hash == 0 && tuple_equal(&s->cand, &e->reply.tuple))
		hash = s->p->ct_reply_hash;
	e->reply.tuple = s->cand;
	s->p->ct_reply_hash = hash;
	e->status &= (uint16_t)~CT_SRC_NAT;
	if (memcmp(&s->cand.dst, &o->src, sizeof(o->src)) != 0 ||
		(s->has_ports && *nat_reply_port(&s->cand, s->by_id) != o->sport))
		e->status |= CT_SRC_NAT;
	remember(s, port, slot);
	v = ct_try_commit(s->t->ct, s->p);
	if (unlikely(v == CT_CLASH)) {
		nat_source_put(s->t->nat->sources, slot->source);
		slot->source = 0;
	}
	return v;
}

/* Looks at n ports at once and commits with the first that is free; *used is then its number. */
static enum ct_verdict
try_batch(struct nat_search *s, const uint16_t *port, unsigned int n, unsigned int *used)
{
	enum ct_verdict v = CT_CLASH;
	uint64_t hash[BATCH];
	unsigned int i;

	for (i = 0; i < n; i++) {
		set_port(s, port[i]);
		hash[i] = ct_tuple_hash(s->t->ct, &s->cand);
		ct_tuple_prefetch(s->t->ct, &s->cand, hash[i]);
	}
	for (i = 0; i < n && v == CT_CLASH; i++) {
		set_port(s, port[i]);
		if (!ct_tuple_taken(s->t->ct, &s->cand, hash[i]))
			v = nat_try(s, port[i], hash[i]);
	}
	*used = v == CT_CLASH ? n : i - 1;
	netns_counter_add(&s->counters->probes, i);
	s->budget -= RTE_MIN(s->budget, n);
	return v;
}

/* All ports of a small range, from a random one on. */
static enum ct_verdict
search_small(struct nat_search *s, unsigned int size)
{
	unsigned int start = (unsigned int)(nat_random(s->t) % size), done, i, n, used;
	enum ct_verdict v = CT_CLASH;
	uint16_t port[BATCH];

	for (done = 0; done < size && v == CT_CLASH; done += n) {
		n = RTE_MIN(size - done, BATCH);
		for (i = 0; i < n; i++)
			port[i] = (uint16_t)(s->lo + (start + done + i) % size);
		v = try_batch(s, port, n, &used);
	}
	return v;
}

/* Some ports at random: what finds one unless most are taken. */
static enum ct_verdict
search_random(struct nat_search *s, unsigned int size)
{
	enum ct_verdict v = CT_CLASH;
	unsigned int round, i, used;
	uint16_t port[BATCH / 2];
	uint64_t r;

	for (round = 0; round < 2 && v == CT_CLASH; round++) {
		r = nat_random(s->t);
		for (i = 0; i < BATCH / 2; i++, r >>= 16)
			port[i] = (uint16_t)(s->lo + (r & 0xffff) * size / 0x10000);
		v = try_batch(s, port, BATCH / 2, &used);
	}
	return v;
}

/* What the map has as free, one port first and then more at a time. Ports that were claimed and
 * are not taken go back. -1: there is no map. */
static int
search_map(struct nat_search *s, const struct tuple *key, unsigned int size)
{
	struct nat_crowds *maps = s->t->nat->crowds;
	enum ct_verdict v = CT_CLASH;
	struct nat_port_range range = {.lo = s->lo, .hi = s->hi};
	unsigned int want = 1, i, used;
	uint16_t port[BATCH];
	int n;

	while (v == CT_CLASH && s->budget > 0) {
		range.start = (uint16_t)(s->lo + (nat_random(s->t) & 0xffff) * size / 0x10000);
		n = nat_crowd_claim(maps, key, &range, port, want);
		if (n < 0)
			return -1;
		if (n == 0)
			return CT_CLASH;
		v = try_batch(s, port, (unsigned int)n, &used);
		for (i = 0; i < (unsigned int)n; i++)
			if (i > used || (i == used && v != CT_OK))
				nat_crowd_free_port(maps, key, port[i]);
		want = BATCH;
	}
	return (int)v;
}

enum ct_verdict
nat_search(struct nat_search *s)
{
	unsigned int size = s->hi - s->lo + 1u;
	enum ct_verdict v;
	struct tuple key;
	int m;

	netns_counter_add(&s->counters->searches, 1);
	if (!s->has_ports)
		return CT_CLASH;
	if (size <= SMALL)
		return search_small(s, size);
	key = s->cand;
	*nat_reply_port(&key, s->by_id) = 0;
	m = search_map(s, &key, size);
	if (m >= 0)
		return (enum ct_verdict)m;
	v = search_random(s, size);
	if (v != CT_CLASH)
		return v;
	nat_crowd_open(s->t->nat->crowds, &key);
	m = search_map(s, &key, size);
	return m >= 0 ? (enum ct_verdict)m : CT_CLASH;
}
