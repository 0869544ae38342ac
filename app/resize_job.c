/* SPDX-License-Identifier: BSD-3-Clause */
#include "resize_job.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "err.h"
#include "rcu.h"

#define MOVE_SLICE 2048u  /* lines, with up to some thousand connections: about a millisecond */
#define FREE_SLICE 65536u /* lines that are only looked at */

struct resize_job *
resize_job_new(struct gateway *gw, uint32_t buckets, struct sl_err *err)
{
	struct resize_job *job = calloc(1, sizeof(*job));

	if (job == NULL) {
		sl_refuse(err, ENOMEM, "out of memory");
		return NULL;
	}
	job->gw = gw;
	if (ct_resize_start(gw->ct, buckets, err) != 0) {
		free(job);
		return NULL;
	}
	return job;
}

void
resize_job_cancel(struct resize_job *job)
{
	ct_resize_cancel(job->gw->ct);
	free(job);
}

static void
run(struct resize_job *job, enum task_step (*step)(struct task *t))
{
	job->task.step = step;
	if (task_live())
		task_wake(&job->task);
	else
		task_run(&job->task);
}

static enum task_step
free_step(struct task *t)
{
	struct resize_job *job =
		(struct resize_job *)((char *)t - offsetof(struct resize_job, task));

	if (ct_resize_release(job->gw->ct_control, FREE_SLICE))
		return TASK_MORE;
	job->done(job->done_arg);
	free(job);
	return TASK_DONE;
}

/* No worker looks into the old lines any more. */
static void
retired(void *arg)
{
	run(arg, free_step);
}

static enum task_step
move_step(struct task *t)
{
	struct resize_job *job =
		(struct resize_job *)((char *)t - offsetof(struct resize_job, task));

	if (ct_resize_slice(job->gw->ct_control, MOVE_SLICE))
		return TASK_MORE;
	ct_resize_finish(job->gw->ct);
	if (task_after_grace(retired, job) != 0) {
		sl_rcu_synchronize();
		retired(job);
	}
	return TASK_DONE;
}

void
resize_job_start(struct resize_job *job, void (*done)(void *arg), void *done_arg)
{
	job->done = done;
	job->done_arg = done_arg;
	run(job, move_step);
}
