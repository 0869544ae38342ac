/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has which block. A block that has references is in the chain of its host's hash, under whose
 * stripe it comes there with the first one and goes with the last; so whoever finds it there may
 * take a reference, and one that is not the last is given back without a lock. With `deterministic`
 * there are no chains: references are only counted.
 *
 * Locks: a stripe, and under it those of the free blocks or of the past. Reports are made with
 * nothing held.
 */
#include "block_private.h"

#include <errno.h>
#include <stdlib.h>

#include "err.h"

/* ---- made and freed ---- */

void
nat_blocks_free(struct nat_blocks *b)
{
	if (b == NULL)
		return;
	sl_region_release(&b->block_region);
	free(b->host);
	free(b->head);
	free(b->free_of);
	free(b->free);
	free(b->past);
	free(b);
}

uint32_t
nat_blocks_size(const struct nat_blocks *b)
{
	return b->size;
}

bool
nat_blocks_deterministic(const struct nat_blocks *b)
{
	return b->deterministic;
}

/* The pool has been cut already. Its blocks are of hosts that may still use them. */
static int
fits(const struct nat_blocks *b, const struct nat_pool_use *use,
	const struct nat_pool_range *hosts, unsigned int n_hosts, struct sl_err *err)
{
	bool same = b->size == use->block_size && b->deterministic == use->deterministic;

	if (same && b->deterministic)
		same = b->per_host == use->blocks && b->n_ranges == n_hosts &&
		       memcmp(b->host, hosts, n_hosts * sizeof(*hosts)) == 0;
	if (same)
		return 0;
	return sl_refuse(err, EBUSY,
		"pool \"%s\" was cut into %sblocks of %u ports%s by a rule before: delete it, and "
		"add it anew",
		use->pool->name, b->deterministic ? "deterministic " : "", b->size,
		b->deterministic ? " for other hosts or another number of them" : "");
}

int
nat_pool_use_valid(const struct nat_pool_use *use, const struct nat_pool_range *hosts,
	unsigned int n_hosts, struct sl_err *err)
{
	const struct nat_pool *pool = use->pool;

	if (use->filter != NAT_FILTER_PORT && !use->endpoint_independent)
		return sl_refuse(err, EINVAL,
			"pool \"%s\": that filter is for endpoint-independent mappings",
			pool->name);
	if (use->deterministic && use->block_size == 0)
		return sl_refuse(err, EINVAL, "pool \"%s\": only blocks are deterministic",
			pool->name);
	if (pool->blocks != NULL)
		return fits(pool->blocks, use, hosts, n_hosts, err);
	return use->block_size != 0 ? nat_blocks_valid(use, hosts, n_hosts, err) : 0;
}

int
nat_pool_prepare(struct nat *nat, const struct nat_pool_use *use,
	const struct nat_pool_range *hosts, unsigned int n_hosts, struct sl_err *err)
{
	struct nat_pool *pool = use->pool;
	struct nat_blocks *b;
	int ret = nat_pool_use_valid(use, hosts, n_hosts, err);

	if (ret == 0 && use->endpoint_independent) {
		nat->exclusive = true;
		ret = nat_set_max(nat, ct_max(nat->ct), err);
	}
	if (ret != 0 || use->block_size == 0 || pool->blocks != NULL)
		return ret;
	b = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*b), RTE_CACHE_LINE_SIZE));
	if (b == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	memset(b, 0, sizeof(*b));
	ret = nat_blocks_init(b, use, hosts, n_hosts, err);
	if (ret != 0) {
		nat_blocks_free(b);
		return ret;
	}
	nat_pool_set_blocks(pool, b, b->n);
	return 0;
}

/* ---- a host's blocks ---- */

static struct sl_stripe *
stripe_of(struct nat_blocks *b, uint64_t hash)
{
	return &b->stripe[hash % BLOCK_STRIPES];
}

static bool
is_host(const struct nat_block *k, const struct tuple *host, uint64_t hash)
{
	return k->hash == hash && k->family == host->family && k->zone == host->zone &&
	       memcmp(&k->host, &host->src, sizeof(k->host)) == 0;
}

/* Under the stripe. The nth block of the host, plus one; 0: it has fewer, and then *last is one
 * that it has, plus one, and *has how many. Blocks stand in the chain in the order they came. */
static uint32_t
find(const struct nat_blocks *b, const struct tuple *host, uint64_t hash, uint32_t nth,
	uint32_t *last)
{
	uint32_t i, n = 0;

	*last = 0;
	for (i = b->head[hash & b->head_mask]; i != 0; i = b->block[i - 1].next) {
		if (!is_host(&b->block[i - 1], host, hash))
			continue;
		if (n++ == nth)
			return i;
		*last = i;
	}
	return 0;
}

static void
append(struct nat_blocks *b, uint32_t block, uint64_t hash)
{
	uint32_t *at = &b->head[hash & b->head_mask];

	while (*at != 0)
		at = &b->block[*at - 1].next;
	b->block[block].next = 0;
	*at = block + 1;
}

/* Under the stripe: another block for the host. -1: none is free. */
static int64_t
allocate(struct nat_thread *t, struct nat_blocks *b, const struct tuple *host, uint64_t hash,
	uint32_t other)
{
	uint32_t addr = other != 0 ? (other - 1) / b->per_addr : (uint32_t)(hash % b->n_addrs);
	int64_t block = nat_blocks_pick(t, b, addr);
	struct nat_block *k;

	if (block < 0)
		return -1;
	k = &b->block[block];
	*k = (struct nat_block){.host = host->src,
		.hash = hash,
		.since_ns = nat_clock(t),
		.refs = 1,
		.zone = host->zone,
		.family = host->family};
	append(b, (uint32_t)block, hash);
	return block;
}

static void
tell(struct nat_thread *t, const struct nat_pool *pool, enum nat_report_type type, uint32_t block,
	const struct nat_block *k)
{
	struct nat_report r = {.type = type,
		.pool = pool,
		.capacity = pool->blocks->n,
		.host_family = k->family,
		.host = k->host};
	struct nat_block_place place;

	nat_blocks_place(pool, block, &place);
	r.addr = place.addr;
	r.port_lo = place.lo;
	r.port_hi = place.hi;
	nat_report(t, &r);
}

static enum nat_block_take
take_computed(struct nat_thread *t, const struct nat_pool_use *use, const struct tuple *original,
	uint32_t nth, struct nat_block_place *out)
{
	struct nat_blocks *b = use->pool->blocks;
	int64_t first = nat_blocks_of_host(b, original->family, &original->src);
	uint32_t block;

	if (first < 0)
		return NAT_BLOCK_FOREIGN;
	if (nth >= b->per_host)
		return NAT_BLOCK_LIMIT;
	block = (uint32_t)first + nth;
	if (__atomic_fetch_add(&b->block[block].refs, 1, __ATOMIC_RELAXED) == 0)
		nat_pool_count(t, use->pool, NAT_CLASS_TCP, 1);
	nat_blocks_place(use->pool, block, out);
	return NAT_BLOCK_TAKEN;
}

enum nat_block_take
nat_block_take(struct nat_thread *t, const struct nat_pool_use *use, const struct tuple *original,
	uint32_t nth, struct nat_block_place *out)
{
	struct nat_blocks *b = use->pool->blocks;
	struct sl_stripe *stripe;
	struct nat_block made;
	struct tuple host;
	uint32_t i, last;
	int64_t block;
	uint64_t hash;

	if (b->deterministic)
		return take_computed(t, use, original, nth, out);
	nat_source_host(&host, original);
	hash = sl_hash(&t->nat->hasher, &host);
	stripe = stripe_of(b, hash);
	sl_lock(&stripe->lock);
	i = find(b, &host, hash, nth, &last);
	if (likely(i != 0)) {
		__atomic_add_fetch(&b->block[i - 1].refs, 1, __ATOMIC_RELAXED);
		sl_unlock(&stripe->lock);
		nat_blocks_place(use->pool, i - 1, out);
		return NAT_BLOCK_TAKEN;
	}
	block = nth < use->blocks ? allocate(t, b, &host, hash, last) : -1;
	if (block >= 0)
		made = b->block[block];
	sl_unlock(&stripe->lock);
	if (block < 0)
		return nth < use->blocks ? NAT_BLOCK_NONE : NAT_BLOCK_LIMIT;
	nat_blocks_place(use->pool, (uint32_t)block, out);
	tell(t, use->pool, NAT_BLOCK_ALLOCATED, (uint32_t)block, &made);
	nat_pool_count(t, use->pool, NAT_CLASS_TCP, 1);
	return NAT_BLOCK_TAKEN;
}

void
nat_block_hold(struct nat_pool *pool, uint32_t block)
{
	__atomic_add_fetch(&pool->blocks->block[block].refs, 1, __ATOMIC_RELAXED);
}

/* ---- the end of a reference ---- */

static void
keep_past(struct nat_blocks *b, uint32_t block, const struct nat_block *k, uint64_t now)
{
	struct nat_block_past *past;

	sl_lock(&b->past_lock);
	past = &b->past[b->n_past & b->past_mask];
	if (b->n_past > b->past_mask)
		b->forgotten_ns = past->to_ns;
	*past = (struct nat_block_past){.host = k->host,
		.from_ns = k->since_ns,
		.to_ns = now,
		.block = block,
		.family = k->family};
	b->n_past++;
	sl_unlock(&b->past_lock);
}

static bool
put_one_of_several(struct nat_block *k)
{
	uint32_t refs = __atomic_load_n(&k->refs, __ATOMIC_RELAXED);

	while (refs > 1)
		if (__atomic_compare_exchange_n(&k->refs, &refs, refs - 1, true, __ATOMIC_RELEASE,
			    __ATOMIC_RELAXED))
			return true;
	return false;
}

/* Under the stripe. */
static void
take_out(struct nat_blocks *b, uint32_t block)
{
	uint32_t *at = &b->head[b->block[block].hash & b->head_mask];

	while (*at != block + 1)
		at = &b->block[*at - 1].next;
	*at = b->block[block].next;
}

static void
put_last(struct nat_thread *t, struct nat_pool *pool, uint32_t block)
{
	struct nat_blocks *b = pool->blocks;
	struct nat_block *k = &b->block[block];
	/* The caller's reference keeps the hash what it is. */
	struct sl_stripe *stripe = stripe_of(b, k->hash);
	bool last;

	sl_lock(&stripe->lock);
	last = __atomic_sub_fetch(&k->refs, 1, __ATOMIC_ACQUIRE) == 0;
	if (last)
		take_out(b, block);
	sl_unlock(&stripe->lock);
	if (!last)
		return;
	/* It is nobody's, and nobody gets it before that was told. */
	keep_past(b, block, k, nat_clock(t));
	tell(t, pool, NAT_BLOCK_RELEASED, block, k);
	nat_pool_count(t, pool, NAT_CLASS_TCP, -1);
	nat_blocks_give_back(b, block);
}

void
nat_block_put(struct nat_thread *t, struct nat_pool *pool, uint32_t block)
{
	struct nat_block *k = &pool->blocks->block[block];

	if (put_one_of_several(k))
		return;
	if (!pool->blocks->deterministic)
		put_last(t, pool, block);
	else if (__atomic_sub_fetch(&k->refs, 1, __ATOMIC_RELAXED) == 0)
		nat_pool_count(t, pool, NAT_CLASS_TCP, -1);
}
