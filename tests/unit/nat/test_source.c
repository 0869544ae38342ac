/* SPDX-License-Identifier: BSD-3-Clause */
/* The by-source table: references, keys, room. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "source.h"

#define MAX 8u

static int
setup(void **state)
{
	struct sl_err err;

	*state = nat_sources_create(MAX, SL_HASH_SIPHASH, 1, &err);
	return *state == NULL;
}

static int
teardown(void **state)
{
	nat_sources_destroy(*state);
	return 0;
}

static struct tuple
flow(uint32_t ns, uint16_t sport)
{
	struct tuple t = {.scope = ns, .family = TUPLE_IPV4, .proto = IPPROTO_UDP};

	t.src.w[0] = RTE_BE32(0x0a000001);
	t.dst.w[0] = RTE_BE32(0xc0000201);
	t.sport = rte_cpu_to_be_16(sport);
	t.dport = RTE_BE16(53);
	return t;
}

static bool
put(struct nat_sources *s, uint32_t ref)
{
	struct nat_source_gone gone;

	return nat_source_put(s, ref, &gone);
}

static struct nat_mapping
mapping(uint16_t port)
{
	struct nat_mapping m = {.port = rte_cpu_to_be_16(port), .family = TUPLE_IPV4};

	m.addr.w[0] = RTE_BE32(0xcb007101);
	return m;
}

static void
test_key_has_no_destination(void **state)
{
	struct tuple a = flow(1, 7), b = flow(1, 7), ka, kb;
	(void)state;

	b.dst.w[0] ^= 1;
	b.dport ^= 1;
	nat_source_key(&ka, &a);
	nat_source_key(&kb, &b);
	assert_true(tuple_equal(&ka, &kb));
	b.sport ^= 1;
	nat_source_key(&kb, &b);
	assert_false(tuple_equal(&ka, &kb));
	nat_source_host(&ka, &a);
	nat_source_host(&kb, &b);
	assert_true(tuple_equal(&ka, &kb));
}

static void
test_first_mapping_stays_until_last_reference(void **state)
{
	struct nat_sources *s = *state;
	struct nat_mapping m = mapping(1000), other = mapping(2000), seen;
	struct tuple key;
	uint32_t a, b, c;

	key = flow(1, 7);
	nat_source_key(&key, &key);
	assert_false(nat_source_peek(s, &key, &seen));
	a = nat_source_get(s, &key, &m);
	b = nat_source_get(s, &key, &other);
	assert_int_not_equal(a, 0);
	assert_int_equal(a, b);
	assert_int_equal(other.port, RTE_BE16(1000));
	put(s, a);
	assert_true(nat_source_peek(s, &key, &seen));
	put(s, b);
	assert_false(nat_source_peek(s, &key, &seen));
	assert_int_equal(nat_sources_used(s), 0);
	other = mapping(2000);
	c = nat_source_get(s, &key, &other);
	assert_int_equal(other.port, RTE_BE16(2000));
	put(s, c);
}

static void
test_namespaces_are_apart(void **state)
{
	struct nat_sources *s = *state;
	struct tuple one = flow(1, 7), two = flow(2, 7);
	struct nat_mapping a = mapping(1000), b = mapping(2000);
	uint32_t ra = nat_source_get(s, &one, &a), rb = nat_source_get(s, &two, &b);

	assert_int_not_equal(ra, rb);
	assert_int_equal(b.port, RTE_BE16(2000));
	put(s, ra);
	assert_true(nat_source_peek(s, &two, &a));
	assert_int_equal(a.port, RTE_BE16(2000));
	put(s, rb);
}

static void
test_full_refuses_and_room_comes_back(void **state)
{
	struct nat_sources *s = *state;
	struct nat_mapping m = mapping(1);
	uint32_t ref[MAX];
	struct tuple key;
	unsigned int i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < MAX; i++) {
			key = flow(i, 7);
			ref[i] = nat_source_get(s, &key, &m);
			assert_int_not_equal(ref[i], 0);
		}
		key = flow(MAX, 7);
		assert_int_equal(nat_source_get(s, &key, &m), 0);
		assert_int_equal(nat_sources_used(s), MAX);
		for (i = 0; i < MAX; i++)
			put(s, ref[(i * 3 + round) % MAX]);
		assert_int_equal(nat_sources_used(s), 0);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key_has_no_destination),
		TEST(test_first_mapping_stays_until_last_reference),
		TEST(test_namespaces_are_apart),
		TEST(test_full_refuses_and_room_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
