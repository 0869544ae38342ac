/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection tracking: the contract. One table and one entry pool for all namespaces.
 *
 * Threads: each thread that touches entries has a ct_thread of its own, numbered 0 … threads - 1
 * (the workers, and the last for control). A worker is an RCU reader; the control thread is not,
 * and needs not to be, since entries and bucket lines are type-stable, but it alone may resize.
 *
 * The packet path:
 *
 *   ct_lookup_…()      find the entries of a burst
 *   ct_track()         a hit: the state machine, under the entry's lock
 *   ct_begin()         a miss: makes an EMBRYO that only the caller knows
 *   (the application weighs and binds it: rules, limits, NAT)
 *   ct_commit()        inserts both tuples, or finds that another worker was first
 *   ct_abort()         gives an EMBRYO back
 *
 * No function takes two entry locks. Lock order: an entry's lock and stripes are never held
 * together; under an entry's lock only leaf locks are taken.
 */
#ifndef CONNTRACK_H
#define CONNTRACK_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_prefetch.h>

#include "clock.h"
#include "entry.h"
#include "hash.h"
#include "netns.h"
#include "pkt.h"

struct ct;
struct ct_thread;
struct sl_err;

#define CT_BUCKETS_MIN 8192u       /* eight references to a line, 1,024 stripes */
#define CT_BUCKETS_MAX (1u << 27)
#define CT_ENTRIES_MAX (1u << 25)
#define CT_DESTROY_MAX 32u

/* When ct_ops.adjust is called for a packet. */
enum ct_adjust {
	CT_ADJUST_BEFORE, /* the state machine sees it */
	/* from here on CT_OK is to be returned */
	CT_ADJUST_AFTER,   /* the machine has taken it */
	CT_ADJUST_INVALID, /* the machine calls it INVALID: it may pass nevertheless */
	CT_ADJUST_ERROR,   /* it is an ICMP error about the connection */
};

/* What happens to a connection, and what of it has changed (CT_CHANGED_…, with an update). */
enum ct_event { CT_EVENT_NEW, CT_EVENT_UPDATE, CT_EVENT_DESTROY };

#define CT_CHANGED_STATE  0x01 /* of the protocol */
#define CT_CHANGED_STATUS 0x02
#define CT_CHANGED_MARK   0x04

enum ct_verdict {
	CT_OK,
	CT_INVALID, /* pkt.reason and PKT_CT_INVALID are set; the packet belongs to no connection */
	CT_DROP,    /* pkt.reason is set */
	CT_MISS,    /* the entry has gone meanwhile, was past its deadline (and is destroyed by
		       this), or the packet re-opens it: treat as a miss */
	CT_LOST,    /* ct_commit: the flow exists; pkt.ct, ct_gen, ct_dir are the winner's */
	CT_CLASH,   /* ct_try_commit: the reply tuple is another connection's */
};

/*
 * What conntrack tells the application. Each may be NULL.
 *
 *   destroyed  n connections (CT_DESTROY_MAX at most) are gone: what the application has stored
 *              in the entries is to be given back. Called once for each, with nothing held, by
 *              whoever owns the destruction: both tuples are unlinked, and the entries are freed
 *              when this returns. Many at once, so that cache misses overlap.
 *   aborted    an embryo came to nothing (ct_abort(), or a commit that is neither CT_OK nor
 *              CT_CLASH): the same, but it has never been in the table.
 *   closed     a packet has brought a TCP connection to TIME_WAIT or CLOSE. Called under the
 *              entry's lock, so it may take leaf locks only; may be called more than once.
 *   adjust     a packet of a connection with CT_SEQADJ, under its lock; it may be changed.
 *              CT_OK: it goes on. CT_DROP: it is refused, with pkt.reason. CT_MISS: the connection
 *              is to be destroyed, and the packet treated as a miss.
 *   tcp_state  a packet has changed the state of a TCP connection; likewise under its lock, after
 *              closed. False: the connection is to be forgotten at once, the packet passes.
 */
struct ct_ops {
	void (*destroyed)(void *app, struct ct_thread *t, struct ct_entry *const e[],
		unsigned int n);
	void (*aborted)(void *app, struct ct_thread *t, struct ct_entry *e);
	void (*closed)(void *app, struct ct_thread *t, struct ct_entry *e);
	bool (*tcp_state)(void *app, struct ct_thread *t, struct ct_entry *e);
	enum ct_verdict (*adjust)(void *app, struct ct_thread *t, struct ct_entry *e,
		struct pkt *p, enum ct_adjust when);
	/*
	 * Called while ct_listen() is on, may be NULL without it: NEW before anyone else can find
	 * the entry (under its stripes), UPDATE under its lock, DESTROY by the owner of the
	 * destruction, before destroyed(). So the calls for one connection come in order. It copies
	 * what it wants of the entry, takes no lock and changes nothing.
	 */
	void (*event)(void *app, struct ct_thread *t, const struct ct_entry *e,
		enum ct_event event, unsigned int changed);
	void *app;
};

struct ct_config {
	uint32_t max_entries; /* nf_conntrack_max of all */
	uint32_t buckets;     /* nf_conntrack_buckets: rounded up to 2^n */
	unsigned int threads;
	enum sl_hash_backend hash;
	uint64_t hash_seed; /* 0: random */
	struct ct_ops ops;
	struct netns_registry *netns; /* whose namespaces own the entries */
};

/* NULL with err filled: a value out of range, or too little memory (the message says how much). */
struct ct *ct_create(const struct ct_config *config, struct sl_err *err);
void ct_destroy(struct ct *ct); /* no thread may use it any more */

struct ct_thread *ct_thread(struct ct *ct, unsigned int index);
unsigned int ct_thread_index(const struct ct_thread *t);

/* ---- packet path ---- */

/*
 * Lookup of the packets of a burst (at most 64), in stages between which the caller has other work
 * to do. Packets without PKT_IP, or with PKT_L4_BAD, PKT_UNTRACKED or PKT_DROPPED, are passed over.
 *
 *   start    for the burst, some packets at a time: computes pkt.hash of pkt.tuple and prefetches
 *            the bucket lines
 *   forget   takes the start of n packets back, before it is made anew with other tuples
 *   match    of some packets: finds a candidate by its tag and prefetches it; returns of how many
 *            the search must go on in chains
 *   chains   for those of a match that has returned any
 *   finish   sets pkt.ct, ct_gen and ct_dir, or ct = NULL. A hit is an entry that was LIVE and of
 *            equal key; whoever locks it verifies it again.
 *
 * All within one RCU read side. ct_lookup_bulk() is all in one.
 */
void ct_lookup_start(struct ct_thread *t, struct pkt *p, unsigned int n);
void ct_lookup_forget(struct ct_thread *t, unsigned int n);
unsigned int ct_lookup_match(struct ct_thread *t, struct pkt *p, unsigned int n);
void ct_lookup_chains(struct ct_thread *t, struct pkt *p, unsigned int n);
void ct_lookup_finish(struct ct_thread *t, struct pkt *p);
void ct_lookup_bulk(struct ct_thread *t, struct pkt *p, unsigned int n);

/* After match: no entry has been found so far, so that a new connection is to be expected. */
static inline bool
ct_lookup_missed(const struct pkt *p)
{
	return p->ct_ref == 0;
}

/* Of a tracked packet, whose own lines of the entry are there: fetches the others. */
static inline void
ct_fetch_others(const struct pkt *p)
{
	rte_prefetch0(p->ct_dir == CT_ORIGINAL ? &p->ct->reply : &p->ct->orig);
	rte_prefetch0(&p->ct->ns);
}

/*
 * The first packets of a burst, behind match, as finish and ct_track() would treat them, as long as
 * each is simply part of an established TCP connection. Returns how many those were; the next one,
 * if any, has to go through the stages one by one, then the rest may be tried again.
 */
unsigned int ct_track_plain(struct ct_thread *t, struct pkt *p, unsigned int n, struct sl_now now);

/* A hit: state machine, counters, deadline. pkt.ct_dir is the packet's direction. */
enum ct_verdict ct_track(struct ct_thread *t, struct pkt *p, struct sl_now now);

/*
 * An ICMP error, whose tuple is the inverse of the packet's inside: what the answer to that packet
 * has, with the translations that it has met. RELATED when it belongs to a connection and comes
 * from a side that can know of it. Neither refreshes nor changes the entry (RFC 5508 REQ-6).
 * CT_OK with PKT_CT_RELATED and ct_dir = the direction of the error; or CT_INVALID.
 */
enum ct_verdict ct_track_error(struct ct_thread *t, struct pkt *p, struct sl_now now);

/* A packet of a broken transport header (PKT_L4_BAD), which is not looked up: counts it with the
 * other INVALID ones, marks it so, and keeps its reason. */
enum ct_verdict ct_track_bad(struct ct_thread *t, struct pkt *p);

/*
 * A miss: takes an entry from the pool, checks the maxima (CT_DROP: CT_TABLE_FULL, CT_NETNS_FULL,
 * when there is no unassured entry either that could make way), lets the protocol decide
 * (CT_INVALID) and runs its machine on the packet. CT_OK: pkt.ct is an EMBRYO, which must go to
 * ct_commit() or ct_abort(). CT_LOST: the packet cannot start a connection, but belongs to one that
 * the lookup had missed, as for ct_commit().
 */
enum ct_verdict ct_begin(struct ct_thread *t, struct pkt *p, struct sl_now now);

/*
 * The tuple of the answers is the inverted one, of pkt.zone_reply with pkt.zone_set.
 *
 * Whoever gives the embryo another reply tuple than the inverted original sets pkt.ct_reply_hash
 * to 0.
 *
 * CT_OK: LIVE. CT_LOST: another worker was first; the embryo was given back, and pkt.ct, ct_gen and
 * ct_dir are the winner's. CT_DROP: CT_CHAIN_LONG, CT_CLASH (its reply tuple is another
 * connection's), CT_TABLE_FULL or CT_NETNS_FULL (what could have made way has gone meanwhile), the
 * embryo given back.
 *
 * A full namespace makes room by early drop: its oldest entry that is not ASSURED is destroyed,
 * whichever worker inserted it; O(threads). The maximum of all is full for a namespace when the
 * entries of all beyond their reserves reach what the reserves leave.
 */
enum ct_verdict ct_commit(struct ct_thread *t, struct pkt *p);
void ct_abort(struct ct_thread *t, struct pkt *p);

/* Under the entry's lock: the caller has changed something of the entry, which listeners are told.
 * Of an EMBRYO nothing is told, since its NEW is still to come. */
void ct_changed(struct ct_thread *t, const struct ct_entry *e, unsigned int changed)
	SL_REQUIRES(&e->lock);

/*
 * The same for who has other reply tuples to offer: CT_CLASH, and the embryo stays, instead of
 * CT_DROP with CT_CLASH. pkt.ct_reply_hash is the hash of the reply tuple (ct_tuple_hash()) or 0.
 */
enum ct_verdict ct_try_commit(struct ct_thread *t, struct pkt *p);

/*
 * Whether some LIVE entry has the tuple, seen without a lock: a hint, which an insert by
 * ct_try_commit() decides. The hash of the tuple is asked for first, and prefetched for.
 */
uint64_t ct_tuple_hash(const struct ct_thread *t, const struct tuple *tuple);
void ct_tuple_prefetch(const struct ct_thread *t, const struct tuple *tuple, uint64_t hash);
bool ct_tuple_taken(const struct ct_thread *t, const struct tuple *tuple, uint64_t hash);

/*
 * For the rules. Of packets with pkt.rules ct_track() and ct_track_error() set pkt.ct_status to the
 * entry's status and pkt.ct_verdict to the verdict that is kept for the packet's direction, as they
 * were before the packet; CT_OLD: none, since the connection had been answered before there were
 * rules.
 *
 * The functions below are for a tracked packet, or an embryo of the caller's. They lock the entry
 * themselves, and do nothing (return false) when the connection has gone meanwhile.
 */
#define CT_OLD UINT32_MAX

bool ct_mark_get(const struct pkt *p, uint32_t *mark);
bool ct_mark_set(struct ct_thread *t, const struct pkt *p, uint32_t mark); /* told if it changes */
bool ct_zone_get(const struct pkt *p, uint32_t *zone); /* as the one number that listings show */

/* The tuple of the other direction than the packet's. */
bool ct_far_end(const struct pkt *p, struct tuple *far);

/* Keeps a verdict for the packet's direction, or for both. */
bool ct_verdict_set(const struct pkt *p, bool both, uint32_t verdict);

/* For what the application keeps in the entry: locks it, if there is need. Under it only leaf locks
 * are taken. Nothing is held when it returns false. */
bool ct_hold(const struct pkt *p);
void ct_release(const struct pkt *p);

/* Destroys the connection of a tracked packet, which counts as deleted. */
void ct_kill(struct ct_thread *t, const struct pkt *p);

/*
 * Looks at some entries of the pool and destroys those past their deadline. `idle`: the caller has
 * nothing else to do. Returns how many were destroyed. Call once per poll.
 */
unsigned int ct_sweep(struct ct_thread *t, bool idle, struct sl_now now);

/* ---- control ---- */

/*
 * Entries LIVE or DYING of all namespaces. Counted by each thread for itself, without a shared
 * write: exact when quiet. Under load the sum is taken over counters that move on meanwhile, so it
 * is off by at most the entries that come and go while it is taken. A maximum is therefore exceeded
 * by at most one entry for each worker but one: each may admit one more by the same sum.
 */
uint64_t ct_count(const struct ct *ct);

/* Whether ops.event is called. Threads follow within a burst or so. */
void ct_listen(struct ct *ct, bool on);

uint32_t ct_max(const struct ct *ct);

/* -EINVAL: out of range, or less than the reserves; -ENOMEM. */
int ct_set_max(struct ct *ct, uint32_t max, struct sl_err *err);

/*
 * sluice.conntrack_reserve of a namespace is about to change: -ENOSPC when the reserves would
 * exceed the maximum, else it counts from now on. ct_reserve_settle(), after the knob is published,
 * has the entries that are there count as what they are now. ct_reserve_end(): the namespace is
 * about to be freed, and has no entries.
 */
int ct_reserve(struct ct *ct, struct netns *ns, uint32_t from, uint32_t to, struct sl_err *err);
void ct_reserve_settle(struct ct_thread *t, struct netns *ns);
void ct_reserve_end(struct ct_thread *t, struct netns *ns);

uint32_t ct_buckets(const struct ct *ct);

/*
 * Resize while traffic flows, in slices: start makes the new lines (-EINVAL out of range, -EBUSY
 * while another resize goes on, -ENOMEM), and until the first slice cancel gives them back; each
 * slice moves about so many lines, at least one in 1,024 of them, and returns true while there are
 * more; then finish publishes the new table. After a grace period the caller frees the old one with
 * release, in slices too, until it returns false. n is rounded up to 2^n: ct_resize_target() is
 * what ct_buckets() will be at the end.
 */
int ct_resize_start(struct ct *ct, uint32_t buckets, struct sl_err *err);
void ct_resize_cancel(struct ct *ct);
uint32_t ct_resize_target(const struct ct *ct);
bool ct_resize_busy(const struct ct *ct); /* from start until release is done */
bool ct_resize_slice(struct ct_thread *t, unsigned int lines);
void ct_resize_finish(struct ct *ct);
bool ct_resize_release(struct ct_thread *t, unsigned int lines);

/*
 * A walk over all entries, in the order of the pool, in slices. Entries inserted during the walk
 * may be missed; one that lives through it is visited exactly once.
 */
struct ct_walk {
	uint32_t next;
	uint32_t end;      /* high-water mark at the start */
	uint64_t start_ns; /* entries made later are passed over */
};
void ct_walk_start(const struct ct *ct, struct ct_walk *w, struct sl_now now);

/* A copy of what a listing prints, taken under the entry's lock. */
struct ct_view {
	struct ct_entry entry; /* lock and pool-internal fields have no meaning */
	uint32_t index;
	int32_t left_ms;
};

/* What a walk selects; NULL or negative where anything matches. */
struct ct_filter {
	const struct netns *ns;  /* NULL: all */
	bool (*match)(const struct ct_view *v, const void *arg); /* NULL: all */
	const void *match_arg;
};

/* What a walk calls for each entry. False: stop early (the entry counts as visited). */
struct ct_visitor {
	bool (*visit)(const struct ct_view *v, void *arg);
	void *arg;
};

/*
 * Visits at most `budget` pool slots; for each LIVE entry of the filter that is not past its
 * deadline calls the visitor with nothing held. True while there is more to walk.
 */
bool ct_walk_slice(struct ct_thread *t, struct ct_walk *w, const struct ct_filter *f,
	unsigned int budget, struct sl_now now, const struct ct_visitor *visitor);

/* The same, and destroys what the filter selects. Adds the number destroyed to *destroyed. */
bool ct_flush_slice(struct ct_thread *t, struct ct_walk *w, const struct ct_filter *f,
	unsigned int budget, struct sl_now now, uint64_t *destroyed);

/* Destroys all entries of namespaces that are not ALIVE: the one walk of a delete batch. */
bool ct_purge_slice(struct ct_thread *t, struct ct_walk *w, unsigned int budget,
	uint64_t *destroyed);

/*
 * Own tables: a scope may have a table of its own for its TCP connections, so that the chains of
 * others are not in its way. Entries stay in the one pool, so walks, maxima and expiry see no
 * difference.
 *
 * Create before the scope has links, destroy when they are gone and no entry is left, a grace
 * period after the last worker could look one up (a scope without one is left alone). buckets:
 * 1 … CT_OWN_BUCKETS_MAX, rounded up to 2^n. -EINVAL, -EEXIST, -ENOMEM.
 */
#define CT_OWN_BUCKETS_MAX (1u << 24)
int ct_own_create(struct ct *ct, uint32_t scope, uint32_t buckets, struct sl_err *err);
void ct_own_destroy(struct ct_thread *t, uint32_t scope);

/* Buckets of the scope's own table; 0: it shares the one of all. */
uint32_t ct_own_buckets(const struct ct *ct, uint32_t scope);

/*
 * Destroys what is in an own table whose namespace is DYING, looking at no other: a slice of some
 * lines from *line on, which begins at 0 and is moved. True while there is more.
 */
bool ct_own_purge_slice(struct ct_thread *t, uint32_t scope, uint32_t *line, unsigned int lines,
	uint64_t *destroyed);

/* Counters of one thread, as conntrack -S names them where it has them. Written by the thread. */
struct ct_stats {
	uint64_t lookups, found; /* packets that went through the lookup; that had an entry */
	uint64_t insert, insert_failed;
	uint64_t race_lost;     /* another worker inserted the flow first */
	uint64_t expired;       /* destroyed by lookup or sweep */
	uint64_t early_drop;    /* destroyed, unassured, to make room for a new one */
	uint64_t deleted;       /* destroyed by the control side or the state machine */
	uint64_t invalid;
	uint64_t chain_too_long;
	uint64_t swept;         /* pool slots looked at */
	uint64_t walked;        /* the same by ct_purge_slice() */
};
void ct_stats(const struct ct *ct, unsigned int thread, struct ct_stats *out);

/* Memory in bytes, and the shape of the table; for `show memory`. */
struct ct_memory {
	uint64_t pool_present, lines_present, walk_present;
	uint64_t own_present; /* bucket lines of own tables */
	uint32_t own_tables;
	uint32_t high_water, lines, overflow_lines_used;
	uint32_t longest_chain; /* lines */
};

/* By a scan of up to 65,536 lines, evenly spread over larger tables. Not for the packet path. */
void ct_memory(const struct ct *ct, struct ct_memory *out);

/* The same without the scan: overflow_lines_used and longest_chain are 0. */
void ct_memory_sizes(const struct ct *ct, struct ct_memory *out);

#endif
