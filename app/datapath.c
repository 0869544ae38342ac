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
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "csum.h"
#include "frag.h"
#include "link.h"
#include "parse.h"
#include "port.h"
#include "trace.h"
#include "worker.h"

#define PREFETCH_AHEAD 4u
#define TAG_LEN        4u

static void
count_drops(struct worker *w, struct netns *ns, enum sl_drop reason, unsigned int n)
{
	netns_counter_add(&w->stats.drops[reason], n);
	for (; n > 0; n--)
		netns_count_drop(w->gw->netns, ns, w->index, reason);
}

/* The one way out for a refused packet: it is counted here, and freed at the end of the burst. */
static void
drop(struct worker *w, struct pkt *p, enum sl_drop reason)
{
	p->flags |= PKT_DROPPED;
	p->reason = (uint8_t)reason;
	count_drops(w, p->ns, reason, p->train == NULL ? 1 : frag_train_len(p->train));
}

/* True when there are fragments among the packets. */
static bool
parse_all(struct worker *w, struct rte_mbuf **m, unsigned int n)
{
	struct pkt *p = w->dp.pkt;
	bool fragments = false;
	enum sl_drop reason;
	unsigned int i;

	for (i = 0; i < RTE_MIN(n, PREFETCH_AHEAD); i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	for (i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(m[i + PREFETCH_AHEAD], void *));
		reason = parse_frame(&p[i], m[i]);
		/* Counted when its namespace is known. */
		if (unlikely(reason == PARSE_FRAGMENT))
			fragments = true;
		else if (unlikely(reason != SL_DROP_NONE))
			p[i].reason = (uint8_t)reason;
	}
	return fragments;
}

/* The parser found that it must be dropped, whoever's it is. */
static inline bool
broken(const struct pkt *p)
{
	return p->reason != SL_DROP_NONE && !(p->flags & PKT_L4_BAD);
}

/* Refuses what the parser found broken, now that it has an owner, and picks what is not tracked. */
static inline void
judge(struct worker *w, struct pkt *p)
{
	p->tuple.scope = p->ns->id;
	if (unlikely(p->reason != SL_DROP_NONE) && broken(p))
		drop(w, p, p->reason);
	else if (unlikely((p->flags & (PKT_IP | PKT_ND)) != PKT_IP))
		p->flags |= PKT_UNTRACKED;
}

/* Port and tags → link → namespace. */
static void
classify(struct worker *w, const struct port *port, struct pkt *p)
{
	struct netns_counters *c;

	/* Of a frame cut in its tags it is not known whose it is. */
	if (unlikely(p->reason == SL_DROP_RUNT || p->reason == SL_DROP_VLAN_DEPTH)) {
		drop(w, p, p->reason);
		return;
	}
	p->in = link_lookup(port, p);
	if (unlikely(p->in == NULL)) {
		drop(w, p, broken(p) ? p->reason : SL_DROP_NO_LINK);
		return;
	}
	p->ns = p->in->ns;
	c = &p->ns->counters[w->index];
	netns_counter_add(&c->packets, 1);
	netns_counter_add(&c->bytes, p->mbuf->pkt_len);
	judge(w, p);
}

static void
classify_all(struct worker *w, const struct port *port, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		classify(w, port, &w->dp.pkt[i]);
}

/* Fragments that had to be dropped while they waited. */
static void
fragments_lost(void *arg, uint32_t owner, uint32_t owner_gen, enum sl_drop reason, unsigned int n)
{
	struct worker *w = arg;
	struct netns *ns = netns_by_id(w->gw->netns, owner);

	count_drops(w, ns != NULL && ns->gen == owner_gen ? ns : NULL, reason, n);
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
	judge(w, p);
}

/* Fragments wait for the rest and leave the burst; a datagram that is complete takes the place
 * of its last missing one. Returns how many packets the burst has now. */
static unsigned int
reassemble_all(struct worker *w, const struct port *in, unsigned int n, struct sl_now now)
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
				drop(w, &p[i], p[i].reason);
				break;
			}
		}
		if (kept != i)
			p[kept] = p[i];
		kept++;
	}
	return kept;
}

/* Transport checksums, as nf_conntrack_checksum asks, and the IP header inside an ICMP error. */
static void
verify_checksums(struct worker *w, struct pkt *p)
{
	const struct knobs *k;

	if (unlikely(p->flags & (PKT_UNTRACKED | PKT_L4_BAD | PKT_DROPPED)))
		return;
	k = netns_knobs(p->ns);
	if (k->checksum && !(p->flags & PKT_CSUM_GOOD) &&
		unlikely((p->flags & PKT_CSUM_BAD) || !csum_l4_good(p))) {
		p->flags |= PKT_L4_BAD;
		p->reason = SL_DROP_INV_L4_CHECKSUM;
	} else if (unlikely(p->flags & PKT_ICMP_ERROR) && k->icmp_inner_checksum &&
		   !csum_icmp_inner_good(p)) {
		drop(w, p, SL_DROP_ICMP_INNER_CHECKSUM);
	}
}

static void
verify_all(struct worker *w, unsigned int n)
{
	unsigned int i, more = 0;

	for (i = 0; i < n; i++) {
		verify_checksums(w, &w->dp.pkt[i]);
		more += ct_lookup_match(w->ct, &w->dp.pkt[i]);
	}
	if (unlikely(more > 0))
		ct_lookup_chains(w->ct, w->dp.pkt, n);
}

/* A packet of no known connection: may it start one? */
static enum ct_verdict
admit(struct worker *w, struct pkt *p, struct sl_now now)
{
	enum ct_verdict v;

	if (unlikely(!netns_alive(p->ns))) {
		p->reason = SL_DROP_NETNS_DYING;
		return CT_DROP;
	}
	v = ct_begin(w->ct, p, now);
	if (v != CT_OK)
		return v;
	return ct_commit(w->ct, p);
}

/*
 * Conntrack for one packet. A hit may turn out to be a miss, and a miss a hit (the flow's other
 * side, or another worker, was first); each turn needs somebody else's change in between, so two
 * suffice but for contrived races, which are taken as INVALID.
 */
static enum ct_verdict
track(struct worker *w, struct pkt *p, struct sl_now now)
{
	enum ct_verdict v;
	unsigned int turns;

	ct_lookup_finish(w->ct, p);
	if (unlikely(p->flags & PKT_ICMP_ERROR))
		return ct_track_error(w->ct, p, now);
	v = p->ct != NULL ? CT_LOST : CT_MISS;
	for (turns = 0; turns < 4 && (v == CT_LOST || v == CT_MISS); turns++)
		v = v == CT_LOST ? ct_track(w->ct, p, now) : admit(w, p, now);
	if (unlikely(v == CT_LOST || v == CT_MISS))
		p->reason = SL_DROP_INV_RACE;
	return v;
}

/* INVALID packets belong to no connection; sluice.invalid says whether they pass. */
static void
invalid(struct worker *w, struct pkt *p)
{
	p->flags |= PKT_CT_INVALID;
	if (netns_knobs(p->ns)->invalid == KNOB_INVALID_DROP)
		drop(w, p, p->reason);
}

static void
conntrack(struct worker *w, struct pkt *p, struct sl_now now)
{
	if (unlikely(p->flags & (PKT_UNTRACKED | PKT_DROPPED | PKT_L4_BAD))) {
		if ((p->flags & (PKT_L4_BAD | PKT_DROPPED)) == PKT_L4_BAD) {
			ct_track_bad(w->ct, p);
			invalid(w, p);
		}
		return;
	}
	switch (track(w, p, now)) {
	case CT_OK:
		break;
	case CT_DROP:
		drop(w, p, p->reason);
		break;
	default:
		invalid(w, p);
		break;
	}
}

static void
forward(struct worker *w, struct pkt *p)
{
	if (unlikely(p->flags & PKT_DROPPED))
		return;
	p->out = link_peer(p->in);
	if (unlikely(p->out == NULL))
		drop(w, p, SL_DROP_NO_PEER);
}

static void
track_all(struct worker *w, unsigned int n, struct sl_now now)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		conntrack(w, &w->dp.pkt[i], now);
		forward(w, &w->dp.pkt[i]);
	}
}

static inline void
write_tci(char *at, uint16_t tci, uint16_t vid)
{
	rte_be16_t be = rte_cpu_to_be_16((uint16_t)((tci & 0xf000) | vid));

	memcpy(at, &be, sizeof(be));
}

static inline void
write_tag(char *at, uint16_t tpid, uint16_t tci, uint16_t vid)
{
	rte_be16_t be = rte_cpu_to_be_16(tpid);

	memcpy(at, &be, sizeof(be));
	write_tci(at + sizeof(be), tci, vid);
}

/* How many tags the frame leaves with. A priority tag on an untagged link stays on an untagged
 * peer. */
static inline unsigned int
tags_out(const struct pkt *p)
{
	const struct link *out = p->out;

	if (out->vlan == 0)
		return p->in->vlan == 0 && p->n_tags == 1;
	return out->inner != 0 ? 2 : 1;
}

/* Another number of tags than it came with. */
static bool
retag_moved(struct pkt *p, unsigned int tags)
{
	uint16_t tpid = tags == 2 ? RTE_ETHER_TYPE_QINQ : RTE_ETHER_TYPE_VLAN;
	char *l2 = rte_pktmbuf_mtod(p->mbuf, char *);
	uint8_t macs[2 * RTE_ETHER_ADDR_LEN];

	memcpy(macs, l2, sizeof(macs));
	if (tags > p->n_tags)
		l2 = rte_pktmbuf_prepend(p->mbuf, (uint16_t)(TAG_LEN * (tags - p->n_tags)));
	else
		l2 = rte_pktmbuf_adj(p->mbuf, (uint16_t)(TAG_LEN * (p->n_tags - tags)));
	if (l2 == NULL)
		return false;
	memcpy(l2, macs, sizeof(macs));
	if (tags >= 1)
		write_tag(l2 + sizeof(macs), tpid, p->outer_tci, p->out->vlan);
	if (tags == 2)
		write_tag(l2 + sizeof(macs) + TAG_LEN, RTE_ETHER_TYPE_VLAN, p->outer_tci,
			p->out->inner);
	return true;
}

/*
 * Gives the frame the tags of the egress link. Priority and DEI are kept, tag by tag; so are the
 * TPIDs while the number of tags stays.
 */
static inline bool
retag(struct pkt *p)
{
	unsigned int tags = tags_out(p);
	char *tci;

	if (unlikely(tags != p->n_tags))
		return retag_moved(p, tags);
	tci = rte_pktmbuf_mtod_offset(p->mbuf, char *, RTE_ETHER_HDR_LEN);
	if (tags >= 1)
		write_tci(tci, p->outer_tci, p->out->vlan);
	if (unlikely(tags == 2))
		write_tci(tci + TAG_LEN, p->inner_tci, p->out->inner);
	return true;
}

static uint16_t
port_tx(struct worker *w, struct port *port, struct rte_mbuf **m, uint16_t n)
{
	uint16_t queue = (uint16_t)(w->index % port->n_txq), sent;

	if (likely(!port->tx_shared))
		return port->ops->tx(port, queue, m, n);
	sl_lock(&port->tx_lock[queue]);
	sent = port->ops->tx(port, queue, m, n);
	sl_unlock(&port->tx_lock[queue]);
	return sent;
}

static void
flush_port(struct worker *w, unsigned int index)
{
	struct tx_buffer *b = &w->dp.tx[index];
	struct port *port = b->port;
	struct port_counters *c = &port->counters[w->index];
	uint16_t sent = port_tx(w, port, b->m, b->n), i;

	netns_counter_add(&c->tx_packets, sent);
	netns_counter_add(&c->tx_bytes, b->bytes);
	for (i = sent; unlikely(i < b->n); i++) {
		netns_counter_add(&c->tx_dropped, 1);
		netns_counter_add(&c->tx_bytes, -(uint64_t)b->m[i]->pkt_len);
		netns_counter_add(&w->stats.drops[SL_DROP_TX_FULL], 1);
		netns_count_drop(w->gw->netns, b->ns[i], w->index, SL_DROP_TX_FULL);
		rte_pktmbuf_free(b->m[i]);
	}
	b->n = 0;
	b->bytes = 0;
}

static inline void
transmit(struct worker *w, struct tx_buffer *b, struct pkt *p)
{
	if (unlikely(b->n == DATAPATH_BURST))
		flush_port(w, p->out->port->index);
	b->ns[b->n] = p->ns;
	b->m[b->n++] = p->mbuf;
	b->bytes += p->mbuf->pkt_len;
}

static struct tx_buffer *
buffer_of(struct worker *w, struct port *port)
{
	struct tx_buffer *b = &w->dp.tx[port->index];

	b->port = port;
	w->dp.tx_pending |= UINT32_C(1) << port->index;
	return b;
}

/* In place of a datagram its fragments leave, each as it came but for the tags. */
static void
emit_fragments(struct worker *w, const struct pkt *datagram)
{
	struct pkt p = *datagram;
	struct frag_tags tags;

	p.train = NULL;
	while (!(datagram->flags & PKT_DROPPED) &&
		(p.mbuf = frag_train_next(datagram->train, &tags)) != NULL) {
		p.flags = datagram->flags;
		p.n_tags = tags.n;
		p.tpid = tags.tpid;
		p.outer_tci = tags.outer_tci;
		p.inner_tci = tags.inner_tci;
		if (likely(retag(&p))) {
			transmit(w, buffer_of(w, p.out->port), &p);
		} else {
			drop(w, &p, SL_DROP_TX_HEADROOM);
			rte_pktmbuf_free(p.mbuf);
		}
	}
	frag_train_free(datagram->train);
}

#define NOT_AS_IT_IS (PKT_DROPPED | PKT_DATAGRAM)

/* The end of each packet: into a transmit buffer, or freed. */
static void
emit_all(struct worker *w, unsigned int n)
{
	struct rte_mbuf *freed[DATAPATH_BURST];
	struct pkt *p = w->dp.pkt, *end = p + n;
	struct tx_buffer *b = NULL;
	unsigned int n_freed = 0;

	for (; p < end; p++) {
		if (likely(!(p->flags & NOT_AS_IT_IS)) && unlikely(!retag(p)))
			drop(w, p, SL_DROP_TX_HEADROOM);
		if (unlikely(p->flags & NOT_AS_IT_IS)) {
			if (p->train != NULL)
				emit_fragments(w, p);
			else
				freed[n_freed++] = p->mbuf;
			continue;
		}
		/* Most of a burst goes to one port. */
		if (unlikely(b == NULL || b->port != p->out->port))
			b = buffer_of(w, p->out->port);
		transmit(w, b, p);
	}
	if (n_freed > 0)
		rte_pktmbuf_free_bulk(freed, n_freed);
}

static void
count_rx(struct worker *w, struct port *in, struct rte_mbuf **m, unsigned int n)
{
	struct port_counters *c = &in->counters[w->index];
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		bytes += m[i]->pkt_len;
	netns_counter_add(&c->rx_packets, n);
	netns_counter_add(&c->rx_bytes, bytes);
	netns_counter_add(&w->stats.packets, n);
}

void
datapath_burst(struct worker *w, struct port *in, struct rte_mbuf **m, unsigned int n,
	struct sl_now now)
{
	struct trace *trace = sl_rcu_dereference(&w->trace);
	bool fragments;

	count_rx(w, in, m, n);
	fragments = parse_all(w, m, n);
	classify_all(w, in, n);
	if (unlikely(fragments))
		n = reassemble_all(w, in, n, now);
	ct_lookup_start(w->ct, w->dp.pkt, n);
	verify_all(w, n);
	track_all(w, n, now);
	if (unlikely(trace != NULL))
		trace_burst(w, in, w->dp.pkt, n, now);
	emit_all(w, n);
}

void
datapath_flush(struct worker *w)
{
	uint32_t pending = w->dp.tx_pending;

	for (; pending != 0; pending &= pending - 1)
		flush_port(w, (unsigned int)__builtin_ctz(pending));
	w->dp.tx_pending = 0;
}

void
datapath_sweep(struct worker *w, bool idle, struct sl_now now)
{
	const struct frag_sink sink = {.lost = fragments_lost, .arg = w};

	ct_sweep(w->ct, idle, now);
	frag_sweep(w->gw->frag, now, &sink);
}

void
datapath_sweep_fragments(struct worker *w, struct sl_now now)
{
	const struct frag_sink sink = {.lost = fragments_lost, .arg = w};

	frag_sweep_all(w->gw->frag, now, &sink);
}
