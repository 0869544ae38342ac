/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_common.h>
#include <rte_ip.h>

#include "csum.h"
#include "parse.h"
#include "siit_frames.h"

static struct frame inner, frame;
static struct rte_mbuf in, out;
static uint8_t room[2176];

/* The packet that an error of the family is about, as it was on that side. */
static void
build_inner(uint8_t family, uint8_t proto, unsigned int payload)
{
	frame_start(&inner, NULL);
	if (family == TUPLE_IPV4)
		frame_ip4(&inner, 0);
	else
		frame_ip6(&inner);
	switch (proto) {
	case IPPROTO_TCP:
		frame_tcp(&inner, PKT_TCP_SYN, 0);
		break;
	case IPPROTO_UDP:
		frame_udp(&inner);
		break;
	case IPPROTO_UDPLITE:
		frame_udplite(&inner, 0);
		break;
	default:
		frame_icmp(&inner, family == TUPLE_IPV4 ? 8 : 128, 0, FRAME_ID);
		break;
	}
	frame_bytes(&inner, payload);
	frame_end(&inner);
}

/* An error with the first n bytes of the inner packet, and some more bytes behind. */
static void
build_error(uint8_t type, uint8_t code, uint32_t word, uint32_t n, const char *more)
{
	frame_start(&frame, NULL);
	if (inner.family == TUPLE_IPV4)
		frame_ip4(&frame, 0);
	else
		frame_ip6(&frame);
	frame_icmp(&frame, type, code, (uint16_t)(word >> 16));
	frame_put16(&frame, frame.l4 + 6, (uint16_t)word);
	frame_append(&frame, inner.b + inner.l3, RTE_MIN(n, inner.len - inner.l3));
	if (more != NULL)
		frame_append(&frame, (const uint8_t *)more, (unsigned int)strlen(more));
	frame_end(&frame);
}

static struct siit_error
error_to(uint8_t proto)
{
	bool to4 = inner.family == TUPLE_IPV6;
	uint8_t family = to4 ? TUPLE_IPV4 : TUPLE_IPV6;
	struct siit_error e = {.mtu_in = 1500, .mtu_out = 1500, .id = RTE_BE16(0x55aa)};

	e.to = siit_to(family, to4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, 0, 0);
	/* it goes to who sent the packet inside */
	if (proto == IPPROTO_ICMP)
		e.inner = siit_to(family, to4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, 0xbeef,
			to4 ? 8 << 8 : 128 << 8);
	else
		e.inner = siit_to(family, proto, 61000, 8080);
	e.inner.src = e.to.dst;
	e.inner.dst = e.to.src;
	return e;
}

/* Translates the error; *p is what a receiver makes of it. */
static enum sl_drop
translate(struct pkt *p, const struct siit_error *e)
{
	struct icmp_error refused;
	enum sl_drop r;
	struct pkt from;

	frame_wrap(&in, frame.b, frame.len);
	assert_int_equal(parse_frame(&from, &in), SL_DROP_NONE);
	assert_true(from.flags & PKT_ICMP_ERROR);
	assert_int_equal(siit_check(&from, &refused), SL_DROP_NONE);
	frame_wrap(&out, room, 0);
	out.buf_len = sizeof(room);
	memset(room, 0xdd, sizeof(room));
	r = siit_error_write(&out, &from, e);
	if (r != SL_DROP_NONE) {
		assert_int_equal(out.data_len, 0);
		return r;
	}
	assert_int_equal(parse_frame(p, &out), SL_DROP_NONE);
	assert_true(p->flags & PKT_ICMP_ERROR);
	assert_true(csum_l4_good(p));
	assert_true(csum_icmp_inner_good(p));
	assert_true(tuple_equal(&p->tuple, &e->inner));
	return r;
}

/* The packet inside an error that has all of it. */
static void
assert_inner_sound(const struct pkt *p)
{
	const uint8_t *ip = p->l4 + p->inner_off;
	uint32_t len = p->l4_len - (uint32_t)p->inner_off;
	static uint8_t whole[FRAME_MAX];
	struct rte_mbuf m;
	struct pkt q;

	memset(whole, 0, 12);
	whole[12] = ip[0] >> 4 == 4 ? 0x08 : 0x86;
	whole[13] = ip[0] >> 4 == 4 ? 0x00 : 0xdd;
	memcpy(whole + 14, ip, len);
	frame_wrap(&m, whole, 14 + len);
	assert_int_equal(parse_frame(&q, &m), SL_DROP_NONE);
	assert_true(q.flags & PKT_IP && !(q.flags & PKT_L4_BAD));
	assert_true(csum_l4_good(&q));
	assert_true(tuple_equal(&q.tuple, &p->tuple));
}

static void
test_inner(void **state)
{
	static const uint8_t families[] = {TUPLE_IPV4, TUPLE_IPV6};
	static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE, IPPROTO_ICMP};
	struct siit_error e;
	unsigned int f, i, payload;
	struct pkt p;
	(void)state;

	for (f = 0; f < 2; f++)
		for (i = 0; i < RTE_DIM(protos); i++)
			for (payload = 8; payload < 480; payload += 17) {
				build_inner(families[f], protos[i], payload);
				build_error(f == 0 ? 11 : 3, 0, 0, UINT32_MAX, NULL);
				e = error_to(protos[i]);
				assert_int_equal(translate(&p, &e), SL_DROP_NONE);
				assert_inner_sound(&p);
				assert_int_equal(p.icmp_type, f == 0 ? 3 : 11);
				assert_memory_equal(p.l4 + p.inner_l4_off + 18,
					inner.b + inner.l4 + 18,
					RTE_MAX(payload, 10u) - 10);
			}
}

/* Cut anywhere behind the eight bytes that it must have: what is there becomes what it would be of
 * the whole packet. */
static void
test_inner_cut(void **state)
{
	static const uint8_t families[] = {TUPLE_IPV4, TUPLE_IPV6};
	uint8_t whole[200];
	struct siit_error e;
	unsigned int f, n, hdr;
	struct pkt p;
	(void)state;

	for (f = 0; f < 2; f++) {
		build_inner(families[f], IPPROTO_TCP, 60);
		build_error(f == 0 ? 3 : 1, f == 0 ? 3 : 4, 0, UINT32_MAX, NULL);
		e = error_to(IPPROTO_TCP);
		assert_int_equal(translate(&p, &e), SL_DROP_NONE);
		memcpy(whole, p.l4 + p.inner_l4_off, 80);
		hdr = inner.l4 - inner.l3;
		for (n = 8; n < 80; n++) {
			build_error(f == 0 ? 3 : 1, f == 0 ? 3 : 4, 0, hdr + n, NULL);
			assert_int_equal(translate(&p, &e), SL_DROP_NONE);
			assert_int_equal(p.l4_len, p.inner_l4_off + n);
			/* a checksum of which half is there cannot be made right */
			assert_memory_equal(p.l4 + p.inner_l4_off, whole, RTE_MIN(n, 16u));
			if (n >= 18)
				assert_memory_equal(p.l4 + p.inner_l4_off, whole, n);
		}
	}
}

#define NO 0xff

/* RFC 7915 4.2 and 5.2 */
static void
test_types(void **state)
{
	static const struct {
		uint8_t family, type, code, new_type, new_code;
	} cases[] = {
		{4, 3, 0, 1, 0}, {4, 3, 1, 1, 0}, {4, 3, 2, 4, 1}, {4, 3, 3, 1, 4},
		{4, 3, 4, 2, 0},
		{4, 3, 5, 1, 0}, {4, 3, 6, 1, 0}, {4, 3, 7, 1, 0}, {4, 3, 8, 1, 0},
		{4, 3, 9, 1, 1},
		{4, 3, 10, 1, 1}, {4, 3, 11, 1, 0}, {4, 3, 12, 1, 0}, {4, 3, 13, 1, 1},
		{4, 3, 14, NO, 0}, {4, 3, 15, 1, 1}, {4, 3, 16, NO, 0}, {4, 3, 255, NO, 0},
		{4, 4, 0, NO, 0}, {4, 5, 1, NO, 0}, {4, 11, 0, 3, 0}, {4, 11, 1, 3, 1},
		{4, 12, 0, 4, 0}, {4, 12, 1, NO, 0}, {4, 12, 2, 4, 0}, {4, 12, 3, NO, 0},
		{6, 1, 0, 3, 1}, {6, 1, 1, 3, 10}, {6, 1, 2, 3, 1}, {6, 1, 3, 3, 1},
		{6, 1, 4, 3, 3},
		{6, 1, 5, NO, 0}, {6, 1, 6, NO, 0}, {6, 2, 0, 3, 4}, {6, 3, 0, 11, 0},
		{6, 3, 1, 11, 1}, {6, 4, 0, 12, 0}, {6, 4, 1, 3, 2}, {6, 4, 2, NO, 0},
		{6, 5, 0, NO, 0}, {6, 100, 0, NO, 0}, {6, 127, 0, NO, 0},
	};
	struct siit_error e;
	unsigned int i;
	struct pkt p;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		build_inner(cases[i].family, IPPROTO_UDP, 30);
		build_error(cases[i].type, cases[i].code, 0, UINT32_MAX, NULL);
		e = error_to(IPPROTO_UDP);
		if (cases[i].new_type == NO) {
			assert_int_equal(translate(&p, &e), SL_DROP_NAT64_NONE);
			continue;
		}
		assert_int_equal(translate(&p, &e), SL_DROP_NONE);
		assert_int_equal(p.icmp_type, cases[i].new_type);
		assert_int_equal(p.icmp_code, cases[i].new_code);
		if (cases[i].type == 3 && cases[i].code == 2)
			assert_int_equal(p.l4[7], 6); /* points at the next header */
	}
}

static uint32_t
word_of(const struct pkt *p)
{
	uint32_t word;

	memcpy(&word, p->l4 + 4, sizeof(word));
	return rte_be_to_cpu_32(word);
}

static void
test_mtu(void **state)
{
	static const struct {
		uint8_t family;
		uint32_t mtu, in, out, expect;
		unsigned int payload;
	} cases[] = {
		{4, 1400, 1500, 1500, 1420, 0}, {4, 1490, 1500, 1500, 1500, 0},
		{4, 1500, 9000, 9000, 1520, 0}, {4, 9000, 1500, 9000, 1520, 0},
		{4, 9000, 9000, 1500, 1500, 0}, {4, 68, 1500, 1500, 1280, 0},
		{4, 1259, 1500, 1500, 1280, 0}, {4, 1261, 1500, 1500, 1281, 0},
		{4, 65535, 65535, 65535, 65555 - 20, 0},
		/* of no MTU (RFC 1191): the packet was of 1,500, 1,492, 1,006 bytes */
		{4, 0, 1500, 1500, 1500, 1472}, {4, 0, 9000, 9000, 1512, 1472},
		{4, 0, 9000, 9000, 1280, 1464}, {4, 0, 9000, 9000, 1280, 978},
		{6, 1400, 1500, 1500, 1380, 0}, {6, 1280, 1500, 1500, 1260, 0},
		{6, 9000, 1500, 9000, 1480, 0}, {6, 9000, 9000, 1400, 1400, 0},
		{6, 600, 1500, 1500, 1260, 0}, {6, 0, 1500, 1500, 1260, 0},
		{6, UINT32_MAX, 1500, 1500, 1480, 0}, {6, 70000, 80000, 80000, 65535, 0},
		{6, 1500, 600, 1500, 1260, 0},
	};
	struct siit_error e;
	unsigned int i;
	struct pkt p;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		build_inner(cases[i].family, IPPROTO_UDP, cases[i].payload);
		build_error(cases[i].family == 4 ? 3 : 2, cases[i].family == 4 ? 4 : 0,
			cases[i].mtu, 100, NULL);
		e = error_to(IPPROTO_UDP);
		e.mtu_in = cases[i].in;
		e.mtu_out = cases[i].out;
		assert_int_equal(translate(&p, &e), SL_DROP_NONE);
		assert_int_equal(word_of(&p), cases[i].expect);
	}
}

/* RFC 7915 figures 3 and 6 */
static void
test_pointer(void **state)
{
	static const uint8_t map4[] = {0, 1, 4, 4, NO, NO, NO, NO, 7, 6, NO, NO, 8, 8, 8, 8, 24, 24,
		24, 24, NO, NO};
	struct siit_error e;
	unsigned int i, expect;
	struct pkt p;
	(void)state;

	for (i = 0; i < RTE_DIM(map4); i++) {
		build_inner(TUPLE_IPV4, IPPROTO_UDP, 30);
		build_error(12, 0, i << 24, UINT32_MAX, NULL);
		e = error_to(IPPROTO_UDP);
		assert_int_equal(translate(&p, &e),
			map4[i] == NO ? SL_DROP_NAT64_NONE : SL_DROP_NONE);
		if (map4[i] != NO)
			assert_int_equal(word_of(&p), map4[i]);
	}
	for (i = 0; i < 45; i++) {
		expect = i == 2 || i == 3 || i >= 40 ? NO : i < 2 ? i : i < 6 ? 2 : i == 6 ? 9
				 : i == 7 ? 8 : i < 24 ? 12 : 16;
		build_inner(TUPLE_IPV6, IPPROTO_UDP, 30);
		build_error(4, 0, i, UINT32_MAX, NULL);
		e = error_to(IPPROTO_UDP);
		assert_int_equal(
			translate(&p, &e), expect == NO ? SL_DROP_NAT64_NONE : SL_DROP_NONE);
		if (expect != NO)
			assert_int_equal(word_of(&p), expect << 24);
	}
	build_inner(TUPLE_IPV6, IPPROTO_UDP, 30);
	build_error(4, 0, 0x01000000, UINT32_MAX, NULL);
	e = error_to(IPPROTO_UDP);
	assert_int_equal(translate(&p, &e), SL_DROP_NAT64_NONE);
}

#define EXTENSION "\x20\x01\xff\xfa\x01\x08\x01\x01qrst"

/* RFC 4884: the packet inside has at least 128 bytes, in units of 4 or 8. */
static void
test_extension(void **state)
{
	static const struct {
		uint8_t family, type, code;
		uint32_t quoted; /* of the packet inside */
		uint32_t expect; /* by the length field */
	} cases[] = {
		{4, 11, 0, 128, 152}, {4, 3, 3, 132, 152}, {4, 3, 1, 136, 160},
		{6, 3, 0, 128, 128}, {6, 1, 4, 160, 140}, {6, 1, 4, 144, 128},
	};
	struct siit_error e;
	uint32_t unit, word;
	unsigned int i;
	struct pkt p;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		build_inner(cases[i].family, IPPROTO_UDP, 300);
		unit = cases[i].family == 4 ? 4 : 8;
		word = cases[i].quoted / unit << (cases[i].family == 4 ? 16 : 24);
		build_error(cases[i].type, cases[i].code, word, cases[i].quoted, EXTENSION);
		e = error_to(IPPROTO_UDP);
		assert_int_equal(translate(&p, &e), SL_DROP_NONE);
		assert_int_equal(cases[i].family == 4 ? p.l4[4] * 8 : p.l4[5] * 4,
			cases[i].expect);
		assert_int_equal(p.l4_len, 8 + cases[i].expect + strlen(EXTENSION));
		assert_memory_equal(p.l4 + 8 + cases[i].expect, EXTENSION, strlen(EXTENSION));
	}
	/* a packet too big of IPv6 has none; a length beyond the error says nothing */
	build_inner(TUPLE_IPV4, IPPROTO_UDP, 300);
	build_error(3, 4, 32 << 16 | 1400, 128, EXTENSION);
	e = error_to(IPPROTO_UDP);
	assert_int_equal(translate(&p, &e), SL_DROP_NONE);
	assert_int_equal(word_of(&p), 1420);
	assert_int_equal(p.l4_len, 8 + 128 + 20);
	build_error(3, 1, 200 << 16, 128, EXTENSION);
	assert_int_equal(translate(&p, &e), SL_DROP_NONE);
	assert_int_equal(word_of(&p), 0);
	assert_int_equal(p.l4_len, 8 + 128 + 20 + strlen(EXTENSION));
}

/* No error is longer than one of its version may be. */
static void
test_length(void **state)
{
	struct siit_error e;
	struct pkt p;
	(void)state;

	build_inner(TUPLE_IPV6, IPPROTO_UDP, 2000);
	build_error(2, 0, 1400, 1232, NULL);
	e = error_to(IPPROTO_UDP);
	assert_int_equal(translate(&p, &e), SL_DROP_NONE);
	assert_int_equal(p.ip_bytes, 576);
	build_error(1, 0, (1000 / 8) << 24, 1000, EXTENSION);
	assert_int_equal(translate(&p, &e), SL_DROP_NONE);
	assert_true(p.ip_bytes <= 576);
	assert_memory_equal(p.l4 + p.l4_len - strlen(EXTENSION), EXTENSION, strlen(EXTENSION));
	build_inner(TUPLE_IPV4, IPPROTO_UDP, 2000);
	build_error(3, 4, 1400, 1400, NULL);
	e = error_to(IPPROTO_UDP);
	assert_int_equal(translate(&p, &e), SL_DROP_NONE);
	assert_int_equal(p.ip_bytes, 1280);
}

/* The first fragment of a datagram inside, and IP options or extension headers there. */
static void
test_inner_headers(void **state)
{
	struct siit_error e;
	struct pkt p;
	(void)state;

	build_inner(TUPLE_IPV4, IPPROTO_UDP, 100);
	frame_put16(&inner, inner.l3 + 4, 0xabcd);
	frame_put16(&inner, inner.l3 + 6, 0x2000);
	frame_ip4_sum(&inner, inner.l3);
	build_error(11, 1, 0, 60, NULL);
	e = error_to(IPPROTO_UDP);
	assert_int_equal(translate(&p, &e), SL_DROP_NONE);
	assert_int_equal(p.l4[p.inner_off + 6], IPPROTO_FRAGMENT);
	assert_int_equal(p.l4[p.inner_off + 43], 1);
	assert_int_equal(p.l4[p.inner_off + 46] << 8 | p.l4[p.inner_off + 47], 0xabcd);

	frame_start(&inner, NULL);
	frame_ip6(&inner);
	frame_ext(&inner, IPPROTO_HOPOPTS, 2);
	frame_ext(&inner, IPPROTO_FRAGMENT, 1);
	inner.b[inner.l4 - 5] = 1; /* more follow */
	frame_udp(&inner);
	frame_bytes(&inner, 100);
	frame_end(&inner);
	build_error(2, 0, 1400, 1200, NULL);
	e = error_to(IPPROTO_UDP);
	assert_int_equal(translate(&p, &e), SL_DROP_NONE);
	assert_int_equal(word_of(&p), 1400 - 28);
	assert_int_equal(p.l4[p.inner_off + 6], 0x20);
	assert_int_equal(p.inner_l4_off - p.inner_off, 20);

	frame_start(&inner, NULL);
	frame_ip4(&inner, 10);
	frame_udp(&inner);
	frame_bytes(&inner, 100);
	frame_end(&inner);
	build_error(3, 3, 0, UINT32_MAX, NULL);
	e = error_to(IPPROTO_UDP);
	assert_int_equal(translate(&p, &e), SL_DROP_NONE);
	assert_inner_sound(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inner),
		cmocka_unit_test(test_inner_cut),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_mtu),
		cmocka_unit_test(test_pointer),
		cmocka_unit_test(test_extension),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_inner_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
