/* SPDX-License-Identifier: BSD-3-Clause */
#include "csum.h"

#include <netinet/in.h>

#include <rte_branch_prediction.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_sctp.h>
#include <rte_udp.h>

/*
 * The Internet checksum (RFC 1071) is summed in the machine's byte order and in words of 64 bits,
 * with the carry put back; folding gives the same 16 bits. A right sum folds to all ones.
 */
static inline uint64_t
add_carry(uint64_t sum, uint64_t word)
{
	sum += word;
	return sum + (sum < word);
}

static inline uint64_t
load64(const uint8_t *d)
{
	uint64_t v;

	memcpy(&v, d, sizeof(v));
	return v;
}

/* The last n < 8 bytes as one word, zero behind them; memory order is kept. */
static inline uint64_t
load_tail(const uint8_t *d, uint32_t n)
{
	uint8_t word[8] = {0};

	if (n & 4)
		memcpy(word, d, 4);
	if (n & 2)
		memcpy(word + (n & 4), d + (n & 4), 2);
	if (n & 1)
		word[n & 6] = d[n & 6];
	return load64(word);
}

static uint64_t
sum_bytes(const uint8_t *d, uint32_t n)
{
	uint64_t a = 0, b = 0;

	for (; n >= 32; n -= 32, d += 32) { /* two chains of carries side by side */
		a = add_carry(a, load64(d));
		b = add_carry(b, load64(d + 8));
		a = add_carry(a, load64(d + 16));
		b = add_carry(b, load64(d + 24));
	}
	for (; n >= 8; n -= 8, d += 8)
		a = add_carry(a, load64(d));
	if (n > 0)
		b = add_carry(b, load_tail(d, n));
	return add_carry(a, b);
}

static inline uint16_t
fold(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)sum;
}

/* n bytes of a packet, piece by piece through its segments. */
struct pieces {
	const struct rte_mbuf *m;
	const uint8_t *at;
	uint32_t left;
};

static struct pieces
pieces_from(const struct pkt *p, const uint8_t *at, uint32_t n)
{
	return (struct pieces){.m = p->mbuf, .at = at, .left = n};
}

/* The next piece's length, *d where it is; 0 at the end. */
static uint32_t
next_piece(struct pieces *s, const uint8_t **d)
{
	uint32_t n;

	while (s->left > 0 && s->m != NULL) {
		const uint8_t *start = rte_pktmbuf_mtod(s->m, const uint8_t *);

		*d = s->at != NULL ? s->at : start;
		n = RTE_MIN(s->left, (uint32_t)(start + s->m->data_len - *d));
		s->at = NULL;
		s->m = s->m->next;
		s->left -= n;
		if (n > 0)
			return n;
	}
	return 0;
}

static uint64_t
sum_l4(const struct pkt *p, uint32_t n)
{
	struct pieces s = pieces_from(p, p->l4, n);
	const uint8_t *d;
	uint64_t sum = 0;
	uint32_t len;
	bool odd = false;

	while ((len = next_piece(&s, &d)) > 0) {
		uint16_t part = fold(sum_bytes(d, len));

		/* Behind an odd number of bytes high and low bytes change places. */
		sum += odd ? rte_bswap16(part) : part;
		odd ^= len & 1;
	}
	return sum;
}

static uint64_t
sum_pseudo(const struct pkt *p, uint32_t len)
{
	uint64_t sum = (uint64_t)rte_cpu_to_be_32(len) + rte_cpu_to_be_32(p->proto);

	if (p->l3[0] >> 4 == 4) {
		const struct rte_ipv4_hdr *ih = (const struct rte_ipv4_hdr *)p->l3;

		return sum + ih->src_addr + ih->dst_addr;
	}
	return add_carry(sum, sum_bytes(p->l3 + offsetof(struct rte_ipv6_hdr, src_addr),
				      2 * sizeof(struct tuple_addr)));
}

static bool
sum_good(const struct pkt *p, uint32_t len, uint32_t covered)
{
	return fold(add_carry(sum_pseudo(p, len), sum_l4(p, covered))) == UINT16_MAX;
}

static bool
udp_good(const struct pkt *p)
{
	const struct rte_udp_hdr *uh = (const struct rte_udp_hdr *)p->l4;
	uint32_t len = rte_be_to_cpu_16(uh->dgram_len);

	if (uh->dgram_cksum == 0)
		return p->l3[0] >> 4 == 4;
	return sum_good(p, len, len);
}

static bool
udplite_good(const struct pkt *p)
{
	const struct rte_udp_hdr *uh = (const struct rte_udp_hdr *)p->l4;
	uint32_t coverage = rte_be_to_cpu_16(uh->dgram_len);

	return uh->dgram_cksum != 0 && sum_good(p, p->l4_len, coverage ? coverage : p->l4_len);
}

/* The CRC is taken with its own field as zero, and sent least significant byte first. */
static bool
sctp_good(const struct pkt *p)
{
	const struct rte_sctp_hdr *sh = (const struct rte_sctp_hdr *)p->l4;
	const uint32_t before = offsetof(struct rte_sctp_hdr, cksum), zero = 0;
	struct pieces s = pieces_from(p, p->l4 + sizeof(*sh), p->l4_len - (uint32_t)sizeof(*sh));
	const uint8_t *d;
	uint32_t crc, len;

	crc = rte_hash_crc(sh, before, UINT32_MAX);
	crc = rte_hash_crc(&zero, sizeof(zero), crc);
	while ((len = next_piece(&s, &d)) > 0)
		crc = rte_hash_crc(d, len, crc);
	return rte_cpu_to_le_32(~crc) == sh->cksum;
}

bool
csum_l4_good(const struct pkt *p)
{
	bool ip4 = p->l3[0] >> 4 == 4;

	switch (p->proto) {
	case IPPROTO_TCP:
		return sum_good(p, p->l4_len, p->l4_len);
	case IPPROTO_UDP:
		return udp_good(p);
	case IPPROTO_UDPLITE:
		return udplite_good(p);
	case IPPROTO_SCTP:
		return sctp_good(p);
	case IPPROTO_ICMP:
		return !ip4 || fold(sum_l4(p, p->l4_len)) == UINT16_MAX;
	case IPPROTO_ICMPV6:
		return ip4 || sum_good(p, p->l4_len, p->l4_len);
	default:
		return true;
	}
}

bool
csum_icmp_inner_good(const struct pkt *p)
{
	const uint8_t *inner = p->l4 + p->inner_off;

	if (inner[0] >> 4 != 4)
		return true;
	return csum_ip4_good(inner, (inner[0] & RTE_IPV4_HDR_IHL_MASK) * 4u);
}
