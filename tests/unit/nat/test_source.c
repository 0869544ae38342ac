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

static uint32_t
claim(struct nat_sources *s, uint16_t sport, uint16_t port, enum nat_claim want)
{
	struct nat_mapping m = mapping(port);
	struct tuple like = flow(1, sport), key;
	uint32_t ref = 0;

	m.pool = 3;
	m.prefix_len = 96;
	m.prefix.w[0] = RTE_BE32(0x20010db8);
	nat_source_key_of_pool(&key, &like, m.pool);
	assert_int_equal(nat_source_claim(s, &key, &like, &m, &ref), want);
	if (want == NAT_CLAIM_HAD)
		assert_int_not_equal(m.port, rte_cpu_to_be_16(port));
	return ref;
}

static uint32_t
inside(struct nat_sources *s, uint16_t port)
{
	struct tuple of = flow(1, 0), end, key;
	struct nat_mapping m = mapping(port), found;
	uint32_t ref;

	nat_source_end(&end, &of, &m.addr, m.port);
	ref = nat_source_inside(s, &end, &key, &found);
	if (ref != 0)
		assert_true(found.pool == 3 && found.port == m.port && key.dport == 3 &&
			    found.prefix_len == 96 &&
			    found.prefix.w[0] == RTE_BE32(0x20010db8));
	return ref;
}

static void
test_an_exclusive_end_is_one_sources(void **state)
{
	struct nat_sources *s = *state;
	struct nat_source_gone gone;
	uint32_t a, b, again;

	assert_int_equal(inside(s, 1000), 0);
	a = claim(s, 7, 1000, NAT_CLAIM_MADE);
	claim(s, 8, 1000, NAT_CLAIM_TAKEN);
	b = claim(s, 8, 1001, NAT_CLAIM_MADE);
	again = claim(s, 7, 1002, NAT_CLAIM_HAD);
	assert_int_equal(again, a);
	assert_int_equal(inside(s, 1000), a);
	assert_int_equal(inside(s, 1002), 0);
	assert_false(put(s, a));
	assert_false(put(s, a));
	assert_true(nat_source_put(s, a, &gone));
	assert_true(gone.exclusive && gone.pool == 3 && gone.end.dport == RTE_BE16(1000));
	assert_true(gone.end.src.w[0] == 0 && gone.end.sport == 0);
	assert_int_equal(inside(s, 1000), 0);
	a = claim(s, 9, 1000, NAT_CLAIM_MADE);
	assert_true(put(s, a) && put(s, b));
	assert_int_equal(nat_sources_used(s), 0);
}

static void
test_a_permit_keeps_its_mapping(void **state)
{
	struct nat_sources *s = *state;
	struct tuple f = flow(1, 7), key, permit;
	struct nat_source_gone gone;
	struct nat_mapping m;
	uint32_t a = claim(s, 7, 1000, NAT_CLAIM_MADE), p, again;

	nat_source_key_of_pool(&key, &f, 3);
	nat_source_key_permit(&permit, &key, &f.dst);
	assert_int_equal(nat_source_hold(s, &permit, &m), 0);
	p = nat_source_permit(s, &permit, a);
	assert_int_not_equal(p, 0);
	again = nat_source_permit(s, &permit, claim(s, 7, 1001, NAT_CLAIM_HAD));
	assert_int_equal(again, p);
	assert_int_equal(nat_sources_used(s), 2);
	assert_false(put(s, p));
	assert_true(nat_source_put(s, p, &gone));
	assert_true(!gone.exclusive && gone.mapping == a);
	assert_true(put(s, gone.mapping));
	assert_int_equal(nat_sources_used(s), 0);
}

static void
test_growth_keeps_what_there_is(void **state)
{
	struct nat_sources *s = *state;
	uint32_t ref[4000], max;
	struct sl_err err;
	unsigned int i, n = 0;

	for (max = MAX; max < 4000; max *= 5) {
		assert_int_equal(nat_sources_grow(s, max, &err), 0);
		for (; n < max; n++)
			ref[n] = claim(s, (uint16_t)n, (uint16_t)(n + 1), NAT_CLAIM_MADE);
		claim(s, 9999, 9999, NAT_CLAIM_FULL);
	}
	assert_int_equal(nat_sources_grow(s, 4000, &err), 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(inside(s, (uint16_t)(i + 1)), ref[i]);
		assert_false(put(s, ref[i]));
		assert_true(put(s, ref[i]));
	}
	assert_int_equal(nat_sources_used(s), 0);
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
		TEST(test_an_exclusive_end_is_one_sources),
		TEST(test_a_permit_keeps_its_mapping),
		TEST(test_growth_keeps_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
