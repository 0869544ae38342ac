/* SPDX-License-Identifier: BSD-3-Clause */
/* Token buckets: packets at given times, and which of them find a token. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "connlimit.h"
#include "err.h"

#define START_S UINT64_C(1000)

static struct connlimit *cl;

static int
setup_all(void **state)
{
	struct connlimit_config config = {.threads = 1, .hash = SL_HASH_SIPHASH, .hash_seed = 7};
	struct sl_err err;

	(void)state;
	cl = connlimit_create(&config, &err);
	return cl == NULL ? -1 : 0;
}

static int
teardown_all(void **state)
{
	(void)state;
	connlimit_destroy(cl);
	return 0;
}

static struct connlimit_rate *
make(const struct connlimit_rate_config *config)
{
	struct connlimit_rate *r;
	struct sl_err err;

	assert_int_equal(connlimit_rate_create(cl, config, &r, &err), 0);
	return r;
}

static struct sl_now
at_ms(uint64_t ms)
{
	return sl_now_from_ns(START_S * SL_NSEC_PER_SEC + ms * SL_NSEC_PER_MSEC);
}

static bool
packet(struct connlimit_rate *r, uint32_t src, uint64_t ms)
{
	struct tuple t = {.family = TUPLE_IPV4, .proto = 6};

	t.src.w[0] = rte_cpu_to_be_32(src);
	return connlimit_rate_match(r, &t, at_ms(ms));
}

/* n packets at each of some times, and how many of them are within. */
struct step {
	uint64_t ms;
	unsigned int n, within;
};

static const struct {
	const char *name;
	struct connlimit_rate_config config;
	struct step steps[8];
} cases[] = {
	{"burst, then the rate", {.rate = 10, .unit = 1, .burst = 5},
		{{0, 8, 5}, {99, 1, 0}, {100, 2, 1}, {400, 5, 3}, {10000, 9, 5}}},
	{"no more than the burst is saved", {.rate = 1, .unit = 1, .burst = 2},
		{{0, 3, 2}, {3600000, 3, 2}, {3600999, 1, 0}, {3601000, 1, 1}}},
	{"burst of one", {.rate = 1, .unit = 1, .burst = 1},
		{{0, 2, 1}, {999, 1, 0}, {1000, 2, 1}, {2500, 1, 1}, {3000, 1, 0}, {3500, 1, 1}}},
	{"a minute", {.rate = 1, .unit = 60, .burst = 1},
		{{0, 2, 1}, {59999, 1, 0}, {60000, 2, 1}}},
	{"a week", {.rate = 7, .unit = 604800, .burst = 1},
		{{0, 2, 1}, {86399999, 1, 0}, {86400000, 2, 1}}},
	{"what is refused costs nothing", {.rate = 2, .unit = 1, .burst = 1},
		{{0, 1, 1}, {100, 50, 0}, {499, 50, 0}, {500, 1, 1}}},
	{"faster than the clock", {.rate = UINT64_C(1) << 40, .unit = 1, .burst = 5},
		{{0, 1000, 1000}, {1, 1000, 1000}}},
};

static void
run(unsigned int i, bool over, bool by)
{
	struct connlimit_rate_config config = cases[i].config;
	struct connlimit_rate *r;
	const struct step *s;
	unsigned int n, match;

	config.over = over;
	if (by) {
		config.by = (struct connlimit_key){TUPLE_IPV4, false, 32};
		config.keys = 100;
	}
	r = make(&config);
	for (s = cases[i].steps; s->n > 0; s++) {
		for (match = n = 0; n < s->n; n++)
			match += packet(r, 1, s->ms);
		if (match != (over ? s->n - s->within : s->within))
			fail_msg("%s, at %u ms: %u match%s%s", cases[i].name, (unsigned int)s->ms,
				match, over ? ", over" : "", by ? ", by source" : "");
	}
	connlimit_rate_free(r);
}

static void
test_bucket(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(cases); i++) {
		run(i, false, false);
		run(i, true, false);
		run(i, false, true);
		run(i, true, true);
	}
}

static void
test_keys_apart(void **state)
{
	struct connlimit_rate_config config = {.by = {TUPLE_IPV4, false, 24}, .rate = 1, .unit = 1,
		.burst = 1, .keys = 10000};
	struct connlimit_rate *r = make(&config);
	uint32_t i;

	(void)state;
	for (i = 0; i < 500; i++)
		assert_true(packet(r, i << 8, 0));
	for (i = 0; i < 500; i++)
		assert_false(packet(r, i << 8 | 77, 0));
	assert_int_equal(connlimit_rate_evicted(r), 0);
	connlimit_rate_free(r);
}

static void
test_other_family(void **state)
{
	struct connlimit_rate_config config = {.by = {TUPLE_IPV4, false, 32}, .rate = 1, .unit = 1,
		.burst = 1, .keys = 10};
	struct tuple six = {.family = TUPLE_IPV6};
	struct connlimit_rate *r;

	(void)state;
	for (unsigned int over = 0; over < 2; over++) {
		config.over = over;
		r = make(&config);
		assert_false(connlimit_rate_match(r, &six, at_ms(0)));
		connlimit_rate_free(r);
	}
}

/* Many more sources than there are places: whoever floods stays throttled. */
static void
test_eviction_is_fair(void **state)
{
	struct connlimit_rate_config config = {.by = {TUPLE_IPV4, false, 32}, .rate = 10, .unit = 1,
		.burst = 20, .keys = 40};
	struct connlimit_rate *r = make(&config);
	unsigned int within = 0, ms;
	uint32_t other = 1000;

	(void)state;
	for (ms = 0; ms < 10000; ms++) {
		within += packet(r, 1, ms);
		assert_true(packet(r, other++, ms));
	}
	/* 20 and 10 a second: nothing was forgiven it. */
	assert_in_range(within, 119, 120);
	assert_in_range(connlimit_rate_evicted(r), 1, 10000);
	connlimit_rate_free(r);
}

static void
test_refusals(void **state)
{
	static const struct {
		struct connlimit_rate_config config;
		const char *message;
	} bad[] = {
		{{.rate = 0, .unit = 1, .burst = 5}, "a rate and its burst are at least 1"},
		{{.rate = 1, .unit = 1, .burst = 0}, "a rate and its burst are at least 1"},
		{{.rate = 1, .unit = 604800, .burst = UINT32_MAX},
			"a burst of 4294967295 takes too long to come back"},
		{{.by = {TUPLE_IPV4, false, 32}, .rate = 1, .unit = 1, .burst = 1},
			"0 keys are out of range (1-33554432)"},
		{{.by = {TUPLE_IPV6, false, 129}, .rate = 1, .unit = 1, .burst = 1, .keys = 1},
			"a mask of 129 bits is too long for the address"},
	};
	struct connlimit_rate *r;
	struct sl_err err;
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(connlimit_rate_create(cl, &bad[i].config, &r, &err), -EINVAL);
		assert_string_equal(err.msg, bad[i].message);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bucket),
		cmocka_unit_test(test_keys_apart),
		cmocka_unit_test(test_other_family),
		cmocka_unit_test(test_eviction_is_fair),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests_name("rate", tests, setup_all, teardown_all);
}
