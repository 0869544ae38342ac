/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Network address translation: the contract.
 *
 * A connection's translation is chosen once, when it is admitted, and is its reply tuple: what
 * packets of one direction are translated to is the inverse of the tuple of the other. Beside it
 * the entry keeps what else a translation needs, in nat[] (struct nat_slot).
 *
 *   ct_begin()       the embryo's reply tuple is the inverse of its original one
 *   nat_dst()        prerouting: another destination
 *   (forward: sees the destination after, the source before)
 *   nat_commit()     postrouting: another source; finds one that is free and commits the embryo
 *   nat_rewrite()    each packet of the connection, as its entry says
 *   nat_released()   the entry is destroyed: gives back what was taken for it
 *
 * A choice is unique because its insertion succeeded under the stripes (ct_try_commit()). All that
 * is looked at before is a hint that makes the search short, and may be wrong either way.
 *
 * Threads: as conntrack's; each has a nat_thread of the same number. Control uses the last one.
 */
#ifndef NAT_H
#define NAT_H

#include <stdbool.h>
#include <stdint.h>

#include "conntrack.h"
#include "tuple.h"

struct nat;
struct nat64_prefix;
struct nat_pool_use;
struct nat_report;
struct nat_thread;
struct sl_err;

/* What translation asks of the application, and tells it, by thread number. Each may be NULL. */
struct nat_ops {
	/* Nanoseconds of the clock, as the thread has it. Takes no lock. */
	uint64_t (*clock)(void *app, unsigned int thread);
	/* See pool.h. Called with nothing held. */
	void (*report)(void *app, unsigned int thread, const struct nat_report *r);
	void *app;
};

struct nat_config {
	struct ct *ct;
	unsigned int threads;  /* as conntrack has */
	uint32_t max_sources;  /* mappings that the by-source table has room for */
	enum sl_hash_backend hash;
	uint64_t seed; /* of the hash and of random choices; 0: random */
	struct nat_ops ops;
};

/* NULL with err filled: too little memory, or the hash is not to be had. */
struct nat *nat_create(const struct nat_config *config, struct sl_err *err);
void nat_destroy(struct nat *nat); /* no thread uses it any more. Takes NULL */

struct nat_thread *nat_thread(struct nat *nat, unsigned int index);

/* Control: there may be so many connections now, each of which may need a mapping where a pool has
 * exclusive ones. 0 or -ENOMEM. */
int nat_set_max(struct nat *nat, uint32_t max, struct sl_err *err);

/* ---- namespaces (control) ---- */

/*
 * What translation keeps of a namespace: netns.nat. It is made with the namespace's first NAT rule
 * and stays as long as the namespace does, since connections outlive rules.
 */
struct nat_counters { /* of one thread, which alone writes them */
	uint64_t bound_src, bound_dst; /* connections that were translated */
	uint64_t searches;  /* that did not get their first choice */
	uint64_t probes;    /* candidates that were looked at */
	uint64_t exhausted; /* refused, since no address and port was free */
};

struct nat_netns {
	struct nat *nat;
	unsigned int threads;
	struct nat_counters counters[];
};

/* Makes it, if there is none. 0 or -ENOMEM. */
int nat_netns_enable(struct nat *nat, struct netns *ns, struct sl_err *err);

/* With the namespace, after the grace period that follows its purge. Takes a namespace without. */
void nat_netns_free(struct netns *ns);

void nat_netns_totals(const struct netns *ns, struct nat_counters *out); /* zeros without */

/* ---- requests: what a rule's statement asks for ---- */

#define NAT_ADDR         0x01 /* min and max are given; else the address stays */
#define NAT_PORTS        0x02 /* port_min and port_max are given */
#define NAT_RANDOM       0x04 /* nft's flags */
#define NAT_FULLY_RANDOM 0x08
#define NAT_PERSISTENT   0x10
#define NAT_PREFIX       0x20 /* netmap: min's first prefix_len bits; the rest stays as it is */
#define NAT_MASQUERADE   0x40 /* the address is the egress link's: see nat_masqueraded() */

struct nat_ahead;

struct nat_request {
	uint8_t flags;
	uint8_t family; /* of min and max: TUPLE_IPV4, TUPLE_IPV6 */
	uint8_t prefix_len;
	uint16_t port_min, port_max; /* host order; min <= max */
	struct tuple_addr min, max;  /* min <= max */
	const struct nat_pool_use *use; /* to a pool, in place of min and max: pool.h */
	uint16_t where; /* the application's: kept with a mapping, for nat_inbound() */
	const struct nat64_prefix *nat64; /* NULL, or that of nat64_dst() */
	const struct nat_ahead *ahead; /* of a nat_ahead_begin() some time before, or NULL */
};

/* 0, or refuses with -EINVAL and what is wrong with it: a range upside down, port 0, of no or a
 * wrong family, a prefix without NAT_ADDR or with ports. For who builds one from a rule. */
int nat_request_valid(const struct nat_request *r, struct sl_err *err);

/* ---- admission (worker) ---- */

/*
 * What admission of a packet that seems to open a connection will touch, fetched ahead in two
 * steps, some packets apart, if it goes by that request and no other destination is chosen. It does
 * no harm if not: *a is the hash of a tuple, used by who needs just that one's.
 */
struct nat_ahead {
	struct tuple reply;
	uint64_t hash; /* 0: of none */
	uint32_t key;  /* of an exclusive mapping of the source: the hash of its key, or 0 */
};
void nat_ahead_begin(struct nat_thread *t, const struct pkt *p, const struct nat_request *r,
	struct nat_ahead *a);
void nat_ahead_finish(const struct nat_thread *t, const struct nat_ahead *a);

/*
 * The embryo p->ct goes to another destination. Call once at most, before nat_commit(). An address
 * of a range is the same for the same source; of a port range that the destination is not in, one
 * is chosen. Nothing happens when the request is of the other family.
 */
void nat_dst(struct nat_thread *t, struct pkt *p, const struct nat_request *r);

/*
 * Instead, when no rule wants another destination: an embryo to a public end that is exclusively a
 * source's goes to that source, if the filter admits its sender (pool.h). CT_OK, translated or not;
 * CT_MISS: not admitted, and the embryo stays as it was; CT_DROP: it was given back, with
 * pkt.reason NAT64_ADDRESS (no host of IPv6 may be told of the sender). *where is that of the
 * request that has made the mapping, or 0; the reply's nat_end.mac is set to where the source is. A
 * source of IPv6 knows its sender by the prefix of that request (nat64.h).
 */
enum ct_verdict nat_inbound(struct nat_thread *t, struct pkt *p, uint16_t *where);

/*
 * Who is not admitted and is inside, too, has sent all the same (RFC 4787, REQ-8): an embryo with
 * CT_REFUSED is committed as if its packet left, so that the other may send to its source. Its
 * packets are dropped. One that opens the way back takes its place, and so does the connection that
 * it becomes when a later packet of it is admitted:
 *
 * True for a tracked packet of one with CT_REFUSED, in its original direction, that the filter
 * admits now. *mapping keeps that of its source until nat_unhold(), while it is destroyed and
 * admitted anew.
 */
bool nat_admitted(struct nat_thread *t, const struct pkt *p, uint32_t *mapping);
void nat_unhold(struct nat_thread *t, uint32_t mapping);

/*
 * Gives the embryo its source and commits it. r == NULL: no rule wants another one; then the source
 * stays, but for its port when the reply tuple is taken. For all connections of a namespace that
 * has netns.nat; others go to ct_commit().
 *
 * CT_OK, CT_LOST as ct_commit(). CT_DROP: the embryo was given back, with pkt.reason
 * NAT_EXHAUSTED, NAT_HOST_LIMIT, NAT_MAPPINGS_FULL, INVALID_NAT (the packet is no connection's
 * first, and would be translated) or ct_commit()'s. An embryo that is refused before goes by
 * ct_abort().
 */
enum ct_verdict nat_commit(struct nat_thread *t, struct pkt *p, const struct nat_request *r);

/* ---- every packet (worker) ----
 * For most of them ready.h has a shorter way. */

static inline bool
nat_translated(const struct ct_entry *e)
{
	return __atomic_load_n(&e->status, __ATOMIC_RELAXED) & (CT_SRC_NAT | CT_DST_NAT);
}

/*
 * Translates a packet that ct_track(), ct_track_error() or nat_commit() has passed: addresses,
 * ports or ids, checksums; of an ICMP error also the packet inside. Of a datagram of fragments all
 * fragments. pkt.tuple stays what the packet was looked up by.
 *
 * False, with pkt.reason: the entry has gone meanwhile, and another may be in its place.
 */
bool nat_rewrite(struct nat_thread *t, struct pkt *p);

/* ---- the end of an entry ---- */

/* From ct_ops.destroyed and ct_ops.aborted, for any entries; CT_DESTROY_MAX at most. */
void nat_released(struct nat_thread *t, struct ct_entry *const e[], unsigned int n);
void nat_aborted(struct nat_thread *t, struct ct_entry *e);

/* Selects entries masqueraded to that address of a namespace, for ct_flush_slice(): when a link
 * loses it. */
struct nat_address {
	uint32_t ns_id, ns_gen;
	uint8_t family;
	struct tuple_addr addr;
};
bool nat_masqueraded(const struct ct_view *v, const void *nat_address);

/* ---- what an entry has in nat[] ---- */

#define NAT_SLOT_MASQUERADE 0x01 /* the source's new address is the egress link's */
#define NAT_SLOT_PORT       0x02 /* counted as one of its pool's ports in use */
#define NAT_SLOT_ADMITTED   0x04 /* `block` is a reference to what it was admitted by */
#define NAT_SLOT_PREFIX_SHIFT 8  /* NAT64 and its hairpins: the prefix' length is above */

struct nat_end {
	uint8_t mac[6]; /* where its packets come from, as first seen; zero: not known. The app's */
	union {
		uint16_t flags; /* of the original source: NAT_SLOT_… */
		uint16_t pool;  /* of the reply's: number of the pool it is counted by, or 0 */
	};
};

struct nat_slot {
	struct nat_end end[2]; /* by direction of who sends; each is one word of nat[] */
	uint32_t source;       /* its reference to a by-source mapping (source.h); 0: none */
	uint32_t block;        /* its reference to a block of the pool, plus one; 0: none; or, with
				  NAT_SLOT_ADMITTED, as `source` */
};

_Static_assert(sizeof(struct nat_slot) == sizeof(((struct ct_entry *)0)->nat), "as entry.h has it");

static inline struct nat_slot *
nat_slot(struct ct_entry *e)
{
	return (struct nat_slot *)(void *)e->nat;
}

static inline const struct nat_slot *
nat_slot_const(const struct ct_entry *e)
{
	return (const struct nat_slot *)(const void *)e->nat;
}

#endif
