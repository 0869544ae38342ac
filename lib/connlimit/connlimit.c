/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation, sizes, and what the control side makes: counts, the part of a namespace, listings. */
#include "connlimit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "connlimit_private.h"
#include "err.h"
#include "rcu.h"

static int
no_memory(struct sl_err *err)
{
	return sl_refuse(err, ENOMEM, "out of memory");
}

/* Besides one for each bucket. With a bucket for two keys, keys of two cells each that come and go
 * take 0.86 each, as a simulation has it; those of one cell need a fifth. */
static uint32_t
more_lines(const struct connlimit *cl, uint32_t keys)
{
	return 1 + keys + CONNLIMIT_BUCKETS_MIN + cl->n_threads * SL_IDS_CACHE;
}

int
connlimit_set_max(struct connlimit *cl, uint32_t keys, struct sl_err *err)
{
	uint32_t lines = more_lines(cl, keys), buckets;
	int ret;

	if (keys == 0 || keys > CONNLIMIT_KEYS_MAX)
		return sl_refuse(err, EINVAL, "sluice.connlimit_max %u is out of range (1-%u)",
			keys, CONNLIMIT_KEYS_MAX);
	if (keys <= cl->max)
		return 0;
	buckets = RTE_MAX(rte_align32pow2(keys) / 2, CONNLIMIT_BUCKETS_MIN);
	ret = sl_region_grow(&cl->bucket_region, (size_t)buckets * sizeof(struct line), err);
	if (ret == 0)
		ret = sl_region_grow(&cl->more_region, (size_t)lines * sizeof(struct line), err);
	if (ret == 0)
		ret = sl_region_grow(&cl->ids.region, (size_t)lines * sizeof(uint32_t), err);
	if (ret < 0)
		return ret;
	sl_lock(&cl->ids.lock);
	cl->ids.limit = lines;
	sl_unlock(&cl->ids.lock);
	__atomic_store_n(&cl->buckets_present, buckets, __ATOMIC_RELEASE);
	__atomic_store_n(&cl->max, keys, __ATOMIC_RELEASE);
	return 0;
}

static int
reserve(struct connlimit *cl, struct sl_err *err)
{
	uint32_t lines = more_lines(cl, CONNLIMIT_KEYS_MAX);
	int ret;

	ret = sl_region_reserve(
		&cl->bucket_region, (size_t)CONNLIMIT_KEYS_MAX / 2 * sizeof(struct line), err);
	if (ret == 0)
		ret = sl_region_reserve(
			&cl->more_region, (size_t)lines * sizeof(struct line), err);
	if (ret == 0)
		ret = sl_ids_init(&cl->ids, lines, err);
	cl->bucket = (struct line *)(void *)cl->bucket_region.base;
	cl->more = (struct line *)(void *)cl->more_region.base;
	return ret;
}

static int
create_threads(struct connlimit *cl, struct sl_err *err)
{
	unsigned int i;

	cl->thread = calloc(cl->n_threads, sizeof(*cl->thread));
	if (cl->thread == NULL)
		return no_memory(err);
	for (i = 0; i < cl->n_threads; i++) {
		cl->thread[i] = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*cl->thread[i]));
		if (cl->thread[i] == NULL)
			return no_memory(err);
		memset(cl->thread[i], 0, sizeof(*cl->thread[i]));
		cl->thread[i]->cl = cl;
		cl->thread[i]->index = i;
	}
	return 0;
}

struct connlimit *
connlimit_create(const struct connlimit_config *config, struct sl_err *err)
{
	struct connlimit *cl = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*cl));
	int ret;

	if (cl == NULL) {
		no_memory(err);
		return NULL;
	}
	memset(cl, 0, sizeof(*cl));
	cl->n_threads = config->threads;
	cl->shape = (uint64_t)(CONNLIMIT_BUCKETS_MIN - 1) << 32;
	ret = sl_hasher_init(&cl->hasher, config->hash, config->hash_seed);
	if (ret < 0)
		sl_refuse(err, -ret, "no key for the hash: %s", strerror(-ret));
	if (ret == 0)
		ret = reserve(cl, err);
	if (ret == 0)
		ret = create_threads(cl, err);
	if (ret < 0) {
		connlimit_destroy(cl);
		return NULL;
	}
	return cl;
}

void
connlimit_destroy(struct connlimit *cl)
{
	unsigned int i;

	if (cl == NULL)
		return;
	for (i = 0; cl->thread != NULL && i < cl->n_threads; i++)
		free(cl->thread[i]);
	free(cl->thread);
	free(cl->slot);
	sl_ids_fini(&cl->ids);
	sl_region_release(&cl->more_region);
	sl_region_release(&cl->bucket_region);
	free(cl);
}

struct connlimit_thread *
connlimit_thread(struct connlimit *cl, unsigned int index)
{
	return cl->thread[index];
}

/* ---- of a namespace ---- */

int
connlimit_netns_init(struct connlimit *cl, struct netns *ns, struct sl_err *err)
{
	struct connlimit_netns *own;
	size_t bytes = sizeof(*own) + cl->n_threads * sizeof(own->part[0]);

	if (ns->limits != NULL)
		return 0;
	own = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(bytes, RTE_CACHE_LINE_SIZE));
	if (own == NULL)
		return no_memory(err);
	memset(own, 0, bytes);
	own->threads = cl->n_threads;
	sl_rcu_publish(&ns->limits, own);
	return 0;
}

void
connlimit_netns_free(struct netns *ns)
{
	free(ns->limits);
	ns->limits = NULL;
}

uint32_t
connlimit_netns_keys(const struct netns *ns)
{
	const struct connlimit_netns *own = sl_rcu_dereference(&ns->limits);
	int64_t sum = 0;
	unsigned int i;

	for (i = 0; own != NULL && i < own->threads; i++)
		sum += __atomic_load_n(&own->part[i].keys, __ATOMIC_RELAXED);
	return sum > 0 ? (uint32_t)sum : 0;
}

/* ---- counts ---- */

static unsigned int
address_bits(uint8_t family)
{
	return family == TUPLE_IPV4 ? 32 : family == TUPLE_IPV6 ? 128 : 0;
}

bool
connlimit_mask(const struct connlimit_key *by, struct tuple_addr *mask)
{
	unsigned int i;

	*mask = (struct tuple_addr){0};
	if (by->prefix > address_bits(by->family))
		return false;
	for (i = 0; i < by->prefix; i++)
		mask->b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	return true;
}

/* Takes out what is there no more. */
static void
close_gaps(struct connlimit *cl)
{
	uint32_t i, n = 0;

	for (i = 0; i < cl->n_slots; i++)
		if (cl->slot[i].last != NULL)
			cl->slot[n++] = cl->slot[i];
	cl->n_slots = n;
}

/* Room for one more slot, and an id that no count has had. */
static int
make_room(struct connlimit *cl, struct sl_err *err)
{
	uint32_t n = RTE_MAX(cl->slots_room * 2, 64u);
	struct count_slot *slot;

	if (cl->last_id == COUNT_ID_MAX)
		return sl_refuse(
			err, ENOSPC, "as many limits were made since the start as can be");
	if (cl->n_slots == cl->slots_room && cl->n_counts <= cl->n_slots / 2)
		close_gaps(cl);
	if (cl->n_slots == cl->slots_room) {
		slot = realloc(cl->slot, n * sizeof(*slot));
		if (slot == NULL)
			return no_memory(err);
		cl->slot = slot;
		cl->slots_room = n;
	}
	return 0;
}

/* The first with this id or a later one; n_slots: there is none. */
static uint32_t
slot_from(const struct connlimit *cl, uint32_t id)
{
	uint32_t lo = 0, n = cl->n_slots, mid;

	while (lo < n) {
		mid = lo + (n - lo) / 2;
		if (cl->slot[mid].id < id)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

/* Of a count that there is. */
static struct count_slot *
slot_of(const struct connlimit *cl, const struct connlimit_count *c)
{
	return &cl->slot[slot_from(cl, c->id)];
}

void
connlimit_count_change(struct connlimit_count *c, const struct connlimit_count_config *config)
{
	c->rule = config->rule;
	__atomic_store_n(&c->limit, (uint64_t)config->limit << 1 | config->over, __ATOMIC_RELAXED);
}

int
connlimit_count_create(struct connlimit *cl, const struct connlimit_count_config *config,
	struct connlimit_count **out, struct sl_err *err)
{
	struct connlimit_count *c = calloc(1, sizeof(*c));
	int ret;

	if (c == NULL)
		return no_memory(err);
	if (!connlimit_mask(&config->by, &c->mask)) {
		ret = sl_refuse(err, EINVAL, "a mask of %u bits is too long for the address",
			config->by.prefix);
		goto undo;
	}
	ret = make_room(cl, err);
	if (ret < 0)
		goto undo;
	c->id = ++cl->last_id;
	c->wide = config->by.family == TUPLE_IPV6;
	c->word = (uint64_t)c->id << 32;
	c->ns = config->ns;
	c->by = config->by;
	connlimit_count_change(c, config);
	cl->slot[cl->n_slots++] = (struct count_slot){.id = c->id, .last = c};
	cl->n_counts++;
	*out = c;
	return 0;
undo:
	free(c);
	return ret;
}

int
connlimit_count_share(struct connlimit *cl, struct connlimit_count *from,
	const struct connlimit_count_config *config, struct connlimit_count **out,
	struct sl_err *err)
{
	struct connlimit_count *c = malloc(sizeof(*c));
	struct count_slot *slot;

	if (c == NULL)
		return no_memory(err);
	*c = *from;
	connlimit_count_change(c, config);
	slot = slot_of(cl, c);
	c->next = slot->last;
	slot->last = c;
	*out = c;
	return 0;
}

void
connlimit_count_free(struct connlimit *cl, struct connlimit_count *c)
{
	struct count_slot *slot = slot_of(cl, c);
	struct connlimit_count **at = &slot->last;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	if (slot->last == NULL)
		cl->n_counts--;
	free(c);
}

/* ---- what is shown ---- */

void
connlimit_stats(const struct connlimit *cl, unsigned int thread, struct connlimit_stats *out)
{
	const uint64_t *from = (const uint64_t *)(const void *)&cl->thread[thread]->stats;
	uint64_t *to = (uint64_t *)(void *)out;
	unsigned int i;

	for (i = 0; i < sizeof(*out) / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

void
connlimit_memory(const struct connlimit *cl, struct connlimit_memory *out)
{
	int64_t keys = 0;
	unsigned int i;

	for (i = 0; i < cl->n_threads; i++)
		keys += __atomic_load_n(&cl->thread[i]->keys, __ATOMIC_RELAXED);
	*out = (struct connlimit_memory){
		.present = cl->bucket_region.present + cl->more_region.present +
			   cl->ids.region.present,
		.keys_max = cl->max,
		.keys = keys > 0 ? (uint32_t)keys : 0,
		.buckets = connlimit_buckets(cl),
	};
}

static const struct connlimit_count *
count_of(const struct connlimit *cl, uint32_t id)
{
	uint32_t i = slot_from(cl, id);

	return i < cl->n_slots && cl->slot[i].id == id ? cl->slot[i].last : NULL;
}

bool
connlimit_walk_slice(struct connlimit *cl, struct connlimit_walk *w, const struct netns *ns,
	unsigned int budget, bool (*visit)(const struct connlimit_view *v, void *arg), void *arg)
{
	struct counter found[CHAIN_CELLS];
	const struct connlimit_count *c;
	struct connlimit_view v;
	unsigned int i, n;
	bool more = true;
	uint64_t limit;

	for (; w->next < CONNLIMIT_WALK_END && budget > 0 && more; budget--) {
		n = connlimit_read(cl, &w->next, found);
		for (i = 0; i < n; i++) {
			c = count_of(cl, found[i].id);
			if (c == NULL || (ns != NULL && c->ns != ns))
				continue;
			limit = __atomic_load_n(&c->limit, __ATOMIC_RELAXED);
			v = (struct connlimit_view){.ns = c->ns, .by = c->by, .addr = found[i].addr,
				.count = found[i].count, .limit = (uint32_t)(limit >> 1),
				.over = limit & 1, .refused = found[i].refused, .rule = c->rule};
			more &= visit(&v, arg);
		}
	}
	return w->next < CONNLIMIT_WALK_END;
}
