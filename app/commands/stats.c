/* SPDX-License-Identifier: BSD-3-Clause */
/* stats and drops. */
#include <errno.h>

#include "command.h"
#include "events.h"
#include "frag.h"
#include "tcp_table.h"
#include "worker.h"

static json_t *
netns_stats(const struct gateway *gw, const struct netns *ns)
{
	struct netns_totals sum;
	struct frag_stats held;
	struct tcp_count tcp;

	netns_totals(ns, &sum);
	frag_owner_stats(gw->frag, ns->id, &held);
	tcp_table_totals(ns, &tcp);
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
			 "s:I, s:I}",
		"netns", ns->name, "entries",
		(json_int_t)sum.entries, "created", (json_int_t)sum.created, "packets",
		(json_int_t)sum.packets, "bytes", (json_int_t)sum.bytes, "fragments",
		(json_int_t)held.fragments, "fragment_datagrams", (json_int_t)held.datagrams,
		"fragment_bytes", (json_int_t)held.bytes, "half_open", (json_int_t)tcp.half_open,
		"backlog_full", (json_int_t)tcp.backlog_full, "time_wait",
		(json_int_t)tcp.time_wait, "time_wait_full", (json_int_t)tcp.time_wait_full,
		"proxied", (json_int_t)tcp.proxied, "cookies_sent", (json_int_t)tcp.cookies_sent,
		"cookies_valid", (json_int_t)tcp.cookies_good, "cookies_invalid",
		(json_int_t)tcp.cookies_bad);
}

static json_t *
thread_stats(const struct gateway *gw, unsigned int thread)
{
	struct events_stats told;
	struct ct_stats s;

	ct_stats(gw->ct, thread, &s);
	events_stats(gw->events, thread, &told);
	return json_pack(
		"{s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
		"thread", (json_int_t)thread, "role",
		thread < gw->n_workers ? "worker" : "control", "found", (json_int_t)s.found,
		"invalid", (json_int_t)s.invalid, "insert", (json_int_t)s.insert,
		"insert_failed", (json_int_t)s.insert_failed, "race_lost",
		(json_int_t)s.race_lost, "expired", (json_int_t)s.expired, "deleted",
		(json_int_t)s.deleted, "early_drop", (json_int_t)s.early_drop, "chain_too_long",
		(json_int_t)s.chain_too_long, "lookups", (json_int_t)s.lookups, "swept",
		(json_int_t)s.swept, "walked", (json_int_t)s.walked, "events",
		(json_int_t)told.emitted, "events_lost", (json_int_t)told.lost);
}

static int
cmd_netns_or_all(struct call *c)
{
	struct netns *ns;
	int ret = call_netns(c, "netns", &ns);

	c->state = ns;
	return ret;
}

static enum task_step
cmd_stats_step(struct call *c)
{
	unsigned int i;

	if (c->state != NULL) {
		call_item(c, netns_stats(c->gw, c->state));
		return TASK_DONE;
	}
	for (i = 0; i < gw_threads(c->gw); i++)
		call_item(c, thread_stats(c->gw, i));
	return TASK_DONE;
}

/* Of all namespaces: what the workers counted, with what belongs to no namespace. */
static void
all_drops(const struct gateway *gw, uint64_t sum[SL_DROP_COUNT])
{
	unsigned int w, i;

	for (w = 0; w < gw->n_workers; w++)
		for (i = 0; i < SL_DROP_COUNT; i++)
			sum[i] +=
				__atomic_load_n(&gw->workers[w]->stats.drops[i], __ATOMIC_RELAXED);
}

/* The reasons that have occurred. */
static enum task_step
cmd_drops_step(struct call *c)
{
	struct netns_totals sum = {0};
	unsigned int i;

	if (c->state != NULL)
		netns_totals(c->state, &sum);
	else
		all_drops(c->gw, sum.drops);
	for (i = SL_DROP_NONE + 1; i < SL_DROP_COUNT; i++)
		if (sum.drops[i] != 0)
			call_item(c,
				json_pack("{s:s, s:I, s:s}", "reason", sl_drop_name(i), "packets",
					(json_int_t)sum.drops[i], "help", sl_drop_help(i)));
	return TASK_DONE;
}

const struct command_handler commands_stats[] = {
	{"stats", cmd_netns_or_all, cmd_stats_step, NULL},
	{"drops", cmd_netns_or_all, cmd_drops_step, NULL},
	{0},
};
