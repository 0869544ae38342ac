/* SPDX-License-Identifier: BSD-3-Clause */
#include "table_growth.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>

#include "err.h"
#include "log.h"
#include "resize_job.h"

SL_LOG_REGISTER(table_growth);

#define LOOK_MS 100u

/* Connections to a bucket from which on the table may be too small: with six references to a line
 * of eight on average, one in seven has more than it holds. A translated connection has two. */
#define FULL_NUM 3u
#define FULL_DEN 8u

#define LOOK_AGAIN 16u /* of so many connections one more */

struct table_growth {
	struct task task;
	struct gateway *gw;
	uint64_t idle_until; /* connections below which there is no need to look again */
};

int
table_growth_create(struct gateway *gw, struct sl_err *err)
{
	gw->growth = calloc(1, sizeof(*gw->growth));
	if (gw->growth == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	gw->growth->gw = gw;
	return 0;
}

void
table_growth_free(struct gateway *gw)
{
	free(gw->growth);
	gw->growth = NULL;
}

bool
table_growth_due(struct gateway *gw)
{
	uint64_t entries = ct_count(gw->ct), *idle_until = &gw->growth->idle_until;

	if (likely(entries * FULL_DEN <= (uint64_t)ct_buckets(gw->ct) * FULL_NUM)) {
		*idle_until = 0;
		return false;
	}
	return entries >= *idle_until && netns_knobs(netns_init_ns(gw->netns))->table_growth;
}

/* Connections in tables of their namespaces' own make no chain of this one longer. */
static bool
chains_are_long(const struct gateway *gw)
{
	struct ct_memory m;

	ct_memory(gw->ct, &m);
	return m.overflow_lines_used >= m.lines / 8;
}

/* Twice as large, or what so many of one reference need. */
static uint32_t
size_for(uint32_t buckets, uint64_t entries)
{
	uint64_t least = rte_align64pow2(entries * FULL_DEN / FULL_NUM / 2);

	return (uint32_t)RTE_MIN(RTE_MAX(least, 2 * (uint64_t)buckets), (uint64_t)CT_BUCKETS_MAX);
}

static void
grown(void *arg)
{
	const struct gateway *gw = arg;

	SL_LOG(NOTICE, "the table has grown to %u buckets for %" PRIu64 " connections",
		ct_buckets(gw->ct), ct_count(gw->ct));
}

void
table_growth_check(struct gateway *gw)
{
	uint64_t entries = ct_count(gw->ct);
	struct resize_job *job;
	struct sl_err err;

	if (!table_growth_due(gw) || ct_resize_busy(gw->ct))
		return;
	gw->growth->idle_until = entries + entries / LOOK_AGAIN;
	if (!chains_are_long(gw))
		return;
	job = resize_job_new(gw, size_for(ct_buckets(gw->ct), entries), &err);
	if (job == NULL) {
		SL_LOG(WARNING, "the table cannot grow beyond %u buckets: %s", ct_buckets(gw->ct),
			err.msg);
		gw->growth->idle_until = 2 * entries;
		return;
	}
	gw->growth->idle_until = 0;
	resize_job_start(job, grown, gw);
}

static enum task_step
look(struct task *t)
{
	struct table_growth *g = (struct table_growth *)((char *)t -
		offsetof(struct table_growth, task));

	table_growth_check(g->gw);
	task_wake_after(t, LOOK_MS);
	return TASK_WAIT;
}

void
table_growth_start(struct gateway *gw)
{
	gw->growth->task.step = look;
	task_wake_after(&gw->growth->task, LOOK_MS);
}

void
table_growth_stop(struct gateway *gw)
{
	task_cancel(&gw->growth->task);
}
