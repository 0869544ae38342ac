/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual namespaces: identity, life cycle, knobs and counters. A namespace owns no table.
 *
 * Life cycle: ALIVE → DYING → DEAD. All functions are for the control thread, except where a header
 * says "worker". A batch is created or destroyed as a whole:
 *
 *   netns_create_batch()   builds all aside, publishes them with one step; a refusal undoes all
 *   netns_kill_batch()     marks all DYING: no worker admits a connection to them after the next
 *                          grace period; the caller has taken their links away before
 *   (caller: one grace period, then one purge of the entry pool for the whole batch)
 *   netns_free_batch()     after one more grace period: DEAD, memory and ids are given back
 *
 * Ids are dense (0 is init), at most NETNS_MAX alive, and are reused; the generation counts the
 * uses of an id, so that what still carries (id, generation) of a dead one never touches its
 * successor.
 */
#ifndef NETNS_H
#define NETNS_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "drop.h"
#include "knobs.h"
#include "lock.h"
#include "rcu.h"

#define NETNS_MAX      65537u /* init and 65,536 more */
#define NETNS_NAME_MAX 63u
#define NETNS_INIT_ID  0u

enum netns_state { NETNS_ALIVE, NETNS_DYING, NETNS_DEAD };

/* Drops of a namespace on one worker; from a preallocated pool, taken at the first drop. */
struct netns_drops {
	uint64_t count[SL_DROP_COUNT];
};

/* A queue of conntrack's, through an array of its own (room.c there). */
struct netns_queue {
	struct sl_lock lock;
	uint32_t head, tail; /* guarded by lock; head is read without it too. 0: none */
};

/*
 * Counters of a namespace on one thread; written by that thread alone, read by any. The queue in
 * them is written by any, under its lock.
 */
struct netns_counters {
	uint64_t packets; /* received on its links */
	uint64_t bytes;
	int64_t entries;  /* inserted less freed by this thread: only the sum of all has meaning */
	uint64_t created; /* entries inserted, ever */
	struct netns_drops *drops; /* NULL until the first drop */
	uint64_t answer_due; /* ns of the clock: when the next answer of `reject` is due */
	struct netns_queue unassured; /* connections of the thread that are not ASSURED, by age */
	uint32_t common; /* entries beyond the reserve, as `entries`: the sum modulo 2^32 is a
			    signed number */
} __rte_cache_aligned;

struct netns {
	/* constant from create to free */
	uint32_t id;
	uint32_t gen;
	struct netns_counters *counters; /* [threads of the registry] */
	struct netns_registry *registry;
	char name[NETNS_NAME_MAX + 1];
	/* written by control, read by workers */
	struct knobs *knobs;       /* never changed in place; read with netns_knobs() */
	uint8_t state;             /* enum netns_state; read with netns_alive() */
	bool had_reserve;          /* has a sluice.conntrack_reserve, or had one before */
	struct ruleset *rules;     /* lib/rules'; NULL: no rules. RCU */
	struct nat_netns *nat;     /* lib/nat's; NULL: none. RCU */
	struct own_set *own;       /* the application's: addresses of NAT; NULL: none. RCU */
	struct connlimit_netns *limits; /* lib/connlimit's; NULL: none. RCU */
	struct tcp_netns *tcp;     /* lib/tcp_ehash's; NULL: none. RCU */
	/* control only */
	unsigned int n_links;
	void *app;          /* the application's, e.g. its list of links */
	struct nat_pool *pools; /* lib/nat's: a list */
	struct rule_store *rule_list; /* the application's: the rules as they are edited */
	struct netns *next; /* hash chain of names, or the batch being destroyed */
};

struct sl_err;
struct netns_registry;

/*
 * threads: number of threads that count (workers and one for control, index threads - 1).
 * drop_blocks: size of the pool of drop blocks. NULL with err filled when memory is not to be had.
 * The namespace `init` exists from the start, with the kernel's default knobs.
 */
struct netns_registry *netns_registry_create(unsigned int threads, unsigned int drop_blocks,
	struct sl_err *err);
void netns_registry_destroy(struct netns_registry *r);
unsigned int netns_registry_threads(const struct netns_registry *r);

struct netns *netns_init_ns(struct netns_registry *r);
struct netns *netns_find(struct netns_registry *r, const char *name); /* ALIVE ones only, or NULL */
struct netns *netns_by_id(struct netns_registry *r, uint32_t id);     /* any state, or NULL */
unsigned int netns_count(const struct netns_registry *r);             /* ALIVE ones, with init */

/* The next ALIVE namespace in order of ids at or after *id, which moves behind it; NULL at the
 * end. */
struct netns *netns_next(struct netns_registry *r, uint32_t *id);

/* 0, or refuses with -EINVAL and the name in the message: 1–63 of A-Za-z0-9._-, and no word of the
 * command language (the caller checks that). */
int netns_name_valid(const char *name, struct sl_err *err);

/*
 * All or nothing: on a refusal (invalid name, taken, twice in the batch: the message says which;
 * too many; memory) nothing has changed. Knobs are inherited from parent, but for those that
 * knobs_drop_own() resets. out[i], when out is not NULL, is set for each. 0 or -errno.
 */
int netns_create_batch(struct netns_registry *r, const char *const names[], unsigned int n,
	const struct netns *parent, struct netns **out, struct sl_err *err);

/* Marks all DYING and takes their names out, so that these can be used again at once. The caller
 * has checked that each is ALIVE, in the batch once, and not init. */
void netns_kill_batch(struct netns_registry *r, struct netns *const ns[], unsigned int n);

/* After the grace period that follows the purge. */
void netns_free_batch(struct netns_registry *r, struct netns *const ns[], unsigned int n);

/* Replaces the knobs of one namespace by a changed copy. The old block, if no other namespace
 * shares it, goes after a grace period: on the helper thread, or at once when that is not running,
 * which it may only be where no worker reads at the same time (replay, tests). 0 or -ENOMEM. */
int netns_set_knobs(struct netns *ns, const struct knobs *changed, struct sl_err *err);

/* Sums over the threads; a snapshot that may be torn between threads, not within a counter. */
struct netns_totals {
	uint64_t packets, bytes, created;
	int64_t entries;
	uint64_t drops[SL_DROP_COUNT];
};
void netns_totals(const struct netns *ns, struct netns_totals *out);

/* Drops that no namespace could be charged with (no link, or the pool of blocks was empty). */
void netns_unattributed_drops(const struct netns_registry *r, uint64_t out[SL_DROP_COUNT]);

/* ---- worker ---- */

static inline const struct knobs *
netns_knobs(const struct netns *ns)
{
	return sl_rcu_dereference(&ns->knobs);
}

static inline bool
netns_alive(const struct netns *ns)
{
	return __atomic_load_n(&ns->state, __ATOMIC_ACQUIRE) == NETNS_ALIVE;
}

/* Adds to a counter that only the calling thread writes and others may read at any time. */
#define netns_counter_add(p, n)                                                                    \
	__atomic_store_n((p), __atomic_load_n((p), __ATOMIC_RELAXED) + (n), __ATOMIC_RELAXED)

/* Counts a drop of a packet of `ns` (NULL: of none) on thread `thread`. Takes no lock but at the
 * namespace's first drop on the thread. */
void netns_count_drop(struct netns_registry *r, struct netns *ns, unsigned int thread,
	enum sl_drop reason);

/* Entries of the namespace now: exact when quiet, else off by at most a burst for each worker. */
static inline int64_t
netns_entries(const struct netns *ns, unsigned int threads)
{
	int64_t sum = 0;
	unsigned int i;

	for (i = 0; i < threads; i++)
		sum += __atomic_load_n(&ns->counters[i].entries, __ATOMIC_RELAXED);
	return sum;
}

#endif
