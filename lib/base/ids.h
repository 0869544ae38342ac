/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Free indices of a type-stable array that several threads take from and give back to: a depot, and
 * a cache for each thread, which alone uses it. Index 0 is never handed out. Which indices may be
 * is bounded by `limit`, which the owner raises, under the lock, when the array has grown.
 */
#ifndef SL_IDS_H
#define SL_IDS_H

#include <stdint.h>

#include "lock.h"
#include "mem.h"

#define SL_IDS_CACHE 512u

/* Indices never used start at high_water. */
struct sl_ids {
	struct sl_lock lock;
	uint32_t *stack; /* guarded by lock, as all below; high_water is also read without it */
	uint32_t n;
	uint32_t high_water;
	uint32_t limit; /* indices below it may be handed out */
	struct sl_region region; /* of the stack, to be grown with the array */
};

struct sl_ids_cache {
	uint32_t n;
	uint32_t id[SL_IDS_CACHE];
};

/* limit: how many indices there may ever be. 0 or -ENOMEM. */
int sl_ids_init(struct sl_ids *ids, uint32_t limit, struct sl_err *err);
void sl_ids_fini(struct sl_ids *ids);

/* An index, or 0 when there is none left. */
uint32_t sl_ids_get(struct sl_ids *ids, struct sl_ids_cache *cache);
void sl_ids_put(struct sl_ids *ids, struct sl_ids_cache *cache, uint32_t id);

/* The index that the next sl_ids_get() of this thread gives, or 0 when the cache is empty. */
static inline uint32_t
sl_ids_peek(const struct sl_ids_cache *cache, unsigned int ahead)
{
	return cache->n > ahead ? cache->id[cache->n - 1 - ahead] : 0;
}

#endif
