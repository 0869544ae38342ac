/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rewrite of all kinds of packets to thousands of addresses and ports: what comes out parses as
 * what it was to become, all checksums are right, and the way back gives the bytes that came in.
 */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ip.h>
#include <rte_udp.h>

#include "csum.h"
#include "frames.h"
#include "nat.h"
#include "parse.h"
#include "ready.h"

#define ROUNDS 2000u

static uint64_t rnd = 88172645463325252u;

static uint32_t
random32(void)
{
	rnd ^= rnd << 13;
	rnd ^= rnd >> 7;
	rnd ^= rnd << 17;
	return (uint32_t)rnd;
}

/* Often one at an edge of the arithmetic. */
static uint16_t
random_port(void)
{
	static const uint16_t edge[] = {0, 1, 0x00ff, 0xff00, 0xfffe, 0xffff};

	return random32() % 4 == 0 ? edge[random32() % RTE_DIM(edge)] : (uint16_t)random32();
}

static void
random_addr(struct tuple_addr *a, uint8_t family)
{
	unsigned int i, n = family == TUPLE_IPV4 ? 1 : 4;

	memset(a, 0, sizeof(*a));
	for (i = 0; i < n; i++)
		a->w[i] = random32() % 8 == 0 ? UINT32_MAX * (random32() % 2) : random32();
}

static bool
has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_UDPLITE ||
	       proto == IPPROTO_SCTP;
}

static bool
is_icmp(const struct tuple *t)
{
	return t->proto == (t->family == TUPLE_IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

/* Another tuple of the same kind. */
static void
random_tuple(struct tuple *t)
{
	random_addr(&t->src, t->family);
	random_addr(&t->dst, t->family);
	if (has_ports(t->proto) || is_icmp(t))
		t->sport = random_port();
	if (has_ports(t->proto))
		t->dport = random_port();
}

static void
parse(struct pkt *p, struct rte_mbuf *m, struct frame *f)
{
	struct tuple inside;

	frame_wrap(m, f->b, f->len);
	assert_int_equal(parse_frame(p, m), SL_DROP_NONE);
	inside = p->tuple;
	if (p->flags & PKT_ICMP_ERROR)
		assert_true(tuple_invert(&p->tuple, &inside));
}

static void
assert_sums_good(const struct pkt *p)
{
	if (p->tuple.family == TUPLE_IPV4)
		assert_true(csum_ip4_good(p->l3, (p->l3[0] & 15u) * 4));
	assert_true(csum_l4_good(p));
	if (p->flags & PKT_ICMP_ERROR)
		assert_true(csum_icmp_inner_good(p));
}

/* The frame as a packet of an entry, whose packets of that direction become of tuple `to`. */
static void
rewrite(struct frame *f, const struct tuple *to, unsigned int dir)
{
	static struct ct_entry e;
	struct rte_mbuf m;
	struct pkt p;

	parse(&p, &m, f);
	e = (struct ct_entry){.status = CT_SRC_NAT | CT_DST_NAT, .gen = 7};
	p.ct = &e;
	p.ct_gen = 7;
	p.ct_dir = (uint8_t)dir;
	ct_dir_part(&e, dir)->tuple = p.tuple;
	assert_true(tuple_invert(&ct_dir_part(&e, !dir)->tuple, to));
	assert_true(nat_rewrite(NULL, &p));
	p.ct_gen = 8;
	assert_false(nat_rewrite(NULL, &p));
	assert_int_equal(p.reason, SL_DROP_INV_RACE);
}

/* nat_rewrite() above has written twice, the second time in vain: what it writes is the same. */
static void
check(struct frame *f, const struct frame *before)
{
	struct tuple was, to;
	struct rte_mbuf m;
	struct pkt p;
	unsigned int dir = random32() % 2;

	parse(&p, &m, f);
	was = to = p.tuple;
	random_tuple(&to);
	rewrite(f, &to, dir);
	parse(&p, &m, f);
	if (!tuple_equal(&p.tuple, &to))
		fail_msg("another tuple than was asked for");
	assert_sums_good(&p);
	rewrite(f, &was, dir);
	/* Outside of an error there is nothing that tells what its source was. */
	if (!(p.flags & PKT_ICMP_ERROR))
		assert_memory_equal(f->b, before->b, f->len);
	parse(&p, &m, f);
	assert_true(tuple_equal(&p.tuple, &was));
	assert_sums_good(&p);
}

static bool
translatable(const struct pkt *p)
{
	return p->flags & PKT_IP && !(p->flags & PKT_ND);
}

static void
test_all_kinds(void **state)
{
	struct frame f, before;
	struct rte_mbuf m;
	struct pkt p;
	unsigned int i, round, kinds = 0;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		frame_cases[i].build(&f);
		before = f;
		frame_wrap(&m, f.b, f.len);
		assert_int_equal(parse_frame(&p, &m), SL_DROP_NONE);
		if (!translatable(&p))
			continue;
		kinds++;
		for (round = 0; round < ROUNDS / 20; round++)
			check(&f, &before);
	}
	assert_true(kinds > 15);
}

static void
test_many_ports(void **state)
{
	struct frame f, before;
	unsigned int round;
	(void)state;

	frame_case("udp6_exts")->build(&f);
	before = f;
	for (round = 0; round < ROUNDS; round++)
		check(&f, &before);
}

/* A sum of zero says that there is none (RFC 768), and a sum that comes to zero is sent as ones. */
static void
test_udp_zero(void **state)
{
	struct tuple to = {.family = TUPLE_IPV4, .proto = IPPROTO_UDP};
	unsigned int round, ones = 0;
	struct rte_udp_hdr *uh;
	struct frame f;
	(void)state;

	frame_start(&f, NULL);
	frame_ip4(&f, 0);
	frame_udp(&f);
	frame_bytes(&f, 5);
	frame_end(&f);
	uh = (struct rte_udp_hdr *)(void *)(f.b + f.l4);
	random_tuple(&to);
	/* All ports pass by, so the sum is once what must not be sent. */
	for (round = 0; round <= UINT16_MAX; round++) {
		to.sport = (uint16_t)round;
		rewrite(&f, &to, CT_ORIGINAL);
		assert_int_not_equal(uh->dgram_cksum, 0);
		ones += uh->dgram_cksum == UINT16_MAX;
	}
	assert_true(ones >= 1);
	uh->dgram_cksum = 0;
	random_tuple(&to);
	rewrite(&f, &to, CT_REPLY);
	assert_int_equal(uh->dgram_cksum, 0);
}

/* ---- translations that are ready ---- */

/* An entry of the packet's connection, of which the `status` end of direction `dir` is another. */
static void
one_end(struct ct_entry *e, const struct pkt *p, unsigned int dir, uint16_t status)
{
	struct tuple other = p->tuple, *far = &ct_dir_part(e, !dir)->tuple;

	random_tuple(&other);
	*e = (struct ct_entry){.status = status, .gen = 7};
	ct_dir_part(e, dir)->tuple = p->tuple;
	assert_true(tuple_invert(far, &p->tuple));
	if ((status == CT_SRC_NAT) == (dir == CT_ORIGINAL)) {
		far->dst = other.src;
		far->dport = other.sport;
	} else {
		far->src = other.dst;
		far->sport = other.dport;
	}
}

/* What is ready is what nat_rewrite() does, to the last bit. */
static void
check_ready(const struct frame *f, unsigned int dir, uint16_t status)
{
	static const uint8_t mac[6] = {2, 3, 4, 5, 6, 7};
	struct frame ready = *f, written = *f;
	struct nat_ready r;
	struct ct_entry e;
	struct rte_mbuf m;
	struct pkt p;

	parse(&p, &m, &written);
	one_end(&e, &p, dir, status);
	nat_ready_make(&e);
	assert_int_equal(e.status, status | CT_NAT_READY);
	p.ct = &e;
	p.ct_gen = 7;
	p.ct_dir = (uint8_t)dir;
	assert_true(nat_rewrite(NULL, &p));
	parse(&p, &m, &ready);
	p.ct_dir = (uint8_t)dir;
	nat_end_set(&e, !dir, mac);
	r = nat_ready_load(&e, dir);
	assert_memory_equal(r.mac, mac, sizeof(mac));
	nat_ready_write(&p, &r, e.status);
	assert_memory_equal(ready.b, written.b, f->len);
}

static void
test_ready(void **state)
{
	unsigned int kind, round;
	struct frame f;
	(void)state;

	for (kind = 0; kind < 4; kind++) {
		for (round = 0; round < ROUNDS; round++) {
			frame_start(&f, NULL);
			frame_ip4(&f, kind % 2 * 3);
			if (kind < 2)
				frame_tcp(&f, PKT_TCP_ACK, kind * 3);
			else
				frame_udp(&f);
			frame_bytes(&f, random32() % 8);
			frame_end(&f);
			if (kind == 3) /* its sender has left the sum out */
				memset(f.b + f.l4 + 6, 0, 2);
			check_ready(&f, round & 1, round & 2 ? CT_SRC_NAT : CT_DST_NAT);
		}
	}
}

/* All others go by nat_rewrite(). */
static void
test_not_ready(void **state)
{
	static const struct {
		uint16_t status;
		uint8_t family, reply_family, proto;
	} cases[] = {
		{CT_SRC_NAT | CT_ACCT, TUPLE_IPV4, TUPLE_IPV4, IPPROTO_TCP},
		{CT_SRC_NAT | CT_DST_NAT, TUPLE_IPV4, TUPLE_IPV4, IPPROTO_TCP},
		{CT_DST_NAT | CT_HAIRPIN, TUPLE_IPV4, TUPLE_IPV4, IPPROTO_TCP},
		{CT_SRC_NAT, TUPLE_IPV6, TUPLE_IPV6, IPPROTO_TCP},
		{CT_SRC_NAT | CT_DST_NAT | CT_NAT64, TUPLE_IPV6, TUPLE_IPV4, IPPROTO_UDP},
		{CT_SRC_NAT, TUPLE_IPV4, TUPLE_IPV4, IPPROTO_ICMP},
		{CT_SRC_NAT, TUPLE_IPV4, TUPLE_IPV4, IPPROTO_SCTP},
		{0, TUPLE_IPV4, TUPLE_IPV4, IPPROTO_UDP},
	};
	struct ct_entry e;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		e = (struct ct_entry){.status = cases[i].status | CT_NAT_READY,
			.orig.packets = 5, .reply.bytes = 7};
		e.orig.tuple.family = cases[i].family;
		e.reply.tuple.family = cases[i].reply_family;
		e.orig.tuple.proto = e.reply.tuple.proto = cases[i].proto;
		nat_ready_make(&e);
		assert_int_equal(e.status, cases[i].status);
		nat_end_set(&e, CT_ORIGINAL, (const uint8_t[6]){2});
		assert_int_equal(e.orig.packets, 5);
		assert_int_equal(e.reply.bytes, 7);
	}
}

static void
build_error(struct frame *f, unsigned int inner_tcp_bytes)
{
	struct frame inner;

	frame_start(&inner, NULL);
	frame_ip4(&inner, 0);
	frame_tcp(&inner, PKT_TCP_ACK, 0);
	frame_bytes(&inner, 40);
	frame_end(&inner);
	frame_start(f, NULL);
	frame_ip4(f, 0);
	frame_icmp(f, 3, 1, 0);
	frame_append(f, inner.b + inner.l3, 20 + inner_tcp_bytes);
	frame_end(f);
}

/* The checksum of TCP inside is kept right where it is there, and what follows is left alone. */
static void
test_error_with_tcp_inside(void **state)
{
	struct tuple to = {.family = TUPLE_IPV4, .proto = IPPROTO_TCP};
	static uint8_t whole[14 + 60 + 20];
	struct frame f, frame;
	struct rte_mbuf m;
	struct pkt p;
	unsigned int n;
	(void)state;

	for (n = 8; n <= 60; n++) {
		build_error(&f, n);
		random_tuple(&to);
		rewrite(&f, &to, CT_REPLY);
		parse(&p, &m, &f);
		assert_true(tuple_equal(&p.tuple, &to));
		assert_sums_good(&p);
	}
	/* The last one had all of the packet: out of the error it is a sound one. */
	frame = (struct frame){.len = sizeof(whole)};
	memcpy(frame.b, f.b, 14);
	memcpy(frame.b + 14, f.b + 14 + 28, 80);
	frame_wrap(&m, frame.b, frame.len);
	assert_int_equal(parse_frame(&p, &m), SL_DROP_NONE);
	assert_true(csum_l4_good(&p));
}

/* Only the side that is hidden gives an error another source. */
static void
test_error_source(void **state)
{
	static const struct {
		uint16_t status;
		uint8_t dir;
		bool changes;
	} cases[] = {
		{CT_SRC_NAT, CT_REPLY, false},
		{CT_SRC_NAT, CT_ORIGINAL, true},
		{CT_DST_NAT, CT_REPLY, true},
		{CT_DST_NAT, CT_ORIGINAL, false},
	};
	static struct ct_entry e;
	struct tuple to = {.family = TUPLE_IPV4, .proto = IPPROTO_TCP};
	rte_be32_t router, src;
	struct rte_mbuf m;
	unsigned int i;
	struct frame f;
	struct pkt p;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		build_error(&f, 20);
		router = RTE_BE32(0xc0000201);
		memcpy(f.b + f.l3 + 12, &router, 4);
		frame_ip4_sum(&f, f.l3);
		parse(&p, &m, &f);
		random_tuple(&to);
		e = (struct ct_entry){.status = cases[i].status};
		p.ct = &e;
		p.ct_dir = cases[i].dir;
		ct_dir_part(&e, p.ct_dir)->tuple = p.tuple;
		assert_true(tuple_invert(&ct_dir_part(&e, !p.ct_dir)->tuple, &to));
		assert_true(nat_rewrite(NULL, &p));
		memcpy(&src, f.b + f.l3 + 12, 4);
		assert_int_equal(src, cases[i].changes ? to.src.w[0] : router);
		assert_memory_equal(f.b + f.l3 + 16, &to.dst, 4);
		parse(&p, &m, &f);
		assert_sums_good(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds),
		cmocka_unit_test(test_many_ports),
		cmocka_unit_test(test_udp_zero),
		cmocka_unit_test(test_ready),
		cmocka_unit_test(test_not_ready),
		cmocka_unit_test(test_error_with_tcp_inside),
		cmocka_unit_test(test_error_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
