/* SPDX-License-Identifier: BSD-3-Clause */
#include "generator_template.h"

#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

/* Ethernet header and tag. Returns their length. */
static uint16_t
build_l2(struct gen_template *t, const struct gen_options *o, enum gen_side from, bool tagged)
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)t->frame;
	rte_be16_t type = rte_cpu_to_be_16(
		o->family == TUPLE_IPV4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
	struct rte_vlan_hdr *vlan = (struct rte_vlan_hdr *)(eth + 1);

	/* Locally administered: 02:00:00:00:00:01 the client, :02 the server. */
	eth->src_addr.addr_bytes[0] = 2;
	eth->src_addr.addr_bytes[5] = from == GEN_CLIENT ? 1 : 2;
	eth->dst_addr.addr_bytes[0] = 2;
	eth->dst_addr.addr_bytes[5] = from == GEN_CLIENT ? 2 : 1;
	t->tagged = tagged;
	if (!tagged) {
		eth->ether_type = type;
		return sizeof(*eth);
	}
	eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN);
	vlan->eth_proto = type;
	return sizeof(*eth) + sizeof(*vlan);
}

/* IPv4 header at `off`; l4_len bytes follow. Returns the sum of the pseudo-header. */
static uint32_t
build_ip4(struct gen_template *t, const struct gen_options *o, enum gen_side from, uint16_t off,
	uint16_t l4_len)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(t->frame + off);

	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ip) + l4_len)),
		.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = 64,
		.next_proto_id = o->udp ? IPPROTO_UDP : IPPROTO_TCP,
	};
	if (from == GEN_CLIENT)
		ip->dst_addr = o->dst.w[0];
	else
		ip->src_addr = o->dst.w[0];
	t->addr_off = off + (from == GEN_CLIENT ? offsetof(struct rte_ipv4_hdr, src_addr)
						: offsetof(struct rte_ipv4_hdr, dst_addr));
	t->ip_csum_off = off + offsetof(struct rte_ipv4_hdr, hdr_checksum);
	t->ip_sum = rte_raw_cksum(ip, sizeof(*ip));
	t->l4_off = off + sizeof(*ip);
	return rte_ipv4_phdr_cksum(ip, 0);
}

static uint32_t
build_ip6(struct gen_template *t, const struct gen_options *o, enum gen_side from, uint16_t off,
	uint16_t l4_len)
{
	struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(t->frame + off);
	uint8_t *client = from == GEN_CLIENT ? ip->src_addr : ip->dst_addr;
	uint8_t *server = from == GEN_CLIENT ? ip->dst_addr : ip->src_addr;

	ip->vtc_flow = rte_cpu_to_be_32(6u << 28);
	ip->payload_len = rte_cpu_to_be_16(l4_len);
	ip->proto = o->udp ? IPPROTO_UDP : IPPROTO_TCP;
	ip->hop_limits = 64;
	memcpy(server, o->dst.b, 16);
	memcpy(client, o->prefix.b, 12);
	t->addr_off = (uint16_t)(client + 12 - t->frame);
	t->l4_off = off + sizeof(*ip);
	return rte_ipv6_phdr_cksum(ip, 0);
}

/* Transport header, but what differs from packet to packet. */
static void
build_l4(struct gen_template *t, const struct gen_options *o, const struct gen_segment *s,
	uint16_t l4_len)
{
	struct rte_tcp_hdr *tcp = (struct rte_tcp_hdr *)(t->frame + t->l4_off);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)tcp;
	rte_be16_t port = rte_cpu_to_be_16((uint16_t)o->dport);

	/* Both protocols begin with the two ports. */
	if (s->from == GEN_CLIENT)
		udp->dst_port = port;
	else
		udp->src_port = port;
	t->port_off = t->l4_off + (s->from == GEN_CLIENT ? 0 : sizeof(port));
	if (o->udp) {
		udp->dgram_len = rte_cpu_to_be_16(l4_len);
		t->csum_off = t->l4_off + offsetof(struct rte_udp_hdr, dgram_cksum);
		return;
	}
	tcp->data_off = sizeof(*tcp) / 4 << 4;
	tcp->tcp_flags = s->flags;
	tcp->rx_win = rte_cpu_to_be_16(64240);
	t->csum_off = t->l4_off + offsetof(struct rte_tcp_hdr, cksum);
}

uint16_t
gen_template_build(struct gen_template *t, const struct gen_options *o, const struct gen_segment *s,
	bool tagged)
{
	bool v4 = o->family == TUPLE_IPV4;
	uint16_t l3_len = v4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
	uint16_t l4_len = o->udp ? sizeof(struct rte_udp_hdr) : sizeof(struct rte_tcp_hdr);
	uint16_t off = build_l2(t, o, s->from, tagged), payload = 0;
	uint32_t pseudo;

	if (s->payload)
		payload = (uint16_t)o->size - off - l3_len - l4_len;
	l4_len += payload;
	pseudo = v4 ? build_ip4(t, o, s->from, off, l4_len) : build_ip6(t, o, s->from, off, l4_len);
	build_l4(t, o, s, l4_len);
	t->l4_sum = pseudo + rte_raw_cksum(t->frame + t->l4_off, l4_len);
	t->len = RTE_MAX((uint16_t)(off + l3_len + l4_len), GEN_SIZE_MIN);
	return payload;
}
