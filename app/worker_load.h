/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the workers did between two moments, for `show workers` and `top`. Control thread only.
 * Cycles are those of the machine's time stamp counter, which replay does not have.
 */
#ifndef WORKER_LOAD_H
#define WORKER_LOAD_H

#include <stdint.h>

#include <jansson.h>

#include "gateway.h"

struct worker_mark {
	uint64_t tsc; /* when it was taken; 0: never */
	uint64_t packets, busy_polls, idle_polls, busy_cycles;
};

/* Takes a mark of every worker now. */
void worker_marks(const struct gateway *gw, struct worker_mark mark[GW_WORKERS_MAX]);

/*
 * One object for each worker, with the counters at `to` and, when `from` is not NULL, the rates
 * since then: {"worker", "lcore", "packets", "busy_polls", "idle_polls", "packets_per_second",
 * "load_percent", "cycles_per_packet"}; what cannot be told is null. A new reference.
 */
json_t *worker_loads(const struct gateway *gw, const struct worker_mark *from,
	const struct worker_mark *to);

/* Events in a time of the given length, as events each second; rounded. */
uint64_t per_second(uint64_t events, uint64_t ns);

#endif
