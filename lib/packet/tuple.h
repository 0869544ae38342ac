/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tuple: what one direction of a connection is known by, and the key of every shared table. All
 * bytes count, there is no padding, and all are set, so that two tuples are equal exactly when
 * their bytes are. Addresses and ports are in network order; an IPv4 address lies in the first four
 * bytes of its field and the rest is zero.
 *
 * `sport` and `dport` by protocol:
 *   TCP, UDP, UDP-Lite, SCTP   the ports
 *   ICMP, ICMPv6 query         the identifier; type << 8 | code (big endian)
 *   GRE version 1 (PPTP)       0; the call id
 *   GRE version 0, all others  0; 0
 */
#ifndef TUPLE_H
#define TUPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#include "hash.h"

#define TUPLE_IPV4 4
#define TUPLE_IPV6 6

struct tuple_addr {
	union {
		uint8_t b[16];
		rte_be32_t w[4]; /* w[0] is an IPv4 address */
	};
};

struct tuple {
	uint32_t scope; /* id of the namespace */
	uint16_t zone;  /* ct zone within it */
	uint8_t family; /* TUPLE_IPV4 or TUPLE_IPV6 */
	uint8_t proto;  /* IPPROTO_… */
	struct tuple_addr src;
	struct tuple_addr dst;
	rte_be16_t sport;
	rte_be16_t dport;
};

_Static_assert(sizeof(struct tuple) == SL_HASH_LEN, "the hash takes the whole tuple");
_Static_assert(offsetof(struct tuple, src) == SL_HASH_ADDR(0) &&
		       offsetof(struct tuple, dst) == SL_HASH_ADDR(1) &&
		       offsetof(struct tuple, sport) == SL_HASH_PORT(0) &&
		       offsetof(struct tuple, dport) == SL_HASH_PORT(1),
	"and knows its ends");

static inline bool
tuple_equal(const struct tuple *a, const struct tuple *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Whether each is the other with its ends changed, as the tuples of most connections are. */
static inline bool
tuple_turned(const struct tuple *a, const struct tuple *b)
{
	return memcmp(a, b, offsetof(struct tuple, src)) == 0 && a->sport == b->dport &&
	       a->dport == b->sport && memcmp(&a->src, &b->dst, sizeof(a->src)) == 0 &&
	       memcmp(&a->dst, &b->src, sizeof(a->dst)) == 0;
}

/*
 * The tuple that the answer to a packet of tuple `t` has. False when there can be none: an ICMP
 * type that is no query or its reply (RFC 792, RFC 4443, RFC 4620); `inv` is then not set.
 */
bool tuple_invert(struct tuple *inv, const struct tuple *t);

#endif
