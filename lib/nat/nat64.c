/* SPDX-License-Identifier: BSD-3-Clause */
#include "nat64.h"

#include <rte_ip.h>

#include "drop.h"
#include "frag.h"
#include "nat_private.h"
#include "siit.h"

#define ECHO6_REPLY 129u

/* ---- admission ---- */

static bool
under(const struct tuple_addr *addr, const struct nat64_prefix *prefix)
{
	return memcmp(addr->b, prefix->addr.b, prefix->len / 8) == 0;
}

/* An answer of IPv6 as it comes from IPv4, to nobody yet. */
static void
outside(struct tuple *reply, rte_be32_t host)
{
	reply->family = TUPLE_IPV4;
	memset(&reply->src, 0, sizeof(reply->src));
	memset(&reply->dst, 0, sizeof(reply->dst));
	reply->src.w[0] = host;
	if (reply->proto == IPPROTO_ICMPV6) {
		reply->proto = IPPROTO_ICMP;
		reply->dport = 0; /* echo reply */
	}
}

static void
keep_prefix(struct ct_entry *e, uint8_t prefix_len)
{
	nat_slot(e)->end[CT_ORIGINAL].flags |= (uint16_t)(prefix_len << NAT_SLOT_PREFIX_SHIFT);
}

/* To the host inside that has that public end, if there is one. SL_DROP_NONE, or why not. */
static enum sl_drop
to_inside(struct nat_thread *t, struct pkt *p, const struct tuple *out, uint16_t *where)
{
	const struct tuple *orig = &p->ct->orig.tuple;
	struct tuple *reply = &p->ct->reply.tuple, end, key;
	struct nat_mapping m;
	uint32_t ref;

	nat_source_end(&end, out, &out->src, nat_is_icmp(out->proto) ? orig->sport : orig->dport);
	ref = nat_source_inside(t->nat->sources, &end, &key, &m);
	if (likely(ref == 0)) {
		*reply = *out;
		return SL_DROP_NONE;
	}
	*where = m.where;
	if (!nat_admit_sender(t, p, &key, &m, ref)) {
		*reply = *out;
		return SL_DROP_NAT_FILTERED;
	}
	if (key.family == TUPLE_IPV4)
		*reply = *out;
	reply->src = key.src;
	reply->sport = key.sport;
	return SL_DROP_NONE;
}

enum sl_drop
nat64_dst(struct nat_thread *t, struct pkt *p, const struct nat64_prefix *prefix,
	uint16_t *where)
{
	struct ct_entry *e = p->ct;
	const struct tuple *orig = &e->orig.tuple;
	struct tuple out = e->reply.tuple;
	rte_be32_t host;
	enum sl_drop r;

	*where = 0;
	if (!siit_extract(&orig->dst, prefix->len, &host) ||
		!siit_host(&orig->dst, prefix->len, host) || under(&orig->src, prefix))
		return SL_DROP_NAT64_ADDRESS;
	outside(&out, host);
	r = to_inside(t, p, &out, where);
	e->status |= CT_DST_NAT;
	if (likely(e->reply.tuple.family == TUPLE_IPV4))
		e->status |= CT_NAT64;
	keep_prefix(e, prefix->len);
	p->ct_reply_hash = 0;
	netns_counter_add(&p->ns->nat->counters[t->index].bound_dst, r == SL_DROP_NONE);
	return r;
}

bool
nat64_inbound(struct pkt *p, const struct tuple *key, const struct nat_mapping *m)
{
	struct ct_entry *e = p->ct;
	struct tuple *reply = &e->reply.tuple;
	rte_be32_t sender = e->orig.tuple.src.w[0];

	if (!siit_host(&m->prefix, m->prefix_len, sender))
		return false;
	reply->family = TUPLE_IPV6;
	reply->src = key->src;
	reply->sport = key->sport;
	reply->dst = m->prefix;
	siit_embed(&reply->dst, m->prefix_len, sender);
	if (reply->proto == IPPROTO_ICMP) {
		reply->proto = IPPROTO_ICMPV6;
		reply->dport = RTE_BE16(ECHO6_REPLY << 8);
	}
	e->status |= CT_NAT64;
	keep_prefix(e, m->prefix_len);
	return true;
}

void
nat64_public(struct tuple *cand, const struct tuple *orig, const struct nat64_prefix *prefix)
{
	rte_be32_t host;

	/* The answer to what would leave: nat64_dst() has found the address sound. */
	(void)siit_extract(&orig->dst, prefix->len, &host);
	(void)tuple_invert(cand, orig);
	outside(cand, host);
}

void
nat64_set_hairpin(struct tuple *reply, const struct tuple *cand, const struct nat64_prefix *prefix)
{
	bool by_id = nat_is_icmp(cand->proto);
	struct tuple port = *cand;

	reply->dst = prefix->addr;
	siit_embed(&reply->dst, prefix->len, cand->dst.w[0]);
	*nat_reply_port(reply, by_id) = *nat_reply_port(&port, by_id);
}

bool
nat64_hairpin_end(const struct ct_entry *e, struct tuple_addr *addr)
{
	unsigned int len = nat_slot_const(e)->end[CT_ORIGINAL].flags >> NAT_SLOT_PREFIX_SHIFT;

	memset(addr, 0, sizeof(*addr));
	return len != 0 && !(e->status & CT_NAT64) &&
	       siit_extract(&e->reply.tuple.dst, len, &addr->w[0]);
}

/* ---- every packet ---- */

__attribute__((no_sanitize_thread)) bool
nat64_target(struct pkt *p, struct nat64_target *out)
{
	const struct ct_entry *e = p->ct;
	struct tuple other = *ct_tuple(e, !p->ct_dir);
	uint16_t flags = nat_slot_const(e)->end[CT_ORIGINAL].flags;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (unlikely(__atomic_load_n(&e->gen, __ATOMIC_RELAXED) != p->ct_gen)) {
		p->reason = SL_DROP_INV_RACE;
		return false;
	}
	out->prefix_len = (uint8_t)(flags >> NAT_SLOT_PREFIX_SHIFT);
	/* A tuple of an entry has an answer. */
	return tuple_invert(&out->to, &other);
}

/* Of packets that need not be told apart, as they are in one piece (RFC 6864), or small enough to
 * stay so: each thread counts by itself. */
static rte_be16_t
next_id(struct nat_thread *t)
{
	t->ip_id = (uint16_t)(t->ip_id + t->nat->n_threads);
	return rte_cpu_to_be_16(t->ip_id);
}

static bool
rewrite_whole(struct nat_thread *t, struct pkt *p)
{
	rte_be16_t id = p->tuple.family == TUPLE_IPV4 ? next_id(t) : 0;
	uint16_t len = siit_header(p->mbuf, p->l3_off, &p->tuple, id);

	if (unlikely(len == 0)) {
		p->reason = SL_DROP_TX_HEADROOM;
		return false;
	}
	p->ip_bytes = p->ip_bytes - p->l3_len + len;
	p->l3 = p->l4 - len;
	p->l3_len = len;
	return true;
}

bool
nat64_rewrite(struct nat_thread *t, struct pkt *p, const struct nat64_target *target, bool whole)
{
	siit_transport(p, &target->to);
	p->tuple = target->to;
	if (likely(whole))
		return rewrite_whole(t, p);
	p->late |= PKT_LATE_HEADER;
	p->frag_id = 0;
	if (p->tuple.family == TUPLE_IPV4)
		p->frag_id = nat_ip_id(t->nat, &p->tuple);
	if (p->train != NULL)
		frag_train_update(p->train);
	return true;
}

/* ---- ICMP errors ---- */

/* An IPv4 router's address, under the prefix of the connection. False: it must not be there. */
static bool
embed_router(const struct pkt *p, const struct nat64_target *target, struct tuple_addr *src)
{
	rte_be32_t router = ((const struct rte_ipv4_hdr *)p->l3)->src_addr;

	if (!siit_host(src, target->prefix_len, router))
		return false;
	siit_embed(src, target->prefix_len, router);
	return true;
}

enum sl_drop
nat64_error(struct nat_thread *t, const struct pkt *p, const struct nat64_target *target,
	const uint32_t mtu[2], struct rte_mbuf *m)
{
	struct siit_error e = {
		.to = target->to,
		.mtu_in = mtu[0],
		.mtu_out = mtu[1],
		.id = target->to.family == TUPLE_IPV4 ? next_id(t) : 0,
	};

	/* What is inside was sent by whom the error goes to. */
	if (!tuple_invert(&e.inner, &target->to))
		return SL_DROP_NAT64_NONE;
	if (p->tuple.family == TUPLE_IPV4)
		(void)embed_router(p, target, &e.to.src);
	e.to.proto = e.to.family == TUPLE_IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	return siit_error_write(m, p, &e);
}
