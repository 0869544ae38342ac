/* SPDX-License-Identifier: BSD-3-Clause */
/* The bus: who gets what, in which order, and what is lost. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "events.h"

#define THREADS 3u

static struct netns red = {.id = 1, .gen = 3, .name = "red"};
static struct netns red_before = {.id = 1, .gen = 2, .name = "red"};
static struct netns blue = {.id = 2, .gen = 1, .name = "blue"};
static struct sl_err err;

static int
setup(void **state)
{
	*state = events_create(THREADS);
	return *state != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	events_destroy(*state);
	return 0;
}

static void
emit(struct events *e, unsigned int thread, const struct netns *ns, enum event_type type,
	uint32_t mark)
{
	struct event ev;

	event_init(&ev, type, sizeof(ev.ct));
	ev.ct.mark = mark;
	events_emit(e, thread, ns, sl_now_from_ns(mark * SL_NSEC_PER_MSEC), &ev);
}

static struct event_subscription *
listen_to(struct events *e, uint32_t types, const struct netns *ns)
{
	struct event_subscription *s = NULL;

	assert_int_equal(events_open(e, types, ns, &s, &err), 0);
	return s;
}

static void
assert_reads(struct event_subscription *s, const char *expected)
{
	struct event ev[16];
	unsigned int n = events_read(s, ev, 16), i;
	char text[17] = "";

	for (i = 0; i < n; i++)
		text[i] = (char)ev[i].ct.mark;
	assert_string_equal(text, expected);
}

static void
test_wanted_follows_who_listens(void **state)
{
	struct events *e = *state;
	struct event_subscription *s, *t;

	assert_false(events_wanted(e, EVENT_CT_NEW));
	s = listen_to(e, EVENT_BIT(EVENT_CT_NEW), NULL);
	t = listen_to(e, EVENTS_CT, &red);
	assert_true(events_wanted(e, EVENT_CT_DESTROY));
	events_close(e, t);
	assert_true(events_wanted(e, EVENT_CT_NEW));
	assert_false(events_wanted(e, EVENT_CT_DESTROY));
	events_close(e, s);
	assert_false(events_wanted(e, EVENT_CT_NEW));
}

static void
test_a_record_is_a_copy(void **state)
{
	struct events *e = *state;
	struct event_subscription *s = listen_to(e, EVENTS_CT, NULL);
	struct netns gone = {.id = 7, .gen = 9, .name = "gone"};
	struct event ev;

	emit(e, 1, &gone, EVENT_CT_UPDATE, 'x');
	memset(&gone, 0xff, sizeof(gone));
	assert_int_equal(events_read(s, &ev, 1), 1);
	assert_string_equal(ev.netns, "gone");
	assert_int_equal(ev.netns_id, 7);
	assert_int_equal(ev.netns_gen, 9);
	assert_int_equal(ev.type, EVENT_CT_UPDATE);
	assert_int_equal(ev.thread, 1);
	assert_int_equal(ev.ns, 'x' * SL_NSEC_PER_MSEC);
	assert_int_equal(events_read(s, &ev, 1), 0);
}

static void
test_threads_in_order_of_time(void **state)
{
	struct events *e = *state;
	struct event_subscription *s = listen_to(e, EVENTS_CT, NULL);

	emit(e, 2, &red, EVENT_CT_NEW, 'a');
	emit(e, 0, &red, EVENT_CT_UPDATE, 'b');
	emit(e, 1, &red, EVENT_CT_NEW, 'c');
	emit(e, 0, &red, EVENT_CT_NEW, 'd');
	emit(e, 2, &red, EVENT_CT_DESTROY, 'e');
	assert_reads(s, "abcde");
}

/* Not even one of the same id, before or after. */
static void
test_a_namespace_sees_its_own_alone(void **state)
{
	struct events *e = *state;
	struct event_subscription *r = listen_to(e, EVENTS_CT, &red);
	struct event_subscription *b = listen_to(e, EVENT_BIT(EVENT_CT_DESTROY), &blue);
	struct event_subscription *all = listen_to(e, EVENTS_CT, NULL);

	emit(e, 0, &red_before, EVENT_CT_DESTROY, 'a');
	emit(e, 0, &red, EVENT_CT_NEW, 'b');
	emit(e, 1, &blue, EVENT_CT_NEW, 'c');
	emit(e, 1, &blue, EVENT_CT_DESTROY, 'd');
	assert_reads(r, "b");
	assert_reads(b, "d");
	assert_reads(all, "abcd");
}

static void
test_what_does_not_fit_is_lost_and_counted(void **state)
{
	struct events *e = *state;
	struct event_subscription *full = listen_to(e, EVENTS_CT, NULL), *other;
	struct events_stats stats;
	struct event ev;
	unsigned int i, n = 0;
	uint64_t lost;

	other = listen_to(e, EVENTS_CT, &blue);
	for (i = 0; i < 10000; i++)
		emit(e, 0, &red, EVENT_CT_NEW, 'r');
	emit(e, 0, &blue, EVENT_CT_NEW, 'b');
	assert_reads(other, "b");
	assert_int_equal(events_lost(other), 0);
	while (events_read(full, &ev, 1) == 1) {
		assert_int_equal(ev.ct.mark, 'r');
		n++;
	}
	assert_true(n >= 4000);
	lost = events_lost(full);
	assert_int_equal(n + lost, 10001);
	assert_int_equal(events_lost(full), 0);
	events_stats(e, 0, &stats);
	assert_int_equal(stats.emitted, n + 1);
	assert_int_equal(stats.lost, lost);
	emit(e, 0, &red, EVENT_CT_NEW, 'a');
	assert_reads(full, "a");
}

static void
test_kept_from_one_command_to_the_next(void **state)
{
	struct events *e = *state;
	struct event_subscription *s, *t;

	assert_int_equal(events_open_kept(e, EVENTS_CT, &red, &s, &err), 0);
	assert_reads(s, "");
	events_close(e, s);
	emit(e, 0, &red, EVENT_CT_NEW, 'a');
	assert_int_equal(events_open_kept(e, EVENTS_CT, NULL, &t, &err), 0);
	assert_ptr_not_equal(t, s);
	assert_int_equal(events_open_kept(e, EVENTS_CT, &red, &t, &err), 0);
	assert_ptr_equal(t, s);
	assert_reads(t, "a");
}

static void
test_only_so_many_listen(void **state)
{
	struct events *e = *state;
	struct event_subscription *s[EVENT_LISTENERS], *more;
	unsigned int i;

	for (i = 0; i < EVENT_LISTENERS; i++)
		s[i] = listen_to(e, EVENTS_CT, NULL);
	assert_int_equal(events_open(e, EVENTS_CT, NULL, &more, &err), -EBUSY);
	assert_non_null(strstr(err.msg, "16"));
	events_close(e, s[3]);
	s[3] = listen_to(e, EVENTS_CT, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_wanted_follows_who_listens),
		TEST(test_a_record_is_a_copy),
		TEST(test_threads_in_order_of_time),
		TEST(test_a_namespace_sees_its_own_alone),
		TEST(test_what_does_not_fit_is_lost_and_counted),
		TEST(test_kept_from_one_command_to_the_next),
		TEST(test_only_so_many_listen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
