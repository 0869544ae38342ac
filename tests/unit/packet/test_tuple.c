/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tuple.h"

static struct tuple
make(uint8_t family, uint8_t proto, uint16_t sport, uint16_t dport)
{
	struct tuple t;

	memset(&t, 0, sizeof(t));
	t.scope = 7;
	t.zone = 9;
	t.family = family;
	t.proto = proto;
	memset(&t.src, 0x11, family == TUPLE_IPV4 ? 4 : 16);
	memset(&t.dst, 0x22, family == TUPLE_IPV4 ? 4 : 16);
	t.sport = rte_cpu_to_be_16(sport);
	t.dport = rte_cpu_to_be_16(dport);
	return t;
}

static void
test_ports_and_addresses_change_places(void **state)
{
	static const struct {
		uint8_t family, proto;
	} cases[] = {{TUPLE_IPV4, IPPROTO_TCP}, {TUPLE_IPV6, IPPROTO_UDP},
		{TUPLE_IPV4, IPPROTO_ESP},
		{TUPLE_IPV4, IPPROTO_ICMPV6}, {TUPLE_IPV6, IPPROTO_ICMP}};
	unsigned int i;
	(void)state;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tuple t = make(cases[i].family, cases[i].proto, 40000, 80), inv, back;

		memset(&inv, 0xff, sizeof(inv));
		assert_true(tuple_invert(&inv, &t));
		assert_memory_equal(&inv.src, &t.dst, sizeof(inv.src));
		assert_memory_equal(&inv.dst, &t.src, sizeof(inv.dst));
		assert_int_equal(inv.sport, t.dport);
		assert_int_equal(inv.dport, t.sport);
		assert_int_equal(inv.scope, 7);
		assert_int_equal(inv.zone, 9);
		assert_true(tuple_invert(&back, &inv));
		assert_true(tuple_equal(&back, &t));
		assert_false(tuple_equal(&inv, &t));
	}
}

static void
test_icmp_queries_have_their_reply(void **state)
{
	static const struct {
		uint8_t family, proto, query, reply;
	} cases[] = {{TUPLE_IPV4, IPPROTO_ICMP, 8, 0}, {TUPLE_IPV4, IPPROTO_ICMP, 13, 14},
		{TUPLE_IPV4, IPPROTO_ICMP, 15, 16}, {TUPLE_IPV4, IPPROTO_ICMP, 17, 18},
		{TUPLE_IPV6, IPPROTO_ICMPV6, 128, 129}, {TUPLE_IPV6, IPPROTO_ICMPV6, 139, 140}};
	unsigned int i;
	(void)state;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tuple t = make(cases[i].family, cases[i].proto, 500,
			(uint16_t)(cases[i].query << 8 | 3));
		struct tuple inv, back;

		assert_true(tuple_invert(&inv, &t));
		assert_int_equal(inv.sport, t.sport);
		assert_int_equal(rte_be_to_cpu_16(inv.dport), cases[i].reply << 8 | 3);
		assert_memory_equal(&inv.src, &t.dst, sizeof(inv.src));
		assert_true(tuple_invert(&back, &inv));
		assert_true(tuple_equal(&back, &t));
	}
}

/* Every type of both families has an answer exactly when it is one of the pairs above. */
static void
test_other_icmp_types_have_none(void **state)
{
	unsigned int type, answered4 = 0, answered6 = 0;
	struct tuple inv;
	(void)state;

	for (type = 0; type < 256; type++) {
		struct tuple v4 = make(TUPLE_IPV4, IPPROTO_ICMP, 1, (uint16_t)(type << 8));
		struct tuple v6 = make(TUPLE_IPV6, IPPROTO_ICMPV6, 1, (uint16_t)(type << 8));

		answered4 += tuple_invert(&inv, &v4);
		answered6 += tuple_invert(&inv, &v6);
	}
	assert_int_equal(answered4, 8);
	assert_int_equal(answered6, 4);
}

static void
test_every_byte_counts(void **state)
{
	struct tuple a = make(TUPLE_IPV6, IPPROTO_TCP, 1, 2), b = a;
	unsigned int i;
	(void)state;

	for (i = 0; i < sizeof(a); i++) {
		((uint8_t *)&b)[i] ^= 0x80;
		assert_false(tuple_equal(&a, &b));
		((uint8_t *)&b)[i] ^= 0x80;
	}
	assert_true(tuple_equal(&a, &b));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ports_and_addresses_change_places),
		cmocka_unit_test(test_icmp_queries_have_their_reply),
		cmocka_unit_test(test_other_icmp_types_have_none),
		cmocka_unit_test(test_every_byte_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
