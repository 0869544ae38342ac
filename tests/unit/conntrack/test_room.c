/* SPDX-License-Identifier: BSD-3-Clause */
/* The maxima, early drop and reserves, with UDP flows. */
#include "table_fixture.h"

#define SMALL 10u

static int
setup_ten(void **state)
{
	return setup_sized(state, SMALL, CT_BUCKETS_MIN);
}

#define TEST_TEN(f) cmocka_unit_test_setup_teardown(f, setup_ten, teardown)

static struct netns *
add_netns(struct fixture *f, const char *name, uint32_t max)
{
	struct netns *ns;
	struct knobs k;

	assert_int_equal(netns_create_batch(f->registry, &name, 1, netns_init_ns(f->registry), &ns,
				 NULL), 0);
	k = *netns_knobs(ns);
	k.ct_max = max;
	assert_int_equal(netns_set_knobs(ns, &k, NULL), 0);
	return ns;
}

/* As the knob is written. */
static int
set_reserve(struct fixture *f, struct netns *ns, uint32_t reserve)
{
	struct knobs k = *netns_knobs(ns);
	int ret = ct_reserve(f->ct, ns, k.ct_reserve, reserve, NULL);

	if (ret == 0) {
		k.ct_reserve = reserve;
		assert_int_equal(netns_set_knobs(ns, &k, NULL), 0);
		ct_reserve_settle(ct_thread(f->ct, 2), ns);
	}
	return ret;
}

/* A new flow: 0, or the reason why it is refused. */
static enum sl_drop
open_flow(struct fixture *f, struct ct_thread *t, struct netns *ns, uint32_t flow)
{
	struct pkt p = packet(ns, flow, false);
	enum ct_verdict v;

	ct_lookup_bulk(t, &p, 1);
	assert_null(p.ct);
	v = ct_begin(t, &p, f->now);
	if (v == CT_OK)
		v = ct_commit(t, &p);
	assert_int_equal(v, p.reason == SL_DROP_NONE ? CT_OK : CT_DROP);
	later(f, 2);
	return p.reason;
}

static void
open_flows(struct fixture *f, struct ct_thread *t, struct netns *ns, uint32_t first, uint32_t n)
{
	for (; n > 0; n--)
		assert_int_equal(open_flow(f, t, ns, first++), SL_DROP_NONE);
}

static bool
is_there(struct fixture *f, struct netns *ns, uint32_t flow)
{
	struct pkt p = packet(ns, flow, false);

	ct_lookup_bulk(f->b, &p, 1);
	return p.ct != NULL;
}

/* What is in the queues of a namespace is sound, and `n` in all. */
static void
check_queues(const struct fixture *f, const struct netns *ns, unsigned int n)
{
	unsigned int i, seen = 0;

	for (i = 0; i < THREADS; i++) {
		const struct netns_queue *q = &ns->counters[i].unassured;
		uint32_t at, before = 0;

		for (at = q->head; at != 0; before = at, at = f->ct->queued[at].next) {
			const struct ct_entry *e = &f->ct->pool[at];

			assert_int_equal(e->life, CT_LIVE);
			assert_false(e->status & CT_ASSURED);
			assert_ptr_equal(e->ns, ns);
			assert_int_equal(f->ct->slot[at].queue, i + 1);
			assert_int_equal(f->ct->queued[at].prev, before);
			assert_true(before == 0 || e->start_ns >= f->ct->pool[before].start_ns);
			assert_in_range(++seen, 1, n);
		}
		assert_int_equal(q->tail, before);
	}
	assert_int_equal(seen, n);
}

static int64_t
common(const struct fixture *f)
{
	int64_t sum = 0;
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		sum += f->ct->thread[i]->common;
	return sum;
}

static uint64_t
early_drops(const struct fixture *f)
{
	uint64_t sum = 0;
	struct ct_stats s;
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		ct_stats(f->ct, i, &s);
		sum += s.early_drop;
	}
	return sum;
}

static void
test_oldest_unassured_makes_way(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 6), *other = add_netns(f, "t2", 6);
	unsigned int i;

	open_flows(f, f->a, other, 0, 3);
	open_flows(f, f->a, ns, 0, 6);
	assure(f, f->a, ns, 0, 1);
	assure(f, f->a, ns, 3, 1);
	for (i = 6; i < 100; i++) {
		assert_int_equal(open_flow(f, f->a, ns, i), SL_DROP_NONE);
		assert_int_equal(netns_entries(ns, THREADS), 6);
		assert_true(is_there(f, ns, 0) && is_there(f, ns, 3));
		/* Four that are not assured: the youngest four. */
		assert_true(i < 9 || !is_there(f, ns, i - 4));
		assert_true(i < 9 || is_there(f, ns, i - 3));
		check_queues(f, ns, 4);
	}
	assert_int_equal(early_drops(f), 94);
	assert_int_equal(netns_entries(other, THREADS), 3);
	check_queues(f, other, 3);
}

/* The oldest of the namespace goes, in whichever worker's queue it is. */
static void
test_oldest_is_anothers(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 6);
	unsigned int i;

	for (i = 0; i < 6; i++)
		assert_int_equal(open_flow(f, i & 1 ? f->b : f->a, ns, i), SL_DROP_NONE);
	for (i = 6; i < 60; i++) {
		assert_int_equal(open_flow(f, i < 12 ? f->a : f->b, ns, i), SL_DROP_NONE);
		assert_false(is_there(f, ns, i - 6));
		assert_true(is_there(f, ns, i - 5));
		check_queues(f, ns, 6);
	}
	/* One that had none of its own so far. */
	assert_int_equal(open_flow(f, ct_thread(f->ct, 2), ns, 100), SL_DROP_NONE);
	assert_false(is_there(f, ns, 54));
	check_queues(f, ns, 6);
}

static void
test_all_assured_refuses(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 4);

	open_flows(f, f->a, ns, 0, 2);
	open_flows(f, f->b, ns, 2, 2);
	assure(f, f->b, ns, 0, 4); /* also what the other thread has inserted */
	check_queues(f, ns, 0);
	assert_int_equal(open_flow(f, f->a, ns, 9), SL_DROP_CT_NETNS_FULL);
	assert_int_equal(open_flow(f, f->b, ns, 9), SL_DROP_CT_NETNS_FULL);
	assert_int_equal(netns_entries(ns, THREADS), 4);
	assert_int_equal(early_drops(f), 0);
}

/* What is invalid, or not wanted by its rules, costs nobody his place. */
static void
test_only_an_insert_makes_room(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 3);
	struct pkt p;

	open_flows(f, f->a, ns, 0, 3);
	p = packet(ns, 7, false);
	ct_lookup_bulk(f->a, &p, 1);
	assert_int_equal(ct_begin(f->a, &p, f->now), CT_OK);
	ct_abort(f->a, &p);
	p = packet(ns, 7, false);
	p.tuple.proto = p.proto = IPPROTO_ICMP;
	p.tuple.sport = 3 << 8; /* no query */
	ct_lookup_bulk(f->a, &p, 1);
	assert_int_equal(ct_begin(f->a, &p, f->now), CT_INVALID);
	assert_int_equal(early_drops(f), 0);
	check_queues(f, ns, 3);
}

/* Between begin and commit the last that could make way has gone. */
static void
test_no_room_at_commit(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 2);
	struct pkt p = packet(ns, 7, false);
	uint32_t ids = f->a->entry_ids.n;

	open_flows(f, f->b, ns, 0, 2);
	ct_lookup_bulk(f->a, &p, 1);
	assert_int_equal(ct_begin(f->a, &p, f->now), CT_OK);
	ids = f->a->entry_ids.n;
	assure(f, f->b, ns, 0, 2);
	assert_int_equal(ct_commit(f->a, &p), CT_DROP);
	assert_int_equal(p.reason, SL_DROP_CT_NETNS_FULL);
	assert_null(p.ct);
	assert_int_equal(f->a->entry_ids.n, ids + 1);
	assert_int_equal(netns_entries(ns, THREADS), 2);
}

/* However an entry ends, it is in no queue afterwards, and its index can be used at once. */
static void
test_what_ends_leaves_its_queue(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 1000);
	struct ct_filter all = {.ns = ns};
	uint64_t destroyed = 0;
	struct pkt p, q;
	struct ct_walk w;
	unsigned int i;

	for (i = 0; i < 300; i++)
		open_flows(f, i % 3 ? f->a : f->b, ns, i, 1);
	check_queues(f, ns, 300);
	assure(f, f->a, ns, 100, 50); /* from the middle */
	check_queues(f, ns, 250);
	/* A race that is lost. */
	p = q = packet(ns, 1000, false);
	ct_lookup_bulk(f->a, &p, 1);
	ct_lookup_bulk(f->b, &q, 1);
	assert_int_equal(ct_begin(f->a, &p, f->now), CT_OK);
	assert_int_equal(ct_begin(f->b, &q, f->now), CT_OK);
	assert_int_equal(ct_commit(f->b, &q), CT_OK);
	assert_int_equal(ct_commit(f->a, &p), CT_LOST);
	check_queues(f, ns, 251);
	/* Expiry, of all but the assured ones and the last. */
	later(f, 29000);
	for (i = 0; i < 1000; i++)
		ct_sweep(f->b, false, f->now);
	assert_int_equal(netns_entries(ns, THREADS), 51);
	check_queues(f, ns, 1);
	open_flows(f, f->a, ns, 2000, 300);
	check_queues(f, ns, 301);
	ct_walk_start(f->ct, &w, f->now);
	while (ct_flush_slice(ct_thread(f->ct, 2), &w, &all, 100, f->now, &destroyed))
		;
	check_queues(f, ns, 0);
	assert_int_equal(netns_entries(ns, THREADS), 0);
	assert_int_equal(common(f), 0);
}

/* At the maximum of all, who asks takes from its own. */
static void
test_full_table_takes_from_who_asks(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 100), *other = add_netns(f, "t2", 100);
	unsigned int i;

	open_flows(f, f->a, other, 0, 5);
	open_flows(f, f->b, ns, 0, 5);
	for (i = 5; i < 30; i++) {
		assert_int_equal(open_flow(f, f->a, ns, i), SL_DROP_NONE);
		assert_int_equal(ct_count(f->ct), SMALL);
	}
	assert_int_equal(netns_entries(other, THREADS), 5);
	assert_int_equal(netns_entries(ns, THREADS), 5);
	assure(f, f->a, ns, 25, 5);
	assert_int_equal(open_flow(f, f->a, ns, 40), SL_DROP_CT_TABLE_FULL);
	assert_int_equal(netns_entries(other, THREADS), 5);
}

static void
test_reserve_stays_free(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 100), *flood = add_netns(f, "t2", 100);

	assert_int_equal(set_reserve(f, ns, 4), 0);
	open_flows(f, f->a, ns, 0, 1);
	/* The others stop at the maximum less all reserves, used or not. */
	open_flows(f, f->b, flood, 0, 6);
	assure(f, f->b, flood, 0, 6);
	assert_int_equal(open_flow(f, f->a, flood, 7), SL_DROP_CT_TABLE_FULL);
	open_flows(f, f->a, ns, 1, 2);
	assert_int_equal(open_flow(f, f->a, flood, 7), SL_DROP_CT_TABLE_FULL);
	open_flows(f, f->b, ns, 3, 1);
	assert_int_equal(ct_count(f->ct), SMALL);
	/* Beyond its reserve it is one of many, and takes from its own. */
	open_flows(f, f->b, ns, 4, 1);
	assert_false(is_there(f, ns, 0));
	assert_int_equal(early_drops(f), 1);
	assert_int_equal(netns_entries(flood, THREADS), 6);
	assert_int_equal(netns_entries(ns, THREADS), 4);
}

/* Beyond the reserve, entries are common; when some end, those that stay are reserved first. */
static void
test_reserve_is_what_is_used_first(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 100), *flood = add_netns(f, "t2", 100);
	unsigned int i, swept = 0;

	assert_int_equal(set_reserve(f, ns, 4), 0);
	open_flows(f, f->a, ns, 0, 7);
	assert_int_equal(common(f), 3);
	open_flows(f, f->b, flood, 0, 3);
	assert_int_equal(common(f), 6);
	assure(f, f->b, flood, 0, 3);
	assert_int_equal(open_flow(f, f->b, flood, 3), SL_DROP_CT_TABLE_FULL);
	assure(f, f->a, ns, 3, 4);
	later(f, 29900);
	for (i = 0; i < 100; i++)
		swept += ct_sweep(f->b, false, f->now);
	assert_int_equal(swept, 3);
	assert_int_equal(common(f), 3);
	open_flows(f, f->b, flood, 3, 3);
	assert_int_equal(open_flow(f, f->a, flood, 9), SL_DROP_NONE); /* early drop of its own */
	assert_int_equal(netns_entries(flood, THREADS), 6);
}

/* A reserve that is set when the table is full: its owner takes the room from who is above his. */
static void
test_reserve_of_a_full_table(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 100), *flood = add_netns(f, "t2", 100);
	struct netns *fair = add_netns(f, "t3", 100);

	open_flows(f, f->a, fair, 0, 2);
	open_flows(f, f->b, flood, 0, 8);
	assure(f, f->b, flood, 5, 3);
	assert_int_equal(open_flow(f, f->a, ns, 0), SL_DROP_CT_TABLE_FULL);
	assert_int_equal(set_reserve(f, ns, 6), 0);
	assert_int_equal(set_reserve(f, fair, 2), 0);
	assert_int_equal(common(f), 8);
	open_flows(f, f->a, ns, 0, 5);
	assert_int_equal(netns_entries(flood, THREADS), 3);
	assert_int_equal(netns_entries(fair, THREADS), 2);
	assert_int_equal(early_drops(f), 5);
	assert_int_equal(common(f), 3);
	/* All that is left of others is assured or within its reserve: then one of its own. */
	open_flows(f, f->a, ns, 5, 1);
	assert_int_equal(netns_entries(flood, THREADS), 3);
	assert_int_equal(netns_entries(fair, THREADS), 2);
	assert_int_equal(netns_entries(ns, THREADS), 5);
	assert_int_equal(ct_count(f->ct), SMALL);
}

static void
test_reserves_fit_the_maximum(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 100), *other = add_netns(f, "t2", 100);
	struct sl_err err;

	assert_int_equal(set_reserve(f, ns, 7), 0);
	assert_int_equal(set_reserve(f, other, 4), -ENOSPC);
	assert_int_equal(ct_reserve(f->ct, other, 0, 4, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "reserve 7"));
	assert_int_equal(set_reserve(f, other, 3), 0);
	assert_int_equal(set_reserve(f, other, 3), 0);
	assert_int_equal(ct_set_max(f->ct, 9, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "reserves"));
	assert_int_equal(ct_max(f->ct), SMALL);
	assert_int_equal(set_reserve(f, ns, 6), 0);
	assert_int_equal(ct_set_max(f->ct, 9, &err), 0);
	/* All is reserved: none is left for init. */
	assert_int_equal(open_flow(f, f->a, netns_init_ns(f->registry), 0), SL_DROP_CT_TABLE_FULL);
	open_flows(f, f->a, ns, 0, 6);
	/* It goes with its namespace. */
	ct_reserve_end(ct_thread(f->ct, 2), other);
	open_flows(f, f->a, netns_init_ns(f->registry), 0, 3);
}

/* The count of common entries is right after the reserve was changed in any way. */
static void
test_changed_reserve_counts_anew(void **state)
{
	static const uint32_t reserve[] = {5, 300, 0, 50, 1, 100, 0};
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 1000);
	unsigned int i, flow = 0;

	open_flows(f, f->a, ns, 0, 100);
	flow = 100;
	for (i = 0; i < sizeof(reserve) / sizeof(reserve[0]); i++) {
		int64_t n = netns_entries(ns, THREADS);

		assert_int_equal(set_reserve(f, ns, reserve[i]), 0);
		assert_int_equal(common(f), RTE_MAX(n - reserve[i], 0));
		open_flows(f, i & 1 ? f->a : f->b, ns, flow, 20);
		flow += 20;
		n += 20;
		assert_int_equal(common(f), RTE_MAX(n - reserve[i], 0));
	}
}

static void
test_reserve_is_not_inherited(void **state)
{
	struct fixture *f = *state;
	struct netns *ns = add_netns(f, "t1", 77), *child;
	const char *name = "t2";

	assert_int_equal(set_reserve(f, ns, 5), 0);
	assert_int_equal(netns_create_batch(f->registry, &name, 1, ns, &child, NULL), 0);
	assert_int_equal(netns_knobs(child)->ct_reserve, 0);
	assert_int_equal(netns_knobs(child)->ct_max, 77);
	assert_int_equal(netns_knobs(ns)->ct_reserve, 5);
	assert_int_equal(netns_create_batch(f->registry, &name, 1, ns, &child, NULL), -EEXIST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_oldest_unassured_makes_way),
		TEST(test_oldest_is_anothers),
		TEST(test_all_assured_refuses),
		TEST(test_only_an_insert_makes_room),
		TEST(test_no_room_at_commit),
		TEST(test_what_ends_leaves_its_queue),
		TEST_TEN(test_full_table_takes_from_who_asks),
		TEST_TEN(test_reserve_stays_free),
		TEST_TEN(test_reserve_is_what_is_used_first),
		TEST_TEN(test_reserve_of_a_full_table),
		TEST_TEN(test_reserves_fit_the_maximum),
		TEST(test_changed_reserve_counts_anew),
		TEST(test_reserve_is_not_inherited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
