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
#include "icmp_error.h"

#define TCP_SUM_AT  16u
#define UDP_SUM_AT  6u
#define ICMP_SUM_AT 2u
#define SCTP_SUM_AT 8u
#define ICMP_ID_AT  4u

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
	unsigned int len, whole;
	uint64_t addresses, changed;

	if (sent->family == TUPLE_IPV4) {
		addresses = put_addresses4(ip, sent);
		/* The header's sum takes up what changed in its addresses. */
		changed = 0;
	} else {
		addresses = put_addresses6(ip, sent);
		changed = addresses;
	}
	len = icmp_error_inner(p, &whole);
	changed += put_transport(p->l4 + p->inner_l4_off, len, sent, addresses);
	if (sent->proto == IPPROTO_SCTP)
		changed += put_crc(p->l4 + p->inner_l4_off, len, whole);
	put16(sum, csum_adjust(get16(sum), changed + outer_diff));
}
