/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resizing the conntrack table, aside: in slices, between which other commands are served. One at a
 * time: a second is refused until the first has ended.
 */
#ifndef RESIZE_JOB_H
#define RESIZE_JOB_H

#include "gateway.h"
#include "task.h"

struct resize_job {
	struct task task;
	struct gateway *gw;
	void (*done)(void *arg);
	void *done_arg;
};

/* Gets all memory that it needs; NULL with err filled when that, or the size, is refused. */
struct resize_job *resize_job_new(struct gateway *gw, uint32_t buckets, struct sl_err *err);

/* Gives it up before its start. */
void resize_job_cancel(struct resize_job *job);

/* The rest, which cannot fail. The job frees itself at its end, after done(done_arg). Without an
 * event loop that is before this returns. */
void resize_job_start(struct resize_job *job, void (*done)(void *arg), void *done_arg);

#endif
