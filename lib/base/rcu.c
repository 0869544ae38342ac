/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper thread sleeps on a condition variable until a call is queued, takes the whole queue,
 * waits for one grace period with synchronize_rcu() (tens of microseconds with polling workers,
 * where call_rcu's thread naps for 10 ms) and runs the functions in the order of the calls.
 * `helper.mutex` guards the queue and the flags; it is never held while a function runs.
 */
#include "rcu.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

char sl_rcu_edge;

struct call {
	struct call *next;
	void (*fn)(void *);
	void *arg;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	pthread_t thread;
	struct call *head, **tail;
	void (*done)(void *);
	void *done_arg;
	bool running, stop;
} helper = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

void
sl_rcu_synchronize(void)
{
	urcu_qsbr_synchronize_rcu();
	sl_rcu_tsan_acquire();
}

static struct call *
take_calls(void)
{
	struct call *list;

	pthread_mutex_lock(&helper.mutex);
	while (helper.head == NULL && !helper.stop)
		pthread_cond_wait(&helper.wake, &helper.mutex);
	list = helper.head;
	helper.head = NULL;
	helper.tail = &helper.head;
	pthread_mutex_unlock(&helper.mutex);
	return list;
}

static void *
helper_main(void *arg)
{
	struct call *c, *next;

	(void)arg;
	while ((c = take_calls()) != NULL) {
		sl_rcu_synchronize();
		for (; c != NULL; c = next) {
			next = c->next;
			c->fn(c->arg);
			free(c);
		}
		if (helper.done != NULL)
			helper.done(helper.done_arg);
	}
	return NULL;
}

int
sl_rcu_start(void (*done)(void *), void *done_arg)
{
	int ret;

	helper.head = NULL;
	helper.tail = &helper.head;
	helper.done = done;
	helper.done_arg = done_arg;
	helper.stop = false;
	ret = pthread_create(&helper.thread, NULL, helper_main, NULL);
	helper.running = ret == 0;
	return -ret;
}

int
sl_rcu_call(void (*fn)(void *), void *arg)
{
	struct call *c;

	if (!helper.running)
		return -ESRCH;
	c = malloc(sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	*c = (struct call){.fn = fn, .arg = arg};
	pthread_mutex_lock(&helper.mutex);
	*helper.tail = c;
	helper.tail = &c->next;
	pthread_cond_signal(&helper.wake);
	pthread_mutex_unlock(&helper.mutex);
	return 0;
}

void
sl_rcu_stop(void)
{
	if (!helper.running)
		return;
	pthread_mutex_lock(&helper.mutex);
	helper.stop = true;
	pthread_cond_signal(&helper.wake);
	pthread_mutex_unlock(&helper.mutex);
	pthread_join(helper.thread, NULL);
	helper.running = false;
}

void
sl_rcu_free(void *p)
{
	int ret = sl_rcu_call(free, p);

	if (ret == -ENOMEM)
		sl_rcu_synchronize();
	if (ret != 0)
		free(p);
}
