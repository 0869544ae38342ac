/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The maps lie in sets of a few, found by the key's hash; a set's stripe guards its maps. A stripe
 * is a leaf lock, held for the scan of a map's 16 words of summary and one or two of its bits.
 */
#include "crowd.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "err.h"
#include "lock.h"
#include "mem.h"

#define SETS  64u
#define WAYS  4u
#define WORDS 1024u /* 65,536 ports */

struct crowd {
	struct tuple key;
	bool open;
	uint32_t used; /* the set's clock when it was last asked */
	uint32_t n;    /* bits that are set */
	uint64_t full[WORDS / 64]; /* words that have all bits set */
	uint64_t taken[WORDS];
};

struct crowd_set {
	struct sl_lock lock; /* all below */
	uint32_t clock;
	struct crowd way[WAYS];
} __rte_cache_aligned;

struct nat_crowds {
	struct sl_hasher hasher;
	struct crowd_set *set; /* [SETS] */
	struct sl_region region;
	uint32_t open; /* atomic: maps that are open */
};

struct nat_crowds *
nat_crowds_create(enum sl_hash_backend hash, uint64_t seed, struct sl_err *err)
{
	struct nat_crowds *c = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(sizeof(*c), 64));
	int ret;

	if (c == NULL) {
		sl_refuse(err, ENOMEM, "out of memory");
		return NULL;
	}
	memset(c, 0, sizeof(*c));
	ret = sl_hasher_init(&c->hasher, hash, seed);
	if (ret < 0)
		sl_refuse(err, -ret, "no key for the hash of ports");
	else
		ret = sl_region_reserve(&c->region, SETS * sizeof(struct crowd_set), err);
	if (ret == 0)
		ret = sl_region_grow(&c->region, SETS * sizeof(struct crowd_set), err);
	if (ret < 0) {
		nat_crowds_destroy(c);
		return NULL;
	}
	c->set = (struct crowd_set *)(void *)c->region.base;
	return c;
}

void
nat_crowds_destroy(struct nat_crowds *c)
{
	if (c == NULL)
		return;
	sl_region_release(&c->region);
	free(c);
}

bool
nat_crowds_any(const struct nat_crowds *c)
{
	return __atomic_load_n(&c->open, __ATOMIC_RELAXED) != 0;
}

static struct crowd_set *
set_of(struct nat_crowds *c, const struct tuple *key)
{
	return &c->set[sl_hash(&c->hasher, key) % SETS];
}

static struct crowd *
find(struct crowd_set *s, const struct tuple *key) SL_REQUIRES(&s->lock)
{
	unsigned int i;

	for (i = 0; i < WAYS; i++)
		if (s->way[i].open && tuple_equal(&s->way[i].key, key))
			return &s->way[i];
	return NULL;
}

/* A free one, or the one that was not asked for longest. */
static struct crowd *
replace(struct crowd_set *s) SL_REQUIRES(&s->lock)
{
	struct crowd *oldest = &s->way[0];
	unsigned int i;

	for (i = 0; i < WAYS; i++) {
		if (!s->way[i].open)
			return &s->way[i];
		if ((int32_t)(s->way[i].used - oldest->used) < 0)
			oldest = &s->way[i];
	}
	return oldest;
}

void
nat_crowd_open(struct nat_crowds *c, const struct tuple *key)
{
	struct crowd_set *s = set_of(c, key);
	struct crowd *m;

	sl_lock(&s->lock);
	if (find(s, key) == NULL) {
		m = replace(s);
		if (!m->open)
			__atomic_add_fetch(&c->open, 1, __ATOMIC_RELAXED);
		memset(m, 0, sizeof(*m));
		m->key = *key;
		m->open = true;
		m->used = ++s->clock;
	}
	sl_unlock(&s->lock);
}

/* The first port at or behind `from`, at most `to`, whose bit is not set; -1: none. */
static int
first_free(const struct crowd *m, unsigned int from, unsigned int to)
{
	unsigned int w = from / 64, last = to / 64;
	uint64_t bits = ~m->taken[w] & (~UINT64_C(0) << from % 64), words;

	while (bits == 0) {
		if (++w > last)
			return -1;
		words = ~m->full[w / 64] & (~UINT64_C(0) << w % 64);
		if (words == 0) {
			w |= 63;
			continue;
		}
		w = (w & ~63u) + (unsigned int)__builtin_ctzll(words);
		if (w > last)
			return -1;
		bits = ~m->taken[w];
	}
	w = w * 64 + (unsigned int)__builtin_ctzll(bits);
	return w <= to ? (int)w : -1;
}

static void
take(struct crowd *m, unsigned int port)
{
	m->taken[port / 64] |= UINT64_C(1) << port % 64;
	if (m->taken[port / 64] == ~UINT64_C(0))
		m->full[port / 4096] |= UINT64_C(1) << port / 64 % 64;
	m->n++;
}

/* Takes from `from` to `to` until there are n. */
static unsigned int
claim(struct crowd *m, unsigned int from, unsigned int to, uint16_t *port, unsigned int n)
{
	unsigned int got = 0;
	int at;

	while (got < n && from <= to && (at = first_free(m, from, to)) >= 0) {
		take(m, (unsigned int)at);
		port[got++] = (uint16_t)at;
		from = (unsigned int)at + 1;
	}
	return got;
}

int
nat_crowd_claim(struct nat_crowds *c, const struct tuple *key, const struct nat_port_range *r,
	uint16_t *port, unsigned int n)
{
	struct crowd_set *s;
	struct crowd *m;
	int got = -1;

	if (likely(!nat_crowds_any(c)))
		return -1;
	s = set_of(c, key);
	sl_lock(&s->lock);
	m = find(s, key);
	if (m != NULL) {
		m->used = ++s->clock;
		got = (int)claim(m, r->start, r->hi, port, n);
		if (got < (int)n && r->start > r->lo)
			got += (int)claim(m, r->lo, r->start - 1u, port + got,
				n - (unsigned int)got);
	}
	sl_unlock(&s->lock);
	return got;
}

void
nat_crowd_free_port(struct nat_crowds *c, const struct tuple *key, uint16_t port)
{
	uint64_t bit = UINT64_C(1) << port % 64;
	struct crowd_set *s;
	struct crowd *m;

	if (likely(!nat_crowds_any(c)))
		return;
	s = set_of(c, key);
	sl_lock(&s->lock);
	m = find(s, key);
	if (m != NULL && m->taken[port / 64] & bit) {
		m->taken[port / 64] &= ~bit;
		m->full[port / 4096] &= ~(UINT64_C(1) << port / 64 % 64);
		if (--m->n == 0) {
			m->open = false;
			__atomic_sub_fetch(&c->open, 1, __ATOMIC_RELAXED);
		}
	}
	sl_unlock(&s->lock);
}
