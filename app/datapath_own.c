/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ARP and Neighbour Discovery of the gateway itself. Requests for its addresses are answered, each
 * in the buffer of the request, and answers to its own questions end here; all else goes on to the
 * other end of the wire.
 *
 * Whoever claims an address of the gateway, on either side, is refused, so that what is behind the
 * gateway does not learn it. Damaged messages are refused where they are about the gateway or it
 * cannot be told.
 *
 * What is for its addresses and belongs to no connection ends here, too.
 */
#include "datapath_stages.h"

#include "answer.h"
#include "link_address.h"
#include "neigh.h"
#include "neighbour.h"
#include "own.h"

static enum sl_drop
malformed(const struct pkt *p)
{
	return p->flags & PKT_ARP ? SL_DROP_ARP_MALFORMED : SL_DROP_ND_MALFORMED;
}

static void
request(struct worker *w, struct pkt *p, const struct neigh_msg *msg)
{
	if (!own_answers(p->in, msg->family, &msg->target))
		return;
	if (msg->bad) {
		datapath_drop(w, p, malformed(p));
	} else if (neigh_answer(p, msg, &p->in->mac)) {
		neighbour_heard(w, p->in, msg->family, &msg->sender, &msg->mac);
		p->out = p->in;
	} else {
		datapath_drop(w, p, SL_DROP_TX_HEADROOM);
	}
}

static void
reply(struct worker *w, struct pkt *p, const struct neigh_msg *msg)
{
	if (!link_has_address(p->in, msg->family, &msg->target))
		return;
	if (msg->bad) {
		datapath_drop(w, p, malformed(p));
		return;
	}
	neighbour_heard(w, p->in, msg->family, &msg->sender, &msg->mac);
	p->reason = SL_DROP_NONE;
	p->flags |= PKT_DROPPED;
}

void
datapath_for_own(struct worker *w, struct pkt *p)
{
	struct tuple_addr dst;

	if ((p->flags & (PKT_IP | PKT_ND | PKT_DROPPED)) != PKT_IP || !own_any(p->in))
		return;
	dst = answer_dst(p);
	if (own_address(p->in, p->tuple.family, &dst))
		datapath_drop(w, p, SL_DROP_OWN_ADDRESS);
}

void
datapath_own(struct worker *w, struct pkt *p)
{
	struct neigh_msg msg;
	enum neigh_kind kind;

	if (!own_any(p->in))
		return;
	kind = neigh_parse(p, &msg);
	if (kind == NEIGH_UNREADABLE)
		datapath_drop(w, p, malformed(p));
	else if (kind != NEIGH_OTHER && !msg.probe && own_address(p->in, msg.family, &msg.sender))
		datapath_drop(w, p, SL_DROP_NEIGHBOUR_SPOOFED);
	else if (kind == NEIGH_REQUEST)
		request(w, p, &msg);
	else if (kind == NEIGH_REPLY)
		reply(w, p, &msg);
}
