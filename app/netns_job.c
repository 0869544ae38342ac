/* SPDX-License-Identifier: BSD-3-Clause */
#include "netns_job.h"

#include <stddef.h>
#include <stdlib.h>

#include "connlimit.h"
#include "frag.h"
#include "link.h"
#include "nat.h"
#include "netns_rules.h"
#include "rcu.h"
#include "rule_store.h"

#define PURGE_SLICE 16384 /* pool slots of a slice: well below a millisecond */
#define FRAG_SLICE  1024  /* datagrams, of some fragments each */

struct netns_job *
netns_job_new(struct gateway *gw, struct netns **ns, unsigned int n)
{
	struct netns_job *job = calloc(1, sizeof(*job));

	if (job == NULL)
		return NULL;
	job->gw = gw;
	job->ns = ns;
	job->n = n;
	return job;
}

/* Calls fn(job) after a grace period; when there is no memory to do so aside, waits in place. */
static void
after_grace(struct netns_job *job, void (*fn)(void *arg))
{
	if (task_after_grace(fn, job) == 0)
		return;
	sl_rcu_synchronize();
	fn(job);
}

static void
finish(void *arg)
{
	struct netns_job *job = arg;
	unsigned int i;

	for (i = 0; i < job->n; i++) {
		netns_rules_free(job->ns[i]);
		rule_store_free(job->ns[i]);
		connlimit_netns_free(job->ns[i]);
		ct_reserve_end(job->gw->ct_control, job->ns[i]);
		nat_netns_free(job->ns[i]);
	}
	netns_free_batch(job->gw->netns, job->ns, job->n);
	if (job->done != NULL)
		job->done(job->done_arg);
	free(job->ns);
	free(job);
}

static bool
owner_alive(void *arg, uint32_t owner, uint32_t owner_gen)
{
	const struct gateway *gw = arg;
	const struct netns *ns = netns_by_id(gw->netns, owner);

	return ns != NULL && ns->gen == owner_gen && netns_alive(ns);
}

/* Their namespace goes, and its counters with it. */
static void
fragments_lost(void *arg, uint32_t owner, uint32_t owner_gen, enum sl_drop reason, unsigned int n)
{
	(void)arg;
	(void)owner;
	(void)owner_gen;
	(void)reason;
	(void)n;
}

static enum task_step
purge_step(struct task *t)
{
	struct netns_job *job = (struct netns_job *)((char *)t - offsetof(struct netns_job, task));
	const struct frag_sink sink = {.lost = fragments_lost, .arg = job->gw};

	if (frag_purge_slice(job->gw->frag, &job->frag_cursor, FRAG_SLICE, owner_alive, &sink))
		return TASK_MORE;
	if (ct_purge_slice(job->gw->ct_control, &job->walk, PURGE_SLICE, &job->destroyed))
		return TASK_MORE;
	after_grace(job, finish);
	return TASK_DONE;
}

/* A grace period after the namespaces were marked: no worker admits anything to them any more. */
static void
purge(void *arg)
{
	struct netns_job *job = arg;
	unsigned int threads = netns_registry_threads(job->gw->netns), i;
	struct frag_stats held;
	int64_t entries = 0;

	link_free_detached(job->ns, job->n);
	for (i = 0; i < job->n; i++)
		entries += netns_entries(job->ns[i], threads);
	frag_stats(job->gw->frag, &held);
	if (entries == 0 && held.datagrams == 0) {
		after_grace(job, finish);
		return;
	}
	/* A walk that has not begun is over: fragments alone need none. */
	if (entries != 0)
		ct_walk_start(job->gw->ct, &job->walk, job->gw->clock(job->gw));
	job->task.step = purge_step;
	if (task_live())
		task_wake(&job->task);
	else
		task_run(&job->task);
}

void
netns_job_start(struct netns_job *job)
{
	link_detach_netns(job->gw, job->ns, job->n);
	netns_kill_batch(job->gw->netns, job->ns, job->n);
}

void
netns_job_finish(struct netns_job *job, void (*done)(void *arg), void *done_arg)
{
	job->done = done;
	job->done_arg = done_arg;
	after_grace(job, purge);
}
