/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation and sizes: the entry pool, the walk's array and the overflow lines are reserved for the
 * largest maximum there may be and made present as nf_conntrack_max is raised, so nothing in them
 * ever moves.
 *
 * How many overflow lines there must be: chains are dense, so a chain of n references has
 * ceil(n / 8) - 1 of them, at most n / 8; two references an entry make max / 4, and twice that
 * while a resize keeps the old chains beside the new. What threads hold in their caches comes on
 * top.
 */
#include "private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"

static uint32_t
cached_ids(const struct ct *ct)
{
	return ct->n_threads * SL_IDS_CACHE;
}

static uint32_t
pool_limit(const struct ct *ct, uint32_t max)
{
	return 1 + max + cached_ids(ct);
}

static uint32_t
overflow_limit(const struct ct *ct, uint32_t max)
{
	return 1 + max / 2 + cached_ids(ct);
}

/*
 * How many a full pool needs by chance, which is what is made present: with 4, 8 and 16 references
 * to a line on average, 0.02, 0.4 and 1.5 overflow lines a line (Poisson). The rest is there for
 * attacks and for the time of a resize.
 */
static uint32_t
overflow_expected(const struct ct *ct, uint32_t max)
{
	uint64_t buckets = ct->buckets;

	if (buckets >= (uint64_t)max * 4)
		return cached_ids(ct) + max / 64;
	return cached_ids(ct) + (buckets >= (uint64_t)max * 2 ? max / 8 : max / 4);
}

static void
set_limit(struct sl_ids *ids, uint32_t limit)
{
	sl_lock(&ids->lock);
	ids->limit = RTE_MAX(ids->limit, limit);
	sl_unlock(&ids->lock);
}

int
ct_set_max(struct ct *ct, uint32_t max, struct sl_err *err)
{
	uint32_t limit = pool_limit(ct, max);
	int ret;

	if (max < 1 || max > CT_ENTRIES_MAX)
		return sl_refuse(err, EINVAL, "nf_conntrack_max %u is out of range (1-%u)", max,
			CT_ENTRIES_MAX);
	if (max < ct->reserved)
		return sl_refuse(err, EINVAL,
			"nf_conntrack_max %u is less than the reserves of all namespaces, %lu: "
			"lower sluice.conntrack_reserve first",
			max, (unsigned long)ct->reserved);
	ret = sl_region_grow(&ct->pool_region, (size_t)limit * sizeof(struct ct_entry), err);
	if (ret == 0)
		ret = sl_region_grow(&ct->slot_region, (size_t)limit * sizeof(struct ct_slot), err);
	if (ret == 0)
		ret = sl_region_grow(
			&ct->queued_region, (size_t)limit * sizeof(struct ct_queued), err);
	if (ret == 0)
		ret = sl_region_grow(&ct->entry_ids.region, (size_t)limit * sizeof(uint32_t), err);
	if (ret == 0)
		ret = sl_region_grow(&ct->overflow_region,
			(size_t)overflow_expected(ct, max) * sizeof(struct ct_line), err);
	if (ret < 0)
		return ret;
	set_limit(&ct->entry_ids, limit);
	set_limit(&ct->line_ids, overflow_limit(ct, max));
	__atomic_store_n(&ct->max, max, __ATOMIC_RELAXED);
	__atomic_store_n(&ct->common_max, max - (uint32_t)ct->reserved, __ATOMIC_RELAXED);
	if (ct->lines != NULL)
		ct_lines_bound(ct->lines, max);
	if (ct->resizing != NULL)
		ct_lines_bound(ct->resizing, max);
	return 0;
}

uint32_t
ct_max(const struct ct *ct)
{
	return __atomic_load_n(&ct->max, __ATOMIC_RELAXED);
}

uint32_t
ct_buckets(const struct ct *ct)
{
	return ct->buckets;
}

int
ct_buckets_round(uint32_t *buckets, struct sl_err *err)
{
	if (*buckets > CT_BUCKETS_MAX)
		return sl_refuse(err, EINVAL, "nf_conntrack_buckets %u is out of range (%u-%u)",
			*buckets, CT_BUCKETS_MIN, CT_BUCKETS_MAX);
	*buckets = RTE_MAX(rte_align32pow2(*buckets), CT_BUCKETS_MIN);
	return 0;
}

static int
reserve(struct ct *ct, struct sl_err *err)
{
	uint32_t entries = pool_limit(ct, CT_ENTRIES_MAX);
	uint32_t lines = overflow_limit(ct, CT_ENTRIES_MAX);
	size_t stripes = CT_STRIPES * sizeof(struct sl_stripe);
	int ret;

	ret = sl_region_reserve(&ct->pool_region, (size_t)entries * sizeof(struct ct_entry), err);
	if (ret == 0)
		ret = sl_region_reserve(
			&ct->slot_region, (size_t)entries * sizeof(struct ct_slot), err);
	if (ret == 0)
		ret = sl_region_reserve(
			&ct->queued_region, (size_t)entries * sizeof(struct ct_queued), err);
	if (ret == 0)
		ret = sl_region_reserve(
			&ct->overflow_region, (size_t)lines * sizeof(struct ct_line), err);
	if (ret == 0)
		ret = sl_region_reserve(&ct->stripe_region, stripes, err);
	if (ret == 0)
		ret = sl_region_grow(&ct->stripe_region, stripes, err);
	if (ret == 0)
		ret = sl_ids_init(&ct->entry_ids, entries, err);
	if (ret == 0)
		ret = sl_ids_init(&ct->line_ids, lines, err);
	ct->pool = (struct ct_entry *)(void *)ct->pool_region.base;
	ct->slot = (struct ct_slot *)(void *)ct->slot_region.base;
	ct->queued = (struct ct_queued *)(void *)ct->queued_region.base;
	ct->overflow = (struct ct_line *)(void *)ct->overflow_region.base;
	ct->stripe = (struct sl_stripe *)(void *)ct->stripe_region.base;
	return ret;
}

static int
create_threads(struct ct *ct, struct sl_err *err)
{
	unsigned int i;

	ct->thread = calloc(ct->n_threads, sizeof(*ct->thread));
	if (ct->thread == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	for (i = 0; i < ct->n_threads; i++) {
		ct->thread[i] = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*ct->thread[i]));
		if (ct->thread[i] == NULL)
			return sl_refuse(err, ENOMEM, "out of memory");
		memset(ct->thread[i], 0, sizeof(*ct->thread[i]));
		ct->thread[i]->ct = ct;
		ct->thread[i]->index = i;
	}
	return 0;
}

static int
init(struct ct *ct, const struct ct_config *config, struct sl_err *err)
{
	int ret;

	if (config->threads > CT_THREADS_MAX)
		return sl_refuse(err, EINVAL, "%u threads are too many: %u can track connections",
			config->threads, CT_THREADS_MAX);
	ct->n_threads = config->threads;
	ct->ops = config->ops;
	ct->netns = config->netns;
	ct->buckets = config->buckets;
	ret = sl_hasher_init(&ct->hasher, config->hash, config->hash_seed);
	if (ret < 0)
		return sl_refuse(err, -ret, "no key for the hash: %s", strerror(-ret));
	ret = ct_buckets_round(&ct->buckets, err);
	if (ret == 0)
		ret = reserve(ct, err);
	if (ret == 0)
		ret = create_threads(ct, err);
	if (ret == 0)
		ret = ct_set_max(ct, config->max_entries, err);
	if (ret == 0)
		ret = ct_lines_create(&ct->lines, ct->buckets, ct->max, err);
	return ret;
}

struct ct *
ct_create(const struct ct_config *config, struct sl_err *err)
{
	struct ct *ct = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*ct));

	if (ct == NULL) {
		sl_refuse(err, ENOMEM, "out of memory");
		return NULL;
	}
	memset(ct, 0, sizeof(*ct));
	if (init(ct, config, err) < 0) {
		ct_destroy(ct);
		return NULL;
	}
	return ct;
}

void
ct_destroy(struct ct *ct)
{
	unsigned int i;

	if (ct == NULL)
		return;
	ct_own_fini(ct);
	ct_lines_destroy(ct->resizing);
	ct_lines_destroy(ct->lines);
	ct_lines_destroy(ct->retired);
	for (i = 0; ct->thread != NULL && i < ct->n_threads; i++)
		free(ct->thread[i]);
	free(ct->thread);
	sl_ids_fini(&ct->entry_ids);
	sl_ids_fini(&ct->line_ids);
	sl_region_release(&ct->pool_region);
	sl_region_release(&ct->slot_region);
	sl_region_release(&ct->queued_region);
	sl_region_release(&ct->overflow_region);
	sl_region_release(&ct->stripe_region);
	free(ct);
}

struct ct_thread *
ct_thread(struct ct *ct, unsigned int index)
{
	return ct->thread[index];
}

unsigned int
ct_thread_index(const struct ct_thread *t)
{
	return t->index;
}

void
ct_listen(struct ct *ct, bool on)
{
	__atomic_store_n(&ct->listened, on, __ATOMIC_RELAXED);
}

uint64_t
ct_count(const struct ct *ct)
{
	int64_t sum = 0;
	unsigned int i;

	for (i = 0; i < ct->n_threads; i++)
		sum += __atomic_load_n(&ct->thread[i]->entries, __ATOMIC_RELAXED);
	return sum > 0 ? (uint64_t)sum : 0;
}

void
ct_stats(const struct ct *ct, unsigned int thread, struct ct_stats *out)
{
	const uint64_t *from = (const uint64_t *)(const void *)&ct->thread[thread]->stats;
	uint64_t *to = (uint64_t *)(void *)out;
	unsigned int i;

	for (i = 0; i < sizeof(*out) / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

static uint32_t
chain_lines(const struct ct *ct, const struct ct_line *l, uint32_t bound)
{
	uint32_t n = 1, next;

	while ((next = __atomic_load_n(&l->next, __ATOMIC_ACQUIRE)) != 0 && n < bound) {
		l = &ct->overflow[next];
		n++;
	}
	return n;
}

void
ct_memory_sizes(const struct ct *ct, struct ct_memory *out)
{
	const struct ct_lines *l = ct->lines;

	*out = (struct ct_memory){
		.pool_present = ct->pool_region.present + ct->queued_region.present,
		.lines_present = l->present + ct->overflow_region.present,
		.own_present = ct->own_present,
		.own_tables = ct->own_tables,
		.walk_present = ct->slot_region.present + ct->entry_ids.region.present,
		.high_water = __atomic_load_n(&ct->entry_ids.high_water, __ATOMIC_RELAXED) - 1,
		.lines = l->mask + 1,
	};
}

void
ct_memory(const struct ct *ct, struct ct_memory *out)
{
	const struct ct_lines *l = ct->lines;
	uint32_t step = l->mask / CT_MEMORY_SAMPLE + 1, i, n;

	ct_memory_sizes(ct, out);
	for (i = 0; i <= l->mask; i += step) {
		n = chain_lines(ct, &l->line[i], 2 * ct_chain_max(l));
		out->overflow_lines_used += (n - 1) * step;
		out->longest_chain = RTE_MAX(out->longest_chain, n);
	}
}
