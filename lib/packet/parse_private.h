/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the files of the parser. Two lengths go with every pointer: how many bytes the packet has
 * there (`len`, what its headers may claim), and how many of them lie in the first segment
 * (`avail`, what may be read). They differ in a chained mbuf only.
 *
 * All return SL_DROP_NONE, a reason (those from SL_DROP_FIRST_INVALID on: the transport header is
 * unsound, the packet is not dropped for it), or PARSE_MORE.
 */
#ifndef PARSE_PRIVATE_H
#define PARSE_PRIVATE_H

#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "parse.h"

/* A header lies beyond the first segment: pull it in and parse again. */
#define PARSE_MORE SL_DROP_COUNT

static inline uint16_t
parse_be16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return rte_be_to_cpu_16(v);
}

/* Why n bytes could not be read: the packet has them not (`cut`), or its first segment. */
static inline enum sl_drop
parse_short(uint32_t len, uint32_t n, enum sl_drop cut)
{
	return len < n ? cut : PARSE_MORE;
}

/* Where the extension headers of an IPv6 packet end. */
struct parse_ip6_end {
	uint32_t off;   /* of the transport header, from the IPv6 header */
	uint32_t frag_at; /* where the fragment header is, when frag is not 0 */
	uint16_t frag;  /* fragment offset and M bit; 0: no fragment, or an atomic one (RFC 6946) */
	uint8_t proto;  /* of the transport header */
};

/*
 * Walks the extension headers of the packet at ip, whose IPv6 header is complete. Stops with
 * SL_DROP_NONE at a fragment header with an offset, behind which there is payload only; end->frag
 * is set even when the walk fails behind it.
 */
enum sl_drop parse_ip6_walk(struct parse_ip6_end *end, const uint8_t *ip, uint32_t len,
	uint32_t avail);

/* Transport headers other than TCP and UDP, of p->l4 and p->l4_len. */
enum sl_drop parse_l4_other(struct pkt *p, uint32_t avail);

/* GRE: sets *call to the call id of PPTP's version 1, and the header's length. */
enum sl_drop parse_gre(const uint8_t *gre, uint32_t len, uint32_t avail, rte_be16_t *call,
	uint16_t *hdr_len);

enum sl_drop parse_icmp(struct pkt *p, uint32_t avail);
enum sl_drop parse_icmp6(struct pkt *p, uint32_t avail);

#endif
