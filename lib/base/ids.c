/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Free indices. Each thread keeps a cache and trades halves of it with the depot, so the depot's
 * lock is taken once in SL_IDS_CACHE / 2 operations. Never-used indices come from the high-water
 * mark, in ascending order, so that a young pool is dense.
 */
#include "ids.h"

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "err.h"

#define HALF (SL_IDS_CACHE / 2)

int
sl_ids_init(struct sl_ids *ids, uint32_t limit, struct sl_err *err)
{
	int ret;

	*ids = (struct sl_ids){.high_water = 1};
	ret = sl_region_reserve(&ids->region, (size_t)limit * sizeof(uint32_t), err);
	ids->stack = (uint32_t *)(void *)ids->region.base;
	return ret;
}

void
sl_ids_fini(struct sl_ids *ids)
{
	sl_region_release(&ids->region);
}

static void
refill(struct sl_ids *ids, struct sl_ids_cache *cache)
{
	uint32_t n = 0, first, fresh;

	sl_lock(&ids->lock);
	for (; n < HALF && ids->n > 0; n++)
		cache->id[n] = ids->stack[--ids->n];
	first = ids->high_water;
	fresh = first < ids->limit ? RTE_MIN(HALF - n, ids->limit - first) : 0;
	__atomic_store_n(&ids->high_water, first + fresh, __ATOMIC_RELEASE);
	sl_unlock(&ids->lock);
	/* The cache is a stack: the lowest of the fresh ones goes on top. */
	while (fresh > 0)
		cache->id[n++] = first + --fresh;
	cache->n = n;
}

uint32_t
sl_ids_get(struct sl_ids *ids, struct sl_ids_cache *cache)
{
	if (unlikely(cache->n == 0)) {
		refill(ids, cache);
		if (cache->n == 0)
			return 0;
	}
	return cache->id[--cache->n];
}

void
sl_ids_put(struct sl_ids *ids, struct sl_ids_cache *cache, uint32_t id)
{
	uint32_t i;

	if (unlikely(cache->n == SL_IDS_CACHE)) {
		/* The older half goes: what was freed last is warm. */
		sl_lock(&ids->lock);
		for (i = 0; i < HALF; i++)
			ids->stack[ids->n++] = cache->id[i];
		sl_unlock(&ids->lock);
		for (i = 0; i < HALF; i++)
			cache->id[i] = cache->id[i + HALF];
		cache->n = HALF;
	}
	cache->id[cache->n++] = id;
}
