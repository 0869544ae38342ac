/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room for new entries: the maxima, reserves, and early drop.
 *
 * Queues. Each (namespace, thread) has a queue of the unassured entries that the thread inserted,
 * in order of their age. It is a list through an array beside the pool, so nothing is allocated, it
 * cannot overflow, and an entry leaves it at once, wherever it stands: when it is ASSURED, or when
 * it is destroyed. So what is in a queue is unassured, and the head is its oldest.
 *
 *   commit          EMBRYO, in no queue yet → at the tail of its thread's queue → LIVE
 *   ct_track()      made ASSURED, under the entry's lock → out of its queue
 *   ct_reap()       DYING, the caller's alone → out of its queue → FREE
 *   early drop      out of its queue, then LIVE → DYING under the entry's lock
 *
 * Locks. The lock of a queue (netns_queue.lock) guards its head, tail and the links of what is in
 * it; it is a leaf: nothing is taken under it, and it may be taken under an entry's. Other threads
 * take it too: to take an entry out that they made ASSURED or destroyed, and for early drop, when
 * the oldest of the namespace is in their queue. Which queue an entry is in, ct_slot.queue, is
 * read before the lock is taken and again under it; it can only turn to 0 meanwhile, since whoever
 * calls has the entry: by its lock, as the one who destroys it, or as an EMBRYO's maker. Early drop
 * has none of these: it takes the head under the queue's lock, while the entry cannot be freed,
 * with its generation, and locks the entry afterwards, verified by that.
 *
 * A namespace is freed when it has no entries, so its queues are empty then.
 *
 * Reserves. Entries of a namespace beyond its reserve are common; those within it are not. Common
 * ones of all namespaces together are held below the maximum less all reserves, so the room within
 * a reserve is always free: its owner never has to look for it, and nobody else can fill it. Each
 * thread counts what it made common less what it gave back; the sums are taken when a connection is
 * admitted, and no counter is written by two threads. Without a reserve all entries are common;
 * with one, each insert and each end brings the number of common ones one step nearer to what it
 * has to be, so that a race of two threads is made good by the next.
 */
#include "private.h"

#include <errno.h>

#include "err.h"

#define EARLY_DROP_TRIES 8u
/* To find a namespace above its reserve: places looked at, and namespaces tried. */
#define VICTIM_SLOTS 512u
#define VICTIM_TRIES 8u

static inline uint32_t
get(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void
set(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/* ---- queues ---- */

static inline uint8_t
queue_of(const struct ct *ct, uint32_t id)
{
	return __atomic_load_n(&ct->slot[id].queue, __ATOMIC_RELAXED);
}

static inline void
set_queue_of(struct ct *ct, uint32_t id, unsigned int queue)
{
	__atomic_store_n(&ct->slot[id].queue, (uint8_t)queue, __ATOMIC_RELAXED);
}

void
ct_queue_add(struct ct_thread *t, const struct ct_entry *e)
{
	struct ct *ct = t->ct;
	struct netns_queue *q = &e->ns->counters[t->index].unassured;
	uint32_t id = ct_index(ct, e), tail;
	struct ct_queued *l = &ct->queued[id];

	set(&l->next, 0);
	sl_lock(&q->lock);
	tail = q->tail;
	set(&l->prev, tail);
	set_queue_of(ct, id, 1 + t->index);
	if (tail != 0)
		set(&ct->queued[tail].next, id);
	else
		set(&q->head, id);
	q->tail = id;
	sl_unlock(&q->lock);
}

static void
unlink_queued(struct ct *ct, struct netns_queue *q, uint32_t id) SL_REQUIRES(&q->lock)
{
	struct ct_queued *l = &ct->queued[id];
	uint32_t next = get(&l->next), prev = get(&l->prev);

	if (prev != 0)
		set(&ct->queued[prev].next, next);
	else
		set(&q->head, next);
	if (next != 0)
		set(&ct->queued[next].prev, prev);
	else
		q->tail = prev;
	set_queue_of(ct, id, 0);
}

void
ct_queue_remove(struct ct *ct, const struct ct_entry *e)
{
	uint32_t id = ct_index(ct, e);
	unsigned int queue = queue_of(ct, id);
	struct netns_queue *q;

	if (queue == 0)
		return;
	q = &e->ns->counters[queue - 1].unassured;
	sl_lock(&q->lock);
	if (queue_of(ct, id) == queue)
		unlink_queued(ct, q, id);
	sl_unlock(&q->lock);
}

/* ---- early drop ---- */

static bool
any_queued(const struct ct_thread *t, const struct netns *ns)
{
	unsigned int i;

	for (i = 0; i < t->ct->n_threads; i++)
		if (get(&ns->counters[i].unassured.head) != 0)
			return true;
	return false;
}

/* The queue of the namespace that has the oldest entry; among equals the thread's own. NULL: all
 * are empty. Seen without locks: it may be another's turn by now. */
static struct netns_queue *
oldest_queue(const struct ct_thread *t, const struct netns *ns)
{
	unsigned int n = t->ct->n_threads, at = t->index, i;
	struct netns_queue *best = NULL;
	uint64_t best_born = 0;

	for (i = 0; i < n; i++, at = at + 1 < n ? at + 1 : 0) {
		struct netns_queue *q = &ns->counters[at].unassured;
		uint32_t head = get(&q->head);
		uint64_t head_born;

		if (head == 0)
			continue;
		head_born = __atomic_load_n(&t->ct->pool[head].start_ns, __ATOMIC_RELAXED);
		if (best == NULL || head_born < best_born) {
			best = q;
			best_born = head_born;
		}
	}
	return best;
}

/* Takes the head out; NULL when it has gone, or is just being inserted. */
static struct ct_entry *
take_head(struct ct *ct, struct netns_queue *q, uint32_t *gen)
{
	struct ct_entry *e = NULL;
	uint32_t id;

	sl_lock(&q->lock);
	id = get(&q->head);
	if (id != 0 && ct_life(&ct->pool[id]) != CT_EMBRYO) {
		e = &ct->pool[id];
		*gen = __atomic_load_n(&e->gen, __ATOMIC_RELAXED);
		unlink_queued(ct, q, id);
		id = get(&q->head);
	}
	sl_unlock(&q->lock);
	if (id != 0)
		ct_prefetch_entry(&ct->pool[id]); /* the next to go */
	return e;
}

static bool
destroy_unassured(struct ct_thread *t, struct ct_entry *e, uint32_t gen)
{
	if (!ct_lock_live(e, gen))
		return false;
	if (e->status & CT_ASSURED) {
		sl_unlock(&e->lock);
		return false;
	}
	ct_mark_dying(e);
	sl_unlock(&e->lock);
	netns_counter_add(&t->stats.early_drop, 1);
	ct_reap(t, &e, 1);
	return true;
}

/* Destroys the oldest unassured entry of the namespace. */
static bool
early_drop(struct ct_thread *t, const struct netns *ns)
{
	struct netns_queue *q;
	struct ct_entry *e;
	unsigned int try;
	uint32_t gen;

	for (try = 0; try < EARLY_DROP_TRIES; try++) {
		q = oldest_queue(t, ns);
		if (q == NULL)
			return false;
		e = take_head(t->ct, q, &gen);
		if (e != NULL && destroy_unassured(t, e, gen))
			return true;
		rte_pause();
	}
	return false;
}

/* ---- reserves ---- */

static inline uint32_t
common_max(const struct ct *ct)
{
	return __atomic_load_n(&ct->common_max, __ATOMIC_RELAXED);
}

static int64_t
common_count(const struct ct *ct)
{
	int64_t sum = 0;
	unsigned int i;

	for (i = 0; i < ct->n_threads; i++)
		sum += __atomic_load_n(&ct->thread[i]->common, __ATOMIC_RELAXED);
	return sum;
}

/* How many entries of the namespace are to become common, negative: to be so no more. */
static int64_t
common_missing(const struct ct *ct, const struct netns *ns)
{
	int64_t want = netns_entries(ns, ct->n_threads) - netns_knobs(ns)->ct_reserve;
	uint32_t have = 0;
	unsigned int i;

	for (i = 0; i < ct->n_threads; i++)
		have += get(&ns->counters[i].common);
	return RTE_MAX(want, 0) - (int32_t)have;
}

static void
add_common(struct ct_thread *t, struct netns *ns, int64_t n)
{
	netns_counter_add(&t->common, n);
	netns_counter_add(&ns->counters[t->index].common, (uint32_t)n);
}

void
ct_charge(struct ct_thread *t, struct netns *ns, int n)
{
	int64_t common = n;

	netns_counter_add(&t->entries, n);
	netns_counter_add(&ns->counters[t->index].entries, n);
	if (unlikely(__atomic_load_n(&ns->had_reserve, __ATOMIC_RELAXED))) {
		common = common_missing(t->ct, ns);
		common = RTE_MAX(RTE_MIN(common, 1), -1);
	}
	add_common(t, ns, common);
}

/* The owner of a place of the pool when it is another than ns and above its reserve, else NULL. */
static const struct netns *
victim_at(const struct ct *ct, uint32_t place, const struct netns *ns)
{
	const struct ct_slot *s = &ct->slot[place];
	const struct netns *owner;

	if (!ct_slot_live(s))
		return NULL;
	owner = netns_by_id(ct->netns, ct_slot_ns(s));
	if (owner == NULL || owner == ns ||
		netns_entries(owner, ct->n_threads) <= netns_knobs(owner)->ct_reserve)
		return NULL;
	return owner;
}

/* Destroys the oldest unassured entry of a namespace above its reserve, which some place of the
 * pool leads to: so who has most is found first. */
static bool
drop_from_other(struct ct_thread *t, const struct netns *ns)
{
	const struct ct *ct = t->ct;
	uint32_t used = __atomic_load_n(&ct->entry_ids.high_water, __ATOMIC_ACQUIRE) - 1, place;
	const struct netns *owner, *tried = NULL;
	unsigned int i, tries = 0;

	t->victim += 0x9e3779b9u; /* 2^32 by the golden ratio: spreads evenly */
	place = (uint32_t)((uint64_t)t->victim * used >> 32);
	for (i = 0; i < RTE_MIN(VICTIM_SLOTS, used) && tries < VICTIM_TRIES; i++) {
		place = place < used ? place + 1 : 1;
		owner = victim_at(ct, place, ns);
		if (owner == NULL || owner == tried)
			continue;
		if (early_drop(t, owner))
			return true;
		tried = owner;
		tries++;
	}
	return false;
}

static void
update_common_max(struct ct *ct)
{
	__atomic_store_n(&ct->common_max, ct_max(ct) - (uint32_t)ct->reserved, __ATOMIC_RELAXED);
}

int
ct_reserve(struct ct *ct, struct netns *ns, uint32_t from, uint32_t to, struct sl_err *err)
{
	uint64_t others = ct->reserved - from;

	if (others + to > ct_max(ct))
		return sl_refuse(err, ENOSPC,
			"sluice.conntrack_reserve of %u is too much: nf_conntrack_max of init is "
			"%u, and other namespaces reserve %lu",
			to, ct_max(ct), (unsigned long)others);
	ct->reserved = others + to;
	/* A larger reserve takes its room away from the others before anyone relies on it; a
	 * smaller one gives it to them when its entries are counted as theirs. */
	if (to > from)
		update_common_max(ct);
	if (to != 0)
		__atomic_store_n(&ns->had_reserve, true, __ATOMIC_RELAXED);
	return 0;
}

void
ct_reserve_settle(struct ct_thread *t, struct netns *ns)
{
	if (ns->had_reserve)
		add_common(t, ns, common_missing(t->ct, ns));
	update_common_max(t->ct);
}

void
ct_reserve_end(struct ct_thread *t, struct netns *ns)
{
	t->ct->reserved -= netns_knobs(ns)->ct_reserve;
	ct_reserve_settle(t, ns);
}

/* ---- admission ---- */

static bool
within_reserve(const struct ct *ct, const struct netns *ns)
{
	return netns_entries(ns, ct->n_threads) < netns_knobs(ns)->ct_reserve;
}

enum sl_drop
ct_full(const struct ct_thread *t, const struct netns *ns)
{
	const struct ct *ct = t->ct;
	const struct knobs *k = netns_knobs(ns);
	int64_t n = netns_entries(ns, ct->n_threads);

	if (unlikely(n < k->ct_reserve)) {
		if (unlikely(ct_count(ct) >= ct_max(ct)))
			return SL_DROP_CT_TABLE_FULL;
	} else if (unlikely(common_count(ct) >= common_max(ct))) {
		return SL_DROP_CT_TABLE_FULL;
	}
	return likely(n < k->ct_max) ? SL_DROP_NONE : SL_DROP_CT_NETNS_FULL;
}

bool
ct_may_make_room(const struct ct_thread *t, const struct netns *ns)
{
	return any_queued(t, ns) || within_reserve(t->ct, ns);
}

enum sl_drop
ct_make_room(struct ct_thread *t, struct netns *ns)
{
	enum sl_drop full = ct_full(t, ns);

	if (full == SL_DROP_CT_TABLE_FULL && within_reserve(t->ct, ns) && drop_from_other(t, ns))
		return SL_DROP_NONE;
	return full == SL_DROP_NONE || early_drop(t, ns) ? SL_DROP_NONE : full;
}
