/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The by-source table: heads of chains, each guarded by a stripe of its hash, and a pool of
 * mappings. A mapping is in its chain from its first reference to its last; both are changed under
 * the stripe, so whoever finds one there may take a reference. The free list has a lock of its own,
 * taken under a stripe. Memory is there from the start, so nothing is allocated in the packet path.
 */
#include "source.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "err.h"
#include "lock.h"
#include "mem.h"
#include "stripe.h"

#define STRIPES 256u

struct source {
	struct tuple key;
	uint32_t next; /* of its chain, or of the free list; 0: the end */
	uint64_t hash;
	struct nat_mapping mapping;
	uint32_t refs;
};

struct nat_sources {
	/* constant */
	struct sl_hasher hasher;
	struct source *source; /* [max + 1]; 0 is none */
	uint32_t *head;        /* each by its stripe */
	uint32_t head_mask;
	uint32_t max;
	struct sl_region source_region, head_region;
	/* written by all threads */
	struct sl_stripe stripe[STRIPES];
	struct sl_lock free_lock __rte_cache_aligned;
	uint32_t free;  /* guarded by free_lock, as the next */
	uint32_t fresh; /* those from here on were never used */
	uint32_t used;  /* atomic */
};

static int
reserve(struct sl_region *r, size_t bytes, struct sl_err *err)
{
	int ret = sl_region_reserve(r, bytes, err);

	return ret == 0 ? sl_region_grow(r, bytes, err) : ret;
}

static int
init(struct nat_sources *s, enum sl_hash_backend hash, uint64_t seed, struct sl_err *err)
{
	int ret = sl_hasher_init(&s->hasher, hash, seed);

	if (ret < 0)
		return sl_refuse(err, -ret, "no key for the hash of sources");
	ret = reserve(&s->source_region, ((size_t)s->max + 1) * sizeof(struct source), err);
	if (ret == 0)
		ret = reserve(&s->head_region, ((size_t)s->head_mask + 1) * sizeof(uint32_t), err);
	s->source = (struct source *)(void *)s->source_region.base;
	s->head = (uint32_t *)(void *)s->head_region.base;
	return ret;
}

struct nat_sources *
nat_sources_create(uint32_t max, enum sl_hash_backend hash, uint64_t seed, struct sl_err *err)
{
	struct nat_sources *s = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*s));

	if (s == NULL) {
		sl_refuse(err, ENOMEM, "out of memory");
		return NULL;
	}
	memset(s, 0, sizeof(*s));
	s->max = max;
	s->fresh = 1;
	s->head_mask = rte_align32pow2(RTE_MAX(max, STRIPES)) - 1;
	if (init(s, hash, seed, err) < 0) {
		nat_sources_destroy(s);
		return NULL;
	}
	return s;
}

void
nat_sources_destroy(struct nat_sources *s)
{
	if (s == NULL)
		return;
	sl_region_release(&s->source_region);
	sl_region_release(&s->head_region);
	free(s);
}

void
nat_source_key(struct tuple *key, const struct tuple *original)
{
	*key = *original;
	memset(&key->dst, 0, sizeof(key->dst));
	key->dport = 0;
}

void
nat_source_host(struct tuple *key, const struct tuple *original)
{
	nat_source_key(key, original);
	key->proto = 0;
	key->sport = 0;
}

static struct sl_stripe *
stripe_of(struct nat_sources *s, uint64_t hash)
{
	return &s->stripe[hash % STRIPES];
}

/* Under the stripe. 0: not there. */
static uint32_t
find(const struct nat_sources *s, const struct tuple *key, uint64_t hash)
{
	uint32_t i = s->head[hash & s->head_mask];

	while (i != 0 && (s->source[i].hash != hash || !tuple_equal(&s->source[i].key, key)))
		i = s->source[i].next;
	return i;
}

static uint32_t
alloc(struct nat_sources *s)
{
	uint32_t i = 0;

	sl_lock(&s->free_lock);
	if (s->free != 0) {
		i = s->free;
		s->free = s->source[i].next;
	} else if (s->fresh <= s->max) {
		i = s->fresh++;
	}
	sl_unlock(&s->free_lock);
	if (i != 0)
		__atomic_add_fetch(&s->used, 1, __ATOMIC_RELAXED);
	return i;
}

static void
release(struct nat_sources *s, uint32_t i)
{
	sl_lock(&s->free_lock);
	s->source[i].next = s->free;
	s->free = i;
	sl_unlock(&s->free_lock);
	__atomic_sub_fetch(&s->used, 1, __ATOMIC_RELAXED);
}

bool
nat_source_peek(struct nat_sources *s, const struct tuple *key, struct nat_mapping *m)
{
	struct sl_stripe *stripe;
	uint64_t hash;
	uint32_t i;

	if (likely(nat_sources_used(s) == 0))
		return false;
	hash = sl_hash(&s->hasher, key);
	stripe = stripe_of(s, hash);
	sl_lock(&stripe->lock);
	i = find(s, key, hash);
	if (i != 0)
		*m = s->source[i].mapping;
	sl_unlock(&stripe->lock);
	return i != 0;
}

/* Under the stripe. */
static uint32_t
add(struct nat_sources *s, const struct tuple *key, uint64_t hash, const struct nat_mapping *m)
{
	uint32_t i = alloc(s), *head = &s->head[hash & s->head_mask];

	if (unlikely(i == 0))
		return 0;
	s->source[i] = (struct source){.key = *key, .next = *head, .hash = hash, .mapping = *m};
	*head = i;
	return i;
}

uint32_t
nat_source_get(struct nat_sources *s, const struct tuple *key, struct nat_mapping *m)
{
	uint64_t hash = sl_hash(&s->hasher, key);
	struct sl_stripe *stripe = stripe_of(s, hash);
	uint32_t i;

	sl_lock(&stripe->lock);
	i = find(s, key, hash);
	if (i == 0)
		i = add(s, key, hash, m);
	if (likely(i != 0)) {
		s->source[i].refs++;
		*m = s->source[i].mapping;
	}
	sl_unlock(&stripe->lock);
	return i;
}

void
nat_source_put(struct nat_sources *s, uint32_t ref)
{
	struct source *gone = &s->source[ref];
	struct sl_stripe *stripe;
	bool last;
	uint32_t *at;

	if (ref == 0)
		return;
	/* The caller's reference keeps the hash what it is. */
	stripe = stripe_of(s, gone->hash);
	sl_lock(&stripe->lock);
	last = --gone->refs == 0;
	if (last) {
		for (at = &s->head[gone->hash & s->head_mask]; *at != ref;)
			at = &s->source[*at].next;
		*at = gone->next;
	}
	sl_unlock(&stripe->lock);
	if (last)
		release(s, ref);
}

uint32_t
nat_sources_used(const struct nat_sources *s)
{
	return __atomic_load_n(&s->used, __ATOMIC_RELAXED);
}
