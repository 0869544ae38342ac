/* SPDX-License-Identifier: BSD-3-Clause */
/* show version, show memory. */
#include <rte_mempool.h>
#include <rte_version.h>

#include "command.h"
#include "connlimit.h"
#include "events.h"
#include "frag.h"
#include "ruleset.h"

static int
show_version(struct call *c)
{
	c->result = json_pack("{s:s, s:s, s:s}", "sluice", SLUICE_VERSION, "dpdk", rte_version(),
		"compiler", __VERSION__);
	return 0;
}

/* Memory is not the same from one machine to the next, so that replay does not print it. */
static json_t *
bytes(const struct gateway *gw, uint64_t n)
{
	return gw->replay ? json_null() : json_integer((json_int_t)n);
}

/* Of limits, rules and listeners. */
static json_t *
show_others(const struct gateway *gw)
{
	struct connlimit_memory limits;
	unsigned int programs;
	uint64_t rules;

	connlimit_memory(gw->limits, &limits);
	ruleset_memory(&programs, &rules);
	return json_pack("{s:o, s:I, s:I, s:I, s:o, s:o}", "limit_bytes", bytes(gw, limits.present),
		"limit_keys", (json_int_t)limits.keys, "limit_keys_max",
		(json_int_t)limits.keys_max, "rule_programs", (json_int_t)programs, "rule_bytes",
		bytes(gw, rules), "event_bytes", bytes(gw, events_memory(gw->events)));
}

static int
show_memory(struct call *c)
{
	const struct gateway *gw = c->gw;
	struct frag_stats f;
	struct ct_memory m;
	json_t *others;

	ct_memory(gw->ct, &m);
	frag_stats(gw->frag, &f);
	c->result = json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o,"
				" s:I, s:I, s:I, s:I, s:o}",
		"pool_bytes", bytes(gw, m.pool_present), "lines_bytes", bytes(gw, m.lines_present),
		"walk_bytes", bytes(gw, m.walk_present), "entries", (json_int_t)ct_count(gw->ct),
		"max", (json_int_t)ct_max(gw->ct), "high_water", (json_int_t)m.high_water, "lines",
		(json_int_t)m.lines, "overflow_lines", (json_int_t)m.overflow_lines_used,
		"longest_chain", (json_int_t)m.longest_chain, "buffers", bytes(gw, gw->pool->size),
		"buffers_free", bytes(gw, rte_mempool_avail_count(gw->pool)),
		"fragments", (json_int_t)f.fragments, "fragment_datagrams", (json_int_t)f.datagrams,
		"fragment_bytes", (json_int_t)f.bytes, "own_tables", (json_int_t)m.own_tables,
		"own_tables_bytes", bytes(gw, m.own_present));
	others = show_others(gw);
	json_object_update(c->result, others);
	json_decref(others);
	return 0;
}

const struct command_handler commands_show[] = {
	{"show.version", show_version, NULL, NULL},
	{"show.memory", show_memory, NULL, NULL},
	{0},
};
