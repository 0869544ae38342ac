/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for a port. What decides is the insertion; before it, candidates are looked at without
 * a lock, some at once so that their cache misses overlap. Where few ports are free a map of them
 * (crowd.h) says which are worth a look, so that the search is as short at 99 % as it is at none,
 * and at 100 % it is over before it begins. A range too small for that is gone through.
 */
#include "block.h"
#include "nat64.h"
#include "ready.h"

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

/* The remote end, as the source knows it. */
static const struct tuple_addr *
remote_of(const struct nat_search *s)
{
	const struct tuple *o = &s->p->ct->orig.tuple;

	return o->family == s->cand.family ? &o->dst : &s->cand.src;
}

/*
 * The embryo gets a reference to an exclusive mapping, to the candidate unless the source has
 * another already, which is the candidate then. CT_CLASH: another source has the end.
 */
static enum ct_verdict
claim(struct nat_search *s, uint16_t port, struct nat_slot *slot)
{
	struct nat_sources *sources = s->t->nat->sources;
	struct nat_mapping m = {.addr = s->cand.dst,
		.port = rte_cpu_to_be_16(port),
		.family = s->cand.family,
		.filter = s->filter,
		.pool = s->pool,
		.block = s->block,
		.where = s->where};
	struct nat_pool *pool = nat_pool_of(s->t->nat, s->pool);
	struct tuple key, permit;
	enum nat_claim c;
	uint32_t ref = 0;

	memcpy(m.mac, slot->end[CT_ORIGINAL].mac, sizeof(m.mac));
	if (s->nat64 != NULL) {
		m.prefix = s->nat64->addr;
		m.prefix_len = s->nat64->len;
	}
	nat_source_key_of_pool(&key, &s->p->ct->orig.tuple, s->pool);
	if (s->block != 0)
		nat_block_hold(pool, s->block - 1);
	c = nat_source_claim(sources, &key, &s->cand, &m, &ref);
	if (s->block != 0 && c != NAT_CLAIM_MADE)
		nat_block_put(s->t, pool, s->block - 1);
	switch (c) {
	case NAT_CLAIM_TAKEN:
		return CT_CLASH;
	case NAT_CLAIM_FULL:
		return nat_refuse(s->t, s->p, SL_DROP_NAT_MAPPINGS_FULL);
	case NAT_CLAIM_MADE:
		if (s->block == 0)
			nat_pool_count(s->t, pool, nat_class(s->cand.proto), 1);
		break;
	case NAT_CLAIM_HAD:
		s->cand.dst = m.addr;
		set_port(s, rte_be_to_cpu_16(m.port));
		s->budget = 0; /* there is no other candidate */
		break;
	}
	slot->source = ref;
	if (m.filter != NAT_FILTER_ADDRESS)
		return CT_OK;
	nat_source_key_permit(&permit, &key, remote_of(s));
	ref = nat_source_permit(sources, &permit, slot->source);
	if (ref == 0)
		return nat_refuse(s->t, s->p, SL_DROP_NAT_MAPPINGS_FULL);
	slot->source = ref;
	return CT_OK;
}

void
nat_set_reply(struct nat_search *s)
{
	struct ct_entry *e = s->p->ct;
	const struct tuple *o = &e->orig.tuple;

	if (unlikely(s->hairpin)) {
		nat64_set_hairpin(&e->reply.tuple, &s->cand, s->nat64);
		e->status |= CT_SRC_NAT;
		return;
	}
	e->reply.tuple = s->cand;
	e->status &= (uint16_t)~CT_SRC_NAT;
	if (memcmp(&s->cand.dst, &o->src, sizeof(o->src)) != 0 ||
		(s->has_ports && *nat_reply_port(&s->cand, s->by_id) != o->sport))
		e->status |= CT_SRC_NAT;
	nat_ready_make(e);
}

/* The hash of the candidate, if somebody has it already, or 0. */
static uint64_t
known_hash(const struct nat_search *s)
{
	const struct nat_ahead *a = s->ahead;

	if (a != NULL && a->hash != 0 && tuple_equal(&s->cand, &a->reply))
		return a->hash;
	return tuple_equal(&s->cand, &s->p->ct->reply.tuple) ? s->p->ct_reply_hash : 0;
}

/* What its source has sent to it before, and it has refused, is the answer to it now. */
static bool
replaces_refused(struct nat_search *s)
{
	struct pkt other = {.flags = PKT_IP, .ns = s->p->ns, .tuple = s->p->ct->reply.tuple};

	if (likely(!(s->p->ct->status & CT_DST_NAT)))
		return false;
	ct_lookup_bulk(s->t->ct, &other, 1);
	if (other.ct == NULL || other.ct_dir != CT_ORIGINAL ||
		!(__atomic_load_n(&other.ct->status, __ATOMIC_RELAXED) & CT_REFUSED))
		return false;
	ct_kill(s->t->ct, &other);
	return true;
}

enum ct_verdict
nat_try(struct nat_search *s, uint16_t port, uint64_t hash)
{
	struct ct_entry *e = s->p->ct;
	struct nat_slot *slot = nat_slot(e);
	enum ct_verdict v;

	set_port(s, port);
	if (s->exclusive) {
		v = claim(s, port, slot);
		if (v != CT_OK)
			return v;
		hash = 0;
	} else {
		remember(s, port, slot);
	}
	s->p->ct_reply_hash = hash != 0 ? hash : known_hash(s);
	nat_set_reply(s);
	v = ct_try_commit(s->t->ct, s->p);
	if (unlikely(v == CT_CLASH) && s->exclusive && replaces_refused(s))
		v = ct_try_commit(s->t->ct, s->p);
	/* What the entry was admitted by from outside is not this try's. */
	if (unlikely(v == CT_CLASH) && (s->remember || s->exclusive)) {
		nat_put_source(s->t, slot->source);
		slot->source = 0;
	}
	return v;
}

/* What is looked at of a candidate, before it is tried. */
static void
look_at(struct nat_search *s, uint64_t *hash)
{
	struct tuple end;

	if (likely(!s->exclusive)) {
		*hash = ct_tuple_hash(s->t->ct, &s->cand);
		ct_tuple_prefetch(s->t->ct, &s->cand, *hash);
		return;
	}
	nat_source_end(&end, &s->cand, &s->cand.dst, *nat_reply_port(&s->cand, s->by_id));
	*hash = nat_source_hash(s->t->nat->sources, &end);
	nat_source_end_prefetch(s->t->nat->sources, (uint32_t)*hash);
}

static bool
looks_taken(struct nat_search *s, uint64_t hash)
{
	struct tuple end;

	if (likely(!s->exclusive))
		return ct_tuple_taken(s->t->ct, &s->cand, hash);
	nat_source_end(&end, &s->cand, &s->cand.dst, *nat_reply_port(&s->cand, s->by_id));
	return nat_source_end_taken(s->t->nat->sources, &end, (uint32_t)hash);
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
		look_at(s, &hash[i]);
	}
	for (i = 0; i < n && v == CT_CLASH; i++) {
		set_port(s, port[i]);
		if (!looks_taken(s, hash[i]))
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

/* Ports are counted toward a remote end; exclusive ones toward all. */
static void
crowd_key(const struct nat_search *s, struct tuple *key)
{
	if (s->exclusive) {
		nat_source_end(key, &s->cand, &s->cand.dst, 0);
		return;
	}
	*key = s->cand;
	*nat_reply_port(key, s->by_id) = 0;
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
	crowd_key(s, &key);
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
