/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of all namespaces: one hash table, in whose lines they lie. A new connection touches
 * one line, and so does the end of one: nothing is found by pointers.
 *
 * A key (count and masked address) of IPv4 takes one cell of a line, one of IPv6 two. A counter is
 * there as long as it counts a connection; the last charge given back takes it out, so memory
 * follows the number of keys that have live connections, and nothing has to be collected.
 *
 * A charge says where its counter is: the bits of the hash that choose a bucket, now or when
 * the table has grown, and a number that no other counter of the bucket has. So a charge is found
 * without its key. One that is not found is a fault, and noticed.
 *
 * Locks: each bucket has its own, a leaf, in its first line; it guards its chain of lines. It may
 * be taken under an entry's lock. No thread holds two, but the one that splits a bucket, whose
 * second nobody else can know of yet.
 *
 * Size: the table grows by linear hashing (Litwin 1980), bucket by bucket, while there are more
 * cells than it is made for. Where keys come and go it stays as small as their number asks: a
 * larger one costs more misses of the TLB. `shape` is mask << 32 | split: buckets below split have
 * been divided and are told apart by one more bit of the hash. Who locks a bucket looks at the
 * shape once more: a bucket is only divided under its lock, so what the hash says then, holds.
 */
#include "connlimit_lines.h"

#include <string.h>

#include "conntrack.h"

/* A counter: its first cell. */
struct place {
	struct line *line;
	unsigned int k;
};

/* What is looked for. */
struct key {
	uint64_t word; /* of the first cell */
	struct tuple_addr addr;
	uint32_t hash;
};

/* ---- keys ---- */

static inline bool
addr_equal(const struct tuple_addr *a, const struct tuple_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static uint32_t
hash_wide(const struct connlimit *cl, uint32_t id, const struct tuple_addr *addr)
{
	struct {
		uint32_t id, zero[6];
		struct tuple_addr addr;
	} bytes = {.id = id, .addr = *addr};

	_Static_assert(sizeof(bytes) == SL_HASH_LEN, "what is hashed has no padding");
	return (uint32_t)sl_hash(&cl->hasher, &bytes);
}

/* Without its hash, and of IPv6 without the word. */
static inline void
key_of(const struct connlimit_count *c, const struct tuple *seen, struct key *key)
{
	const struct tuple_addr *a = c->by.daddr ? &seen->dst : &seen->src;

	if (likely(!c->wide))
		key->word = c->word | (a->w[0] & c->mask.w[0]);
	else
		key->addr = connlimit_addr(&c->by, &c->mask, seen);
}

static inline void
hash_key(const struct connlimit *cl, const struct connlimit_count *c, struct key *key)
{
	if (likely(!c->wide)) {
		key->hash = hash_narrow(cl, key->word);
	} else {
		key->hash = hash_wide(cl, c->id, &key->addr);
		key->word = KEY_WIDE | c->word | key->hash;
	}
}

/* From what was computed ahead, if it is of this key. */
static inline void
take_hash(const struct connlimit *cl, const struct connlimit_count *c,
	const struct connlimit_ahead *ahead, struct key *key)
{
	if (likely(ahead != NULL && ahead->count == c) &&
		likely(c->wide ? addr_equal(&ahead->addr, &key->addr)
			       : ahead->word == key->word)) {
		key->hash = ahead->hash;
		key->word = ahead->word;
		return;
	}
	hash_key(cl, c, key);
}

static inline bool
holds(const struct line *l, unsigned int k, const struct key *key)
{
	return l->cell[k].key == key->word && l->id[k] != 0 &&
	       (likely(!wide(key->word)) ||
		       memcmp(&l->cell[k + 1], &key->addr, sizeof(key->addr)) == 0);
}

/* ---- lines ---- */

static inline bool
find(const struct connlimit *cl, const struct held *h, const struct key *key,
	struct place *out) SL_REQUIRES(h)
{
	struct line *l;
	unsigned int k;

	for (l = h->b; l != NULL; l = more_of(cl, l)) {
		for (k = 0; k < LINE_CELLS; k++)
			if (holds(l, k, key)) {
				*out = (struct place){l, k};
				return true;
			}
	}
	return false;
}

static inline bool
find_id(const struct connlimit *cl, struct line *l, uint8_t id, struct place *out)
{
	unsigned int k;

	for (; l != NULL; l = more_of(cl, l)) {
		for (k = 0; k < LINE_CELLS; k++)
			if (l->id[k] == id) {
				*out = (struct place){l, k};
				return true;
			}
	}
	return false;
}

/* A number for a counter that is to come into the chain; 0: there is none left. */
static inline uint8_t
free_id(const struct connlimit *cl, struct line *first)
{
	struct place at;
	uint8_t id = 1;

	while (id != 0 && unlikely(find_id(cl, first, id, &at)))
		id++;
	return id;
}

/* A line of the chain with room for so many cells; NULL: there is none to be had. */
static inline struct line *
line_with_room(struct connlimit_thread *t, struct line *l, unsigned int cells)
{
	struct connlimit *cl = t->cl;
	struct line *next;
	uint32_t i;

	for (; unlikely(l->n + cells > LINE_CELLS); l = next) {
		next = more_of(cl, l);
		if (next != NULL)
			continue;
		i = sl_ids_get(&cl->ids, &t->ids);
		if (i == 0)
			return NULL;
		next = &cl->more[i];
		memset(next, 0, sizeof(*next));
		l->more = i;
	}
	return l;
}

/* ---- how many keys there may be ---- */

static inline uint32_t
credit(const struct connlimit *cl, int64_t left)
{
	return left <= 0 ? 0 : (uint32_t)RTE_MIN(left / (2 * cl->n_threads) + 1, CREDIT_MAX);
}

/* The sums over all threads are looked at once for as many keys as they leave room for. */
static bool
take_credit(struct connlimit_thread *t, struct netns *ns, struct connlimit_part *part)
{
	struct connlimit *cl = t->cl;
	int64_t left;

	if (part->credit == 0)
		part->credit = credit(cl, (int64_t)netns_knobs(ns)->connlimit_max -
						  (int64_t)connlimit_netns_keys(ns));
	if (t->credit == 0) {
		t->grow = connlimit_room(cl, connlimit_buckets(cl), &left) < 0;
		t->credit = credit(cl, left);
	}
	return part->credit > 0 && t->credit > 0;
}

static inline struct connlimit_part *
part_of(const struct connlimit_thread *t, struct netns *ns)
{
	struct connlimit_netns *own = sl_rcu_dereference(&ns->limits);

	return &own->part[t->index];
}

/* Adds n to the numbers of keys that the thread answers for. */
static inline void
count_keys(struct connlimit_thread *t, struct connlimit_part *part, uint64_t word, int64_t n)
{
	netns_counter_add(&t->keys, n);
	netns_counter_add(&part->keys, n);
	if (unlikely(wide(word)))
		netns_counter_add(&t->wide, n);
}

/* ---- charges ---- */

/* A counter for a key that has none; false when the namespace may have no more, or nobody may. */
static bool
take(struct connlimit_thread *t, struct held *h, const struct key *key, struct netns *ns,
	struct place *out) SL_REQUIRES(h)
{
	struct connlimit_part *part = part_of(t, ns);
	unsigned int cells = cells_of(key->word), k;
	uint8_t id = free_id(t->cl, h->b);
	struct line *l;

	if (unlikely(id == 0))
		return false;
	if (unlikely(part->credit == 0 || t->credit == 0) && !take_credit(t, ns, part))
		return false;
	l = line_with_room(t, h->b, cells);
	if (unlikely(l == NULL))
		return false;
	part->credit--;
	t->credit--;
	k = append(l, id, cells);
	l->cell[k] = (struct cell){.key = key->word};
	if (unlikely(cells == 2))
		memcpy(&l->cell[k + 1], &key->addr, sizeof(key->addr));
	count_keys(t, part, key->word, 1);
	*out = (struct place){l, k};
	return true;
}

/* The counter has no connection left. */
static void
give_back(struct connlimit_thread *t, struct held *h, const struct place *at,
	struct netns *ns) SL_REQUIRES(h)
{
	uint64_t word = at->line->cell[at->k].key;

	cut(at->line, at->k, cells_of(word));
	if (unlikely(at->line != h->b && at->line->n == 0))
		connlimit_drop_empty(t, h->b);
	count_keys(t, part_of(t, ns), word, -1);
}

static inline uint32_t
charge_of(const struct place *at, uint32_t hash)
{
	return (uint32_t)at->line->id[at->k] << CHARGE_HASH_BITS | (hash & CHARGE_HASH_MASK);
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

/* Charges the entry to the counter, if it is not yet. False when it has no room for it. */
static inline bool
charge(struct place *at, uint32_t hash, struct ct_entry *e)
{
	uint32_t charge = charge_of(at, hash), *slot = &e->limit[0];
	bool charged = false;

	if (unlikely(*slot != 0))
		slot = charge_slot(e, charge, &charged);
	if (likely(slot != NULL)) {
		*slot = charge;
		at->line->cell[at->k].count++;
	}
	return slot != NULL || charged;
}

static void
count_refusal(struct place *at)
{
	if (++at->line->cell[at->k].refused == 0)
		at->line->refused_high[at->k]++;
}

enum connlimit_verdict
connlimit_weigh(struct connlimit_thread *t, struct connlimit_count *c, const struct tuple *seen,
	struct ct_entry *e, const struct connlimit_ahead *ahead)
{
	struct connlimit *cl = t->cl;
	uint64_t limit = __atomic_load_n(&c->limit, __ATOMIC_RELAXED);
	struct place at;
	struct held h;
	struct key key;
	bool above, fits;

	if (unlikely(c->by.family != 0 && c->by.family != seen->family))
		return CONNLIMIT_NO_MATCH;
	netns_counter_add(&t->stats.weighed, 1);
	key_of(c, seen, &key);
	take_hash(cl, c, ahead, &key);
	lock_bucket(&h, cl, key.hash);
	if (!find(cl, &h, &key, &at) && unlikely(!take(t, &h, &key, e->ns, &at))) {
		unlock_bucket(&h);
		netns_counter_add(&t->stats.full, 1);
		return CONNLIMIT_FULL;
	}
	fits = charge(&at, key.hash, e);
	above = at.line->cell[at.k].count > limit >> 1;
	if (unlikely(above))
		count_refusal(&at);
	if (unlikely(!fits && at.line->cell[at.k].count == 0))
		give_back(t, &h, &at, e->ns);
	unlock_bucket(&h);
	if (unlikely(t->grow)) {
		t->grow = false;
		connlimit_grow(t);
	}
	if (unlikely(!fits)) {
		netns_counter_add(&t->stats.many, 1);
		return CONNLIMIT_MANY;
	}
	if (unlikely(above))
		netns_counter_add(&t->stats.over, 1);
	return above == (limit & 1) ? CONNLIMIT_MATCH : CONNLIMIT_NO_MATCH;
}

/* Charges are at the front, and go together. */
#define EACH_CHARGE(e, k) (k) = 0; (k) < RTE_DIM((e)->limit) && (e)->limit[k] != 0; (k)++

static inline void
release_one(struct connlimit_thread *t, uint32_t charge, struct netns *ns)
{
	struct place at;
	struct held h;

	lock_bucket(&h, t->cl, charge);
	if (unlikely(!find_id(t->cl, h.b, (uint8_t)(charge >> CHARGE_HASH_BITS), &at)))
		netns_counter_add(&t->stats.errors, 1);
	else if (--at.line->cell[at.k].count == 0)
		give_back(t, &h, &at, ns);
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
	struct key key;

	out->count = NULL;
	if (c->by.family != 0 && c->by.family != seen->family)
		return;
	key_of(c, seen, &key);
	hash_key(cl, c, &key);
	out->count = c;
	out->word = key.word;
	out->hash = key.hash;
	if (unlikely(c->wide))
		out->addr = key.addr;
	__builtin_prefetch(&cl->bucket[bucket_index(shape_now(cl), key.hash)], 1);
}

void
connlimit_release_bulk(struct connlimit_thread *t, struct ct_entry *const e[], unsigned int n)
{
	const struct connlimit *cl = t->cl;
	uint64_t shape = shape_now(cl);
	unsigned int i, k;
	bool some = false;

	for (i = 0; i < n; i++)
		for (EACH_CHARGE(e[i], k)) {
			__builtin_prefetch(&cl->bucket[bucket_index(shape, e[i]->limit[k])], 1);
			some = true;
		}
	for (i = 0; likely(some) && i < n; i++)
		connlimit_release(t, e[i]);
}
