/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_common.h>
#include <rte_ip.h>

#include "csum.h"
#include "parse.h"
#include "siit_frames.h"

static struct frame frame;
static struct siit_buf buf;

static void
build(uint8_t family, uint8_t proto, unsigned int payload)
{
	frame_start(&frame, (const uint32_t[]){0x8100u << 16 | 0x2064, 0});
	if (family == TUPLE_IPV4)
		frame_ip4(&frame, 0);
	else
		frame_ip6(&frame);
	switch (proto) {
	case IPPROTO_TCP:
		frame_tcp(&frame, PKT_TCP_SYN, 2);
		break;
	case IPPROTO_UDP:
		frame_udp(&frame);
		break;
	case IPPROTO_UDPLITE:
		frame_udplite(&frame, 10);
		break;
	case IPPROTO_SCTP:
		frame_sctp(&frame);
		break;
	case IPPROTO_ICMP:
		frame_icmp(&frame, family == TUPLE_IPV4 ? 8 : 128, 0, FRAME_ID);
		break;
	default:
		frame_proto(&frame, proto);
		break;
	}
	frame_bytes(&frame, payload);
}

static const uint8_t protos[] = {
	IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE, IPPROTO_SCTP, IPPROTO_ICMP};

static struct pkt
load(void)
{
	struct pkt p;

	siit_load(&buf, &frame);
	assert_int_equal(parse_frame(&p, &buf.m), SL_DROP_NONE);
	return p;
}

static struct tuple
target(uint8_t family, uint8_t proto)
{
	bool to4 = family == TUPLE_IPV6;

	if (proto == IPPROTO_ICMP)
		return siit_to(to4 ? TUPLE_IPV4 : TUPLE_IPV6, to4 ? IPPROTO_ICMP : IPPROTO_ICMPV6,
			0xbeef, to4 ? 8 << 8 : 128 << 8);
	return siit_to(to4 ? TUPLE_IPV4 : TUPLE_IPV6, proto, 61000, 8080);
}

/* Translates what is in buf; returns what a receiver makes of it. */
static struct pkt
translated(struct pkt *p, const struct tuple *to)
{
	struct icmp_error e;
	struct pkt out;

	assert_int_equal(siit_check(p, &e), SL_DROP_NONE);
	siit_transport(p, to);
	assert_int_not_equal(siit_header(&buf.m, p->l3_off, to, RTE_BE16(0x7788)), 0);
	assert_int_equal(parse_frame(&out, &buf.m), SL_DROP_NONE);
	assert_true(out.flags & PKT_IP && !(out.flags & PKT_L4_BAD));
	return out;
}

static void
test_all_protocols(void **state)
{
	const uint8_t families[] = {TUPLE_IPV4, TUPLE_IPV6};
	unsigned int f, i, len;
	struct tuple to;
	struct pkt p, out;
	(void)state;

	for (f = 0; f < 2; f++)
		for (i = 0; i < RTE_DIM(protos); i++)
			for (len = 8; len < 1400; len += 173) {
				build(families[f], protos[i], len);
				frame_end(&frame);
				p = load();
				to = target(families[f], protos[i]);
				out = translated(&p, &to);
				assert_true(csum_l4_good(&out));
				assert_true(tuple_equal(&out.tuple, &to));
				assert_int_equal(out.l4_len, p.l4_len);
				assert_int_equal(out.ip_bytes, siit_length(&p));
				assert_int_equal(out.outer_tci, p.outer_tci);
				assert_memory_equal(out.l4 + out.l4_hdr_len,
					frame.b + frame.l4 + out.l4_hdr_len,
					out.l4_len - out.l4_hdr_len);
				assert_memory_equal(siit_data(&buf), frame.b, 16);
			}
}

/* There and back the packet is what it was, sums included, but for two hops. */
static void
test_round_trip(void **state)
{
	const uint8_t families[] = {TUPLE_IPV4, TUPLE_IPV6};
	struct tuple to, back;
	unsigned int f, i, seed, n;
	struct pkt p, out;
	(void)state;

	for (f = 0; f < 2; f++)
		for (i = 0; i < RTE_DIM(protos); i++)
			for (seed = 0; seed < 400; seed++) {
				build(families[f], protos[i], 20 + seed % 7);
				/* sums at all their edges */
				srand(seed);
				for (n = 0; n < 6; n++)
					frame.b[frame.len - 1 - n] =
						(uint8_t)(seed % 3 == 0 ? 0 : rand());
				frame_end(&frame);
				p = load();
				back = p.tuple;
				to = target(families[f], protos[i]);
				out = translated(&p, &to);
				out = translated(&out, &back);
				assert_memory_equal(out.l4, frame.b + frame.l4,
					frame.len - frame.l4);
				assert_int_equal(buf.m.data_len, frame.len);
			}
}

/* What was damaged stays so. */
static void
test_damage_stays(void **state)
{
	const uint8_t families[] = {TUPLE_IPV4, TUPLE_IPV6};
	unsigned int f, i;
	struct tuple to;
	struct pkt p, out;
	(void)state;

	for (f = 0; f < 2; f++)
		for (i = 0; i < RTE_DIM(protos); i++) {
			if (protos[i] == IPPROTO_SCTP || protos[i] == IPPROTO_UDPLITE)
				continue;
			build(families[f], protos[i], 40);
			frame_end(&frame);
			frame.b[frame.len - 1] ^= 0x10;
			p = load();
			to = target(families[f], protos[i]);
			out = translated(&p, &to);
			assert_false(csum_l4_good(&out));
		}
}

static void
test_header_fields(void **state)
{
	struct tuple to = target(TUPLE_IPV4, IPPROTO_UDP);
	const struct rte_ipv4_hdr *ih;
	struct pkt p, out;
	(void)state;

	build(TUPLE_IPV4, IPPROTO_UDP, 10);
	frame.b[frame.l3 + 1] = 0xb9;
	frame_end(&frame);
	memset(frame.b + frame.len, 0x77, 5); /* pads the frame */
	frame.len += 5;
	p = load();
	out = translated(&p, &to);
	assert_int_equal(out.l3[7], 63);
	assert_int_equal((out.l3[0] & 15) << 4 | out.l3[1] >> 4, 0xb9);
	assert_int_equal((out.l3[1] & 15) | out.l3[2] | out.l3[3], 0); /* flow label */
	assert_int_equal(buf.m.pkt_len, out.l3_off + out.ip_bytes);

	to = target(TUPLE_IPV6, IPPROTO_UDP);
	build(TUPLE_IPV6, IPPROTO_UDP, 10);
	frame.b[frame.l3] = 0x6b;
	frame.b[frame.l3 + 1] = 0x95;
	frame_end(&frame);
	p = load();
	out = translated(&p, &to);
	ih = (const struct rte_ipv4_hdr *)(const void *)out.l3;
	assert_int_equal(ih->version_ihl, 0x45);
	assert_int_equal(ih->type_of_service, 0xb9);
	assert_int_equal(ih->time_to_live, 63);
	assert_int_equal(ih->packet_id, RTE_BE16(0x7788));
	assert_int_equal(ih->fragment_offset, 0);
}

/* RFC 7915 5.1: more than 1,260 bytes of IPv4 are not to be fragmented. */
static void
test_df(void **state)
{
	struct tuple to = target(TUPLE_IPV6, IPPROTO_UDP);
	const struct rte_ipv4_hdr *ih;
	struct pkt p, out;
	unsigned int more;
	(void)state;

	for (more = 0; more < 2; more++) {
		build(TUPLE_IPV6, IPPROTO_UDP, 1260 - 28 + more);
		frame_end(&frame);
		p = load();
		out = translated(&p, &to);
		ih = (const struct rte_ipv4_hdr *)(const void *)out.l3;
		assert_int_equal(ih->fragment_offset, more ? RTE_BE16(RTE_IPV4_HDR_DF_FLAG) : 0);
	}
}

static void
test_udp_without_sum(void **state)
{
	struct tuple to4 = target(TUPLE_IPV6, IPPROTO_UDP), to6 = target(TUPLE_IPV4, IPPROTO_UDP);
	struct pkt p, out;
	unsigned int i, n;
	(void)state;

	/* payloads whose sum comes to all values near zero, too */
	for (i = 0; i < 3000; i++) {
		build(TUPLE_IPV4, IPPROTO_UDP, 64);
		frame_put16(&frame, frame.len - 2, (uint16_t)(i * 22));
		frame_end(&frame);
		frame_put16(&frame, frame.l4 + 6, 0);
		p = load();
		out = translated(&p, &to6);
		for (n = 6; n < 8 && out.l4[n] == 0; n++)
			;
		assert_int_not_equal(n, 8);
		assert_true(csum_l4_good(&out));
	}
	/* of IPv6 (RFC 6935) it stays left out */
	build(TUPLE_IPV6, IPPROTO_UDP, 64);
	frame_end(&frame);
	frame_put16(&frame, frame.l4 + 6, 0);
	p = load();
	out = translated(&p, &to4);
	assert_int_equal(out.l4[6] | out.l4[7], 0);
}

static void
test_headers_left_out(void **state)
{
	struct tuple to = target(TUPLE_IPV6, IPPROTO_TCP);
	struct pkt p, out;
	unsigned int words;
	(void)state;

	frame_start(&frame, NULL);
	frame_ip6(&frame);
	frame_ext(&frame, IPPROTO_HOPOPTS, 1);
	frame_ext(&frame, IPPROTO_ROUTING, 3); /* at its end */
	frame_ext(&frame, IPPROTO_DSTOPTS, 2);
	frame_tcp(&frame, PKT_TCP_ACK, 0);
	frame_bytes(&frame, 50);
	frame_end(&frame);
	p = load();
	out = translated(&p, &to);
	assert_true(csum_l4_good(&out));
	assert_int_equal(out.l3_len, 20);
	assert_int_equal(out.ip_bytes, siit_length(&p));

	to = target(TUPLE_IPV4, IPPROTO_TCP);
	for (words = 1; words <= 10; words += 3) {
		frame_start(&frame, NULL);
		frame_ip4(&frame, words);
		frame_tcp(&frame, PKT_TCP_ACK, 0);
		frame_bytes(&frame, 50);
		frame_end(&frame);
		p = load();
		out = translated(&p, &to);
		assert_true(csum_l4_good(&out));
		assert_int_equal(out.l3_len, 40);
		assert_int_equal(out.l4_len, 70);
	}
}

/* ---- fragments ---- */

static void
test_fragments(void **state)
{
	struct tuple to6 = target(TUPLE_IPV4, IPPROTO_UDP), to4 = target(TUPLE_IPV6, IPPROTO_UDP);
	static const uint16_t flags[] = {0x2000, 0x2010, 0x0030};
	struct pkt out;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(flags); i++) {
		build(TUPLE_IPV4, IPPROTO_UDP, 40);
		frame_put16(&frame, frame.l3 + 4, 0xcafe);
		frame_put16(&frame, frame.l3 + 6, flags[i]);
		frame_end(&frame);
		siit_load(&buf, &frame);
		assert_int_equal(siit_header(&buf.m, 18, &to6, 0), 48);
		assert_int_equal(parse_frame(&out, &buf.m), PARSE_FRAGMENT);
		assert_int_equal(out.frag_off, (flags[i] & 0x1fff) * 8);
		assert_int_equal(out.frag_more, (flags[i] & 0x2000) != 0);
		assert_int_equal(out.frag_id, 0xcafe);
		assert_int_equal(out.l4_len, 48);
		assert_memory_equal(out.l3 + 48, frame.b + frame.l4, 48);

		assert_int_equal(siit_header(&buf.m, 18, &to4, RTE_BE16(0x0102)), 20);
		assert_int_equal(parse_frame(&out, &buf.m), PARSE_FRAGMENT);
		assert_int_equal(out.frag_off, (flags[i] & 0x1fff) * 8);
		assert_int_equal(out.frag_more, (flags[i] & 0x2000) != 0);
		assert_int_equal(out.l3[4] << 8 | out.l3[5], 0x0102);
		assert_int_equal(out.l3[6] & 0x40, 0);
		assert_int_equal(buf.m.data_len, frame.len);
	}
}

/* An atomic fragment (RFC 6946): whole, but not to be marked DF, whatever its length. */
static void
test_atomic(void **state)
{
	struct tuple to = target(TUPLE_IPV6, IPPROTO_UDP);
	struct pkt p, out;
	(void)state;

	frame_start(&frame, NULL);
	frame_ip6(&frame);
	frame_ext(&frame, IPPROTO_FRAGMENT, 1);
	frame_udp(&frame);
	frame_bytes(&frame, 1400);
	frame_end(&frame);
	p = load();
	out = translated(&p, &to);
	assert_true(csum_l4_good(&out));
	assert_int_equal(out.l3[6] | out.l3[7], 0);
}

/* ---- what is refused ---- */

static void
test_hop_limit(void **state)
{
	const uint8_t families[] = {TUPLE_IPV4, TUPLE_IPV6};
	struct icmp_error e;
	struct tuple to;
	unsigned int f, hops;
	struct pkt p;
	(void)state;

	for (f = 0; f < 2; f++)
		for (hops = 0; hops < 3; hops++) {
			build(families[f], IPPROTO_UDP, 8);
			frame.b[frame.l3 + (f == 0 ? 8 : 7)] = (uint8_t)hops;
			frame_end(&frame);
			p = load();
			to = target(families[f], IPPROTO_UDP);
			assert_int_equal(siit_check(&p, &e),
				hops > 1 ? SL_DROP_NONE : SL_DROP_HOP_LIMIT);
			assert_int_equal(e.type, hops > 1 ? 0 : f == 0 ? 11 : 3);
			if (hops > 1)
				continue;
			assert_int_equal(siit_header(&buf.m, p.l3_off, &to, 0), 0);
			assert_memory_equal(siit_data(&buf), frame.b, frame.len);
		}
}

static void
test_source_route(void **state)
{
	static const struct {
		uint8_t option[12];
		bool refused;
	} cases[] = {
		{{131, 11, 4, 1, 2, 3, 4, 5, 6, 7, 8, 0}, true},
		{{137, 11, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0}, true},
		{{131, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8, 0}, false}, /* at its end */
		{{1, 1, 137, 7, 4, 9, 9, 9, 9, 0, 0, 0}, true},
		{{7, 4, 4, 0, 131, 7, 4, 1, 2, 3, 4, 0}, true}, /* behind another */
		{{0, 131, 7, 4, 1, 2, 3, 4, 0, 0, 0, 0}, false}, /* behind the end */
		{{7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0}, false},
		{{7, 0, 131, 7, 4, 0, 0, 0, 0, 0, 0, 0}, false}, /* malformed */
		{{131, 40, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0}, false},
		{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 131}, false},
	};
	struct icmp_error e;
	struct pkt p;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		frame_start(&frame, NULL);
		frame_ip4(&frame, 3);
		memcpy(frame.b + frame.l3 + 20, cases[i].option, 12);
		frame_udp(&frame);
		frame_end(&frame);
		p = load();
		assert_int_equal(siit_check(&p, &e),
			cases[i].refused ? SL_DROP_NAT64_NONE : SL_DROP_NONE);
		assert_int_equal(e.type, cases[i].refused ? 3 : 0);
		assert_int_equal(e.code, cases[i].refused ? 5 : 0);
	}
}

static void
test_refused_headers(void **state)
{
	struct icmp_error e;
	struct pkt p;
	(void)state;

	frame_start(&frame, NULL);
	frame_ip6(&frame);
	frame_ext(&frame, IPPROTO_HOPOPTS, 2);
	frame_ext(&frame, IPPROTO_ROUTING, 3);
	frame.b[frame.l3 + 40 + 16 + 3] = 1; /* segments left */
	frame_udp(&frame);
	frame_end(&frame);
	p = load();
	assert_int_equal(siit_check(&p, &e), SL_DROP_NAT64_NONE);
	assert_int_equal(e.type, 4);
	assert_int_equal(e.code, 0);
	assert_int_equal(e.word, 40 + 16 + 3);

	frame_start(&frame, NULL);
	frame_ip6(&frame);
	frame_ext(&frame, IPPROTO_AH, 3);
	frame_udp(&frame);
	frame_end(&frame);
	p = load();
	assert_int_equal(siit_check(&p, &e), SL_DROP_NAT64_NONE);
	assert_int_equal(e.type, 0);
}

static void
test_refused_protocols(void **state)
{
	static const struct {
		uint8_t family, proto, icmp, type, code;
	} cases[] = {
		{TUPLE_IPV4, IPPROTO_ESP, 0, 3, 2}, {TUPLE_IPV6, IPPROTO_ESP, 0, 1, 4},
		{TUPLE_IPV4, IPPROTO_GRE, 0, 3, 2}, {TUPLE_IPV6, IPPROTO_GRE, 0, 1, 4},
		{TUPLE_IPV4, IPPROTO_ICMPV6, 0, 3, 2}, {TUPLE_IPV6, 89, 0, 1, 4},
		{TUPLE_IPV4, IPPROTO_ICMP, 13, 0, 0}, {TUPLE_IPV4, IPPROTO_ICMP, 17, 0, 0},
		{TUPLE_IPV6, IPPROTO_ICMPV6, 139, 0, 0},
	};
	struct icmp_error e;
	struct pkt p;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		frame_start(&frame, NULL);
		if (cases[i].family == TUPLE_IPV4)
			frame_ip4(&frame, 0);
		else
			frame_ip6(&frame);
		if (cases[i].icmp != 0)
			frame_icmp(&frame, cases[i].icmp, 0, 1);
		else if (cases[i].proto == IPPROTO_GRE)
			frame_gre(&frame, 0, 0x800, 0);
		else
			frame_proto(&frame, cases[i].proto);
		frame_bytes(&frame, 24);
		frame_end(&frame);
		p = load();
		assert_int_equal(siit_check(&p, &e), SL_DROP_NAT64_NONE);
		assert_int_equal(e.type, cases[i].type);
		assert_int_equal(e.code, cases[i].code);
	}
}

static void
test_no_room(void **state)
{
	struct tuple to = target(TUPLE_IPV4, IPPROTO_UDP);
	struct pkt p;
	(void)state;

	build(TUPLE_IPV4, IPPROTO_UDP, 8);
	frame_end(&frame);
	p = load();
	memmove(buf.b + 19, buf.b + SIIT_ROOM, frame.len);
	buf.m.data_off = 19;
	assert_int_equal(siit_header(&buf.m, p.l3_off, &to, 0), 0);
	assert_memory_equal(siit_data(&buf), frame.b, frame.len);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_protocols),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_damage_stays),
		cmocka_unit_test(test_header_fields),
		cmocka_unit_test(test_df),
		cmocka_unit_test(test_udp_without_sum),
		cmocka_unit_test(test_headers_left_out),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_hop_limit),
		cmocka_unit_test(test_source_route),
		cmocka_unit_test(test_refused_headers),
		cmocka_unit_test(test_refused_protocols),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
