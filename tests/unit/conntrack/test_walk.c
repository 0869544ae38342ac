/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks over the entry pool: listing, flush and purge, in slices. */
#include "table_fixture.h"

struct listed {
	unsigned int n;
	uint32_t last_index;
	const struct netns *ns;
};

static bool
see(const struct ct_view *v, void *arg)
{
	struct listed *l = arg;

	assert_true(v->index > l->last_index);
	if (l->ns != NULL)
		assert_ptr_equal(v->entry.ns, l->ns);
	l->last_index = v->index;
	l->n++;
	return true;
}

static void
test_walk_lists_each_once_in_slices(void **state)
{
	static const unsigned int cut[] = {1, 7, 500, 100000};
	struct fixture *f = *state;
	struct ct_filter all = {0};
	struct ct_walk w;
	struct pkt p;
	unsigned int i;

	for (i = 0; i < 500; i++) {
		p = flow_packet(f, i, false);
		insert(f, f->a, &p);
	}
	for (i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		struct listed l = {0};

		ct_walk_start(f->ct, &w, f->now);
		while (ct_walk_slice(f->b, &w, &all, cut[i], f->now, &(struct ct_visitor){see, &l}))
			;
		assert_int_equal(l.n, 500);
	}
}

static void
test_walk_passes_over_what_is_made_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct ct_filter all = {0};
	struct listed l = {0};
	struct ct_walk w;
	struct pkt p = flow_packet(f, 1, false);

	insert(f, f->a, &p);
	ct_walk_start(f->ct, &w, f->now);
	later(f, 1);
	p = flow_packet(f, 2, false);
	insert(f, f->a, &p);
	while (ct_walk_slice(f->b, &w, &all, 10, f->now, &(struct ct_visitor){see, &l}))
		;
	assert_int_equal(l.n, 1);
}

static void
test_listing_and_purge_stay_in_their_namespace(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = {"t1", "t2"};
	struct netns *ns[2];
	struct ct_filter of = {0};
	struct listed l = {0};
	uint64_t destroyed = 0;
	struct ct_walk w;
	struct pkt p;
	unsigned int i;

	assert_int_equal(netns_create_batch(f->registry, names, 2, netns_init_ns(f->registry), ns,
				 NULL), 0);
	for (i = 0; i < 300; i++) {
		p = packet(ns[i % 3 == 0], i, false);
		insert(f, f->a, &p);
	}
	of.ns = l.ns = ns[1];
	ct_walk_start(f->ct, &w, f->now);
	while (ct_walk_slice(f->b, &w, &of, 16, f->now, &(struct ct_visitor){see, &l}))
		;
	assert_int_equal(l.n, 100);
	netns_kill_batch(f->registry, &ns[0], 1);
	ct_walk_start(f->ct, &w, f->now);
	while (ct_purge_slice(f->b, &w, 16, &destroyed))
		;
	assert_int_equal(destroyed, 200);
	assert_int_equal(netns_entries(ns[0], THREADS), 0);
	assert_int_equal(netns_entries(ns[1], THREADS), 100);
	netns_free_batch(f->registry, &ns[0], 1);
	ct_walk_start(f->ct, &w, f->now);
	while (ct_flush_slice(f->b, &w, &of, 16, f->now, &destroyed))
		;
	assert_int_equal(destroyed, 300);
	assert_int_equal(ct_count(f->ct), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_walk_lists_each_once_in_slices),
		TEST(test_walk_passes_over_what_is_made_meanwhile),
		TEST(test_listing_and_purge_stay_in_their_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
