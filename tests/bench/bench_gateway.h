/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A gateway with one worker, one namespace and two wires from a source to a sink, made of the
 * daemon's own parts. What is measured is the worker's processor time, so that a busy machine does
 * not spoil a rate; the share of the core that it had is told beside.
 */
#ifndef BENCH_GATEWAY_H
#define BENCH_GATEWAY_H

#include <stdint.h>
#include <time.h>

#include "gateway.h"

struct bench_gateway_config {
	struct rte_mempool *pool;
	unsigned int lcore; /* of the worker */
	uint32_t max_entries, buckets;
	uint32_t udp_timeout; /* seconds; 0: the default */
	uint32_t rules;       /* see bench_rules.h; 0: none */
	bool limit;
	const char *nat;      /* see bench_rules.h; NULL: none */
	bool events;          /* someone listens to connections, and reads while time passes */
	const char *source, *sink; /* devargs; sink NULL: net_null_sink */
};

struct bench_gateway {
	struct gateway gw;
	struct netns *ns;
	struct port *source, *sink;
	clockid_t worker_clock;
	struct event_subscription *listener; /* NULL: none */
	uint64_t heard, missed;              /* events */
};

/* What a stretch of time had. */
struct bench_rate {
	double pps;   /* packets sent for each second that the core worked */
	double share; /* of the wall clock that the worker had its core, 0 … 1 */
};

/* Dies with the reason when it cannot be. The worker does not run yet. */
void bench_gateway_open(struct bench_gateway *b, const struct bench_gateway_config *config);
void bench_gateway_close(struct bench_gateway *b);

/* Opens `flows` connections, by their handshakes, through the packet path. how: bench_capture.h */
void bench_gateway_prime(struct bench_gateway *b, uint32_t flows, unsigned int how);

/* For `ms`: only receives and sends, as the worker does, without the packet path between. */
struct bench_rate bench_gateway_floor(struct bench_gateway *b, unsigned int ms);

void bench_gateway_start(struct bench_gateway *b);
void bench_gateway_stop(struct bench_gateway *b);

/* A moment of a running worker, and the rate between two. */
struct bench_moment {
	uint64_t sent, cpu_ns, wall_ns;
};
struct bench_moment bench_gateway_moment(const struct bench_gateway *b);
struct bench_rate bench_gateway_between(const struct bench_moment *a, const struct bench_moment *b);

/* Lets time pass; a listener reads meanwhile. */
void bench_gateway_wait(struct bench_gateway *b, unsigned int ms);

/* Starts the worker, lets it warm up, measures for `ms` and stops it. */
struct bench_rate bench_gateway_run(struct bench_gateway *b, unsigned int ms);

/* Packets that the worker has refused so far; the reason of most of them in *reason. */
uint64_t bench_gateway_drops(const struct bench_gateway *b, enum sl_drop *reason);

#endif
