/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours: the MAC addresses of hosts on a link to which a packet has to go that was addressed
 * to the gateway, or comes back out of its ingress link. On a wire all other packets name the next
 * station themselves.
 *
 * One table for all links, of a fixed size, in sets of a few entries. A set has a lock, which is
 * held for the look at its entries only; it is taken when a connection is admitted, not for its
 * later packets. What is in the table are addresses that something was translated to, so its use
 * follows from the configuration, not from traffic.
 */
#ifndef NEIGHBOUR_H
#define NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>

#include "hash.h"
#include "tuple.h"

struct link;
struct neighbours;
struct sl_err;
struct worker;

/* NULL with err filled: no memory, or the hash is not to be had. */
struct neighbours *neighbours_create(
	enum sl_hash_backend hash, uint64_t hash_seed, struct sl_err *err);
void neighbours_destroy(struct neighbours *n); /* takes NULL */

/* ---- worker ---- */

/*
 * Where a host of the link is. One that is not known, or was not heard of for long, is asked for,
 * once a second at most, when the link has an address whose prefix it is in. False: not known.
 */
bool neighbour_find(struct worker *w, struct link *l, uint8_t family,
	const struct tuple_addr *addr, struct rte_ether_addr *mac);

/* The same without asking. */
bool neighbour_known(
	struct worker *w, const struct link *l, uint8_t family, const struct tuple_addr *addr);

/* A host has answered; of one that nobody has asked for nothing is kept. */
void neighbour_heard(struct worker *w, const struct link *l, uint8_t family,
	const struct tuple_addr *addr, const struct rte_ether_addr *mac);

#endif
