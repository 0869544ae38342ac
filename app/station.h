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

/* Before the packet is rewritten: who it goes to; with PKT_LATE_STATION that is still asked for.
 * False, with pkt.reason: that is not known. */
bool station_write(struct worker *w, struct pkt *p);

/* With PKT_LATE_STATION: p->mbuf, a whole frame, leaves when its station is known. Takes p->mbuf.
 */
void station_wait(struct worker *w, struct pkt *p);

/* Where a packet of a known connection leaves. */
static inline struct link *
station_out(const struct pkt *p)
{
	return __atomic_load_n(&p->ct->status, __ATOMIC_RELAXED) & CT_HAIRPIN ? p->in
									     : link_peer(p->in);
}

#endif
