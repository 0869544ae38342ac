/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts: what is charged, to whom, and that all of it comes back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "connlimit_private.h"
#include "err.h"

#define THREADS 2u
#define KEYS    4096u

struct fixture {
	struct netns_registry *registry;
	struct netns *t1, *t2;
	struct connlimit *cl;
	struct connlimit_thread *a, *b;
};

static struct netns *
add_netns(struct fixture *f, const char *name)
{
	struct netns *ns;
	struct sl_err err;

	assert_int_equal(netns_create_batch(f->registry, &name, 1, netns_init_ns(f->registry), &ns,
				 &err),
		0);
	assert_int_equal(connlimit_netns_init(f->cl, ns, &err), 0);
	return ns;
}

static void
delete_netns(struct fixture *f, struct netns *ns)
{
	connlimit_netns_free(ns);
	netns_kill_batch(f->registry, &ns, 1);
	netns_free_batch(f->registry, &ns, 1);
}

static int
setup(void **state)
{
	struct connlimit_config config = {
		.threads = THREADS, .hash = SL_HASH_SIPHASH, .hash_seed = 7};
	struct fixture *f = calloc(1, sizeof(*f));
	struct sl_err err;

	if (f == NULL)
		return -1;
	f->registry = netns_registry_create(THREADS, 4, &err);
	f->cl = connlimit_create(&config, &err);
	if (f->registry == NULL || f->cl == NULL || connlimit_set_max(f->cl, KEYS, &err) != 0)
		return -1;
	f->a = connlimit_thread(f->cl, 0);
	f->b = connlimit_thread(f->cl, 1);
	f->t1 = add_netns(f, "t1");
	f->t2 = add_netns(f, "t2");
	*state = f;
	return 0;
}

/* Whatever a test has done, nothing may be left, and no charge may have been given back twice. */
static int
teardown(void **state)
{
	struct fixture *f = *state;
	struct connlimit_memory m;
	struct connlimit_stats s;
	unsigned int i;

	connlimit_memory(f->cl, &m);
	assert_int_equal(m.keys, 0);
	assert_int_equal(connlimit_netns_keys(f->t2), 0);
	for (i = 0; i < THREADS; i++) {
		connlimit_stats(f->cl, i, &s);
		assert_int_equal(s.errors, 0);
	}
	delete_netns(f, f->t1);
	delete_netns(f, f->t2);
	connlimit_destroy(f->cl);
	netns_registry_destroy(f->registry);
	free(f);
	return 0;
}

static const struct connlimit_key by_source = {TUPLE_IPV4, false, 32};

static struct connlimit_count *
new_count(struct fixture *f, struct netns *ns, struct connlimit_key by, uint32_t limit)
{
	struct connlimit_count_config config = {.ns = ns, .by = by, .limit = limit, .over = true};
	struct connlimit_count *c;
	struct sl_err err;

	assert_int_equal(connlimit_count_create(f->cl, &config, &c, &err), 0);
	return c;
}

static struct tuple
from(uint32_t src)
{
	struct tuple t = {.family = TUPLE_IPV4, .proto = 6};

	t.src.w[0] = rte_cpu_to_be_32(src);
	t.dst.w[0] = rte_cpu_to_be_32(0xc0000250u);
	return t;
}

static enum connlimit_verdict
weigh(struct connlimit_thread *t, struct connlimit_count *c, uint32_t src, struct ct_entry *e)
{
	struct tuple seen = from(src);

	e->ns = c->by.family == 0 && e->ns != NULL ? e->ns : (struct netns *)(uintptr_t)c->ns;
	return connlimit_weigh(t, c, &seen, e, NULL);
}

static bool
collect(const struct connlimit_view *v, void *arg)
{
	struct connlimit_view *to = arg;

	while (to->ns != NULL)
		to++;
	*to = *v;
	return true;
}

/* All counters of a namespace, at most 7; the last is followed by zero. */
static void
list(struct fixture *f, const struct netns *ns, struct connlimit_view v[8])
{
	struct connlimit_walk w = {0};

	memset(v, 0, 8 * sizeof(*v));
	while (connlimit_walk_slice(f->cl, &w, ns, 100, collect, v))
		;
}

static uint32_t
count_of(struct fixture *f, const struct netns *ns)
{
	struct connlimit_view v[8];

	list(f, ns, v);
	return v[0].count;
}

static void
test_over_and_back(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c = new_count(f, f->t1, by_source, 2);
	struct ct_entry e[4] = {0};
	struct connlimit_view v[8];

	assert_int_equal(weigh(f->a, c, 1, &e[0]), CONNLIMIT_NO_MATCH);
	assert_int_equal(weigh(f->b, c, 1, &e[1]), CONNLIMIT_NO_MATCH);
	assert_int_equal(weigh(f->a, c, 1, &e[2]), CONNLIMIT_MATCH);
	connlimit_release(f->a, &e[2]); /* refused */
	list(f, f->t1, v);
	assert_int_equal(v[0].count, 2);
	assert_int_equal(v[0].refused, 1);
	assert_int_equal(v[0].limit, 2);
	assert_int_equal(v[0].addr.w[0], rte_cpu_to_be_32(1));
	/* Another source is another key. */
	assert_int_equal(weigh(f->a, c, 2, &e[3]), CONNLIMIT_NO_MATCH);
	assert_int_equal(connlimit_netns_keys(f->t1), 2);
	/* The other thread gives back what this one took, and a second time does nothing. */
	connlimit_release(f->a, &e[1]);
	connlimit_release(f->a, &e[1]);
	assert_int_equal(weigh(f->a, c, 1, &e[2]), CONNLIMIT_NO_MATCH);
	connlimit_release(f->b, &e[0]);
	connlimit_release(f->b, &e[2]);
	connlimit_release(f->b, &e[3]);
	assert_int_equal(connlimit_netns_keys(f->t1), 0);
	connlimit_count_free(f->cl, c);
}

static void
test_up_to(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c = new_count(f, f->t1, by_source, 0);
	struct connlimit_count_config up_to = {.limit = 1, .over = false};
	struct ct_entry e[2] = {0};

	connlimit_count_change(c, &up_to);
	assert_int_equal(weigh(f->a, c, 1, &e[0]), CONNLIMIT_MATCH);
	assert_int_equal(weigh(f->a, c, 1, &e[1]), CONNLIMIT_NO_MATCH);
	connlimit_release(f->a, &e[0]);
	connlimit_release(f->a, &e[1]);
	connlimit_count_free(f->cl, c);
}

static void
test_weighed_twice_is_charged_once(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c = new_count(f, f->t1, by_source, 1);
	struct ct_entry e = {0};

	assert_int_equal(weigh(f->a, c, 1, &e), CONNLIMIT_NO_MATCH);
	assert_int_equal(weigh(f->a, c, 1, &e), CONNLIMIT_NO_MATCH);
	assert_int_equal(count_of(f, f->t1), 1);
	connlimit_release(f->a, &e);
	connlimit_count_free(f->cl, c);
}

/* Keys: two tuples share a counter or not. */
static void
test_keys(void **state)
{
	static const struct {
		struct connlimit_key by;
		const char *first, *second;
		uint32_t count;
	} cases[] = {
		{{TUPLE_IPV4, false, 32}, "\x0a\0\0\1", "\x0a\0\0\2", 1},
		{{TUPLE_IPV4, false, 24}, "\x0a\0\0\1", "\x0a\0\0\xff", 2},
		{{TUPLE_IPV4, false, 31}, "\x0a\0\0\2", "\x0a\0\0\3", 2},
		{{TUPLE_IPV4, false, 31}, "\x0a\0\0\1", "\x0a\0\0\2", 1},
		{{TUPLE_IPV4, false, 0}, "\x0a\0\0\1", "\xc0\0\0\1", 2},
		{{TUPLE_IPV4, true, 32}, "\x0a\0\0\1", "\x0a\0\0\2", 1},
		{{TUPLE_IPV6, false, 128}, "\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
			"\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\2", 1},
		{{TUPLE_IPV6, false, 64}, "\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
			"\x20\1\0\0\0\0\0\0\1\0\0\0\0\0\0\2", 2},
		{{TUPLE_IPV6, true, 65}, "\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
			"\x20\1\0\0\0\0\0\0\x80\0\0\0\0\0\0\1", 1},
		{{0, false, 0}, "\x0a\0\0\1", "\xc0\0\0\1", 2},
	};
	struct fixture *f = *state;
	unsigned int i;

	for (i = 0; i < RTE_DIM(cases); i++) {
		struct connlimit_count *c = new_count(f, f->t1, cases[i].by, 9);
		bool six = cases[i].by.family == TUPLE_IPV6;
		struct tuple one = {.family = six ? TUPLE_IPV6 : TUPLE_IPV4}, two;
		struct ct_entry e[2] = {{.ns = f->t1}, {.ns = f->t1}};

		two = one;
		memcpy(cases[i].by.daddr ? &one.dst : &one.src, cases[i].first, six ? 16 : 4);
		memcpy(cases[i].by.daddr ? &two.dst : &two.src, cases[i].second, six ? 16 : 4);
		connlimit_weigh(f->a, c, &one, &e[0], NULL);
		connlimit_weigh(f->b, c, &two, &e[1], NULL);
		if (count_of(f, f->t1) != cases[i].count)
			fail_msg("case %u: %u", i, count_of(f, f->t1));
		connlimit_release(f->a, &e[0]);
		connlimit_release(f->a, &e[1]);
		connlimit_count_free(f->cl, c);
	}
}

static void
test_other_family_is_not_counted(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c = new_count(f, f->t1, by_source, 0);
	struct tuple six = {.family = TUPLE_IPV6};
	struct ct_entry e = {.ns = f->t1};

	assert_int_equal(connlimit_weigh(f->a, c, &six, &e, NULL), CONNLIMIT_NO_MATCH);
	assert_false(connlimit_charged(&e));
	connlimit_count_free(f->cl, c);
}

/* The same address in two tenants, with a limit each; then an id that is used again. */
static void
test_tenants_apart(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c1 = new_count(f, f->t1, by_source, 1);
	struct connlimit_count *c2 = new_count(f, f->t2, by_source, 1);
	struct ct_entry s1 = {0}, s2 = {0}, s3 = {0};
	struct netns *t3;
	uint32_t id = f->t1->id;

	assert_int_equal(weigh(f->a, c1, 1, &s1), CONNLIMIT_NO_MATCH);
	assert_int_equal(weigh(f->a, c2, 1, &s2), CONNLIMIT_NO_MATCH);
	assert_int_equal(weigh(f->a, c2, 1, &s3), CONNLIMIT_MATCH);
	connlimit_release(f->a, &s3);
	connlimit_release(f->a, &s1);
	connlimit_count_free(f->cl, c1);
	delete_netns(f, f->t1);

	t3 = f->t1 = add_netns(f, "t3");
	assert_int_equal(t3->id, id);
	c1 = new_count(f, t3, by_source, 1);
	assert_int_equal(weigh(f->b, c1, 1, &s3), CONNLIMIT_NO_MATCH);
	connlimit_release(f->b, &s2);
	assert_int_equal(count_of(f, t3), 1);
	assert_int_equal(count_of(f, f->t2), 0);
	connlimit_release(f->b, &s3);
	connlimit_count_free(f->cl, c1);
	connlimit_count_free(f->cl, c2);
}

/* A rule goes while connections are charged to it: the next one starts at 0. */
static void
test_count_made_anew(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c = new_count(f, f->t1, by_source, 1);
	struct ct_entry old = {0}, new = {0};

	weigh(f->a, c, 1, &old);
	connlimit_count_free(f->cl, c);
	c = new_count(f, f->t1, by_source, 1);
	assert_int_equal(count_of(f, f->t1), 0);
	assert_int_equal(weigh(f->a, c, 1, &new), CONNLIMIT_NO_MATCH);
	assert_int_equal(count_of(f, f->t1), 1);
	connlimit_release(f->a, &old);
	assert_int_equal(count_of(f, f->t1), 1);
	connlimit_release(f->a, &new);
	connlimit_count_free(f->cl, c);
}

static void
test_limit_changes_live(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c = new_count(f, f->t1, by_source, 3);
	struct connlimit_count_config one = {.limit = 1, .over = true};
	struct ct_entry e[3] = {0};

	weigh(f->a, c, 1, &e[0]);
	weigh(f->a, c, 1, &e[1]);
	connlimit_count_change(c, &one);
	assert_int_equal(weigh(f->a, c, 1, &e[2]), CONNLIMIT_MATCH);
	connlimit_release(f->a, &e[2]);
	connlimit_release(f->a, &e[1]);
	connlimit_release(f->a, &e[0]);
	assert_int_equal(weigh(f->a, c, 1, &e[0]), CONNLIMIT_NO_MATCH);
	connlimit_release(f->a, &e[0]);
	connlimit_count_free(f->cl, c);
}

static void
test_fourth_charge(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c[4];
	struct connlimit_stats s;
	struct ct_entry e = {0};
	unsigned int i;

	for (i = 0; i < 4; i++)
		c[i] = new_count(f, f->t1, by_source, 5);
	for (i = 0; i < 3; i++)
		assert_int_equal(weigh(f->a, c[i], 1, &e), CONNLIMIT_NO_MATCH);
	assert_int_equal(weigh(f->a, c[3], 1, &e), CONNLIMIT_MANY);
	assert_int_equal(connlimit_netns_keys(f->t1), 3);
	connlimit_stats(f->cl, 0, &s);
	assert_int_equal(s.many, 1);
	connlimit_release(f->a, &e);
	for (i = 0; i < 4; i++)
		connlimit_count_free(f->cl, c[i]);
}

static void
test_keys_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct knobs k = *netns_knobs(f->t1);
	struct connlimit_count *c1, *c2;
	struct ct_entry e[4] = {0};
	struct sl_err err;

	k.connlimit_max = 2;
	assert_int_equal(netns_set_knobs(f->t1, &k, &err), 0);
	c1 = new_count(f, f->t1, by_source, 5);
	c2 = new_count(f, f->t2, by_source, 5);
	assert_int_equal(weigh(f->a, c1, 1, &e[0]), CONNLIMIT_NO_MATCH);
	assert_int_equal(weigh(f->a, c1, 2, &e[1]), CONNLIMIT_NO_MATCH);
	assert_int_equal(weigh(f->a, c1, 3, &e[2]), CONNLIMIT_FULL);
	assert_false(connlimit_charged(&e[2]));
	/* A key that is there goes on; another tenant is not concerned. */
	assert_int_equal(weigh(f->a, c1, 2, &e[2]), CONNLIMIT_NO_MATCH);
	assert_int_equal(weigh(f->a, c2, 3, &e[3]), CONNLIMIT_NO_MATCH);
	connlimit_release(f->a, &e[0]);
	assert_int_equal(weigh(f->a, c1, 3, &e[0]), CONNLIMIT_NO_MATCH);
	for (unsigned int i = 0; i < 4; i++)
		connlimit_release(f->a, &e[i]);
	connlimit_count_free(f->cl, c1);
	connlimit_count_free(f->cl, c2);
}

#define MANY 20000u

/* More keys than buckets at the start: the table grows, every key is found again, and all is
 * given back. */
static void
test_grows(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c = new_count(f, f->t1, by_source, 1);
	struct ct_entry *e = calloc(MANY, sizeof(*e)), second = {0};
	struct connlimit_memory m;
	struct sl_err err;
	uint32_t i;

	assert_non_null(e);
	assert_int_equal(connlimit_set_max(f->cl, MANY, &err), 0);
	for (i = 0; i < MANY; i++)
		assert_int_equal(weigh(f->a, c, i, &e[i]), CONNLIMIT_NO_MATCH);
	connlimit_memory(f->cl, &m);
	assert_in_range(m.buckets, MANY / 2, MANY * 2 / 3 + 1);
	/* Others in their places need no more buckets. */
	for (; i < 5 * MANY; i++) {
		connlimit_release(f->a, &e[i % MANY]);
		assert_int_equal(weigh(f->a, c, i, &e[i % MANY]), CONNLIMIT_NO_MATCH);
	}
	connlimit_memory(f->cl, &m);
	assert_int_equal(m.keys, MANY);
	assert_in_range(m.buckets, MANY / 2, MANY * 2 / 3 + 1);
	for (i = 0; i < MANY; i++) {
		connlimit_release(f->a, &e[i]);
		assert_int_equal(weigh(f->a, c, i, &e[i]), CONNLIMIT_NO_MATCH);
		assert_int_equal(weigh(f->b, c, i, &second), CONNLIMIT_MATCH);
		connlimit_release(f->b, &second);
		connlimit_release(f->b, &e[i]);
	}
	free(e);
	connlimit_count_free(f->cl, c);
}

/* The i-th of keys of both sizes; the address of the one begins as the key of the other. */
static struct tuple
mixed(const struct connlimit_count *four, uint32_t i)
{
	uint32_t second = i % 2 == 0 ? 0 : four->id;

	return (struct tuple){
		.family = i % 2 == 0 ? TUPLE_IPV4 : TUPLE_IPV6, .src.w = {i, second}};
}

/* Many keys in each bucket of a table that may not grow, then one that does: lines are chained,
 * every key is found, and all comes back. */
static void
test_long_buckets(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c[2] = {new_count(f, f->t1, by_source, 1),
		new_count(f, f->t1, (struct connlimit_key){TUPLE_IPV6, false, 128}, 1)};
	struct ct_entry *e = calloc(KEYS, sizeof(*e)), second = {.ns = f->t1};
	uint32_t limit = f->cl->buckets_present, i, n;
	struct tuple seen;

	assert_non_null(e);
	f->cl->buckets_present = CONNLIMIT_BUCKETS_MIN;
	for (i = 0; i < KEYS; i++) {
		e[i].ns = f->t1;
		seen = mixed(c[0], i);
		assert_int_equal(connlimit_weigh(f->a, c[i % 2], &seen, &e[i], NULL),
			CONNLIMIT_NO_MATCH);
	}
	assert_int_equal(connlimit_buckets(f->cl), CONNLIMIT_BUCKETS_MIN);
	f->cl->buckets_present = limit;
	for (n = 0; n < 2 * KEYS; n++) {
		i = n % KEYS;
		seen = mixed(c[0], i);
		assert_int_equal(connlimit_weigh(f->b, c[i % 2], &seen, &second, NULL),
			CONNLIMIT_MATCH);
		connlimit_release(f->b, &second);
		connlimit_release(f->b, &e[i]);
		if (n < KEYS)
			connlimit_weigh(f->a, c[i % 2], &seen, &e[i], NULL);
	}
	assert_int_equal(connlimit_buckets(f->cl), limit);
	free(e);
	connlimit_count_free(f->cl, c[0]);
	connlimit_count_free(f->cl, c[1]);
}

static bool
mark_seen(const struct connlimit_view *v, void *arg)
{
	((uint8_t *)arg)[rte_be_to_cpu_32(v->addr.w[0])]++;
	return true;
}

/* Who is there all through a walk is visited once, however the table grows meanwhile. */
static void
test_walk_while_it_grows(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c = new_count(f, f->t1, by_source, 1);
	struct ct_entry *e = calloc(KEYS, sizeof(*e));
	uint8_t *seen = calloc(KEYS, 1);
	struct connlimit_walk w = {0};
	uint32_t i, n = KEYS / 4;

	assert_true(e != NULL && seen != NULL);
	for (i = 0; i < n; i++)
		weigh(f->a, c, i, &e[i]);
	while (connlimit_walk_slice(f->cl, &w, f->t1, 1, mark_seen, seen))
		for (unsigned int k = 0; k < 4 && n < KEYS; k++, n++)
			weigh(f->a, c, n, &e[n]);
	assert_true(connlimit_buckets(f->cl) > CONNLIMIT_BUCKETS_MIN);
	for (i = 0; i < KEYS; i++) {
		assert_in_range(seen[i], i < KEYS / 4 ? 1 : 0, 1);
		connlimit_release(f->a, &e[i]);
	}
	free(seen);
	free(e);
	connlimit_count_free(f->cl, c);
}

/* All namespaces together may have no more than so many keys, either. */
static void
test_all_are_bounded(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c = new_count(f, f->t1, by_source, 1);
	uint32_t n = KEYS + 2 * THREADS * CREDIT_MAX, i, full = 0;
	struct ct_entry *e = calloc(n, sizeof(*e));

	assert_non_null(e);
	for (i = 0; i < n; i++)
		full += weigh(f->a, c, i, &e[i]) == CONNLIMIT_FULL;
	assert_in_range(full, 1, n - KEYS);
	for (i = 0; i < n; i++)
		connlimit_release(f->a, &e[i]);
	free(e);
	connlimit_count_free(f->cl, c);
}

/* A charge that no counter knows of changes nothing, and is noticed. */
static void
test_false_charge(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count *c = new_count(f, f->t1, by_source, 5);
	struct ct_entry e = {0}, copy;
	struct connlimit_stats s;

	weigh(f->a, c, 1, &e);
	copy = e;
	copy.limit[0] ^= 1; /* another generation */
	connlimit_release(f->a, &copy);
	copy = e;
	connlimit_release(f->a, &e);
	connlimit_release(f->a, &copy); /* the counter is free */
	assert_int_equal(connlimit_netns_keys(f->t1), 0);
	connlimit_stats(f->cl, 0, &s);
	assert_int_equal(s.errors, 2);
	f->a->stats.errors = 0;
	connlimit_count_free(f->cl, c);
}

static void
test_refusals(void **state)
{
	struct fixture *f = *state;
	struct connlimit_count_config config = {
		.ns = f->t1, .by = {TUPLE_IPV4, false, 33}, .limit = 1};
	struct connlimit_count *c;
	struct sl_err err;

	assert_int_equal(connlimit_count_create(f->cl, &config, &c, &err), -EINVAL);
	assert_string_equal(err.msg, "a mask of 33 bits is too long for the address");
	assert_int_equal(connlimit_set_max(f->cl, 0, &err), -EINVAL);
	assert_int_equal(connlimit_set_max(f->cl, CONNLIMIT_KEYS_MAX + 1, &err), -EINVAL);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_over_and_back),
		TEST(test_up_to),
		TEST(test_weighed_twice_is_charged_once),
		TEST(test_keys),
		TEST(test_other_family_is_not_counted),
		TEST(test_tenants_apart),
		TEST(test_count_made_anew),
		TEST(test_limit_changes_live),
		TEST(test_fourth_charge),
		TEST(test_keys_are_bounded),
		TEST(test_grows),
		TEST(test_long_buckets),
		TEST(test_walk_while_it_grows),
		TEST(test_all_are_bounded),
		TEST(test_false_charge),
		TEST(test_refusals),
	};

	return cmocka_run_group_tests_name("connlimit", tests, NULL, NULL);
}
