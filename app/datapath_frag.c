/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragments in the packet path: they wait in the table of lib/packet until their datagram is whole,
 * which is then tracked as one packet. And the sweep of all that has waited too long.
 */
#include "datapath_rules.h"

#include "frag.h"
#include "link.h"
#include "neighbour.h"
#include "parse.h"
#include "trace.h"

/* Fragments that had to be dropped while they waited. */
static void
fragments_lost(void *arg, uint32_t owner, uint32_t owner_gen, enum sl_drop reason, unsigned int n)
{
	struct worker *w = arg;
	struct netns *ns = netns_by_id(w->gw->netns, owner);

	datapath_count_drops(w, ns != NULL && ns->gen == owner_gen ? ns : NULL, reason, n);
}

static enum frag_verdict
hold(struct worker *w, struct pkt *p, struct sl_now now, struct frag_train **train)
{
	const struct frag_sink sink = {.lost = fragments_lost, .arg = w};
	const struct knobs *k = netns_knobs(p->ns);
	bool ip6 = p->tuple.family == TUPLE_IPV6;
	const struct frag_policy policy = {
		.owner = p->ns->id,
		.owner_gen = p->ns->gen,
		.high_thresh = ip6 ? k->frag6_high_thresh : k->frag4_high_thresh,
		.timeout_ms = ip6 ? k->frag6_timeout : k->frag4_timeout,
		.now = now,
	};

	if (unlikely(!netns_alive(p->ns))) {
		p->reason = SL_DROP_NETNS_DYING;
		return FRAG_REFUSED;
	}
	return frag_add(w->gw->frag, p, &policy, &sink, train);
}

/* The last missing fragment becomes the whole datagram. */
static void
view_datagram(struct worker *w, struct pkt *p, struct frag_train *train)
{
	struct netns *ns = p->ns;
	struct link *in = p->in;
	enum sl_drop reason;
	struct rte_mbuf *view = frag_train_view(train, w->gw->pool, &reason);

	if (likely(view != NULL)) {
		reason = parse_view(p, view);
		/* A fragment header behind the first one. */
		if (unlikely(reason == PARSE_FRAGMENT))
			reason = SL_DROP_FRAG_INVALID;
		if (unlikely(reason != SL_DROP_NONE))
			p->reason = (uint8_t)reason;
	} else {
		p->reason = (uint8_t)reason;
	}
	p->train = train;
	p->flags |= PKT_DATAGRAM;
	p->in = in;
	p->ns = ns;
	datapath_find_rules(w, p);
	datapath_judge(w, p);
}

unsigned int
datapath_reassemble(struct worker *w, const struct port *in, unsigned int n, struct sl_now now)
{
	struct pkt *p = w->dp.pkt;
	struct frag_train *train;
	unsigned int i, kept = 0;

	for (i = 0; i < n; i++) {
		if ((p[i].flags & (PKT_FRAGMENT | PKT_DROPPED)) == PKT_FRAGMENT) {
			trace_burst(w, in, &p[i], 1, now);
			switch (hold(w, &p[i], now, &train)) {
			case FRAG_HELD:
				continue;
			case FRAG_COMPLETE:
				view_datagram(w, &p[i], train);
				break;
			case FRAG_REFUSED:
				datapath_drop(w, &p[i], p[i].reason);
				break;
			}
		}
		if (kept != i) {
			p[kept] = p[i];
			w->dp.way[kept] = w->dp.way[i];
		}
		kept++;
	}
	return kept;
}

void
datapath_sweep(struct worker *w, bool idle, struct sl_now now)
{
	const struct frag_sink sink = {.lost = fragments_lost, .arg = w};

	w->now = now;
	ct_sweep(w->ct, idle, now);
	frag_sweep(w->gw->frag, now, &sink);
	neighbour_sweep(w);
}

void
datapath_sweep_waiting(struct worker *w, struct sl_now now)
{
	const struct frag_sink sink = {.lost = fragments_lost, .arg = w};

	w->now = now;
	frag_sweep_all(w->gw->frag, now, &sink);
	neighbour_sweep(w);
}
