/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of connlimit: the counters. For the files of this folder and its tests. */
#ifndef CONNLIMIT_PRIVATE_H
#define CONNLIMIT_PRIVATE_H

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "connlimit.h"
#include "ids.h"
#include "lock.h"
#include "mem.h"

/* All bytes count and there is no padding. The family is the count's. */
struct counter_key {
	uint32_t ns_id, ns_gen;
	uint32_t count_id, count_gen;
	struct tuple_addr addr; /* masked */
};

_Static_assert(sizeof(struct counter_key) == 32, "a key has no padding");

/*
 * How many connections of one key are live. In use while count > 0, and then in the chain of its
 * bucket; all is guarded by the bucket's lock, but for `hash`, which is constant while in use, so
 * that whoever has a charge finds the bucket from the counter.
 */
struct counter {
	struct counter_key key;
	uint32_t next; /* in the bucket's chain; 0: end */
	uint32_t hash;
	uint32_t count;
	uint32_t gen; /* uses of this index: part of it is in each charge */
	uint64_t refused;
	uint64_t unused;
} __rte_cache_aligned;

_Static_assert(sizeof(struct counter) == RTE_CACHE_LINE_SIZE, "a counter is a cache line");

/* A charge: index of the counter << 7 | its generation's low bits. 0: none, as index 0 is not
 * used. */
#define CHARGE_GEN_BITS 7u
#define CHARGE_GEN_MASK ((1u << CHARGE_GEN_BITS) - 1)
_Static_assert(CONNLIMIT_KEYS_MAX <= 1u << (32 - CHARGE_GEN_BITS), "an index fits in a charge");

#define CONNLIMIT_BUCKETS_MIN 1024u
#define CONNLIMIT_PER_BUCKET  4u /* counters, that the table is made for */

#define EXPECTED_MAX 64u /* new keys that are fetched ahead for */

/*
 * The counters of a bucket, by tags of their hashes, so that only the one that is looked for has to
 * be fetched; all is guarded by the lock, and read without it for prefetching alone. What does not
 * fit is in a chain. Slots in use are at the front, and all are when there is a chain.
 */
#define BUCKET_SLOTS 9u

struct bucket {
	struct sl_lock lock;
	uint8_t n; /* slots in use */
	uint16_t tag[BUCKET_SLOTS];
	uint32_t ref[BUCKET_SLOTS];
	uint32_t chain; /* by counter.next; 0: end */
} __rte_cache_aligned;

_Static_assert(sizeof(struct bucket) == RTE_CACHE_LINE_SIZE, "a bucket is a cache line");

struct connlimit_thread {
	struct connlimit *cl;
	unsigned int index;
	int64_t keys; /* taken less given back here: only the sum of all has meaning */
	uint32_t expected; /* new counters that were fetched ahead since one was last taken */
	struct connlimit_stats stats;
	struct sl_ids_cache ids;
} __rte_cache_aligned;

/* Keys of one namespace, by thread. */
struct connlimit_netns {
	unsigned int threads;
	struct {
		int64_t keys;
	} __rte_cache_aligned part[];
};

struct connlimit_count {
	uint32_t id, gen;             /* the same of those that share */
	struct connlimit_count *next; /* made before it, that it shares with; control only */
	const struct netns *ns;
	struct connlimit_key by;
	struct tuple_addr mask;
	uint64_t limit; /* limit << 1 | over: atomic, so that both change at once */
	uint64_t rule;
};

struct connlimit {
	/* constant after creation, or changed seldom */
	struct sl_hasher hasher;
	struct counter *pool;
	struct bucket *bucket;
	struct connlimit_thread **thread;
	unsigned int n_threads;
	uint32_t max;
	uint32_t buckets_present; /* how far the table may grow: 2^n, atomic */
	struct sl_region pool_region, bucket_region;
	/* control only: counts by id, the last made of those that share */
	struct connlimit_count **count;
	uint32_t *count_gen;
	uint32_t n_counts;

	/* written by all threads, seldom */
	uint64_t shape __rte_cache_aligned; /* see counter.c */
	struct sl_lock grow_lock;
	struct sl_ids ids __rte_cache_aligned;
};

/* ---- counter.c ---- */

/* Splits one bucket, if there are more keys than the table is made for, and room for one more. */
void connlimit_grow(struct connlimit *cl);

uint32_t connlimit_buckets(const struct connlimit *cl);

/* A copy of counter i if it is in use. */
bool connlimit_read(struct connlimit *cl, uint32_t i, struct counter *out);

/* ---- connlimit.c ---- */

/* Bits of the address that count, as a mask; false when the prefix is too long for the family. */
bool connlimit_mask(const struct connlimit_key *by, struct tuple_addr *mask);

/* The masked address that `seen` has for the key; the packet is of its family. */
static inline struct tuple_addr
connlimit_addr(const struct connlimit_key *by, const struct tuple_addr *mask,
	const struct tuple *seen)
{
	struct tuple_addr a = by->daddr ? seen->dst : seen->src;

	a.w[0] &= mask->w[0];
	a.w[1] &= mask->w[1];
	a.w[2] &= mask->w[2];
	a.w[3] &= mask->w[3];
	return a;
}

#endif
