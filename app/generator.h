/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The built-in source: a port whose packets are made up, for demos and benchmarks. What is sent to
 * it is swallowed. One port can be both ends of the wires of many namespaces, since the VLAN of a
 * packet says the side:
 *
 *   gen,KIND[,OPTION=VALUE…]
 *
 *   synflood   SYNs (udp=1: UDP) from random sources to one destination
 *   flows      two-way flows, both ends played here: handshake, then data and acknowledgements in
 *              both directions without end
 *   mix        both, in a given ratio
 *
 * The same options, seed and number of queues give the same packets on each queue.
 * generator_options.h lists the options.
 */
#ifndef GENERATOR_H
#define GENERATOR_H

struct gateway;
struct port;
struct sl_err;

/*
 * Makes `port` a generator: sets ops and priv, and n_txq and tx_shared (any number of workers may
 * send at once). port->n_queues (at least 1) is how many queues it will have: rate and flows are
 * split among them, and both directions of a flow are on one. Takes its packets from gw->pool.
 * Returns 0; -EINVAL for an option that is unknown, out of range or does not fit the others (the
 * message says which and what would do); -ENOMEM. ops->close() gives all back.
 */
int generator_open(struct gateway *gw, struct port *port, const char *devargs, struct sl_err *err);

#endif
