/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of all namespaces: one type-stable pool, and one hash table over those in use.
 *
 * A counter is found by its key (namespace, count and masked address) when a connection is weighed,
 * and by the index in the charge when one is given back. A charge keeps its counter in use, so the
 * index needs no check; its generation is there to notice a fault before it does harm. The last
 * charge given back takes the counter out of its chain and frees it, so memory follows the number
 * of keys that have live connections, and nothing has to be collected.
 *
 * Locks: each bucket has its own, a leaf; it guards its chain and the counters in it. It may be
 * taken under an entry's lock. No thread holds two, but the one that splits a bucket, whose second
 * nobody else can know of yet.
 *
 * Size: the table grows by linear hashing (Litwin 1980), one bucket at a time, each time that a key
 * goes into a chain that is long. `shape` is mask << 32 | split: buckets below split have been
 * divided and are told apart by one more bit of the hash. Who locks a bucket looks at the shape
 * once more: a bucket is only divided under its lock, so what the hash says then, holds.
 */
#include "connlimit_private.h"

#include <string.h>

#define LONG_CHAIN 2u /* counters: a bucket is divided when one more goes into a chain like this */

struct SL_CAPABILITY("bucket") held {
	struct bucket *b;
};

static inline uint32_t
bucket_index(uint64_t shape, uint32_t hash)
{
	uint32_t mask = (uint32_t)(shape >> 32), split = (uint32_t)shape, i = hash & mask;

	return i < split ? hash & (mask << 1 | 1) : i;
}

static inline uint64_t
shape_now(const struct connlimit *cl)
{
	return __atomic_load_n(&cl->shape, __ATOMIC_ACQUIRE);
}

/* Whoever finds the bucket divided tries the next: it can be, once for each bit of the hash. */
static inline void
lock_bucket(struct held *h, struct connlimit *cl, uint32_t hash) SL_ACQUIRE(h) SL_NO_ANALYSIS
{
	uint32_t i = bucket_index(shape_now(cl), hash), again;

	for (;;) {
		h->b = &cl->bucket[i];
		sl_lock(&h->b->lock);
		again = bucket_index(shape_now(cl), hash);
		if (likely(again == i))
			return;
		sl_unlock(&h->b->lock);
		i = again;
	}
}

static inline void
unlock_bucket(struct held *h) SL_RELEASE(h) SL_NO_ANALYSIS
{
	sl_unlock(&h->b->lock);
}

static inline void
set_head(struct bucket *b, uint32_t i)
{
	__atomic_store_n(&b->head, i, __ATOMIC_RELAXED);
}

uint32_t
connlimit_buckets(const struct connlimit *cl)
{
	uint64_t shape = shape_now(cl);

	return (uint32_t)(shape >> 32) + 1 + (uint32_t)shape;
}

/* Moves those counters of `from` whose next bit of the hash is set. */
static void
divide(struct connlimit *cl, struct bucket *from, struct bucket *to, uint32_t bit)
{
	uint32_t i = from->head, stay = 0, go = 0, next;

	for (; i != 0; i = next) {
		struct counter *c = &cl->pool[i];

		next = c->next;
		if (c->hash & bit) {
			c->next = go;
			go = i;
		} else {
			c->next = stay;
			stay = i;
		}
	}
	set_head(from, stay);
	set_head(to, go);
}

void
connlimit_grow(struct connlimit *cl)
{
	uint32_t mask, split, limit = __atomic_load_n(&cl->buckets_present, __ATOMIC_ACQUIRE);
	struct bucket *from;

	if (!sl_trylock(&cl->grow_lock))
		return;
	mask = (uint32_t)(cl->shape >> 32);
	split = (uint32_t)cl->shape;
	if (mask + 1 < limit) {
		from = &cl->bucket[split];
		sl_lock(&from->lock);
		divide(cl, from, &cl->bucket[mask + 1 + split], mask + 1);
		if (split++ == mask) {
			mask = mask << 1 | 1;
			split = 0;
		}
		__atomic_store_n(&cl->shape, (uint64_t)mask << 32 | split, __ATOMIC_RELEASE);
		sl_unlock(&from->lock);
	}
	sl_unlock(&cl->grow_lock);
}

static inline uint32_t
key_hash(const struct connlimit *cl, const struct counter_key *key)
{
	struct {
		struct counter_key key;
		uint8_t zero[SL_HASH_LEN - sizeof(struct counter_key)];
	} bytes = {.key = *key};

	_Static_assert(sizeof(bytes) == SL_HASH_LEN, "what is hashed has no padding");
	return (uint32_t)sl_hash(&cl->hasher, &bytes);
}

static inline struct counter_key
make_key(const struct connlimit_count *c, const struct tuple *seen)
{
	return (struct counter_key){
		.ns_id = c->ns->id,
		.ns_gen = c->ns->gen,
		.count_id = c->id,
		.count_gen = c->gen,
		.addr = connlimit_addr(&c->by, &c->mask, seen),
	};
}

static inline uint32_t
find(const struct connlimit *cl, const struct held *h, const struct counter_key *key,
	unsigned int *length) SL_REQUIRES(h)
{
	uint32_t i;

	*length = 0;
	for (i = h->b->head; i != 0; i = cl->pool[i].next, ++*length) {
		if (memcmp(&cl->pool[i].key, key, sizeof(*key)) == 0)
			break;
	}
	return i;
}

/* Adds n to the numbers of keys that the thread answers for. */
static inline void
count_keys(struct connlimit_thread *t, struct netns *ns, int64_t n)
{
	struct connlimit_netns *own = sl_rcu_dereference(&ns->limits);

	netns_counter_add(&t->keys, n);
	netns_counter_add(&own->part[t->index].keys, n);
}

/* A counter for a key that has none; 0 when the namespace may have no more, or nobody may. */
static uint32_t
take(struct connlimit_thread *t, struct held *h, const struct counter_key *key, uint32_t hash,
	struct netns *ns) SL_REQUIRES(h)
{
	struct connlimit *cl = t->cl;
	struct counter *c;
	uint32_t i;

	if (connlimit_netns_keys(ns) >= netns_knobs(ns)->connlimit_max)
		return 0;
	i = sl_ids_get(&cl->ids, &t->ids);
	if (unlikely(i == 0))
		return 0;
	c = &cl->pool[i];
	c->key = *key;
	c->next = h->b->head;
	__atomic_store_n(&c->hash, hash, __ATOMIC_RELAXED);
	c->count = 0;
	c->refused = 0;
	set_head(h->b, i);
	count_keys(t, ns, 1);
	return i;
}

static inline uint32_t
charge_of(const struct connlimit *cl, uint32_t i)
{
	return i << CHARGE_GEN_BITS | (cl->pool[i].gen & CHARGE_GEN_MASK);
}

/* Where a new charge goes; NULL when all are taken, or this one is there. */
static uint32_t *
charge_slot(struct ct_entry *e, uint32_t charge, bool *charged)
{
	unsigned int k;

	*charged = false;
	for (k = 0; k < RTE_DIM(e->limit); k++) {
		*charged = e->limit[k] == charge;
		if (e->limit[k] == 0)
			return &e->limit[k];
		if (*charged)
			return NULL;
	}
	return NULL;
}

/* Charges the entry to counter i, if it is not yet. False when it has no room for it. */
static inline bool
charge(struct connlimit *cl, struct held *h, uint32_t i, struct ct_entry *e) SL_REQUIRES(h)
{
	uint32_t charge = charge_of(cl, i), *slot;
	bool charged;

	(void)h;
	slot = charge_slot(e, charge, &charged);
	if (likely(slot != NULL)) {
		*slot = charge;
		cl->pool[i].count++;
	}
	return slot != NULL || charged;
}

/* The counter has no connection left. */
static void
give_back(struct connlimit_thread *t, struct held *h, uint32_t i, struct netns *ns) SL_REQUIRES(h)
{
	struct connlimit *cl = t->cl;
	struct counter *c = &cl->pool[i];
	uint32_t at = h->b->head;

	if (at == i) {
		set_head(h->b, c->next);
	} else {
		while (cl->pool[at].next != i)
			at = cl->pool[at].next;
		cl->pool[at].next = c->next;
	}
	c->gen++;
	count_keys(t, ns, -1);
	sl_ids_put(&cl->ids, &t->ids, i);
}

enum connlimit_verdict
connlimit_weigh(struct connlimit_thread *t, struct connlimit_count *c, const struct tuple *seen,
	struct ct_entry *e)
{
	struct connlimit *cl = t->cl;
	uint64_t limit = __atomic_load_n(&c->limit, __ATOMIC_RELAXED);
	struct counter_key key;
	unsigned int length;
	struct held h;
	uint32_t i, hash;
	bool above, fits;

	if (unlikely(c->by.family != 0 && c->by.family != seen->family))
		return CONNLIMIT_NO_MATCH;
	netns_counter_add(&t->stats.weighed, 1);
	key = make_key(c, seen);
	hash = key_hash(cl, &key);
	lock_bucket(&h, cl, hash);
	i = find(cl, &h, &key, &length);
	if (i == 0)
		i = take(t, &h, &key, hash, e->ns);
	if (unlikely(i == 0)) {
		unlock_bucket(&h);
		netns_counter_add(&t->stats.full, 1);
		return CONNLIMIT_FULL;
	}
	fits = charge(cl, &h, i, e);
	above = cl->pool[i].count > limit >> 1;
	cl->pool[i].refused += above;
	if (unlikely(!fits && cl->pool[i].count == 0))
		give_back(t, &h, i, e->ns);
	unlock_bucket(&h);
	if (unlikely(length >= LONG_CHAIN))
		connlimit_grow(cl);
	if (unlikely(!fits)) {
		netns_counter_add(&t->stats.many, 1);
		return CONNLIMIT_MANY;
	}
	netns_counter_add(&t->stats.over, above);
	return above == (limit & 1) ? CONNLIMIT_MATCH : CONNLIMIT_NO_MATCH;
}

static void
release_one(struct connlimit_thread *t, uint32_t charge, struct netns *ns)
{
	struct connlimit *cl = t->cl;
	uint32_t i = charge >> CHARGE_GEN_BITS;
	struct counter *c = &cl->pool[i];
	struct held h;

	lock_bucket(&h, cl, __atomic_load_n(&c->hash, __ATOMIC_RELAXED));
	if (unlikely(c->count == 0 || charge_of(cl, i) != charge))
		netns_counter_add(&t->stats.errors, 1);
	else if (--c->count == 0)
		give_back(t, &h, i, ns);
	unlock_bucket(&h);
}

void
connlimit_release(struct connlimit_thread *t, struct ct_entry *e)
{
	unsigned int k;

	for (k = 0; k < RTE_DIM(e->limit) && e->limit[k] != 0; k++) {
		release_one(t, e->limit[k], e->ns);
		e->limit[k] = 0;
	}
}

uint64_t
connlimit_prefetch(struct connlimit_thread *t, const struct connlimit_count *c,
	const struct tuple *seen)
{
	struct connlimit *cl = t->cl;
	struct counter_key key;
	uint32_t hash;

	if (c->by.family != 0 && c->by.family != seen->family)
		return 0;
	key = make_key(c, seen);
	hash = key_hash(cl, &key);
	__builtin_prefetch(&cl->bucket[bucket_index(shape_now(cl), hash)], 1);
	return UINT64_C(1) << 32 | hash;
}

/* The first of the chain is most often the one; where there is none, the next free one is. */
void
connlimit_prefetch_counter(struct connlimit_thread *t, uint64_t hash)
{
	struct connlimit *cl = t->cl;
	const struct bucket *b = &cl->bucket[bucket_index(shape_now(cl), (uint32_t)hash)];
	uint32_t i;

	if (hash == 0)
		return;
	i = __atomic_load_n(&b->head, __ATOMIC_RELAXED);
	__builtin_prefetch(&cl->pool[i != 0 ? i : sl_ids_peek(&t->ids, 0)], 1);
}

void
connlimit_prefetch_release(const struct connlimit_thread *t, const struct ct_entry *e)
{
	unsigned int k;

	for (k = 0; k < RTE_DIM(e->limit) && e->limit[k] != 0; k++)
		__builtin_prefetch(&t->cl->pool[e->limit[k] >> CHARGE_GEN_BITS], 1);
}

/* The hash is read before the lock is held, of a counter that may be in other hands by then. */
bool
connlimit_read(struct connlimit *cl, uint32_t i, struct counter *out)
{
	struct counter *c = &cl->pool[i];
	uint32_t hash = __atomic_load_n(&c->hash, __ATOMIC_RELAXED);
	struct held h;
	uint32_t at;

	lock_bucket(&h, cl, hash);
	for (at = h.b->head; at != 0 && at != i; at = cl->pool[at].next)
		;
	if (at == i)
		*out = *c;
	unlock_bucket(&h);
	return at == i;
}
