/* SPDX-License-Identifier: BSD-3-Clause */
/* Verification of transport checksums in software, for ports that did not do it. */
#ifndef CSUM_H
#define CSUM_H

#include <stdbool.h>

#include "pkt.h"

/*
 * True when the transport checksum of a parsed packet is right, or there is none to verify: UDP over
 * IPv4 with a sum of zero (RFC 768), protocols without one, UDP whose own length is what counts
 * (payload behind it is not summed; RFC 768), UDP-Lite by its coverage (RFC 3828), SCTP by CRC32c
 * (RFC 9260 appendix A), ICMP and ICMPv6, TCP. UDP over IPv6 with a sum of zero is wrong (RFC 8200).
 * Reads the payload, through all segments.
 */
bool csum_l4_good(const struct pkt *p);

/* The same for an IPv4 header of hdr_len bytes (a multiple of 4, at least 20). */
bool csum_ip4_good(const void *hdr, unsigned int hdr_len);

#endif
