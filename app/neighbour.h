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
 *
 * A frame for a neighbour that was asked for waits for the answer (neighbour_wait.c).
 */
#ifndef NEIGHBOUR_H
#define NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>

#include "hash.h"
#include "tuple.h"

/* Frames that may wait: for one neighbour, of which the newest stay; of one link; and of all. */
#define NEIGHBOUR_WAIT_HOST 8u
#define NEIGHBOUR_WAIT_LINK 64u
#define NEIGHBOUR_WAIT_ALL  1024u

struct link;
struct neighbours;
struct rte_mbuf;
struct sl_err;
struct worker;

/* NULL with err filled: no memory, or the hash is not to be had. */
struct neighbours *neighbours_create(
	enum sl_hash_backend hash, uint64_t hash_seed, struct sl_err *err);
void neighbours_destroy(struct neighbours *n); /* takes NULL */

/* Control: workers find the link no more, and it is freed after a grace period that has not begun
 * yet. What waits for its neighbours is dropped. */
void neighbours_link_gone(struct neighbours *n, struct link *l);

/* ---- worker ---- */

enum neighbour_state {
	NEIGHBOUR_KNOWN,
	NEIGHBOUR_ASKED, /* it is not known, but its link should have it: see neighbour_wait() */
	NEIGHBOUR_NONE,  /* it is not known, and in no network of the link */
};

/*
 * Where a host of the link is. One that is not known, or was not heard of for long, is asked for,
 * once a second at most, when the link has an address whose prefix it is in.
 */
enum neighbour_state neighbour_find(struct worker *w, struct link *l, uint8_t family,
	const struct tuple_addr *addr, struct rte_ether_addr *mac);

/* A whole frame, which lacks but its destination. */
struct neighbour_frame {
	struct rte_mbuf *m;
	struct rte_mbuf *unreachable; /* for its sender, if it waits in vain, or NULL */
	const struct link *in;        /* the sender's */
};

/*
 * Sends the frame to a host that was asked for, when it answers; at once, if it has. Takes both
 * buffers: a frame that can not wait, or waits in vain, is dropped.
 */
void neighbour_wait(struct worker *w, struct link *l, uint8_t family,
	const struct tuple_addr *addr, const struct neighbour_frame *f);

/* Now and then: asks again, and drops what has waited too long. */
void neighbour_sweep(struct worker *w);

/* A host has answered; of one that nobody has asked for nothing is kept. */
void neighbour_heard(struct worker *w, const struct link *l, uint8_t family,
	const struct tuple_addr *addr, const struct rte_ether_addr *mac);

#endif
