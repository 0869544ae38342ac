/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP and ICMPv6: queries, errors with the packet inside them, neighbour discovery. */
#include <netinet/in.h>

#include <rte_ip.h>

#include "parse_private.h"

#define ICMP_LEN 8
#define INNER_L4_MIN 8 /* what an error is sure to carry of the transport header (RFC 792) */

enum icmp_kind { ICMP_QUERY, ICMP_ERROR, ICMP_ND, ICMP_OTHER };

static enum icmp_kind
icmp4_kind(uint8_t type)
{
	switch (type) {
	case 0:  /* echo reply */
	case 8:  /* echo */
	case 13: /* timestamp, and its reply */
	case 14:
	case 15: /* information */
	case 16:
	case 17: /* address mask */
	case 18:
		return ICMP_QUERY;
	case 3:  /* destination unreachable */
	case 4:  /* source quench */
	case 5:  /* redirect */
	case 11: /* time exceeded */
	case 12: /* parameter problem */
		return ICMP_ERROR;
	default:
		return ICMP_OTHER;
	}
}

static enum icmp_kind
icmp6_kind(uint8_t type)
{
	if (type < 128) /* RFC 4443: all errors, known or not */
		return ICMP_ERROR;
	switch (type) {
	case 128: /* echo, and its reply */
	case 129:
	case 139: /* node information */
	case 140:
		return ICMP_QUERY;
	case 130: /* MLD query, report, done */
	case 131:
	case 132:
	case 133: /* router solicitation and advertisement */
	case 134:
	case 135: /* neighbour solicitation and advertisement */
	case 136:
	case 137: /* redirect */
	case 143: /* MLDv2 report */
		return ICMP_ND;
	default:
		return ICMP_OTHER;
	}
}

static void
query_ids(struct tuple *t, const uint8_t *icmp)
{
	memcpy(&t->sport, icmp + 4, sizeof(t->sport));
	memcpy(&t->dport, icmp, sizeof(t->dport)); /* type and code */
}

/*
 * What the tuple of the packet inside an error needs of that packet's transport header at l4, of
 * which the error carries len bytes.
 */
static enum sl_drop
inner_l4(struct tuple *t, const uint8_t *l4, uint32_t len, uint32_t avail)
{
	uint16_t hdr_len;
	enum sl_drop r;

	switch (t->proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
		if (avail < INNER_L4_MIN)
			return parse_short(len, INNER_L4_MIN, SL_DROP_ICMP_INNER);
		memcpy(&t->sport, l4, sizeof(t->sport));
		memcpy(&t->dport, l4 + 2, sizeof(t->dport));
		return SL_DROP_NONE;
	case IPPROTO_GRE:
		r = parse_gre(l4, len, avail, &t->dport, &hdr_len);
		return r == SL_DROP_INV_GRE ? SL_DROP_ICMP_INNER : r;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if ((t->proto == IPPROTO_ICMP) != (t->family == TUPLE_IPV4))
			return SL_DROP_NONE;
		if (avail < ICMP_LEN)
			return parse_short(len, ICMP_LEN, SL_DROP_ICMP_INNER);
		if ((t->family == TUPLE_IPV4 ? icmp4_kind(l4[0]) : icmp6_kind(l4[0])) != ICMP_QUERY)
			return SL_DROP_INV_ICMP_UNRELATED;
		query_ids(t, l4);
		return SL_DROP_NONE;
	default:
		return SL_DROP_NONE;
	}
}

/* `off` is set to the offset of the inner transport header. A total beyond len: cut, as usual. */
static enum sl_drop
inner_ip4(struct tuple *t, uint32_t *off, const uint8_t *ip, uint32_t len, uint32_t avail)
{
	const struct rte_ipv4_hdr *ih = (const struct rte_ipv4_hdr *)ip;
	uint32_t hdr_len, total;

	if (avail < sizeof(*ih))
		return parse_short(len, sizeof(*ih), SL_DROP_ICMP_INNER);
	hdr_len = (ih->version_ihl & RTE_IPV4_HDR_IHL_MASK) * 4u;
	total = rte_be_to_cpu_16(ih->total_length);
	if (ih->version_ihl >> 4 != 4 || hdr_len < sizeof(*ih) || total < hdr_len)
		return SL_DROP_ICMP_INNER;
	if (avail < hdr_len)
		return parse_short(len, hdr_len, SL_DROP_ICMP_INNER);
	if (ih->fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK))
		return SL_DROP_ICMP_INNER;
	t->family = TUPLE_IPV4;
	t->proto = ih->next_proto_id;
	t->src.w[0] = ih->src_addr;
	t->dst.w[0] = ih->dst_addr;
	*off = hdr_len;
	len = RTE_MIN(len, total);
	return inner_l4(t, ip + hdr_len, len - hdr_len, RTE_MIN(avail, len) - hdr_len);
}

static enum sl_drop
inner_ip6(struct tuple *t, uint32_t *off, const uint8_t *ip, uint32_t len, uint32_t avail)
{
	const struct rte_ipv6_hdr *ih = (const struct rte_ipv6_hdr *)ip;
	struct parse_ip6_end end;
	enum sl_drop r;

	if (avail < sizeof(*ih))
		return parse_short(len, sizeof(*ih), SL_DROP_ICMP_INNER);
	if (ip[0] >> 4 != 6)
		return SL_DROP_ICMP_INNER;
	len = RTE_MIN(len, (uint32_t)sizeof(*ih) + rte_be_to_cpu_16(ih->payload_len));
	avail = RTE_MIN(avail, len);
	r = parse_ip6_walk(&end, ip, len, avail);
	if (r == PARSE_MORE)
		return r;
	/* The rest of a first fragment's frag field is the M bit. */
	if (r != SL_DROP_NONE || end.frag > 1)
		return SL_DROP_ICMP_INNER;
	t->family = TUPLE_IPV6;
	t->proto = end.proto;
	memcpy(&t->src, ih->src_addr, sizeof(t->src));
	memcpy(&t->dst, ih->dst_addr, sizeof(t->dst));
	*off = end.off;
	return inner_l4(t, ip + end.off, len - end.off, avail - end.off);
}

static enum sl_drop
parse_error(struct pkt *p, uint32_t avail)
{
	const uint8_t *ip = p->l4 + ICMP_LEN;
	uint32_t len = p->l4_len - ICMP_LEN, off = 0;
	struct tuple inner;
	enum sl_drop r;

	memset(&inner, 0, sizeof(inner));
	if (p->tuple.family == TUPLE_IPV4)
		r = inner_ip4(&inner, &off, ip, len, avail - ICMP_LEN);
	else
		r = inner_ip6(&inner, &off, ip, len, avail - ICMP_LEN);
	if (r != SL_DROP_NONE)
		return r;
	p->tuple = inner;
	p->inner_off = ICMP_LEN;
	p->inner_l4_off = (uint16_t)(ICMP_LEN + off);
	p->flags |= PKT_ICMP_ERROR;
	return SL_DROP_NONE;
}

static enum sl_drop
parse_kind(struct pkt *p, uint32_t avail, enum icmp_kind kind)
{
	switch (kind) {
	case ICMP_QUERY:
		query_ids(&p->tuple, p->l4);
		return SL_DROP_NONE;
	case ICMP_ERROR:
		return parse_error(p, avail);
	case ICMP_ND:
		p->flags |= PKT_ND;
		memcpy(&p->tuple.dport, p->l4, sizeof(p->tuple.dport));
		return SL_DROP_NONE;
	default:
		return SL_DROP_INV_ICMP_TYPE;
	}
}

/* What ICMP and ICMPv6 have in common. */
static enum sl_drop
parse_header(struct pkt *p, uint32_t avail)
{
	if (avail < ICMP_LEN)
		return parse_short(p->l4_len, ICMP_LEN, SL_DROP_INV_L4_TRUNCATED);
	p->icmp_type = p->l4[0];
	p->icmp_code = p->l4[1];
	p->l4_hdr_len = ICMP_LEN;
	return SL_DROP_NONE;
}

enum sl_drop
parse_icmp(struct pkt *p, uint32_t avail)
{
	enum sl_drop r = parse_header(p, avail);

	return r == SL_DROP_NONE ? parse_kind(p, avail, icmp4_kind(p->icmp_type)) : r;
}

enum sl_drop
parse_icmp6(struct pkt *p, uint32_t avail)
{
	enum sl_drop r = parse_header(p, avail);

	return r == SL_DROP_NONE ? parse_kind(p, avail, icmp6_kind(p->icmp_type)) : r;
}
