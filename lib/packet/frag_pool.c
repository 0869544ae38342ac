/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the table is made of: its start and end, the free lists, what each owner holds, and how a
 * datagram is taken out. The rules of locking are at the top of frag.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "err.h"
#include "frag_private.h"

/* ---- free lists and accounts ---- */

static uint32_t
take_free(uint32_t *head, uint32_t next, uint32_t *count)
{
	uint32_t i = *head;

	*head = next;
	__atomic_store_n(count, *count - 1, __ATOMIC_RELAXED);
	return i;
}

struct frag *
frag_alloc(struct frag_table *t, uint32_t *index)
{
	*index = 0;
	sl_lock(&t->free_lock);
	if (t->free_frag != 0)
		*index = take_free(&t->free_frag, t->frag[t->free_frag].next[0], &t->n_free_frag);
	sl_unlock(&t->free_lock);
	return &t->frag[*index];
}

struct frag_train *
frag_alloc_train(struct frag_table *t)
{
	uint32_t i = 0;

	sl_lock(&t->free_lock);
	if (t->free_train != 0)
		i = take_free(&t->free_train, t->train[t->free_train].chain, &t->n_free_train);
	sl_unlock(&t->free_lock);
	return i == 0 ? NULL : &t->train[i];
}

void
frag_free_chain(struct frag_table *t, uint32_t first, unsigned int n)
{
	uint32_t last = first;

	if (n == 0)
		return;
	while (t->frag[last].next[0] != 0)
		last = t->frag[last].next[0];
	sl_lock(&t->free_lock);
	t->frag[last].next[0] = t->free_frag;
	t->free_frag = first;
	__atomic_store_n(&t->n_free_frag, t->n_free_frag + n, __ATOMIC_RELAXED);
	sl_unlock(&t->free_lock);
}

void
frag_free_train(struct frag_table *t, struct frag_train *d)
{
	sl_lock(&t->free_lock);
	d->chain = t->free_train;
	t->free_train = (uint32_t)(d - t->train);
	__atomic_store_n(&t->n_free_train, t->n_free_train + 1, __ATOMIC_RELAXED);
	sl_unlock(&t->free_lock);
}

static void
account_add(struct frag_table *t, struct frag_account *a, uint32_t bytes) SL_REQUIRES(&a->lock)
{
	a->bytes += bytes;
	__atomic_fetch_add(&t->bytes, bytes, __ATOMIC_RELAXED);
}

static void
account_sub(struct frag_table *t, struct frag_account *a, uint32_t bytes) SL_REQUIRES(&a->lock)
{
	a->bytes -= bytes;
	__atomic_fetch_sub(&t->bytes, bytes, __ATOMIC_RELAXED);
}

/* Charges one fragment if there is room; else says why there is not. */
enum sl_drop
frag_charge(struct frag_table *t, struct frag_account *a, uint32_t cost, uint32_t high_thresh)
{
	enum sl_drop r = SL_DROP_NONE;

	sl_lock(&a->lock);
	if (a->bytes + cost + sizeof(struct frag_train) > high_thresh) {
		r = SL_DROP_FRAG_LIMIT;
	} else if (a->fragments >= __atomic_load_n(&t->n_free_frag, __ATOMIC_RELAXED) ||
		   a->datagrams >= __atomic_load_n(&t->n_free_train, __ATOMIC_RELAXED)) {
		r = SL_DROP_FRAG_MEMORY;
	} else {
		a->fragments++;
		account_add(t, a, cost);
	}
	sl_unlock(&a->lock);
	return r;
}

void
frag_uncharge(struct frag_table *t, struct frag_account *a, unsigned int fragments, uint32_t bytes)
{
	sl_lock(&a->lock);
	a->fragments -= fragments;
	account_sub(t, a, bytes);
	sl_unlock(&a->lock);
}

void
frag_account_enter(struct frag_table *t, struct frag_account *a, struct frag_train *d)
{
	uint32_t i = (uint32_t)(d - t->train);

	sl_lock(&a->lock);
	d->older = a->newest;
	d->newer = 0;
	if (a->newest != 0)
		t->train[a->newest].newer = i;
	else
		a->oldest = i;
	a->newest = i;
	a->datagrams++;
	account_add(t, a, sizeof(*d));
	sl_unlock(&a->lock);
}

static void
account_leave(struct frag_table *t, struct frag_account *a, struct frag_train *d)
{
	sl_lock(&a->lock);
	if (d->older != 0)
		t->train[d->older].newer = d->newer;
	else
		a->oldest = d->newer;
	if (d->newer != 0)
		t->train[d->newer].older = d->older;
	else
		a->newest = d->older;
	a->datagrams--;
	a->fragments -= d->n;
	account_sub(t, a, d->bytes + (uint32_t)sizeof(*d));
	sl_unlock(&a->lock);
}

/* ---- datagrams ---- */

/* Takes a datagram out of the table; the caller owns it. */
void
frag_take_out(struct frag_table *t, struct sl_stripe *s, struct frag_train *d) SL_REQUIRES(&s->lock)
{
	uint32_t *at = &t->bucket[d->hash & t->bucket_mask], i = (uint32_t)(d - t->train);

	(void)s;
	while (*at != i)
		at = &t->train[*at].chain;
	*at = d->chain;
	account_leave(t, &t->account[d->account], d);
	__atomic_store_n(&d->gen, d->gen + 1, __ATOMIC_RELEASE);
}

struct frag_spoils
frag_spoils_of(struct frag_train *d, enum sl_drop reason)
{
	return (struct frag_spoils){.first = d->first[0],
		.n = d->n,
		.train = d,
		.owner = d->account / 2,
		.owner_gen = d->owner_gen,
		.reason = reason};
}

/* No lock is held. */
void
frag_discard(struct frag_table *t, const struct frag_spoils *s, const struct frag_sink *sink)
{
	uint32_t i;

	for (i = s->first; i != 0; i = t->frag[i].next[0])
		rte_pktmbuf_free(t->frag[i].mbuf);
	frag_free_chain(t, s->first, s->n);
	if (s->train != NULL)
		frag_free_train(t, s->train);
	if (s->n > 0)
		sink->lost(sink->arg, s->owner, s->owner_gen, s->reason, s->n);
}

/* Takes a datagram out for out->reason, if it is still the one that was seen as (gen, hash). */
bool
frag_drop_seen(
	struct frag_table *t, uint32_t i, uint32_t gen, uint64_t hash, struct frag_spoils *out)
{
	struct sl_stripe *s = frag_stripe_of(t, hash);
	struct frag_train *d = &t->train[i];
	enum sl_drop reason = out->reason;
	bool there;

	sl_lock(&s->lock);
	there = __atomic_load_n(&d->gen, __ATOMIC_RELAXED) == gen;
	if (there) {
		frag_take_out(t, s, d);
		*out = frag_spoils_of(d, reason);
	}
	sl_unlock(&s->lock);
	return there;
}

/* ---- numbers ---- */

void
frag_stats(const struct frag_table *t, struct frag_stats *out)
{
	out->bytes = __atomic_load_n(&t->bytes, __ATOMIC_RELAXED);
	out->fragments = t->max - __atomic_load_n(&t->n_free_frag, __ATOMIC_RELAXED);
	out->datagrams = t->max - __atomic_load_n(&t->n_free_train, __ATOMIC_RELAXED);
	out->max = t->max;
}

void
frag_owner_stats(struct frag_table *t, uint32_t owner, struct frag_stats *out)
{
	unsigned int i;

	*out = (struct frag_stats){.max = t->max};
	for (i = 0; i < 2; i++) {
		struct frag_account *a = &t->account[owner * 2 + i];

		sl_lock(&a->lock);
		out->bytes += a->bytes;
		out->fragments += a->fragments;
		out->datagrams += a->datagrams;
		sl_unlock(&a->lock);
	}
}

/* ---- start and end ---- */

static void *
alloc_lines(size_t n, size_t size)
{
	size_t bytes = RTE_ALIGN_CEIL(n * size, RTE_CACHE_LINE_SIZE);
	void *p = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);

	if (p != NULL)
		memset(p, 0, bytes);
	return p;
}

static void
fill_free_lists(struct frag_table *t)
{
	uint32_t i;

	for (i = t->max; i > 0; i--) {
		t->frag[i].next[0] = t->free_frag;
		t->free_frag = i;
		t->train[i].chain = t->free_train;
		t->free_train = i;
	}
	t->n_free_frag = t->n_free_train = t->max;
	for (i = 0; i < FRAG_STRIPES; i++)
		t->stripe[i].random = i + 1;
}

struct frag_table *
frag_create(const struct frag_config *config, struct sl_err *err)
{
	uint32_t buckets = RTE_MAX(rte_align32pow2(config->fragments), FRAG_STRIPES);
	struct frag_table *t = alloc_lines(1, sizeof(*t));
	int ret;

	if (t == NULL)
		goto no_memory;
	t->max = config->fragments;
	t->owners = config->owners;
	t->bucket_mask = buckets - 1;
	t->frag = alloc_lines(t->max + 1, sizeof(*t->frag));
	t->train = alloc_lines(t->max + 1, sizeof(*t->train));
	t->bucket = alloc_lines(buckets, sizeof(*t->bucket));
	t->account = calloc((size_t)t->owners * 2, sizeof(*t->account));
	if (t->frag == NULL || t->train == NULL || t->bucket == NULL || t->account == NULL)
		goto no_memory;
	ret = sl_hasher_init(&t->hasher, config->hash, config->hash_seed);
	if (ret < 0) {
		sl_refuse(err, -ret, "no hash for the table of fragments: %s", strerror(-ret));
		frag_destroy(t);
		return NULL;
	}
	fill_free_lists(t);
	return t;

no_memory:
	frag_destroy(t);
	sl_refuse(err, ENOMEM, "no memory for a table of %u fragments", config->fragments);
	return NULL;
}

void
frag_destroy(struct frag_table *t)
{
	uint32_t i, f;

	if (t == NULL)
		return;
	for (i = 1; t->train != NULL && i <= t->max; i++) {
		if (!(t->train[i].gen & 1))
			continue;
		for (f = t->train[i].first[0]; f != 0; f = t->frag[f].next[0])
			rte_pktmbuf_free(t->frag[f].mbuf);
	}
	free(t->frag);
	free(t->train);
	free(t->bucket);
	free(t->account);
	free(t);
}
