/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of connlimit: buckets and their lines, for counter.c and grow.c. */
#ifndef CONNLIMIT_LINES_H
#define CONNLIMIT_LINES_H

#include "connlimit_private.h"

struct SL_CAPABILITY("bucket") held {
	struct line *b;
};

static inline struct line *
bucket_of(const struct connlimit *cl, uint64_t shape, uint32_t hash)
{
	uint32_t mask = (uint32_t)(shape >> 32), split = (uint32_t)shape, i = hash & mask;

	return &cl->bucket[i < split ? hash & (mask << 1 | 1) : i];
}

static inline uint64_t
shape_now(const struct connlimit *cl)
{
	return __atomic_load_n(&cl->shape, __ATOMIC_ACQUIRE);
}

/* Whoever finds the bucket divided tries the next: it can be, once for each bit of the hash. */
static __rte_noinline struct line *
lock_again(const struct connlimit *cl, uint32_t hash, struct line *b) SL_NO_ANALYSIS
{
	struct line *again;

	while ((again = bucket_of(cl, shape_now(cl), hash)) != b) {
		sl_unlock(&b->lock);
		b = again;
		sl_lock(&b->lock);
	}
	return b;
}

/* The bucket of a hash; b is what it was when the table had this shape. */
static inline void
lock_bucket(struct held *h, const struct connlimit *cl, uint32_t hash, uint64_t shape,
	struct line *b) SL_ACQUIRE(h) SL_NO_ANALYSIS
{
	sl_lock(&b->lock);
	if (unlikely(shape_now(cl) != shape))
		b = lock_again(cl, hash, b);
	h->b = b;
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

/* Whether the cell is the address of the counter before it. */
static inline bool
is_second(const struct line *l, unsigned int k)
{
	return l->wide << 1 >> k & 1;
}

/* Whether a counter that counts something begins in the cell. */
static inline bool
in_use(const struct line *l, unsigned int k)
{
	return l->cell[k].count > 0 && !is_second(l, k);
}

/* ---- grow.c ---- */

/* A line at the end of the chain, whose last is l; NULL: there is none to be had. */
struct line *connlimit_add_line(struct connlimit_thread *t, struct line *l);

/* Takes the lines at the end of the chain in which nothing is in use, but for the first. */
void connlimit_drop_empty(struct connlimit_thread *t, struct line *l);

/* Room for so many more cells in so many buckets; *keys_left (NULL is allowed): for so many more
 * keys of all. Below 0: there are more already. */
int64_t connlimit_room(const struct connlimit *cl, uint32_t buckets, int64_t *keys_left);

/* Divides some buckets, while there are more cells than the table is made for, and room for more
 * buckets. Nothing is held. */
void connlimit_grow(struct connlimit_thread *t);

#endif
