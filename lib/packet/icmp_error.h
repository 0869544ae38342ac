/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP and ICMPv6 errors about a packet that the gateway does not pass on (RFC 792, RFC 4443). */
#ifndef ICMP_ERROR_H
#define ICMP_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "pkt.h"

/* The largest error packets, from their IP headers on (RFC 1812 4.3.2.3, RFC 4443 2.4 c). */
#define ICMP_ERROR_MAX  576u
#define ICMP6_ERROR_MAX 1280u

/* types and codes that the gateway sends, of IPv4 and IPv6 */
#define ICMP_UNREACHABLE        3
#define ICMP_CODE_FRAG_NEEDED   4
#define ICMP_TIME_EXCEEDED      11
#define ICMP6_UNREACHABLE       1
#define ICMP6_PACKET_TOO_BIG    2
#define ICMP6_TIME_EXCEEDED     3

struct icmp_error {
	uint8_t type, code;    /* of the family of the packet */
	uint32_t word;         /* behind the checksum, host order: the MTU, or 0 */
	struct tuple_addr src; /* of the error; an address of the packet's family */
};

/*
 * Whether an error may be sent about a packet: answer_allowed() (a packet too big of IPv6 also to
 * multicast destinations), answer_intact(), and the packet is itself no ICMP error or redirect,
 * known or unknown. `p` is parsed, with PKT_IP.
 */
bool icmp_error_allowed(const struct pkt *p, const struct icmp_error *e);

/*
 * Writes the error into `m`, an empty buffer of the packet pool: a whole frame, to leave on the
 * link on which `p` came, that quotes as much of `p` as it may. False when m has not the room; it
 * is empty then. The caller has asked icmp_error_allowed().
 */
bool icmp_error_write(struct rte_mbuf *m, const struct pkt *p, const struct icmp_error *e);

/*
 * Of an ICMP error that came (PKT_ICMP_ERROR): how many bytes from the inner transport header on
 * are that packet's and can be written here: not beyond its own length, the error's, an
 * extension's begin (RFC 4884) or the first segment. *whole: how many its sender has sent from
 * there on.
 */
unsigned int icmp_error_inner(const struct pkt *p, unsigned int *whole);

#endif
