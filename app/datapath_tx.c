/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way out: tags of the egress link, transmit buffers of the ports, fragments in place of their
 * datagram.
 */
#include "datapath_stages.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "frag.h"
#include "link.h"
#include "port.h"
#include "station.h"

#define TAG_LEN 4u

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
transmit(struct worker *w, struct tx_buffer *b, struct netns *ns, struct rte_mbuf *m)
{
	if (unlikely(b->n == DATAPATH_BURST))
		flush_port(w, b->port->index);
	b->ns[b->n] = ns;
	b->m[b->n++] = m;
	b->bytes += m->pkt_len;
}

static struct tx_buffer *
buffer_of(struct worker *w, struct port *port)
{
	struct tx_buffer *b = &w->dp.tx[port->index];

	b->port = port;
	w->dp.tx_pending |= UINT32_C(1) << port->index;
	return b;
}

void
datapath_send(struct worker *w, struct netns *ns, const struct link *link, struct rte_mbuf *m)
{
	transmit(w, buffer_of(w, link->port), ns, m);
}

void
datapath_emit_frame(struct worker *w, struct pkt *p)
{
	if (unlikely(!retag(p))) {
		datapath_drop(w, p, SL_DROP_TX_HEADROOM);
		rte_pktmbuf_free(p->mbuf);
	} else if (unlikely(p->late & PKT_LATE_STATION)) {
		station_wait(w, p);
	} else {
		transmit(w, buffer_of(w, p->out->port), p->ns, p->mbuf);
	}
}

void
datapath_send_untagged(struct worker *w, struct link *link, struct rte_mbuf *m)
{
	struct pkt p = {.mbuf = m, .in = link, .out = link, .ns = link->ns};

	datapath_emit_frame(w, &p);
}

/* Of IPv6 such packets were dropped before. */
static inline bool
too_long(const struct pkt *p, uint32_t ip_len)
{
	return ip_len > p->out->mtu && p->tuple.family == TUPLE_IPV4;
}

/* Bytes of a fragment of IPv4, from its IP header on; what else there is has no MTU to mind. */
static uint32_t
frame_ip_len(const struct pkt *p)
{
	uint32_t off = RTE_ETHER_HDR_LEN + p->n_tags * (uint32_t)TAG_LEN;

	return rte_be_to_cpu_16(
		rte_pktmbuf_mtod_offset(p->mbuf, const struct rte_ipv4_hdr *, off)->total_length);
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
		p.late = datagram->late;
		p.n_tags = tags.n;
		p.tpid = tags.tpid;
		p.outer_tci = tags.outer_tci;
		p.inner_tci = tags.inner_tci;
		if (unlikely(p.late & PKT_LATE_HEADER))
			datapath_nat64_emit(w, &p);
		else if (unlikely(too_long(&p, frame_ip_len(&p))))
			datapath_fragment(w, &p);
		else
			datapath_emit_frame(w, &p);
	}
	frag_train_free(datagram->train);
}

static void
emit_late(struct worker *w, struct pkt *p)
{
	if (p->late & PKT_LATE_HEADER)
		datapath_nat64_emit(w, p);
	else if (too_long(p, p->ip_bytes))
		datapath_fragment(w, p);
	else
		datapath_emit_frame(w, p);
}

/* The first frame of a packet that waits takes what its sender is to be told. */
static void
emit_waiting(struct worker *w, struct pkt *p)
{
	w->dp.unreachable = p->unreachable;
	if (p->train != NULL)
		emit_fragments(w, p);
	else
		emit_late(w, p);
	rte_pktmbuf_free(w->dp.unreachable);
	w->dp.unreachable = NULL;
}

#define NOT_AS_IT_IS (PKT_DROPPED | PKT_DATAGRAM)

/* False: its frame is still to be freed. */
static bool
emit_uncommon(struct worker *w, struct pkt *p)
{
	bool dropped = p->flags & PKT_DROPPED;

	if (!dropped && p->late & PKT_LATE_STATION)
		emit_waiting(w, p);
	else if (p->train != NULL)
		emit_fragments(w, p);
	else if (!dropped)
		emit_late(w, p);
	else
		return false;
	return true;
}

void
datapath_emit(struct worker *w, unsigned int n)
{
	struct rte_mbuf *freed[DATAPATH_BURST];
	struct pkt *p = w->dp.pkt, *end = p + n;
	struct tx_buffer *b = NULL;
	unsigned int n_freed = 0;

	for (; p < end; p++) {
		if (likely(!(p->flags & NOT_AS_IT_IS))) {
			if (unlikely(too_long(p, p->ip_bytes))) {
				datapath_fragment(w, p);
				continue;
			}
			if (unlikely(!retag(p)))
				datapath_drop(w, p, SL_DROP_TX_HEADROOM);
		}
		if (unlikely(p->flags & NOT_AS_IT_IS)) {
			if (!emit_uncommon(w, p))
				freed[n_freed++] = p->mbuf;
			continue;
		}
		/* Most of a burst goes to one port. */
		if (unlikely(b == NULL || b->port != p->out->port))
			b = buffer_of(w, p->out->port);
		transmit(w, b, p->ns, p->mbuf);
	}
	if (n_freed > 0)
		rte_pktmbuf_free_bulk(freed, n_freed);
}

void
datapath_flush(struct worker *w)
{
	uint32_t pending = w->dp.tx_pending;

	for (; pending != 0; pending &= pending - 1)
		flush_port(w, (unsigned int)__builtin_ctz(pending));
	w->dp.tx_pending = 0;
}
