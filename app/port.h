/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports: where packets come from and go to. A port is a DPDK device, the built-in generator, or a
 * capture in replay; the packet path knows the difference only through port_ops, called per burst.
 *
 * Workers find a port through their poll plan (RCU) and through links; a port is freed a grace
 * period after it was taken out of both.
 */
#ifndef PORT_H
#define PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "gateway.h"
#include "lock.h"

#define PORT_NAME_MAX 63
#define PORT_QUEUES_MAX 32

struct sl_err;
struct link;
struct vlan_map;

struct port_ops {
	/* Up to n packets of one queue; a queue is polled by one worker alone. */
	uint16_t (*rx)(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n);
	/* Takes ownership of the first packets, as many as it returns. */
	uint16_t (*tx)(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n);
	/* A grace period after the port's last use; frees port->priv, stops the device. */
	void (*close)(struct port *port);
};

/* Per worker; written by it alone. */
struct port_counters {
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes, tx_dropped;
} __rte_cache_aligned;

struct port {
	/* constant while workers can see the port */
	const struct port_ops *ops;
	void *priv;
	uint16_t index;    /* in gateway.ports */
	uint16_t ethdev;   /* DPDK's port id; UINT16_MAX when it is no device */
	uint16_t n_queues; /* receive queues; worker_replan() says who polls which */
	uint16_t n_txq;    /* worker w sends on queue w % n_txq, under its lock when shared */
	bool tx_shared;
	struct sl_lock tx_lock[PORT_QUEUES_MAX];
	struct rte_ether_addr mac; /* the device's; zero when it is none */
	char name[PORT_NAME_MAX + 1];
	char devargs[256];

	/* read by workers through link_lookup(); published by link.c */
	struct vlan_map *links;

	unsigned int n_links; /* control only */
	struct port_counters counters[GW_WORKERS_MAX];
};

/*
 * Attaches a port by its devargs and has the workers poll it. Everything that DPDK would accept and
 * ignore is refused here with what to do: a driver that does not exist, a key the driver does not
 * know, an interface or file that is not there, a name taken, more than GW_PORTS_MAX ports, more
 * queues than the driver has. queues: 0 = one for each worker where the driver can, else what it
 * can. In replay, devargs are not looked at. 0 or -errno.
 */
int port_add(struct gateway *gw, const char *name, const char *devargs, unsigned int queues,
	struct sl_err *err);

/* Refused with -EBUSY while links use it. Waits for a grace period. */
int port_delete(struct gateway *gw, const char *name, struct sl_err *err);

struct port *port_find(const struct gateway *gw, const char *name);

#endif
