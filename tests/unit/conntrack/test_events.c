/* SPDX-License-Identifier: BSD-3-Clause */
/* What listeners of connections are told, and when. */
#include "table_fixture.h"

#define HEARD_MAX 16

static struct heard {
	struct {
		enum ct_event event;
		unsigned int changed;
		const struct ct_entry *entry;
		uint8_t life;
		unsigned int thread;
	} call[HEARD_MAX];
	unsigned int n;
} heard;

static void
hear(void *app, struct ct_thread *t, const struct ct_entry *e, enum ct_event event,
	unsigned int changed)
{
	assert_ptr_equal(app, &heard);
	assert_true(heard.n < HEARD_MAX);
	heard.call[heard.n].event = event;
	heard.call[heard.n].changed = changed;
	heard.call[heard.n].entry = e;
	heard.call[heard.n].life = ct_life(e);
	heard.call[heard.n++].thread = ct_thread_index(t);
}

static int
setup_listened(void **state)
{
	struct fixture *f;

	if (setup(state) != 0)
		return -1;
	f = *state;
	f->ct->ops.event = hear;
	f->ct->ops.app = &heard;
	ct_listen(f->ct, true);
	heard.n = 0;
	return 0;
}

static void
assert_heard(unsigned int i, enum ct_event event, unsigned int changed, const struct ct_entry *e)
{
	assert_true(i < heard.n);
	assert_int_equal(heard.call[i].event, event);
	assert_int_equal(heard.call[i].changed, changed);
	assert_ptr_equal(heard.call[i].entry, e);
}

static void
track(struct fixture *f, struct ct_thread *t, struct pkt *p, enum ct_verdict v)
{
	ct_lookup_bulk(t, p, 1);
	assert_int_equal(ct_track(t, p, f->now), v);
}

static void
test_life_of_a_connection_in_order(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false), r = flow_packet(f, 1, true);
	struct ct_filter all = {0};
	struct ct_walk w;
	uint64_t destroyed = 0;
	struct ct_entry *e;

	insert(f, f->a, &p);
	e = p.ct;
	assert_int_equal(heard.n, 1);
	assert_heard(0, CT_EVENT_NEW, 0, e);
	/* Nobody can have been before. */
	assert_int_equal(heard.call[0].life, CT_EMBRYO);
	track(f, f->b, &r, CT_OK);
	assert_int_equal(heard.n, 2);
	assert_heard(1, CT_EVENT_UPDATE, CT_CHANGED_STATUS, e);
	assert_int_equal(heard.call[1].thread, 1);
	/* A sign of life is no news. */
	track(f, f->b, &r, CT_OK);
	assert_int_equal(heard.n, 2);
	ct_walk_start(f->ct, &w, f->now);
	while (ct_flush_slice(f->a, &w, &all, 64, f->now, &destroyed))
		;
	assert_int_equal(destroyed, 1);
	assert_int_equal(heard.n, 3);
	assert_heard(2, CT_EVENT_DESTROY, 0, e);
	assert_int_equal(heard.call[2].life, CT_DYING);
}

static void
test_nobody_listens(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false), r = flow_packet(f, 1, true);

	ct_listen(f->ct, false);
	insert(f, f->a, &p);
	track(f, f->b, &r, CT_OK);
	assert_int_equal(heard.n, 0);
	ct_listen(f->ct, true);
	later(f, 1000000);
	ct_sweep(f->a, true, f->now);
	assert_int_equal(heard.n, 1);
	assert_heard(0, CT_EVENT_DESTROY, 0, p.ct);
}

static void
test_an_expired_entry_is_destroyed_before_the_next_is_new(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false), again = p;

	insert(f, f->a, &p);
	later(f, 1000000);
	track(f, f->a, &again, CT_MISS);
	assert_int_equal(ct_begin(f->a, &again, f->now), CT_OK);
	assert_int_equal(ct_commit(f->a, &again), CT_OK);
	assert_int_equal(heard.n, 3);
	assert_heard(1, CT_EVENT_DESTROY, 0, p.ct);
	assert_heard(2, CT_EVENT_NEW, 0, again.ct);
}

/* What never was a connection is none that ends. */
static void
test_embryos_are_not_told(void **state)
{
	struct fixture *f = *state;
	struct pkt p = flow_packet(f, 1, false), q = p;

	ct_lookup_bulk(f->a, &p, 1);
	ct_lookup_bulk(f->b, &q, 1);
	assert_int_equal(ct_begin(f->a, &p, f->now), CT_OK);
	assert_int_equal(ct_begin(f->b, &q, f->now), CT_OK);
	sl_lock(&p.ct->lock);
	ct_changed(f->a, p.ct, CT_CHANGED_MARK);
	sl_unlock(&p.ct->lock);
	ct_abort(f->a, &p);
	assert_int_equal(heard.n, 0);
	assert_int_equal(ct_commit(f->b, &q), CT_OK);
	sl_lock(&q.ct->lock);
	ct_changed(f->b, q.ct, CT_CHANGED_MARK);
	sl_unlock(&q.ct->lock);
	assert_int_equal(heard.n, 2);
	assert_heard(1, CT_EVENT_UPDATE, CT_CHANGED_MARK, q.ct);
}

#define LISTENED(f) cmocka_unit_test_setup_teardown(f, setup_listened, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LISTENED(test_life_of_a_connection_in_order),
		LISTENED(test_nobody_listens),
		LISTENED(test_an_expired_entry_is_destroyed_before_the_next_is_new),
		LISTENED(test_embryos_are_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
