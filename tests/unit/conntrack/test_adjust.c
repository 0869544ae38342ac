/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of connections with CT_SEQADJ pass through the application, before and after the machine.
 */
#include "table_fixture.h"

static struct {
	enum ct_adjust when[4];
	unsigned int n;
	enum ct_verdict verdict; /* of the call before the machine */
	uint64_t packets;        /* that the entry had counted at the last call */
} told;

static enum ct_verdict
adjust(void *app, struct ct_thread *t, struct ct_entry *e, struct pkt *p, enum ct_adjust when)
{
	assert_ptr_equal(app, &told);
	assert_int_equal(ct_thread_index(t), 1);
	assert_ptr_equal(p->ct, e);
	assert_true(told.n < RTE_DIM(told.when));
	told.when[told.n++] = when;
	told.packets = e->orig.packets;
	if (when == CT_ADJUST_BEFORE && told.verdict == CT_DROP)
		p->reason = SL_DROP_RULE_DROP;
	return when == CT_ADJUST_BEFORE ? told.verdict : CT_OK;
}

/* A flow whose packets are counted, one so far. */
static int
setup_adjusted(void **state)
{
	struct knobs knobs;
	struct fixture *f;
	struct pkt p;

	if (setup(state) != 0)
		return -1;
	f = *state;
	f->ct->ops.adjust = adjust;
	f->ct->ops.app = &told;
	memset(&told, 0, sizeof(told));
	knobs = *netns_knobs(netns_init_ns(f->registry));
	knobs.acct = true;
	if (netns_set_knobs(netns_init_ns(f->registry), &knobs, NULL) != 0)
		return -1;
	p = flow_packet(f, 1, false);
	insert(f, f->a, &p);
	p.ct->status |= CT_SEQADJ;
	return 0;
}

static enum ct_verdict
track(struct fixture *f, struct pkt *p)
{
	*p = flow_packet(f, 1, false);
	ct_lookup_bulk(f->b, p, 1);
	assert_non_null(p->ct);
	return ct_track(f->b, p, f->now);
}

static void
test_around_the_machine(void **state)
{
	struct fixture *f = *state;
	struct pkt p;

	assert_int_equal(track(f, &p), CT_OK);
	assert_int_equal(told.n, 2);
	assert_int_equal(told.when[0], CT_ADJUST_BEFORE);
	assert_int_equal(told.when[1], CT_ADJUST_AFTER);
	assert_int_equal(told.packets, 2);
	p.ct->status &= (uint16_t)~CT_SEQADJ;
	assert_int_equal(track(f, &p), CT_OK);
	assert_int_equal(told.n, 2);
}

/* The machine does not see it. */
static void
test_dropped(void **state)
{
	struct fixture *f = *state;
	struct pkt p;

	told.verdict = CT_DROP;
	assert_int_equal(track(f, &p), CT_DROP);
	assert_int_equal(p.reason, SL_DROP_RULE_DROP);
	assert_int_equal(told.n, 1);
	assert_int_equal(p.ct->orig.packets, 1);
	assert_int_equal(ct_count(f->ct), 1);
}

static void
test_begun_anew(void **state)
{
	struct fixture *f = *state;
	struct pkt p;

	told.verdict = CT_MISS;
	assert_int_equal(track(f, &p), CT_MISS);
	assert_int_equal(told.n, 1);
	assert_int_equal(ct_count(f->ct), 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup_adjusted, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_around_the_machine),
		CASE(test_dropped),
		CASE(test_begun_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
