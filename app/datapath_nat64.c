/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NAT64 in the packet path: what cannot be translated and who is told so, lengths that change on
 * the way, ICMP errors, and fragments, which get the header of the other IP version one by one as
 * they leave.
 *
 * All that is said to a sender quotes the packet as he sent it; so it comes before the packet is
 * changed.
 */
#include "datapath_rules.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "csum.h"
#include "frag.h"
#include "link.h"
#include "nat64.h"
#include "own.h"
#include "siit.h"
#include "station.h"
#include "translate.h"

/* IPv4 packets that may be fragmented are, so that no link of IPv6 is too small (RFC 7915 4.1). */
#define IP6_MTU_MIN 1280u

/* What a frame of IPv4 becomes longer by as a fragment of IPv6. */
#define FRAGMENT_GROWTH (SIIT_GROWTH + SIIT_FRAGMENT)

static struct nat_thread *
thread_of(const struct worker *w)
{
	return nat_thread(w->gw->nat, w->index);
}

static void
tell(struct worker *w, const struct pkt *p, struct icmp_error *e)
{
	if (e->type != 0)
		datapath_icmp_error(w, p, e);
}

/* ---- admission ---- */

/* The embryo goes, and its sender is told what *e says. */
static enum ct_verdict
refuse(struct worker *w, struct pkt *p, enum sl_drop reason, struct icmp_error *e)
{
	ct_abort(w->ct, p);
	tell(w, p, e);
	p->reason = (uint8_t)reason;
	return CT_DROP;
}

enum ct_verdict
datapath_nat64_admit(struct worker *w, struct pkt *p, const struct rule_nat *n)
{
	const struct nat64_prefix prefix = {.addr = n->lo, .len = n->prefix};
	const struct tuple *reply = &p->ct->reply.tuple;
	struct icmp_error e;
	enum sl_drop r = siit_check(p, &e);
	uint16_t where;

	if (r == SL_DROP_NONE)
		r = nat64_dst(thread_of(w), p, &prefix, &where);
	if (r == SL_DROP_NAT_FILTERED && translate_refused(p, where))
		return CT_OK;
	/* By a public address at which nobody is: it would go out, and come back. */
	if (r == SL_DROP_NONE && reply->family == TUPLE_IPV4 &&
		own_address(p->in, TUPLE_IPV4, &reply->src))
		r = SL_DROP_OWN_ADDRESS;
	if (r != SL_DROP_NONE)
		return refuse(w, p, r, &e);
	translate_turns_back(p, where);
	return CT_OK;
}

enum ct_verdict
datapath_nat64_inbound(struct worker *w, struct pkt *p)
{
	struct icmp_error e;
	enum sl_drop r = siit_check(p, &e);

	return r == SL_DROP_NONE ? CT_OK : refuse(w, p, r, &e);
}

/* ---- lengths ---- */

static bool
to_ip6(const struct pkt *p)
{
	return p->tuple.family == TUPLE_IPV4;
}

/* The longest of what will leave, and of its first part; `dont`: it must not be fragmented. */
struct length {
	uint32_t longest, first;
	bool dont;
};

static struct length
length_of(const struct pkt *p)
{
	struct length l = {.dont = !siit_fragmentable(p)};

	l.longest = l.first = siit_length(p);
	if (p->train == NULL)
		return l;
	l.longest = frag_train_longest(p->train, &l.first);
	if (to_ip6(p)) {
		l.longest += FRAGMENT_GROWTH;
		l.first += FRAGMENT_GROWTH;
	}
	return l;
}

/* The MTU of the link on the other side, as packets of this side see it. */
static uint32_t
mtu_seen(const struct pkt *p)
{
	if (!to_ip6(p))
		return RTE_MAX(p->out->mtu + SIIT_GROWTH, IP6_MTU_MIN);
	return RTE_MAX(p->out->mtu, IP6_MTU_MIN) -
	       (p->train != NULL ? FRAGMENT_GROWTH : SIIT_GROWTH);
}

static bool
fits(struct worker *w, struct pkt *p, const struct length *l)
{
	struct icmp_error e = {.type = to_ip6(p) ? ICMP_UNREACHABLE : ICMP6_PACKET_TOO_BIG,
		.code = to_ip6(p) ? ICMP_CODE_FRAG_NEEDED : 0,
		.word = mtu_seen(p)};
	uint32_t mtu = to_ip6(p) ? RTE_MAX(p->out->mtu, IP6_MTU_MIN) : p->out->mtu;

	/* No packet of IPv4 is as long as one of IPv6 can be. */
	if (siit_length(p) <= UINT16_MAX + (to_ip6(p) ? SIIT_GROWTH : 0) &&
		(!l->dont || l->longest <= mtu))
		return true;
	if (l->first > mtu)
		datapath_icmp_error(w, p, &e);
	datapath_drop(w, p, SL_DROP_TOO_BIG);
	return false;
}

/* ---- ICMP errors ---- */

/* In a buffer of its own, which takes the place of the error's. */
static void
replace_frame(struct pkt *p, struct rte_mbuf *m)
{
	if (p->train != NULL) {
		frag_train_free(p->train);
		p->train = NULL;
		p->flags &= (uint16_t)~PKT_DATAGRAM;
	} else {
		rte_pktmbuf_free(p->mbuf);
	}
	p->mbuf = m;
	p->ip_bytes = m->pkt_len - p->l3_off;
}

/* Its sum is made anew, so that it must be right before, though conntrack may not care. */
static bool
sum_good(const struct pkt *p)
{
	return p->flags & PKT_CSUM_GOOD || csum_l4_good(p);
}

static enum sl_drop
translate_error(struct worker *w, struct pkt *p, const struct nat64_target *target)
{
	const uint32_t mtu[2] = {p->in->mtu, p->out->mtu};
	struct rte_mbuf *m;
	enum sl_drop r;

	if (!sum_good(p))
		return SL_DROP_INV_L4_CHECKSUM;
	m = rte_pktmbuf_alloc(w->gw->pool);
	if (unlikely(m == NULL))
		return SL_DROP_TX_HEADROOM;
	r = nat64_error(thread_of(w), p, target, mtu, m);
	if (r != SL_DROP_NONE) {
		rte_pktmbuf_free(m);
		return r;
	}
	replace_frame(p, m);
	p->tuple = target->to;
	return SL_DROP_NONE;
}

/* ---- the stage ---- */

static void
translate_packet(struct worker *w, struct pkt *p, const struct nat64_target *target)
{
	struct length l = length_of(p);
	bool whole = p->train == NULL &&
		     (l.dont || !to_ip6(p) || l.longest <= IP6_MTU_MIN);

	if (!fits(w, p, &l))
		return;
	if (unlikely(!station_write(w, p) || !nat64_rewrite(thread_of(w), p, target, whole))) {
		station_cancel(p);
		datapath_drop(w, p, p->reason);
	}
}

void
datapath_nat64(struct worker *w, struct pkt *p)
{
	struct nat64_target target;
	struct icmp_error e;
	enum sl_drop r = siit_check(p, &e);

	if (unlikely(r != SL_DROP_NONE)) {
		tell(w, p, &e);
		datapath_drop(w, p, r);
	} else if (unlikely(!nat64_target(p, &target))) {
		datapath_drop(w, p, p->reason);
	} else if (likely(!(p->flags & PKT_ICMP_ERROR))) {
		translate_packet(w, p, &target);
	} else if (!station_write(w, p)) {
		datapath_drop(w, p, p->reason);
	} else {
		r = translate_error(w, p, &target);
		if (r == SL_DROP_NONE)
			return;
		station_cancel(p);
		datapath_drop(w, p, r);
	}
}

/* ---- the way out ---- */

bool
datapath_nat64_header(struct pkt *p, uint16_t l3_off)
{
	if (siit_header(p->mbuf, l3_off, &p->tuple, (rte_be16_t)p->frag_id) != 0)
		return true;
	p->reason = SL_DROP_TX_HEADROOM;
	return false;
}

static const struct rte_ipv4_hdr *
header4(const struct pkt *p, uint16_t l3_off)
{
	return rte_pktmbuf_mtod_offset(p->mbuf, const struct rte_ipv4_hdr *, l3_off);
}

/* Whether a frame of IPv4 has to become several of IPv6. */
static bool
to_be_cut(const struct pkt *p, uint16_t l3_off)
{
	const struct rte_ipv4_hdr *ih = header4(p, l3_off);
	uint32_t payload = rte_be_to_cpu_16(ih->total_length) -
			   (ih->version_ihl & RTE_IPV4_HDR_IHL_MASK) * 4u;

	return !(ih->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG)) &&
	       payload + sizeof(struct rte_ipv6_hdr) + SIIT_FRAGMENT > IP6_MTU_MIN;
}

void
datapath_nat64_emit(struct worker *w, struct pkt *p)
{
	uint16_t l3_off = (uint16_t)(RTE_ETHER_HDR_LEN + p->n_tags * RTE_VLAN_HLEN);
	bool to6 = p->tuple.family == TUPLE_IPV6;

	if (to6 && to_be_cut(p, l3_off)) {
		datapath_fragment(w, p);
		return;
	}
	if (unlikely(!datapath_nat64_header(p, l3_off))) {
		datapath_drop(w, p, p->reason);
		rte_pktmbuf_free(p->mbuf);
		return;
	}
	p->late &= (uint8_t)~PKT_LATE_HEADER;
	if (!to6 && rte_be_to_cpu_16(header4(p, l3_off)->total_length) > p->out->mtu)
		datapath_fragment(w, p);
	else
		datapath_emit_frame(w, p);
}

uint32_t
datapath_nat64_piece(void)
{
	return IP6_MTU_MIN - FRAGMENT_GROWTH;
}
