/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ip.h>
#include <rte_tcp.h>

#include "answer.h"
#include "csum.h"
#include "frames.h"
#include "icmp_error.h"
#include "parse.h"
#include "tcp_reset.h"

static struct frame frame;
static struct rte_mbuf in, out;
static uint8_t room[2048];

/* An empty buffer of `size` bytes. */
static struct rte_mbuf *
empty(uint16_t size)
{
	frame_wrap(&out, room, 0);
	out.buf_len = size;
	return &out;
}

static struct pkt
parsed(void)
{
	struct pkt p;

	frame_wrap(&in, frame.b, frame.len);
	assert_int_equal(parse_frame(&p, &in), SL_DROP_NONE);
	return p;
}

static struct pkt
parsed_case(const char *name)
{
	frame_case(name)->build(&frame);
	return parsed();
}

/* What a receiver makes of the answer: sound in all sums, and sent the way back. */
static struct pkt
answer(const struct pkt *p)
{
	struct pkt a;

	assert_int_equal(parse_frame(&a, &out), SL_DROP_NONE);
	assert_true(a.flags & PKT_IP && !(a.flags & PKT_L4_BAD));
	assert_true(csum_l4_good(&a));
	assert_int_equal(a.l3_off, p->l3_off);
	assert_int_equal(a.n_tags, p->n_tags);
	assert_memory_equal(room, frame.b + 6, 6);
	assert_memory_equal(room + 6, frame.b, 6);
	assert_memory_equal(room + 12, frame.b + 12, p->l3_off - 12);
	if (a.l3[0] >> 4 == 4)
		assert_true(csum_ip4_good(a.l3, 20));
	return a;
}

static struct icmp_error
unreachable(const struct pkt *p)
{
	bool ip4 = p->tuple.family == TUPLE_IPV4;

	return (struct icmp_error){.type = ip4 ? ICMP_UNREACHABLE : ICMP6_UNREACHABLE,
		.code = 3, .word = 0x01020304, .src = answer_dst(p)};
}

static void
test_error_about_all(void **state)
{
	unsigned int i, n = 0;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		struct icmp_error e;
		struct pkt p, a;

		frame_cases[i].build(&frame);
		p = parsed();
		if ((p.flags & (PKT_IP | PKT_ND)) != PKT_IP)
			continue;
		e = unreachable(&p);
		if (!icmp_error_allowed(&p, &e))
			continue;
		assert_true(icmp_error_write(empty(sizeof(room)), &p, &e));
		a = answer(&p);
		assert_true(a.flags & PKT_ICMP_ERROR);
		assert_memory_equal(&a.tuple, &p.tuple, sizeof(a.tuple));
		assert_memory_equal(a.l4 + 4, "\1\2\3\4", 4);
		assert_memory_equal(a.l4 + 8, p.l3, p.l3_len);
		n++;
	}
	assert_true(n > 8);
}

static void
test_error_quotes(void **state)
{
	struct icmp_error e;
	struct pkt p;
	(void)state;

	frame_start(&frame, NULL);
	frame_ip4(&frame, 0);
	frame_udp(&frame);
	frame_bytes(&frame, 1000);
	frame_end(&frame);
	p = parsed();
	e = unreachable(&p);
	assert_true(icmp_error_write(empty(sizeof(room)), &p, &e));
	assert_int_equal(answer(&p).ip_bytes, ICMP_ERROR_MAX);

	frame_start(&frame, NULL);
	frame_ip6(&frame);
	frame_udp(&frame);
	frame_bytes(&frame, 1400);
	frame_end(&frame);
	p = parsed();
	e = unreachable(&p);
	assert_true(icmp_error_write(empty(sizeof(room)), &p, &e));
	assert_int_equal(answer(&p).ip_bytes, ICMP6_ERROR_MAX);
	assert_false(icmp_error_write(empty(200), &p, &e));
	assert_int_equal(out.pkt_len, 0);
}

static void
build_udp4(const char *src, const char *dst)
{
	frame_start(&frame, NULL);
	frame_ip4(&frame, 0);
	frame_udp(&frame);
	frame_end(&frame);
	memcpy(frame.b + frame.l3 + 12, src, 4);
	memcpy(frame.b + frame.l3 + 16, dst, 4);
	frame_put16(&frame, frame.l4 + 6, 0);
	frame_ip4_sum(&frame, frame.l3);
}

static void
test_error_forbidden(void **state)
{
	static const struct {
		const char *src, *dst;
		bool allowed;
	} cases[] = {
		{"\x0a\0\0\1", "\x0a\0\0\2", true},
		{"\0\0\0\0", "\x0a\0\0\2", false},
		{"\x7f\0\0\1", "\x0a\0\0\2", false},
		{"\xe0\0\0\1", "\x0a\0\0\2", false},
		{"\xf0\0\0\1", "\x0a\0\0\2", false},
		{"\x0a\0\0\1", "\xe0\0\0\2", false},
		{"\x0a\0\0\1", "\xff\xff\xff\xff", false},
	};
	struct icmp_error e = {.type = ICMP_UNREACHABLE};
	struct pkt p;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		build_udp4(cases[i].src, cases[i].dst);
		p = parsed();
		assert_int_equal(icmp_error_allowed(&p, &e), cases[i].allowed);
	}
	build_udp4("\x0a\0\0\1", "\x0a\0\0\2");
	frame.b[0] |= 1; /* to a group of hosts */
	p = parsed();
	assert_false(icmp_error_allowed(&p, &e));
	p = parsed_case("tcp4");
	frame.b[frame.len - 1] ^= 1;
	assert_false(icmp_error_allowed(&p, &e));
	assert_false(tcp_reset_allowed(&p));
	/* An error about the error would be about this one. */
	frame_case("tcp4")->build(&frame);
	p = parsed();
	assert_true(icmp_error_write(empty(sizeof(room)), &p, &e));
	assert_int_equal(parse_frame(&p, &out), SL_DROP_NONE);
	assert_false(icmp_error_allowed(&p, &e));
}

static struct pkt
segment(bool ip6, uint8_t flags, unsigned int payload)
{
	frame_start(&frame, NULL);
	if (ip6)
		frame_ip6(&frame);
	else
		frame_ip4(&frame, 0);
	frame_tcp(&frame, flags, 1);
	frame_bytes(&frame, payload);
	frame_end(&frame);
	return parsed();
}

static void
test_reset_numbers(void **state)
{
	static const struct {
		uint8_t flags;
		unsigned int payload;
		uint32_t len;
	} cases[] = {
		{PKT_TCP_SYN, 0, 1}, {PKT_TCP_SYN, 7, 8}, {PKT_TCP_FIN, 0, 1},
		{PKT_TCP_FIN | PKT_TCP_PSH, 10, 11}, {0, 0, 0}, {PKT_TCP_ACK, 5, 0},
		{PKT_TCP_SYN | PKT_TCP_ACK, 0, 0},
	};
	const struct rte_tcp_hdr *seg, *rst;
	struct pkt p, a;
	unsigned int i;
	(void)state;

	for (i = 0; i < 2 * RTE_DIM(cases); i++) {
		p = segment(i % 2, cases[i / 2].flags, cases[i / 2].payload);
		assert_true(tcp_reset_allowed(&p));
		assert_true(tcp_reset_write(empty(sizeof(room)), &p));
		a = answer(&p);
		seg = (const void *)p.l4;
		rst = (const void *)a.l4;
		assert_memory_equal(&a.tuple.src, &p.tuple.dst, sizeof(a.tuple.src));
		assert_memory_equal(&a.tuple.dst, &p.tuple.src, sizeof(a.tuple.src));
		assert_int_equal(rst->src_port, seg->dst_port);
		assert_int_equal(rst->dst_port, seg->src_port);
		if (cases[i / 2].flags & PKT_TCP_ACK) {
			assert_int_equal(rst->tcp_flags, PKT_TCP_RST);
			assert_int_equal(rst->sent_seq, seg->recv_ack);
			assert_int_equal(rst->recv_ack, 0);
		} else {
			assert_int_equal(rst->tcp_flags, PKT_TCP_RST | PKT_TCP_ACK);
			assert_int_equal(rst->sent_seq, 0);
			assert_int_equal(rte_be_to_cpu_32(rst->recv_ack),
				rte_be_to_cpu_32(seg->sent_seq) + cases[i / 2].len);
		}
	}
	p = segment(false, PKT_TCP_RST, 0);
	assert_false(tcp_reset_allowed(&p));
	p = parsed_case("udp4_qinq");
	assert_false(tcp_reset_allowed(&p));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error_about_all),
		cmocka_unit_test(test_error_quotes),
		cmocka_unit_test(test_error_forbidden),
		cmocka_unit_test(test_reset_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
