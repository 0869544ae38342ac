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
#include "tcp_table.h"

#define PURGE_SLICE 16384 /* pool slots of a slice: well below a millisecond */
#define OWN_SLICE   1024  /* lines of an own table, of some connections each */
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
		tcp_table_free(job->gw, job->ns[i]);
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

/* Empties the next part of the own tables; false when all are empty. */
static bool
purge_own(struct netns_job *job)
{
	const struct ct *ct = job->gw->ct;

	while (job->own < job->n && ct_own_buckets(ct, job->ns[job->own]->id) == 0)
		job->own++;
	if (job->own == job->n)
		return false;
	if (!ct_own_purge_slice(job->gw->ct_control, job->ns[job->own]->id, &job->own_line,
		    OWN_SLICE, &job->destroyed)) {
		job->own++;
		job->own_line = 0;
	}
	return true;
}

static bool
any_entries(const struct netns_job *job)
{
	unsigned int threads = netns_registry_threads(job->gw->netns), i;

	for (i = 0; i < job->n; i++)
		if (netns_entries(job->ns[i], threads) != 0)
			return true;
	return false;
}

/* One walk for all that have entries in the table of all. */
static bool
purge_pool(struct netns_job *job)
{
	if (!job->walking) {
		if (!any_entries(job))
			return false;
		ct_walk_start(job->gw->ct, &job->walk, job->gw->clock(job->gw));
		job->walking = true;
	}
	return ct_purge_slice(job->gw->ct_control, &job->walk, PURGE_SLICE, &job->destroyed);
}

static enum task_step
purge_step(struct task *t)
{
	struct netns_job *job = (struct netns_job *)((char *)t - offsetof(struct netns_job, task));
	const struct frag_sink sink = {.lost = fragments_lost, .arg = job->gw};

	if (frag_purge_slice(job->gw->frag, &job->frag_cursor, FRAG_SLICE, owner_alive, &sink))
		return TASK_MORE;
	if (purge_own(job) || purge_pool(job))
		return TASK_MORE;
	after_grace(job, finish);
	return TASK_DONE;
}

/* A grace period after the namespaces were marked: no worker admits anything to them any more. */
static void
purge(void *arg)
{
	struct netns_job *job = arg;
	struct frag_stats held;

	link_free_detached(job->ns, job->n);
	frag_stats(job->gw->frag, &held);
	if (!any_entries(job) && held.datagrams == 0) {
		after_grace(job, finish);
		return;
	}
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
