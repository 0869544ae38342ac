/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of counters as a whole: its growth, and walks over it (see counter.c). */
#include <string.h>

#include "connlimit_lines.h"

#define GROW_AT_ONCE 32u /* buckets divided by one call */

uint32_t
connlimit_buckets(const struct connlimit *cl)
{
	uint64_t shape = shape_now(cl);

	return (uint32_t)(shape >> 32) + 1 + (uint32_t)shape;
}

struct line *
connlimit_add_line(struct connlimit_thread *t, struct line *l)
{
	struct connlimit *cl = t->cl;
	uint32_t i = sl_ids_get(&cl->ids, &t->ids);

	if (i == 0)
		return NULL;
	memset(&cl->more[i], 0, sizeof(cl->more[i]));
	l->more = i;
	return &cl->more[i];
}

static bool
is_empty(const struct line *l)
{
	return !in_use(l, 0) && !in_use(l, 1) && !in_use(l, 2);
}

void
connlimit_drop_empty(struct connlimit_thread *t, struct line *l)
{
	struct connlimit *cl = t->cl;
	struct line *last = l; /* that stays */
	uint32_t i, next;

	while ((l = more_of(cl, l)) != NULL)
		if (!is_empty(l))
			last = l;
	i = last->more;
	last->more = 0;
	for (; i != 0; i = next) {
		next = cl->more[i].more;
		sl_ids_put(&cl->ids, &t->ids, i);
	}
}

/* The hash of a counter, without the bits that choose no bucket. */
static uint32_t
hash_of(const struct connlimit *cl, const struct cell *c)
{
	return wide(c->key) ? (uint32_t)c->key : hash_narrow(cl, c->key);
}

/* As many lines as the chain `from` has for `to`, which has one. False: they are not to be had. */
static bool
take_lines(struct connlimit_thread *t, const struct line *from, struct line *to)
{
	struct line *first = to;

	while ((from = more_of(t->cl, from)) != NULL) {
		to = connlimit_add_line(t, to);
		if (to == NULL) {
			connlimit_drop_empty(t, first);
			return false;
		}
	}
	return true;
}

/* A counter goes to the same place of another line. */
static void
move(struct line *from, struct line *to, unsigned int k)
{
	uint8_t bit = from->wide & (uint8_t)(1u << k);
	unsigned int cells = bit != 0 ? 2 : 1;

	memcpy(&to->cell[k], &from->cell[k], cells * sizeof(to->cell[0]));
	memset(&from->cell[k], 0, cells * sizeof(from->cell[0]));
	to->refused_high[k] = from->refused_high[k];
	to->wide |= bit;
	from->wide ^= bit;
}

/* Moves those counters of the chain `from` whose bit of the hash is set; `to` has as many lines. */
static void
divide(struct connlimit_thread *t, struct line *from, struct line *to, uint32_t bit)
{
	struct line *first[2] = {from, to};
	unsigned int k;

	for (; from != NULL; from = more_of(t->cl, from), to = more_of(t->cl, to))
		for (k = 0; k < LINE_CELLS; k++)
			if (in_use(from, k) && hash_of(t->cl, &from->cell[k]) & bit)
				move(from, to, k);
	connlimit_drop_empty(t, first[0]);
	connlimit_drop_empty(t, first[1]);
}

int64_t
connlimit_room(const struct connlimit *cl, uint32_t buckets, int64_t *keys_left)
{
	int64_t keys = 0, cells = 0;
	unsigned int i;

	for (i = 0; i < cl->n_threads; i++) {
		keys += __atomic_load_n(&cl->thread[i]->keys, __ATOMIC_RELAXED);
		cells += __atomic_load_n(&cl->thread[i]->wide, __ATOMIC_RELAXED);
	}
	if (keys_left != NULL)
		*keys_left = (int64_t)__atomic_load_n(&cl->max, __ATOMIC_RELAXED) - keys;
	return (int64_t)buckets * CELLS_PER_TWO_BUCKETS / 2 - keys - cells;
}

/* What the next division will touch. */
static inline void
prefetch_division(const struct connlimit *cl, uint32_t mask, uint32_t split)
{
	__builtin_prefetch(&cl->bucket[split], 1);
	__builtin_prefetch(&cl->bucket[mask + 1 + split], 1);
}

/* Divides the next bucket; false when the lines for it are not to be had. */
static bool
grow_by_one(struct connlimit_thread *t, uint32_t *mask, uint32_t *split)
{
	struct connlimit *cl = t->cl;
	struct line *from = &cl->bucket[*split], *to = &cl->bucket[*mask + 1 + *split];
	bool done;

	sl_lock(&from->lock);
	done = take_lines(t, from, to);
	if (likely(done)) {
		divide(t, from, to, *mask + 1);
		if ((*split)++ == *mask) {
			*mask = *mask << 1 | 1;
			*split = 0;
		}
		__atomic_store_n(&cl->shape, (uint64_t)*mask << 32 | *split, __ATOMIC_RELEASE);
	}
	sl_unlock(&from->lock);
	return done;
}

void
connlimit_grow(struct connlimit_thread *t)
{
	struct connlimit *cl = t->cl;
	uint32_t mask, split, limit = __atomic_load_n(&cl->buckets_present, __ATOMIC_ACQUIRE);
	unsigned int n;

	if (connlimit_room(cl, connlimit_buckets(cl), NULL) >= 0 || !sl_trylock(&cl->grow_lock))
		return;
	mask = (uint32_t)(cl->shape >> 32);
	split = (uint32_t)cl->shape;
	for (n = 0; n < GROW_AT_ONCE && mask + 1 < limit; n++) {
		if (connlimit_room(cl, mask + 1 + split, NULL) >= 0 ||
			!grow_by_one(t, &mask, &split))
			break;
		prefetch_division(cl, mask, split);
	}
	sl_unlock(&cl->grow_lock);
}

/* ---- what is shown ---- */

/* Buckets in the order of their hashes read backwards are parts of one line from 0 to 2^32: one
 * that is divided has its two parts next to each other, in its place. */
static uint32_t
backwards(uint32_t v)
{
	v = __builtin_bswap32(v);
	v = (v & 0x0f0f0f0f) << 4 | (v >> 4 & 0x0f0f0f0f);
	v = (v & 0x33333333) << 2 | (v >> 2 & 0x33333333);
	return (v & 0x55555555) << 1 | (v >> 1 & 0x55555555);
}

/* How much of the line a bucket has. */
static uint64_t
extent(uint64_t shape, uint32_t i)
{
	uint32_t mask = (uint32_t)(shape >> 32), split = (uint32_t)shape;
	uint64_t parts = (uint64_t)mask + 1;

	return (UINT64_C(1) << 32) / (i < split || i > mask ? 2 * parts : parts);
}

static void
copy(const struct line *l, unsigned int k, struct counter *out)
{
	const struct cell *c = &l->cell[k];

	*out = (struct counter){.id = (uint32_t)(c->key >> 32) & COUNT_ID_MAX,
		.count = c->count,
		.refused = (uint64_t)l->refused_high[k] << 32 | c->refused};
	if (wide(c->key))
		memcpy(&out->addr, c + 1, sizeof(out->addr));
	else
		out->addr.w[0] = (uint32_t)c->key;
}

unsigned int
connlimit_read(struct connlimit *cl, uint64_t *next, struct counter out[CHAIN_CELLS])
{
	uint32_t hash = backwards((uint32_t)*next);
	uint64_t shape = shape_now(cl);
	unsigned int k, n = 0;
	struct line *l;
	struct held h;

	lock_bucket(&h, cl, hash, shape, bucket_of(cl, shape, hash));
	*next += extent(shape_now(cl), (uint32_t)(h.b - cl->bucket));
	for (l = h.b; l != NULL; l = more_of(cl, l))
		for (k = 0; k < LINE_CELLS; k++)
			if (in_use(l, k))
				copy(l, k, &out[n++]);
	unlock_bucket(&h);
	return n;
}
