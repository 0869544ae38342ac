/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a packet goes. A burst passes through the stages together, so that the cache misses of one
 * packet overlap with the work on others; datapath_burst() is the order of the stages.
 *
 * A worker owns the packets of its burst. What it reads of others is constant or published by RCU
 * (links, peers, knobs) and stays valid until the worker's next quiescent state, which it passes
 * only between bursts; entries are used under their locks, inside conntrack. Nothing here allocates
 * from the heap, logs, reads a clock or makes a system call.
 */
#include "datapath.h"

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "csum.h"
#include "datapath_rules.h"
#include "datapath_synproxy.h"
#include "frag.h"
#include "link.h"
#include "parse.h"
#include "parse_plain.h"
#include "port.h"
#include "rule_limits.h"
#include "station.h"
#include "trace.h"
#include "translate.h"
#include "worker.h"

#define PREFETCH_AHEAD 4u
#define LOOKUP_GROUP   8u
#define TRACK_STEP     4u
#define TRACK_LAG      8u

void
datapath_count_drops(struct worker *w, struct netns *ns, enum sl_drop reason, unsigned int n)
{
	netns_counter_add(&w->stats.drops[reason], n);
	for (; n > 0; n--)
		netns_count_drop(w->gw->netns, ns, w->index, reason);
}

void
datapath_drop(struct worker *w, struct pkt *p, enum sl_drop reason)
{
	p->flags |= PKT_DROPPED;
	p->reason = (uint8_t)reason;
	datapath_count_drops(w, p->ns, reason, p->train == NULL ? 1 : frag_train_len(p->train));
}

/* The parser found that it must be dropped, whoever's it is. */
static inline bool
broken(const struct pkt *p)
{
	return p->reason != SL_DROP_NONE && !(p->flags & PKT_L4_BAD);
}

/* An error takes the way of an answer to the packet that is inside it, and by that one's tuple its
 * connection is found, whether that packet was translated or not. */
static void
judge_uncommon(struct pkt *p)
{
	struct tuple inside = p->tuple;

	if (!(p->flags & PKT_ICMP_ERROR))
		p->flags |= PKT_UNTRACKED;
	else if (!tuple_invert(&p->tuple, &inside))
		p->tuple = inside;
}

static inline void
judge(struct worker *w, struct pkt *p)
{
	if (unlikely(p->reason != SL_DROP_NONE) && broken(p))
		datapath_drop(w, p, p->reason);
	else if (unlikely((p->flags & (PKT_IP | PKT_ND | PKT_ICMP_ERROR)) != PKT_IP))
		judge_uncommon(p);
}

void
datapath_judge(struct worker *w, struct pkt *p)
{
	p->tuple.scope = p->ns->id;
	judge(w, p);
}

/* What came, of it what for one namespace in a row. */
struct tally {
	struct netns *ns;    /* NULL: none yet, or nobody's */
	uint64_t bytes;      /* of all */
	uint64_t bytes_of;   /* of those before the first for ns */
	unsigned int first;  /* for ns */
};

/* Packet i is for another namespace than those before it. */
static inline void
turn(const struct worker *w, struct tally *t, struct netns *ns, unsigned int i)
{
	struct netns_counters *c;

	if (likely(t->ns != NULL)) {
		c = &t->ns->counters[w->index];
		netns_counter_add(&c->packets, i - t->first);
		netns_counter_add(&c->bytes, t->bytes - t->bytes_of);
	}
	t->ns = ns;
	t->first = i;
	t->bytes_of = t->bytes;
}

/* Of a frame cut in its tags it is not known whose it is. */
static __rte_noinline void
classify_none(struct worker *w, struct pkt *p)
{
	datapath_drop(w, p, broken(p) ? p->reason : SL_DROP_NO_LINK);
}

/* Link → namespace. */
static __rte_always_inline bool
classify(struct worker *w, struct link *in, struct pkt *p)
{
	struct netns *ns;

	if (unlikely(in == NULL)) {
		classify_none(w, p);
		return false;
	}
	ns = in->ns;
	p->in = in;
	p->ns = ns;
	p->tuple.scope = ns->id;
	datapath_find_rules(w, p);
	w->dp.served |= p->rules != NULL || translate_on(ns);
	return true;
}

/* True when it is a fragment. */
static __rte_noinline bool
parse_other(struct worker *w, const struct port *port, struct pkt *p, struct rte_mbuf *m)
{
	enum sl_drop reason = parse_frame(p, m);

	/* A drop is counted when its namespace is known, a fragment when its datagram is. */
	if (reason != SL_DROP_NONE && reason != PARSE_FRAGMENT)
		p->reason = (uint8_t)reason;
	if (unlikely(p->reason == SL_DROP_RUNT || p->reason == SL_DROP_VLAN_DEPTH))
		classify_none(w, p);
	else if (likely(classify(w, link_lookup(port, p), p)))
		judge(w, p);
	return reason == PARSE_FRAGMENT;
}

static void
count_rx(const struct worker *w, struct port *in, unsigned int n, uint64_t bytes)
{
	struct port_counters *c = &in->counters[w->index];

	netns_counter_add(&c->rx_packets, n);
	netns_counter_add(&c->rx_bytes, bytes);
}

/* True when there are fragments among the packets. */
static __rte_noinline bool
parse_all(struct worker *w, struct port *port, struct rte_mbuf **m, unsigned int n)
{
	struct tally tally = {0};
	struct pkt *p = w->dp.pkt;
	bool fragments = false;
	unsigned int i, done = 0;

	for (i = 0; i < RTE_MIN(n, PREFETCH_AHEAD); i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	for (i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(m[i + PREFETCH_AHEAD], void *));
		if (likely(parse_plain(&p[i], m[i])))
			classify(w, link_lookup_plain(port, &p[i]), &p[i]);
		else
			fragments |= parse_other(w, port, &p[i], m[i]);
		if (unlikely(p[i].ns != tally.ns))
			turn(w, &tally, p[i].ns, i);
		tally.bytes += m[i]->pkt_len;
		if (i + 1 - done == LOOKUP_GROUP || i + 1 == n) {
			ct_lookup_start(w->ct, &p[done], i + 1 - done);
			done = i + 1;
		}
	}
	turn(w, &tally, NULL, n);
	count_rx(w, port, n, tally.bytes);
	return fragments;
}

/* What becomes known of some packets only when all are parsed changes what is looked up. */
static __rte_noinline unsigned int
start_anew(struct worker *w, const struct port *in, unsigned int n)
{
	ct_lookup_forget(w->ct, n);
	n = datapath_reassemble(w, in, n, w->now);
	if (w->dp.raw)
		datapath_raw(w, n);
	ct_lookup_start(w->ct, w->dp.pkt, n);
	return n;
}

#define CSUM_JUDGED (PKT_UNTRACKED | PKT_L4_BAD | PKT_DROPPED)

static __rte_noinline void
verify_others(struct worker *w, struct pkt *p)
{
	const struct knobs *k;

	if (p->flags & CSUM_JUDGED)
		return;
	k = netns_knobs(p->ns);
	if (k->checksum && !(p->flags & PKT_CSUM_GOOD) &&
		((p->flags & PKT_CSUM_BAD) || !csum_l4_good(p))) {
		p->flags |= PKT_L4_BAD;
		p->reason = SL_DROP_INV_L4_CHECKSUM;
	} else if (p->flags & PKT_ICMP_ERROR && k->icmp_inner_checksum &&
		   !csum_icmp_inner_good(p)) {
		datapath_drop(w, p, SL_DROP_ICMP_INNER_CHECKSUM);
	}
}

/* Transport checksums, as nf_conntrack_checksum asks, and the IP header inside an ICMP error. */
static __rte_always_inline void
verify_checksums(struct worker *w, struct pkt *p)
{
	if (unlikely((p->flags & (CSUM_JUDGED | PKT_CSUM_GOOD | PKT_ICMP_ERROR)) != PKT_CSUM_GOOD))
		verify_others(w, p);
}

static __rte_noinline void
fetch_further(struct worker *w, const struct pkt *p, unsigned int n)
{
	for (; n > 0; n--, p++)
		if (ct_lookup_missed(p) && p->ns != NULL && translate_on(p->ns))
			translate_ahead_finish(w, (unsigned int)(p - w->dp.pkt));
}

/* What limits and translation will need of the packets. */
static __rte_noinline void
look_ahead(struct worker *w, const struct pkt *p, unsigned int n)
{
	for (; n > 0; n--, p++) {
		if (p->rules != NULL && p->rules->n_counts > 0)
			limits_ahead(w, (unsigned int)(p - w->dp.pkt));
		if (ct_lookup_missed(p) && p->ns != NULL && translate_on(p->ns)) {
			translate_ahead_begin(w, (unsigned int)(p - w->dp.pkt));
			w->dp.opens = true;
		}
	}
}

static __rte_always_inline void
verify_all(struct worker *w, struct pkt *p, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		verify_checksums(w, &p[i]);
	if (unlikely(ct_lookup_match(w->ct, p, n) > 0))
		ct_lookup_chains(w->ct, p, n);
	if (unlikely(w->dp.served))
		look_ahead(w, p, n);
}

/* A packet of a known connection, which may have to be admitted anew. */
static enum ct_verdict
track_known(struct worker *w, struct pkt *p, struct sl_now now)
{
	enum ct_verdict v = ct_track(w->ct, p, now);

	if (likely(p->rules == NULL) || v != CT_OK)
		return v;
	if (unlikely(p->ct_status & CT_REFUSED))
		return translate_again(w, p);
	if (!datapath_outdated(p))
		return v;
	ct_kill(w->ct, p);
	return CT_MISS;
}

/* INVALID packets belong to no connection; sluice.invalid says whether they pass. By default they
 * do but where addresses are translated, since they would show those behind. */
static void
invalid(struct worker *w, struct pkt *p)
{
	uint8_t policy = netns_knobs(p->ns)->invalid;

	p->flags |= PKT_CT_INVALID;
	p->ct = NULL;
	if (policy == KNOB_INVALID_DROP)
		datapath_drop(w, p, p->reason);
	else if (policy == KNOB_INVALID_AUTO && translate_on(p->ns))
		datapath_drop(w, p, SL_DROP_INVALID_NAT);
	else
		datapath_for_own(w, p);
}

/*
 * A packet that is not simply part of a connection, with what conntrack has said of it. A hit may
 * turn out to be a miss, and a miss a hit (the flow's other side, or another worker, was first);
 * each turn needs somebody else's change in between, so two suffice but for contrived races, which
 * are taken as INVALID.
 */
static __rte_noinline void
settle(struct worker *w, struct pkt *p, enum ct_verdict v, struct sl_now now)
{
	unsigned int turns;

	for (turns = 0; turns < 4 && (v == CT_LOST || v == CT_MISS); turns++) {
		if (v == CT_MISS && unlikely(p->zone_set == PKT_ZONE_ANSWER))
			datapath_zones_back(w, p);
		v = v == CT_LOST ? track_known(w, p, now) : datapath_admit(w, p);
	}
	if (likely(v == CT_OK))
		return;
	if (unlikely(v == CT_LOST || v == CT_MISS))
		p->reason = SL_DROP_INV_RACE;
	if (v == CT_DROP)
		datapath_drop(w, p, p->reason);
	else
		invalid(w, p);
}

static inline void
find(struct worker *w, struct pkt *p)
{
	ct_lookup_finish(w->ct, p);
	if (unlikely(p->zone_set))
		datapath_lookup_zones(w, p);
}

#define NOT_TRACKED (PKT_UNTRACKED | PKT_DROPPED | PKT_L4_BAD)

static __rte_noinline void
conntrack_other(struct worker *w, struct pkt *p, struct sl_now now)
{
	if (!(p->flags & NOT_TRACKED)) {
		find(w, p);
		settle(w, p, ct_track_error(w->ct, p, now), now);
	} else if ((p->flags & NOT_TRACKED) == PKT_L4_BAD) {
		ct_track_bad(w->ct, p);
		invalid(w, p);
	} else {
		datapath_for_own(w, p);
	}
}

static inline void
conntrack(struct worker *w, struct pkt *p, struct sl_now now)
{
	enum ct_verdict v = CT_MISS;

	if (unlikely(p->flags & (NOT_TRACKED | PKT_ICMP_ERROR))) {
		conntrack_other(w, p, now);
		return;
	}
	find(w, p);
	if (likely(p->ct != NULL))
		v = track_known(w, p, now);
	if (unlikely(v != CT_OK))
		settle(w, p, v, now);
}

/* When the whole burst has been judged, unless it can be done at once: the trace shows packets as
 * they came. */
static void
translate(struct worker *w, struct pkt *p)
{
	if (w->dp.defers || !translate_ready(p, translate_status(p)))
		w->dp.translate |= UINT32_C(1) << (p - w->dp.pkt);
}

/* Most packets of translated connections: all at once. False, and no harm done: they are not. */
static __rte_always_inline bool
forward_ready(const struct worker *w, struct pkt *p)
{
	uint16_t status;

	if (unlikely(p->flags & (PKT_CT_NEW | PKT_ICMP_ERROR) || w->dp.defers))
		return false;
	status = translate_status(p);
	if (unlikely(!(status & CT_NAT_READY) || (p->rules != NULL && !datapath_accepted(p))))
		return false;
	p->out = link_peer(p->in);
	return likely(p->out != NULL && p->ip_bytes <= p->out->mtu) && translate_ready(p, status);
}

static __rte_always_inline void
forward(struct worker *w, struct pkt *p)
{
	bool translates;

	if (unlikely(p->flags & (PKT_ARP | PKT_ND | PKT_DROPPED))) {
		if (!(p->flags & PKT_DROPPED))
			datapath_own(w, p);
		if (p->flags & PKT_DROPPED)
			return;
	}
	translates = unlikely(translate_on(p->ns)) && p->ct != NULL;
	if (unlikely(translates) && likely(forward_ready(w, p)))
		return;
	if (unlikely(translates))
		p->out = translate_out(p);
	else if (likely(p->out == NULL))
		p->out = link_peer(p->in);
	if (unlikely(p->rules != NULL) && !(p->flags & PKT_CT_NEW) &&
		(w->dp.traced || !datapath_accepted(p))) {
		datapath_filter(w, p);
		if (p->flags & PKT_DROPPED)
			return;
	}
	if (unlikely(p->out == NULL))
		datapath_drop(w, p, SL_DROP_NO_PEER);
	else if (unlikely(p->ip_bytes > p->out->mtu))
		datapath_too_big(w, p);
	if (unlikely(translates) && !(p->flags & PKT_DROPPED))
		translate(w, p);
}

/* Runs of packets that are simply part of their connections, and one by one those between. */
static __rte_always_inline void
track_all(struct worker *w, struct pkt *p, unsigned int n, struct sl_now now)
{
	struct pkt *end = p + n, *rest;

	for (;;) {
		rest = p + ct_track_plain(w->ct, p, (unsigned int)(end - p), now);
		for (; p < rest; p++)
			forward(w, p);
		if (p == end)
			return;
		conntrack(w, p, now);
		forward(w, p++);
	}
}

/*
 * A few packets at a time are verified and their entries asked of memory, and then those are
 * tracked that are TRACK_LAG behind them. So what is asked for comes while others are worked on,
 * and it is asked for evenly: much at once would wait, or drive out what came before it.
 */
static __rte_noinline void
verify_and_track(struct worker *w, unsigned int n, struct sl_now now)
{
	struct pkt *p = w->dp.pkt;
	unsigned int verified, step, tracked = 0, due;

	for (verified = 0; verified < n; verified += step) {
		step = RTE_MIN(n - verified, TRACK_STEP);
		verify_all(w, &p[verified], step);
		due = verified + step > TRACK_LAG ? verified + step - TRACK_LAG : 0;
		track_all(w, &p[tracked], due - tracked, now);
		tracked = due;
		if (unlikely(w->dp.opens))
			fetch_further(w, &p[verified], step);
	}
	track_all(w, &p[tracked], n - tracked, now);
}

void
datapath_burst(
	struct worker *w, struct port *in, struct rte_mbuf **m, unsigned int n, struct sl_now now)
{
	struct trace *trace = sl_rcu_dereference(&w->trace);

	w->now = now;
	w->dp.served = w->dp.raw = w->dp.opens = false;
	w->dp.traced = w->dp.defers = trace != NULL;
	w->dp.synproxy.marked = w->dp.translate = 0;
	netns_counter_add(&w->stats.packets, n);
	if (unlikely(parse_all(w, in, m, n) || w->dp.raw))
		n = start_anew(w, in, n);
	verify_and_track(w, n, now);
	if (unlikely(w->dp.synproxy.marked != 0))
		datapath_synproxy_burst(w);
	if (unlikely(trace != NULL))
		trace_burst(w, in, w->dp.pkt, n, now);
	if (unlikely(w->dp.translate != 0))
		translate_burst(w);
	datapath_emit(w, n);
}
