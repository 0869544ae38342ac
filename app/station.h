/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stations: to whom on a link a translated packet goes, and from which link. A wire leaves MAC
 * addresses as they are; but who was asked for an address of the gateway's has sent to the
 * gateway's own MAC address, and what is to go back out of its ingress link must say so.
 *
 * A connection keeps where both its ends are, as it was seen first (nat_slot.end): the originator
 * by the frame that opened it, the responder by its first answer, or by the neighbour table when it
 * is needed before that; a packet waits until that has it.
 */
#ifndef STATION_H
#define STATION_H

#include <stdbool.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "conntrack.h"
#include "link.h"

struct pkt;
struct worker;

/*
 * Where an embryo leaves, with the destination that it has now: on the peer, or, when it was
 * translated and its destination is on the ingress link, there again, which the entry remembers
 * (hairpin), unless it knows so already. The longer of the links' prefixes that have the
 * destination says so; when they are equal, who of the neighbours is known. NULL: there is no peer.
 */
struct link *station_egress(struct worker *w, struct pkt *p);

/* Before the embryo is committed: keeps where its originator is, and finds the responder if neither
 * the packet names it itself nor the entry does, or asks for it. False: it is in no network of the
 * link, or it may be on either one and has not answered; pkt.reason is set. */
bool station_admit(struct worker *w, struct pkt *p);

/* Before the packet is rewritten: who it goes to; with PKT_LATE_STATION that is still asked for,
 * and pkt.unreachable is the caller's. False, with pkt.reason: that is not known. */
bool station_write(struct worker *w, struct pkt *p);

/* It can not be rewritten, and so will not wait. */
void station_cancel(struct pkt *p);

/* With PKT_LATE_STATION: p->mbuf, a whole frame, leaves when its station is known. Takes p->mbuf,
 * and what there is in w->dp.unreachable. */
void station_wait(struct worker *w, struct pkt *p);

/* The same where the entry has ready where the packet goes: false when it is not known, or when the
 * packet is the first answer, which says where the responder is. */
static inline bool
station_write_ready(struct pkt *p, uint16_t status, const uint8_t mac[6])
{
	uint8_t *dst = rte_pktmbuf_mtod(p->mbuf, uint8_t *);
	bool answer = p->ct_dir == CT_REPLY;

	if (!answer && likely(memcmp(dst, &p->in->mac, sizeof(p->in->mac)) != 0))
		return true;
	if (unlikely((answer && !(status & CT_NAT_MET)) ||
		     rte_is_zero_ether_addr((const struct rte_ether_addr *)mac)))
		return false;
	memcpy(dst, mac, sizeof(p->in->mac));
	return true;
}

/* Where a packet of a known connection leaves. */
static inline struct link *
station_out(const struct pkt *p)
{
	return __atomic_load_n(&p->ct->status, __ATOMIC_RELAXED) & CT_HAIRPIN ? p->in
									     : link_peer(p->in);
}

#endif
