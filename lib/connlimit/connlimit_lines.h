/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of connlimit: buckets and their lines, for counter.c and grow.c. */
#ifndef CONNLIMIT_LINES_H
#define CONNLIMIT_LINES_H

#include "connlimit_private.h"

struct SL_CAPABILITY("bucket") held {
	struct line *b;
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

static inline bool
wide(uint64_t word)
{
	return word & KEY_WIDE;
}

static inline unsigned int
cells_of(uint64_t word)
{
	return wide(word) ? 2 : 1;
}

static inline uint32_t
hash_narrow(const struct connlimit *cl, uint64_t word)
{
	return (uint32_t)sl_hash_word(&cl->hasher, word);
}

static inline struct line *
more_of(const struct connlimit *cl, const struct line *l)
{
	return likely(l->more == 0) ? NULL : &cl->more[l->more];
}

/* Behind the others; its cells are the caller's to fill. */
static inline unsigned int
append(struct line *l, uint8_t id, unsigned int cells)
{
	unsigned int k = l->n;

	l->id[k] = id;
	l->refused_high[k] = 0;
	l->n += (uint8_t)cells;
	return k;
}

/* What is behind moves up. */
static inline void
cut(struct line *l, unsigned int k, unsigned int cells)
{
	l->n -= (uint8_t)cells;
	for (; unlikely(k < l->n); k++) {
		l->cell[k] = l->cell[k + cells];
		l->id[k] = l->id[k + cells];
		l->refused_high[k] = l->refused_high[k + cells];
	}
	for (; k < l->n + cells; k++) {
		l->cell[k].key = 0;
		l->id[k] = 0;
	}
}

/* ---- grow.c ---- */

/* Takes the empty lines out of the chain, but for the first. */
void connlimit_drop_empty(struct connlimit_thread *t, struct line *l);

/* Room for so many more cells in so many buckets; *keys_left (NULL is allowed): for so many more
 * keys of all. Below 0: there are more already. */
int64_t connlimit_room(const struct connlimit *cl, uint32_t buckets, int64_t *keys_left);

/* Divides some buckets, while there are more cells than the table is made for, and room for more
 * buckets. Nothing is held. */
void connlimit_grow(struct connlimit_thread *t);

#endif
