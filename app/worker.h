/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers: one polling thread each. The control thread publishes a poll plan; a worker without
 * anything to poll sleeps, offline for RCU, until it gets one.
 */
#ifndef WORKER_H
#define WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "datapath.h"
#include "gateway.h"
#include "port.h"

struct trace;

#define WORKER_BURST 32

struct poll_plan {
	unsigned int n;
	struct {
		struct port *port;
		uint16_t queue;
	} slot[];
};

/* Written by the worker alone, read by anyone. */
struct worker_stats {
	uint64_t busy_polls, idle_polls; /* polls of all queues that found packets, or none */
	uint64_t packets;
	uint64_t busy_cycles;            /* TSC cycles spent in busy polls */
	uint64_t drops[SL_DROP_COUNT];   /* of all namespaces, on this worker */
} __rte_cache_aligned;

struct worker {
	struct gateway *gw;
	unsigned int index;   /* of the worker and of its ct_thread and counters */
	unsigned int lcore;
	struct ct_thread *ct;
	struct poll_plan *plan; /* RCU */
	struct trace *trace;    /* RCU; NULL: off */
	bool stop;              /* set by control */
	struct worker_stats stats;
	struct datapath dp;     /* burst and transmit buffers */
};

/* Body of the worker's lcore; returns when stopped. arg: struct worker. */
int worker_main(void *arg);

/* Builds the poll plans of all workers from gw->ports and publishes them; waits for a grace period
 * and frees the old ones. 0 or -ENOMEM. In replay there are no plans and nothing is done. */
int worker_replan(struct gateway *gw, struct sl_err *err);

void worker_stop_all(struct gateway *gw);

#endif
