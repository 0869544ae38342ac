/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deleting a batch of namespaces, aside: their links are taken away and they are marked DYING at
 * once; after one grace period their own TCP tables are emptied, and if any of them has entries
 * elsewhere, one walk of the entry pool destroys those of all of them, in slices; after another all
 * is freed. Names can be used again from the start.
 */
#ifndef NETNS_JOB_H
#define NETNS_JOB_H

#include "gateway.h"
#include "task.h"

struct netns_job {
	struct task task;
	struct gateway *gw;
	struct netns **ns;
	unsigned int n;
	unsigned int own;  /* whose own table is being emptied; n: of none any more */
	uint32_t own_line; /* where in it */
	bool walking;
	struct ct_walk walk;
	uint32_t frag_cursor;
	uint64_t destroyed;
	void (*done)(void *arg); /* may be NULL */
	void *done_arg;
};

/* NULL: no memory. The array ns[n] is the job's from netns_job_start() on. */
struct netns_job *netns_job_new(struct gateway *gw, struct netns **ns, unsigned int n);

/* Takes the links away and marks the namespaces; their names are free from now on. */
void netns_job_start(struct netns_job *job);

/* The rest, which cannot fail. The job frees itself at its end, after done(done_arg). Without an
 * event loop that is before this returns. */
void netns_job_finish(struct netns_job *job, void (*done)(void *arg), void *done_arg);

#endif
