/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_common.h>

#include "knobs.h"
#include "tcp_limit.h"

#define THREADS 3u
#define MAX     4u

static int
setup(void **state)
{
	*state = tcp_netns_new(THREADS);
	if (*state == NULL)
		return -1;
	tcp_limit_set(*state, MAX, MAX);
	return 0;
}

static int
teardown(void **state)
{
	tcp_netns_free(*state);
	return 0;
}

static struct ct_entry
in_state(enum ct_tcp_state s)
{
	struct ct_entry e = {0};

	e.proto.tcp.state = s & 0xf;
	return e;
}

static bool
move(struct tcp_netns *tn, unsigned int thread, struct ct_entry *e, enum ct_tcp_state s)
{
	e->proto.tcp.state = s & 0xf;
	return tcp_limit_state(tn, thread, e);
}

/* Opened on one thread, established on another, ended on a third: the sums are right. */
static void
test_backlog(void **state)
{
	struct tcp_netns *tn = *state;
	struct ct_entry e[MAX + 1];
	struct tcp_count c;
	unsigned int i;

	for (i = 0; i < MAX; i++) {
		e[i] = in_state(CT_TCP_SYN_SENT);
		assert_true(tcp_limit_open(tn, i % THREADS, &e[i]));
	}
	e[MAX] = in_state(CT_TCP_SYN_SENT);
	assert_false(tcp_limit_open(tn, 0, &e[MAX]));
	tcp_netns_totals(tn, &c);
	assert_int_equal(c.half_open, MAX);
	assert_int_equal(c.backlog_full, 1);
	assert_true(move(tn, 1, &e[0], CT_TCP_SYN_RECV));
	tcp_netns_totals(tn, &c);
	assert_int_equal(c.half_open, MAX);
	assert_true(move(tn, 2, &e[0], CT_TCP_ESTABLISHED));
	tcp_limit_release(tn, 0, &e[1]);
	tcp_limit_release(tn, 0, &e[1]);
	tcp_netns_totals(tn, &c);
	assert_int_equal(c.half_open, MAX - 2);
	assert_true(tcp_limit_open(tn, 0, &e[MAX]));
	/* The one that was refused before, and one that never was half open. */
	e[1] = in_state(CT_TCP_ESTABLISHED);
	assert_true(tcp_limit_open(tn, 0, &e[1]));
	for (i = 0; i <= MAX; i++)
		tcp_limit_release(tn, 1, &e[i]);
	tcp_netns_totals(tn, &c);
	assert_int_equal(c.half_open, 0);
}

static void
test_time_wait(void **state)
{
	struct tcp_netns *tn = *state;
	struct ct_entry e[MAX + 1];
	struct tcp_count c;
	unsigned int i;

	for (i = 0; i < MAX; i++) {
		e[i] = in_state(CT_TCP_LAST_ACK);
		assert_true(move(tn, i % THREADS, &e[i], CT_TCP_TIME_WAIT));
		assert_true(move(tn, i % THREADS, &e[i], CT_TCP_TIME_WAIT));
	}
	e[MAX] = in_state(CT_TCP_LAST_ACK);
	assert_false(move(tn, 0, &e[MAX], CT_TCP_TIME_WAIT));
	tcp_limit_release(tn, 0, &e[MAX]);
	tcp_netns_totals(tn, &c);
	assert_int_equal(c.time_wait, MAX);
	assert_int_equal(c.time_wait_full, 1);
	for (i = 0; i < MAX; i++)
		tcp_limit_release(tn, 2, &e[i]);
	tcp_netns_totals(tn, &c);
	assert_int_equal(c.time_wait, 0);
}

/* What a client's new SYN or a RST makes of a connection in TIME_WAIT waits no more. */
static void
test_leaves_time_wait(void **state)
{
	struct tcp_netns *tn = *state;
	struct ct_entry e = in_state(CT_TCP_LAST_ACK), other = in_state(CT_TCP_LAST_ACK);
	struct tcp_count c;

	tcp_limit_set(tn, 1, 1);
	assert_true(move(tn, 0, &e, CT_TCP_TIME_WAIT));
	assert_false(move(tn, 0, &other, CT_TCP_TIME_WAIT));
	assert_true(move(tn, 1, &e, CT_TCP_SYN_RECV));
	tcp_netns_totals(tn, &c);
	assert_int_equal(c.time_wait, 0);
	assert_int_equal(c.half_open, 1);
	assert_true(move(tn, 0, &other, CT_TCP_TIME_WAIT));
	assert_true(move(tn, 2, &e, CT_TCP_ESTABLISHED));
	assert_true(move(tn, 2, &other, CT_TCP_CLOSE));
	tcp_netns_totals(tn, &c);
	assert_int_equal(c.time_wait, 0);
	assert_int_equal(c.half_open, 0);
}

static void
test_without_limits_all_is_counted(void **state)
{
	struct tcp_netns *tn = *state;
	struct ct_entry e[2 * MAX];
	struct tcp_count c;
	unsigned int i;

	tcp_limit_set(tn, TCP_NO_LIMIT, TCP_NO_LIMIT);
	for (i = 0; i < 2 * MAX; i++) {
		e[i] = in_state(CT_TCP_SYN_SENT);
		assert_true(tcp_limit_open(tn, 0, &e[i]));
	}
	tcp_limit_set(tn, MAX, 0);
	assert_false(tcp_limit_open(tn, 0, &(struct ct_entry){.proto.tcp.state =
						    CT_TCP_SYN_SENT}));
	assert_false(move(tn, 0, &e[0], CT_TCP_TIME_WAIT));
	tcp_netns_totals(tn, &c);
	assert_int_equal(c.half_open, 2 * MAX - 1);
	assert_int_equal(c.time_wait, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_backlog, setup, teardown),
		cmocka_unit_test_setup_teardown(test_time_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leaves_time_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_without_limits_all_is_counted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
