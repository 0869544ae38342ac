/* SPDX-License-Identifier: BSD-3-Clause */
#include "forget.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "rcu.h"
#include "task.h"

#define SLICE 16384u /* pool slots: well below a millisecond */

struct forget {
	struct task task;
	struct gateway *gw;
	bool (*match)(const struct ct_view *v, const void *arg);
	void *arg;
	void (*done)(void *arg);
	struct ct_walk walk;
	uint64_t destroyed;
};

/* Waits in place when there is no memory to wait aside. */
static void
after_grace(void (*fn)(void *arg), struct forget *f)
{
	if (task_after_grace(fn, f) == 0)
		return;
	sl_rcu_synchronize();
	fn(f);
}

/* What other threads were just destroying is gone, too. */
static void
finish(void *arg)
{
	struct forget *f = arg;

	if (f->done != NULL)
		f->done(f->arg);
	free(f);
}

static enum task_step
step(struct task *t)
{
	struct forget *f = (struct forget *)((char *)t - offsetof(struct forget, task));
	const struct ct_filter filter = {.match = f->match, .match_arg = f->arg};

	if (ct_flush_slice(f->gw->ct_control, &f->walk, &filter, SLICE, f->gw->clock(f->gw),
		    &f->destroyed))
		return TASK_MORE;
	after_grace(finish, f);
	return TASK_DONE;
}

static void
start(void *arg)
{
	struct forget *f = arg;

	ct_walk_start(f->gw->ct, &f->walk, f->gw->clock(f->gw));
	f->task.step = step;
	if (task_live())
		task_wake(&f->task);
	else
		task_run(&f->task);
}

int
forget_connections(struct gateway *gw, bool (*match)(const struct ct_view *v, const void *arg),
	void *arg, void (*done)(void *arg))
{
	struct forget *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->gw = gw;
	f->match = match;
	f->arg = arg;
	f->done = done;
	after_grace(start, f);
	return 0;
}
