/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet as rules see it: the destination after its translation, the source before, in both
 * directions. So of a connection the source is that of the direction's tuple, and the destination
 * the source of the other's, from where the answers come. Of NAT64 they see the packets that the
 * IPv6 side has.
 */
#include <netinet/in.h>

#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>

#include "ruleset.h"
#include "siit.h"

#define ICMP6_ECHO_REQUEST 128
#define ICMP6_ECHO_REPLY   129

/* What the parser refused may end anywhere. */
static bool
readable(const struct pkt *p, unsigned int len)
{
	const uint8_t *first = rte_pktmbuf_mtod(p->mbuf, const uint8_t *);
	const uint8_t *end = first + rte_pktmbuf_data_len(p->mbuf);

	return p->l4 != NULL && p->l4 >= first && p->l4 <= end && p->l4_len >= len &&
	       (size_t)(end - p->l4) >= len;
}

static bool
proto_has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_UDPLITE ||
	       proto == IPPROTO_SCTP;
}

static void
view_addresses(struct rules_packet *k)
{
	const struct pkt *p = k->pkt;

	memset(&k->src, 0, sizeof(k->src));
	memset(&k->dst, 0, sizeof(k->dst));
	if (k->family == TUPLE_IPV4) {
		const struct rte_ipv4_hdr *ih = (const struct rte_ipv4_hdr *)p->l3;

		k->src.w[0] = ih->src_addr;
		k->dst.w[0] = ih->dst_addr;
	} else {
		const struct rte_ipv6_hdr *ih = (const struct rte_ipv6_hdr *)p->l3;

		memcpy(&k->src, ih->src_addr, sizeof(k->src));
		memcpy(&k->dst, ih->dst_addr, sizeof(k->dst));
	}
}

static void
view_transport(struct rules_packet *k)
{
	const struct pkt *p = k->pkt;

	k->has_ports = proto_has_ports(k->proto) && readable(p, 2 * sizeof(uint16_t));
	if (k->has_ports) {
		k->sport = (uint16_t)(p->l4[0] << 8 | p->l4[1]);
		k->dport = (uint16_t)(p->l4[2] << 8 | p->l4[3]);
	}
	k->has_flags = k->proto == IPPROTO_TCP && readable(p, sizeof(struct rte_tcp_hdr));
	if (k->has_flags)
		k->tcp_flags = p->l4[offsetof(struct rte_tcp_hdr, tcp_flags)];
	k->has_type = k->proto == (k->family == TUPLE_IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) &&
		      readable(p, 1);
	if (k->has_type)
		k->icmp_type = p->l4[0];
}

/* ICMP of IPv4 is seen as what it becomes. */
static void
view_icmp6(struct rules_packet *k)
{
	uint8_t code = k->pkt->icmp_code;

	if (k->proto != IPPROTO_ICMP)
		return;
	k->proto = IPPROTO_ICMPV6;
	if (!(k->pkt->flags & PKT_ICMP_ERROR))
		k->icmp_type = k->icmp_type == 0 ? ICMP6_ECHO_REPLY : ICMP6_ECHO_REQUEST;
	else if (k->has_type)
		k->has_type = siit_error_type(TUPLE_IPV4, &k->icmp_type, &code);
}

/* A connection between IP versions is seen from the side of IPv6, both ways. */
static void
view_nat64(struct rules_packet *k, const struct tuple *far)
{
	if (k->family == TUPLE_IPV6)
		return;
	k->family = TUPLE_IPV6;
	k->src = far->dst;
	k->dst = far->src;
	if (k->has_ports)
		k->dport = rte_be_to_cpu_16(far->sport);
	view_icmp6(k);
}

/* The far end of a translated connection. An error goes to it as the packets do, but what it says
 * of ports is inside. */
static void
view_translated(struct rules_packet *k)
{
	struct tuple far;

	if (!ct_far_end(k->pkt, &far))
		return;
	if (unlikely(k->pkt->ct->status & CT_NAT64)) {
		view_nat64(k, &far);
		return;
	}
	k->dst = far.src;
	if (k->has_ports)
		k->dport = rte_be_to_cpu_16(far.sport);
}

static uint8_t
state_of(const struct rules_packet *k)
{
	const struct pkt *p = k->pkt;

	if (p->flags & PKT_UNTRACKED)
		return RULE_STATE_UNTRACKED;
	if (p->flags & PKT_CT_RELATED)
		return RULE_STATE_RELATED;
	if (p->ct == NULL) /* in raw a packet that a zone was set for has a template, as new */
		return p->zone_set && !(p->flags & PKT_CT_INVALID) ? RULE_STATE_NEW
									  : RULE_STATE_INVALID;
	if (k->admission || (p->ct_dir == CT_ORIGINAL && !(p->ct_status & CT_SEEN_REPLY)))
		return RULE_STATE_NEW;
	return RULE_STATE_ESTABLISHED;
}

void
rules_view(struct rules_packet *k)
{
	const struct pkt *p = k->pkt;

	k->family = 0;
	k->proto = p->proto;
	k->has_ports = k->has_flags = k->has_type = false;
	k->state = state_of(k);
	if (!(p->flags & PKT_IP))
		return;
	k->family = p->tuple.family;
	view_addresses(k);
	view_transport(k);
	if (p->ct != NULL &&
		(k->admission ? p->ct->status : p->ct_status) & (CT_SRC_NAT | CT_DST_NAT))
		view_translated(k);
}
