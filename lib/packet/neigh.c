/* SPDX-License-Identifier: BSD-3-Clause */
#include "neigh.h"

#include <netinet/in.h>

#include <rte_arp.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "csum.h"

#define ND_SOLICIT   135
#define ND_ADVERTISE 136
#define ND_HOP_LIMIT 255

#define ND_ROUTER    0x80
#define ND_SOLICITED 0x40
#define ND_OVERRIDE  0x20

#define OPT_SOURCE_MAC 1
#define OPT_TARGET_MAC 2
#define OPT_UNIT       8 /* what the length of an option counts */

/* What solicitation and advertisement begin with. */
struct nd_header {
	uint8_t type, code;
	rte_be16_t sum;
	uint8_t flags;
	uint8_t reserved[3];
	uint8_t target[16];
};

struct nd_mac_option {
	uint8_t type, len;
	struct rte_ether_addr mac;
};

/* All of a message that the gateway writes. */
struct nd_message {
	struct rte_ipv6_hdr ip;
	struct nd_header nd;
	struct nd_mac_option option;
};

static const uint8_t solicited_prefix[13] = {0xff, 2, [11] = 1, [12] = 0xff};
static const uint8_t all_nodes[16] = {0xff, 2, [15] = 1};

/* ---- ARP ---- */

static bool
station(const struct rte_ether_addr *mac)
{
	return rte_is_unicast_ether_addr(mac) && !rte_is_zero_ether_addr(mac);
}

static bool
host4(rte_be32_t addr)
{
	return (ntohl(addr) >> 28) < 0xe;
}

static enum neigh_kind
parse_arp(const struct pkt *p, struct neigh_msg *msg)
{
	const struct rte_arp_hdr *arp =
		rte_pktmbuf_mtod_offset(p->mbuf, const struct rte_arp_hdr *, p->l3_off);
	uint32_t len = rte_pktmbuf_data_len(p->mbuf) - p->l3_off;

	if (len < sizeof(*arp))
		return NEIGH_UNREADABLE;
	if (arp->arp_hardware != RTE_BE16(RTE_ARP_HRD_ETHER) ||
		arp->arp_protocol != RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return NEIGH_OTHER;
	if (arp->arp_hlen != RTE_ETHER_ADDR_LEN || arp->arp_plen != sizeof(rte_be32_t))
		return NEIGH_UNREADABLE;
	*msg = (struct neigh_msg){.family = TUPLE_IPV4, .mac = arp->arp_data.arp_sha};
	msg->sender.w[0] = arp->arp_data.arp_sip;
	msg->target.w[0] = arp->arp_data.arp_tip;
	msg->probe = msg->sender.w[0] == 0;
	msg->bad = !station(&msg->mac) || !host4(msg->sender.w[0]) || !host4(msg->target.w[0]);
	if (arp->arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST))
		return NEIGH_REQUEST;
	if (arp->arp_opcode != RTE_BE16(RTE_ARP_OP_REPLY))
		return NEIGH_OTHER;
	msg->bad |= msg->probe;
	return NEIGH_REPLY;
}

static void
arp_data(struct rte_arp_ipv4 *data, const struct rte_ether_addr *from, rte_be32_t sender,
	const struct rte_ether_addr *to, rte_be32_t target)
{
	*data = (struct rte_arp_ipv4){
		.arp_sha = *from, .arp_sip = sender, .arp_tha = *to, .arp_tip = target};
}

static bool
answer_arp(struct pkt *p, const struct neigh_msg *msg, const struct rte_ether_addr *mac)
{
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(p->mbuf, struct rte_ether_hdr *);
	struct rte_arp_hdr *arp =
		rte_pktmbuf_mtod_offset(p->mbuf, struct rte_arp_hdr *, p->l3_off);

	eth->dst_addr = msg->mac;
	eth->src_addr = *mac;
	arp->arp_opcode = RTE_BE16(RTE_ARP_OP_REPLY);
	arp_data(&arp->arp_data, mac, msg->target.w[0], &msg->mac, msg->sender.w[0]);
	return true;
}

static bool
ask_arp(struct rte_mbuf *m, const struct tuple_addr *target, const struct tuple_addr *sender,
	const struct rte_ether_addr *mac)
{
	static const struct rte_ether_addr nobody;
	struct rte_ether_hdr *eth;
	struct rte_arp_hdr *arp;

	eth = (void *)rte_pktmbuf_append(m, sizeof(*eth) + sizeof(*arp));
	if (eth == NULL)
		return false;
	memset(&eth->dst_addr, 0xff, sizeof(eth->dst_addr));
	eth->src_addr = *mac;
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP);
	arp = (void *)(eth + 1);
	*arp = (struct rte_arp_hdr){
		.arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER),
		.arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
		.arp_hlen = RTE_ETHER_ADDR_LEN,
		.arp_plen = sizeof(rte_be32_t),
		.arp_opcode = RTE_BE16(RTE_ARP_OP_REQUEST),
	};
	arp_data(&arp->arp_data, mac, sender->w[0], &nobody, target->w[0]);
	return true;
}

/* ---- Neighbour Discovery ---- */

/* The option that says a MAC address, and whether all options have a length. */
static bool
find_mac(const struct pkt *p, uint8_t type, struct rte_ether_addr *mac, bool *found)
{
	uint32_t off = sizeof(struct nd_header);

	*found = false;
	while (off + OPT_UNIT <= p->l4_len) {
		const struct nd_mac_option *o = (const void *)(p->l4 + off);

		if (o->len == 0)
			return false;
		if (o->type == type && !*found) {
			*mac = o->mac;
			*found = true;
		}
		off += o->len * (uint32_t)OPT_UNIT;
	}
	return off == p->l4_len;
}

/* RFC 4861 7.1: hop limit, code, sum; and RFC 6980: no fragments. */
static bool
nd_sound(const struct pkt *p)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)p->l3;
	const struct nd_header *nd = (const struct nd_header *)p->l4;

	return ip->hop_limits == ND_HOP_LIMIT && nd->code == 0 && nd->target[0] != 0xff &&
	       p->l3_len == sizeof(*ip) && p->train == NULL && !(p->flags & PKT_CSUM_BAD) &&
	       ((p->flags & PKT_CSUM_GOOD) || csum_l4_good(p));
}

/* A probe (RFC 4862) is sent to the group of its target, and tells no MAC address. */
static bool
probe_sound(const struct rte_ipv6_hdr *ip, bool told)
{
	return !told && memcmp(ip->dst_addr, solicited_prefix, sizeof(solicited_prefix)) == 0;
}

static enum neigh_kind
parse_nd(const struct pkt *p, struct neigh_msg *msg)
{
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)p->l3;
	const struct nd_header *nd = (const struct nd_header *)p->l4;
	bool request = p->icmp_type == ND_SOLICIT, told;

	if (!request && p->icmp_type != ND_ADVERTISE)
		return NEIGH_OTHER;
	if (p->l4_len < sizeof(*nd) || rte_pktmbuf_data_len(p->mbuf) <
					       (uint32_t)p->l3_off + p->l3_len + p->l4_len)
		return NEIGH_UNREADABLE;
	*msg = (struct neigh_msg){.family = TUPLE_IPV6};
	msg->mac = rte_pktmbuf_mtod(p->mbuf, const struct rte_ether_hdr *)->src_addr;
	msg->bad = !find_mac(p, request ? OPT_SOURCE_MAC : OPT_TARGET_MAC, &msg->mac, &told);
	msg->bad |= !nd_sound(p) || !station(&msg->mac);
	if (!request) {
		memcpy(&msg->sender, nd->target, sizeof(msg->sender));
		memcpy(&msg->target, ip->dst_addr, sizeof(msg->target));
		return NEIGH_REPLY;
	}
	memcpy(&msg->sender, ip->src_addr, sizeof(msg->sender));
	memcpy(&msg->target, nd->target, sizeof(msg->target));
	msg->probe = IN6_IS_ADDR_UNSPECIFIED((const struct in6_addr *)&msg->sender);
	msg->bad |= (msg->probe && !probe_sound(ip, told)) || ip->src_addr[0] == 0xff;
	return NEIGH_REQUEST;
}

/* The Ethernet header is there already. */
static void
write_nd(struct nd_message *m, const struct tuple_addr *src, const uint8_t dst[16],
	const struct nd_header *nd, const struct nd_mac_option *option)
{
	m->ip = (struct rte_ipv6_hdr){
		.vtc_flow = RTE_BE32(6u << 28),
		.payload_len = RTE_BE16(sizeof(m->nd) + sizeof(m->option)),
		.proto = IPPROTO_ICMPV6,
		.hop_limits = ND_HOP_LIMIT,
	};
	memcpy(m->ip.src_addr, src, sizeof(m->ip.src_addr));
	memcpy(m->ip.dst_addr, dst, sizeof(m->ip.dst_addr));
	m->nd = *nd;
	m->option = *option;
	m->nd.sum = rte_ipv6_udptcp_cksum(&m->ip, &m->nd);
}

/* Makes the only segment of the frame so long that a message fits behind its tags. */
static bool
fit_message(struct rte_mbuf *m, uint32_t len)
{
	if (m->nb_segs != 1)
		return false;
	if (m->data_len > len)
		return rte_pktmbuf_trim(m, (uint16_t)(m->data_len - len)) == 0;
	return rte_pktmbuf_append(m, (uint16_t)(len - m->data_len)) != NULL;
}

static bool
answer_nd(struct pkt *p, const struct neigh_msg *msg, const struct rte_ether_addr *mac)
{
	static const struct rte_ether_addr all_nodes_mac = {{0x33, 0x33, 0, 0, 0, 1}};
	struct rte_ether_hdr *eth = rte_pktmbuf_mtod(p->mbuf, struct rte_ether_hdr *);
	struct nd_header nd = {.type = ND_ADVERTISE, .flags = ND_ROUTER | ND_OVERRIDE};
	const struct nd_mac_option option = {.type = OPT_TARGET_MAC, .len = 1, .mac = *mac};

	if (!fit_message(p->mbuf, p->l3_off + (uint32_t)sizeof(struct nd_message)))
		return false;
	eth->dst_addr = msg->probe ? all_nodes_mac : msg->mac;
	eth->src_addr = *mac;
	if (!msg->probe)
		nd.flags |= ND_SOLICITED;
	memcpy(nd.target, &msg->target, sizeof(nd.target));
	write_nd((struct nd_message *)p->l3, &msg->target, msg->probe ? all_nodes : msg->sender.b,
		&nd, &option);
	return true;
}

static bool
ask_nd(struct rte_mbuf *m, const struct tuple_addr *target, const struct tuple_addr *sender,
	const struct rte_ether_addr *mac)
{
	const struct nd_mac_option option = {.type = OPT_SOURCE_MAC, .len = 1, .mac = *mac};
	struct nd_header nd = {.type = ND_SOLICIT};
	struct rte_ether_hdr *eth;
	uint8_t group[16];

	eth = (void *)rte_pktmbuf_append(m, sizeof(*eth) + sizeof(struct nd_message));
	if (eth == NULL)
		return false;
	memcpy(group, target, sizeof(group));
	memcpy(group, solicited_prefix, sizeof(solicited_prefix));
	memset(&eth->dst_addr, 0x33, 2);
	memcpy(eth->dst_addr.addr_bytes + 2, group + 12, 4);
	eth->src_addr = *mac;
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV6);
	memcpy(nd.target, target, sizeof(nd.target));
	write_nd((void *)(eth + 1), sender, group, &nd, &option);
	return true;
}

/* ---- both ---- */

enum neigh_kind
neigh_parse(const struct pkt *p, struct neigh_msg *msg)
{
	return p->flags & PKT_ARP ? parse_arp(p, msg) : parse_nd(p, msg);
}

bool
neigh_answer(struct pkt *p, const struct neigh_msg *msg, const struct rte_ether_addr *mac)
{
	return msg->family == TUPLE_IPV4 ? answer_arp(p, msg, mac) : answer_nd(p, msg, mac);
}

bool
neigh_ask(struct rte_mbuf *m, uint8_t family, const struct tuple_addr *target,
	const struct tuple_addr *sender, const struct rte_ether_addr *mac)
{
	return family == TUPLE_IPV4 ? ask_arp(m, target, sender, mac)
				    : ask_nd(m, target, sender, mac);
}
