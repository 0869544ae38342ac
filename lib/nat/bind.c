/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of a translation. An address of a range is a function of the source, so that a source
 * keeps it (RFC 4787, REQ-2); only when no port of it is free toward the remote end the next
 * addresses of the range are tried. A source keeps its port where it is free, else the one it has
 * already toward others (source.h), else one of its port's class is looked for (search.c).
 */
#include "pool_private.h"

#include "drop.h"
#include "nat64.h"
#include "ready.h"

#define BUDGET    512u /* candidates that are looked at for one connection */
#define ADDRESSES 256u /* addresses of a range that are tried for one connection */
#define DST_TRIES 16u  /* ports of a destination's range */

#define RANDOM_FLAGS (NAT_RANDOM | NAT_FULLY_RANDOM)

/* The prefix of the request, the rest of the address as it was. */
static void
apply_prefix(struct tuple_addr *out, const struct nat_request *r, const struct tuple_addr *old)
{
	unsigned int i, bits = r->prefix_len;

	*out = *old;
	for (i = 0; i < sizeof(out->b) && bits > 0; i++) {
		unsigned int n = RTE_MIN(bits, 8u);
		uint8_t mask = (uint8_t)(0xff << (8 - n));

		out->b[i] = (uint8_t)((r->min.b[i] & mask) | (old->b[i] & ~mask));
		bits -= n;
	}
}

/* A source's place in any range of addresses. */
static uint64_t
source_place(const struct nat_thread *t, const struct tuple *original)
{
	struct tuple key;

	nat_source_host(&key, original);
	key.zone = 0;
	return sl_hash(&t->nat->hasher, &key);
}

/* The address of the range that the source prefers, `nth` addresses further. */
static void
range_address(const struct nat_thread *t, const struct tuple *original,
	const struct nat_request *r, unsigned int nth, struct tuple_addr *out)
{
	nat_u128 min, size;

	if (r->use != NULL) {
		size = r->use->pool->size;
		nat_pool_address(r->use->pool,
			(source_place(t, original) + (nat_u128)nth) % size, out);
		return;
	}
	if (memcmp(&r->min, &r->max, sizeof(r->min)) == 0) {
		*out = r->min;
		return;
	}
	min = nat_addr_number(&r->min, r->family);
	size = nat_addr_count(&r->min, &r->max, r->family);
	nat_addr_from_number(
		out, r->family, min + (source_place(t, original) + (nat_u128)nth) % size);
}

void
nat_prefer(const struct nat_thread *t, const struct tuple *original, const struct nat_request *r,
	struct tuple_addr *out)
{
	if (r->flags & NAT_PREFIX)
		apply_prefix(out, r, &original->src);
	else if (r->flags & NAT_ADDR)
		range_address(t, original, r, 0, out);
}

static unsigned int
range_size(const struct nat_request *r)
{
	nat_u128 n = r->use != NULL ? r->use->pool->size
				    : nat_addr_count(&r->min, &r->max, r->family);

	return n >= ADDRESSES ? ADDRESSES : (unsigned int)n;
}

static bool
in_range(const struct nat_request *r, const struct nat_mapping *m)
{
	uint16_t port = rte_be_to_cpu_16(m->port);

	if (r->flags & NAT_PORTS && (port < r->port_min || port > r->port_max))
		return false;
	if (r->use != NULL)
		return nat_pool_has(r->use->pool, m->family, &m->addr);
	return m->family == r->family &&
	       memcmp(&m->addr, &r->min, sizeof(m->addr)) >= 0 &&
	       memcmp(&m->addr, &r->max, sizeof(m->addr)) <= 0;
}

/* ---- destination ---- */

/* A port of the destination's range; where the first choice makes a reply tuple that is taken,
 * another one. If all fail, the source's port will have to make the difference. */
static void
dst_port(struct nat_thread *t, struct tuple *reply, const struct nat_request *r)
{
	unsigned int size = r->port_max - r->port_min + 1u, i, start;
	uint16_t port = rte_be_to_cpu_16(reply->sport);

	if (port < r->port_min || port > r->port_max || r->flags & RANDOM_FLAGS)
		port = (uint16_t)(r->port_min + nat_random(t) % size);
	start = port - r->port_min;
	for (i = 0; i < RTE_MIN(size, DST_TRIES); i++) {
		reply->sport = rte_cpu_to_be_16((uint16_t)(r->port_min + (start + i) % size));
		if (size == 1 || !ct_tuple_taken(t->ct, reply, ct_tuple_hash(t->ct, reply)))
			return;
	}
}

void
nat_dst(struct nat_thread *t, struct pkt *p, const struct nat_request *r)
{
	struct ct_entry *e = p->ct;
	struct tuple *reply = &e->reply.tuple;
	const struct tuple *orig = &e->orig.tuple;

	if (r->flags & NAT_ADDR && r->family != orig->family)
		return;
	if (r->flags & NAT_PREFIX)
		apply_prefix(&reply->src, r, &orig->dst);
	else if (r->flags & NAT_ADDR)
		range_address(t, orig, r, 0, &reply->src);
	if (r->flags & NAT_PORTS && nat_has_ports(orig->proto))
		dst_port(t, reply, r);
	if (memcmp(&reply->src, &orig->dst, sizeof(reply->src)) == 0 &&
		(!nat_has_ports(orig->proto) || reply->sport == orig->dport))
		return;
	e->status |= CT_DST_NAT;
	p->ct_reply_hash = 0;
	netns_counter_add(&p->ns->nat->counters[t->index].bound_dst, 1);
}

/* ---- source ---- */

/* What a port may become: within the range that is asked for, else within its own class, since
 * servers take some ports below 1024 for a sign of privilege. */
static void
port_range(struct nat_search *s, const struct nat_request *r, uint16_t own)
{
	if (r != NULL && r->flags & NAT_PORTS) {
		s->lo = r->port_min;
		s->hi = r->port_max;
	} else if (s->by_id) {
		s->lo = 0;
		s->hi = UINT16_MAX;
	} else if (own < 512) {
		s->lo = 1;
		s->hi = 511;
	} else if (own < 1024) {
		s->lo = 600;
		s->hi = 1023;
	} else {
		s->lo = 1024;
		s->hi = UINT16_MAX;
	}
}

void
nat_search_init(struct nat_search *s, struct nat_thread *t, struct pkt *p,
	const struct nat_request *r)
{
	const struct tuple *orig = &p->ct->orig.tuple;
	const struct nat_pool_use *use = r != NULL ? r->use : NULL;

	*s = (struct nat_search){
		.t = t,
		.p = p,
		.counters = &p->ns->nat->counters[t->index],
		.cand = p->ct->reply.tuple,
		.by_id = nat_is_icmp(orig->proto),
		.has_ports = nat_is_icmp(orig->proto) || nat_has_ports(orig->proto),
		.remember = r != NULL && !(r->flags & RANDOM_FLAGS),
		.budget = BUDGET,
		.ahead = r != NULL ? r->ahead : NULL,
	};
	if (unlikely(use != NULL)) {
		s->exclusive = s->has_ports && use->endpoint_independent;
		s->remember = !s->exclusive && use->block_size == 0;
		s->filter = use->filter;
		s->pool = use->pool->id;
		s->where = r->where;
	}
	if (unlikely(r != NULL && r->nat64 != NULL)) {
		s->nat64 = r->nat64;
		s->hairpin = s->cand.family == TUPLE_IPV6;
		if (s->hairpin)
			nat64_public(&s->cand, orig, s->nat64);
	}
	port_range(s, r, rte_be_to_cpu_16(orig->sport));
}

/* Whether the source has a mapping already that the request allows. */
static bool
is_known(const struct nat_search *s, const struct nat_request *r, struct nat_mapping *m)
{
	struct tuple key;

	if (!s->remember || !s->has_ports || !(r->flags & NAT_ADDR) || r->flags & NAT_PREFIX)
		return false;
	nat_source_key(&key, &s->p->ct->orig.tuple);
	return nat_source_peek(s->t->nat->sources, &key, m) && in_range(r, m);
}

/* The source's own port, or the one that it has toward others. */
static enum ct_verdict
try_first(struct nat_search *s, const struct nat_request *r)
{
	const struct tuple *orig = &s->p->ct->orig.tuple;
	uint16_t own = rte_be_to_cpu_16(orig->sport);
	struct tuple_addr preferred;
	struct nat_mapping m;
	enum ct_verdict v;

	if (r->flags & RANDOM_FLAGS && s->has_ports)
		return CT_CLASH;
	if (is_known(s, r, &m)) {
		preferred = s->cand.dst;
		s->cand.dst = m.addr;
		v = nat_try(s, rte_be_to_cpu_16(m.port), 0);
		if (v != CT_CLASH)
			return v;
		s->cand.dst = preferred;
	}
	if (s->has_ports && r->flags & NAT_PORTS && (own < s->lo || own > s->hi))
		return CT_CLASH;
	return nat_try(s, own, 0);
}

/* The addresses that the request allows, from the one the source prefers. */
static enum ct_verdict
try_addresses(struct nat_search *s, const struct nat_request *r)
{
	const struct tuple *orig = &s->p->ct->orig.tuple;
	unsigned int n = 1, i;
	enum ct_verdict v = CT_CLASH;

	if (r->flags & NAT_ADDR && !(r->flags & NAT_PREFIX))
		n = range_size(r);
	for (i = 0; i < n && v == CT_CLASH && s->budget > 0; i++) {
		if (i > 0)
			range_address(s->t, orig, r, i, &s->cand.dst);
		if (i > 0 && !s->has_ports)
			v = nat_try(s, 0, 0);
		else
			v = nat_search(s);
	}
	return v;
}

/* A packet in the middle of a connection whose entry is gone: what it was translated to is not
 * known any more. */
static bool
picked_up(const struct pkt *p)
{
	return p->proto == IPPROTO_TCP &&
	       (p->tcp_flags & (PKT_TCP_SYN | PKT_TCP_ACK | PKT_TCP_RST | PKT_TCP_FIN)) !=
		       PKT_TCP_SYN;
}

enum ct_verdict
nat_refuse(struct nat_thread *t, struct pkt *p, enum sl_drop reason)
{
	ct_abort(t->ct, p);
	p->reason = (uint8_t)reason;
	return CT_DROP;
}

/* The source stays as it is, if it can. */
static enum ct_verdict
commit_as_is(struct nat_thread *t, struct pkt *p)
{
	struct nat_search s;
	enum ct_verdict v;

	nat_ready_make(p->ct);
	v = ct_try_commit(t->ct, p);
	if (likely(v != CT_CLASH))
		return v;
	if (picked_up(p))
		return nat_refuse(t, p, SL_DROP_INVALID_NAT);
	nat_search_init(&s, t, p, NULL);
	v = nat_search(&s);
	return v == CT_CLASH ? nat_refuse(t, p, SL_DROP_CT_CLASH) : v;
}

enum ct_verdict
nat_bind_range(struct nat_search *s, const struct nat_request *r)
{
	enum ct_verdict v;

	nat_prefer(s->t, &s->p->ct->orig.tuple, r, &s->cand.dst);
	v = try_first(s, r);
	return v == CT_CLASH ? try_addresses(s, r) : v;
}

/* What the entry keeps of what it asks for. */
static void
note(struct pkt *p, const struct nat_request *r)
{
	struct nat_slot *slot = nat_slot(p->ct);

	if (r->flags & NAT_MASQUERADE)
		slot->end[CT_ORIGINAL].flags |= NAT_SLOT_MASQUERADE;
	if (r->use == NULL)
		return;
	slot->end[CT_REPLY].pool = r->use->pool->id;
	if (r->use->block_size == 0 && !r->use->endpoint_independent)
		slot->end[CT_ORIGINAL].flags |= NAT_SLOT_PORT;
}

/* A connection more of its pool. */
static void
count_bound(struct nat_thread *t, const struct nat_slot *slot, uint8_t proto)
{
	struct nat_pool *pool = nat_pool_of(t->nat, slot->end[CT_REPLY].pool);

	netns_counter_add(&pool->counters[t->index].connections, 1);
	netns_counter_add(&pool->counters[t->index].bound, 1);
	if (slot->end[CT_ORIGINAL].flags & NAT_SLOT_PORT)
		nat_pool_count(t, pool, nat_class(proto), 1);
}

/* What it was admitted by, while it gets a mapping of its source besides: there is room for both
 * when no block is its own. Else that need not last as long as it does. */
static void
keep_admission(struct nat_search *s, struct nat_slot *slot)
{
	uint32_t ref = slot->source;

	slot->source = 0;
	if (likely(ref == 0))
		return;
	if (s->exclusive) {
		slot->block = ref;
		slot->end[CT_ORIGINAL].flags |= NAT_SLOT_ADMITTED;
	} else {
		nat_put_source(s->t, ref);
	}
}

static enum ct_verdict
bind_source(struct nat_thread *t, struct pkt *p, const struct nat_request *r)
{
	struct nat_slot *slot = nat_slot(p->ct);
	struct nat_search s;
	enum ct_verdict v;

	nat_search_init(&s, t, p, r);
	keep_admission(&s, slot);
	if (r->use != NULL && (r->use->block_size != 0 || r->use->endpoint_independent))
		v = nat_bind_pool(&s, r);
	else
		v = nat_bind_range(&s, r);
	if (likely(v == CT_OK)) {
		netns_counter_add(&s.counters->bound_src, 1);
	} else if (v == CT_CLASH) {
		netns_counter_add(&s.counters->exhausted, 1);
		v = nat_refuse(t, p, SL_DROP_NAT_EXHAUSTED);
		if (r->use != NULL)
			nat_pool_exhausted(t, r->use->pool);
	}
	return v;
}

enum ct_verdict
nat_commit(struct nat_thread *t, struct pkt *p, const struct nat_request *r)
{
	const struct ct_entry *e = p->ct;
	struct nat_slot slot;
	enum ct_verdict v;

	if (r != NULL && r->flags & NAT_ADDR && r->family != e->reply.tuple.family &&
		r->nat64 == NULL)
		r = NULL;
	if (unlikely(picked_up(p)) && (r != NULL || nat_translated(e)))
		return nat_refuse(t, p, SL_DROP_INVALID_NAT);
	if (r != NULL)
		note(p, r);
	/* When it is committed, it may be gone at once. */
	slot = *nat_slot_const(e);
	v = r == NULL ? commit_as_is(t, p) : bind_source(t, p, r);
	if (v == CT_OK && slot.end[CT_REPLY].pool != 0)
		count_bound(t, &slot, p->tuple.proto);
	return v;
}
