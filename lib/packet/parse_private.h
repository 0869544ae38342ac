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

#include <rte_branch_prediction.h>
#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "csum.h"
#include "parse.h"

/* A header lies beyond the first segment: pull it in and parse again. */
#define PARSE_MORE SL_DROP_COUNT

/* The port took tags out of the frame. */
#define PARSE_TAGS_STRIPPED (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)

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

/* Sets of flags that a segment may have, PSH, ECE and CWR left out: a bit for each. */
#define TCP_SET(f) (UINT64_C(1) << (f))
#define TCP_SETS_VALID                                                                             \
	(TCP_SET(PKT_TCP_SYN) | TCP_SET(PKT_TCP_SYN | PKT_TCP_URG) |                               \
		TCP_SET(PKT_TCP_SYN | PKT_TCP_ACK) | TCP_SET(PKT_TCP_RST) |                        \
		TCP_SET(PKT_TCP_RST | PKT_TCP_ACK) | TCP_SET(PKT_TCP_FIN | PKT_TCP_ACK) |          \
		TCP_SET(PKT_TCP_FIN | PKT_TCP_ACK | PKT_TCP_URG) | TCP_SET(PKT_TCP_ACK) |          \
		TCP_SET(PKT_TCP_ACK | PKT_TCP_URG))
#define TCP_SET_MASK (PKT_TCP_FIN | PKT_TCP_SYN | PKT_TCP_RST | PKT_TCP_ACK | PKT_TCP_URG)

static inline bool
parse_tcp_flags_valid(uint8_t flags)
{
	return TCP_SETS_VALID >> (flags & TCP_SET_MASK) & 1;
}

/* What the port found of the transport checksum. */
static inline uint16_t
parse_csum_flags(uint64_t ol_flags)
{
	/* Both bits: the sum in the packet is not final, but the packet is known to be intact. */
	if (ol_flags & RTE_MBUF_F_RX_L4_CKSUM_GOOD)
		return PKT_CSUM_GOOD;
	return ol_flags & RTE_MBUF_F_RX_L4_CKSUM_BAD ? PKT_CSUM_BAD : 0;
}

static inline bool
parse_ip4_sum_good(const struct rte_mbuf *m, const struct rte_ipv4_hdr *ih, uint32_t hdr_len)
{
	if (m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_GOOD)
		return true;
	if (unlikely(m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_BAD))
		return false;
	if (likely(hdr_len == sizeof(*ih)))
		return csum_ip4_good(ih, sizeof(*ih));
	return csum_ip4_good(ih, hdr_len);
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
