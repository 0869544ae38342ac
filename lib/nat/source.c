/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The by-source table: two tables of heads of chains over one pool of mappings, by the source and,
 * of exclusive ones, by the public end. Each head is guarded by a stripe of its hash. A mapping is
 * in its chains from its first reference to its last: a reference is added under either stripe, and
 * the last goes under both; so whoever finds a mapping in a chain may take a reference, and one
 * that is not the last is given back without a lock. What a mapping is does not change while it is
 * in a chain. The free list has a lock of its own, taken under a stripe.
 *
 * Memory is there before it is needed, so nothing is allocated in the packet path. Tables grow
 * stripe by stripe: a stripe guards the same chains in any size, and says which size they are of.
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

#define STRIPES     256u
#define SOURCES_MAX (1u << 25) /* as entries */

struct source {
	struct tuple key;
	uint32_t next; /* of its chain, or of the free list; 0: the end */
	uint32_t hash;
	uint32_t refs; /* atomic */
	uint32_t mapping; /* of a permit */
	uint16_t pool;
	uint8_t filter;
	bool exclusive;

	struct tuple end; /* its source, which is none, has the prefix of NAT64 and its length */
	uint32_t end_next;
	uint32_t end_hash;
	uint32_t block;
	uint8_t mac[6];
	uint16_t where;
};

_Static_assert(sizeof(struct source) == 128, "two cache lines");

/* A table of heads. */
struct heads {
	uint32_t *head;
	struct sl_region region;
	uint32_t mask[STRIPES]; /* heads - 1; each by its stripe */
};

struct nat_sources {
	/* constant */
	struct sl_hasher hasher;
	struct source *source; /* 0 is none */
	struct heads by_key, by_end;
	struct sl_region region;
	/* written by all threads */
	struct sl_stripe stripe[STRIPES];
	struct sl_lock free_lock __rte_cache_aligned;
	uint32_t free;  /* guarded by free_lock, as all up to fresh */
	uint32_t max;
	uint32_t fresh; /* those from here on were never used */
	uint32_t used;  /* atomic */
	uint32_t exclusive; /* atomic: of them */
};

uint32_t
nat_source_hash(const struct nat_sources *s, const struct tuple *key)
{
	return (uint32_t)sl_hash(&s->hasher, key);
}

/* ---- memory ---- */

static int
heads_reserve(struct heads *h, struct sl_err *err)
{
	int ret = sl_region_reserve(&h->region, (size_t)SOURCES_MAX * sizeof(*h->head), err);

	h->head = (uint32_t *)(void *)h->region.base;
	return ret;
}

static uint32_t
chain_hash(const struct nat_sources *s, const struct heads *h, uint32_t i)
{
	return h == &s->by_key ? s->source[i].hash : s->source[i].end_hash;
}

static uint32_t *
chain_next(struct nat_sources *s, const struct heads *h, uint32_t i)
{
	return h == &s->by_key ? &s->source[i].next : &s->source[i].end_next;
}

/* Atomic, for those that look ahead. */
static void
set_link(uint32_t *at, uint32_t i)
{
	__atomic_store_n(at, i, __ATOMIC_RELAXED);
}

/* Moves what the heads of one stripe have to twice as many; under the stripe. */
static void
split_stripe(struct nat_sources *s, struct heads *h, uint32_t stripe)
{
	uint32_t heads = h->mask[stripe] + 1, from, i, next, *to;

	for (from = stripe; from < heads; from += STRIPES) {
		i = h->head[from];
		set_link(&h->head[from], 0);
		for (; i != 0; i = next) {
			next = *chain_next(s, h, i);
			to = &h->head[chain_hash(s, h, i) & (2 * heads - 1)];
			*chain_next(s, h, i) = *to;
			set_link(to, i);
		}
	}
	__atomic_store_n(&h->mask[stripe], 2 * heads - 1, __ATOMIC_RELAXED);
}

static int
heads_grow(struct nat_sources *s, struct heads *h, uint32_t heads, struct sl_err *err)
{
	int ret = sl_region_grow(&h->region, (size_t)heads * sizeof(*h->head), err);
	uint32_t i;

	for (i = 0; ret == 0 && i < STRIPES; i++) {
		sl_lock(&s->stripe[i].lock);
		if (h->mask[i] == 0)
			__atomic_store_n(&h->mask[i], heads - 1, __ATOMIC_RELAXED);
		while (h->mask[i] < heads - 1)
			split_stripe(s, h, i);
		sl_unlock(&s->stripe[i].lock);
	}
	return ret;
}

int
nat_sources_grow(struct nat_sources *s, uint32_t max, struct sl_err *err)
{
	uint32_t heads = rte_align32pow2(RTE_MAX(max, STRIPES));
	int ret = 0;

	if (max > SOURCES_MAX - 1)
		max = SOURCES_MAX - 1;
	if (max <= s->max)
		return 0;
	ret = sl_region_grow(&s->region, ((size_t)max + 1) * sizeof(struct source), err);
	if (ret == 0)
		ret = heads_grow(s, &s->by_key, RTE_MIN(heads, SOURCES_MAX), err);
	if (ret == 0)
		ret = heads_grow(s, &s->by_end, RTE_MIN(heads, SOURCES_MAX), err);
	if (ret != 0)
		return ret;
	sl_lock(&s->free_lock);
	s->max = max;
	sl_unlock(&s->free_lock);
	return 0;
}

static int
init(struct nat_sources *s, enum sl_hash_backend hash, uint64_t seed, struct sl_err *err)
{
	int ret = sl_hasher_init(&s->hasher, hash, seed);

	if (ret < 0)
		return sl_refuse(err, -ret, "no key for the hash of sources");
	ret = sl_region_reserve(&s->region, (size_t)SOURCES_MAX * sizeof(struct source), err);
	s->source = (struct source *)(void *)s->region.base;
	if (ret == 0)
		ret = heads_reserve(&s->by_key, err);
	return ret == 0 ? heads_reserve(&s->by_end, err) : ret;
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
	s->fresh = 1;
	if (init(s, hash, seed, err) < 0 || nat_sources_grow(s, max, err) < 0) {
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
	sl_region_release(&s->region);
	sl_region_release(&s->by_key.region);
	sl_region_release(&s->by_end.region);
	free(s);
}

uint32_t
nat_sources_used(const struct nat_sources *s)
{
	return __atomic_load_n(&s->used, __ATOMIC_RELAXED);
}

bool
nat_sources_exclusive(const struct nat_sources *s)
{
	return __atomic_load_n(&s->exclusive, __ATOMIC_RELAXED) != 0;
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

/* ---- chains, under their stripes ---- */

static struct sl_stripe *
stripe_of(struct nat_sources *s, uint32_t hash)
{
	return &s->stripe[hash % STRIPES];
}

/* Without the stripe it is good for prefetching alone. */
static uint32_t *
head_of(const struct heads *h, uint32_t hash)
{
	return &h->head[hash & __atomic_load_n(&h->mask[hash % STRIPES], __ATOMIC_RELAXED)];
}

/* 0: not there. */
static uint32_t
find(const struct nat_sources *s, const struct tuple *key, uint32_t hash)
{
	uint32_t i = *head_of(&s->by_key, hash);

	while (i != 0 && (s->source[i].hash != hash || !tuple_equal(&s->source[i].key, key)))
		i = s->source[i].next;
	return i;
}

static bool
end_equal(const struct tuple *a, const struct tuple *b)
{
	return a->scope == b->scope && a->zone == b->zone && a->family == b->family &&
	       a->proto == b->proto && a->dport == b->dport &&
	       memcmp(&a->dst, &b->dst, sizeof(a->dst)) == 0;
}

static uint32_t
find_end(const struct nat_sources *s, const struct tuple *end, uint32_t hash)
{
	uint32_t i = *head_of(&s->by_end, hash);

	while (i != 0 && (s->source[i].end_hash != hash || !end_equal(&s->source[i].end, end)))
		i = s->source[i].end_next;
	return i;
}

static void
add_reference(struct source *e)
{
	__atomic_add_fetch(&e->refs, 1, __ATOMIC_RELAXED);
}

static void
copy(const struct source *e, struct nat_mapping *m)
{
	*m = (struct nat_mapping){.addr = e->end.dst,
		.port = e->end.dport,
		.family = e->end.family,
		.filter = e->filter,
		.pool = e->pool,
		.block = e->block,
		.where = e->where,
		.prefix_len = (uint8_t)e->end.sport,
		.prefix = e->end.src};
	memcpy(m->mac, e->mac, sizeof(m->mac));
}

/* One of that key with one reference; 0: the table is full. */
static uint32_t
add(struct nat_sources *s, const struct tuple *key, uint32_t hash)
{
	uint32_t i = alloc(s), *head = head_of(&s->by_key, hash);

	if (unlikely(i == 0))
		return 0;
	s->source[i] = (struct source){.key = *key, .next = *head, .hash = hash, .refs = 1};
	set_link(head, i);
	return i;
}

static void
take_out(struct nat_sources *s, struct heads *h, uint32_t i)
{
	uint32_t *at = head_of(h, chain_hash(s, h, i));

	while (*at != i)
		at = chain_next(s, h, *at);
	set_link(at, *chain_next(s, h, i));
}

/* ---- by the source ---- */

bool
nat_source_peek(struct nat_sources *s, const struct tuple *key, struct nat_mapping *m)
{
	struct sl_stripe *stripe;
	uint32_t hash;
	uint32_t i;

	if (likely(nat_sources_used(s) == 0))
		return false;
	hash = nat_source_hash(s, key);
	stripe = stripe_of(s, hash);
	sl_lock(&stripe->lock);
	i = find(s, key, hash);
	if (i != 0)
		copy(&s->source[i], m);
	sl_unlock(&stripe->lock);
	return i != 0;
}

uint32_t
nat_source_hold(struct nat_sources *s, const struct tuple *key, struct nat_mapping *m)
{
	struct sl_stripe *stripe;
	uint32_t hash;
	uint32_t i;

	if (nat_sources_used(s) == 0)
		return 0;
	hash = nat_source_hash(s, key);
	stripe = stripe_of(s, hash);
	sl_lock(&stripe->lock);
	i = find(s, key, hash);
	if (i != 0) {
		add_reference(&s->source[i]);
		copy(&s->source[i], m);
	}
	sl_unlock(&stripe->lock);
	return i;
}

uint32_t
nat_source_get(struct nat_sources *s, const struct tuple *key, struct nat_mapping *m)
{
	uint32_t hash = nat_source_hash(s, key);
	struct sl_stripe *stripe = stripe_of(s, hash);
	uint32_t i;

	sl_lock(&stripe->lock);
	i = find(s, key, hash);
	if (i != 0) {
		add_reference(&s->source[i]);
		copy(&s->source[i], m);
	} else {
		i = add(s, key, hash);
		if (likely(i != 0)) {
			nat_source_end(&s->source[i].end, key, &m->addr, m->port);
			s->source[i].end.family = m->family;
		}
	}
	sl_unlock(&stripe->lock);
	return i;
}

uint32_t
nat_source_permit(struct nat_sources *s, const struct tuple *permit, uint32_t mapping)
{
	uint32_t hash = nat_source_hash(s, permit);
	struct sl_stripe *stripe = stripe_of(s, hash);
	struct nat_source_gone gone;
	uint32_t i, spare = 0;

	sl_lock(&stripe->lock);
	i = find(s, permit, hash);
	if (i != 0) {
		add_reference(&s->source[i]);
		spare = mapping; /* the permit has one */
	} else {
		i = add(s, permit, hash);
		if (likely(i != 0))
			s->source[i].mapping = mapping;
	}
	sl_unlock(&stripe->lock);
	nat_source_put(s, spare, &gone);
	return i;
}

/* ---- by the public end ---- */

/* Under both stripes. */
static enum nat_claim
claim(struct nat_sources *s, const struct source *want, struct nat_mapping *m, uint32_t *ref)
{
	uint32_t i = find(s, &want->key, want->hash), *head;

	if (i != 0) {
		add_reference(&s->source[i]);
		copy(&s->source[i], m);
		*ref = i;
		return NAT_CLAIM_HAD;
	}
	if (find_end(s, &want->end, want->end_hash) != 0)
		return NAT_CLAIM_TAKEN;
	i = add(s, &want->key, want->hash);
	if (unlikely(i == 0))
		return NAT_CLAIM_FULL;
	head = head_of(&s->by_end, want->end_hash);
	s->source[i].end = want->end;
	s->source[i].end.src = m->prefix;
	s->source[i].end.sport = m->prefix_len;
	s->source[i].end_hash = want->end_hash;
	s->source[i].end_next = *head;
	s->source[i].block = m->block;
	s->source[i].pool = m->pool;
	s->source[i].filter = m->filter;
	s->source[i].where = m->where;
	memcpy(s->source[i].mac, m->mac, sizeof(m->mac));
	s->source[i].exclusive = true;
	set_link(head, i);
	*ref = i;
	return NAT_CLAIM_MADE;
}

enum nat_claim
nat_source_claim(struct nat_sources *s, const struct tuple *key, const struct tuple *like,
	struct nat_mapping *m, uint32_t *ref)
{
	struct source want = {.key = *key, .hash = nat_source_hash(s, key)};
	struct sl_stripes both;
	enum nat_claim c;

	nat_source_end(&want.end, like, &m->addr, m->port);
	want.end_hash = nat_source_hash(s, &want.end);
	sl_stripes_lock(&both, stripe_of(s, want.hash), stripe_of(s, want.end_hash));
	c = claim(s, &want, m, ref);
	sl_stripes_unlock(&both);
	if (c == NAT_CLAIM_MADE)
		__atomic_add_fetch(&s->exclusive, 1, __ATOMIC_RELAXED);
	return c;
}

void
nat_source_prefetch(const struct nat_sources *s, uint32_t hash)
{
	__builtin_prefetch(head_of(&s->by_key, hash), 1);
}

void
nat_source_end_prefetch(const struct nat_sources *s, uint32_t hash)
{
	__builtin_prefetch(head_of(&s->by_end, hash), 1);
}

void
nat_source_prefetch_first(const struct nat_sources *s, uint32_t hash)
{
	uint32_t i = __atomic_load_n(head_of(&s->by_key, hash), __ATOMIC_RELAXED);

	if (i != 0)
		__builtin_prefetch(&s->source[i], 1);
}

bool
nat_source_end_taken(struct nat_sources *s, const struct tuple *end, uint32_t hash)
{
	struct sl_stripe *stripe = stripe_of(s, hash);
	bool taken;

	sl_lock(&stripe->lock);
	taken = find_end(s, end, hash) != 0;
	sl_unlock(&stripe->lock);
	return taken;
}

uint32_t
nat_source_inside(struct nat_sources *s, const struct tuple *end, struct tuple *key,
	struct nat_mapping *m)
{
	struct sl_stripe *stripe;
	uint32_t hash;
	uint32_t i;

	if (likely(!nat_sources_exclusive(s)))
		return 0;
	hash = nat_source_hash(s, end);
	stripe = stripe_of(s, hash);
	sl_lock(&stripe->lock);
	i = find_end(s, end, hash);
	if (i != 0) {
		add_reference(&s->source[i]);
		*key = s->source[i].key;
		copy(&s->source[i], m);
	}
	sl_unlock(&stripe->lock);
	return i;
}

/* ---- the end of a reference ---- */

/* One of several is given back without a lock. */
static bool
put_one_of_several(struct source *e)
{
	uint32_t refs = __atomic_load_n(&e->refs, __ATOMIC_RELAXED);

	while (refs > 1)
		if (__atomic_compare_exchange_n(&e->refs, &refs, refs - 1, true, __ATOMIC_RELEASE,
			    __ATOMIC_RELAXED))
			return true;
	return false;
}

bool
nat_source_put(struct nat_sources *s, uint32_t ref, struct nat_source_gone *gone)
{
	struct source *e = &s->source[ref];
	struct sl_stripes both;
	bool last;

	if (ref == 0 || put_one_of_several(e))
		return false;
	/* The caller's reference keeps the hashes what they are. */
	sl_stripes_lock(&both, stripe_of(s, e->hash),
		stripe_of(s, e->exclusive ? e->end_hash : e->hash));
	last = __atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQUIRE) == 0;
	if (last) {
		take_out(s, &s->by_key, ref);
		if (e->exclusive)
			take_out(s, &s->by_end, ref);
		*gone = (struct nat_source_gone){.exclusive = e->exclusive,
			.end = e->end,
			.pool = e->pool,
			.block = e->block,
			.mapping = e->mapping};
		memset(&gone->end.src, 0, sizeof(gone->end.src));
		gone->end.sport = 0;
	}
	sl_stripes_unlock(&both);
	if (!last)
		return false;
	if (gone->exclusive)
		__atomic_sub_fetch(&s->exclusive, 1, __ATOMIC_RELAXED);
	release(s, ref);
	return true;
}

void
nat_source_put_prefetch(const struct nat_sources *s, uint32_t ref)
{
	__builtin_prefetch(&s->source[ref], 1);
	__builtin_prefetch(&s->source[ref].end, 1);
}

/* The caller's reference keeps the hashes what they are. */
void
nat_source_put_prefetch_heads(const struct nat_sources *s, uint32_t ref)
{
	nat_source_prefetch(s, s->source[ref].hash);
	if (s->source[ref].exclusive)
		nat_source_end_prefetch(s, s->source[ref].end_hash);
}
