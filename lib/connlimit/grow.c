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

void
connlimit_drop_empty(struct connlimit_thread *t, struct line *l)
{
	struct connlimit *cl = t->cl;
	uint32_t i;

	while ((i = l->more) != 0) {
		if (cl->more[i].n > 0) {
			l = &cl->more[i];
			continue;
		}
		l->more = cl->more[i].more;
		sl_ids_put(&cl->ids, &t->ids, i);
	}
}

/* The hash of a counter, without the bits that choose no bucket. */
static uint32_t
hash_of(const struct connlimit *cl, const struct cell *c)
{
	return wide(c->key) ? (uint32_t)c->key : hash_narrow(cl, c->key);
}

/* As many lines as `from` has besides its first, chained: no more will be needed for a part of
 * what is in it. False: they are not to be had. */
static bool
take_lines(struct connlimit_thread *t, const struct line *from, struct line *to)
{
	struct connlimit *cl = t->cl;
	uint32_t i;

	for (; from->more != 0; from = &cl->more[from->more]) {
		i = sl_ids_get(&cl->ids, &t->ids);
		if (i == 0) {
			connlimit_drop_empty(t, to);
			return false;
		}
		memset(&cl->more[i], 0, sizeof(cl->more[i]));
		cl->more[i].more = to->more;
		to->more = i;
	}
	return true;
}

/* Moves those counters of the chain `from` whose bit of the hash is set; `to` has as many lines. */
static void
divide(struct connlimit_thread *t, struct line *from, struct line *to, uint32_t bit)
{
	struct line *first = from, *l;
	unsigned int k, cells, at;

	for (; from != NULL; from = more_of(t->cl, from)) {
		for (k = 0; k < from->n;) {
			cells = cells_of(from->cell[k].key);
			if (!(hash_of(t->cl, &from->cell[k]) & bit)) {
				k += cells;
				continue;
			}
			for (l = to; l->n + cells > LINE_CELLS; l = &t->cl->more[l->more])
				;
			at = append(l, from->id[k], cells);
			l->refused_high[at] = from->refused_high[k];
			memcpy(&l->cell[at], &from->cell[k], cells * sizeof(l->cell[0]));
			cut(from, k, cells);
		}
	}
	connlimit_drop_empty(t, first);
	connlimit_drop_empty(t, to);
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

unsigned int
connlimit_read(struct connlimit *cl, uint64_t *next, struct counter out[CHARGE_IDS])
{
	uint32_t hash = backwards((uint32_t)*next);
	unsigned int k, n = 0;
	struct line *l;
	struct held h;

	lock_bucket(&h, cl, hash);
	*next += extent(shape_now(cl), (uint32_t)(h.b - cl->bucket));
	for (l = h.b; l != NULL; l = more_of(cl, l)) {
		for (k = 0; k < l->n; k += cells_of(l->cell[k].key)) {
			const struct cell *c = &l->cell[k];

			out[n] = (struct counter){.id = (uint32_t)(c->key >> 32) & COUNT_ID_MAX,
				.count = c->count,
				.refused = (uint64_t)l->refused_high[k] << 32 | c->refused};
			if (wide(c->key))
				memcpy(&out[n].addr, &l->cell[k + 1], sizeof(out[n].addr));
			else
				out[n].addr.w[0] = (uint32_t)c->key;
			n++;
		}
	}
	unlock_bucket(&h);
	return n;
}
