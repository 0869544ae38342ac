/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "clock.h"
#include "drop.h"
#include "err.h"
#include "hash.h"
#include "mem.h"

static void
test_deadline_wraps(void **state)
{
	uint32_t near_wrap = UINT32_MAX - 4999, near_sign = INT32_MAX - 4999;
	(void)state;

	assert_false(sl_ms_passed(near_wrap + 10000, near_wrap));
	assert_true(sl_ms_passed(near_wrap + 10000, near_wrap + 10000));
	assert_true(sl_ms_passed(near_wrap + 10000, near_wrap + 10001));
	assert_int_equal(sl_ms_left(near_sign + 10000, near_sign), 10000);
	assert_false(sl_ms_passed(near_sign + SL_TIMEOUT_MAX * SL_MSEC_PER_SEC, near_sign));
}

static void
test_hash_depends_on_every_byte_and_on_the_key(void **state)
{
	static const enum sl_hash_backend backends[] = {SL_HASH_AUTO, SL_HASH_SIPHASH};
	uint8_t key[SL_HASH_LEN];
	struct sl_hasher a, b;
	unsigned int i, k;
	(void)state;

	for (k = 0; k < 2; k++) {
		memset(key, 0, sizeof(key));
		assert_int_equal(sl_hasher_init(&a, backends[k], 1), 0);
		assert_int_equal(sl_hasher_init(&b, backends[k], 2), 0);
		assert_true(sl_hash(&a, key) != sl_hash(&b, key));
		for (i = 0; i < SL_HASH_LEN * 8; i++) {
			uint64_t before = sl_hash(&a, key), after;

			key[i / 8] ^= (uint8_t)(1 << i % 8);
			after = sl_hash(&a, key);
			key[i / 8] ^= (uint8_t)(1 << i % 8);
			/* A flipped bit flips about half of 64. */
			assert_in_range(__builtin_popcountll(before ^ after), 10, 54);
		}
		assert_true(sl_hash_word(&a, 7) != sl_hash_word(&b, 7));
		for (i = 0; i < 64; i++)
			assert_in_range(__builtin_popcountll(sl_hash_word(&a, 7) ^
						sl_hash_word(&a, 7 ^ UINT64_C(1) << i)),
				10, 54);
	}
}

/* The key with its ends changed for each other. */
static void
turn(uint8_t *to, const uint8_t *from)
{
	unsigned int end;

	memcpy(to, from, SL_HASH_LEN);
	for (end = 0; end < 2; end++) {
		memcpy(to + SL_HASH_ADDR(end), from + SL_HASH_ADDR(1 - end), SL_HASH_ADDR_LEN);
		memcpy(to + SL_HASH_PORT(end), from + SL_HASH_PORT(1 - end), SL_HASH_PORT_LEN);
	}
}

static void
test_hash_of_both_orders_differs_in_a_bit(void **state)
{
	static const enum sl_hash_backend backends[] = {SL_HASH_AUTO, SL_HASH_SIPHASH};
	uint8_t key[SL_HASH_LEN] = {0}, turned[SL_HASH_LEN];
	struct sl_hasher h;
	unsigned int i, k;
	uint64_t same;
	(void)state;

	for (k = 0; k < 2; k++) {
		memset(key, 0, sizeof(key));
		assert_int_equal(sl_hasher_init(&h, backends[k], 1), 0);
		same = sl_hash_ends(&h, key);
		/* A bit of what belongs to both ends leaves them equal. */
		for (i = 0; i < SL_HASH_LEN * 8; i++) {
			uint64_t after, other;

			key[i / 8] ^= (uint8_t)(1 << i % 8);
			after = sl_hash_ends(&h, key);
			assert_in_range(__builtin_popcountll(same ^ after), 10, 54);
			turn(turned, key);
			other = sl_hash_ends(&h, turned);
			key[i / 8] ^= (uint8_t)(1 << i % 8);
			if (i / 8 < SL_HASH_ADDR(0))
				assert_true(other == after);
			else
				assert_true(other == (after ^ SL_HASH_TURNED));
		}
	}
}

/* A key is not that of one end of one and one end of another: ports stay with their addresses. */
static void
test_hash_keeps_ports_with_addresses(void **state)
{
	static const enum sl_hash_backend backends[] = {SL_HASH_AUTO, SL_HASH_SIPHASH};
	uint8_t key[SL_HASH_LEN] = {0};
	struct sl_hasher h;
	uint64_t before, after;
	unsigned int k;
	(void)state;

	for (k = 0; k < 2; k++) {
		memset(key, 0, sizeof(key));
		assert_int_equal(sl_hasher_init(&h, backends[k], 1), 0);
		key[SL_HASH_ADDR(0)] = 10;
		key[SL_HASH_ADDR(1)] = 20;
		key[SL_HASH_PORT(0)] = 1;
		before = sl_hash_ends(&h, key);
		key[SL_HASH_PORT(0)] = 0;
		key[SL_HASH_PORT(1)] = 1;
		after = sl_hash_ends(&h, key);
		assert_in_range(__builtin_popcountll(before ^ after), 10, 54);
	}
}

static void
test_hash_bulk_is_one_by_one(void **state)
{
	struct {
		uint8_t key[SL_HASH_LEN];
		uint64_t out;
	} in[33];
	struct sl_hasher h;
	unsigned int i, j;
	(void)state;

	for (i = 0; i < 33; i++)
		for (j = 0; j < SL_HASH_LEN; j++)
			in[i].key[j] = (uint8_t)(i * 7 + j);
	assert_int_equal(sl_hasher_init(&h, SL_HASH_AUTO, 0), 0);
	sl_hash_ends_bulk(&h, in, sizeof(in[0]), 33, &in[0].out, sizeof(in[0]));
	for (i = 0; i < 33; i++)
		assert_true(in[i].out == sl_hash_ends(&h, in[i].key));
}

/* SipHash-2-4 of 00 … 2b under the key 00 … 0f, from a second implementation that gives the value
 * of the paper's appendix A. */
static void
test_siphash_is_siphash(void **state)
{
	uint8_t key[SL_HASH_LEN];
	struct sl_hasher h;
	unsigned int i;
	(void)state;

	for (i = 0; i < SL_HASH_LEN; i++)
		key[i] = (uint8_t)i;
	assert_int_equal(sl_hasher_init(&h, SL_HASH_SIPHASH, 1), 0);
	for (i = 0; i < 16; i++)
		h.key[i] = (uint8_t)i;
	assert_true(sl_hash(&h, key) == UINT64_C(0xf935451de4f21df2));
	assert_true(sl_hash_word(&h, UINT64_C(0x0706050403020100)) ==
		    UINT64_C(0x93f5f5799a932462));
	assert_int_equal(h.backend, SL_HASH_SIPHASH);
}

static void
test_region_grows_in_place(void **state)
{
	struct sl_region r = {0};
	struct sl_err err;
	char *base;
	(void)state;

	assert_int_equal(sl_region_reserve(&r, (size_t)64 << 20, &err), 0);
	assert_int_equal(sl_region_grow(&r, 1, &err), 0);
	base = r.base;
	base[0] = 1;
	assert_int_equal(sl_region_grow(&r, (size_t)8 << 20, &err), 0);
	assert_ptr_equal(r.base, base);
	assert_int_equal(base[0], 1);
	assert_int_equal(base[((size_t)8 << 20) - 1], 0);
	assert_int_equal(sl_region_grow(&r, (size_t)65 << 20, &err), -EINVAL);
	sl_region_release(&r);
}

static void
test_region_refuses_more_than_the_machine_has(void **state)
{
	struct sl_region r = {0};
	struct sl_err err = {""};
	(void)state;

	assert_int_equal(sl_region_reserve(&r, (size_t)1 << 44, &err), 0);
	assert_int_equal(sl_region_grow(&r, (size_t)1 << 44, &err), -ENOMEM);
	assert_non_null(strstr(err.msg, "are needed"));
	assert_int_equal(r.present, 0);
	sl_region_release(&r);
}

static void
test_every_drop_has_name_and_help(void **state)
{
	unsigned int i, j;
	(void)state;

	for (i = 0; i < SL_DROP_COUNT; i++) {
		assert_true(strlen(sl_drop_name(i)) > 0 && strlen(sl_drop_help(i)) > 0);
		for (j = 0; j < i; j++)
			assert_string_not_equal(sl_drop_name(i), sl_drop_name(j));
	}
	assert_string_equal(sl_drop_name(SL_DROP_COUNT), "unknown");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deadline_wraps),
		cmocka_unit_test(test_hash_depends_on_every_byte_and_on_the_key),
		cmocka_unit_test(test_hash_of_both_orders_differs_in_a_bit),
		cmocka_unit_test(test_hash_keeps_ports_with_addresses),
		cmocka_unit_test(test_hash_bulk_is_one_by_one),
		cmocka_unit_test(test_siphash_is_siphash),
		cmocka_unit_test(test_region_grows_in_place),
		cmocka_unit_test(test_region_refuses_more_than_the_machine_has),
		cmocka_unit_test(test_every_drop_has_name_and_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
