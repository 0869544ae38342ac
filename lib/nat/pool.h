/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pools: public addresses that a namespace's rules translate to (`snat to pool`, `nat64`). A pool
 * is of one family, and of no address that another pool of its namespace has.
 *
 * How a pool is handed out is said by the rules that have it, in a struct nat_pool_use; rules of
 * one pool say the same:
 *
 *   ports    as `snat to` a range does: a source keeps its address, and its port where that is free
 *            toward the remote end
 *   endpoint-independent
 *            a source has one address and port for all remote ends (RFC 4787, REQ-1), which no
 *            other source has meanwhile; what comes to it from outside is admitted as the filter
 *            says
 *   blocks   a host has blocks of ports of one address, of which it alone uses ports (RFC 6888,
 *            REQ-14; RFC 7422, 3); each is told when it is given and when it is given back. With
 *            `deterministic` the block follows from the host, and there is nothing to tell
 *
 * Threads: control makes and frees pools. Workers have them through the objects of rules, and
 * through entries; so a pool is freed a grace period after its last rule and its last entry.
 */
#ifndef NAT_POOL_H
#define NAT_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "tuple.h"

#define NAT_POOL_NAME_MAX 63u
#define NAT_POOLS_MAX     65535u       /* of all namespaces */
#define NAT_POOL_BLOCKS   (1u << 22)   /* of one pool */

struct ct_view;
struct nat;
struct nat_pool;
struct nat_request;
struct netns;
struct sl_err;

struct nat_pool_range {
	struct tuple_addr lo, hi; /* both included; of IPv4 the last twelve bytes are zero */
};

struct nat_pool_config {
	const char *name;
	uint8_t family; /* TUPLE_IPV4, TUPLE_IPV6 */
	const struct nat_pool_range *range;
	unsigned int n;            /* ranges, 1 or more */
	uint16_t port_lo, port_hi; /* host order; both 0: not said */
};

/* ---- control ---- */

/*
 * A pool of the namespace. Refuses: a name that is taken, no range, ranges upside down or that have
 * an address in common, with one another or with those of another pool of the namespace; ports
 * upside down or of 0; too many pools. 0 or -errno.
 */
int nat_pool_add(struct nat *nat, struct netns *ns, const struct nat_pool_config *config,
	struct nat_pool **out, struct sl_err *err);

/* No longer found; it and its entries are still there. */
void nat_pool_remove(struct nat_pool *pool);

/* One that was removed, when neither rule nor entry has it any more and a grace period has passed.
 * */
void nat_pool_free(struct nat_pool *pool);

struct nat_pool *nat_pool_find(const struct netns *ns, const char *name); /* or NULL */

/* The namespace's pools, in the order in which they were added; the first with NULL. */
struct nat_pool *nat_pool_next(const struct netns *ns, const struct nat_pool *before);

/* What it was made of. Borrowed. */
const struct nat_pool_config *nat_pool_config(const struct nat_pool *pool);
struct netns *nat_pool_netns(const struct nat_pool *pool);

/* Selects entries that have the pool, for ct_flush_slice(). */
bool nat_pool_has_entry(const struct ct_view *v, const void *pool);

/* ---- how rules have it ---- */

/* Who of outside may send to a source's public address and port. */
enum nat_filter {
	NAT_FILTER_PORT,    /* whom the source has sent to, from that port */
	NAT_FILTER_ADDRESS, /* whom the source has sent to, from any port */
	NAT_FILTER_NONE,    /* everyone */
};

struct nat_pool_use {
	struct nat_pool *pool;
	uint32_t block_size; /* ports; 0: no blocks */
	uint32_t blocks;     /* at most for a host; 1 or more with block_size */
	bool deterministic;
	bool endpoint_independent;
	uint8_t filter;      /* enum nat_filter; others than PORT are for endpoint_independent */
};

/*
 * Refuses a use that makes no sense or that the pool cannot serve: blocks of another size than it
 * was cut into, or more hosts than there are blocks for. hosts (n_hosts ranges, ascending, without
 * overlap) are those that it is for, with `deterministic`. 0 or -errno.
 */
int nat_pool_use_valid(const struct nat_pool_use *use, const struct nat_pool_range *hosts,
	unsigned int n_hosts, struct sl_err *err);

/* Before a rule with that use, which is valid, is published: makes the pool's blocks, if there are
 * none. 0 or -errno: no memory. */
int nat_pool_prepare(struct nat *nat, const struct nat_pool_use *use,
	const struct nat_pool_range *hosts, unsigned int n_hosts, struct sl_err *err);

/* Whether its mappings are exclusive (source.h). */
static inline bool
nat_pool_exclusive(const struct nat_pool_use *use)
{
	return use->endpoint_independent;
}

/* The request that nat_commit() takes for it. `use` is used as long as the request is. */
void nat_pool_request(struct nat_request *r, const struct nat_pool_use *use);

/* ---- who had an address ---- */

enum nat_who {
	NAT_WHO_HOST,        /* *out is set */
	NAT_WHO_NOBODY,
	NAT_WHO_FORGOTTEN,   /* it was before what is remembered of blocks */
	NAT_WHO_CONNECTIONS, /* the pool is not cut into blocks: its connections say it */
};

struct nat_owner {
	uint8_t family;
	struct tuple_addr host;
	uint16_t port_lo, port_hi; /* of the block */
	uint64_t from_ns, to_ns;   /* of the clock; to 0: it has it still; both 0: always */
};

/* Whose block that address and port of the pool was, at that time of the clock; 0: now. Control. */
enum nat_who nat_pool_who(const struct nat_pool *pool, const struct tuple_addr *addr,
	uint16_t port, uint64_t time_ns, struct nat_owner *out);

/* Whether the pool has the address. */
bool nat_pool_has(const struct nat_pool *pool, uint8_t family, const struct tuple_addr *addr);

/* ---- what it tells ---- */

/*
 * `used` of `capacity` are blocks, where the pool is cut into blocks; else ports, of the protocol
 * that has most of them in use: with endpoint_independent mappings, else connections, of which one
 * port may serve several, each to another remote end, so that `used` may be above `capacity`.
 */
struct nat_pool_stats {
	uint64_t addresses;   /* saturates */
	uint32_t block_size;  /* ports; 0: not cut into blocks */
	bool deterministic;
	bool alarm;           /* used has reached sluice.nat_pool_alarm percent of capacity */
	uint64_t used, high;  /* now, and at most since the pool was made: see nat_pool_stats() */
	uint64_t capacity;    /* saturates */
	uint64_t connections; /* that are there */
	uint64_t bound;       /* that there ever were */
	uint64_t exhausted;   /* that were refused: nothing was free, or nothing for that host */
};

/* Counts are exact when quiet; `high` lags by at most 1/64 of the capacity. */
void nat_pool_stats(const struct nat_pool *pool, struct nat_pool_stats *out);

enum nat_report_type {
	NAT_BLOCK_ALLOCATED,
	NAT_BLOCK_RELEASED,
	NAT_POOL_ALARM,     /* used has reached sluice.nat_pool_alarm percent of capacity */
	NAT_POOL_CLEAR,     /* and is five percent of capacity below that again */
	NAT_POOL_EXHAUSTED, /* told once a second at most, while it lasts */
};

/* For nat_ops.report; valid while it is called. */
struct nat_report {
	enum nat_report_type type;
	const struct nat_pool *pool;
	uint64_t used, capacity;
	/* of blocks */
	uint8_t host_family;
	struct tuple_addr host, addr;
	uint16_t port_lo, port_hi;
};

#endif
