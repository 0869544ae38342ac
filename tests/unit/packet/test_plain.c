/* SPDX-License-Identifier: BSD-3-Clause */
/* The short way of the parser against the general one: the same frames, the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frames.h"
#include "parse_plain.h"

static const uint64_t offloads[] = {0, RTE_MBUF_F_RX_IP_CKSUM_GOOD, RTE_MBUF_F_RX_IP_CKSUM_BAD,
	RTE_MBUF_F_RX_L4_CKSUM_GOOD, RTE_MBUF_F_RX_L4_CKSUM_BAD,
	RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_BAD};

static unsigned int sums_known; /* plain frames of which the checksum is known to be good */

/* True when the frame is plain. In a buffer of its own, so that a sanitizer sees a byte too far. */
static bool
compare(const uint8_t *frame, uint32_t len, uint64_t ol_flags)
{
	uint8_t *data = malloc(RTE_MAX(len, 1u));
	struct pkt untouched, plain, general;
	struct rte_mbuf m;
	bool is_plain;

	assert_non_null(data);
	memcpy(data, frame, len);
	frame_wrap(&m, data, len);
	m.ol_flags = ol_flags;
	memset(&untouched, 0xee, sizeof(untouched));
	plain = general = untouched;
	is_plain = parse_plain(&plain, &m);
	if (is_plain) {
		assert_int_equal(parse_frame(&general, &m), SL_DROP_NONE);
		assert_null(frame_plain_wrong(&plain, &general));
		sums_known += (plain.flags & PKT_CSUM_GOOD) != 0;
	} else {
		assert_memory_equal(&plain, &untouched, sizeof(plain));
	}
	free(data);
	return is_plain;
}

static void
test_every_kind(void **state)
{
	unsigned int i, k, plain = 0;
	struct frame f;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		frame_cases[i].build(&f);
		for (k = 0; k < RTE_DIM(offloads); k++)
			plain += compare(f.b, f.len, offloads[k]);
	}
	assert_true(plain > 0);
}

/* Tags, family, transport and payload of which all must go the short way. */
static void
test_what_is_plain(void **state)
{
	static const uint32_t tags[][3] = {{0}, {0x81000064}, {0x8100e064}};
	unsigned int i, payload;
	struct frame f;
	(void)state;

	sums_known = 0;
	for (i = 0; i < RTE_DIM(tags) * 8; i++) {
		for (payload = 0; payload < 40; payload++) {
			frame_start(&f, tags[i >> 3]);
			if (i & 1)
				frame_ip6(&f);
			else
				frame_ip4(&f, 0);
			if (i & 2)
				frame_tcp(&f, PKT_TCP_ACK, i & 4 ? 3 : 0);
			else
				frame_udp(&f);
			frame_bytes(&f, payload);
			frame_end(&f);
			memset(f.b + f.len, 0, 16);
			/* The shortest have the padding of Ethernet. */
			assert_true(compare(f.b, RTE_MAX(f.len, 60u), 0));
		}
	}
	assert_int_equal(sums_known, RTE_DIM(tags) * 8 * 40);
}

/* Frames cut at each length, and with bytes changed at random in their headers. */
static void
test_broken(void **state)
{
	unsigned int i, n, plain = 0, other = 0;
	uint32_t cut;
	struct frame f;
	(void)state;

	srand(1);
	for (i = 0; i < frame_cases_n; i++) {
		frame_cases[i].build(&f);
		for (cut = 0; cut <= f.len; cut++)
			compare(f.b, cut, 0);
		for (n = 0; n < 3000; n++) {
			struct frame g = f;
			unsigned int changes = 1 + (unsigned int)rand() % 2;

			while (changes-- > 0)
				g.b[(unsigned int)rand() % RTE_MIN(g.len, 80u)] = (uint8_t)rand();
			if (g.family == TUPLE_IPV4 && rand() % 4 != 0)
				frame_ip4_sum(&g, g.l3);
			if (compare(g.b, g.len, offloads[(unsigned int)rand() % RTE_DIM(offloads)]))
				plain++;
			else
				other++;
		}
	}
	assert_true(plain > 1000 && other > 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind),
		cmocka_unit_test(test_what_is_plain),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
