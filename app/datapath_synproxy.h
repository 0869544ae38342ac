/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The SYN proxy in the packet path (synproxy.h tells the exchange). A SYN that the rules have let
 * in is answered by a cookie where sluice.syncookies says so, and its embryo is given back. The ACK
 * that brings the cookie back becomes the SYN for the server and is admitted as one; its entry has
 * a record of what to translate, and from then on conntrack calls synproxy_adjust() for each of its
 * packets. What is to be sent for a packet, and what is to be changed in it after the rules have
 * seen it, is done at the end of the burst.
 */
#ifndef DATAPATH_SYNPROXY_H
#define DATAPATH_SYNPROXY_H

#include <netinet/in.h>

#include "datapath_stages.h"

/* What became of a packet, for the end of the burst and the trace. */
enum synproxy_stage {
	SYNPROXY_NONE,
	SYNPROXY_ANSWERED,   /* a SYN: by a cookie */
	SYNPROXY_PROVED,     /* an ACK with a cookie: the SYN for the server */
	SYNPROXY_REPEATED,   /* a segment of the client, before the server's answer: likewise */
	SYNPROXY_OPENED,     /* the server's SYN/ACK: acknowledged, and the update for the client */
	SYNPROXY_CHALLENGED, /* the server means another connection: answered by a RST */
	SYNPROXY_TRANSLATED,
};

static inline enum synproxy_stage
datapath_synproxy_stage(const struct worker *w, const struct pkt *p)
{
	unsigned int i = (unsigned int)(p - w->dp.pkt);

	return w->dp.synproxy.marked >> i & 1 ? w->dp.synproxy.stage[i] : SYNPROXY_NONE;
}

/* ---- admission ---- */

/* A segment of no connection: whether it has become the SYN for a server. */
static inline bool
datapath_synproxy_proved(const struct worker *w, const struct pkt *p)
{
	return unlikely(w->dp.synproxy.marked != 0) &&
	       (datapath_synproxy_stage(w, p) == SYNPROXY_PROVED ||
		       datapath_synproxy_stage(w, p) == SYNPROXY_REPEATED);
}

/* Whether it is a SYN that may be answered by a cookie. */
static inline bool
datapath_synproxy_may(const struct pkt *p)
{
	const unsigned int opens = PKT_TCP_SYN | PKT_TCP_ACK | PKT_TCP_RST | PKT_TCP_FIN;

	return netns_knobs(p->ns)->syncookies != KNOB_COOKIES_OFF &&
	       (p->tcp_flags & opens) == PKT_TCP_SYN && sl_rcu_dereference(&p->ns->tcp) != NULL;
}

static inline bool
datapath_synproxy_always(const struct pkt *p)
{
	return netns_knobs(p->ns)->syncookies == KNOB_COOKIES_ALWAYS && datapath_synproxy_may(p);
}

void datapath_synproxy_find(struct worker *w, struct pkt *p);

/* Before ct_begin(), for a TCP segment: one that brings a cookie back becomes a SYN. */
static inline void
datapath_synproxy_prove(struct worker *w, struct pkt *p)
{
	if (unlikely(netns_knobs(p->ns)->syncookies != KNOB_COOKIES_OFF))
		datapath_synproxy_find(w, p);
}

/* ct_begin() has found no connection that a segment could belong to or begin: whether it is one
 * that had to bring a cookie. */
static inline bool
datapath_synproxy_refuses(const struct pkt *p)
{
	const unsigned int kind = PKT_TCP_SYN | PKT_TCP_ACK | PKT_TCP_RST;

	return p->reason == SL_DROP_INV_TCP_STATE && (p->tcp_flags & kind) == PKT_TCP_ACK &&
	       netns_knobs(p->ns)->syncookies != KNOB_COOKIES_OFF;
}

/* The embryo gets its record. False: there are too many. */
bool datapath_synproxy_attach(struct worker *w, struct pkt *p);

/* In place of the commit: gives the embryo back and answers the SYN. CT_OK: the packet ends here;
 * CT_DROP with pkt.reason. */
enum ct_verdict datapath_synproxy_answer(struct worker *w, struct pkt *p);

/* ---- known connections ---- */

/* ct_ops.adjust; app: struct gateway. */
enum ct_verdict synproxy_adjust(
	void *app, struct ct_thread *t, struct ct_entry *e, struct pkt *p, enum ct_adjust when);

/* From ct_ops.destroyed and aborted: gives the entry's record back. */
void synproxy_ended(struct gateway *gw, struct ct_thread *t, struct ct_entry *e);

/* Behind the forward chain and before translation, when packets of the burst are marked. */
void datapath_synproxy_burst(struct worker *w);

#endif
