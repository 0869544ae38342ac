/* SPDX-License-Identifier: BSD-3-Clause */
#include "answer.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "csum.h"

#define CLASS_E    0xf0u /* 240.0.0.0/4, with the broadcast address */
#define MULTICAST4 0xe0u
#define LOOPBACK4  127u

/* IPv4 addresses of one host: no network zero, loopback, multicast or reserved one. */
static bool
is_host4(const uint8_t *a)
{
	return a[0] != 0 && a[0] != LOOPBACK4 && a[0] < MULTICAST4;
}

static bool
is_zero6(const uint8_t *a)
{
	static const uint8_t zero[16];

	return memcmp(a, zero, sizeof(zero)) == 0;
}

static bool
allowed4(const struct pkt *p)
{
	const struct rte_ipv4_hdr *ih = (const struct rte_ipv4_hdr *)p->l3;

	if (ih->fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK))
		return false;
	return is_host4((const uint8_t *)&ih->src_addr) &&
	       ((const uint8_t *)&ih->dst_addr)[0] < MULTICAST4;
}

static bool
allowed6(const struct pkt *p)
{
	const struct rte_ipv6_hdr *ih = (const struct rte_ipv6_hdr *)p->l3;

	return ih->src_addr[0] != 0xff && !is_zero6(ih->src_addr) && ih->dst_addr[0] != 0xff;
}

bool
answer_allowed(const struct pkt *p)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(p->mbuf, const struct rte_ether_hdr *);

	if (rte_is_multicast_ether_addr(&eth->dst_addr) || (p->flags & PKT_FRAGMENT))
		return false;
	return p->tuple.family == TUPLE_IPV4 ? allowed4(p) : allowed6(p);
}

bool
answer_intact(const struct pkt *p)
{
	if ((p->flags & PKT_CSUM_BAD) ||
		((p->flags & PKT_L4_BAD) && p->reason != SL_DROP_INV_TCP_FLAGS))
		return false;
	return (p->flags & PKT_CSUM_GOOD) || csum_l4_good(p);
}

uint8_t *
answer_begin(struct rte_mbuf *m, const struct pkt *p, uint16_t len)
{
	const struct rte_ether_hdr *from = rte_pktmbuf_mtod(p->mbuf, const struct rte_ether_hdr *);
	struct rte_ether_hdr *eth;

	eth = (void *)rte_pktmbuf_append(m, (uint16_t)(p->l3_off + len));
	if (eth == NULL)
		return NULL;
	memcpy(eth, from, p->l3_off);
	eth->dst_addr = from->src_addr;
	eth->src_addr = from->dst_addr;
	return (uint8_t *)eth + p->l3_off;
}

uint16_t
answer_ip_len(const struct pkt *p)
{
	return p->tuple.family == TUPLE_IPV4 ? sizeof(struct rte_ipv4_hdr)
					     : sizeof(struct rte_ipv6_hdr);
}

struct tuple_addr
answer_src(const struct pkt *p)
{
	struct tuple_addr a = {0};

	if (p->tuple.family == TUPLE_IPV4)
		memcpy(a.b, p->l3 + offsetof(struct rte_ipv4_hdr, src_addr), sizeof(rte_be32_t));
	else
		memcpy(a.b, p->l3 + offsetof(struct rte_ipv6_hdr, src_addr), sizeof(a.b));
	return a;
}

struct tuple_addr
answer_dst(const struct pkt *p)
{
	struct tuple_addr a = {0};

	if (p->tuple.family == TUPLE_IPV4)
		memcpy(a.b, p->l3 + offsetof(struct rte_ipv4_hdr, dst_addr), sizeof(rte_be32_t));
	else
		memcpy(a.b, p->l3 + offsetof(struct rte_ipv6_hdr, dst_addr), sizeof(a.b));
	return a;
}

/* An error has precedence 6, and else the type of service of what it is about (RFC 1812, 4.3.2.5).
 */
#define ERROR_TOS(tos) ((uint8_t)(6u << 5 | ((tos) & 0x1e)))

/* Never fragmented, so that it needs no identification (RFC 6864). */
static void
header4(uint8_t *ip, const struct pkt *p, const struct tuple_addr *src, uint8_t proto,
	uint16_t payload_len)
{
	const struct rte_ipv4_hdr *of = (const struct rte_ipv4_hdr *)p->l3;
	struct rte_ipv4_hdr *ih = (struct rte_ipv4_hdr *)ip;

	*ih = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.type_of_service = proto == IPPROTO_ICMP ? ERROR_TOS(of->type_of_service) : 0,
		.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(*ih) + payload_len)),
		.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = ANSWER_TTL,
		.next_proto_id = proto,
		.src_addr = src->w[0],
		.dst_addr = of->src_addr,
	};
	ih->hdr_checksum = rte_ipv4_cksum(ih);
}

static void
header6(uint8_t *ip, const struct pkt *p, const struct tuple_addr *src, uint8_t proto,
	uint16_t payload_len)
{
	struct rte_ipv6_hdr *ih = (struct rte_ipv6_hdr *)ip;

	*ih = (struct rte_ipv6_hdr){
		.vtc_flow = RTE_BE32(6u << 28),
		.payload_len = rte_cpu_to_be_16(payload_len),
		.proto = proto,
		.hop_limits = ANSWER_TTL,
	};
	memcpy(ih->src_addr, src->b, sizeof(ih->src_addr));
	memcpy(ih->dst_addr, ((const struct rte_ipv6_hdr *)p->l3)->src_addr,
		sizeof(ih->dst_addr));
}

uint16_t
answer_ip_header(uint8_t *ip, const struct pkt *p, const struct tuple_addr *src, uint8_t proto,
	uint16_t payload_len)
{
	if (p->tuple.family == TUPLE_IPV4)
		header4(ip, p, src, proto, payload_len);
	else
		header6(ip, p, src, proto, payload_len);
	return answer_ip_len(p);
}
