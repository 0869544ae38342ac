/* SPDX-License-Identifier: BSD-3-Clause */
#include "worker_load.h"

#include <rte_cycles.h>
#include <rte_lcore.h>

#include "worker.h"

static uint64_t
load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void
worker_marks(const struct gateway *gw, struct worker_mark mark[GW_WORKERS_MAX])
{
	unsigned int i;

	for (i = 0; i < gw->n_workers; i++) {
		const struct worker_stats *s = &gw->workers[i]->stats;

		mark[i] = (struct worker_mark){
			.tsc = rte_rdtsc(),
			.packets = load(&s->packets),
			.busy_polls = load(&s->busy_polls),
			.idle_polls = load(&s->idle_polls),
			.busy_cycles = load(&s->busy_cycles),
		};
	}
}

uint64_t
per_second(uint64_t events, uint64_t ns)
{
	if (ns == 0)
		return 0;
	return (uint64_t)((double)events * (double)SL_NSEC_PER_SEC / (double)ns + 0.5);
}

static void
put_rates(json_t *o, const struct worker_mark *from, const struct worker_mark *to)
{
	uint64_t cycles = to->busy_cycles - from->busy_cycles, passed = to->tsc - from->tsc;
	uint64_t packets = to->packets - from->packets, hz = rte_get_tsc_hz();
	/* A burst that began before `from` is counted whole when it ends. */
	double percent = RTE_MIN(100.0, 100.0 * (double)cycles / (double)RTE_MAX(passed, 1u));

	json_object_set_new(o, "load_percent", json_real(percent));
	if (hz != 0)
		json_object_set_new(o, "packets_per_second",
			json_integer((json_int_t)((double)packets * (double)hz /
						  (double)RTE_MAX(passed, 1u) + 0.5)));
	if (packets != 0)
		json_object_set_new(o, "cycles_per_packet",
			json_real((double)cycles / (double)packets));
}

/* Of the processor, as --workers names it: DPDK counts its threads by numbers of its own. */
static json_t *
worker_core(const struct gateway *gw, unsigned int i)
{
	if (gw->replay)
		return json_null();
	return json_integer(rte_lcore_to_cpu_id((int)gw->workers[i]->lcore));
}

json_t *
worker_loads(const struct gateway *gw, const struct worker_mark *from, const struct worker_mark *to)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < gw->n_workers; i++) {
		json_t *o = json_pack("{s:i, s:o, s:I, s:I, s:I, s:n, s:n, s:n}", "worker", (int)i,
			"core", worker_core(gw, i),
			"packets", (json_int_t)to[i].packets, "busy_polls",
			(json_int_t)to[i].busy_polls, "idle_polls", (json_int_t)to[i].idle_polls,
			"packets_per_second", "load_percent", "cycles_per_packet");

		if (from != NULL && o != NULL)
			put_rates(o, &from[i], &to[i]);
		json_array_append_new(list, o);
	}
	return list;
}
