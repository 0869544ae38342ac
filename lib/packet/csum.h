/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums in software: verified, for ports that did not, and kept right when headers change. */
#ifndef CSUM_H
#define CSUM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "pkt.h"

/*
 * True when the transport checksum of a parsed packet is right, or there is none to verify: UDP
 * over IPv4 with a sum of zero (RFC 768), protocols without one. UDP's own length is what counts
 * (payload behind it is not summed; RFC 768), UDP-Lite goes by its coverage (RFC 3828), SCTP by
 * CRC32c (RFC 9260 appendix A). UDP over IPv6 with a sum of zero is wrong (RFC 8200), UDP-Lite with
 * one over both (RFC 3828). Reads the payload, through all segments (160 cycles at 1,500 bytes).
 *
 * `p` is a sound packet: PKT_IP without PKT_L4_BAD. With an IPv6 routing header the sum is taken
 * over the header's destination, as the kernel does it, whatever segments are left.
 */
bool csum_l4_good(const struct pkt *p);

/*
 * For a packet with PKT_ICMP_ERROR: true when the checksum of the IPv4 header inside is right, or
 * it is an IPv6 header. The parser does not look at it (knob sluice.icmp_inner_checksum).
 */
bool csum_icmp_inner_good(const struct pkt *p);

/* The CRC32c of a sound SCTP packet, its headers as they are now, in the form that the header has.
 * Reads the payload, through all segments. */
uint32_t csum_sctp(const struct pkt *p);

/* The same of a whole packet in one piece; len: at least the header's. */
uint32_t csum_sctp_inner(const uint8_t *l4, uint32_t len);

/* What a UDP datagram's sum should be whose field is zero, since its sender left it out. */
uint16_t csum_udp(const struct pkt *p);

/*
 * Changes to a checksum (RFC 1624, equation 3). What changed is summed up first, in words of the
 * packet's byte order, old ones inverted. The result is never 0xffff, as it never is when the whole
 * is summed.
 */
static inline uint64_t
csum_diff16(uint16_t old, uint16_t new)
{
	return (uint64_t)(uint16_t)~old + new;
}

static inline uint64_t
csum_diff32(uint32_t old, uint32_t new)
{
	return (uint64_t)(uint32_t)~old + new;
}

static inline uint16_t
csum_fold(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)sum;
}

static inline uint16_t
csum_adjust(uint16_t csum, uint64_t diff)
{
	return (uint16_t)~csum_fold(diff + (uint16_t)~csum);
}

/* The same with what changed folded before. */
static inline uint16_t
csum_adjust16(uint16_t csum, uint16_t diff)
{
	uint32_t sum = (uint32_t)diff + (uint16_t)~csum;

	return (uint16_t)~((sum & UINT16_MAX) + (sum >> 16));
}

/* The same for UDP, whose sum of zero means that there is none (RFC 768). */
static inline uint16_t
csum_adjust_udp(uint16_t csum, uint64_t diff)
{
	uint16_t new = csum_adjust(csum, diff);

	new = new == 0 ? UINT16_MAX : new;
	return csum == 0 ? 0 : new;
}

/*
 * Sums of 64-bit words with the carry brought round (RFC 1071, in the machine's byte order): modulo
 * 2^64 - 1, of which 65535 is a divisor. Zero only as the sum of nothing but zeros.
 */
static inline uint64_t
csum_add(uint64_t sum, uint64_t word)
{
#if defined(__x86_64__)
	/* What compilers make of the other form takes twice as long. */
	__asm__("addq %1, %0\n\tadcq $0, %0" : "+r"(sum) : "rm"(word) : "cc");
	return sum;
#else
	sum += word;
	return sum + (sum < word);
#endif
}

/* True when such a sum is right: it folds to all ones, that is, it is a multiple of 65535 and not
 * zero. */
static inline bool
csum_all_ones(uint64_t sum)
{
	return sum % UINT16_MAX == 0 && sum != 0;
}

static inline uint64_t
csum_load64(const void *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* From here on rte_raw_cksum() is faster than csum_words(): the compiler has vectorised it. */
#define CSUM_SHORT 128u

/* The sum of n bytes, at least 8, those over counting as padded with zeros. */
static inline uint64_t
csum_words(const uint8_t *d, uint32_t n)
{
	uint64_t sum = 0, last;

	for (; n >= sizeof(last); n -= (uint32_t)sizeof(last), d += sizeof(last))
		sum = csum_add(sum, csum_load64(d));
	/* The last word of the bytes, without what was summed before; n may be 0. */
	last = rte_le_to_cpu_64(csum_load64(d + n - sizeof(last))) >> 1 >> (63 - 8 * n);
	return csum_add(sum, rte_cpu_to_le_64(last));
}

/* What the pseudo header adds to the addresses. Sums of swapped bytes are swapped sums (RFC 1071,
 * 2 (B)), so one swap is enough; never zero. */
static inline uint64_t
csum_pseudo(uint32_t len, uint8_t proto)
{
	return rte_cpu_to_be_32(len + proto);
}

/* True when the sum of an IPv4 header of hdr_len bytes is right (a multiple of 4, at least 20). */
static inline bool
csum_ip4_good(const void *hdr, unsigned int hdr_len)
{
	const uint8_t *h = hdr;
	uint64_t sum = csum_add(csum_load64(h), csum_load64(h + 8));
	uint32_t word;
	unsigned int i;

	for (i = 16; i < hdr_len; i += sizeof(word)) {
		memcpy(&word, h + i, sizeof(word));
		sum = csum_add(sum, word);
	}
	/* A header of that length is not all zeros. */
	return sum % UINT16_MAX == 0;
}

#endif
