/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections between IP versions: their tuples, and what packets become. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "nat64.h"
#include "nat_fixture.h"

static int
setup(void **state)
{
	return fixture_setup(state, 8192, 8192);
}

static void
set_addr(struct tuple_addr *a, const char *text)
{
	memset(a, 0, sizeof(*a));
	assert_int_equal(inet_pton(strchr(text, ':') != NULL ? AF_INET6 : AF_INET, text, a), 1);
}

static struct pkt
packet(struct fixture *f, uint8_t proto, const char *src, const char *dst)
{
	static uint8_t header[20] = {[12] = 0x50};
	struct pkt p = {.flags = PKT_IP, .proto = proto, .ip_bytes = 60, .ns = f->ns,
		.l4 = header, .l4_len = sizeof(header), .l4_hdr_len = sizeof(header),
		.tcp_flags = PKT_TCP_SYN};
	bool icmp = proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6;

	p.tuple = (struct tuple){.scope = f->ns->id, .proto = proto,
		.family = strchr(src, ':') != NULL ? TUPLE_IPV6 : TUPLE_IPV4};
	set_addr(&p.tuple.src, src);
	set_addr(&p.tuple.dst, dst);
	p.icmp_type = p.tuple.family == TUPLE_IPV6 ? 128 : 0;
	p.tuple.sport = rte_cpu_to_be_16(5000);
	p.tuple.dport = rte_cpu_to_be_16(icmp ? (uint16_t)(p.icmp_type << 8) : 80);
	return p;
}

static struct nat64_prefix
prefix(void)
{
	struct nat64_prefix prefix = {.len = 96};

	set_addr(&prefix.addr, "2001:db8:64::");
	return prefix;
}

static enum ct_verdict
admit(struct fixture *f, struct pkt *p)
{
	struct nat_request r = {.flags = NAT_ADDR, .family = TUPLE_IPV4};
	const struct nat64_prefix under = prefix();
	uint16_t where = 7;

	set_addr(&r.min, "203.0.113.64");
	r.max = r.min;
	ct_lookup_bulk(f->t, p, 1);
	assert_null(p->ct);
	assert_int_equal(ct_begin(f->t, p, f->now), CT_OK);
	assert_int_equal(nat64_dst(f->n, p, &under, &where), SL_DROP_NONE);
	assert_int_equal(where, 0);
	r.nat64 = &under;
	return nat_commit(f->n, p, &r);
}

/* A packet of the other version finds the connection, and either becomes the other's answer. */
static void
test_both_ways(void **state)
{
	static const uint8_t protos[][2] = {{IPPROTO_TCP, IPPROTO_TCP}, {IPPROTO_UDP, IPPROTO_UDP},
		{IPPROTO_ICMPV6, IPPROTO_ICMP}};
	struct fixture *f = *state;
	struct nat64_target to;
	struct pkt p, back;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		p = packet(f, protos[i][0], "2001:db8:1::10", "2001:db8:64::192.0.2.80");
		assert_int_equal(admit(f, &p), CT_OK);
		assert_true(nat64_translated(p.ct));
		assert_true(nat64_target(&p, &to));
		assert_int_equal(to.prefix_len, 96);
		back = packet(f, protos[i][1], "192.0.2.80", "203.0.113.64");
		if (protos[i][1] != IPPROTO_ICMP) {
			back.tuple.sport = rte_cpu_to_be_16(80);
			back.tuple.dport = rte_cpu_to_be_16(5000);
		}
		assert_memory_equal(&to.to.src, &back.tuple.dst, sizeof(to.to.src));
		assert_memory_equal(&to.to.dst, &back.tuple.src, sizeof(to.to.dst));
		assert_int_equal(to.to.proto, protos[i][1]);
		if (protos[i][1] == IPPROTO_ICMP)
			assert_int_equal(rte_be_to_cpu_16(to.to.dport), 8 << 8);

		ct_lookup_bulk(f->t, &back, 1);
		assert_ptr_equal(back.ct, p.ct);
		assert_int_equal(back.ct_dir, CT_REPLY);
		assert_true(nat64_target(&back, &to));
		assert_int_equal(to.to.family, TUPLE_IPV6);
		assert_int_equal(to.to.proto, protos[i][0]);
		assert_memory_equal(&to.to.src, &p.tuple.dst, sizeof(to.to.src));
		assert_memory_equal(&to.to.dst, &p.tuple.src, sizeof(to.to.dst));
	}
}

/* One address and port of two hosts would be one tuple: the second gets another. */
static void
test_unique(void **state)
{
	struct fixture *f = *state;
	struct pkt a = packet(f, IPPROTO_UDP, "2001:db8:1::10", "2001:db8:64::192.0.2.80");
	struct pkt b = packet(f, IPPROTO_UDP, "2001:db8:1::11", "2001:db8:64::192.0.2.80");

	assert_int_equal(admit(f, &a), CT_OK);
	assert_int_equal(admit(f, &b), CT_OK);
	assert_int_equal(rte_be_to_cpu_16(a.ct->reply.tuple.dport), 5000);
	assert_int_not_equal(rte_be_to_cpu_16(b.ct->reply.tuple.dport), 5000);
	assert_true(rte_be_to_cpu_16(b.ct->reply.tuple.dport) >= 1024);
}

static void
test_refused(void **state)
{
	static const char *const cases[][2] = {
		{"2001:db8:1::10", "2001:db8:64::127.0.0.1"},
		{"2001:db8:1::10", "2001:db8:64::224.0.0.1"},
		{"2001:db8:64::192.0.2.81", "2001:db8:64::192.0.2.80"},
	};
	const struct nat64_prefix under = prefix();
	struct fixture *f = *state;
	struct pkt p;
	unsigned int i;
	uint16_t where;

	for (i = 0; i < 3; i++) {
		p = packet(f, IPPROTO_UDP, cases[i][0], cases[i][1]);
		ct_lookup_bulk(f->t, &p, 1);
		assert_int_equal(ct_begin(f->t, &p, f->now), CT_OK);
		assert_int_equal(nat64_dst(f->n, &p, &under, &where),
			SL_DROP_NAT64_ADDRESS);
		ct_abort(f->t, &p);
		assert_int_equal(ct_count(f->ct), 0);
	}
}

/* The entry goes between the lookup and the translation, and another takes its place. */
static void
test_gone(void **state)
{
	struct fixture *f = *state;
	struct pkt p = packet(f, IPPROTO_UDP, "2001:db8:1::10", "2001:db8:64::192.0.2.80"), q;
	struct nat64_target to;

	assert_int_equal(admit(f, &p), CT_OK);
	ct_kill(f->t, &p);
	assert_false(nat64_target(&p, &to));
	assert_int_equal(p.reason, SL_DROP_INV_RACE);
	q = packet(f, IPPROTO_UDP, "2001:db8:1::12", "2001:db8:64::192.0.2.80");
	assert_int_equal(admit(f, &q), CT_OK);
	assert_false(nat64_target(&p, &to));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_both_ways, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unique, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
