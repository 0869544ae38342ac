/* SPDX-License-Identifier: BSD-3-Clause */
/* Verification of checksums in software, for ports that did not do it. */
#ifndef CSUM_H
#define CSUM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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

/*
 * True when a sum of words (RFC 1071, in the machine's byte order, not yet folded) is right: it
 * folds to all ones, that is, it is a multiple of 65535 and not zero.
 */
static inline bool
csum_all_ones(uint64_t sum)
{
	return sum % UINT16_MAX == 0 && sum != 0;
}

/* True when the sum of an IPv4 header of hdr_len bytes is right (a multiple of 4, at least 20). */
static inline bool
csum_ip4_good(const void *hdr, unsigned int hdr_len)
{
	const uint8_t *h = hdr;
	uint64_t sum = 0;
	uint32_t word;
	unsigned int i;

	for (i = 0; i < hdr_len; i += sizeof(word)) {
		memcpy(&word, h + i, sizeof(word));
		sum += word;
	}
	return csum_all_ones(sum);
}

#endif
