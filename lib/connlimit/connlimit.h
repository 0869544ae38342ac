/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits on connections: the contract.
 *
 * A count (`ct count`) knows how many connections of each key are live, exactly. A connection is
 * weighed once, when it is admitted: it is charged to the counter of its key, and the charge is
 * noted in its entry. It is given back once, when the connection stops counting (TCP in TIME_WAIT
 * or CLOSE does not, as in netfilter), or its entry ends in whatever way. Nothing is counted by
 * packets, nothing is looked for, and a connection from before the count existed is never
 * subtracted.
 *
 * A rate (`limit rate`) is a token bucket, or one for each key.
 *
 * Threads are numbered as conntrack's. Objects are made, changed and freed by the control thread;
 * workers use those that they find through RCU.
 */
#ifndef CONNLIMIT_H
#define CONNLIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "entry.h"
#include "hash.h"
#include "netns.h"
#include "tuple.h"

struct connlimit;
struct connlimit_thread;
struct connlimit_count;
struct connlimit_rate;
struct sl_err;

#define CONNLIMIT_KEYS_MAX (1u << 25)

struct connlimit_config {
	unsigned int threads; /* as conntrack's */
	enum sl_hash_backend hash;
	uint64_t hash_seed; /* 0: random */
};

/* Takes address space only: memory for counters is made present by connlimit_set_max(). NULL with
 * err filled. */
struct connlimit *connlimit_create(const struct connlimit_config *config, struct sl_err *err);
void connlimit_destroy(struct connlimit *cl); /* no thread may use it any more; NULL is allowed */
struct connlimit_thread *connlimit_thread(struct connlimit *cl, unsigned int index);

/* How many keys may be counted in all namespaces together, at least. Never shrinks. 0, -EINVAL (0,
 * or more than CONNLIMIT_KEYS_MAX), -ENOMEM. */
int connlimit_set_max(struct connlimit *cl, uint32_t keys, struct sl_err *err);

/*
 * The namespace's own part, at ns->limits: how many keys it has in use. Made with its first count,
 * and freed a grace period after its last connection is gone, before the namespace is. Control.
 * 0 or -ENOMEM; once it is there it stays and 0 is returned.
 */
int connlimit_netns_init(struct connlimit *cl, struct netns *ns, struct sl_err *err);
void connlimit_netns_free(struct netns *ns); /* none is allowed */

/* Keys that the namespace has in use now; off by what other threads do at this moment. */
uint32_t connlimit_netns_keys(const struct netns *ns);

/* What connections are told apart by. */
struct connlimit_key {
	uint8_t family; /* TUPLE_IPV4, TUPLE_IPV6; 0: not at all, one count or rate for both */
	bool daddr;     /* by destination, else by source */
	uint8_t prefix; /* bits of the address that count */
};

/* ---- counts ---- */

struct connlimit_count_config {
	struct netns *ns; /* connlimit_netns_init() was called for it */
	struct connlimit_key by;
	uint32_t limit;
	bool over;     /* `ct count over N`: matches above N; else up to N */
	uint64_t rule; /* the application's, for listings: the rule's handle */
};

/* 0, -EINVAL (prefix too long), -ENOMEM. Connections of other counts never share a key with it. */
int connlimit_count_create(struct connlimit *cl, const struct connlimit_count_config *config,
	struct connlimit_count **out, struct sl_err *err);

/* Changes limit, over and rule; `ns` and `by` have to be the same. What is counted stays. */
void connlimit_count_change(struct connlimit_count *c,
	const struct connlimit_count_config *config);

/*
 * Another count of the same connections as `from`, with a limit of its own; `ns` and `by` have to
 * be the same. A connection is charged once, by whichever of them it is weighed. Each is freed for
 * itself; listings show the last made. 0 or -ENOMEM.
 */
int connlimit_count_share(struct connlimit *cl, struct connlimit_count *from,
	const struct connlimit_count_config *config, struct connlimit_count **out,
	struct sl_err *err);

/*
 * No worker finds it any more (a grace period has passed). Connections that are charged to it keep
 * their counters until they end, out of sight; a later count never meets them.
 */
void connlimit_count_free(struct connlimit *cl, struct connlimit_count *c);

enum connlimit_verdict {
	CONNLIMIT_MATCH,
	CONNLIMIT_NO_MATCH, /* or the packet is of another family */
	CONNLIMIT_FULL,     /* no counter is left: sluice.connlimit_max, its own or of all */
	CONNLIMIT_MANY,     /* the connection is charged to three counts already */
};

/*
 * Fetches ahead what a later connlimit_weigh() of a count and a tuple will touch, and notes what
 * was computed for it. It is a hint: used if it fits. All zero: none.
 */
struct connlimit_ahead {
	const struct connlimit_count *count;
	uint64_t word, shape;
	void *bucket;
	struct tuple_addr addr; /* of IPv6, masked */
	uint32_t hash;
};
void connlimit_prefetch(struct connlimit_thread *t, const struct connlimit_count *c,
	const struct tuple *seen, struct connlimit_ahead *out);

/*
 * Weighs a connection: charges it to the count's key of `seen`, which is the tuple that the rule
 * sees. The caller owns `e` (EMBRYO) or holds its lock. Whether it matches or not the charge stays
 * until connlimit_release(); on FULL and MANY nothing was charged, and the caller has to refuse the
 * connection, since a limit that does not count is none. Weighed twice by one count, an entry is
 * charged once. `ahead` may be NULL.
 */
enum connlimit_verdict connlimit_weigh(struct connlimit_thread *t, struct connlimit_count *c,
	const struct tuple *seen, struct ct_entry *e, const struct connlimit_ahead *ahead);

/* Gives back all that the entry is charged. The caller owns `e` or holds its lock; takes only leaf
 * locks. Nothing to give back is allowed. */
void connlimit_release(struct connlimit_thread *t, struct ct_entry *e);

/* The same for n entries, whose cache misses overlap. */
void connlimit_release_bulk(struct connlimit_thread *t, struct ct_entry *const e[], unsigned int n);

/* Whether there is anything to give back. */
static inline bool
connlimit_charged(const struct ct_entry *e)
{
	return e->limit[0] != 0;
}

/* Written by the thread, read by any. */
struct connlimit_stats {
	uint64_t weighed;
	uint64_t over;   /* of these, above the limit */
	uint64_t full;
	uint64_t many;
	uint64_t errors; /* charges given back that no counter knew of: always 0, but for a fault */
};
void connlimit_stats(const struct connlimit *cl, unsigned int thread, struct connlimit_stats *out);

struct connlimit_memory {
	uint64_t present; /* bytes */
	uint32_t keys_max, keys;
	uint32_t buckets;
};
void connlimit_memory(const struct connlimit *cl, struct connlimit_memory *out);

/*
 * A walk over the counters in use, in slices, as conntrack's walks: one that is in use all through
 * it is visited exactly once. Control thread.
 */
struct connlimit_view {
	const struct netns *ns;
	struct connlimit_key by;
	struct tuple_addr addr; /* masked; all zero when by.family is 0 */
	uint32_t count;
	uint32_t limit;
	bool over;
	uint64_t refused; /* times that a connection was weighed and found to be above the limit */
	uint64_t rule;
};
struct connlimit_walk {
	uint64_t next; /* 0 at first */
};
#define CONNLIMIT_WALK_END (UINT64_C(1) << 32)

/* At most `budget` buckets, of some counters each; `ns` NULL: of all namespaces. The visitor
 * returns false to stop when those of the bucket have been visited. True while there is more to
 * walk. */
bool connlimit_walk_slice(struct connlimit *cl, struct connlimit_walk *w, const struct netns *ns,
	unsigned int budget, bool (*visit)(const struct connlimit_view *v, void *arg), void *arg);

/* ---- rates ---- */

struct connlimit_rate_config {
	struct connlimit_key by;
	uint64_t rate;  /* packets per unit, not 0 */
	uint32_t unit;  /* seconds */
	uint32_t burst; /* packets, not 0 */
	bool over;      /* matches what is above the rate; else what is within */
	uint32_t keys;  /* room for so many keys (by.family not 0); see rate.c for who gives way */
};

/* 0, -EINVAL (out of range, the message says what), -ENOMEM. */
int connlimit_rate_create(struct connlimit *cl, const struct connlimit_rate_config *config,
	struct connlimit_rate **out, struct sl_err *err);

/* The same once more, with its buckets: each is freed for itself, and it goes with the last. */
struct connlimit_rate *connlimit_rate_share(struct connlimit_rate *r);
void connlimit_rate_free(struct connlimit_rate *r); /* a grace period after it was last found */

/* Whether it matches: takes a token if there is one. A packet of another family never matches. Any
 * thread. */
bool connlimit_rate_match(struct connlimit_rate *r, const struct tuple *seen, struct sl_now now);

/* Keys that gave way to others while they were not at rest, which forgave them something. */
uint64_t connlimit_rate_evicted(const struct connlimit_rate *r);

#endif
