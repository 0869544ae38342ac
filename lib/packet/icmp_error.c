/* SPDX-License-Identifier: BSD-3-Clause */
#include "icmp_error.h"

#include <netinet/in.h>

#include <rte_ip.h>
#include <rte_mbuf.h>

#include "answer.h"

#define ICMP6_REDIRECT 137
#define ICMP6_QUERIES  128 /* types below are errors */
#define LENGTH4_AT     5u  /* RFC 4884: octets of the packet inside, in units of 4 or 8 */
#define LENGTH6_AT     4u

struct icmp_header {
	uint8_t type, code;
	uint16_t sum;
	rte_be32_t word;
} __rte_packed; /* it lies where the frame has it */

/* RFC 1122 3.2.2.1: of ICMP only queries and their answers; any type that is not known may be an
 * error. */
static bool
is_query4(uint8_t type)
{
	switch (type) {
	case 0:
	case 8:
	case 9:
	case 10:
	case 13:
	case 14:
	case 15:
	case 16:
	case 17:
	case 18:
		return true;
	default:
		return false;
	}
}

/* What cannot be told from an ICMP error counts as one: there, errors could go back and forth. */
static bool
may_be_error(const struct pkt *p)
{
	uint8_t type;

	if (p->proto != IPPROTO_ICMP && p->proto != IPPROTO_ICMPV6)
		return false;
	if ((p->flags & PKT_ICMP_ERROR) || p->l4 == NULL || p->l4_len == 0)
		return true;
	if (p->l4_hdr_len == 0)
		return true;
	type = p->icmp_type;
	if (p->proto == IPPROTO_ICMP)
		return !is_query4(type);
	return type < ICMP6_QUERIES || type == ICMP6_REDIRECT;
}

static bool
to_multicast6(const struct pkt *p)
{
	return p->tuple.family == TUPLE_IPV6 &&
	       p->l3[offsetof(struct rte_ipv6_hdr, dst_addr)] == 0xff;
}

bool
icmp_error_allowed(const struct pkt *p, const struct icmp_error *e)
{
	if (p->l3 == NULL || may_be_error(p) || !answer_intact(p))
		return false;
	if (to_multicast6(p) && e->type == ICMP6_PACKET_TOO_BIG)
		return !(p->flags & PKT_FRAGMENT);
	return answer_allowed(p);
}

/* Copies the first len bytes of the packet, from its IP header on. */
static void
quote(uint8_t *to, const struct pkt *p, uint16_t len)
{
	const void *from = rte_pktmbuf_read(p->mbuf, p->l3_off, len, to);

	if (from != to)
		memcpy(to, from, len);
}

/* The whole packet as its IP header tells it, without what pads the frame. */
static uint32_t
packet_len(const struct pkt *p)
{
	uint32_t there = p->mbuf->pkt_len - p->l3_off;

	return RTE_MIN((uint32_t)p->l3_len + p->l4_len, there);
}

bool
icmp_error_write(struct rte_mbuf *m, const struct pkt *p, const struct icmp_error *e)
{
	bool ip4 = p->tuple.family == TUPLE_IPV4;
	uint32_t room = (ip4 ? ICMP_ERROR_MAX : ICMP6_ERROR_MAX) - answer_ip_len(p) -
			(uint32_t)sizeof(struct icmp_header);
	uint16_t quoted = (uint16_t)RTE_MIN(packet_len(p), room);
	uint16_t len = (uint16_t)(sizeof(struct icmp_header) + quoted);
	uint8_t *ip = answer_begin(m, p, (uint16_t)(answer_ip_len(p) + len));
	struct icmp_header *icmp;

	if (ip == NULL)
		return false;
	icmp = (void *)(ip + answer_ip_header(ip, p, &e->src,
				     ip4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, len));
	*icmp = (struct icmp_header){
		.type = e->type, .code = e->code, .word = rte_cpu_to_be_32(e->word)};
	quote((uint8_t *)(icmp + 1), p, quoted);
	icmp->sum = ip4 ? (uint16_t)~rte_raw_cksum(icmp, len)
			: rte_ipv6_udptcp_cksum((const void *)ip, icmp);
	return true;
}

unsigned int
icmp_error_inner(const struct pkt *p, unsigned int *whole)
{
	const uint8_t *ip = p->l4 + p->inner_off;
	bool ip4 = p->tuple.family == TUPLE_IPV4;
	unsigned int l4 = (unsigned int)(p->l4 - rte_pktmbuf_mtod(p->mbuf, const uint8_t *));
	unsigned int end = RTE_MIN((unsigned int)p->l4_len, p->mbuf->data_len - l4);
	unsigned int quoted = ip4 ? p->l4[LENGTH4_AT] * 4u : p->l4[LENGTH6_AT] * 8u;
	unsigned int total, head = p->inner_l4_off - p->inner_off;

	total = ip4 ? rte_be_to_cpu_16(((const struct rte_ipv4_hdr *)ip)->total_length)
		    : sizeof(struct rte_ipv6_hdr) +
			      rte_be_to_cpu_16(((const struct rte_ipv6_hdr *)ip)->payload_len);
	/* A router that knows nothing of extensions has zero there; of a packet too big
	 * (RFC 4443) it is a part of the MTU. */
	if (!ip4 && p->icmp_type == ICMP6_PACKET_TOO_BIG)
		quoted = 0;
	if (quoted != 0)
		end = RTE_MIN(end, p->inner_off + quoted);
	end = RTE_MIN(end, p->inner_off + total);
	*whole = total - head;
	return end > p->inner_l4_off ? end - p->inner_l4_off : 0;
}
