/* SPDX-License-Identifier: BSD-3-Clause */
#include "csum.h"

#include <netinet/in.h>

#include <rte_branch_prediction.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_sctp.h>
#include <rte_udp.h>

static inline uint32_t
l4_off(const struct pkt *p)
{
	return (uint32_t)(p->l4 - rte_pktmbuf_mtod(p->mbuf, const uint8_t *));
}

static inline uint64_t
sum_short(const uint8_t *d, uint32_t n)
{
	uint64_t word = 0;

	if (likely(n >= sizeof(word)))
		return csum_words(d, n);
	memcpy(&word, d, n);
	return word;
}

static inline uint64_t
sum_bytes(const uint8_t *d, uint32_t n)
{
	return likely(n < CSUM_SHORT) ? sum_short(d, n) : rte_raw_cksum(d, n);
}

/*
 * sum_l4() through the segments. Not rte_raw_cksum_mbuf(): up to DPDK 22.11 it cuts the sum of a
 * segment that begins behind an odd number of bytes to 16 bits before its carries are in.
 */
static uint64_t
sum_segments(const struct pkt *p, uint32_t n)
{
	const struct rte_mbuf *m;
	uint32_t skip = l4_off(p), done = 0, len;
	uint64_t sum = 0;

	for (m = p->mbuf; done < n; m = m->next, skip = 0) {
		uint16_t part;

		len = RTE_MIN(n - done, m->data_len - skip);
		part = rte_raw_cksum(rte_pktmbuf_mtod_offset(m, const uint8_t *, skip), len);
		sum += done % 2 == 0 ? part : rte_bswap16(part);
		done += len;
	}
	return sum;
}

/* Sums the first n bytes from the transport header on, which the parser found to be there. */
static inline uint64_t
sum_l4(const struct pkt *p, uint32_t n)
{
	if (likely(p->mbuf->nb_segs == 1))
		return sum_bytes(p->l4, n);
	return sum_segments(p, n);
}

static inline uint64_t
sum_pseudo(const struct pkt *p, uint32_t len)
{
	uint64_t sum = csum_pseudo(len, p->proto);

	if (likely(p->tuple.family == TUPLE_IPV4)) {
		/* Source and destination. */
		return csum_add(sum,
			csum_load64(p->l3 + offsetof(struct rte_ipv4_hdr, src_addr)));
	}
	return csum_add(sum, csum_words(p->l3 + offsetof(struct rte_ipv6_hdr, src_addr),
				     2 * sizeof(struct tuple_addr)));
}

static __rte_noinline bool
sum_good(const struct pkt *p, uint32_t len, uint32_t covered)
{
	return csum_all_ones(csum_add(sum_pseudo(p, len), sum_l4(p, covered)));
}

uint16_t
csum_udp(const struct pkt *p)
{
	uint32_t len = rte_be_to_cpu_16(((const struct rte_udp_hdr *)p->l4)->dgram_len);
	uint64_t sum = csum_add(sum_pseudo(p, len), sum_l4(p, len));

	/* Zero is no sum of anything but zeros, so a remainder of zero is all ones. */
	return sum % UINT16_MAX == 0 ? UINT16_MAX : (uint16_t)~(sum % UINT16_MAX);
}

static bool
udplite_good(const struct pkt *p)
{
	const struct rte_udp_hdr *uh = (const struct rte_udp_hdr *)p->l4;
	uint32_t coverage = rte_be_to_cpu_16(uh->dgram_len);

	return uh->dgram_cksum != 0 && sum_good(p, p->l4_len, coverage ? coverage : p->l4_len);
}

/* rte_hash_crc() would do it, but loads words from where they are not aligned. */
static uint32_t
crc_bytes(uint32_t crc, const uint8_t *d, uint32_t n)
{
	uint64_t word;

	for (; n >= sizeof(word); n -= (uint32_t)sizeof(word), d += sizeof(word)) {
		memcpy(&word, d, sizeof(word));
		crc = rte_hash_crc_8byte(word, crc);
	}
	for (; n > 0; n--, d++)
		crc = rte_hash_crc_1byte(*d, crc);
	return crc;
}

/* The CRC is taken with its own field as zero, and sent least significant byte first. */
uint32_t
csum_sctp(const struct pkt *p)
{
	const struct rte_sctp_hdr *sh = (const struct rte_sctp_hdr *)p->l4;
	uint32_t left = p->l4_len - (uint32_t)sizeof(*sh), skip = l4_off(p) + (uint32_t)sizeof(*sh);
	const struct rte_mbuf *m;
	uint32_t crc, n;

	crc = crc_bytes(UINT32_MAX, p->l4, offsetof(struct rte_sctp_hdr, cksum));
	crc = rte_hash_crc_4byte(0, crc);
	for (m = p->mbuf; left > 0; m = m->next, skip = 0) {
		n = RTE_MIN(left, m->data_len - skip);
		crc = crc_bytes(crc, rte_pktmbuf_mtod_offset(m, const uint8_t *, skip), n);
		left -= n;
	}
	return rte_cpu_to_le_32(~crc);
}

uint32_t
csum_sctp_inner(const uint8_t *l4, uint32_t len)
{
	uint32_t crc = crc_bytes(UINT32_MAX, l4, offsetof(struct rte_sctp_hdr, cksum));

	crc = rte_hash_crc_4byte(0, crc);
	crc = crc_bytes(crc, l4 + sizeof(struct rte_sctp_hdr), len - sizeof(struct rte_sctp_hdr));
	return rte_cpu_to_le_32(~crc);
}

static bool
sctp_good(const struct pkt *p)
{
	return csum_sctp(p) == ((const struct rte_sctp_hdr *)p->l4)->cksum;
}

static __rte_noinline bool
other_good(const struct pkt *p)
{
	bool ip4 = p->tuple.family == TUPLE_IPV4;

	switch (p->proto) {
	case IPPROTO_UDPLITE:
		return udplite_good(p);
	case IPPROTO_SCTP:
		return sctp_good(p);
	case IPPROTO_ICMP:
		return !ip4 || csum_all_ones(sum_l4(p, p->l4_len));
	case IPPROTO_ICMPV6:
		return ip4 || sum_good(p, p->l4_len, p->l4_len);
	default:
		return true;
	}
}

bool
csum_l4_good(const struct pkt *p)
{
	const struct rte_udp_hdr *uh = (const struct rte_udp_hdr *)p->l4;
	uint32_t len = p->l4_len;

	if (unlikely(p->proto != IPPROTO_TCP)) {
		if (p->proto != IPPROTO_UDP)
			return other_good(p);
		/* None, which IPv6 allows to tunnels (RFC 6935). */
		if (uh->dgram_cksum == 0)
			return true;
		len = rte_be_to_cpu_16(uh->dgram_len);
	}
	if (unlikely(p->mbuf->nb_segs != 1 || len >= CSUM_SHORT))
		return sum_good(p, len, len);
	return csum_all_ones(csum_add(sum_pseudo(p, len), csum_words(p->l4, len)));
}

bool
csum_icmp_inner_good(const struct pkt *p)
{
	const uint8_t *inner = p->l4 + p->inner_off;

	if (inner[0] >> 4 != 4)
		return true;
	return csum_ip4_good(inner, (inner[0] & RTE_IPV4_HDR_IHL_MASK) * 4u);
}
