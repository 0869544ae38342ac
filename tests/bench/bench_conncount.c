/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_conncount.h"

#include <search.h>
#include <stdlib.h>

#include <rte_common.h>

#include "bench.h"
#include "stripe.h"

#define PLACES 256u

struct record {
	struct record *next;
	struct tuple tuple;
};

struct key {
	rte_be32_t addr;
	struct record *records;
	struct key *next; /* of the place: so that keys that are not asked for are looked at too */
};

struct place {
	struct sl_stripe stripe;
	struct record *records; /* lists */
	void *tree;             /* trees: of keys, for tsearch(3) */
	struct key *keys;       /* and the same as a ring, which is gone round */
};

struct conncount {
	enum conncount_kind kind;
	struct place place[PLACES];
};

struct conncount *
conncount_create(enum conncount_kind kind)
{
	struct conncount *c = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*c));

	if (c == NULL)
		bench_die("out of memory");
	memset(c, 0, sizeof(*c));
	c->kind = kind;
	return c;
}

static void
free_records(struct record *r)
{
	struct record *next;

	for (; r != NULL; r = next) {
		next = r->next;
		free(r);
	}
}

static void
keep_key(void *key)
{
	(void)key;
}

void
conncount_destroy(struct conncount *c)
{
	unsigned int i;

	for (i = 0; i < PLACES; i++) {
		struct place *p = &c->place[i];
		struct key *k = p->keys, *next;

		free_records(p->records);
		tdestroy(p->tree, keep_key);
		if (k == NULL)
			continue;
		do {
			next = k->next;
			free_records(k->records);
			free(k);
			k = next;
		} while (k != p->keys);
	}
	free(c);
}

/* Any even spread does. */
static struct place *
place_of(struct conncount *c, rte_be32_t addr)
{
	return &c->place[(addr * 2654435761u) >> 24];
}

static struct sl_lock *
lock_of(struct conncount *c, struct place *p)
{
	return c->kind == CONNCOUNT_ONE_LOCK ? &c->place[0].stripe.lock : &p->stripe.lock;
}

static bool
is_live(struct ct_thread *t, const struct tuple *tuple)
{
	struct pkt p = {.flags = PKT_IP, .tuple = *tuple};

	ct_lookup_bulk(t, &p, 1);
	return p.ct != NULL;
}

/* Looks up every record of a list, frees those of no connection, counts those of the address. */
static uint32_t
count_list(struct record **list, struct ct_thread *t, rte_be32_t addr)
{
	struct record *r;
	uint32_t n = 0;

	while ((r = *list) != NULL) {
		if (is_live(t, &r->tuple)) {
			n += r->tuple.src.w[0] == addr;
			list = &r->next;
		} else {
			*list = r->next;
			free(r);
		}
	}
	return n;
}

static void
add_record(struct record **list, const struct tuple *tuple)
{
	struct record *r = malloc(sizeof(*r));

	if (r == NULL)
		bench_die("out of memory");
	r->tuple = *tuple;
	r->next = *list;
	*list = r;
}

static int
compare(const void *a, const void *b)
{
	rte_be32_t x = ((const struct key *)a)->addr, y = ((const struct key *)b)->addr;

	return x < y ? -1 : x > y;
}

static struct key *
find_key(struct place *p, rte_be32_t addr)
{
	struct key want = {.addr = addr}, *k;
	struct key *const *found = tfind(&want, &p->tree, compare);

	if (found != NULL)
		return *found;
	k = malloc(sizeof(*k));
	if (k == NULL)
		bench_die("out of memory");
	*k = (struct key){.addr = addr};
	if (tsearch(k, &p->tree, compare) == NULL)
		bench_die("out of memory");
	if (p->keys == NULL) {
		p->keys = k->next = k;
	} else {
		k->next = p->keys->next;
		p->keys->next = k;
	}
	return k;
}

/* One key more is looked at each time, so that those that do not come again are given up. */
static void
tidy(struct place *p, struct ct_thread *t)
{
	struct key *k = p->keys->next;

	if (k == p->keys)
		return;
	count_list(&k->records, t, 0);
	if (k->records != NULL) {
		p->keys = k;
		return;
	}
	p->keys->next = k->next;
	tdelete(k, &p->tree, compare);
	free(k);
}

void
conncount_record(struct conncount *c, const struct pkt *p)
{
	struct place *at = place_of(c, p->tuple.src.w[0]);
	struct sl_lock *lock = lock_of(c, at);

	sl_lock(lock);
	if (c->kind == CONNCOUNT_TREES)
		add_record(&find_key(at, p->tuple.src.w[0])->records, &p->tuple);
	else
		add_record(&at->records, &p->tuple);
	sl_unlock(lock);
}

uint32_t
conncount_weigh(struct conncount *c, struct ct_thread *t, const struct pkt *p)
{
	rte_be32_t addr = p->tuple.src.w[0];
	struct place *at = place_of(c, addr);
	struct sl_lock *lock = lock_of(c, at);
	struct record **list = &at->records;
	uint32_t n;

	sl_lock(lock);
	if (c->kind == CONNCOUNT_TREES) {
		list = &find_key(at, addr)->records;
		tidy(at, t);
		/* It may have been the one. */
		list = &find_key(at, addr)->records;
	}
	n = 1 + count_list(list, t, addr);
	add_record(list, &p->tuple);
	sl_unlock(lock);
	return n;
}
