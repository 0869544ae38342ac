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

/*
 * A counter is a cell: its key is the count's id << 32 | the masked address, as it is in the
 * packet. One of IPv6 is KEY_WIDE | id << 32 | its hash, and the next cell is the address.
 */
#define KEY_WIDE     (UINT64_C(1) << 63)
#define COUNT_ID_MAX ((1u << 31) - 1)

struct cell {
	uint64_t key;
	uint32_t count;   /* 0: free, whatever the key */
	uint32_t refused; /* low bits */
};

_Static_assert(sizeof(struct cell) == sizeof(struct tuple_addr), "an address fits in a cell");

/* A line of a bucket. All is guarded by the lock of the first. */
#define LINE_CELLS 3u

struct line {
	struct sl_lock lock;
	uint8_t wide; /* bit set for each counter of two cells */
	uint16_t refused_high[LINE_CELLS];
	uint32_t more; /* next line of the bucket; 0: end */
	uint32_t unused;
	struct cell cell[LINE_CELLS];
} __rte_cache_aligned;

_Static_assert(sizeof(struct line) == RTE_CACHE_LINE_SIZE, "a line is a cache line");

/*
 * A charge: place << 24 | the bits of the hash that buckets are chosen by; 0: none. The place is
 * 1 + the number of the cell in the bucket's chain of lines.
 */
#define CHARGE_HASH_BITS 24u
#define CHARGE_HASH_MASK ((1u << CHARGE_HASH_BITS) - 1)
#define CHAIN_LINES      85u
#define CHAIN_CELLS      (CHAIN_LINES * LINE_CELLS)
_Static_assert(CHAIN_CELLS < 1u << (32 - CHARGE_HASH_BITS), "any place is in a charge");

#define CONNLIMIT_BUCKETS_MIN 1024u
#define CELLS_PER_TWO_BUCKETS 3 /* that the table is made for */
_Static_assert(CONNLIMIT_KEYS_MAX / 2 <= 1u << CHARGE_HASH_BITS, "any bucket is in a charge");

#define CREDIT_MAX 16u /* keys that are taken before the sums over all threads are looked at */

struct connlimit_thread {
	struct connlimit *cl;
	unsigned int index;
	uint32_t credit;
	bool grow; /* the table is to be */
	int64_t keys; /* taken less given back here: only the sum of all has meaning */
	int64_t wide; /* of these, with two cells */
	struct connlimit_stats stats;
	struct sl_ids_cache ids;
} __rte_cache_aligned;

/* Of one namespace and thread. */
struct connlimit_part {
	int64_t keys;
	uint32_t credit;
} __rte_cache_aligned;

struct connlimit_netns {
	unsigned int threads;
	struct connlimit_part part[];
};

struct connlimit_count {
	uint32_t id; /* the same of those that share, and never again that of others */
	bool wide;
	uint64_t word;                /* of its keys */
	struct connlimit_count *next; /* made before it, that it shares with; control only */
	const struct netns *ns;
	struct connlimit_key by;
	struct tuple_addr mask;
	uint64_t limit; /* limit << 1 | over: atomic, so that both change at once */
	uint64_t rule;
};

/* Of those with one id, the last made; NULL: there is none any more. */
struct count_slot {
	uint32_t id;
	struct connlimit_count *last;
};

struct connlimit {
	/* constant after creation, or changed seldom */
	struct sl_hasher hasher;
	struct line *bucket, *more;
	struct connlimit_thread **thread;
	unsigned int n_threads;
	uint32_t max;             /* atomic, as the next */
	uint32_t buckets_present; /* how far the table may grow: 2^n */
	struct sl_region bucket_region, more_region;
	/* control only: in the order of ids */
	struct count_slot *slot;
	uint32_t n_slots, slots_room, n_counts;
	uint32_t last_id;

	/* written by all threads, seldom */
	uint64_t shape __rte_cache_aligned; /* see counter.c */
	struct sl_lock grow_lock;
	struct sl_ids ids __rte_cache_aligned; /* of more[] */
};

/* ---- grow.c ---- */

uint32_t connlimit_buckets(const struct connlimit *cl);

/* A copy of a counter. */
struct counter {
	uint32_t id; /* of its count */
	uint32_t count;
	uint64_t refused;
	struct tuple_addr addr;
};

/* Copies of all counters of a bucket; returns how many. *next is 0 at first, and when it is 2^32
 * all buckets have been read, each counter exactly once that was there all the time. */
unsigned int connlimit_read(struct connlimit *cl, uint64_t *next, struct counter out[CHAIN_CELLS]);

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
