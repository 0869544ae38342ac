/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints of DPDK's telemetry socket, for dpdk-telemetry.py and what reads it:
 *
 *   /sluice/stats          conntrack counters, namespaces, packets
 *   /sluice/drops          refused packets by reason
 *   /sluice/workers        polls, packets and cycles of each worker
 *   /sluice/memory         of the table, and packet buffers
 *   /sluice/netns,NAME     counters and drops of one namespace; or its id
 *
 * DPDK answers each client on a thread of its own. That thread reads nothing of the gateway: it
 * hands its request to the control thread and waits, for a bounded time, so that all objects are
 * looked at by the thread that owns their lifetime.
 */
#ifndef TELEMETRY_H
#define TELEMETRY_H

struct event_base;
struct gateway;
struct sl_err;

/* Registers the endpoints, once in a process; from now on they are answered. 0 or -errno. */
int telemetry_start(struct gateway *gw, struct event_base *base, struct sl_err *err);

/* From now on they answer null. Who waits is let go. */
void telemetry_stop(void);

#endif
