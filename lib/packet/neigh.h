/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ARP (RFC 826, RFC 5227) and Neighbour Discovery (RFC 4861) as far as an address is asked for and
 * told: requests and solicitations, replies and advertisements.
 */
#ifndef NEIGH_H
#define NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>

#include "pkt.h"

enum neigh_kind {
	NEIGH_OTHER,      /* none of them, or of another kind of network */
	NEIGH_REQUEST,    /* who has `target`? */
	NEIGH_REPLY,      /* `sender` is at `mac` */
	NEIGH_UNREADABLE, /* too damaged to say what it is about */
};

struct neigh_msg {
	uint8_t family; /* TUPLE_IPV4, TUPLE_IPV6 */
	bool probe;     /* a request of somebody without an address yet; sender is zero */
	bool bad;       /* breaks a rule that makes a receiver ignore it */
	struct tuple_addr sender; /* whose MAC address `mac` is; of an advertisement its target */
	struct tuple_addr target; /* of a request who is looked for; of a reply who is told */
	struct rte_ether_addr mac; /* by what the message says, else the frame's source */
};

/* Reads a packet with PKT_ARP or PKT_ND into *msg, which is not set for the first and last kind. */
enum neigh_kind neigh_parse(const struct pkt *p, struct neigh_msg *msg);

/*
 * Turns the frame of a sound request into its answer: `target` is at `mac`. False when it has not
 * the room, and then the frame may be damaged.
 */
bool neigh_answer(struct pkt *p, const struct neigh_msg *msg, const struct rte_ether_addr *mac);

/*
 * Writes the question for `target` into m, an empty buffer, as an untagged frame from `mac`, which
 * has the address `sender`. False when it has not the room.
 */
bool neigh_ask(struct rte_mbuf *m, uint8_t family, const struct tuple_addr *target,
	const struct tuple_addr *sender, const struct rte_ether_addr *mac);

#endif
