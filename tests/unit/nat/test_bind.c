/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of addresses and ports. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "nat_fixture.h"
#include "source.h"

#define MAX     200000u
#define PUBLIC  0xcb007101u /* 203.0.113.1 */
#define SERVER  0xc0000250u
#define INSIDE  0x0a000000u

static int
setup(void **state)
{
	return fixture_setup(state, MAX, 262144);
}

static struct pkt
packet(struct fixture *f, uint8_t proto, uint32_t src, uint16_t sport, uint16_t dport)
{
	static uint8_t header[20] = {[12] = 0x50};
	struct pkt p = {.flags = PKT_IP, .proto = proto, .ip_bytes = 40, .ns = f->ns,
		.l4 = header, .l4_len = sizeof(header), .l4_hdr_len = sizeof(header),
		.tcp_flags = PKT_TCP_SYN, .icmp_type = 8};

	p.tuple = (struct tuple){.scope = f->ns->id, .family = TUPLE_IPV4, .proto = proto};
	p.tuple.src.w[0] = rte_cpu_to_be_32(INSIDE + src);
	p.tuple.dst.w[0] = rte_cpu_to_be_32(SERVER);
	p.tuple.sport = rte_cpu_to_be_16(sport);
	p.tuple.dport = rte_cpu_to_be_16(dport);
	return p;
}

static struct nat_request
addresses(uint32_t first, uint32_t last)
{
	struct nat_request r = {.flags = NAT_ADDR, .family = TUPLE_IPV4};

	r.min.w[0] = rte_cpu_to_be_32(first);
	r.max.w[0] = rte_cpu_to_be_32(last);
	return r;
}

static struct nat_request
with_ports(struct nat_request r, uint16_t lo, uint16_t hi)
{
	r.flags |= NAT_PORTS;
	r.port_min = lo;
	r.port_max = hi;
	return r;
}

static enum ct_verdict
admit(struct fixture *f, struct pkt *p, const struct nat_request *dst,
	const struct nat_request *src)
{
	ct_lookup_bulk(f->t, p, 1);
	if (p->ct != NULL)
		return CT_LOST;
	assert_int_equal(ct_begin(f->t, p, f->now), CT_OK);
	if (dst != NULL)
		nat_dst(f->n, p, dst);
	return nat_commit(f->n, p, src);
}

static uint32_t
new_addr(const struct pkt *p)
{
	return rte_be_to_cpu_32(p->ct->reply.tuple.dst.w[0]);
}

static uint16_t
new_port(const struct pkt *p)
{
	return rte_be_to_cpu_16(p->ct->reply.tuple.dport);
}

static void
flush(struct fixture *f)
{
	const struct ct_filter all = {.ns = NULL};
	struct ct_walk w;
	uint64_t n = 0;

	ct_walk_start(f->ct, &w, f->now);
	while (ct_flush_slice(f->t, &w, &all, 1u << 20, f->now, &n))
		;
	assert_int_equal(ct_count(f->ct), 0);
}

static void
test_port_is_kept_where_free(void **state)
{
	static const struct {
		uint16_t port, lo, hi;
	} class[] = {{40000, 1024, 65535}, {1024, 1024, 65535}, {1000, 600, 1023}, {512, 600, 1023},
		{511, 1, 511}, {1, 1, 511}};
	struct nat_request r = addresses(PUBLIC, PUBLIC);
	struct fixture *f = *state;
	struct pkt p;
	unsigned int i, host;

	for (i = 0; i < RTE_DIM(class); i++) {
		for (host = 1; host < 20; host++) {
			p = packet(f, IPPROTO_TCP, host, class[i].port, 80);
			assert_int_equal(admit(f, &p, NULL, &r), CT_OK);
			assert_int_equal(new_addr(&p), PUBLIC);
			assert_true(p.ct->status & CT_SRC_NAT);
			if (host == 1)
				assert_int_equal(new_port(&p), class[i].port);
			else
				assert_in_range(new_port(&p), class[i].lo, class[i].hi);
		}
	}
}

static void
test_ranges_are_used_up_and_kept_to(void **state)
{
	struct nat_request one = with_ports(addresses(PUBLIC, PUBLIC), 5000, 5003);
	struct nat_request two = with_ports(addresses(PUBLIC + 1, PUBLIC + 2), 5000, 5001);
	struct fixture *f = *state;
	unsigned int i, used[2] = {0};
	struct nat_counters c;
	struct pkt p;

	p = packet(f, IPPROTO_TCP, 9, 5001, 80);
	assert_int_equal(admit(f, &p, NULL, &one), CT_OK);
	assert_int_equal(new_port(&p), 5001);
	for (i = 0; i < 3; i++) {
		p = packet(f, IPPROTO_TCP, 1, (uint16_t)(40000 + i), 80);
		assert_int_equal(admit(f, &p, NULL, &one), CT_OK);
		assert_in_range(new_port(&p), 5000, 5003);
	}
	p = packet(f, IPPROTO_TCP, 1, 41000, 80);
	assert_int_equal(admit(f, &p, NULL, &one), CT_DROP);
	assert_int_equal(p.reason, SL_DROP_NAT_EXHAUSTED);
	/* Another remote end: as good as new. */
	p = packet(f, IPPROTO_TCP, 1, 41000, 81);
	assert_int_equal(admit(f, &p, NULL, &one), CT_OK);
	for (i = 0; i < 5; i++) {
		p = packet(f, IPPROTO_UDP, 1, (uint16_t)(40000 + i), 80);
		assert_int_equal(admit(f, &p, NULL, &two), i < 4 ? CT_OK : CT_DROP);
		if (i < 4)
			used[new_addr(&p) - PUBLIC - 1]++;
	}
	assert_int_equal(used[0], 2);
	assert_int_equal(used[1], 2);
	nat_netns_totals(f->ns, &c);
	assert_int_equal(c.exhausted, 2);
}

static void
test_source_keeps_address_and_port(void **state)
{
	struct nat_request r = addresses(PUBLIC, PUBLIC + 15);
	struct fixture *f = *state;
	unsigned int i, seen = 0;
	uint32_t addr;
	uint16_t port;
	struct pkt p;

	/* The same address for all that a source does, and several for all sources. */
	for (i = 0; i < 64; i++) {
		p = packet(f, IPPROTO_TCP, i, 40000, 80);
		assert_int_equal(admit(f, &p, NULL, &r), CT_OK);
		addr = new_addr(&p);
		seen |= 1u << (addr - PUBLIC);
		p = packet(f, IPPROTO_UDP, i, (uint16_t)(1024 + i), 53);
		assert_int_equal(admit(f, &p, NULL, &r), CT_OK);
		assert_int_equal(new_addr(&p), addr);
	}
	assert_true(__builtin_popcount(seen) > 8);
	flush(f);
	/* A port that is not its own it keeps toward others. */
	r = addresses(PUBLIC, PUBLIC);
	p = packet(f, IPPROTO_TCP, 1, 40000, 80);
	assert_int_equal(admit(f, &p, NULL, &r), CT_OK);
	p = packet(f, IPPROTO_TCP, 2, 40000, 80);
	assert_int_equal(admit(f, &p, NULL, &r), CT_OK);
	port = new_port(&p);
	assert_int_not_equal(port, 40000);
	p = packet(f, IPPROTO_TCP, 2, 40000, 81);
	assert_int_equal(admit(f, &p, NULL, &r), CT_OK);
	assert_int_equal(new_port(&p), port);
	flush(f);
	p = packet(f, IPPROTO_TCP, 2, 40000, 81);
	assert_int_equal(admit(f, &p, NULL, &r), CT_OK);
	assert_int_equal(new_port(&p), 40000);
}

static void
test_ids_and_protocols_without_ports(void **state)
{
	struct nat_request r = addresses(PUBLIC, PUBLIC);
	struct fixture *f = *state;
	uint16_t id;
	struct pkt p;

	for (unsigned int host = 1; host < 10; host++) {
		p = packet(f, IPPROTO_ICMP, host, 500, 8 << 8);
		assert_int_equal(admit(f, &p, NULL, &r), CT_OK);
		id = rte_be_to_cpu_16(p.ct->reply.tuple.sport);
		if (host == 1)
			assert_int_equal(id, 500);
		else
			assert_int_not_equal(id, 500);
		assert_int_equal(p.ct->reply.tuple.dport, 0); /* type and code of the answer */
	}
	p = packet(f, IPPROTO_ESP, 1, 0, 0);
	assert_int_equal(admit(f, &p, NULL, &r), CT_OK);
	p = packet(f, IPPROTO_ESP, 2, 0, 0);
	assert_int_equal(admit(f, &p, NULL, &r), CT_DROP);
	assert_int_equal(p.reason, SL_DROP_NAT_EXHAUSTED);
	r = addresses(PUBLIC, PUBLIC + 1);
	p = packet(f, IPPROTO_ESP, 2, 0, 0);
	assert_int_equal(admit(f, &p, NULL, &r), CT_OK);
	assert_int_equal(new_addr(&p), PUBLIC + 1);
}

static void
test_prefix_keeps_the_host(void **state)
{
	struct nat_request r = addresses(PUBLIC, PUBLIC);
	struct fixture *f = *state;
	struct pkt p = packet(f, IPPROTO_TCP, 0x1234, 40000, 80);

	r.flags |= NAT_PREFIX;
	r.prefix_len = 20;
	assert_int_equal(admit(f, &p, NULL, &r), CT_OK);
	assert_int_equal(new_addr(&p), (PUBLIC & 0xfffff000) | 0x234);
	p = packet(f, IPPROTO_TCP, 1, 40000, 80);
	assert_int_equal(admit(f, &p, &r, NULL), CT_OK);
	assert_int_equal(rte_be_to_cpu_32(p.ct->reply.tuple.src.w[0]),
		(PUBLIC & 0xfffff000) | (SERVER & 0xfff));
	assert_int_equal(p.ct->status & (CT_SRC_NAT | CT_DST_NAT), CT_DST_NAT);
}

/* Two connections that come to the same server by different addresses: one gets another port,
 * though no rule says so. */
static void
test_no_rule_but_a_clash(void **state)
{
	struct nat_request to_server = with_ports(addresses(SERVER, SERVER), 80, 80);
	struct fixture *f = *state;
	struct pkt p = packet(f, IPPROTO_TCP, 1, 40000, 80);

	assert_int_equal(admit(f, &p, NULL, NULL), CT_OK);
	assert_false(nat_translated(p.ct));
	p = packet(f, IPPROTO_TCP, 1, 40000, 8080);
	assert_int_equal(admit(f, &p, &to_server, NULL), CT_OK);
	assert_int_equal(p.ct->status & (CT_SRC_NAT | CT_DST_NAT), CT_SRC_NAT | CT_DST_NAT);
	assert_int_equal(new_addr(&p), INSIDE + 1);
	assert_int_not_equal(new_port(&p), 40000);
}

static void
test_port_range_of_a_destination(void **state)
{
	struct nat_request r = with_ports(addresses(SERVER, SERVER), 5000, 5002);
	struct fixture *f = *state;
	unsigned int i, seen = 0;
	uint16_t port;
	struct pkt p;

	for (i = 0; i < 3; i++) {
		p = packet(f, IPPROTO_TCP, 1, 40000, (uint16_t)(80 + i));
		assert_int_equal(admit(f, &p, &r, NULL), CT_OK);
		port = rte_be_to_cpu_16(p.ct->reply.tuple.sport);
		assert_in_range(port, 5000, 5002);
		assert_int_equal(new_port(&p), 40000);
		seen |= 1u << (port - 5000);
	}
	assert_int_equal(seen, 7);
	p = packet(f, IPPROTO_TCP, 1, 40000, 90);
	assert_int_equal(admit(f, &p, &r, NULL), CT_OK);
	assert_int_not_equal(new_port(&p), 40000);
}

static void
test_first_packets_only(void **state)
{
	struct nat_request r = addresses(PUBLIC, PUBLIC);
	struct fixture *f = *state;
	struct pkt p = packet(f, IPPROTO_TCP, 1, 40000, 80);

	p.tcp_flags = PKT_TCP_ACK;
	assert_int_equal(admit(f, &p, NULL, &r), CT_DROP);
	assert_int_equal(p.reason, SL_DROP_INVALID_NAT);
	assert_int_equal(ct_count(f->ct), 0);
	p = packet(f, IPPROTO_TCP, 1, 40000, 80);
	p.tcp_flags = PKT_TCP_ACK;
	assert_int_equal(admit(f, &p, NULL, NULL), CT_OK);
}

/* ---- a whole class of ports ---- */

#define PORTS (65536u - 1024u)

static uint64_t
probes(struct fixture *f)
{
	struct nat_counters c;

	nat_netns_totals(f->ns, &c);
	return c.probes;
}

static enum ct_verdict
open_nth(struct fixture *f, unsigned int i, struct pkt *p)
{
	struct nat_request r = addresses(PUBLIC, PUBLIC);

	*p = packet(f, IPPROTO_TCP, i, 2000, 80);
	return admit(f, p, NULL, &r);
}

/* Fills the address toward one server from as many hosts; all have the same port. */
static void
fill(struct fixture *f, unsigned int n)
{
	struct pkt p;
	unsigned int i;

	for (i = 0; i < n; i++)
		if (open_nth(f, i, &p) != CT_OK)
			fail_msg("connection %u refused: %s", i, sl_drop_name(p.reason));
}

static void
test_all_ports_are_found_and_come_back(void **state)
{
	struct fixture *f = *state;
	unsigned int round, i;
	uint64_t before;
	struct pkt p;

	for (round = 0; round < 2; round++) {
		fill(f, PORTS * 99 / 100);
		before = probes(f);
		for (i = PORTS * 99 / 100; i < PORTS; i++)
			assert_int_equal(open_nth(f, i, &p), CT_OK);
		/* The map knows where the last free ones are. */
		assert_in_range(probes(f) - before, i - PORTS * 99 / 100, PORTS / 20);
		before = probes(f);
		for (; i < PORTS + 1000; i++)
			assert_int_equal(open_nth(f, i, &p), CT_DROP);
		assert_int_equal(p.reason, SL_DROP_NAT_EXHAUSTED);
		assert_int_equal(probes(f), before);
		flush(f);
	}
}

/* Connections come and go at 99 %: what is given back can be had again. */
static void
test_ports_change_hands(void **state)
{
	struct fixture *f = *state;
	unsigned int i, n = PORTS, oldest = 0;
	struct pkt p;

	fill(f, PORTS);
	for (i = 0; i < 3000; i++, oldest++, n++) {
		p = packet(f, IPPROTO_TCP, oldest, 2000, 80);
		ct_lookup_bulk(f->t, &p, 1);
		assert_non_null(p.ct);
		ct_kill(f->t, &p);
		assert_int_equal(open_nth(f, n, &p), CT_OK);
		assert_int_equal(open_nth(f, n + 1, &p), CT_DROP);
	}
}

static void
test_bad_requests_are_refused(void **state)
{
	struct nat_request r = with_ports(addresses(PUBLIC, PUBLIC - 1), 1, 2);
	struct sl_err err;
	(void)state;

	assert_int_equal(nat_request_valid(&r, &err), -EINVAL);
	r = with_ports(addresses(PUBLIC, PUBLIC), 0, 2);
	assert_int_equal(nat_request_valid(&r, &err), -EINVAL);
	r = with_ports(addresses(PUBLIC, PUBLIC), 3, 2);
	assert_int_equal(nat_request_valid(&r, &err), -EINVAL);
	r = with_ports(addresses(PUBLIC, PUBLIC), 65535, 65535);
	assert_int_equal(nat_request_valid(&r, &err), 0);
	r.family = 5;
	assert_int_equal(nat_request_valid(&r, &err), -EINVAL);
	r = addresses(PUBLIC, PUBLIC);
	r.flags |= NAT_PREFIX;
	r.prefix_len = 33;
	assert_int_equal(nat_request_valid(&r, &err), -EINVAL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_port_is_kept_where_free),
		TEST(test_ranges_are_used_up_and_kept_to),
		TEST(test_source_keeps_address_and_port),
		TEST(test_ids_and_protocols_without_ports),
		TEST(test_prefix_keeps_the_host),
		TEST(test_no_rule_but_a_clash),
		TEST(test_port_range_of_a_destination),
		TEST(test_first_packets_only),
		TEST(test_all_ports_are_found_and_come_back),
		TEST(test_ports_change_hands),
		cmocka_unit_test(test_bad_requests_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
