/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One timer with no delay runs the queue: libevent handles what became active within a turn before
 * it polls descriptors again, a timer only after. Each turn gives every queued task one step.
 *
 * The end of a grace period comes on rcu.h's helper thread: `grace.mutex` guards the list on which
 * it leaves what is to be called on the control thread; the list's event is activated from there. A
 * thread that has done work aside does the same.
 */
#include "task.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "rcu.h"

struct grace_call {
	void (*fn)(void *arg);
	void *arg;
	void (*aside)(void *arg); /* what a thread does before; NULL: it was a grace period */
	pthread_t thread;         /* that did it */
	STAILQ_ENTRY(grace_call) link;
};

static struct {
	struct event *turn;
	TAILQ_HEAD(, task) queue;
	struct event_base *base;
} tasks = {.queue = TAILQ_HEAD_INITIALIZER(tasks.queue)};

static struct {
	pthread_mutex_t mutex;
	STAILQ_HEAD(, grace_call) over;
	struct event *event;
	unsigned int pending; /* of the control thread alone */
} grace = {.mutex = PTHREAD_MUTEX_INITIALIZER, .over = STAILQ_HEAD_INITIALIZER(grace.over)};

bool
task_live(void)
{
	return tasks.turn != NULL;
}

static void
next_turn(void)
{
	static const struct timeval none = {0, 0};

	if (tasks.turn != NULL && !TAILQ_EMPTY(&tasks.queue))
		evtimer_add(tasks.turn, &none);
}

static void
enqueue(struct task *t)
{
	if (t->queued)
		return;
	t->queued = true;
	TAILQ_INSERT_TAIL(&tasks.queue, t, link);
}

void
task_wake(struct task *t)
{
	enqueue(t);
	next_turn();
}

static void
dequeue(struct task *t)
{
	if (!t->queued)
		return;
	TAILQ_REMOVE(&tasks.queue, t, link);
	t->queued = false;
}

void
task_cancel(struct task *t)
{
	dequeue(t);
	if (t->timer != NULL)
		event_free(t->timer);
	t->timer = NULL;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	task_wake(arg);
}

void
task_wake_after(struct task *t, unsigned int ms)
{
	const struct timeval after = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};

	if (t->timer == NULL && tasks.base != NULL)
		t->timer = evtimer_new(tasks.base, on_timer, t);
	if (t->timer == NULL)
		task_wake(t);
	else
		evtimer_add(t->timer, &after);
}

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct task *t;
	unsigned int n = 0;

	(void)fd;
	(void)what;
	(void)arg;
	TAILQ_FOREACH(t, &tasks.queue, link)
	n++;
	for (; n > 0 && (t = TAILQ_FIRST(&tasks.queue)) != NULL; n--) {
		dequeue(t);
		if (t->timer != NULL)
			evtimer_del(t->timer);
		if (t->step(t) == TASK_MORE)
			enqueue(t);
	}
	next_turn();
}

void
task_run(struct task *t)
{
	enum task_step s;

	do
		s = t->step(t);
	while (s == TASK_MORE);
}

static void
on_grace_over(evutil_socket_t fd, short what, void *arg)
{
	STAILQ_HEAD(, grace_call) list = STAILQ_HEAD_INITIALIZER(list);
	struct grace_call *c;

	(void)fd;
	(void)what;
	(void)arg;
	pthread_mutex_lock(&grace.mutex);
	STAILQ_CONCAT(&list, &grace.over);
	pthread_mutex_unlock(&grace.mutex);
	while ((c = STAILQ_FIRST(&list)) != NULL) {
		STAILQ_REMOVE_HEAD(&list, link);
		if (c->aside != NULL)
			pthread_join(c->thread, NULL);
		c->fn(c->arg);
		free(c);
		grace.pending--;
	}
}

/* On the helper thread. */
static void
leave_for_control(void *arg)
{
	struct grace_call *c = arg;

	pthread_mutex_lock(&grace.mutex);
	STAILQ_INSERT_TAIL(&grace.over, c, link);
	pthread_mutex_unlock(&grace.mutex);
}

/* On the helper thread, after each batch of calls. */
static void
wake_control(void *arg)
{
	event_active(arg, EV_TIMEOUT, 0);
}

static void *
aside_main(void *arg)
{
	struct grace_call *c = arg;

	c->aside(c->arg);
	leave_for_control(c);
	wake_control(grace.event);
	return NULL;
}

int
task_aside(void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
	struct grace_call *c;
	int ret;

	if (!task_live())
		return -ESRCH;
	c = malloc(sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	*c = (struct grace_call){.fn = done, .arg = arg, .aside = fn};
	ret = pthread_create(&c->thread, NULL, aside_main, c);
	if (ret != 0)
		free(c);
	else
		grace.pending++;
	return -ret;
}

int
task_after_grace(void (*fn)(void *arg), void *arg)
{
	struct grace_call *c;
	int ret;

	if (!task_live()) {
		sl_rcu_synchronize();
		fn(arg);
		return 0;
	}
	c = malloc(sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	*c = (struct grace_call){.fn = fn, .arg = arg};
	ret = sl_rcu_call(leave_for_control, c);
	if (ret != 0)
		free(c);
	else
		grace.pending++;
	return ret;
}

int
task_start(struct event_base *base, struct sl_err *err)
{
	int ret;

	tasks.base = base;
	if (base != NULL) {
		tasks.turn = evtimer_new(base, on_turn, NULL);
		grace.event = event_new(base, -1, 0, on_grace_over, NULL);
		if (tasks.turn == NULL || grace.event == NULL) {
			task_stop();
			return sl_refuse(err, ENOMEM, "out of memory");
		}
	}
	ret = sl_rcu_start(base != NULL ? wake_control : NULL, grace.event);
	if (ret != 0) {
		task_stop();
		return sl_refuse(err, -ret, "cannot start the helper thread: %s", strerror(-ret));
	}
	return 0;
}

void
task_drain(void)
{
	while (tasks.base != NULL && (grace.pending > 0 || !TAILQ_EMPTY(&tasks.queue)))
		event_base_loop(tasks.base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
}

void
task_stop(void)
{
	sl_rcu_stop();
	if (grace.event != NULL) {
		on_grace_over(-1, 0, NULL);
		event_free(grace.event);
		grace.event = NULL;
	}
	if (tasks.turn != NULL) {
		event_free(tasks.turn);
		tasks.turn = NULL;
	}
	TAILQ_INIT(&tasks.queue);
}
