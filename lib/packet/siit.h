/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of one IP version made into packets of the other: the IP/ICMP translation algorithm (RFC
 * 7915), with IPv4 addresses in IPv6 ones (RFC 6052). Which addresses and ports a packet gets is
 * the caller's to say; nothing here knows connections.
 *
 * A packet is translated in two steps, since of one in fragments the transport header is there
 * once, and the IP header in each: siit_transport() of the whole, then siit_header() of each frame.
 * An ICMP error, whose length changes twice, is written anew by siit_error_write().
 *
 * `to` is always the tuple that the packet is to have: its family, addresses, ports or id, and of a
 * query its ICMP type; its protocol with ICMP and ICMPv6 exchanged.
 */
#ifndef SIIT_H
#define SIIT_H

#include <stdbool.h>
#include <stdint.h>

#include "icmp_error.h"
#include "pkt.h"

struct sl_err;

/* By so much the longer header exceeds the shorter, and a fragment header's length. */
#define SIIT_GROWTH   20u
#define SIIT_FRAGMENT 8u

/* An IPv6 packet without fragment header that becomes longer than this keeps DF (RFC 7915 5.1). */
#define SIIT_DF_ABOVE 1260u

/* ---- addresses ---- */

/* 0, or -EINVAL with what is wrong: a length that RFC 6052 has not, bits behind it, or a u octet
 * (bits 64 to 71) within it that is not zero. */
int siit_prefix_valid(const struct tuple_addr *prefix, unsigned int len, struct sl_err *err);

/* The IPv4 address within an address under a valid prefix. False: its u octet is not zero, so that
 * it has none. What is behind is not looked at. */
bool siit_extract(const struct tuple_addr *addr, unsigned int prefix_len, rte_be32_t *ip4);

/* Puts another IPv4 address there; all else of *addr stays. */
void siit_embed(struct tuple_addr *addr, unsigned int prefix_len, rte_be32_t ip4);

/*
 * Whether an IPv4 host may be told of under the address' prefix: a unicast address, no loopback,
 * link-local, unspecified or reserved one; under the well-known prefix, 64:ff9b::/96, a global one
 * (RFC 6052 3.1).
 */
bool siit_host(const struct tuple_addr *addr, unsigned int prefix_len, rte_be32_t ip4);

/* ---- what has no translation ---- */

/*
 * SL_DROP_NONE, or why a sound packet must not be translated: its hop limit ends here, a route that
 * its sender prescribed is not at its end, or its transport protocol, ICMP type or a header of IPv6
 * has nothing like it in the other version. *e is then what the sender is to be told, without its
 * source; with e->type 0 and code 0: nothing.
 */
enum sl_drop siit_check(const struct pkt *p, struct icmp_error *e);

/* ---- packets that are no ICMP error ---- */

/*
 * Makes the transport header what it becomes: ports or id, ICMP type, and the checksum over these
 * and the addresses, those of the IP header being still the old ones. A UDP sum that an IPv4 sender
 * left out is computed (RFC 7915 4.5). `p` has passed siit_check().
 */
void siit_transport(struct pkt *p, const struct tuple *to);

/*
 * Replaces the IP header of a sound frame, l3_off behind its start, extension headers and options
 * included, by one of to->family; a fragment, by one of a fragment. Its hop limit is one less. Of
 * IPv4 it has the identification `id`. What pads the frame is cut off, where that is simple. The
 * payload does not move.
 *
 * Returns the length of the new header; 0 when there is no room before the frame, or its hop limit
 * ends: the frame is as it was then.
 */
uint16_t siit_header(struct rte_mbuf *m, uint16_t l3_off, const struct tuple *to, rte_be16_t id);

/* What a packet in one piece of ip_bytes will have, with a header of l3_len bytes, in the other
 * version: its length without a fragment header. */
static inline uint32_t
siit_length(const struct pkt *p)
{
	return p->ip_bytes - p->l3_len + (p->tuple.family == TUPLE_IPV4 ? 40u : 20u);
}

/* Whether a sound packet may be fragmented on its way in the other version: of IPv6, what is short,
 * or has been by its sender. */
bool siit_fragmentable(const struct pkt *p);

/* ---- ICMP errors ---- */

/* What an error's type and code become. False: it has no counterpart, and is to be dropped. */
bool siit_error_type(uint8_t family, uint8_t *type, uint8_t *code);

struct siit_error {
	struct tuple to;       /* addresses of the error; no ports */
	struct tuple inner;    /* as the packet inside was sent by whom the error goes to */
	uint32_t mtu_in, mtu_out; /* of the links that the error comes from and goes to */
	rte_be16_t id;         /* of its IPv4 header */
};

/*
 * Writes an ICMP error (PKT_ICMP_ERROR) as one of the other version into `m`, an empty buffer of
 * the packet pool: a whole frame, with the Ethernet header and tags of p's. The packet inside is
 * translated as its sender had sent it, its checksums with it; extensions of RFC 4884 are kept
 * where they fit and the type has them. SL_DROP_NONE, or a reason to drop the error for: then m is
 * empty.
 */
enum sl_drop siit_error_write(
	struct rte_mbuf *m, const struct pkt *p, const struct siit_error *e);

#endif
