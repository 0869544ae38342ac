/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_common.h>

#include "cookie.h"

static struct sl_hasher hasher;

static const struct tuple syn = {.scope = 3, .family = TUPLE_IPV4, .proto = IPPROTO_TCP,
	.src.w[0] = 0x0a000001, .dst.w[0] = 0x01020304, .sport = 1000, .dport = 80};

static struct sl_now
at(uint64_t s)
{
	return sl_now_from_ns(s * SL_NSEC_PER_SEC);
}

static int
setup(void **state)
{
	(void)state;
	return cookie_init(&hasher, 7);
}

static void
test_brings_the_mss_back(void **state)
{
	static const struct {
		uint16_t offered, kept;
	} cases[] = {{0, 216}, {215, 216}, {216, 216}, {535, 216}, {536, 536}, {1459, 1440},
		{1460, 1460}, {8939, 1460}, {8940, 8940}, {65535, 8940}};
	struct cookie_offer o;
	uint32_t c;
	size_t i;

	(void)state;
	for (i = 0; i < RTE_DIM(cases); i++) {
		c = cookie_make(&hasher, &syn, 42, cases[i].offered, at(1000));
		assert_true(cookie_check(&hasher, &syn, 42, c, at(1001), &o));
		assert_int_equal(o.mss, cases[i].kept);
		assert_int_equal(o.scale, COOKIE_NO_SCALE);
		assert_false(o.sack);
		assert_false(o.timestamp);
	}
}

/* The time in a cookie has five bits: that it comes round must make no old one good. */
static void
test_is_good_for_a_while(void **state)
{
	uint64_t made = COOKIE_UNIT_S * 31 + 10, s;
	uint32_t c = cookie_make(&hasher, &syn, 42, 1460, at(made));
	struct cookie_offer o;

	(void)state;
	for (s = made; s < COOKIE_UNIT_S * 33; s++)
		assert_true(cookie_check(&hasher, &syn, 42, c, at(s), &o));
	for (s = COOKIE_UNIT_S * 33; s < COOKIE_UNIT_S * 100; s += COOKIE_UNIT_S / 4)
		assert_false(cookie_check(&hasher, &syn, 42, c, at(s), &o));
	assert_false(cookie_check(&hasher, &syn, 42, c, at(made - COOKIE_UNIT_S), &o));
}

static void
test_is_of_one_syn(void **state)
{
	uint32_t c = cookie_make(&hasher, &syn, 42, 1460, at(1000));
	struct tuple other;
	struct cookie_offer o;
	struct sl_hasher secret;
	unsigned int bit;

	(void)state;
	for (bit = 0; bit < 32; bit++) {
		assert_false(cookie_check(&hasher, &syn, 42, c ^ UINT32_C(1) << bit, at(1000), &o));
		assert_false(cookie_check(&hasher, &syn, 42 ^ UINT32_C(1) << bit, c, at(1000), &o));
	}
	for (bit = 0; bit < 8 * sizeof(other); bit++) {
		other = syn;
		((uint8_t *)&other)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(cookie_check(&hasher, &other, 42, c, at(1000), &o));
	}
	assert_int_equal(cookie_init(&secret, 0), 0);
	assert_false(cookie_check(&secret, &syn, 42, c, at(1000), &o));
}

static void
test_timestamps_carry_the_rest(void **state)
{
	uint32_t ms[] = {0, 1, 63, 64, 65, 1000000, UINT32_MAX - 1, UINT32_MAX};
	struct cookie_offer o, got;
	struct sl_now now;
	size_t i;
	uint32_t ts;

	(void)state;
	for (i = 0; i < RTE_DIM(ms); i++) {
		for (o.scale = 0; o.scale <= COOKIE_NO_SCALE; o.scale++) {
			o.sack = i % 2 != 0;
			now = (struct sl_now){.ms = ms[i]};
			ts = cookie_timestamp(&o, now);
			assert_in_range(now.ms - ts, 0, 127);
			cookie_read_timestamp(ts, &got);
			assert_int_equal(got.scale, o.scale);
			assert_int_equal(got.sack, o.sack);
			assert_true(got.timestamp);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_brings_the_mss_back),
		cmocka_unit_test(test_is_good_for_a_while),
		cmocka_unit_test(test_is_of_one_syn),
		cmocka_unit_test(test_timestamps_carry_the_rest),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
