/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stages of the packet path that have files of their own; datapath.c calls them in order. For the
 * files datapath*.c alone. All act on the burst in w->dp.
 */
#ifndef DATAPATH_STAGES_H
#define DATAPATH_STAGES_H

#include <rte_branch_prediction.h>

#include "datapath.h"
#include "worker.h"

/* ---- datapath.c ---- */

/* Adds n to a reason's counters of the worker and of the namespace (NULL: whose is not known). */
void datapath_count_drops(struct worker *w, struct netns *ns, enum sl_drop reason, unsigned int n);

/* The one way out for a refused packet: it is counted, and freed at the end of the burst. */
void datapath_drop(struct worker *w, struct pkt *p, enum sl_drop reason);

/* Refuses what the parser found broken, now that it has an owner, and picks what is not tracked. */
void datapath_judge(struct worker *w, struct pkt *p);

/* ---- datapath_frag.c ---- */

/* Fragments wait for the rest and leave the burst; a datagram that is complete takes the place of
 * its last missing one. Returns how many packets the burst has now. */
unsigned int datapath_reassemble(
	struct worker *w, const struct port *in, unsigned int n, struct sl_now now);

/* ---- datapath_mtu.c ---- */

/* A packet of pkt.ip_bytes beyond the MTU of p->out: dropped, and its sender told, or left as it is
 * when it fits or can be fragmented as it leaves. */
void datapath_too_big(struct worker *w, struct pkt *p);

/* Sends an IPv4 packet, or one fragment, in pieces that fit p->out. p->mbuf is gone then. */
void datapath_fragment(struct worker *w, struct pkt *p);

/* ---- datapath_nat64.c ---- */

/* Translates a tracked packet of a NAT64 connection, or drops it. */
void datapath_nat64(struct worker *w, struct pkt *p);

/* With PKT_LATE_HEADER: gives p->mbuf, one frame of what is translated, the header that it is to
 * have, and sends it, in pieces where it must. p->mbuf is gone then. */
void datapath_nat64_emit(struct worker *w, struct pkt *p);

/* Just the header; false, with pkt.reason: no room for it. */
bool datapath_nat64_header(struct pkt *p, uint16_t l3_off);

/* How long pieces of IPv4 may be that become fragments of IPv6. */
uint32_t datapath_nat64_piece(void);

/* ---- datapath_own.c ---- */

/* A packet with PKT_ARP or PKT_ND: answered (out is set), taken or dropped, or left as it is. */
void datapath_own(struct worker *w, struct pkt *p);

/* A packet of no connection: dropped if it is for an address of the gateway. */
void datapath_for_own(struct worker *w, struct pkt *p);

/* ---- datapath_reject.c ---- */

/* An error that was made before leaves now on the link that its packet came on, of the namespace
 * ns, or is freed when there are too many. Takes m. */
void datapath_send_error(
	struct worker *w, struct netns *ns, const struct link *link, struct rte_mbuf *m);

/* ---- datapath_tx.c ---- */

/* The end of each packet: into a transmit buffer, or freed. */
void datapath_emit(struct worker *w, unsigned int n);

/* Tags p->mbuf for p->out and sends it, or drops and frees it. */
void datapath_emit_frame(struct worker *w, struct pkt *p);

/* Sends a packet that the gateway made for a namespace on a link, whose tags it has. Takes m. */
void datapath_send(struct worker *w, struct netns *ns, const struct link *link, struct rte_mbuf *m);

/* The same for a frame without tags, which gets the link's. */
void datapath_send_untagged(struct worker *w, struct link *link, struct rte_mbuf *m);

#endif
