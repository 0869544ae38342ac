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
struct rules_ops;
struct frag_table;
struct events;
struct neighbours;
struct connlimit;
struct nat;
struct synproxy_pool;
struct table_growth;

struct gateway {
	struct netns_registry *netns;
	struct ct *ct;
	struct nat *nat;
	struct events *events; /* the bus: events.h */
	struct worker *workers[GW_WORKERS_MAX];
	unsigned int n_workers;
	struct port *ports[GW_PORTS_MAX]; /* by port.index; NULL where free */
	struct rte_mempool *pool;         /* packet buffers */
	struct neighbours *neighbours;    /* hosts that were asked for: neighbour.h */
	struct frag_table *frag;          /* fragments that wait in them */
	bool replay; /* capture time, no EAL devices; cycles and pids print as null */
	struct sl_now (*clock)(
		struct gateway *gw);  /* the control side's clock: monotonic or capture */
	struct ct_thread *ct_control; /* the control thread's own */
	struct rules_ops *rules_ops;  /* what rules call */
	struct connlimit *limits;     /* rule_limits.h */
	struct synproxy_pool *synproxy; /* datapath_synproxy.h, with the key of cookies: */
	struct sl_hasher cookie_secret;
	struct table_growth *growth;
};

struct sl_err;

struct gateway_config {
	unsigned int n_workers;        /* 1 … GW_WORKERS_MAX */
	const unsigned int *lcores;    /* of each worker; NULL in replay */
	unsigned int buffers;          /* packet buffers of the pool */
	uint32_t max_entries, buckets; /* 0: the kernel's default */
	enum sl_hash_backend hash;
	uint64_t hash_seed; /* 0: random */
	bool replay;
	struct sl_now (*clock)(struct gateway *gw); /* NULL: monotonic */
};

#define GW_BUCKETS_DEFAULT 262144u

/* Needs EAL. Builds everything but ports and threads; sl_rcu_start() must have run before a knob is
 * written. 0 or -errno with a message that says what to do. */
int gateway_create(const struct gateway_config *config, struct gateway **out, struct sl_err *err);

/* Workers have ended. Takes links and ports away and frees all. NULL is left alone. */
void gateway_destroy(struct gateway *gw);

/* Nanoseconds from the gateway's clock to the time of day, which a capture's clock is. */
uint64_t gateway_wall_offset(struct gateway *gw);

/* Threads that count: the workers and control. */
static inline unsigned int
gw_threads(const struct gateway *gw)
{
	return gw->n_workers + 1;
}

#endif
