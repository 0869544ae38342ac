/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of conntrack: the table, the pool and the threads. For the files of this folder and its
 * tests.
 *
 * Locks, in the order in which they may nest:
 *   stripes   guard the lines of a hash table: slots, chains, versions
 *   ids       leaf: a depot of free indices (ids.h)
 *   entry     guards an entry's changing fields; taken with no stripe held, holds no stripe
 * An index found in a line under its stripe belongs to an entry whose tuples stay as they are until
 * the stripe is released, since unlinking needs it.
 */
#ifndef CT_PRIVATE_H
#define CT_PRIVATE_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <netinet/in.h>

#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "conntrack.h"
#include "ids.h"
#include "mem.h"
#include "proto.h"
#include "rcu.h"
#include "stripe.h"

#define CT_SLOTS       8u    /* references to a line */
#define CT_STRIPES     1024u /* CT_BUCKETS_MIN / CT_SLOTS: each stripe has a line in any table */
#define CT_SWEEP_BATCH CT_DESTROY_MAX

/* Slots that a thread sweeps for each entry it inserts: the pool is gone through once in the time
 * that fills a quarter of it. */
#define CT_SWEEP_PER_INSERT 4u

/*
 * A bucket line. A slot is empty when its reference is 0; a reference is entry index << 1 |
 * direction. Tags are 16 bits of the hash that the line number does not come from. The hash of
 * a tuple with its ends changed differs in the last bit of the tag alone, so where the answers of
 * a connection have just that, one slot stands for both of its tuples: seen from the other side the
 * reference is to the other direction. An overflow line has the same form; `next` chains it (0:
 * end). `version` of the head line changes with each change of its chain.
 */
struct ct_line {
	uint16_t tag[CT_SLOTS];
	uint32_t ref[CT_SLOTS];
	uint32_t version;
	uint32_t next;
	uint64_t unused;
} __rte_cache_aligned;

_Static_assert(sizeof(struct ct_line) == RTE_CACHE_LINE_SIZE, "a bucket line is a cache line");

/* The lines of one size of the hash table. While a resize goes on, `next` is the larger or smaller
 * one and moved[s] says that the lines of stripe s are there. */
struct ct_lines {
	struct ct_line *line;
	uint32_t mask; /* lines - 1 */
	uint32_t stripe_mask; /* CT_STRIPES - 1, or mask where that is less */
	uint32_t chain_max; /* read with ct_chain_max(): raised with nf_conntrack_max */
	uint32_t buckets; /* as asked for, which the lines have at least */
	struct ct_lines *next;
	bool moved[CT_STRIPES];
	size_t present;          /* bytes of the lines */
	struct sl_region region; /* whose they are; none where they are few */
};

/*
 * What walks read of an entry, in an array beside the pool: what passes there is verified in the
 * entry. Fields are written and read as relaxed atomics: `life` mirrors the entry's, `deadline` is
 * never later than the entry's. An id of a namespace has 17 bits.
 */
struct ct_slot {
	uint32_t deadline;
	uint16_t ns_low;
	uint8_t life;  /* enum ct_life; CT_SLOT_NS_HIGH: the id's highest bit */
	uint8_t queue; /* 1 + the thread in whose queue it is (room.c); 0: it is in none */
};

#define CT_SLOT_NS_HIGH 0x80u
#define CT_THREADS_MAX  254u
_Static_assert(NETNS_MAX <= 1u << 17, "an id fits a slot");

/* An entry's place in a queue of unassured ones (room.c), in an array beside the pool. */
struct ct_queued {
	uint32_t next, prev; /* indices; 0: none */
};

struct ct_thread {
	struct ct *ct;
	unsigned int index;
	int64_t entries;        /* inserted less freed here; read by all */
	int64_t common;         /* of these, beyond the reserves; read by all */
	uint32_t victim;        /* where in the pool a namespace above its reserve is sought next */
	uint32_t sweep_next;    /* the part of the pool that this thread sweeps now */
	uint32_t sweep_end;
	uint32_t sweep_credit;  /* slots owed for what was inserted */
	uint32_t expected;      /* new connections that were prefetched for and not yet begun */
	struct ct_stats stats;
	struct sl_ids_cache entry_ids, line_ids;
} __rte_cache_aligned;

struct ct {
	/* constant after creation, or changed seldom */
	struct sl_hasher hasher;
	struct ct_lines *lines; /* RCU; the table of all that have none of their own */
	struct ct_lines **own;  /* by scope, own tables for TCP (RCU); NULL while there are none */
	struct ct_entry *pool;
	struct ct_slot *slot;
	struct ct_queued *queued;
	struct ct_line *overflow;
	struct sl_stripe *stripe; /* [CT_STRIPES] */
	struct ct_thread **thread;
	unsigned int n_threads;
	bool listened; /* ops.event is to be called */
	uint32_t max;
	uint32_t common_max; /* max less all reserves */
	uint64_t reserved;   /* control only: the sum of all reserves */
	uint32_t buckets;
	struct ct_ops ops;
	struct netns_registry *netns;
	struct ct_lines *resizing; /* the new lines between start and finish of a resize */
	struct ct_lines *retired; /* the old lines between finish and release of a resize */
	uint32_t resize_next; /* first stripe not moved; then the first retired line not freed */
	uint32_t resize_buckets;
	uint32_t own_tables;  /* control only, as the next */
	uint64_t own_present; /* bytes of their lines */
	struct sl_region pool_region, slot_region, queued_region, overflow_region, stripe_region;
	struct sl_region own_region;

	/* written by all threads, seldom */
	struct sl_ids entry_ids __rte_cache_aligned;
	struct sl_ids line_ids __rte_cache_aligned;
	struct sl_lock sweep_lock __rte_cache_aligned;
	uint32_t sweep_cursor;  /* guarded by it: where the next part begins */
	uint32_t sweep_pass_ms; /* guarded by it: when the sweep last began at the pool's start */
};

static inline uint32_t
ct_index(const struct ct *ct, const struct ct_entry *e)
{
	return (uint32_t)(e - ct->pool);
}

static inline bool
ct_slot_live(const struct ct_slot *s)
{
	return (__atomic_load_n(&s->life, __ATOMIC_RELAXED) & ~CT_SLOT_NS_HIGH) == CT_LIVE;
}

static inline uint32_t
ct_slot_ns(const struct ct_slot *s)
{
	uint32_t high = __atomic_load_n(&s->life, __ATOMIC_RELAXED) & CT_SLOT_NS_HIGH;

	return __atomic_load_n(&s->ns_low, __ATOMIC_RELAXED) | high << 9;
}

static inline uint8_t
ct_life(const struct ct_entry *e)
{
	return __atomic_load_n(&e->life, __ATOMIC_ACQUIRE);
}

static inline uint16_t
ct_tag(uint64_t hash)
{
	return (uint16_t)(hash >> 48);
}

/* The hash of the tuple that has the ends of this one changed. */
static inline uint64_t
ct_turned_hash(uint64_t hash, const struct tuple *t)
{
	bool same = t->sport == t->dport && memcmp(&t->src, &t->dst, sizeof(t->src)) == 0;

	return unlikely(same) ? hash : hash ^ SL_HASH_TURNED;
}

/* The hashes of both tuples of an entry, or of the second to that of the first. */
static inline uint64_t
ct_reply_hash(const struct ct *ct, const struct ct_entry *e, uint64_t hash)
{
	if (likely(tuple_turned(&e->orig.tuple, &e->reply.tuple)))
		return ct_turned_hash(hash, &e->orig.tuple);
	return sl_hash_ends(&ct->hasher, &e->reply.tuple);
}

static inline void
ct_hashes(const struct ct *ct, const struct ct_entry *e, uint64_t hash[2])
{
	hash[CT_ORIGINAL] = sl_hash_ends(&ct->hasher, &e->orig.tuple);
	hash[CT_REPLY] = ct_reply_hash(ct, e, hash[CT_ORIGINAL]);
}

static inline struct ct_line *
ct_head(const struct ct_lines *l, uint64_t hash)
{
	return &l->line[(uint32_t)hash & l->mask];
}

/*
 * The table that a tuple is in: that of all, or one of `own`, where there are any. A scope has an
 * own one for its TCP connections, or not, as long as it has links, so no tuple ever changes
 * tables. Both tuples of a connection are in the same.
 */
static inline struct ct_lines *
ct_lines_among(struct ct_lines *all, struct ct_lines **own, const struct tuple *key)
{
	struct ct_lines *l;

	/* Of a packet that is nobody's the scope has no meaning. */
	if (unlikely(own != NULL) && key->proto == IPPROTO_TCP && key->scope < NETNS_MAX) {
		l = sl_rcu_dereference(&own[key->scope]);
		if (l != NULL)
			return l;
	}
	return all;
}

static inline struct ct_lines *
ct_lines_of(const struct ct *ct, const struct tuple *key)
{
	return ct_lines_among(sl_rcu_dereference(&ct->lines), sl_rcu_dereference(&ct->own), key);
}

/* All tables share the stripes: they are for writers, which hold them for a moment. */
static inline struct sl_stripe *
ct_stripe(const struct ct *ct, const struct ct_lines *l, uint64_t hash)
{
	return &ct->stripe[(uint32_t)hash & l->stripe_mask];
}

#define CT_LOOKUP_MAX 64u

/* pkt.ct_ref: a reference, or one of these, which are none since index 0 is not used. */
#define CT_REF_NONE 0u /* not there */
#define CT_REF_MORE 1u /* not in the line looked at, but the chain goes on */

static inline bool
ct_ref_any(uint32_t ref)
{
	return ref > CT_REF_MORE;
}

/* Lines that ct_memory() looks at, some milliseconds of work; of a larger table, evenly spread. */
#define CT_MEMORY_SAMPLE 65536u

/* How many lines a chain may have when a new connection is to go into it. */
static inline uint32_t
ct_chain_max(const struct ct_lines *l)
{
	return __atomic_load_n(&l->chain_max, __ATOMIC_RELAXED);
}

/* ---- pool.c ---- */

/* Rounds to what the table takes; -EINVAL when there can be no such table. */
int ct_buckets_round(uint32_t *buckets, struct sl_err *err);

/* ---- table.c ---- */

int ct_lines_create(struct ct_lines **out, uint32_t buckets, uint32_t max, struct sl_err *err);
void ct_lines_destroy(struct ct_lines *l);

/* The bound of chains for a pool of `max` entries. */
void ct_lines_bound(struct ct_lines *l, uint32_t max);

/*
 * Finds the LIVE entry that has `key` as one of its tuples; sets its generation and the direction
 * that has the key. NULL: none was seen; without the stripe held, a concurrent change may have
 * hidden it.
 */
struct ct_entry *ct_find(const struct ct *ct, const struct tuple *key, uint64_t hash, uint32_t *gen,
	unsigned int *dir);

/* Under the stripes of both tuples: the lines alone say that no entry has either. False: they do
 * not, and ct_find() has to. */
bool ct_unknown(const struct ct_lines *l, const uint64_t hash[2]);

/* Under the stripes of both tuples: puts both into the table. 0, or -ENOSPC when a chain is at its
 * bound or overflow lines are used up (then nothing is in the table). */
int ct_link(struct ct_thread *t, struct ct_entry *e, const uint64_t hash[2]);

/* Takes both tuples out, under stripes that it locks. */
void ct_unlink(struct ct_thread *t, struct ct_entry *e, const uint64_t hash[2]);

/* Moves the lines of one stripe to l->next (resize). */
void ct_move_stripe(struct ct_thread *t, struct ct_lines *l, uint32_t stripe);

/* Gives the overflow lines of a table back that no reader or writer can reach any more, of some
 * lines from *line on, which moves; true while there are more. */
bool ct_lines_free_overflow(
	struct ct_thread *t, struct ct_lines *l, uint32_t *line, uint32_t lines);

#define CT_TAG_TURNED 1u
_Static_assert(SL_HASH_TURNED >> 48 == CT_TAG_TURNED, "the hashes of both directions share a line");

/* Whether one slot stands for both tuples. */
static inline bool
ct_one_slot(const uint64_t hash[2])
{
	return ((hash[CT_ORIGINAL] ^ hash[CT_REPLY]) & ~SL_HASH_TURNED) == 0;
}

/* A slot's reference for who has come to it by that tag; 0 stays 0. */
static inline uint32_t
ct_slot_ref(const struct ct_line *l, unsigned int slot, uint16_t tag)
{
	uint32_t ref = __atomic_load_n(&l->ref[slot], __ATOMIC_ACQUIRE);
	uint16_t turned = (__atomic_load_n(&l->tag[slot], __ATOMIC_RELAXED) ^ tag) & CT_TAG_TURNED;

	return likely(ref != 0) ? ref ^ turned : 0;
}

/* The slots of a line that have the tag but for CT_TAG_TURNED, as bits. Empty ones may be among
 * them. */
static inline unsigned int
ct_line_match(const struct ct_line *l, uint16_t tag)
{
#if defined(__SSE2__) && !defined(SL_TSAN)
	__m128i tags = _mm_load_si128((const __m128i *)(const void *)l->tag);
	__m128i equal = _mm_cmpeq_epi16(_mm_or_si128(tags, _mm_set1_epi16(CT_TAG_TURNED)),
		_mm_set1_epi16((short)(tag | CT_TAG_TURNED)));

	return (unsigned int)_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128()));
#else
	unsigned int i, mask = 0;

	for (i = 0; i < CT_SLOTS; i++)
		mask |= (unsigned int)((__atomic_load_n(&l->tag[i], __ATOMIC_ACQUIRE) |
					       CT_TAG_TURNED) == (tag | CT_TAG_TURNED))
			<< i;
	return mask;
#endif
}

/*
 * Compares a key with one of an entry that may just be made anew by another thread; whatever that
 * gives is verified by (life, gen) under the entry's lock. Hence not for thread sanitizer's eyes.
 */
__attribute__((no_sanitize_thread)) static inline bool
ct_key_equal(const struct tuple *a, const struct tuple *b)
{
	typedef uint64_t __attribute__((may_alias, aligned(4))) u64;
	typedef uint32_t __attribute__((may_alias)) u32;
	const u64 *x = (const void *)a, *y = (const void *)b;

	_Static_assert(sizeof(struct tuple) == 44, "five words and a half");
	return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4]) |
		       (((const u32 *)x)[10] ^ ((const u32 *)y)[10])) == 0;
}

/* Whether the reference is to a LIVE entry with that key in that direction; sets its generation,
 * which is read first, so that an entry made anew meanwhile does not pass for the one that was
 * compared. */
static inline bool
ct_ref_is(const struct ct *ct, uint32_t ref, const struct tuple *key, uint32_t *gen)
{
	const struct ct_entry *e = &ct->pool[ref >> 1];

	*gen = __atomic_load_n(&e->gen, __ATOMIC_ACQUIRE);
	return ct_life(e) == CT_LIVE && ct_key_equal(ct_tuple(e, ref & 1), key);
}

/* Whether lines are just being moved to a table of another size. */
static inline bool
ct_resizing(const struct ct *ct)
{
	const struct ct_lines *l = sl_rcu_dereference(&ct->lines);

	return __atomic_load_n(&l->next, __ATOMIC_ACQUIRE) != NULL;
}

/* The entry with that key in one line, as ct_find(). */
struct ct_entry *ct_find_in_line(const struct ct *ct, const struct ct_line *l,
	const struct tuple *key, uint16_t tag, uint32_t *gen, unsigned int *dir);

/* ---- walk.c ---- */

/* Destroys those of n entries (CT_SWEEP_BATCH at most) whose namespaces are not ALIVE; how many. */
unsigned int ct_purge_batch(struct ct_thread *t, const uint32_t index[], unsigned int n);

/* ---- own.c ---- */

void ct_own_fini(struct ct *ct);

/* ---- entry.c ---- */

/* Locks the entry if it is still LIVE and of that generation; false, and not locked, if not. */
static inline bool
ct_lock_live(struct ct_entry *e, uint32_t gen) SL_TRY_ACQUIRE(true, &e->lock)
{
	sl_lock(&e->lock);
	if (likely(ct_life(e) == CT_LIVE && __atomic_load_n(&e->gen, __ATOMIC_RELAXED) == gen))
		return true;
	sl_unlock(&e->lock);
	return false;
}

/* LIVE → DYING, under the entry's lock: the caller owns the destruction and must call ct_reap()
 * with nothing held. */
static inline void
ct_mark_dying(struct ct_entry *e) SL_REQUIRES(&e->lock)
{
	__atomic_store_n(&e->life, CT_DYING, __ATOMIC_RELEASE);
}

/* Destroys n DYING entries that the caller owns: unlink, tell the application, free. */
void ct_reap(struct ct_thread *t, struct ct_entry *const e[], unsigned int n);

/* Counts a packet that has taken effect, where the connection is counted; under the entry's lock,
 * or of an EMBRYO. */
static inline void
ct_account(struct ct_entry *e, unsigned int dir, const struct pkt *p)
{
	struct ct_dir_part *d = ct_dir_part(e, dir);

	if (likely(!(e->status & CT_ACCT)))
		return;
	d->packets++;
	d->bytes += p->ip_bytes;
}

/* For the rules, the entry as it was before this packet. */
static inline void
ct_show_kept(const struct ct_entry *e, struct pkt *p) SL_REQUIRES(&e->lock)
{
	p->ct_status = e->status;
	p->ct_verdict = p->ct_dir == CT_ORIGINAL ? e->orig.verdict : e->reply.verdict;
	if (p->ct_verdict == 0 && (e->status & CT_SEEN_REPLY) && e->orig.verdict == 0)
		p->ct_verdict = CT_OLD;
}

/* Whether anyone wants to know of events. */
static inline bool
ct_listened(const struct ct *ct)
{
	return __atomic_load_n(&ct->listened, __ATOMIC_RELAXED);
}

static inline void
ct_tell(struct ct_thread *t, const struct ct_entry *e, enum ct_event event, unsigned int changed)
{
	t->ct->ops.event(t->ct->ops.app, t, e, event, changed);
}

static inline void
ct_prefetch_entry(const struct ct_entry *e)
{
	__builtin_prefetch(&e->lock, 1);
	rte_prefetch0(&e->orig);
	rte_prefetch0(&e->reply);
	rte_prefetch0(&e->ns);
}

/* ---- room.c ---- */

/* Puts an EMBRYO at the end of the thread's queue of unassured entries of its namespace. */
void ct_queue_add(struct ct_thread *t, const struct ct_entry *e);

/* Takes an entry out of its queue, if it is in one: what has become ASSURED, under its lock, or
 * what is the caller's alone. */
void ct_queue_remove(struct ct *ct, const struct ct_entry *e);

/* What taking it out will touch. */
static inline void
ct_queue_prefetch(const struct ct *ct, const struct ct_entry *e)
{
	const struct ct_queued *l = &ct->queued[ct_index(ct, e)];

	__builtin_prefetch(&ct->queued[__atomic_load_n(&l->next, __ATOMIC_RELAXED)], 1);
	__builtin_prefetch(&ct->queued[__atomic_load_n(&l->prev, __ATOMIC_RELAXED)], 1);
}

/* Counts an entry of the namespace in (1) or out (-1). */
void ct_charge(struct ct_thread *t, struct netns *ns, int n);

/* Whether one more entry of the namespace is too many: SL_DROP_NONE, or the reason why. */
enum sl_drop ct_full(const struct ct_thread *t, const struct netns *ns);

/* Of a full namespace: whether there seems to be an entry that can make way. */
bool ct_may_make_room(const struct ct_thread *t, const struct netns *ns);

/* Destroys one entry to make room for a new one of the namespace, when it is full; with nothing
 * held. SL_DROP_NONE, or the reason why it is full when all that could make way are gone or
 * assured. */
enum sl_drop ct_make_room(struct ct_thread *t, struct netns *ns);

/* Keeps the walk's coarse deadline not later than the entry's; called when a deadline moved. */
static inline void
ct_deadline_moved(struct ct *ct, const struct ct_entry *e, uint32_t old)
{
	if (unlikely((int32_t)(e->deadline - old) < 0))
		__atomic_store_n(&ct->slot[ct_index(ct, e)].deadline, e->deadline,
			__ATOMIC_RELAXED);
}

#endif
