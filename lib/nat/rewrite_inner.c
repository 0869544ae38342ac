/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet inside an ICMP error, as far as it is there: it becomes what its sender had sent, its
 * own checksums with it, so that the sender knows it for its own. What changed in it goes into the
 * checksum of the error.
 */
#include "nat_private.h"

#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_sctp.h>

#include "csum.h"

#define TCP_SUM_AT  16u
#define UDP_SUM_AT  6u
#define ICMP_SUM_AT 2u
#define SCTP_SUM_AT 8u
#define ICMP_ID_AT  4u
#define LENGTH4_AT  5u /* RFC 4884: octets of the packet inside, in units of 4 or 8 */
#define LENGTH6_AT  4u

/* Writes 16 bits; returns what changed. */
static uint64_t
put16(uint8_t *at, uint16_t new)
{
	uint16_t old;

	memcpy(&old, at, sizeof(old));
	memcpy(at, &new, sizeof(new));
	return csum_diff16(old, new);
}

static uint64_t
put32(uint8_t *at, uint32_t new)
{
	uint32_t old;

	memcpy(&old, at, sizeof(old));
	memcpy(at, &new, sizeof(new));
	return csum_diff32(old, new);
}

static uint16_t
get16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static uint64_t
put_addresses4(uint8_t *ip, const struct tuple *sent)
{
	uint8_t *sum = ip + offsetof(struct rte_ipv4_hdr, hdr_checksum);
	uint64_t diff = put32(ip + offsetof(struct rte_ipv4_hdr, src_addr), sent->src.w[0]) +
			put32(ip + offsetof(struct rte_ipv4_hdr, dst_addr), sent->dst.w[0]);

	put16(sum, csum_adjust(get16(sum), diff));
	return diff;
}

static uint64_t
put_addresses6(uint8_t *ip, const struct tuple *sent)
{
	uint64_t diff = 0;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		diff += put32(ip + offsetof(struct rte_ipv6_hdr, src_addr) + i * 4,
			sent->src.w[i]);
		diff += put32(ip + offsetof(struct rte_ipv6_hdr, dst_addr) + i * 4,
			sent->dst.w[i]);
	}
	return diff;
}

/*
 * How many bytes from the inner transport header on are that packet's and can be written here: not
 * beyond its own length, the error's, an extension's begin (RFC 4884) or the first segment.
 */
static unsigned int
inner_len(const struct pkt *p, unsigned int inner_total)
{
	unsigned int l4 = (unsigned int)(p->l4 - rte_pktmbuf_mtod(p->mbuf, const uint8_t *));
	unsigned int end = RTE_MIN((unsigned int)p->l4_len, p->mbuf->data_len - l4);
	unsigned int quoted = p->tuple.family == TUPLE_IPV4 ? p->l4[LENGTH4_AT] * 4u
							    : p->l4[LENGTH6_AT] * 8u;

	/* A router that knows nothing of extensions has zero there; of a packet too big
	 * (RFC 4443) it is a part of the MTU. */
	if (p->tuple.family == TUPLE_IPV6 && p->icmp_type == 2)
		quoted = 0;
	if (quoted != 0)
		end = RTE_MIN(end, p->inner_off + quoted);
	end = RTE_MIN(end, p->inner_off + inner_total);
	return end > p->inner_l4_off ? end - p->inner_l4_off : 0;
}

/* Ports or id, and the checksum over them and the addresses (`diff` is of these) if it is there.
 * Returns what changed. */
static uint64_t
put_transport(uint8_t *l4, unsigned int len, const struct tuple *sent, uint64_t diff)
{
	uint64_t changed = 0;

	switch (sent->proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
		changed = put16(l4, sent->sport) + put16(l4 + 2, sent->dport);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if ((sent->proto == IPPROTO_ICMP) != (sent->family == TUPLE_IPV4))
			return 0;
		changed = put16(l4 + ICMP_ID_AT, sent->sport);
		break;
	default:
		return 0;
	}
	if (sent->proto == IPPROTO_TCP && len >= TCP_SUM_AT + 2)
		changed += put16(l4 + TCP_SUM_AT,
			csum_adjust(get16(l4 + TCP_SUM_AT), diff + changed));
	else if (sent->proto == IPPROTO_UDP || sent->proto == IPPROTO_UDPLITE)
		changed += put16(l4 + UDP_SUM_AT,
			csum_adjust_udp(get16(l4 + UDP_SUM_AT), diff + changed));
	else if (sent->proto == IPPROTO_ICMP)
		changed += put16(l4 + ICMP_SUM_AT, csum_adjust(get16(l4 + ICMP_SUM_AT), changed));
	else if (sent->proto == IPPROTO_ICMPV6)
		changed += put16(l4 + ICMP_SUM_AT,
			csum_adjust(get16(l4 + ICMP_SUM_AT), diff + changed));
	return changed;
}

/* The CRC of SCTP is over the whole packet: of one that is cut it cannot be made right. */
static uint64_t
put_crc(uint8_t *l4, unsigned int len, unsigned int whole)
{
	uint16_t crc[2];
	uint32_t sum;

	if (len != whole || len < sizeof(struct rte_sctp_hdr))
		return 0;
	sum = csum_sctp_inner(l4, len);
	memcpy(crc, &sum, sizeof(crc));
	return put16(l4 + SCTP_SUM_AT, crc[0]) + put16(l4 + SCTP_SUM_AT + 2, crc[1]);
}

void
nat_rewrite_inner(struct pkt *p, const struct tuple *sent, uint64_t outer_diff)
{
	uint8_t *ip = p->l4 + p->inner_off, *sum = p->l4 + ICMP_SUM_AT;
	unsigned int total, head = p->inner_l4_off - p->inner_off, len;
	uint64_t addresses, changed;

	if (sent->family == TUPLE_IPV4) {
		total = rte_be_to_cpu_16(((struct rte_ipv4_hdr *)(void *)ip)->total_length);
		addresses = put_addresses4(ip, sent);
		/* The header's sum takes up what changed in its addresses. */
		changed = 0;
	} else {
		total = sizeof(struct rte_ipv6_hdr) +
			rte_be_to_cpu_16(((struct rte_ipv6_hdr *)(void *)ip)->payload_len);
		addresses = put_addresses6(ip, sent);
		changed = addresses;
	}
	len = inner_len(p, total);
	changed += put_transport(p->l4 + p->inner_l4_off, len, sent, addresses);
	if (sent->proto == IPPROTO_SCTP)
		changed += put_crc(p->l4 + p->inner_l4_off, len, total - head);
	put16(sum, csum_adjust(get16(sum), changed + outer_diff));
}
