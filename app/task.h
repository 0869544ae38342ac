/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work in slices on the control thread. A task's step() does a bounded piece of work and says how
 * to go on; between two steps the event loop serves everyone else. All on the control thread,
 * except that what a grace period ends is signalled from the helper thread of rcu.h, and work done
 * aside from its own, inside this module.
 *
 * Replay has no event loop: there a task is run to its end by task_run(), and a grace period is
 * waited for in place.
 */
#ifndef TASK_H
#define TASK_H

#include <stdbool.h>
#include <sys/queue.h>

struct event;
struct event_base;
struct sl_err;

enum task_step {
	TASK_DONE, /* the task is over; step() may have freed it */
	TASK_MORE, /* again at the next turn of the loop */
	TASK_WAIT, /* not before task_wake() */
};

struct task {
	enum task_step (*step)(struct task *t);
	bool queued;
	struct event *timer; /* of task_wake_after(), or NULL */
	TAILQ_ENTRY(task) link;
};

/* Starts the machinery on an event loop, and the helper thread with it. 0 or -errno. */
int task_start(struct event_base *base, struct sl_err *err);
void task_stop(void);

/* Has step() called at the next turn of the loop. Does nothing when that is due already. */
void task_wake(struct task *t);

/* The same after a time, unless something wakes it before. Without memory for it: at once. */
void task_wake_after(struct task *t, unsigned int ms);

/* A task that will not be run again, whoever may want to wake it. */
void task_cancel(struct task *t);

/*
 * Runs fn(arg) on the control thread after a grace period; without an event loop, at once in place.
 * 0, or -ENOMEM, and then nothing happens.
 */
int task_after_grace(void (*fn)(void *arg), void *arg);

/*
 * Runs fn(arg) on a thread of its own, which shares nothing with the control thread but arg, and
 * then done(arg) on the control thread. -errno, and nothing happens: there is no event loop, no
 * memory or no thread.
 */
int task_aside(void (*fn)(void *arg), void (*done)(void *arg), void *arg);

/* Without an event loop: runs the task until it is done. */
void task_run(struct task *t);

/* Whether there is an event loop. */
bool task_live(void);

/* Runs the event loop until no task is queued and nothing is done aside or waits for a grace
 * period. */
void task_drain(void);

#endif
