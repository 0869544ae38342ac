/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "csum.h"
#include "frames.h"
#include "parse.h"

#define PAYLOAD_MAX 200

/* Parses; false when that finds the packet unsound, so that there is nothing to verify. */
static bool
sound(struct pkt *p, struct rte_mbuf *m, uint8_t *data, uint32_t len)
{
	frame_wrap(m, data, len);
	return parse_frame(p, m) == SL_DROP_NONE && p->flags & PKT_IP && !(p->flags & PKT_L4_BAD);
}

static void
test_right_sums(void **state)
{
	struct frame f;
	struct pkt p;
	struct rte_mbuf m;
	unsigned int i;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		frame_cases[i].build(&f);
		if (f.family == 0)
			continue;
		assert_true(sound(&p, &m, f.b, f.len));
		assert_true(csum_l4_good(&p));
	}
}

/* Whether a protocol has a sum, and how many bytes of the frame it covers. */
static uint32_t
covered(const struct frame *f)
{
	switch (f->proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
	case IPPROTO_SCTP:
		return f->len - f->l4;
	case IPPROTO_UDPLITE:
		return 12;
	default:
		return 0;
	}
}

static void
test_every_bit_counts(void **state)
{
	struct frame f;
	struct pkt p;
	struct rte_mbuf m;
	unsigned int i, bit, judged = 0;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		frame_cases[i].build(&f);
		for (bit = f.l4 * 8; f.family != 0 && bit < f.len * 8; bit++) {
			bool inside = bit / 8 - f.l4 < covered(&f);

			f.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (sound(&p, &m, f.b, f.len)) {
				if (csum_l4_good(&p) == inside)
					fail_msg("%s: bit %u", frame_cases[i].name, bit - f.l4 * 8);
				judged++;
			}
			f.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	assert_true(judged > 10000);
}

/* The addresses are in the pseudo header: of all but ICMP and SCTP. */
static void
test_addresses_count(void **state)
{
	struct frame f;
	struct pkt p;
	struct rte_mbuf m;
	unsigned int i, k;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		bool counts;

		frame_cases[i].build(&f);
		counts = f.proto == IPPROTO_TCP || f.proto == IPPROTO_UDP ||
			 f.proto == IPPROTO_UDPLITE || f.proto == IPPROTO_ICMPV6;
		for (k = 0; f.family != 0 && k < (f.family == TUPLE_IPV4 ? 8u : 32u); k++) {
			uint32_t at = f.l3 + (f.family == TUPLE_IPV4 ? 12 : 8) + k;

			f.b[at] ^= 0x40;
			if (f.family == TUPLE_IPV4)
				frame_ip4_sum(&f, f.l3);
			assert_true(sound(&p, &m, f.b, f.len));
			assert_int_equal(csum_l4_good(&p), !counts);
			f.b[at] ^= 0x40;
		}
	}
}

/* Every length and every alignment, so that each tail of the sum is taken. */
static void
test_lengths_and_alignments(void **state)
{
	static uint8_t buffer[FRAME_MAX + 16] __rte_aligned(16);
	struct frame f;
	struct pkt p;
	struct rte_mbuf m;
	unsigned int n, align, sctp;
	(void)state;

	for (n = 0; n <= PAYLOAD_MAX; n++) {
		for (sctp = 0; sctp < 2; sctp++) {
			frame_start(&f, NULL);
			frame_ip4(&f, 0);
			sctp ? frame_sctp(&f) : frame_tcp(&f, PKT_TCP_ACK, 0);
			frame_bytes(&f, n);
			frame_end(&f);
			for (align = 0; align < 8; align++) {
				uint8_t *last = buffer + align + f.len - 1;

				memset(buffer, 0xff, sizeof(buffer));
				memcpy(buffer + align, f.b, f.len);
				assert_true(sound(&p, &m, buffer + align, f.len));
				assert_true(csum_l4_good(&p));
				*last ^= 0x01;
				assert_false(csum_l4_good(&p));
			}
		}
	}
}

/* Bytes of ones make the carries run, bytes of zero the sum be nothing but the pseudo header. */
static void
test_extreme_payloads(void **state)
{
	static const uint8_t fill[] = {0xff, 0x00};
	struct frame f;
	struct pkt p;
	struct rte_mbuf m;
	unsigned int n, k;
	(void)state;

	for (n = 0; n < 3000; n += 97) {
		for (k = 0; k < RTE_DIM(fill); k++) {
			frame_start(&f, NULL);
			frame_ip6(&f);
			memset(f.b + f.l3 + 8, fill[k], 32);
			frame_udp(&f);
			memset(f.b + f.len, fill[k], n);
			f.len += n;
			frame_end(&f);
			assert_true(sound(&p, &m, f.b, f.len));
			assert_true(csum_l4_good(&p));
			f.b[f.l4 + 1] ^= 1;
			assert_false(csum_l4_good(&p));
		}
	}
}

static void
udp_frame(struct frame *f, uint8_t family, unsigned int payload)
{
	frame_start(f, NULL);
	family == TUPLE_IPV4 ? frame_ip4(f, 0) : frame_ip6(f);
	frame_udp(f);
	frame_bytes(f, payload);
	frame_end(f);
}

static void
test_udp_without_a_sum(void **state)
{
	struct frame f;
	struct pkt p;
	struct rte_mbuf m;
	(void)state;

	udp_frame(&f, TUPLE_IPV4, 20);
	frame_put16(&f, f.l4 + 6, 0);
	assert_true(sound(&p, &m, f.b, f.len));
	assert_true(csum_l4_good(&p));

	udp_frame(&f, TUPLE_IPV6, 20);
	frame_put16(&f, f.l4 + 6, 0);
	assert_true(sound(&p, &m, f.b, f.len));
	assert_true(csum_l4_good(&p));

	frame_case("udplite4")->build(&f);
	frame_put16(&f, f.l4 + 6, 0);
	assert_true(sound(&p, &m, f.b, f.len));
	assert_false(csum_l4_good(&p));
}

/* A sum that comes out as zero is sent as all ones (RFC 768), which must be right. */
static void
test_udp_sum_of_all_ones(void **state)
{
	struct frame f;
	struct pkt p;
	struct rte_mbuf m;
	(void)state;

	udp_frame(&f, TUPLE_IPV4, 20);
	/* Payload made to take the rest: with the sum's own value in it, the sum is zero. */
	memset(f.b + f.l4 + 8, 0, 2);
	frame_end(&f);
	memcpy(f.b + f.l4 + 8, f.b + f.l4 + 6, 2);
	frame_end(&f);
	assert_int_equal(f.b[f.l4 + 6] << 8 | f.b[f.l4 + 7], 0xffff);
	assert_true(sound(&p, &m, f.b, f.len));
	assert_true(csum_l4_good(&p));
}

/* UDP's own length is what its sum covers; what is behind it in the packet or frame is not. */
static void
test_udp_length_below_the_payload(void **state)
{
	struct frame f;
	struct pkt p;
	struct rte_mbuf m;
	(void)state;

	udp_frame(&f, TUPLE_IPV4, 20);
	frame_bytes(&f, 9);
	frame_put16(&f, f.l3 + 2, (uint16_t)(f.len - f.l3));
	frame_ip4_sum(&f, f.l3);
	memset(f.b + f.len, 0xaa, 13);
	f.len += 13;
	assert_true(sound(&p, &m, f.b, f.len));
	assert_int_equal(p.l4_len, 37);
	assert_true(csum_l4_good(&p));
	f.b[f.l4 + 8] ^= 1;
	assert_false(csum_l4_good(&p));
}

static void
test_padding_is_in_no_sum(void **state)
{
	struct frame f;
	struct pkt p;
	struct rte_mbuf m;
	unsigned int i, n;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		frame_cases[i].build(&f);
		for (n = 0; f.family != 0 && n <= 300; n += 20) {
			memset(f.b + f.len, 0xaa, n);
			assert_true(sound(&p, &m, f.b, f.len + n));
			assert_int_equal(p.l4_len, frame_cases[i].l4_len);
			assert_int_equal(p.ip_bytes, f.len - f.l3);
			assert_true(csum_l4_good(&p));
		}
	}
}

static void
test_inner_header_sum(void **state)
{
	static const char *const names[] = {"error4_tcp", "error4_options", "error4_extended",
		"error6"};
	struct frame f;
	struct pkt p;
	struct rte_mbuf m;
	unsigned int i, at;
	(void)state;

	for (i = 0; i < RTE_DIM(names); i++) {
		frame_case(names[i])->build(&f);
		assert_true(sound(&p, &m, f.b, f.len));
		assert_true(csum_icmp_inner_good(&p));
		/* From the time to live on, so that the header stays well-formed. */
		for (at = p.inner_off + 8u; at < p.inner_l4_off; at++) {
			p.l4[at] ^= 0x10;
			assert_int_equal(csum_icmp_inner_good(&p), f.family == TUPLE_IPV6);
			p.l4[at] ^= 0x10;
		}
	}
}

static void
test_ip4_header(void **state)
{
	/* A header from a capture, with its sum 0xb861. */
	uint8_t h[24] = {0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1,
		0xc0, 0xa8, 0, 0xc7, 1, 1, 1, 1};
	unsigned int bit;
	(void)state;

	assert_true(csum_ip4_good(h, 20));
	assert_false(csum_ip4_good(h, 24));
	for (bit = 0; bit < 160; bit++) {
		h[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(csum_ip4_good(h, 20));
		h[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right_sums),
		cmocka_unit_test(test_every_bit_counts),
		cmocka_unit_test(test_addresses_count),
		cmocka_unit_test(test_lengths_and_alignments),
		cmocka_unit_test(test_extreme_payloads),
		cmocka_unit_test(test_udp_without_a_sum),
		cmocka_unit_test(test_udp_sum_of_all_ones),
		cmocka_unit_test(test_udp_length_below_the_payload),
		cmocka_unit_test(test_padding_is_in_no_sum),
		cmocka_unit_test(test_inner_header_sum),
		cmocka_unit_test(test_ip4_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
