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

/* What one worker polls, in turn. */
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
	bool launched;          /* control only: worker_main() runs on the lcore */
	struct sl_now now;      /* of the burst or sweep under way, for events */
	int wake_fd;            /* eventfd: ends the sleep of a worker that has nothing to poll */
	struct worker_stats stats;
	struct datapath dp;     /* burst and transmit buffers */
};

/*
 * Makes a worker of gw->ct; it is not in gw->workers yet and does not run. NULL with err filled
 * when memory or file descriptors are short. worker_free() takes NULL; the worker must not run.
 */
struct worker *worker_create(struct gateway *gw, unsigned int index, unsigned int lcore,
	struct sl_err *err);
void worker_free(struct worker *w);

/* Starts worker_main() of all gw->workers, each on its lcore; stops those already started when one
 * cannot be. 0 or -errno. */
int worker_start_all(struct gateway *gw, struct sl_err *err);

/* Stops all workers and waits until they have returned; those never started are passed over. */
void worker_stop_all(struct gateway *gw);

/* Body of the worker's lcore; returns when stopped. arg: struct worker. */
int worker_main(void *arg);

/*
 * One turn over the plan: polls each queue once, passes on what came and sends it. Returns the
 * number of packets. For worker_main() and benchmarks; between two turns the worker holds no
 * reference.
 */
unsigned int worker_poll(struct worker *w, const struct poll_plan *plan);

/*
 * Builds the poll plans of all workers from gw->ports and publishes them; waits for a grace period
 * and frees the old ones. Queue q of a port goes to worker (q + port.index) % workers, so that
 * ports of one queue are spread. 0 or -ENOMEM, with the plans unchanged. In replay there are no
 * plans and nothing is done.
 */
int worker_replan(struct gateway *gw, struct sl_err *err);

#endif
