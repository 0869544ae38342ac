/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of lib/nat, for its files and tests. */
#ifndef NAT_PRIVATE_H
#define NAT_PRIVATE_H

#include <netinet/in.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "crowd.h"
#include "nat.h"
#include "source.h"

#define NAT_IP_IDS 4096u

struct nat_thread {
	struct nat *nat;
	struct ct_thread *ct;
	unsigned int index;
	uint16_t ip_id; /* of the last datagram of NAT64 in one piece, host order */
	uint64_t random[6]; /* what the next number is a hash of: a counter, and whose it is */
} __rte_cache_aligned;

struct nat {
	struct sl_hasher hasher; /* of choices: which address a source gets, random starts */
	struct nat_ops ops;
	struct ct *ct;
	struct nat_sources *sources;
	struct nat_crowds *crowds;
	unsigned int n_threads;
	struct nat_thread *thread;
	struct nat_pool **pool; /* [NAT_POOLS_MAX + 1], by number; 0 is none. Written by control */
	unsigned int last_pool; /* control only */
	bool exclusive;         /* likewise: some pool has had exclusive mappings */
	/* Identifications of datagrams that leave in fragments, by hash of source, destination and
	 * protocol; counted up by all threads (atomic). */
	uint16_t ip_id[NAT_IP_IDS];
};

/* 64 bits that nobody outside can foresee; the same sequence for the same seed. */
uint64_t nat_random(struct nat_thread *t);

static inline uint64_t
nat_clock(const struct nat_thread *t)
{
	const struct nat_ops *ops = &t->nat->ops;

	return ops->clock != NULL ? ops->clock(ops->app, t->index) : 0;
}

static inline void
nat_report(const struct nat_thread *t, const struct nat_report *r)
{
	const struct nat_ops *ops = &t->nat->ops;

	if (ops->report != NULL)
		ops->report(ops->app, t->index, r);
}

/* ---- search.c ---- */

/* What is tried for one connection. */
struct nat_search {
	struct nat_thread *t;
	struct pkt *p;
	struct nat_counters *counters;
	struct tuple cand;   /* the reply tuple that is tried; its port is set for each try */
	bool by_id;          /* the port to vary is an ICMP id, which is the reply's source */
	bool has_ports;      /* the protocol has something to vary */
	bool remember;       /* in the by-source table, when it is not the source's own port */
	bool exclusive;      /* the source is to have the end for itself (source.h) */
	uint8_t filter;      /* then: enum nat_filter */
	uint16_t pool;       /* the number of its pool */
	uint16_t where;      /* of the request */
	uint32_t block;      /* the reference to a block that a mapping is to have, plus one */
	const struct nat64_prefix *nat64; /* of the request */
	bool hairpin;        /* the candidate is what would leave, and the reply tuple is of IPv6 */
	uint16_t lo, hi;     /* what the port may be, host order */
	unsigned int budget; /* candidates that may still be looked at */
	const struct nat_ahead *ahead; /* of the request */
};

/* The reply tuple's field that is the source's port. */
static inline rte_be16_t *
nat_reply_port(struct tuple *reply, bool by_id)
{
	return by_id ? &reply->sport : &reply->dport;
}

static inline bool
nat_is_icmp(uint8_t proto)
{
	return proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6;
}

static inline bool
nat_has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP ||
	       proto == IPPROTO_UDPLITE;
}

/* Begins one for the embryo. */
void nat_search_init(struct nat_search *s, struct nat_thread *t, struct pkt *p,
	const struct nat_request *r);

/* Commits with one port; hash 0: not known. CT_CLASH: it is taken; all else ends the search. */
enum ct_verdict nat_try(struct nat_search *s, uint16_t port, uint64_t hash);

/* The embryo's reply tuple is the candidate. */
void nat_set_reply(struct nat_search *s);

/* Looks for a port of lo … hi that is free and commits with it. CT_CLASH: none was found. */
enum ct_verdict nat_search(struct nat_search *s);

/* ---- bind.c, bind_pool.c ---- */

/* The address that a source of that original tuple gets first, by the request; of a request
 * without NAT_ADDR it stays as it is. */
void nat_prefer(const struct nat_thread *t, const struct tuple *original,
	const struct nat_request *r, struct tuple_addr *out);

/* The embryo is given back, for that reason. */
enum ct_verdict nat_refuse(struct nat_thread *t, struct pkt *p, enum sl_drop reason);

/* The source's own port, or the one it has toward others; then the addresses that the request
 * allows, from the one that the source prefers. CT_CLASH: nothing is free. */
enum ct_verdict nat_bind_range(struct nat_search *s, const struct nat_request *r);

/* The same from a pool that is cut into blocks, or with exclusive mappings; what a host may not
 * have is refused by it. */
enum ct_verdict nat_bind_pool(struct nat_search *s, const struct nat_request *r);

/* ---- inbound.c ---- */

/* Whether the filter of the mapping, whose source is `key`, admits the embryo's sender. The entry
 * has the reference that it lasts by then, in place of the caller's to the mapping, which goes; and
 * the pool and station of the source. */
bool nat_admit_sender(struct nat_thread *t, struct pkt *p, const struct tuple *key,
	const struct nat_mapping *m, uint32_t mapping);

/* ---- nat64.c ---- */

/* The embryo of IPv4 goes to a source of IPv6. False: that may not be told of its sender. */
bool nat64_inbound(struct pkt *p, const struct tuple *key, const struct nat_mapping *m);

/* Of a hairpinned connection: the answer as it would come from outside, whose source's end is
 * chosen; and the reply tuple with that end. */
void nat64_public(
	struct tuple *cand, const struct tuple *orig, const struct nat64_prefix *prefix);
void nat64_set_hairpin(
	struct tuple *reply, const struct tuple *cand, const struct nat64_prefix *prefix);

/* ---- nat.c ---- */

/* Gives back references, with all that goes with them. 0 is left alone. */
void nat_put_source(struct nat_thread *t, uint32_t ref);

/* ---- rewrite.c ---- */

/* The identification, in network order, of a datagram in fragments that is of that tuple now. */
rte_be16_t nat_ip_id(struct nat *nat, const struct tuple *t);

/* ---- rewrite_inner.c ---- */

/* Of an ICMP error the packet inside becomes what its sender had sent, which is of that tuple.
 * outer_diff: what changed in the error's own pseudo-header (csum.h). */
void nat_rewrite_inner(struct pkt *p, const struct tuple *sent, uint64_t outer_diff);

#endif
