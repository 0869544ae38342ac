/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each thread counts its gets less its puts, and the sum is how many records there are: so no
 * counter is shared. Indices lie in the threads' caches, some hundred in each, beside which there
 * are as many as may be used.
 */
#include "synproxy_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "err.h"
#include "ids.h"
#include "mem.h"
#include "netns.h"
#include "tcp_limit.h"

struct pool_thread {
	int64_t used; /* written by the thread, read by all */
	struct sl_ids_cache cache;
} __rte_cache_aligned;

struct synproxy_pool {
	struct synproxy *record; /* index 0 is none */
	struct sl_region region; /* control only */
	struct sl_ids ids;
	uint32_t max; /* written by control, read by workers */
	unsigned int threads;
	struct pool_thread thread[];
};

static uint32_t
indices(const struct synproxy_pool *pool, uint32_t records)
{
	return 1 + records + pool->threads * SL_IDS_CACHE;
}

struct synproxy_pool *
synproxy_pool_create(unsigned int threads, struct sl_err *err)
{
	size_t size = sizeof(struct synproxy_pool) + threads * sizeof(struct pool_thread);
	struct synproxy_pool *pool;
	uint32_t limit;

	pool = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(size, (size_t)RTE_CACHE_LINE_SIZE));
	if (pool == NULL) {
		sl_refuse(err, ENOMEM, "out of memory");
		return NULL;
	}
	memset(pool, 0, size);
	pool->threads = threads;
	limit = indices(pool, SYNPROXY_RECORDS_MAX);
	if (sl_region_reserve(&pool->region, limit * sizeof(struct synproxy), err) < 0 ||
		sl_ids_init(&pool->ids, limit, err) < 0) {
		synproxy_pool_destroy(pool);
		return NULL;
	}
	pool->record = (struct synproxy *)(void *)pool->region.base;
	return pool;
}

void
synproxy_pool_destroy(struct synproxy_pool *pool)
{
	if (pool == NULL)
		return;
	sl_ids_fini(&pool->ids);
	sl_region_release(&pool->region);
	free(pool);
}

int
synproxy_pool_set_max(struct synproxy_pool *pool, uint32_t max, struct sl_err *err)
{
	uint32_t limit = indices(pool, max);
	int ret;

	if (max == 0 || max > SYNPROXY_RECORDS_MAX)
		return sl_refuse(err, EINVAL, "sluice.synproxy_max %u is out of range (1-%u)", max,
			SYNPROXY_RECORDS_MAX);
	ret = sl_region_grow(&pool->region, limit * sizeof(struct synproxy), err);
	if (ret == 0)
		ret = sl_region_grow(&pool->ids.region, limit * sizeof(uint32_t), err);
	if (ret < 0)
		return ret;
	sl_lock(&pool->ids.lock);
	if (limit > pool->ids.limit)
		pool->ids.limit = limit;
	sl_unlock(&pool->ids.lock);
	__atomic_store_n(&pool->max, max, __ATOMIC_RELAXED);
	return 0;
}

bool
synproxy_pool_in_use(const struct synproxy_pool *pool)
{
	return pool->max != 0;
}

uint64_t
synproxy_pool_used(const struct synproxy_pool *pool)
{
	int64_t sum = 0;
	unsigned int i;

	for (i = 0; i < pool->threads; i++)
		sum += __atomic_load_n(&pool->thread[i].used, __ATOMIC_RELAXED);
	return sum > 0 ? (uint64_t)sum : 0;
}

uint32_t
synproxy_pool_get(
	struct synproxy_pool *pool, unsigned int thread, struct tcp_netns *tn, uint32_t max)
{
	struct pool_thread *t = &pool->thread[thread];
	uint32_t index;

	if (unlikely(tcp_netns_sum(tn, offsetof(struct tcp_count, proxied)) >= (int64_t)max ||
		     synproxy_pool_used(pool) >= __atomic_load_n(&pool->max, __ATOMIC_RELAXED)))
		return 0;
	index = sl_ids_get(&pool->ids, &t->cache);
	if (likely(index != 0)) {
		netns_counter_add(&t->used, 1);
		netns_counter_add(&tn->count[thread].proxied, 1);
	}
	return index;
}

void
synproxy_pool_put(
	struct synproxy_pool *pool, unsigned int thread, struct tcp_netns *tn, uint32_t index)
{
	struct pool_thread *t = &pool->thread[thread];

	sl_ids_put(&pool->ids, &t->cache, index);
	netns_counter_add(&t->used, -1);
	netns_counter_add(&tn->count[thread].proxied, -1);
}

struct synproxy *
synproxy_pool_at(const struct synproxy_pool *pool, uint32_t index)
{
	return &pool->record[index];
}
