/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers of one IP version for those of the other (RFC 7915 4.1, 5.1), and transport headers. */
#include "siit_private.h"

#include <rte_branch_prediction.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_sctp.h>

#include "csum.h"
#include "parse_private.h"

#define TCP_SUM_AT  16u
#define UDP_SUM_AT  6u
#define ICMP_SUM_AT 2u
#define ICMP_ID_AT  4u

#define OPT_LSRR 131 /* RFC 791 */
#define OPT_SSRR 137
#define OPT_PTR_AT 2 /* counted from 1: of the next address of the route */

#define FRAME_L3_MAX (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN)

/* ---- what has no translation ---- */

static const struct icmp_error nothing;

/* Whether a route in the options goes on behind this gateway. */
static bool
source_routed(const uint8_t *ip, uint16_t hdr_len)
{
	uint16_t at = sizeof(struct rte_ipv4_hdr), len;

	while (at + 1 < hdr_len && ip[at] != 0) {
		len = ip[at] == 1 ? 1 : ip[at + 1];
		if (len == 0 || at + len > hdr_len)
			return false;
		if ((ip[at] == OPT_LSRR || ip[at] == OPT_SSRR) && len > OPT_PTR_AT)
			return ip[at + OPT_PTR_AT] <= len;
		at = (uint16_t)(at + len);
	}
	return false;
}

static enum sl_drop
check_options(const struct pkt *p, struct icmp_error *e)
{
	if (!source_routed(p->l3, p->l3_len))
		return SL_DROP_NONE;
	*e = (struct icmp_error){.type = ICMP_UNREACHABLE, .code = ICMP_CODE_SOURCE_ROUTE};
	return SL_DROP_NAT64_NONE;
}

/* The parser has walked them, so that they are all there. */
static enum sl_drop
check_ext(const struct pkt *p, struct icmp_error *e)
{
	uint8_t type = p->l3[offsetof(struct rte_ipv6_hdr, proto)];
	uint16_t at = sizeof(struct rte_ipv6_hdr);

	/* Of a datagram in fragments it is not known whether they are in each, or once. */
	if (p->flags & PKT_DATAGRAM)
		return SL_DROP_NAT64_NONE;
	while (at < p->l3_len) {
		const uint8_t *h = p->l3 + at;

		if (type == IPPROTO_AH) /* it would not verify any more */
			return SL_DROP_NAT64_NONE;
		if (type == IPPROTO_ROUTING && h[3] != 0) {
			*e = (struct icmp_error){.type = ICMP6_PARAMETER_PROBLEM, .word = at + 3u};
			return SL_DROP_NAT64_NONE;
		}
		at = (uint16_t)(at + (type == IPPROTO_FRAGMENT ? 8u : (h[1] + 1u) * 8));
		type = h[0];
	}
	return SL_DROP_NONE;
}

static bool
is_echo(const struct pkt *p)
{
	return p->tuple.family == TUPLE_IPV4 ? p->icmp_type == 8 || p->icmp_type == 0
					     : p->icmp_type == 128 || p->icmp_type == 129;
}

/* Protocols whose checksums can be made right; of ICMP those messages that both have. */
static enum sl_drop
check_protocol(const struct pkt *p, struct icmp_error *e)
{
	bool ip4 = p->tuple.family == TUPLE_IPV4;

	switch (p->proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
		return SL_DROP_NONE;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (ip4 == (p->proto == IPPROTO_ICMP))
			return p->flags & PKT_ICMP_ERROR || is_echo(p) ? SL_DROP_NONE
								       : SL_DROP_NAT64_NONE;
		break;
	default:
		break;
	}
	e->type = ip4 ? ICMP_UNREACHABLE : ICMP6_UNREACHABLE;
	e->code = ip4 ? ICMP_CODE_PROTOCOL : ICMP6_CODE_PORT;
	return SL_DROP_NAT64_NONE;
}

enum sl_drop
siit_check(const struct pkt *p, struct icmp_error *e)
{
	bool ip4 = p->tuple.family == TUPLE_IPV4;
	enum sl_drop r = SL_DROP_NONE;
	uint8_t hops;

	*e = nothing;
	hops = p->l3[ip4 ? offsetof(struct rte_ipv4_hdr, time_to_live)
			 : offsetof(struct rte_ipv6_hdr, hop_limits)];
	if (unlikely(hops <= 1)) {
		e->type = ip4 ? ICMP_TIME_EXCEEDED : ICMP6_TIME_EXCEEDED;
		return SL_DROP_HOP_LIMIT;
	}
	if (ip4 && unlikely(p->l3_len > sizeof(struct rte_ipv4_hdr)))
		r = check_options(p, e);
	else if (!ip4 && unlikely(p->l3_len > sizeof(struct rte_ipv6_hdr)))
		r = check_ext(p, e);
	return r == SL_DROP_NONE ? check_protocol(p, e) : r;
}

/* ---- transport headers ---- */

/* What changes in the sum over a pseudo-header: the old addresses out, the new ones in. */
static uint64_t
addresses_diff(const struct pkt *p, const struct tuple *to)
{
	if (p->tuple.family == TUPLE_IPV4)
		return siit_sum_new(to->src.b, 16) + siit_sum_new(to->dst.b, 16) +
		       siit_sum_old(p->l3 + offsetof(struct rte_ipv4_hdr, src_addr), 8);
	return siit_sum_new(to->src.b, 4) + siit_sum_new(to->dst.b, 4) +
	       siit_sum_old(p->l3 + offsetof(struct rte_ipv6_hdr, src_addr), 32);
}

/* The rest of ICMPv6's pseudo-header, which ICMP has not at all. */
static uint64_t
icmp_diff(const struct pkt *p, const struct tuple *to)
{
	uint32_t len = rte_cpu_to_be_32(p->l4_len), proto = RTE_BE32(IPPROTO_ICMPV6);

	if (p->tuple.family == TUPLE_IPV4)
		return siit_sum_new(to->src.b, 16) + siit_sum_new(to->dst.b, 16) + len + proto;
	return siit_sum_old(p->l3 + offsetof(struct rte_ipv6_hdr, src_addr), 32) +
	       (uint32_t)~len + (uint32_t)~proto;
}

static uint64_t
put_ports(uint8_t *l4, const struct tuple *to)
{
	return siit_put16(l4, to->sport) + siit_put16(l4 + 2, to->dport);
}

static void
put_sctp(const struct pkt *p, const struct tuple *to)
{
	bool same = siit_get16(p->l4) == to->sport && siit_get16(p->l4 + 2) == to->dport;

	/* Its sum is over no address: what arrives damaged stays so, if it can. */
	put_ports(p->l4, to);
	if (!same)
		((struct rte_sctp_hdr *)(void *)p->l4)->cksum = csum_sctp(p);
}

static void
put_echo(const struct pkt *p, const struct tuple *to)
{
	uint64_t diff = icmp_diff(p, to);

	/* type and code are a word of the packet */
	diff += siit_put16(p->l4, to->dport) + siit_put16(p->l4 + ICMP_ID_AT, to->sport);
	siit_put16(p->l4 + ICMP_SUM_AT, csum_adjust(siit_get16(p->l4 + ICMP_SUM_AT), diff));
}

static void
put_udp(const struct pkt *p, const struct tuple *to)
{
	uint8_t *sum = p->l4 + UDP_SUM_AT;
	uint64_t diff;

	if (unlikely(siit_get16(sum) == 0) && p->tuple.family == TUPLE_IPV4 &&
		p->proto == IPPROTO_UDP)
		siit_put16(sum, csum_udp(p));
	diff = addresses_diff(p, to) + put_ports(p->l4, to);
	siit_put16(sum, csum_adjust_udp(siit_get16(sum), diff));
}

void
siit_transport(struct pkt *p, const struct tuple *to)
{
	uint64_t diff;

	switch (p->proto) {
	case IPPROTO_TCP:
		diff = addresses_diff(p, to) + put_ports(p->l4, to);
		siit_put16(p->l4 + TCP_SUM_AT,
			csum_adjust(siit_get16(p->l4 + TCP_SUM_AT), diff));
		break;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		put_udp(p, to);
		break;
	case IPPROTO_SCTP:
		put_sctp(p, to);
		break;
	default:
		put_echo(p, to);
		break;
	}
}

/* ---- IP headers ---- */

uint8_t
siit_proto(uint8_t proto)
{
	if (proto == IPPROTO_ICMP)
		return IPPROTO_ICMPV6;
	return proto == IPPROTO_ICMPV6 ? IPPROTO_ICMP : proto;
}

void
siit_write_ip4(void *at, const struct siit_header *h)
{
	struct rte_ipv4_hdr ih = {
		.version_ihl = RTE_IPV4_VHL_DEF,
		.type_of_service = h->traffic_class,
		.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(ih) + h->payload)),
		.packet_id = h->id,
		.time_to_live = h->hops,
		.next_proto_id = h->proto,
		.src_addr = h->to->src.w[0],
		.dst_addr = h->to->dst.w[0],
	};

	if (h->df)
		ih.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG);
	else if (h->fragment)
		ih.fragment_offset = rte_cpu_to_be_16(
			(uint16_t)(h->frag >> 3 | (h->frag & 1 ? RTE_IPV4_HDR_MF_FLAG : 0)));
	ih.hdr_checksum = rte_ipv4_cksum(&ih);
	memcpy(at, &ih, sizeof(ih));
}

/* Returns the length of what was written. */
uint16_t
siit_write_ip6(void *at, const struct siit_header *h)
{
	uint32_t class_flow = 6u << 28 | (uint32_t)h->traffic_class << RTE_IPV6_HDR_TC_SHIFT;
	uint16_t payload = (uint16_t)(h->payload + (h->fragment ? SIIT_FRAGMENT : 0));
	struct rte_ipv6_hdr ih = {
		.vtc_flow = rte_cpu_to_be_32(class_flow),
		.payload_len = rte_cpu_to_be_16(payload),
		.proto = h->fragment ? IPPROTO_FRAGMENT : h->proto,
		.hop_limits = h->hops,
	};
	struct rte_ipv6_fragment_ext fh = {
		.next_header = h->proto,
		.frag_data = rte_cpu_to_be_16(h->frag),
		.id = rte_cpu_to_be_32(rte_be_to_cpu_16(h->id)),
	};

	memcpy(ih.src_addr, h->to->src.b, sizeof(ih.src_addr));
	memcpy(ih.dst_addr, h->to->dst.b, sizeof(ih.dst_addr));
	memcpy(at, &ih, sizeof(ih));
	if (!h->fragment)
		return sizeof(ih);
	memcpy((uint8_t *)at + sizeof(ih), &fh, sizeof(fh));
	return sizeof(ih) + sizeof(fh);
}

void
siit_read_ip4(struct siit_header *h, const void *ip)
{
	const struct rte_ipv4_hdr *ih = ip;
	uint16_t off = rte_be_to_cpu_16(ih->fragment_offset);

	h->len = (ih->version_ihl & RTE_IPV4_HDR_IHL_MASK) * 4u;
	h->payload = rte_be_to_cpu_16(ih->total_length) - h->len;
	h->traffic_class = ih->type_of_service;
	h->hops = ih->time_to_live;
	h->proto = siit_proto(ih->next_proto_id);
	h->id = ih->packet_id;
	h->fragment = off & (RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK);
	h->frag = (uint16_t)((off & RTE_IPV4_HDR_OFFSET_MASK) << 3 |
			     (off & RTE_IPV4_HDR_MF_FLAG ? 1 : 0));
	h->df = off & RTE_IPV4_HDR_DF_FLAG;
}

void
siit_read_ip6(struct siit_header *h, const void *ip, uint32_t avail)
{
	const struct rte_ipv6_hdr *ih = ip;
	struct parse_ip6_end end;

	/* It was walked before, or lies in an error, whose inner packet was. */
	(void)parse_ip6_walk(&end, ip, avail, avail);
	h->len = (uint16_t)end.off;
	h->payload = sizeof(*ih) + rte_be_to_cpu_16(ih->payload_len) - end.off;
	h->traffic_class =
		(uint8_t)(rte_be_to_cpu_32(ih->vtc_flow) >> RTE_IPV6_HDR_TC_SHIFT);
	h->hops = ih->hop_limits;
	h->proto = siit_proto(end.proto);
	h->id = 0;
	h->fragment = end.frag_at != 0;
	h->frag = end.frag;
	h->df = !h->fragment && sizeof(struct rte_ipv4_hdr) + h->payload > SIIT_DF_ABOVE;
}

bool
siit_fragmentable(const struct pkt *p)
{
	struct siit_header h;

	if (p->tuple.family == TUPLE_IPV4)
		return !(((const struct rte_ipv4_hdr *)p->l3)->fragment_offset &
			 RTE_BE16(RTE_IPV4_HDR_DF_FLAG));
	if (p->train != NULL || siit_length(p) <= SIIT_DF_ABOVE)
		return true;
	siit_read_ip6(&h, p->l3, p->l3_len);
	return h.fragment;
}

/* Cuts off what is behind the packet, if all of it is in the last segment. */
static void
trim(struct rte_mbuf *m, uint32_t len)
{
	if (unlikely(m->pkt_len > len))
		(void)rte_pktmbuf_trim(m, (uint16_t)RTE_MIN(m->pkt_len - len, UINT16_MAX));
}

uint16_t
siit_header(struct rte_mbuf *m, uint16_t l3_off, const struct tuple *to, rte_be16_t id)
{
	bool to4 = to->family == TUPLE_IPV4;
	uint16_t type = to4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4) : RTE_BE16(RTE_ETHER_TYPE_IPV6);
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), l2[FRAME_L3_MAX];
	struct siit_header h = {.to = to};
	uint16_t len = sizeof(struct rte_ipv4_hdr);

	if (to4)
		siit_read_ip6(&h, frame + l3_off, m->data_len - (uint32_t)l3_off);
	else
		siit_read_ip4(&h, frame + l3_off);
	if (unlikely(h.hops <= 1))
		return 0;
	h.hops--;
	if (to4)
		h.id = id;
	else
		len = sizeof(struct rte_ipv6_hdr) + (h.fragment ? SIIT_FRAGMENT : 0u);
	memcpy(l2, frame, l3_off);
	trim(m, (uint32_t)l3_off + h.len + h.payload);
	frame = len > h.len ? (uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)(len - h.len))
			    : (uint8_t *)rte_pktmbuf_adj(m, (uint16_t)(h.len - len));
	if (unlikely(frame == NULL))
		return 0;
	memcpy(frame, l2, l3_off);
	memcpy(frame + l3_off - sizeof(type), &type, sizeof(type));
	if (to4)
		siit_write_ip4(frame + l3_off, &h);
	else
		siit_write_ip6(frame + l3_off, &h);
	return len;
}
