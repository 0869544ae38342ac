/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "registry.h"

static struct drop_block *
alloc_blocks(unsigned int n)
{
	size_t bytes = (size_t)n * sizeof(struct drop_block);
	struct drop_block *b = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);

	if (b != NULL)
		memset(b, 0, bytes);
	return b;
}

int
drop_pool_init(struct drop_pool *p, unsigned int threads, unsigned int blocks)
{
	unsigned int i;

	*p = (struct drop_pool){0};
	p->unattributed = alloc_blocks(threads);
	p->blocks = alloc_blocks(RTE_MAX(blocks, 1u));
	if (p->unattributed == NULL || p->blocks == NULL) {
		drop_pool_destroy(p);
		return -ENOMEM;
	}
	for (i = blocks; i-- > 0;) {
		p->blocks[i].next = p->free;
		p->free = &p->blocks[i];
	}
	return 0;
}

void
drop_pool_destroy(struct drop_pool *p)
{
	free(p->blocks);
	free(p->unattributed);
}

static struct netns_drops *
drop_pool_take(struct drop_pool *p)
{
	struct drop_block *b;

	/* An empty pool stays empty for long: do not have every drop take the lock for it. */
	if (__atomic_load_n(&p->free, __ATOMIC_RELAXED) == NULL)
		return NULL;
	sl_lock(&p->lock);
	b = p->free;
	if (b != NULL)
		__atomic_store_n(&p->free, b->next, __ATOMIC_RELAXED);
	sl_unlock(&p->lock);
	return b == NULL ? NULL : &b->drops;
}

void
drop_pool_put(struct netns *ns)
{
	struct drop_pool *p = &ns->registry->drops;
	unsigned int i;

	for (i = 0; i < ns->registry->threads; i++) {
		struct netns_drops *d = ns->counters[i].drops;
		struct drop_block *b;

		if (d == NULL)
			continue;
		memset(d, 0, sizeof(*d));
		b = container_of(d, struct drop_block, drops);
		sl_lock(&p->lock);
		b->next = p->free;
		__atomic_store_n(&p->free, b, __ATOMIC_RELAXED);
		sl_unlock(&p->lock);
	}
}

void
netns_count_drop(struct netns_registry *r, struct netns *ns, unsigned int thread,
	enum sl_drop reason)
{
	struct netns_drops *d = NULL;

	if (ns != NULL) {
		struct netns_counters *c = &ns->counters[thread];

		d = c->drops;
		if (unlikely(d == NULL)) {
			d = drop_pool_take(&r->drops);
			if (d != NULL)
				__atomic_store_n(&c->drops, d, __ATOMIC_RELEASE);
		}
	}
	if (unlikely(d == NULL))
		d = &r->drops.unattributed[thread].drops;
	netns_counter_add(&d->count[reason], 1);
}

static void
add_drops(uint64_t sum[SL_DROP_COUNT], const struct netns_drops *d)
{
	unsigned int i;

	for (i = 0; i < SL_DROP_COUNT; i++)
		sum[i] += __atomic_load_n(&d->count[i], __ATOMIC_RELAXED);
}

void
netns_totals(const struct netns *ns, struct netns_totals *out)
{
	unsigned int i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < ns->registry->threads; i++) {
		const struct netns_counters *c = &ns->counters[i];
		const struct netns_drops *d = __atomic_load_n(&c->drops, __ATOMIC_ACQUIRE);

		out->packets += __atomic_load_n(&c->packets, __ATOMIC_RELAXED);
		out->bytes += __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
		out->created += __atomic_load_n(&c->created, __ATOMIC_RELAXED);
		out->entries += __atomic_load_n(&c->entries, __ATOMIC_RELAXED);
		if (d != NULL)
			add_drops(out->drops, d);
	}
}

void
netns_unattributed_drops(const struct netns_registry *r, uint64_t out[SL_DROP_COUNT])
{
	unsigned int i;

	memset(out, 0, SL_DROP_COUNT * sizeof(out[0]));
	for (i = 0; i < r->threads; i++)
		add_drops(out, &r->drops.unattributed[i].drops);
}
