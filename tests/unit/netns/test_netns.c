/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <malloc.h>

#include <cmocka.h>
#include <rte_common.h>

#include "err.h"
#include "netns.h"

#define THREADS 3u /* two workers and control */

/* Memory that fails: the link replaces these calls of the library by the ones here. */
void *__real_malloc(size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static int allocs_left = -1; /* negative: all succeed */

static bool
alloc_fails(void)
{
	if (allocs_left > 0)
		allocs_left--;
	else if (allocs_left == 0)
		return true;
	return false;
}

void *
__wrap_malloc(size_t size)
{
	return alloc_fails() ? NULL : __real_malloc(size);
}

void *
__wrap_aligned_alloc(size_t align, size_t size)
{
	return alloc_fails() ? NULL : __real_aligned_alloc(align, size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return alloc_fails() ? NULL : __real_calloc(n, size);
}

static struct netns_registry *
registry(unsigned int drop_blocks)
{
	struct netns_registry *r = netns_registry_create(THREADS, drop_blocks, NULL);

	assert_non_null(r);
	return r;
}

static struct netns *
add(struct netns_registry *r, const char *name, const struct netns *parent)
{
	struct netns *ns = NULL;

	assert_int_equal(netns_create_batch(r, &name, 1, parent, &ns, NULL), 0);
	assert_non_null(ns);
	return ns;
}

static void
destroy(struct netns_registry *r, struct netns *const ns[], unsigned int n)
{
	netns_kill_batch(r, ns, n);
	netns_free_batch(r, ns, n);
}

static void
test_init_exists(void **state)
{
	struct netns_registry *r = registry(0);
	struct netns *init = netns_init_ns(r);
	(void)state;

	assert_int_equal(netns_registry_threads(r), THREADS);
	assert_int_equal(netns_count(r), 1);
	assert_ptr_equal(netns_find(r, "init"), init);
	assert_ptr_equal(netns_by_id(r, NETNS_INIT_ID), init);
	assert_int_equal(init->id, NETNS_INIT_ID);
	assert_true(init->gen != 0);
	assert_true(netns_alive(init));
	assert_int_equal(netns_knobs(init)->udp_timeout, 30000);
	netns_registry_destroy(r);
}

static void
test_names(void **state)
{
	static const char *const good[] = {"a", "Z9", "a.b_c-d", "-", ".", "0",
		"123456789012345678901234567890123456789012345678901234567890123"};
	static const char *const bad[] = {"", " ", "a b", "a/b", "a\nb", "\xc3\xa4", "a\x7f",
		"1234567890123456789012345678901234567890123456789012345678901234"};
	struct sl_err err;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(good); i++)
		assert_int_equal(netns_name_valid(good[i], &err), 0);
	for (i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(netns_name_valid(bad[i], &err), -EINVAL);
		assert_non_null(strstr(err.msg, "1 to 63 characters of A-Za-z0-9._-"));
		assert_null(strchr(err.msg, '\n'));
	}
	netns_name_valid("x\ny", &err);
	assert_non_null(strstr(err.msg, "\"x?y\""));
}

/* Each batch is refused as a whole, and says why. */
static void
test_batch_is_all_or_nothing(void **state)
{
	static const struct {
		const char *names[4];
		int ret;
		const char *msg;
	} cases[] = {
		{{"a", "b", "a", "c"}, -EEXIST, "namespace a is named twice in one batch"},
		{{"a", "b", "c", "old"}, -EEXIST, "namespace old exists already"},
		{{"a", "b", "init", "c"}, -EEXIST, "namespace init exists already"},
		{{"a", "b", "c d", "e"}, -EINVAL, "\"c d\" is no namespace name"},
		{{"a", "b", "c", ""}, -EINVAL, "\"\" is no namespace name"},
	};
	struct netns_registry *r = registry(0);
	struct netns *init = netns_init_ns(r), *old = add(r, "old", init), *out[4];
	unsigned int i, k;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		struct sl_err err;
		uint32_t id = 0;

		memset(out, 0, sizeof(out));
		assert_int_equal(
			netns_create_batch(r, cases[i].names, 4, init, out, &err), cases[i].ret);
		assert_non_null(strstr(err.msg, cases[i].msg));
		assert_int_equal(netns_count(r), 2);
		assert_null(netns_find(r, "a"));
		assert_null(netns_find(r, "b"));
		assert_ptr_equal(netns_find(r, "old"), old);
		for (k = 0; k < 4; k++)
			assert_null(out[k]);
		assert_ptr_equal(netns_next(r, &id), init);
		assert_ptr_equal(netns_next(r, &id), old);
		assert_null(netns_next(r, &id));
		assert_int_equal(netns_knobs(init)->refs, 2);
	}
	/* What was undone can be created, and ids go on without a gap. */
	assert_int_equal(netns_create_batch(r, cases[4].names, 3, init, out, NULL), 0);
	for (k = 0; k < 3; k++)
		assert_int_equal(out[k]->id, 2 + k);
	netns_registry_destroy(r);
}

static void
test_batch_without_memory(void **state)
{
	static const char *const names[] = {"a", "b", "c"};
	struct netns_registry *r = registry(0);
	struct sl_err err;
	int i;
	(void)state;

	/* Allocations: the batch, then each namespace. */
	for (i = 0; i < 4; i++) {
		int ret;

		allocs_left = i;
		ret = netns_create_batch(r, names, 3, netns_init_ns(r), NULL, &err);
		allocs_left = -1;
		assert_int_equal(ret, -ENOMEM);
		assert_non_null(strstr(err.msg, "no memory"));
		assert_int_equal(netns_count(r), 1);
		assert_null(netns_find(r, "a"));
	}
	assert_int_equal(netns_create_batch(r, names, 3, netns_init_ns(r), NULL, &err), 0);
	allocs_left = 0;
	assert_int_equal(netns_set_knobs(netns_find(r, "a"), netns_knobs(netns_init_ns(r)), &err),
		-ENOMEM);
	allocs_left = -1;
	assert_int_equal(netns_knobs(netns_init_ns(r))->refs, 4);
	netns_registry_destroy(r);

	for (i = 0;; i++) {
		allocs_left = i;
		r = netns_registry_create(THREADS, 4, &err);
		allocs_left = -1;
		if (r != NULL)
			break;
		assert_non_null(strstr(err.msg, "no memory"));
	}
	assert_int_equal(i, 8); /* each of its allocations has failed once */
	netns_registry_destroy(r);
}

static void
test_ids_are_reused_with_a_new_generation(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	struct netns_registry *r = registry(0);
	struct netns *ns[4], *b;
	uint32_t gen, id = 0;
	(void)state;

	assert_int_equal(netns_create_batch(r, names, 4, netns_init_ns(r), ns, NULL), 0);
	gen = ns[1]->gen;
	netns_kill_batch(r, &ns[1], 1);
	assert_false(netns_alive(ns[1]));
	assert_int_equal(netns_count(r), 4);
	assert_null(netns_find(r, "b"));
	assert_ptr_equal(netns_by_id(r, 2), ns[1]); /* still there for those who have its id */

	/* While the old one is dying its name is free, its id is not. */
	b = add(r, "b", netns_init_ns(r));
	assert_int_equal(b->id, 5);
	netns_free_batch(r, &ns[1], 1);
	assert_null(netns_by_id(r, 2));
	ns[1] = add(r, "e", netns_init_ns(r));
	assert_int_equal(ns[1]->id, 2);
	assert_int_equal(ns[1]->gen, gen + 1);
	assert_ptr_equal(netns_find(r, "b"), b);

	for (gen = 0; netns_next(r, &id) != NULL; gen++)
		assert_int_equal(id, gen + 1);
	assert_int_equal(gen, 6);
	assert_null(netns_by_id(r, 6));
	assert_null(netns_by_id(r, NETNS_MAX));
	assert_null(netns_by_id(r, UINT32_MAX));
	netns_registry_destroy(r);
}

static void
test_knobs_are_inherited_and_copied_on_write(void **state)
{
	struct netns_registry *r = registry(0);
	struct netns *init = netns_init_ns(r), *a = add(r, "a", init), *b, *c;
	struct knobs changed = *netns_knobs(a);
	(void)state;

	assert_ptr_equal(netns_knobs(a), netns_knobs(init));
	changed.udp_timeout = 1000;
	assert_int_equal(netns_set_knobs(a, &changed, NULL), 0);
	assert_int_equal(netns_knobs(a)->udp_timeout, 1000);
	assert_int_equal(netns_knobs(init)->udp_timeout, 30000);

	b = add(r, "b", a);
	assert_ptr_equal(netns_knobs(b), netns_knobs(a));
	assert_int_equal(netns_knobs(a)->refs, 2);
	changed.udp_timeout = 2000;
	assert_int_equal(netns_set_knobs(a, &changed, NULL), 0);
	assert_int_equal(netns_knobs(b)->udp_timeout, 1000);
	c = add(r, "c", a);
	assert_int_equal(netns_knobs(c)->udp_timeout, 2000);

	/* The block outlives the namespace that made it. */
	destroy(r, &a, 1);
	assert_int_equal(netns_knobs(c)->udp_timeout, 2000);
	assert_int_equal(netns_knobs(c)->refs, 1);
	netns_registry_destroy(r);
}

static void
test_old_knobs_go_by_the_rcu_thread(void **state)
{
	struct netns_registry *r = registry(0);
	struct netns *init = netns_init_ns(r);
	struct knobs changed = *netns_knobs(init);
	uint32_t i;
	(void)state;

	assert_int_equal(sl_rcu_start(NULL, NULL), 0);
	for (i = 0; i < 100; i++) {
		changed.udp_timeout = i;
		assert_int_equal(netns_set_knobs(init, &changed, NULL), 0);
		assert_int_equal(netns_knobs(init)->udp_timeout, i);
	}
	sl_rcu_stop();
	netns_registry_destroy(r); /* a leak is for the sanitizer to find */
}

static void
test_counters(void **state)
{
	struct netns_registry *r = registry(0);
	struct netns *ns = add(r, "a", netns_init_ns(r));
	struct netns_totals t;
	unsigned int i;
	(void)state;

	for (i = 0; i < THREADS; i++) {
		assert_true((uintptr_t)&ns->counters[i] % 64 == 0);
		netns_counter_add(&ns->counters[i].packets, 10 * (i + 1));
		netns_counter_add(&ns->counters[i].bytes, 1000);
		netns_counter_add(&ns->counters[i].created, 2);
	}
	/* Entries leave on another thread than the one they came on. */
	netns_counter_add(&ns->counters[0].entries, 5);
	netns_counter_add(&ns->counters[1].entries, -4);
	netns_totals(ns, &t);
	assert_int_equal(t.packets, 60);
	assert_int_equal(t.bytes, 3000);
	assert_int_equal(t.created, 6);
	assert_int_equal(t.entries, 1);
	assert_int_equal(netns_entries(ns, THREADS), 1);
	netns_registry_destroy(r);
}

static void
test_drops(void **state)
{
	struct netns_registry *r = registry(3);
	struct netns *a = add(r, "a", netns_init_ns(r)), *b = add(r, "b", netns_init_ns(r));
	struct netns_totals t;
	uint64_t none[SL_DROP_COUNT];
	(void)state;

	netns_count_drop(r, a, 0, SL_DROP_RUNT);
	netns_count_drop(r, a, 1, SL_DROP_RUNT);
	netns_count_drop(r, a, 0, SL_DROP_INV_GRE);
	netns_count_drop(r, b, 0, SL_DROP_TX_FULL);
	/* The pool is empty now; who has a block goes on counting. */
	netns_count_drop(r, b, 1, SL_DROP_NO_PEER);
	netns_count_drop(r, a, 1, SL_DROP_RUNT);
	netns_count_drop(r, NULL, 2, SL_DROP_NO_LINK);

	netns_totals(a, &t);
	assert_int_equal(t.drops[SL_DROP_RUNT], 3);
	assert_int_equal(t.drops[SL_DROP_INV_GRE], 1);
	netns_totals(b, &t);
	assert_int_equal(t.drops[SL_DROP_TX_FULL], 1);
	assert_int_equal(t.drops[SL_DROP_NO_PEER], 0);
	netns_unattributed_drops(r, none);
	assert_int_equal(none[SL_DROP_NO_PEER], 1);
	assert_int_equal(none[SL_DROP_NO_LINK], 1);
	assert_int_equal(none[SL_DROP_RUNT], 0);

	/* Blocks come back with the namespace, as good as new. */
	destroy(r, &a, 1);
	netns_count_drop(r, b, 1, SL_DROP_NO_PEER);
	netns_totals(b, &t);
	assert_int_equal(t.drops[SL_DROP_NO_PEER], 1);
	assert_int_equal(t.drops[SL_DROP_RUNT], 0);
	netns_registry_destroy(r);
}

static double
cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static size_t
heap_used(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* t1 … tn in one batch and away again; the bounds are some ten times what it takes. */
static void
check_large_batch(struct netns_registry *r, unsigned int n, double max_ms)
{
	char (*text)[16] = malloc(n * sizeof(*text));
	const char **names = malloc(n * sizeof(*names));
	struct netns **ns = calloc(n, sizeof(struct netns *));
	double start, created, destroyed;
	size_t heap;
	unsigned int i;

	assert_true(text != NULL && names != NULL && ns != NULL);
	for (i = 0; i < n; i++) {
		snprintf(text[i], sizeof(text[i]), "t%u", i + 1);
		names[i] = text[i];
	}
	heap = heap_used();
	start = cpu_ms();
	assert_int_equal(netns_create_batch(r, names, n, netns_init_ns(r), ns, NULL), 0);
	created = cpu_ms() - start;
	heap = heap_used() - heap;
	assert_int_equal(netns_count(r), n + 1);
	assert_int_equal(ns[n - 1]->id, n);
	assert_ptr_equal(netns_find(r, names[n / 2]), ns[n / 2]);
	start = cpu_ms();
	destroy(r, ns, n);
	destroyed = cpu_ms() - start;
	assert_int_equal(netns_count(r), 1);
	print_message("%u namespaces: created in %.2f ms, destroyed in %.2f ms, %zu bytes each\n",
		n, created, destroyed, heap / n);
	assert_true(created < max_ms);
	assert_true(destroyed < max_ms);
	assert_true(heap < n * 2000u);
	free(ns);
	free(names);
	free(text);
}

static void
test_large_batches(void **state)
{
	struct netns_registry *r = registry(1024);
	(void)state;

	check_large_batch(r, 1000, 50);
	check_large_batch(r, NETNS_MAX - 1, 2000);
	check_large_batch(r, NETNS_MAX - 1, 2000); /* on used ids */
	netns_registry_destroy(r);
}

static void
test_too_many(void **state)
{
	struct netns_registry *r = registry(0);
	const char **names = malloc(NETNS_MAX * sizeof(*names));
	struct sl_err err;
	(void)state;

	assert_non_null(names);
	names[0] = "a";
	/* Refused by the number: the names are not looked at. */
	assert_int_equal(netns_create_batch(r, names, NETNS_MAX, netns_init_ns(r), NULL, &err),
		-ENOSPC);
	assert_string_equal(err.msg, "65537 namespaces are too many: 1 of 65537 are in use");
	assert_int_equal(netns_count(r), 1);
	assert_int_equal(netns_create_batch(r, names, 0, netns_init_ns(r), NULL, &err), 0);
	free(names);
	netns_registry_destroy(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init_exists),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_batch_is_all_or_nothing),
		cmocka_unit_test(test_batch_without_memory),
		cmocka_unit_test(test_ids_are_reused_with_a_new_generation),
		cmocka_unit_test(test_knobs_are_inherited_and_copied_on_write),
		cmocka_unit_test(test_old_knobs_go_by_the_rcu_thread),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_drops),
		cmocka_unit_test(test_large_batches),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
