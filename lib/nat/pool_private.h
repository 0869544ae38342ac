/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools inside of lib/nat, for its files and tests. */
#ifndef NAT_POOL_PRIVATE_H
#define NAT_POOL_PRIVATE_H

#include <rte_common.h>

#include "addr.h"
#include "nat_private.h"
#include "pool.h"

/* Ports are given per protocol; what is counted together. */
enum nat_class { NAT_CLASS_TCP, NAT_CLASS_UDP, NAT_CLASS_OTHER, NAT_CLASSES };

static inline enum nat_class
nat_class(uint8_t proto)
{
	if (proto == IPPROTO_TCP)
		return NAT_CLASS_TCP;
	return proto == IPPROTO_UDP ? NAT_CLASS_UDP : NAT_CLASS_OTHER;
}

/* Of one thread, which alone writes it. */
struct nat_pool_counters {
	int64_t connections; /* bound less released here: only the sum of all has meaning */
	uint64_t bound, exhausted;
	int32_t pending[NAT_CLASSES]; /* not in nat_pool.used yet */
} __rte_cache_aligned;

struct nat_pool_part { /* a range */
	struct nat_pool_range range;
	nat_u128 before; /* addresses of the parts before it */
};

struct nat_blocks;

struct nat_pool {
	/* constant */
	struct nat *nat;
	struct netns *ns; /* alive as long as an entry or a rule has the pool */
	uint16_t id;
	char name[NAT_POOL_NAME_MAX + 1];
	struct nat_pool_config config; /* its name and ranges are the pool's own */
	struct nat_pool_part *part;    /* [config.n] */
	nat_u128 size;                 /* addresses */
	uint16_t port_lo, port_hi;     /* of blocks, and what a port's use is measured by */
	/* control only */
	struct nat_pool *next; /* of the namespace */
	/* published by control, and constant then */
	struct nat_blocks *blocks; /* NULL: not cut into blocks */
	/* written by all threads, now and then (atomic) */
	uint64_t capacity __rte_cache_aligned; /* control writes it */
	uint32_t batch; /* a thread keeps so many of used to itself; control writes it */
	bool alarm;
	int64_t used[NAT_CLASSES], high;
	uint64_t exhausted_ns; /* when exhaustion was last told */
	struct nat_pool_counters counters[]; /* [threads] */
};

/* The nth address, n < size. */
void nat_pool_address(const struct nat_pool *pool, nat_u128 n, struct tuple_addr *out);

/* The other way round, of an address that it has. */
nat_u128 nat_pool_index(const struct nat_pool *pool, const struct tuple_addr *addr);

/* Control: the pool is cut into that many blocks. */
void nat_pool_set_blocks(struct nat_pool *pool, struct nat_blocks *blocks, uint32_t n);

/* n more (or less) ports or blocks of the class are in use. With nothing held. */
void nat_pool_count(struct nat_thread *t, struct nat_pool *pool, enum nat_class class, int n);

/* A connection was refused, as nothing was free. With nothing held. */
void nat_pool_exhausted(struct nat_thread *t, struct nat_pool *pool);

/* The pool of that number, which an entry or mapping has. */
static inline struct nat_pool *
nat_pool_of(const struct nat *nat, uint16_t id)
{
	return __atomic_load_n(&nat->pool[id], __ATOMIC_RELAXED);
}

#endif
