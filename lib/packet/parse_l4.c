/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>

#include <rte_gre.h>
#include <rte_sctp.h>
#include <rte_udp.h>

#include "parse_private.h"

#define GRE_VERSION_MASK 0x0007
#define GRE_LEN 4
#define GRE_PPTP_LEN 8 /* up to the call id (RFC 2637) */
#define GRE_PROTO_PPP 0x880b

/* RFC 3828: the length field is the checksum's coverage; 0 is all, else the header at least. */
static enum sl_drop
parse_udplite(struct pkt *p, uint32_t avail)
{
	const struct rte_udp_hdr *uh = (const struct rte_udp_hdr *)p->l4;
	uint32_t coverage;

	if (avail < sizeof(*uh))
		return parse_short(p->l4_len, sizeof(*uh), SL_DROP_INV_L4_TRUNCATED);
	coverage = rte_be_to_cpu_16(uh->dgram_len);
	if (coverage != 0 && (coverage < sizeof(*uh) || coverage > p->l4_len))
		return SL_DROP_INV_L4_TRUNCATED;
	p->l4_hdr_len = sizeof(*uh);
	p->tuple.sport = uh->src_port;
	p->tuple.dport = uh->dst_port;
	return SL_DROP_NONE;
}

static enum sl_drop
parse_sctp(struct pkt *p, uint32_t avail)
{
	const struct rte_sctp_hdr *sh = (const struct rte_sctp_hdr *)p->l4;

	if (avail < sizeof(*sh))
		return parse_short(p->l4_len, sizeof(*sh), SL_DROP_INV_L4_TRUNCATED);
	p->l4_hdr_len = sizeof(*sh);
	p->tuple.sport = sh->src_port;
	p->tuple.dport = sh->dst_port;
	return SL_DROP_NONE;
}

enum sl_drop
parse_gre(const uint8_t *gre, uint32_t len, uint32_t avail, rte_be16_t *call, uint16_t *hdr_len)
{
	if (avail < GRE_LEN)
		return parse_short(len, GRE_LEN, SL_DROP_INV_GRE);
	*call = 0;
	*hdr_len = GRE_LEN;
	if ((parse_be16(gre) & GRE_VERSION_MASK) != 1)
		return SL_DROP_NONE;
	if (parse_be16(gre + 2) != GRE_PROTO_PPP)
		return SL_DROP_INV_GRE;
	if (avail < GRE_PPTP_LEN)
		return parse_short(len, GRE_PPTP_LEN, SL_DROP_INV_GRE);
	memcpy(call, gre + 6, sizeof(*call));
	*hdr_len = GRE_PPTP_LEN;
	return SL_DROP_NONE;
}

enum sl_drop
parse_l4_other(struct pkt *p, uint32_t avail)
{
	bool v6 = p->tuple.family == TUPLE_IPV6;

	switch (p->proto) {
	case IPPROTO_ICMP:
		return v6 ? SL_DROP_INV_ICMP_TYPE : parse_icmp(p, avail);
	case IPPROTO_ICMPV6:
		return v6 ? parse_icmp6(p, avail) : SL_DROP_INV_ICMP_TYPE;
	case IPPROTO_NONE: /* RFC 8200, 4.7 */
		return v6 ? SL_DROP_INV_NO_L4 : SL_DROP_NONE;
	case IPPROTO_UDPLITE:
		return parse_udplite(p, avail);
	case IPPROTO_SCTP:
		return parse_sctp(p, avail);
	case IPPROTO_GRE:
		return parse_gre(p->l4, p->l4_len, avail, &p->tuple.dport, &p->l4_hdr_len);
	default:
		return SL_DROP_NONE;
	}
}
