/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "err.h"
#include "frag.h"
#include "fragments.h"
#include "parse.h"

#define BUFFERS 512u
#define OWNERS  16u
#define STEPS   8

static struct rte_mempool *pool;

struct losses {
	unsigned int n[SL_DROP_COUNT];
	uint32_t owner, owner_gen;
};

struct fixture {
	struct frag_table *table;
	struct losses losses;
	struct frag_policy policy;
	struct frag_train *train; /* of the last fragment that completed one */
	struct pkt p;             /* of the last fragment */
};

static void
lost(void *arg, uint32_t owner, uint32_t owner_gen, enum sl_drop reason, unsigned int n)
{
	struct losses *l = arg;

	l->n[reason] += n;
	l->owner = owner;
	l->owner_gen = owner_gen;
}

static struct frag_sink
sink(struct fixture *f)
{
	return (struct frag_sink){.lost = lost, .arg = &f->losses};
}

static void
start(struct fixture *f, uint32_t fragments)
{
	const struct frag_config config = {
		.fragments = fragments, .owners = OWNERS, .hash = SL_HASH_SIPHASH, .hash_seed = 1};
	struct sl_err err;

	memset(f, 0, sizeof(*f));
	f->table = frag_create(&config, &err);
	assert_non_null(f->table);
	f->policy = (struct frag_policy){.owner = 1,
		.owner_gen = 1,
		.high_thresh = 1 << 20,
		.timeout_ms = 30000,
		.now = sl_now_from_ns(SL_NSEC_PER_SEC)};
}

/* Everything is given back. */
static void
finish(struct fixture *f)
{
	struct frag_stats s;

	frag_stats(f->table, &s);
	assert_int_equal(s.bytes, 0);
	assert_int_equal(s.fragments, 0);
	assert_int_equal(s.datagrams, 0);
	frag_destroy(f->table);
	assert_int_equal(rte_mempool_avail_count(pool), BUFFERS);
}

static enum frag_verdict
add(struct fixture *f, const struct fragment_spec *s)
{
	const struct frag_sink to = sink(f);
	struct rte_mbuf *m = fragment_new(pool, s);
	enum frag_verdict v;

	assert_non_null(m);
	assert_int_equal(fragment_parse(&f->p, m, f->policy.owner), PARSE_FRAGMENT);
	v = frag_add(f->table, &f->p, &f->policy, &to, &f->train);
	assert_int_equal(v == FRAG_COMPLETE, f->train != NULL);
	if (v == FRAG_REFUSED)
		rte_pktmbuf_free(m);
	return v;
}

/* The datagram has this payload, in its view and in its fragments, and is freed. */
static void
expect_train(struct fixture *f, const struct fragment_spec *s, uint32_t len, unsigned int n)
{
	enum sl_drop reason;
	struct rte_mbuf *m = frag_train_view(f->train, pool, &reason);
	uint32_t done = 0, skip, take;
	struct frag_tags tags;
	struct pkt p;

	assert_int_equal(frag_train_len(f->train), n);
	assert_non_null(m);
	assert_int_equal(parse_view(&p, m), SL_DROP_NONE);
	assert_int_equal(p.l4_len, len);
	skip = (uint32_t)(p.l4 - rte_pktmbuf_mtod(m, uint8_t *));
	for (; done < len; done += take, skip = 0, m = m->next) {
		take = RTE_MIN(m->data_len - skip, len - done);
		assert_true(fragment_payload_good(
			rte_pktmbuf_mtod_offset(m, uint8_t *, skip), take, done, s));
	}
	for (done = 0; (m = frag_train_next(f->train, &tags)) != NULL; n--) {
		assert_int_equal(parse_frame(&p, m), PARSE_FRAGMENT);
		assert_int_equal(p.frag_off, done);
		assert_true(fragment_payload_good(p.l3 + p.l3_len, p.l4_len, done, s));
		done += p.l4_len;
		rte_pktmbuf_free(m);
	}
	assert_int_equal(n, 0);
	assert_int_equal(done, len);
	frag_train_free(f->train);
}

/* Steps of one datagram: ranges of 8 bytes units, `last` in bytes more; what becomes of each. */
struct step {
	uint16_t off, end; /* bytes */
	bool last;
	enum frag_verdict verdict;
	enum sl_drop reason;
	unsigned int lost; /* fragments that were held, and are dropped for the same reason */
};

struct sequence {
	const char *name;
	uint8_t family; /* 0: both */
	struct step step[STEPS];
};

#define HELD     FRAG_HELD, 0, 0
#define DONE     FRAG_COMPLETE, 0, 0
#define NO(r, n) FRAG_REFUSED, SL_DROP_FRAG_##r, n

static const struct sequence sequences[] = {
	{"in order", 0, {{0, 64, 0, HELD}, {64, 128, 0, HELD}, {128, 131, 1, DONE}}},
	{"reverse", 0, {{128, 131, 1, HELD}, {64, 128, 0, HELD}, {0, 64, 0, DONE}}},
	{"middle last", 0, {{128, 131, 1, HELD}, {0, 64, 0, HELD}, {64, 128, 0, DONE}}},
	{"first again", 0, {{0, 64, 0, HELD}, {0, 64, 0, NO(DUPLICATE, 0)}, {64, 65, 1, DONE}}},
	{"last again", 0, {{64, 65, 1, HELD}, {64, 65, 1, NO(DUPLICATE, 0)}, {0, 64, 0, DONE}}},
	{"a part again", 0, {{0, 64, 0, HELD}, {8, 32, 0, NO(DUPLICATE, 0)}, {64, 65, 1, DONE}}},
	{"in a run", 0,
		{{0, 64, 0, HELD}, {64, 128, 0, HELD}, {32, 96, 0, NO(DUPLICATE, 0)},
			{128, 129, 1, DONE}}},
	{"two that touch", 0, {{64, 128, 0, HELD}, {0, 64, 0, HELD}, {32, 96, 0, NO(OVERLAP, 2)}}},
	{"overlap behind", 0, {{0, 64, 0, HELD}, {56, 128, 0, NO(OVERLAP, 1)}}},
	{"overlap before", 0, {{64, 128, 0, HELD}, {0, 72, 0, NO(OVERLAP, 1)}}},
	{"overlap around", 0, {{64, 128, 0, HELD}, {0, 256, 0, NO(OVERLAP, 1)}}},
	{"same start, longer", 0, {{0, 64, 0, HELD}, {0, 72, 0, NO(OVERLAP, 1)}}},
	{"same start, shorter", 0,
		{{0, 64, 0, HELD}, {0, 56, 0, NO(DUPLICATE, 0)}, {64, 65, 1, DONE}}},
	{"overlap, then all", TUPLE_IPV4,
		{{0, 64, 0, HELD}, {56, 128, 0, NO(OVERLAP, 1)}, {0, 64, 0, HELD},
			{64, 65, 1, DONE}}},
	{"overlap bars", TUPLE_IPV6,
		{{0, 64, 0, HELD}, {56, 128, 0, NO(OVERLAP, 1)}, {0, 64, 0, NO(OVERLAP, 0)},
			{64, 65, 1, NO(OVERLAP, 0)}}},
	{"two ends", TUPLE_IPV4, {{64, 72, 1, HELD}, {64, 80, 1, NO(INVALID, 1)}}},
	{"two ends", TUPLE_IPV6,
		{{64, 72, 1, HELD}, {64, 80, 1, NO(INVALID, 0)}, {0, 64, 0, DONE}}},
	{"beyond the end", TUPLE_IPV4, {{64, 72, 1, HELD}, {80, 88, 0, NO(INVALID, 1)}}},
	{"beyond the end", TUPLE_IPV6,
		{{64, 72, 1, HELD}, {80, 88, 0, NO(INVALID, 0)}, {0, 64, 0, DONE}}},
	{"early end", TUPLE_IPV4, {{64, 128, 0, HELD}, {32, 40, 1, NO(INVALID, 1)}}},
	{"early end", TUPLE_IPV6,
		{{64, 128, 0, HELD}, {32, 40, 1, NO(INVALID, 0)}, {0, 64, 0, HELD},
			{128, 129, 1, DONE}}},
	{"empty", TUPLE_IPV4, {{0, 64, 0, HELD}, {64, 64, 0, NO(INVALID, 1)}}},
	{"empty", TUPLE_IPV6, {{0, 64, 0, HELD}, {64, 64, 0, NO(INVALID, 0)}, {64, 65, 1, DONE}}},
	{"unaligned", 0, {{0, 63, 0, NO(INVALID, 0)}, {0, 64, 0, HELD}, {64, 65, 1, DONE}}},
	{"as long as can be", 0, {{65512, 65515, 1, HELD}}},
	{"longer, by a byte", TUPLE_IPV4, {{65512, 65516, 1, NO(INVALID, 0)}}},
	{"as long as can be", TUPLE_IPV6, {{65528, 65535, 1, HELD}}},
};

static const char *
step_wrong(const struct fixture *f, const struct step *s, enum frag_verdict v)
{
	unsigned int i, sum = 0;

	for (i = 0; i < SL_DROP_COUNT; i++)
		sum += f->losses.n[i];
	if (v != s->verdict)
		return "verdict";
	if (v == FRAG_REFUSED && f->p.reason != s->reason)
		return "reason";
	if (sum != s->lost || f->losses.n[s->reason] != s->lost)
		return "fragments lost";
	return NULL;
}

static void
run_sequence(const struct sequence *q, uint8_t family)
{
	struct frag_sink to;
	struct fixture f;
	unsigned int i, n = 0;

	start(&f, 64);
	to = sink(&f);
	for (i = 0; i < STEPS && (q->step[i].end != 0 || q->step[i].last); i++) {
		const struct step *s = &q->step[i];
		struct fragment_spec spec = {.family = family,
			.owner = 1,
			.id = 7,
			.off = s->off,
			.len = (uint16_t)(s->end - s->off),
			.more = !s->last,
			.padding = i * 3 % 8};
		const char *wrong;
		enum frag_verdict v;

		memset(&f.losses, 0, sizeof(f.losses));
		v = add(&f, &spec);
		wrong = step_wrong(&f, s, v);
		if (wrong != NULL)
			fail_msg("IPv%u %s, step %u: %s (%s)", family, q->name, i, wrong,
				sl_drop_name(f.p.reason));
		n = v == FRAG_HELD ? n + 1 : n - s->lost;
		if (v == FRAG_COMPLETE) {
			unsigned int last = 0, j;

			for (j = 0; j <= i; j++)
				if (q->step[j].last && q->step[j].verdict != FRAG_REFUSED)
					last = q->step[j].end;
			expect_train(&f, &spec, last, n + 1);
			n = 0;
		}
	}
	frag_sweep_all(f.table, sl_now_from_ns(3600 * SL_NSEC_PER_SEC), &to);
	assert_int_equal(f.losses.n[SL_DROP_FRAG_TIMEOUT], n);
	finish(&f);
}

static void
test_sequences(void **state)
{
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(sequences); i++) {
		if (sequences[i].family != TUPLE_IPV6 && !(sequences[i].family == 0 && i == 0))
			run_sequence(&sequences[i], TUPLE_IPV4);
		if (sequences[i].family != TUPLE_IPV4)
			run_sequence(&sequences[i], TUPLE_IPV6);
	}
}

/* Every key field makes another datagram. */
static void
test_keys(void **state)
{
	struct fragment_spec s = {
		.family = TUPLE_IPV4, .owner = 1, .id = 0x10001, .len = 64, .more = true};
	struct fixture f;
	struct frag_stats stats;
	struct frag_sink to;
	(void)state;

	start(&f, 64);
	to = sink(&f);
	assert_int_equal(add(&f, &s), FRAG_HELD);
	s.id = 2;
	assert_int_equal(add(&f, &s), FRAG_HELD);
	s.family = TUPLE_IPV6;
	assert_int_equal(add(&f, &s), FRAG_HELD);
	s.id = 0x10002; /* the upper half counts too */
	assert_int_equal(add(&f, &s), FRAG_HELD);
	f.policy.owner = 2;
	assert_int_equal(add(&f, &s), FRAG_HELD);
	frag_stats(f.table, &stats);
	assert_int_equal(stats.datagrams, 5);
	frag_owner_stats(f.table, 2, &stats);
	assert_int_equal(stats.datagrams, 1);
	frag_sweep_all(f.table, sl_now_from_ns(60 * SL_NSEC_PER_SEC), &to);
	finish(&f);
}

/* Found by the sweep or not, at its deadline it is over, across the wrap of the clock. */
static void
test_deadline(void **state)
{
	struct fragment_spec first = {
		.family = TUPLE_IPV4, .owner = 1, .id = 1, .len = 64, .more = true};
	struct fragment_spec last = {
		.family = TUPLE_IPV4, .owner = 1, .id = 1, .off = 64, .len = 5};
	const uint64_t wrap = (UINT64_C(1) << 32) * SL_NSEC_PER_MSEC, ms = SL_NSEC_PER_MSEC;
	struct fixture f;
	struct frag_sink to;
	(void)state;

	start(&f, 64);
	to = sink(&f);
	f.policy.now = sl_now_from_ns(wrap - 5000 * ms);
	assert_int_equal(add(&f, &first), FRAG_HELD);
	f.policy.now = sl_now_from_ns(wrap + 24999 * ms);
	frag_sweep_all(f.table, f.policy.now, &to);
	assert_int_equal(add(&f, &last), FRAG_COMPLETE);
	expect_train(&f, &last, 69, 2);

	f.policy.now = sl_now_from_ns(wrap - 5000 * ms);
	assert_int_equal(add(&f, &first), FRAG_HELD);
	f.policy.now = sl_now_from_ns(wrap + 25000 * ms);
	assert_int_equal(add(&f, &last), FRAG_HELD);
	assert_int_equal(f.losses.n[SL_DROP_FRAG_TIMEOUT], 1);
	/* A worker's sweep finds the other one within a pass. */
	frag_sweep(f.table, sl_now_from_ns(wrap + 54999 * ms), &to);
	assert_int_equal(f.losses.n[SL_DROP_FRAG_TIMEOUT], 1);
	frag_sweep(f.table, sl_now_from_ns(wrap + 55100 * ms), &to);
	assert_int_equal(f.losses.n[SL_DROP_FRAG_TIMEOUT], 2);
	finish(&f);
}

/* Who floods gets a share of what is left, and costs nobody else anything. */
static void
test_fair(void **state)
{
	struct fragment_spec s = {.family = TUPLE_IPV4, .len = 64, .off = 64, .more = true};
	struct fixture f;
	struct frag_stats stats;
	struct frag_sink to;
	unsigned int i, owner;
	(void)state;

	start(&f, 128);
	to = sink(&f);
	f.policy.high_thresh = UINT32_MAX;
	for (owner = 1; owner < 8; owner++) {
		f.policy.owner = owner;
		memset(&f.losses, 0, sizeof(f.losses));
		for (i = 0; i < 300; i++) {
			s.id = i;
			assert_int_equal(add(&f, &s), FRAG_HELD);
			assert_true(
				f.losses.owner == owner || f.losses.n[SL_DROP_FRAG_MEMORY] == 0);
		}
	}
	for (owner = 1; owner < 8; owner++) {
		frag_owner_stats(f.table, owner, &stats);
		assert_true(stats.datagrams > 0);
	}
	frag_stats(f.table, &stats);
	assert_true(stats.fragments < 128);
	f.policy.owner = 9;
	s = (struct fragment_spec){
		.family = TUPLE_IPV4, .owner = 9, .id = 1, .len = 64, .more = true};
	assert_int_equal(add(&f, &s), FRAG_HELD);
	frag_sweep_all(f.table, sl_now_from_ns(60 * SL_NSEC_PER_SEC), &to);
	finish(&f);
}

/* Buffers count, not the bytes in them; the oldest makes room. */
static void
test_high_thresh(void **state)
{
	struct fragment_spec s = {
		.family = TUPLE_IPV4, .owner = 1, .len = 8, .off = 8, .more = true};
	struct fixture f;
	struct frag_stats stats;
	struct frag_sink to;
	(void)state;

	start(&f, 128);
	to = sink(&f);
	f.policy.high_thresh = 10000;
	for (s.id = 0; s.id < 50; s.id++)
		assert_int_equal(add(&f, &s), FRAG_HELD);
	frag_owner_stats(f.table, 1, &stats);
	assert_in_range(stats.bytes, 5000, 10000);
	assert_int_equal(stats.fragments + f.losses.n[SL_DROP_FRAG_LIMIT], 50);
	s = (struct fragment_spec){
		.family = TUPLE_IPV4, .owner = 1, .id = 49, .len = 8, .more = true};
	assert_int_equal(add(&f, &s), FRAG_HELD); /* the newest is still there */
	f.policy.high_thresh = 0;
	assert_int_equal(add(&f, &s), FRAG_REFUSED);
	assert_int_equal(f.p.reason, SL_DROP_FRAG_LIMIT);
	frag_sweep_all(f.table, sl_now_from_ns(60 * SL_NSEC_PER_SEC), &to);
	finish(&f);
}

static bool
first_lives(void *arg, uint32_t owner, uint32_t owner_gen)
{
	(void)arg;
	return owner == 1 && owner_gen == 1;
}

static void
test_purge(void **state)
{
	struct fragment_spec s = {
		.family = TUPLE_IPV4, .owner = 1, .id = 1, .len = 64, .more = true};
	struct fixture f;
	struct frag_stats stats;
	struct frag_sink to;
	uint32_t cursor = 0;
	(void)state;

	start(&f, 64);
	to = sink(&f);
	assert_int_equal(add(&f, &s), FRAG_HELD);
	f.policy.owner = 2;
	assert_int_equal(add(&f, &s), FRAG_HELD);
	s.family = TUPLE_IPV6;
	assert_int_equal(add(&f, &s), FRAG_HELD);
	while (frag_purge_slice(f.table, &cursor, 7, first_lives, &to))
		;
	assert_int_equal(f.losses.n[SL_DROP_NETNS_DYING], 2);
	assert_int_equal(f.losses.owner, 2);
	frag_owner_stats(f.table, 1, &stats);
	assert_int_equal(stats.datagrams, 1);
	/* The next owner of the id never meets what the last one left. */
	f.policy.owner = 1;
	f.policy.owner_gen = 2;
	s = (struct fragment_spec){.family = TUPLE_IPV4, .owner = 1, .id = 1, .off = 64, .len = 3};
	assert_int_equal(add(&f, &s), FRAG_HELD);
	assert_int_equal(f.losses.n[SL_DROP_NETNS_DYING], 3);
	frag_destroy(f.table); /* with what is held */
	assert_int_equal(rte_mempool_avail_count(pool), BUFFERS);
}

/* Chained buffers: payload over segments, padding in a segment of its own. */
static void
test_segments(void **state)
{
	struct fragment_spec first = {
		.family = TUPLE_IPV4, .owner = 1, .id = 1, .len = 1600, .more = true};
	struct fragment_spec last = {
		.family = TUPLE_IPV4, .owner = 1, .id = 1, .off = 1600, .len = 700};
	struct rte_mbuf *m, *tail, *padding;
	const struct frag_sink to = {.lost = lost, .arg = NULL};
	struct fixture f;
	(void)state;

	start(&f, 64);
	m = fragment_new(pool, &first);
	tail = rte_pktmbuf_alloc(pool);
	padding = rte_pktmbuf_alloc(pool);
	assert_true(m != NULL && tail != NULL && padding != NULL);
	memcpy(rte_pktmbuf_append(tail, 900), rte_pktmbuf_mtod_offset(m, char *, 734), 900);
	assert_int_equal(rte_pktmbuf_trim(m, 900), 0);
	memset(rte_pktmbuf_append(padding, 40), 0xee, 40);
	assert_int_equal(rte_pktmbuf_chain(m, tail), 0);
	assert_int_equal(rte_pktmbuf_chain(m, padding), 0);
	assert_int_equal(fragment_parse(&f.p, m, 1), PARSE_FRAGMENT);
	assert_int_equal(frag_add(f.table, &f.p, &f.policy, &to, &f.train), FRAG_HELD);
	assert_int_equal(add(&f, &last), FRAG_COMPLETE);
	m = frag_train_view(f.train, pool, &(enum sl_drop){0});
	assert_non_null(m);
	assert_int_equal(parse_view(&f.p, m), SL_DROP_NONE);
	assert_int_equal(f.p.l4_len, 2300);
	m = frag_train_next(f.train, &(struct frag_tags){0});
	assert_int_equal(m->nb_segs, 2);
	assert_int_equal(m->pkt_len, 1634);
	assert_int_equal(m->data_len + m->next->data_len, 1634);
	assert_null(m->next->next);
	rte_pktmbuf_free(m);
	frag_train_free(f.train); /* with the last one */
	finish(&f);
}

/* No buffer for a view: the fragments are still there to be dropped. */
static void
test_no_buffer(void **state)
{
	struct fragment_spec first = {
		.family = TUPLE_IPV4, .owner = 1, .id = 1, .len = 64, .more = true};
	struct fragment_spec last = {
		.family = TUPLE_IPV4, .owner = 1, .id = 1, .off = 64, .len = 64};
	struct rte_mbuf *all[BUFFERS];
	enum sl_drop reason;
	struct fixture f;
	unsigned int n;
	(void)state;

	start(&f, 64);
	assert_int_equal(add(&f, &first), FRAG_HELD);
	assert_int_equal(add(&f, &last), FRAG_COMPLETE);
	for (n = 0; (all[n] = rte_pktmbuf_alloc(pool)) != NULL; n++)
		;
	assert_null(frag_train_view(f.train, pool, &reason));
	assert_int_equal(reason, SL_DROP_FRAG_MEMORY);
	rte_pktmbuf_free_bulk(all, n);
	assert_int_equal(frag_train_len(f.train), 2);
	frag_train_free(f.train);
	finish(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_fair),
		cmocka_unit_test(test_high_thresh),
		cmocka_unit_test(test_purge),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_no_buffer),
	};
	int ret;

	pool = fragments_pool("test_packet_frag", BUFFERS);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	rte_mempool_free(pool);
	return ret;
}
