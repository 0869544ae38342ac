/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that are DPDK devices. */
#ifndef PORT_ETH_H
#define PORT_ETH_H

struct gateway;
struct port;
struct sl_err;

/*
 * Attaches, configures and starts the device of `devargs` and makes `port`, whose name is set, its
 * user. queues as for port_add(). 0, or refused with -errno and no device left behind.
 */
int port_eth_open(struct gateway *gw, struct port *port, const char *devargs, unsigned int queues,
	struct sl_err *err);

#endif
