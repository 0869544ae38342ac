/* SPDX-License-Identifier: BSD-3-Clause */
/* The table and the life of entries, through the contract, with UDP flows. */
#include "table_fixture.h"

static void
test_both_directions_are_found(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false), r = flow_packet(f, 1, true);
	struct pkt other = flow_packet(f, 2, false);

	insert(f, f->a, &p);
	assert_true(p.flags & PKT_CT_NEW);
	ct_lookup_bulk(f->b, &r, 1);
	assert_ptr_equal(r.ct, p.ct);
	assert_int_equal(r.ct_dir, CT_REPLY);
	assert_int_equal(ct_track(f->b, &r, f->now), CT_OK);
	assert_true(r.ct->status & CT_SEEN_REPLY);
	ct_lookup_bulk(f->b, &other, 1);
	assert_null(other.ct);
	assert_int_equal(ct_count(f->ct), 1);
}

static void
test_two_workers_on_one_new_flow_keep_one_entry(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false), q = p;
	struct ct_stats s;

	ct_lookup_bulk(f->a, &p, 1);
	ct_lookup_bulk(f->b, &q, 1);
	assert_int_equal(ct_begin(f->a, &p, f->now), CT_OK);
	assert_int_equal(ct_begin(f->b, &q, f->now), CT_OK);
	assert_int_equal(ct_commit(f->a, &p), CT_OK);
	assert_int_equal(ct_commit(f->b, &q), CT_LOST);
	assert_ptr_equal(q.ct, p.ct);
	assert_int_equal(q.ct_dir, CT_ORIGINAL);
	assert_true(q.flags & PKT_RACE_LOST);
	assert_int_equal(ct_track(f->b, &q, f->now), CT_OK);
	assert_int_equal(ct_count(f->ct), 1);
	assert_int_equal(netns_entries(netns_init_ns(f->registry), THREADS), 1);
	ct_stats(f->ct, 1, &s);
	assert_int_equal(s.race_lost, 1);
}

static void
test_both_ends_at_once_make_one_entry(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false), r = flow_packet(f, 1, true);

	ct_lookup_bulk(f->a, &p, 1);
	ct_lookup_bulk(f->b, &r, 1);
	assert_int_equal(ct_begin(f->a, &p, f->now), CT_OK);
	assert_int_equal(ct_begin(f->b, &r, f->now), CT_OK);
	assert_int_equal(ct_commit(f->a, &p), CT_OK);
	/* The loser's packet goes on as a reply of the winner. */
	assert_int_equal(ct_commit(f->b, &r), CT_LOST);
	assert_ptr_equal(r.ct, p.ct);
	assert_int_equal(r.ct_dir, CT_REPLY);
	assert_int_equal(ct_count(f->ct), 1);
}

static void
test_aborted_embryo_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false);

	ct_lookup_bulk(f->a, &p, 1);
	assert_int_equal(ct_begin(f->a, &p, f->now), CT_OK);
	ct_abort(f->a, &p);
	assert_null(p.ct);
	assert_int_equal(ct_count(f->ct), 0);
	insert(f, f->a, &p);
}

static void
test_expires_at_its_deadline_and_not_before(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false), q;

	insert(f, f->a, &p);
	later(f, 29999);
	q = flow_packet(f, 1, true);
	ct_lookup_bulk(f->a, &q, 1);
	assert_int_equal(ct_track(f->a, &q, f->now), CT_OK);
	later(f, 30000);
	q = flow_packet(f, 1, false);
	ct_lookup_bulk(f->a, &q, 1);
	assert_int_equal(ct_track(f->a, &q, f->now), CT_MISS);
	assert_int_equal(ct_count(f->ct), 0);
}

static void
test_stale_reference_is_a_miss(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false), held = flow_packet(f, 1, true), fresh;

	insert(f, f->a, &p);
	ct_lookup_bulk(f->b, &held, 1);
	assert_non_null(held.ct);
	later(f, 40000);
	assert_int_equal(ct_sweep(f->a, false, f->now), 1);
	/* The same memory serves the next flow. */
	fresh = flow_packet(f, 2, false);
	insert(f, f->a, &fresh);
	assert_ptr_equal(fresh.ct, held.ct);
	assert_int_equal(ct_track(f->b, &held, f->now), CT_MISS);
}

static void
test_sweep_destroys_what_nobody_touches(void **state)
{
	struct fixture *f = *state;
	unsigned int i, swept = 0;

	for (i = 0; i < 1000; i++) {
		struct pkt p = flow_packet(f, i, false);

		insert(f, f->a, &p);
	}
	later(f, 29000);
	for (i = 0; i < 100; i++)
		swept += ct_sweep(f->b, false, f->now);
	assert_int_equal(swept, 0);
	later(f, 1000);
	for (i = 0; i < 1000; i++)
		swept += ct_sweep(f->b, false, f->now);
	assert_int_equal(swept, 1000);
	assert_int_equal(ct_count(f->ct), 0);
}

static void
test_shortened_deadline_is_seen_by_the_sweep(void **state)
{
	struct fixture *f = *state;
	struct knobs k = *netns_knobs(netns_init_ns(f->registry));
	struct pkt p = flow_packet(f, 1, false), q = p;
	unsigned int i, swept = 0;

	insert(f, f->a, &p);
	k.udp_timeout = 1000;
	assert_int_equal(netns_set_knobs(netns_init_ns(f->registry), &k, NULL), 0);
	ct_lookup_bulk(f->a, &q, 1);
	assert_int_equal(ct_track(f->a, &q, f->now), CT_OK);
	later(f, 1001);
	for (i = 0; i < 100; i++)
		swept += ct_sweep(f->a, false, f->now);
	assert_int_equal(swept, 1);
}

static void
test_full_pool_refuses(void **state)
{
	struct fixture *f = *state;
	struct pkt p;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		p = flow_packet(f, i, false);
		insert(f, f->a, &p);
	}
	assure(f, f->a, netns_init_ns(f->registry), 0, 4);
	p = flow_packet(f, 9, false);
	ct_lookup_bulk(f->b, &p, 1);
	assert_int_equal(ct_begin(f->b, &p, f->now), CT_DROP);
	assert_int_equal(p.reason, SL_DROP_CT_TABLE_FULL);
	/* Those that are in go on. */
	p = flow_packet(f, 0, true);
	ct_lookup_bulk(f->b, &p, 1);
	assert_int_equal(ct_track(f->b, &p, f->now), CT_OK);
	assert_int_equal(ct_set_max(f->ct, 5, NULL), 0);
	p = flow_packet(f, 9, false);
	insert(f, f->b, &p);
	assert_int_equal(ct_set_max(f->ct, 0, NULL), -EINVAL);
	assert_int_equal(ct_set_max(f->ct, CT_ENTRIES_MAX + 1, NULL), -EINVAL);
}

static void
test_full_namespace_refuses_alone(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = {"t1", "t2"};
	struct netns *ns[2];
	struct knobs k;
	struct pkt p;

	assert_int_equal(netns_create_batch(f->registry, names, 2, netns_init_ns(f->registry), ns,
				 NULL), 0);
	k = *netns_knobs(ns[0]);
	k.ct_max = 1;
	assert_int_equal(netns_set_knobs(ns[0], &k, NULL), 0);
	p = packet(ns[0], 1, false);
	insert(f, f->a, &p);
	assure(f, f->a, ns[0], 1, 1);
	p = packet(ns[0], 2, false);
	ct_lookup_bulk(f->b, &p, 1);
	assert_int_equal(ct_begin(f->b, &p, f->now), CT_DROP);
	assert_int_equal(p.reason, SL_DROP_CT_NETNS_FULL);
	p = packet(ns[1], 2, false);
	insert(f, f->b, &p);
}

/* Thousands of tenants with one and the same flow: chains do not grow with their number. */
static void
test_identical_flows_of_many_namespaces_spread(void **state)
{
	struct fixture *f = *state;
	enum { N = 2000 };
	static char names[N][8];
	const char *list[N];
	struct netns *ns[N];
	struct ct_memory m;
	struct pkt p;
	unsigned int i;

	for (i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "t%u", i + 1);
		list[i] = names[i];
	}
	assert_int_equal(
		netns_create_batch(f->registry, list, N, netns_init_ns(f->registry), ns, NULL), 0);
	for (i = 0; i < N; i++) {
		p = packet(ns[i], 7, false);
		insert(f, f->a, &p);
	}
	for (i = 0; i < N; i++) {
		p = packet(ns[i], 7, true);
		ct_lookup_bulk(f->b, &p, 1);
		assert_non_null(p.ct);
		assert_ptr_equal(p.ct->ns, ns[i]);
		assert_int_equal(p.ct_dir, CT_REPLY);
	}
	ct_memory(f->ct, &m);
	/* 4,000 references over 1,024 lines of eight. */
	assert_in_range(m.longest_chain, 1, 3);
}
static void
test_resize_keeps_all(void **state)
{
	static const uint32_t sizes[] = {65536, CT_BUCKETS_MIN, 1u << 20, 10000};
	struct fixture *f = *state;
	unsigned int i, k;
	struct sl_err err;
	struct pkt p;

	for (i = 0; i < MAX; i++) {
		p = flow_packet(f, i, false);
		insert(f, f->a, &p);
	}
	for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		assert_int_equal(ct_resize_start(f->ct, sizes[k], &err), 0);
		assert_int_equal(ct_resize_start(f->ct, sizes[k], &err), -EBUSY);
		while (ct_resize_slice(ct_thread(f->ct, 2), 500)) {
			/* Half moved: all are found, new ones go in, old ones out. */
			for (i = 0; i < MAX; i += 97) {
				p = flow_packet(f, i, i & 1);
				ct_lookup_bulk(f->a, &p, 1);
				assert_non_null(p.ct);
			}
		}
		ct_resize_finish(f->ct);
		while (ct_resize_release(ct_thread(f->ct, 2), 500))
			;
		for (i = 0; i < MAX; i++) {
			p = flow_packet(f, i, i & 1);
			ct_lookup_bulk(f->a, &p, 1);
			assert_non_null(p.ct);
			assert_int_equal(ct_track(f->a, &p, f->now), CT_OK);
		}
	}
	assert_int_equal(ct_buckets(f->ct), 16384);
	/* One that is given up leaves no trace. */
	assert_int_equal(ct_resize_start(f->ct, 65536, &err), 0);
	assert_int_equal(ct_resize_target(f->ct), 65536);
	ct_resize_cancel(f->ct);
	assert_int_equal(ct_resize_target(f->ct), 16384);
	assert_int_equal(ct_buckets(f->ct), 16384);
	assert_int_equal(ct_resize_start(f->ct, CT_BUCKETS_MAX + 1, &err), -EINVAL);
}

/* A packet whose lookup found a candidate of the same tag but another key is inserted like any. */
static void
test_insert_behind_an_equal_tag(void **state)
{
	struct fixture *f = *state;
	const uint64_t line_and_tag = UINT64_C(0xffff) << 48 | f->ct->lines->mask;
	struct pkt p, q, r;
	uint32_t flow = 1;

	p = flow_packet(f, flow, false);
	insert(f, f->a, &p);
	do {
		q = flow_packet(f, ++flow, false);
		q.hash = ct_tuple_hash(f->a, &q.tuple);
	} while (((q.hash ^ p.hash) & line_and_tag) != 0 && flow < 1u << 28);
	assert_true(((q.hash ^ p.hash) & line_and_tag) == 0);
	q.ct_reply_hash = p.hash; /* left from another use of the array */
	insert(f, f->a, &q);
	r = flow_packet(f, flow, true);
	ct_lookup_bulk(f->b, &r, 1);
	assert_ptr_equal(r.ct, q.ct);
	assert_int_equal(r.ct_dir, CT_REPLY);
}

static unsigned int
references(const struct fixture *f)
{
	unsigned int i, k, n = 0;

	for (i = 0; i <= f->ct->lines->mask; i++)
		for (k = 0; k < CT_SLOTS; k++)
			n += f->ct->lines->line[i].ref[k] != 0;
	return n;
}

/* A connection of an end with itself has two equal tuples. */
static void
test_equal_ends(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false);
	struct sl_err err;

	p.tuple.dst = p.tuple.src;
	p.tuple.dport = p.tuple.sport;
	insert(f, f->a, &p);
	assert_int_equal(references(f), 1);
	assert_int_equal(ct_resize_start(f->ct, 2 * ct_buckets(f->ct), &err), 0);
	while (ct_resize_slice(f->a, 64))
		;
	ct_resize_finish(f->ct);
	while (ct_resize_release(f->a, 64))
		;
	ct_lookup_bulk(f->b, &p, 1);
	assert_non_null(p.ct);
	ct_kill(f->b, &p);
	assert_int_equal(references(f), 0);
}

static void
test_chain_bound_refuses_and_counts(void **state)
{
	struct fixture *f = *state;
	struct ct_stats s;
	struct pkt p;
	unsigned int i = 0;

	f->ct->lines->chain_max = 1;
	do {
		p = flow_packet(f, i++, false);
		ct_lookup_bulk(f->a, &p, 1);
		assert_int_equal(ct_begin(f->a, &p, f->now), CT_OK);
	} while (ct_commit(f->a, &p) == CT_OK && i < MAX);
	assert_int_equal(p.reason, SL_DROP_CT_CHAIN_LONG);
	assert_int_equal(ct_count(f->ct), i - 1);
	ct_stats(f->ct, 0, &s);
	assert_int_equal(s.chain_too_long, 1);
	/* Nothing of the refused one is left. */
	ct_lookup_bulk(f->a, &p, 1);
	assert_null(p.ct);
}

static void
test_clock_wraps_under_a_flow(void **state)
{
	static const uint64_t wraps[] = {UINT64_C(1) << 31, UINT64_C(1) << 32, UINT64_C(1) << 48};
	struct fixture *f = *state;
	unsigned int i;
	struct pkt p;

	for (i = 0; i < 3; i++) {
		f->now = sl_now_from_ns((wraps[i] - 5000) * SL_NSEC_PER_MSEC);
		p = flow_packet(f, i, false);
		insert(f, f->a, &p);
		later(f, 29999);
		p = flow_packet(f, i, false);
		ct_lookup_bulk(f->a, &p, 1);
		assert_int_equal(ct_track(f->a, &p, f->now), CT_OK);
		later(f, 30000);
		p = flow_packet(f, i, false);
		ct_lookup_bulk(f->a, &p, 1);
		assert_int_equal(ct_track(f->a, &p, f->now), CT_MISS);
	}
}

static void
test_icmp_error_is_related_and_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false), e = flow_packet(f, 1, true);
	struct rte_ipv4_hdr outer = {.dst_addr = p.tuple.src.w[0]};
	uint32_t deadline;

	insert(f, f->a, &p);
	deadline = p.ct->deadline;
	later(f, 5000);
	e.flags |= PKT_ICMP_ERROR;
	e.l3 = (uint8_t *)&outer;
	ct_lookup_bulk(f->a, &e, 1);
	assert_int_equal(ct_track_error(f->a, &e, f->now), CT_OK);
	assert_true(e.flags & PKT_CT_RELATED);
	assert_int_equal(e.ct_dir, CT_REPLY);
	assert_int_equal(p.ct->deadline, deadline);
	assert_int_equal(p.ct->reply.packets, 0);
	outer.dst_addr++; /* to another than the sender */
	e = flow_packet(f, 1, true);
	e.flags |= PKT_ICMP_ERROR;
	e.l3 = (uint8_t *)&outer;
	ct_lookup_bulk(f->a, &e, 1);
	assert_int_equal(ct_track_error(f->a, &e, f->now), CT_INVALID);
	e = flow_packet(f, 2, true);
	e.flags |= PKT_ICMP_ERROR;
	e.l3 = (uint8_t *)&outer;
	ct_lookup_bulk(f->a, &e, 1);
	assert_int_equal(ct_track_error(f->a, &e, f->now), CT_INVALID);
	assert_int_equal(e.reason, SL_DROP_INV_ICMP_UNRELATED);
	assert_int_equal(ct_count(f->ct), 1);
}

static void
test_too_little_memory_is_refused(void **state)
{
	struct ct_config config = {.max_entries = CT_ENTRIES_MAX + 1, .buckets = CT_BUCKETS_MIN,
		.threads = 1};
	struct sl_err err = {""};
	(void)state;

	assert_null(ct_create(&config, &err));
	assert_non_null(strstr(err.msg, "nf_conntrack_max"));
	config.max_entries = 1000;
	config.buckets = CT_BUCKETS_MAX + 1;
	assert_null(ct_create(&config, &err));
	assert_non_null(strstr(err.msg, "nf_conntrack_buckets"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_both_directions_are_found),
		TEST(test_two_workers_on_one_new_flow_keep_one_entry),
		TEST(test_both_ends_at_once_make_one_entry),
		TEST(test_aborted_embryo_leaves_nothing),
		TEST(test_expires_at_its_deadline_and_not_before),
		TEST(test_stale_reference_is_a_miss),
		TEST(test_sweep_destroys_what_nobody_touches),
		TEST(test_shortened_deadline_is_seen_by_the_sweep),
		cmocka_unit_test_setup_teardown(test_full_pool_refuses, setup_small, teardown),
		TEST(test_full_namespace_refuses_alone),
		TEST(test_identical_flows_of_many_namespaces_spread),
		TEST(test_resize_keeps_all),
		TEST(test_equal_ends),
		TEST(test_insert_behind_an_equal_tag),
		TEST(test_chain_bound_refuses_and_counts),
		TEST(test_clock_wraps_under_a_flow),
		TEST(test_icmp_error_is_related_and_changes_nothing),
		cmocka_unit_test(test_too_little_memory_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
