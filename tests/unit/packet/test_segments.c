/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in chained buffers, and frames whose tags the port took out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_eal.h>
#include <rte_mempool.h>

#include "csum.h"
#include "frames.h"
#include "parse.h"

#define POOL_SIZE 511
#define BUF_ROOM 2048

static struct rte_mempool *pool;

/* The bytes in segments of `first`, then `step` bytes; the first has `room` behind its data. */
static struct rte_mbuf *
chain(const uint8_t *data, uint32_t len, uint32_t first, uint32_t step, uint32_t room)
{
	struct rte_mbuf *head = NULL, *last = NULL;
	uint32_t off = 0, n;

	do {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		assert_non_null(m);
		n = RTE_MIN(head == NULL ? first : step, len - off);
		if (head == NULL) {
			m->data_off = (uint16_t)(m->buf_len - RTE_MIN(n + room,
				(uint32_t)m->buf_len - RTE_PKTMBUF_HEADROOM));
			head = m;
		} else {
			last->next = m;
			head->nb_segs++;
		}
		memcpy(rte_pktmbuf_mtod(m, uint8_t *), data + off, n);
		m->data_len = (uint16_t)n;
		last = m;
		off += n;
	} while (off < len);
	head->pkt_len = len;
	return head;
}

static void
assert_same_bytes(struct rte_mbuf *m, const uint8_t *data, uint32_t len)
{
	uint8_t copy[FRAME_MAX];
	const char *why;
	const uint8_t *bytes;

	assert_int_equal(rte_mbuf_check(m, 1, &why), 0);
	assert_int_equal(m->pkt_len, len);
	bytes = rte_pktmbuf_read(m, 0, len, copy);
	assert_non_null(bytes);
	assert_memory_equal(bytes, data, len);
}

static void
parse_flat(struct pkt *p, struct rte_mbuf *m, struct frame *f)
{
	frame_wrap(m, f->b, f->len);
	assert_int_equal(parse_frame(p, m), SL_DROP_NONE);
}

static void
check_chain(const struct frame_case *c, struct frame *f, const struct pkt *flat, struct rte_mbuf *m)
{
	struct pkt p;
	enum sl_drop r = parse_frame(&p, m);
	const char *wrong = frame_broken(&p, r, f->len);

	assert_int_equal(r, SL_DROP_NONE);
	if (wrong == NULL)
		wrong = frame_differ(flat, &p);
	if (wrong != NULL)
		fail_msg("%s: %s", c->name, wrong);
	if (p.flags & PKT_IP)
		assert_true(csum_l4_good(&p));
	assert_same_bytes(m, f->b, f->len);
	rte_pktmbuf_free(m);
	assert_int_equal(rte_mempool_avail_count(pool), POOL_SIZE);
}

static void
test_split_anywhere(void **state)
{
	unsigned int i, at;
	struct frame f;
	struct pkt flat;
	struct rte_mbuf m;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		frame_cases[i].build(&f);
		parse_flat(&flat, &m, &f);
		for (at = 0; at <= f.len; at++)
			check_chain(&frame_cases[i], &f, &flat,
				chain(f.b, f.len, at, FRAME_MAX, BUF_ROOM));
	}
}

static void
test_many_small_segments(void **state)
{
	static const unsigned int steps[] = {1, 2, 3, 7, 16};
	unsigned int i, k;
	struct frame f;
	struct pkt flat;
	struct rte_mbuf m;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		frame_cases[i].build(&f);
		parse_flat(&flat, &m, &f);
		for (k = 0; k < RTE_DIM(steps); k++) {
			if (f.len / steps[k] + 1 > 255)
				continue;
			check_chain(&frame_cases[i], &f, &flat,
				chain(f.b, f.len, steps[k], steps[k], BUF_ROOM));
		}
	}
}

/* The payload stays where it is: the first segment takes the headers only. */
static void
test_payload_stays_behind(void **state)
{
	struct frame f;
	struct pkt p;
	struct rte_mbuf *m;
	(void)state;

	frame_start(&f, NULL);
	frame_ip4(&f, 0);
	frame_tcp(&f, PKT_TCP_ACK, 0);
	frame_bytes(&f, 3000);
	frame_end(&f);
	m = chain(f.b, f.len, 54, 1500, 0);
	assert_int_equal(parse_frame(&p, m), SL_DROP_NONE);
	assert_int_equal(p.flags, PKT_IP);
	assert_int_equal(p.l4_len, 3020);
	assert_int_equal(m->nb_segs, 3);
	assert_int_equal(m->data_len, 54);
	assert_true(csum_l4_good(&p));
	*rte_pktmbuf_mtod_offset(rte_pktmbuf_lastseg(m), uint8_t *, 1499) ^= 1;
	assert_false(csum_l4_good(&p));
	rte_pktmbuf_free(m);
}

/* No room behind the first segment, or a buffer that somebody else reads too. */
static void
test_headers_that_cannot_be_moved(void **state)
{
	struct frame f;
	struct pkt p;
	struct rte_mbuf *m, *other;
	(void)state;

	frame_case("tcp4")->build(&f);
	m = chain(f.b, f.len, 40, FRAME_MAX, 0);
	assert_int_equal(parse_frame(&p, m), SL_DROP_IP_TRUNCATED);
	assert_same_bytes(m, f.b, f.len);
	rte_pktmbuf_free(m);

	m = chain(f.b, f.len, 40, FRAME_MAX, BUF_ROOM);
	rte_mbuf_refcnt_update(m, 1);
	assert_int_equal(parse_frame(&p, m), SL_DROP_IP_TRUNCATED);
	rte_mbuf_refcnt_update(m, -1);
	assert_int_equal(parse_frame(&p, m), SL_DROP_NONE);
	rte_pktmbuf_free(m);

	m = chain(f.b, f.len, 40, FRAME_MAX, BUF_ROOM);
	other = rte_pktmbuf_clone(m, pool);
	assert_non_null(other);
	assert_int_equal(parse_frame(&p, other), SL_DROP_IP_TRUNCATED);
	assert_same_bytes(m, f.b, f.len);
	rte_pktmbuf_free(other);
	rte_pktmbuf_free(m);
	assert_int_equal(rte_mempool_avail_count(pool), POOL_SIZE);
}

/* The chain ends where a header goes on: as with one buffer. */
static void
test_cut_chains(void **state)
{
	struct frame f;
	struct pkt p;
	struct rte_mbuf *m;
	uint32_t len, at;
	(void)state;

	frame_case("error4_tcp")->build(&f);
	for (len = 1; len < f.len; len++) {
		for (at = 0; at <= len; at += 5) {
			m = chain(f.b, len, at, FRAME_MAX, BUF_ROOM);
			assert_int_not_equal(parse_frame(&p, m), SL_DROP_NONE);
			rte_pktmbuf_free(m);
		}
	}
}

static struct rte_mbuf *
without_tags(const struct frame *f, unsigned int tags, uint64_t flags, uint16_t outer,
	uint16_t inner)
{
	uint8_t bare[FRAME_MAX];
	struct rte_mbuf *m;

	memcpy(bare, f->b, 12);
	memcpy(bare + 12, f->b + 12 + 4 * tags, f->len - 12 - 4 * tags);
	m = chain(bare, f->len - 4 * tags, FRAME_MAX, FRAME_MAX, BUF_ROOM);
	m->ol_flags = flags;
	m->vlan_tci = inner;
	m->vlan_tci_outer = outer;
	return m;
}

/* With the tags stripped by the port, the frame and its parse are as with the tags in the data. */
static void
test_stripped_tags(void **state)
{
	static const struct {
		const char *name;
		unsigned int stripped;
		uint64_t flags;
	} cases[] = {
		{"tcp4_vlan", 1, RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED},
		{"udp4_qinq", 1, RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED},
		{"udp4_qinq", 2, RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED |
			RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED},
	};
	struct frame f;
	struct pkt flat;
	struct rte_mbuf m;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		const struct frame_case *c = frame_case(cases[i].name);

		c->build(&f);
		parse_flat(&flat, &m, &f);
		check_chain(c, &f, &flat,
			without_tags(&f, cases[i].stripped, cases[i].flags, flat.outer_tci,
				flat.n_tags == 2 ? flat.inner_tci : flat.outer_tci));
	}
}

/* A tag on top of two in the data; no room to put it; nothing to put it in. */
static void
test_stripped_tags_refused(void **state)
{
	struct frame f;
	struct pkt p;
	struct rte_mbuf *m;
	(void)state;

	frame_case("udp4_qinq")->build(&f);
	m = without_tags(&f, 0, RTE_MBUF_F_RX_VLAN_STRIPPED, 0, 5);
	assert_int_equal(parse_frame(&p, m), SL_DROP_VLAN_DEPTH);
	rte_pktmbuf_free(m);

	m = without_tags(&f, 1, RTE_MBUF_F_RX_VLAN_STRIPPED, 0, 5);
	assert_non_null(rte_pktmbuf_prepend(m, rte_pktmbuf_headroom(m)));
	assert_int_equal(parse_frame(&p, m), SL_DROP_TX_HEADROOM);
	assert_ptr_equal(p.mbuf, m);
	rte_pktmbuf_free(m);

	m = chain(f.b, 13, 13, 13, BUF_ROOM);
	m->ol_flags = RTE_MBUF_F_RX_VLAN_STRIPPED;
	assert_int_equal(parse_frame(&p, m), SL_DROP_RUNT);
	rte_pktmbuf_free(m);
	assert_int_equal(rte_mempool_avail_count(pool), POOL_SIZE);
}

static int
setup(void **state)
{
	char arg0[] = "test_segments", arg1[] = "--no-huge", arg2[] = "--no-shconf",
	     arg3[] = "--no-pci", arg4[] = "--no-telemetry", arg5[] = "-m", arg6[] = "64",
	     arg7[] = "--log-level=error";
	char *argv[] = {arg0, arg1, arg2, arg3, arg4, arg5, arg6, arg7, NULL};
	(void)state;

	if (rte_eal_init(RTE_DIM(argv) - 1, argv) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create("frames", POOL_SIZE, 0, 0, RTE_PKTMBUF_HEADROOM + BUF_ROOM,
		SOCKET_ID_ANY);
	return pool == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	rte_mempool_free(pool);
	return rte_eal_cleanup();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split_anywhere),
		cmocka_unit_test(test_many_small_segments),
		cmocka_unit_test(test_payload_stays_behind),
		cmocka_unit_test(test_headers_that_cannot_be_moved),
		cmocka_unit_test(test_cut_chains),
		cmocka_unit_test(test_stripped_tags),
		cmocka_unit_test(test_stripped_tags_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
