/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters of all namespaces: one hash table, in whose lines they lie. A new connection touches
 * one line, and so does the end of one: nothing is found by pointers.
 *
 * A key (count and masked address) of IPv4 takes one cell of a line, one of IPv6 two. A counter is
 * there as long as it counts a connection: with its last its cells are free, so memory follows the
 * number of keys that have live connections, and nothing has to be collected. The key stays in a
 * free cell until another takes it. A key is in one cell of its bucket at most, in use or free: a
 * free cell is taken for a key only after all were asked whether they have it.
 *
 * A charge says where its counter is: the bits of the hash that choose a bucket, now or when the
 * table has grown, and its place in the bucket, which a counter that counts never leaves, since one
 * that moves to another bucket keeps it. So a charge is given back without a search, and two
 * charges are the same only if their counters are. One whose counter counts nothing is a fault, and
 * noticed.
 *
 * Locks: each bucket has its own, a leaf, in its first line; it guards its chain of lines. It may
 * be taken under an entry's lock. No thread holds two, but the one that splits a bucket, whose
 * second nobody else can know of yet. A connection is weighed, charged and noted in its entry in
 * one section, so a limit is never passed, and each charge is given back once, since the entry is
 * its owner's alone, and given back are those that are noted.
 *
 * Size: the table grows by linear hashing (Litwin 1980), bucket by bucket, while there are more
 * cells than it is made for. Where keys come and go it stays as small as their number asks: a
 * larger one costs more misses of the TLB. `shape` is mask << 32 | split: buckets below split have
 * been divided and are told apart by one more bit of the hash. Who has locked a bucket looks at the
 * shape once more: it never is again what it was, and a bucket is only divided under its lock, so
 * what the hash says then, holds.
 */
#include "connlimit_lines.h"

#include <string.h>

#include "conntrack.h"

#define RELEASE_AT_ONCE 32u /* whose lines are fetched together */

/* A counter: its first cell. */
struct place {
	struct line *line;
	struct cell *cell;
	uint32_t number; /* of the charge */
};

/* What is looked for. */
struct key {
	uint64_t word; /* of the first cell */
	uint64_t shape;
	struct line *bucket; /* at this shape */
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
	key->shape = shape_now(cl);
	key->bucket = bucket_of(cl, key->shape, key->hash);
}

/* From what was computed ahead, if it is of this key. */
static inline void
take_hash(const struct connlimit *cl, const struct connlimit_count *c,
	const struct connlimit_ahead *ahead, struct key *key)
{
	if (likely(ahead != NULL && ahead->count == c) &&
		likely(c->wide ? addr_equal(&ahead->addr, &key->addr)
			       : ahead->word == key->word)) {
		key->word = ahead->word;
		key->shape = ahead->shape;
		key->bucket = ahead->bucket;
		key->hash = ahead->hash;
		return;
	}
	hash_key(cl, c, key);
}

/* ---- lines ---- */

static inline unsigned int
cell_of(const struct place *at)
{
	return (unsigned int)(at->cell - at->line->cell);
}

static inline bool
holds(const struct line *l, unsigned int k, const struct key *key)
{
	if (likely(l->cell[k].key != key->word) || unlikely(is_second(l, k)))
		return false;
	return likely(!wide(key->word)) ||
	       (k + 1 < LINE_CELLS && l->wide >> k & 1 &&
		       memcmp(&l->cell[k + 1], &key->addr, sizeof(key->addr)) == 0);
}

/* In a line whose first place is `number`. */
static inline bool
find_in(struct line *l, uint32_t number, const struct key *key, struct place *out)
{
	unsigned int k;

	for (k = 0; k < LINE_CELLS; k++)
		if (holds(l, k, key)) {
			*out = (struct place){l, &l->cell[k], number + k};
			return true;
		}
	return false;
}

/* In the chain behind its first line. */
static __rte_noinline bool
find_further(const struct connlimit *cl, struct line *l, const struct key *key, struct place *out)
{
	uint32_t number = 1;

	while ((l = more_of(cl, l)) != NULL) {
		number += LINE_CELLS;
		if (find_in(l, number, key, out))
			return true;
	}
	return false;
}

static inline bool
find(const struct connlimit *cl, const struct held *h, const struct key *key,
	struct place *out) SL_REQUIRES(h)
{
	return find_in(h->b, 1, key, out) ||
	       (unlikely(h->b->more != 0) && find_further(cl, h->b, key, out));
}

/* A free cell of the line, or the first of two; LINE_CELLS: there is none. */
static inline unsigned int
free_cell(const struct line *l, bool two)
{
	unsigned int k;

	for (k = 0; k < LINE_CELLS; k++)
		if (l->cell[k].count == 0 && likely(!is_second(l, k)) &&
			(likely(!two) || (k + 1 < LINE_CELLS && l->cell[k + 1].count == 0)))
			return k;
	return LINE_CELLS;
}

/* Where a counter may begin beyond the first line; false: nowhere. */
static __rte_noinline bool
room_further(struct connlimit_thread *t, struct line *l, bool two, struct place *out)
{
	uint32_t number = 1;
	struct line *next;
	unsigned int k;

	do {
		number += LINE_CELLS;
		next = more_of(t->cl, l);
		if (next == NULL && number <= CHAIN_CELLS)
			next = connlimit_add_line(t, l);
		if (next == NULL)
			return false;
		l = next;
		k = free_cell(l, two);
	} while (k == LINE_CELLS);
	*out = (struct place){l, &l->cell[k], number + k};
	return true;
}

static inline bool
find_room(struct connlimit_thread *t, struct held *h, bool two, struct place *out) SL_REQUIRES(h)
{
	unsigned int k = free_cell(h->b, two);

	if (unlikely(k == LINE_CELLS))
		return room_further(t, h->b, two, out);
	*out = (struct place){h->b, &h->b->cell[k], 1 + k};
	return true;
}

/* Where a charge says; false: there is no such place. */
static inline bool
locate(const struct connlimit *cl, struct line *l, uint32_t charge, struct place *out)
{
	uint32_t k = (charge >> CHARGE_HASH_BITS) - 1;

	for (; unlikely(k >= LINE_CELLS); k -= LINE_CELLS) {
		l = more_of(cl, l);
		if (l == NULL)
			return false;
	}
	*out = (struct place){l, &l->cell[k], charge >> CHARGE_HASH_BITS};
	return true;
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
count_keys(struct connlimit_thread *t, struct connlimit_part *part, bool two, int64_t n)
{
	netns_counter_add(&t->keys, n);
	netns_counter_add(&part->keys, n);
	if (unlikely(two))
		netns_counter_add(&t->wide, n);
}

/* ---- charges ---- */

/* A counter for a key that has none, in the cell that it had if there is one; false when the
 * namespace may have no more, or nobody may. */
static inline bool
begin(struct connlimit_thread *t, struct held *h, const struct key *key, struct netns *ns,
	bool found, struct place *at) SL_REQUIRES(h)
{
	struct connlimit_part *part = part_of(t, ns);
	bool two = wide(key->word);

	if (unlikely(part->credit == 0 || t->credit == 0) && !take_credit(t, ns, part))
		return false;
	if (!found && unlikely(!find_room(t, h, two, at)))
		return false;
	part->credit--;
	t->credit--;
	*at->cell = (struct cell){.key = key->word};
	at->line->refused_high[cell_of(at)] = 0;
	if (unlikely(two)) {
		at->line->wide |= (uint8_t)(1u << cell_of(at));
		memcpy(at->cell + 1, &key->addr, sizeof(key->addr));
	}
	count_keys(t, part, two, 1);
	return true;
}

/* Two cells, or some beyond the first line. */
static __rte_noinline void
clear(struct connlimit_thread *t, struct line *first, const struct place *at, bool two)
{
	if (two) {
		at->line->wide &= (uint8_t)~(1u << cell_of(at));
		memset(at->cell, 0, 2 * sizeof(*at->cell));
	}
	if (at->line != first)
		connlimit_drop_empty(t, first);
}

/* The counter has no connection left. */
static inline void
end(struct connlimit_thread *t, struct held *h, const struct place *at,
	struct netns *ns) SL_REQUIRES(h)
{
	bool two = unlikely(at->line->wide != 0) && at->line->wide >> cell_of(at) & 1;

	count_keys(t, part_of(t, ns), two, -1);
	if (unlikely(two || at->line != h->b))
		clear(t, h->b, at, two);
}

static inline uint32_t
charge_of(const struct place *at, uint32_t hash)
{
	return at->number << CHARGE_HASH_BITS | (hash & CHARGE_HASH_MASK);
}

static bool
is_charged(const struct ct_entry *e, uint32_t charge)
{
	unsigned int k;

	for (k = 0; k < RTE_DIM(e->limit); k++)
		if (e->limit[k] == charge)
			return true;
	return false;
}

/* Where a new charge goes; NULL when all are taken. */
static uint32_t *
free_slot(struct ct_entry *e)
{
	unsigned int k;

	for (k = 0; k < RTE_DIM(e->limit); k++)
		if (e->limit[k] == 0)
			return &e->limit[k];
	return NULL;
}

enum charged { CHARGED, NO_COUNTER, NO_SLOT };

/* Charges the entry to the key's counter, if it is not yet. */
static inline enum charged
charge(struct connlimit_thread *t, struct held *h, const struct key *key, struct ct_entry *e,
	struct place *at) SL_REQUIRES(h)
{
	bool found = find(t->cl, h, key, at);
	uint32_t *slot = &e->limit[0];

	if (unlikely(*slot != 0)) {
		if (found && is_charged(e, charge_of(at, key->hash)))
			return CHARGED;
		slot = free_slot(e);
		if (slot == NULL)
			return NO_SLOT;
	}
	if ((!found || at->cell->count == 0) && unlikely(!begin(t, h, key, e->ns, found, at)))
		return NO_COUNTER;
	*slot = charge_of(at, key->hash);
	at->cell->count++;
	return CHARGED;
}

static void
count_refusal(struct place *at)
{
	if (++at->cell->refused == 0)
		at->line->refused_high[cell_of(at)]++;
}

static __rte_noinline enum connlimit_verdict
not_charged(struct connlimit_thread *t, enum charged why)
{
	if (why == NO_COUNTER) {
		netns_counter_add(&t->stats.full, 1);
		return CONNLIMIT_FULL;
	}
	netns_counter_add(&t->stats.many, 1);
	return CONNLIMIT_MANY;
}

enum connlimit_verdict
connlimit_weigh(struct connlimit_thread *t, struct connlimit_count *c, const struct tuple *seen,
	struct ct_entry *e, const struct connlimit_ahead *ahead)
{
	struct connlimit *cl = t->cl;
	uint64_t limit = __atomic_load_n(&c->limit, __ATOMIC_RELAXED);
	enum charged charged;
	bool above = false;
	struct place at;
	struct held h;
	struct key key;

	if (unlikely(c->by.family != 0 && c->by.family != seen->family))
		return CONNLIMIT_NO_MATCH;
	netns_counter_add(&t->stats.weighed, 1);
	key_of(c, seen, &key);
	take_hash(cl, c, ahead, &key);
	lock_bucket(&h, cl, key.hash, key.shape, key.bucket);
	charged = charge(t, &h, &key, e, &at);
	if (likely(charged == CHARGED)) {
		above = at.cell->count > limit >> 1;
		if (unlikely(above))
			count_refusal(&at);
	}
	unlock_bucket(&h);
	if (unlikely(t->grow)) {
		t->grow = false;
		connlimit_grow(t);
	}
	if (unlikely(charged != CHARGED))
		return not_charged(t, charged);
	if (unlikely(above))
		netns_counter_add(&t->stats.over, 1);
	return above == (limit & 1) ? CONNLIMIT_MATCH : CONNLIMIT_NO_MATCH;
}

/* The charge was read of its bucket b, at this shape. */
static inline void
release_one(struct connlimit_thread *t, uint32_t charge, uint64_t shape, struct line *b,
	struct netns *ns)
{
	struct place at;
	struct held h;

	lock_bucket(&h, t->cl, charge, shape, b);
	if (unlikely(!locate(t->cl, h.b, charge, &at) || at.cell->count == 0))
		netns_counter_add(&t->stats.errors, 1);
	else if (--at.cell->count == 0)
		end(t, &h, &at, ns);
	unlock_bucket(&h);
}

/* Charges are at the front, and go together. */
static inline void
release_from(struct connlimit_thread *t, struct ct_entry *e, unsigned int k)
{
	uint64_t shape = shape_now(t->cl);

	for (; k < RTE_DIM(e->limit) && e->limit[k] != 0; k++) {
		release_one(t, e->limit[k], shape, bucket_of(t->cl, shape, e->limit[k]), e->ns);
		e->limit[k] = 0;
	}
}

void
connlimit_release(struct connlimit_thread *t, struct ct_entry *e)
{
	release_from(t, e, 0);
}

void
connlimit_prefetch(struct connlimit_thread *t, const struct connlimit_count *c,
	const struct tuple *seen, struct connlimit_ahead *out)
{
	struct key key;

	out->count = NULL;
	if (c->by.family != 0 && c->by.family != seen->family)
		return;
	key_of(c, seen, &key);
	hash_key(t->cl, c, &key);
	out->count = c;
	out->word = key.word;
	out->shape = key.shape;
	out->bucket = key.bucket;
	out->hash = key.hash;
	if (unlikely(c->wide))
		out->addr = key.addr;
	__builtin_prefetch(key.bucket, 1);
}

/* Their first charges together, what else there is one by one. */
static inline void
release_some(struct connlimit_thread *t, struct ct_entry *const e[], unsigned int n)
{
	struct line *b[RELEASE_AT_ONCE];
	uint64_t shape = shape_now(t->cl);
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (e[i]->limit[0] == 0)
			continue;
		b[i] = bucket_of(t->cl, shape, e[i]->limit[0]);
		__builtin_prefetch(b[i], 1);
	}
	for (i = 0; i < n; i++) {
		if (e[i]->limit[0] == 0)
			continue;
		release_one(t, e[i]->limit[0], shape, b[i], e[i]->ns);
		e[i]->limit[0] = 0;
		if (unlikely(e[i]->limit[1] != 0))
			release_from(t, e[i], 1);
	}
}

void
connlimit_release_bulk(struct connlimit_thread *t, struct ct_entry *const e[], unsigned int n)
{
	unsigned int some;

	for (; n > 0; n -= some, e += some) {
		some = RTE_MIN(n, RELEASE_AT_ONCE);
		release_some(t, e, some);
	}
}
