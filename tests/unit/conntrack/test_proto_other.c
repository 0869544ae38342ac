/* SPDX-License-Identifier: BSD-3-Clause */
/* UDP, UDP-Lite, ICMP, ICMPv6, GRE and protocols without a machine of their own. */
#include "segment.h"

struct step {
	char side;     /* 'A', 'B'; 'w': wait for `value` milliseconds */
	uint32_t value; /* ICMP type */
	const char *want;
};

static void
play(struct conn *c, uint8_t family, uint8_t proto, const struct step *steps)
{
	enum ct_proto_verdict v = CT_PROTO_OK;
	struct segment s;
	unsigned int i;

	for (i = 0; steps[i].side != 0; i++) {
		segment_init(&s, family, proto, 8, 8);
		if (steps[i].side == 'w') {
			conn_wait(c, steps[i].value);
			v = CT_PROTO_OK;
		} else {
			s.pkt.icmp_type = (uint8_t)steps[i].value;
			v = conn_feed(c, &s, steps[i].side == 'B');
		}
		if (strcmp(conn_show(c, &s, v), steps[i].want) != 0)
			fail_msg("protocol %u, step %u: is \"%s\", not \"%s\"", proto, i,
				conn_show(c, &s, v), steps[i].want);
		segment_free(&s);
	}
}

static void
test_udp(void **state)
{
	static const struct step stream[] = {
		{'A', 0, "30 UNREPLIED"},
		{'w', 1000, "29 UNREPLIED"},
		{'A', 0, "30 UNREPLIED"},
		{'B', 0, "30"},
		{'A', 0, "30"},     /* within two seconds: a query and its answer */
		{'w', 1000, "29"},
		{'B', 0, "30"},     /* at two seconds: not yet */
		{'w', 1, "29"},
		{'B', 0, "120 ASSURED"},
		{'A', 0, "120 ASSURED"},
		{0},
	};
	static const struct step one_way[] = {
		{'A', 0, "30 UNREPLIED"},
		{'w', 25000, "5 UNREPLIED"},
		{'A', 0, "30 UNREPLIED"},
		{'w', 25000, "5 UNREPLIED"},
		{'B', 0, "30"},     /* the first reply is no traffic of both sides yet */
		{'A', 0, "120 ASSURED"},
		{0},
	};
	struct conn c;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(segment_clocks); i++) {
		conn_init(&c, segment_clocks[i]);
		play(&c, TUPLE_IPV4, IPPROTO_UDP, stream);
		conn_init(&c, segment_clocks[i]);
		play(&c, TUPLE_IPV6, IPPROTO_UDPLITE, one_way);
	}
}

/* The clock's 32 bits come round after 49 days: a stream stays one. */
static void
test_udp_stream_outlives_the_clock(void **state)
{
	static const struct step start[] = {
		{'A', 0, "30 UNREPLIED"}, {'B', 0, "30"}, {'w', 3000, "27"},
		{'A', 0, "120 ASSURED"}, {0}};
	static const struct step again[] = {{'A', 0, "120 ASSURED"}, {0}};
	struct conn c;
	(void)state;

	conn_init(&c, 1);
	play(&c, TUPLE_IPV4, IPPROTO_UDP, start);
	c.now.ms = 1; /* as at the start */
	play(&c, TUPLE_IPV4, IPPROTO_UDP, again);
}

static void
test_icmp(void **state)
{
	static const struct step v4[] = {
		{'A', 0, "invalid-icmp-type"},  /* a reply starts nothing */
		{'A', 14, "invalid-icmp-type"},
		{'A', 3, "invalid-icmp-type"},
		{'A', 128, "invalid-icmp-type"},
		{'A', 8, "30 UNREPLIED"},
		{'w', 10000, "20 UNREPLIED"},
		{'B', 0, "30"},
		{'w', 10000, "20"},
		{'A', 8, "30"},
		{0},
	};
	static const struct step v6[] = {
		{'A', 129, "invalid-icmp-type"},
		{'A', 140, "invalid-icmp-type"},
		{'A', 8, "invalid-icmp-type"},
		{'A', 135, "invalid-icmp-type"},
		{'A', 128, "40 UNREPLIED"},
		{'B', 129, "40"},
		{0},
	};
	static const uint8_t queries[][2] = {{TUPLE_IPV4, 8}, {TUPLE_IPV4, 13}, {TUPLE_IPV4, 15},
		{TUPLE_IPV4, 17}, {TUPLE_IPV6, 128}, {TUPLE_IPV6, 139}};
	struct conn c;
	unsigned int i;
	(void)state;

	conn_init(&c, 1);
	play(&c, TUPLE_IPV4, IPPROTO_ICMP, v4);
	conn_init(&c, 1);
	c.knobs.icmpv6_timeout = 40000;
	play(&c, TUPLE_IPV6, IPPROTO_ICMPV6, v6);
	for (i = 0; i < RTE_DIM(queries); i++) {
		struct step one[] = {{'A', queries[i][1], "30 UNREPLIED"}, {0}};

		conn_init(&c, 1);
		play(&c, queries[i][0],
			queries[i][0] == TUPLE_IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, one);
	}
}

static void
test_gre(void **state)
{
	static const struct step start[] = {
		{'A', 0, "30 UNREPLIED"}, {'A', 0, "30 UNREPLIED"}, {'B', 0, "30"},
		{'A', 0, "180 ASSURED"}, {0}};
	static const struct step again[] = {{'A', 0, "180 ASSURED"}, {0}};
	struct conn c;
	(void)state;

	conn_init(&c, 1);
	play(&c, TUPLE_IPV4, IPPROTO_GRE, start);
	c.knobs.gre_timeout_stream = 7000; /* for those that begin now */
	play(&c, TUPLE_IPV4, IPPROTO_GRE, again);
}

static void
test_generic(void **state)
{
	static const struct step steps[] = {
		{'A', 0, "600 UNREPLIED"}, {'B', 0, "600"}, {'w', 5000, "595"}, {'A', 0, "600"},
		{0}};
	static const uint8_t protos[] = {IPPROTO_ESP, 89, 47 + 100};
	struct conn c;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(protos); i++) {
		conn_init(&c, 1);
		play(&c, TUPLE_IPV4, protos[i], steps);
	}
}

static void
test_machines_and_names(void **state)
{
	unsigned int proto;
	(void)state;

	for (proto = 0; proto < 256; proto++) {
		assert_non_null(ct_proto_of(TUPLE_IPV4, (uint8_t)proto));
		assert_non_null(ct_proto_of(TUPLE_IPV6, (uint8_t)proto));
		assert_non_null(ct_proto_name((uint8_t)proto));
	}
	assert_ptr_equal(ct_proto_of(TUPLE_IPV6, IPPROTO_ICMP), &ct_proto_generic);
	assert_ptr_equal(ct_proto_of(TUPLE_IPV4, IPPROTO_ICMPV6), &ct_proto_generic);
	assert_ptr_equal(ct_proto_of(TUPLE_IPV4, IPPROTO_ICMP), &ct_proto_icmp);
	assert_ptr_equal(ct_proto_of(TUPLE_IPV6, IPPROTO_ICMPV6), &ct_proto_icmp);
	assert_string_equal(ct_proto_name(IPPROTO_UDPLITE), "udplite");
	assert_string_equal(ct_proto_name(IPPROTO_ICMPV6), "icmpv6");
	assert_string_equal(ct_proto_name(IPPROTO_ESP), "unknown");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_udp_stream_outlives_the_clock),
		cmocka_unit_test(test_icmp),
		cmocka_unit_test(test_gre),
		cmocka_unit_test(test_generic),
		cmocka_unit_test(test_machines_and_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
