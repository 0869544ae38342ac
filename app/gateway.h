/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gateway as a whole: what main() and replay build, and every command works on. All of it
 * belongs to the control thread, which publishes to workers what they read (RCU).
 */
#ifndef GATEWAY_H
#define GATEWAY_H

#include <stdbool.h>

#include "conntrack.h"
#include "netns.h"

#define GW_WORKERS_MAX 32
#define GW_PORTS_MAX   32

struct port;
struct worker;
struct rte_mempool;

struct gateway {
	struct netns_registry *netns;
	struct ct *ct;
	struct worker *workers[GW_WORKERS_MAX];
	unsigned int n_workers;
	struct port *ports[GW_PORTS_MAX]; /* by port.index; NULL where free */
	struct rte_mempool *pool;         /* packet buffers */
	bool replay;                      /* capture time, no EAL devices; cycles and pids print as null */
	struct sl_now (*clock)(struct gateway *gw); /* the control side's clock: monotonic or capture */
	struct ct_thread *ct_control;     /* the control thread's own */
};

/* Threads that count: the workers and control. */
static inline unsigned int
gw_threads(const struct gateway *gw)
{
	return gw->n_workers + 1;
}

#endif
