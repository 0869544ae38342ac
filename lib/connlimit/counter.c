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
 * goes into a bucket that is rather full while there are more keys than it is made for. Where keys
 * come and go it stays as small as their number asks: a larger one costs more misses of the TLB.
 * `shape` is mask << 32 | split: buckets below split have been divided and are told apart by one
 * more bit of the hash. Who locks a bucket looks at the shape once more: a bucket is only divided
 * under its lock, so what the hash says then, holds.
 */
#include "connlimit_private.h"

#include <string.h>

#include "conntrack.h"

#define BUCKET_LONG 6u /* some bucket is divided when one more counter goes into one like this */

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

static inline uint16_t
tag_of(uint32_t hash)
{
	return (uint16_t)(hash >> 16);
}

/* Atomic stores, for those that look ahead without the lock. */
static inline void
set_slot(struct bucket *b, unsigned int k, uint32_t hash, uint32_t i)
{
	__atomic_store_n(&b->tag[k], tag_of(hash), __ATOMIC_RELAXED);
	__atomic_store_n(&b->ref[k], i, __ATOMIC_RELAXED);
}

static inline void
set_used(struct bucket *b, unsigned int n)
{
	__atomic_store_n(&b->n, (uint8_t)n, __ATOMIC_RELAXED);
}

/* Under the bucket's lock. */
static void
bucket_add(struct connlimit *cl, struct bucket *b, uint32_t hash, uint32_t i)
{
	if (likely(b->n < BUCKET_SLOTS)) {
		set_slot(b, b->n, hash, i);
		set_used(b, b->n + 1u);
	} else {
		cl->pool[i].next = b->chain;
		b->chain = i;
	}
}

/* Under the bucket's lock: takes out a counter that is in it. The slot is filled from the chain,
 * or else with the last. */
static void
bucket_remove(struct connlimit *cl, struct bucket *b, uint32_t i)
{
	uint32_t *at = &b->chain, last;
	unsigned int k;

	for (k = 0; k < b->n && b->ref[k] != i; k++)
		;
	if (unlikely(k == b->n)) {
		while (*at != i)
			at = &cl->pool[*at].next;
		*at = cl->pool[i].next;
	} else if (unlikely(b->chain != 0)) {
		last = b->chain;
		b->chain = cl->pool[last].next;
		set_slot(b, k, cl->pool[last].hash, last);
	} else {
		set_used(b, b->n - 1u);
		set_slot(b, k, (uint32_t)b->tag[b->n] << 16, b->ref[b->n]);
	}
}

uint32_t
connlimit_buckets(const struct connlimit *cl)
{
	uint64_t shape = shape_now(cl);

	return (uint32_t)(shape >> 32) + 1 + (uint32_t)shape;
}

/* Moves those counters of `from` whose next bit of the hash is set. In a large table that bit is
 * in the tag, and no counter has to be fetched. */
static void
divide(struct connlimit *cl, struct bucket *from, struct bucket *to, uint32_t bit)
{
	uint32_t ref[BUCKET_SLOTS], chain = from->chain, next, hash;
	uint16_t tag[BUCKET_SLOTS];
	unsigned int k, n = from->n;

	memcpy(tag, from->tag, sizeof(tag));
	memcpy(ref, from->ref, sizeof(ref));
	set_used(from, 0);
	set_used(to, 0);
	from->chain = to->chain = 0;
	for (k = 0; k < n; k++) {
		hash = bit > UINT16_MAX ? (uint32_t)tag[k] << 16 : cl->pool[ref[k]].hash;
		bucket_add(cl, hash & bit ? to : from, hash, ref[k]);
	}
	for (; chain != 0; chain = next) {
		next = cl->pool[chain].next;
		hash = cl->pool[chain].hash;
		bucket_add(cl, hash & bit ? to : from, hash, chain);
	}
}

static bool
has_room(const struct connlimit *cl, uint64_t buckets)
{
	int64_t keys = 0;
	unsigned int i;

	for (i = 0; i < cl->n_threads; i++)
		keys += __atomic_load_n(&cl->thread[i]->keys, __ATOMIC_RELAXED);
	return keys <= (int64_t)(buckets * CONNLIMIT_PER_BUCKET);
}

/* What the next division will touch. */
static inline void
prefetch_division(const struct connlimit *cl, uint32_t mask, uint32_t split)
{
	__builtin_prefetch(&cl->bucket[split], 1);
	__builtin_prefetch(&cl->bucket[mask + 1 + split], 1);
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
	if (mask + 1 < limit && !has_room(cl, (uint64_t)mask + 1 + split)) {
		from = &cl->bucket[split];
		sl_lock(&from->lock);
		divide(cl, from, &cl->bucket[mask + 1 + split], mask + 1);
		if (split++ == mask) {
			mask = mask << 1 | 1;
			split = 0;
		}
		__atomic_store_n(&cl->shape, (uint64_t)mask << 32 | split, __ATOMIC_RELEASE);
		sl_unlock(&from->lock);
		prefetch_division(cl, mask, split);
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
make_key(const struct connlimit_count *c, const struct tuple_addr *addr)
{
	return (struct counter_key){
		.ns_id = c->ns->id,
		.ns_gen = c->ns->gen,
		.count_id = c->id,
		.count_gen = c->gen,
		.addr = *addr,
	};
}

static inline bool
addr_equal(const struct tuple_addr *a, const struct tuple_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static inline bool
is(const struct connlimit *cl, uint32_t i, const struct counter_key *key)
{
	return memcmp(&cl->pool[i].key, key, sizeof(*key)) == 0;
}

static inline uint32_t
find(const struct connlimit *cl, const struct held *h, const struct counter_key *key,
	uint32_t hash) SL_REQUIRES(h)
{
	const struct bucket *b = h->b;
	unsigned int k;
	uint32_t i;

	for (k = 0; k < b->n; k++) {
		if (b->tag[k] == tag_of(hash) && likely(is(cl, b->ref[k], key)))
			return b->ref[k];
	}
	for (i = b->chain; unlikely(i != 0); i = cl->pool[i].next) {
		if (is(cl, i, key))
			break;
	}
	return i;
}

static bool
in_bucket(const struct connlimit *cl, const struct held *h, uint32_t i) SL_REQUIRES(h)
{
	unsigned int k;
	uint32_t at;

	for (k = 0; k < h->b->n; k++) {
		if (h->b->ref[k] == i)
			return true;
	}
	for (at = h->b->chain; at != 0 && at != i; at = cl->pool[at].next)
		;
	return at == i;
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
	t->expected = 0;
	if (unlikely(i == 0))
		return 0;
	c = &cl->pool[i];
	c->key = *key;
	__atomic_store_n(&c->hash, hash, __ATOMIC_RELAXED);
	c->count = 0;
	c->refused = 0;
	bucket_add(cl, h->b, hash, i);
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

	bucket_remove(cl, h->b, i);
	cl->pool[i].gen++;
	count_keys(t, ns, -1);
	sl_ids_put(&cl->ids, &t->ids, i);
}

enum connlimit_verdict
connlimit_weigh(struct connlimit_thread *t, struct connlimit_count *c, const struct tuple *seen,
	struct ct_entry *e, const struct connlimit_ahead *ahead)
{
	struct connlimit *cl = t->cl;
	uint64_t limit = __atomic_load_n(&c->limit, __ATOMIC_RELAXED);
	struct tuple_addr addr;
	struct counter_key key;
	struct held h;
	uint32_t i, hash;
	bool above, fits, full;

	if (unlikely(c->by.family != 0 && c->by.family != seen->family))
		return CONNLIMIT_NO_MATCH;
	netns_counter_add(&t->stats.weighed, 1);
	addr = connlimit_addr(&c->by, &c->mask, seen);
	key = make_key(c, &addr);
	if (ahead != NULL && ahead->count == c && addr_equal(&ahead->addr, &addr))
		hash = ahead->hash;
	else
		hash = key_hash(cl, &key);
	lock_bucket(&h, cl, hash);
	i = find(cl, &h, &key, hash);
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
	full = h.b->n > BUCKET_LONG && cl->pool[i].count == 1;
	unlock_bucket(&h);
	if (unlikely(full))
		connlimit_grow(cl);
	if (unlikely(!fits)) {
		netns_counter_add(&t->stats.many, 1);
		return CONNLIMIT_MANY;
	}
	netns_counter_add(&t->stats.over, above);
	return above == (limit & 1) ? CONNLIMIT_MATCH : CONNLIMIT_NO_MATCH;
}

/* Charges are at the front, and go together. */
#define EACH_CHARGE(e, k) (k) = 0; (k) < RTE_DIM((e)->limit) && (e)->limit[k] != 0; (k)++

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

	for (EACH_CHARGE(e, k)) {
		release_one(t, e->limit[k], e->ns);
		e->limit[k] = 0;
	}
}

void
connlimit_prefetch(struct connlimit_thread *t, const struct connlimit_count *c,
	const struct tuple *seen, struct connlimit_ahead *out)
{
	struct connlimit *cl = t->cl;
	struct counter_key key;

	out->count = NULL;
	if (c->by.family != 0 && c->by.family != seen->family)
		return;
	out->count = c;
	out->addr = connlimit_addr(&c->by, &c->mask, seen);
	key = make_key(c, &out->addr);
	out->hash = key_hash(cl, &key);
	__builtin_prefetch(&cl->bucket[bucket_index(shape_now(cl), out->hash)], 1);
}

/* Without the lock: what it finds need not be true, since nothing but fetching comes of it. A key
 * that has no counter will take the next free one. */
void
connlimit_prefetch_counter(struct connlimit_thread *t, const struct connlimit_ahead *a)
{
	const struct connlimit *cl = t->cl;
	const struct bucket *b;
	uint32_t i = 0;
	unsigned int k, n;

	if (a->count == NULL)
		return;
	b = &cl->bucket[bucket_index(shape_now(cl), a->hash)];
	n = RTE_MIN(__atomic_load_n(&b->n, __ATOMIC_RELAXED), BUCKET_SLOTS);
	for (k = 0; k < n && i == 0; k++) {
		if (__atomic_load_n(&b->tag[k], __ATOMIC_RELAXED) == tag_of(a->hash))
			i = __atomic_load_n(&b->ref[k], __ATOMIC_RELAXED);
	}
	if (i == 0)
		i = sl_ids_peek(&t->ids, t->expected++ % EXPECTED_MAX);
	__builtin_prefetch(&cl->pool[i], 1);
}

void
connlimit_release_bulk(struct connlimit_thread *t, struct ct_entry *const e[], unsigned int n)
{
	const struct connlimit *cl = t->cl;
	struct ct_entry *charged[CT_DESTROY_MAX];
	unsigned int i, k, some = 0;
	uint64_t shape;

	for (i = 0; i < n; i++) {
		if (!connlimit_charged(e[i]))
			continue;
		charged[some++] = e[i];
		for (EACH_CHARGE(e[i], k))
			__builtin_prefetch(&cl->pool[e[i]->limit[k] >> CHARGE_GEN_BITS], 1);
	}
	if (likely(some == 0))
		return;
	shape = shape_now(cl);
	for (i = 0; i < some; i++)
		for (EACH_CHARGE(charged[i], k)) {
			const struct counter *c =
				&cl->pool[charged[i]->limit[k] >> CHARGE_GEN_BITS];
			uint32_t hash = __atomic_load_n(&c->hash, __ATOMIC_RELAXED);

			__builtin_prefetch(&cl->bucket[bucket_index(shape, hash)], 1);
		}
	for (i = 0; i < some; i++)
		connlimit_release(t, charged[i]);
}

/* The hash is read before the lock is held, of a counter that may be in other hands by then. */
bool
connlimit_read(struct connlimit *cl, uint32_t i, struct counter *out)
{
	struct counter *c = &cl->pool[i];
	struct held h;
	bool used;

	lock_bucket(&h, cl, __atomic_load_n(&c->hash, __ATOMIC_RELAXED));
	used = in_bucket(cl, &h, i);
	if (used)
		*out = *c;
	unlock_bucket(&h);
	return used;
}
