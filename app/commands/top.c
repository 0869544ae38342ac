/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top: a stream of samples, one at the end of each interval, with what happened in it. The walk
 * over the namespaces, which finds the busiest, is done in slices; a sample is of the time between
 * the end of its own walk and the end of the one before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "port.h"
#include "worker.h"
#include "worker_load.h"

#define NETNS_SHOWN     10
#define NETNS_PER_SLICE 2048
#define INTERVAL        1 /* seconds, when none is given */

/* What all counters stood at. */
struct mark {
	uint64_t ns; /* the gateway's clock */
	uint64_t packets, bytes, inserted;
	uint64_t drops[SL_DROP_COUNT];
	struct worker_mark worker[GW_WORKERS_MAX];
};

/* What a namespace's counters stood at, by its id. */
struct netns_mark {
	uint32_t gen;
	uint64_t packets, bytes;
};

/* A copy: the namespace may be gone before the walk is over. */
struct busy {
	char name[NETNS_NAME_MAX + 1];
	uint64_t packets, bytes; /* in the interval */
	int64_t entries;
};

struct top {
	uint64_t interval_ns, due_ns;
	unsigned int samples, wanted; /* wanted 0: no end */
	bool walking, first;
	uint32_t next_id;
	struct mark last;
	unsigned int n_busy;
	struct busy busy[NETNS_SHOWN]; /* the busiest first */
	struct netns_mark netns[NETNS_MAX];
};

static uint64_t
load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void
take_mark(struct gateway *gw, struct mark *m)
{
	unsigned int i, w;

	*m = (struct mark){.ns = gw->clock(gw).ns};
	for (i = 0; i < gw_threads(gw); i++) {
		struct ct_stats s;

		ct_stats(gw->ct, i, &s);
		m->inserted += s.insert;
	}
	worker_marks(gw, m->worker);
	for (w = 0; w < gw->n_workers; w++) {
		m->packets += m->worker[w].packets;
		for (i = SL_DROP_NONE + 1; i < SL_DROP_COUNT; i++)
			m->drops[i] += load(&gw->workers[w]->stats.drops[i]);
	}
	for (i = 0; i < GW_PORTS_MAX; i++)
		for (w = 0; gw->ports[i] != NULL && w < gw->n_workers; w++)
			m->bytes += load(&gw->ports[i]->counters[w].rx_bytes);
}

/* ---- the busiest namespaces ---- */

static void
rank(struct top *t, const struct netns *ns, uint64_t packets, uint64_t bytes)
{
	unsigned int threads = netns_registry_threads(ns->registry), i;

	if (packets == 0)
		return;
	if (t->n_busy < NETNS_SHOWN)
		t->n_busy++;
	else if (t->busy[NETNS_SHOWN - 1].packets >= packets)
		return;
	for (i = t->n_busy - 1; i > 0 && t->busy[i - 1].packets < packets; i--)
		t->busy[i] = t->busy[i - 1];
	t->busy[i] = (struct busy){
		.packets = packets, .bytes = bytes, .entries = netns_entries(ns, threads)};
	memcpy(t->busy[i].name, ns->name, sizeof(t->busy[i].name));
}

static void
look_at(struct top *t, const struct gateway *gw, const struct netns *ns)
{
	struct netns_mark *last = &t->netns[ns->id], now = {.gen = ns->gen};
	unsigned int i;

	for (i = 0; i < gw_threads(gw); i++) {
		now.packets += load(&ns->counters[i].packets);
		now.bytes += load(&ns->counters[i].bytes);
	}
	if (last->gen != ns->gen)
		*last = (struct netns_mark){0};
	if (!t->first)
		rank(t, ns, now.packets - last->packets, now.bytes - last->bytes);
	*last = now;
}

/* True when all namespaces have been looked at. */
static bool
walk_slice(struct top *t, struct gateway *gw)
{
	unsigned int i;

	for (i = 0; i < NETNS_PER_SLICE; i++) {
		const struct netns *ns = netns_next(gw->netns, &t->next_id);

		if (ns == NULL)
			return true;
		look_at(t, gw, ns);
	}
	return false;
}

/* ---- a sample ---- */

static json_t *
busy_json(const struct top *t, uint64_t ns)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < t->n_busy; i++)
		json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I}", "netns",
			t->busy[i].name, "packets_per_second",
			(json_int_t)per_second(t->busy[i].packets, ns), "bytes_per_second",
			(json_int_t)per_second(t->busy[i].bytes, ns), "entries",
			(json_int_t)t->busy[i].entries));
	return list;
}

static json_t *
drops_json(const struct mark *from, const struct mark *to)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = SL_DROP_NONE + 1; i < SL_DROP_COUNT; i++)
		if (to->drops[i] != from->drops[i])
			json_array_append_new(list, json_pack("{s:s, s:I}", "reason",
				sl_drop_name(i), "packets_per_second",
				(json_int_t)per_second(to->drops[i] - from->drops[i],
					to->ns - from->ns)));
	return list;
}

static json_t *
sample_json(const struct top *t, const struct gateway *gw, const struct mark *to)
{
	const struct mark *from = &t->last;
	uint64_t ns = to->ns - from->ns;

	return json_pack("{s:f, s:I, s:I, s:I, s:I, s:I, s:i, s:o, s:o, s:o}", "interval",
		(double)ns / (double)SL_NSEC_PER_SEC, "packets_per_second",
		(json_int_t)per_second(to->packets - from->packets, ns), "bytes_per_second",
		(json_int_t)per_second(to->bytes - from->bytes, ns), "new_per_second",
		(json_int_t)per_second(to->inserted - from->inserted, ns), "entries",
		(json_int_t)ct_count(gw->ct), "max", (json_int_t)ct_max(gw->ct), "namespaces",
		(int)netns_count(gw->netns), "workers",
		worker_loads(gw, from->worker, to->worker), "netns", busy_json(t, ns), "drops",
		drops_json(from, to));
}

/* ---- the command ---- */

static int
top_run(struct call *c)
{
	struct top *t;

	if (c->once)
		return sl_refuse(&c->err, ENOTSUP,
			"top: not available in replay: it watches a running gateway");
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	t->interval_ns = SL_NSEC_PER_SEC * (call_given(c, "interval") ? call_uint(c, "interval")
								      : INTERVAL);
	t->wanted = call_uint(c, "count");
	t->due_ns = c->gw->clock(c->gw).ns;
	t->first = true;
	c->state = t;
	return 0;
}

/* The walk is over: shows the sample, unless it is the one that all others are held against. */
static void
finish_sample(struct call *c, struct top *t)
{
	struct mark now;

	take_mark(c->gw, &now);
	if (!t->first) {
		call_item(c, sample_json(t, c->gw, &now));
		t->samples++;
	}
	t->last = now;
	t->first = false;
	t->walking = false;
	/* After a pause, such as a client that did not read, intervals begin anew. */
	t->due_ns = RTE_MAX(t->due_ns + t->interval_ns, now.ns + t->interval_ns / 2);
}

static enum task_step
top_step(struct call *c)
{
	struct top *t = c->state;
	uint64_t now = c->gw->clock(c->gw).ns;

	if (call_full(c))
		return TASK_MORE;
	if (!t->walking && now < t->due_ns) {
		c->wait_ms = (unsigned int)((t->due_ns - now) / SL_NSEC_PER_MSEC + 1);
		return TASK_WAIT;
	}
	if (!t->walking) {
		t->walking = true;
		t->next_id = 0;
		t->n_busy = 0;
	}
	if (walk_slice(t, c->gw))
		finish_sample(c, t);
	return t->wanted != 0 && t->samples == t->wanted ? TASK_DONE : TASK_MORE;
}

static void
top_end(struct call *c)
{
	free(c->state);
}

const struct command_handler commands_top[] = {
	{"top", top_run, top_step, top_end},
	{0},
};
