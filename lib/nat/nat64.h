/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NAT64: connections of IPv6 hosts with IPv4 hosts (RFC 6146). The original tuple is of IPv6, and
 * the reply tuple of IPv4; so each packet finds its entry by the tuple that it has, on either side,
 * and what it becomes is the other one turned round, as with all translations. How headers are
 * translated is siit.h's.
 *
 * In the order of an admission:
 *
 *   nat64_dst()      prerouting: the destination is the IPv4 host that is embedded in it
 *   nat_commit()     with a request of IPv4 addresses, and the prefix
 *
 * A connection from outside to the public end that a host of IPv6 has is nat_inbound()'s; of it the
 * original tuple is of IPv4, and the reply tuple of IPv6. One from a host inside to the public end
 * of another (RFC 6146 3.8, hairpin) would go through both translations, one behind the other: both
 * its tuples are of IPv6, and it is translated once, as nat.h has it.
 *
 * Of each packet, in place of nat_rewrite():
 *
 *   nat64_target()   what it becomes
 *   nat64_rewrite(), or nat64_error() for an ICMP error
 */
#ifndef NAT64_H
#define NAT64_H

#include "nat.h"

struct rte_mbuf;

/* Of the statement: a prefix that siit_prefix_valid() has passed. */
struct nat64_prefix {
	struct tuple_addr addr;
	uint8_t len;
};

/*
 * The embryo p->ct, of IPv6, with a destination under the prefix, goes to the host that is embedded
 * there, or to the one inside that has this public end. SL_DROP_NONE; or why it must not: the host,
 * or that its source is under the prefix, too, so that an answer would come back for ever (RFC 6146
 * 3.5); or NAT_FILTERED, as the filter of the one inside says, and it goes to the host, for who
 * sets CT_REFUSED. *where: as nat_inbound().
 */
enum sl_drop nat64_dst(struct nat_thread *t, struct pkt *p, const struct nat64_prefix *prefix,
	uint16_t *where);

/* The public address of the source of a hairpinned connection. False: it is none. */
bool nat64_hairpin_end(const struct ct_entry *e, struct tuple_addr *addr);

/* Whether the packets of an entry go from one IP version to the other. */
static inline bool
nat64_translated(const struct ct_entry *e)
{
	return __atomic_load_n(&e->status, __ATOMIC_RELAXED) & CT_NAT64;
}

struct nat64_target {
	struct tuple to; /* of a packet of the connection */
	uint8_t prefix_len;
};

/* What a tracked packet becomes. False: the entry has gone meanwhile, pkt.reason is set. */
bool nat64_target(struct pkt *p, struct nat64_target *out);

/*
 * Translates a packet that siit_check() has passed, no ICMP error. `whole`: in one frame, whose
 * pkt.tuple, l3, l3_len and ip_bytes are of the translated packet then. Else its transport
 * header alone, in each fragment where it has some: pkt.tuple is of the translated packet,
 * pkt.frag_id the identification for its fragments, and pkt.late says that siit_header() is still
 * to be called for each frame of it. False: no room in the buffer, pkt.reason is set.
 */
bool nat64_rewrite(
	struct nat_thread *t, struct pkt *p, const struct nat64_target *target, bool whole);

/*
 * Writes an ICMP error about the connection into m, an empty buffer. The error is from whom it was,
 * where the other side can know him: an IPv4 router by the prefix. Else it is from the connection's
 * own far end. SL_DROP_NONE, or why it is to be dropped.
 */
enum sl_drop nat64_error(struct nat_thread *t, const struct pkt *p,
	const struct nat64_target *target, const uint32_t mtu[2], struct rte_mbuf *m);

#endif
