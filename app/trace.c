/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One set of sessions for all workers: worker.trace is NULL or points to it. A worker that finds it
 * copies a selected packet into the session's ring of its own, which has that one producer, and the
 * control thread as its one consumer. A session is put into a slot of the set when it is complete
 * and freed a grace period after it was taken out.
 */
#include "trace.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_ring_elem.h>
#include <rte_tcp.h>

#include "datapath_synproxy.h"
#include "err.h"
#include "frag.h"
#include "lane_ring.h"
#include "rcu.h"
#include "worker.h"

/* Records that all rings of a session hold together, and the least of one ring. */
#define RECORDS_TOTAL 4096u
#define RECORDS_MIN   256u

_Static_assert(sizeof(struct trace_record) % 4 == 0, "a ring's elements are words");

/* What one worker gives a session. */
struct lane {
	struct rte_ring *ring;
	uint64_t lost; /* written by the worker */
	/* control only */
	bool have_head;
	struct trace_record head; /* taken from the ring, not read yet */
} __rte_cache_aligned;

struct trace_session {
	/* constant */
	struct trace_filter filter; /* its ns is NULL: the three below */
	bool by_ns;
	uint32_t ns_id, ns_gen;
	unsigned int n_lanes;
	struct lane lane[];
};

struct trace {
	struct trace_session *session[TRACE_SESSIONS_MAX]; /* RCU */
};

static struct trace sessions;

/* ---- worker ---- */

/* What the parser refused may end anywhere, so lengths are taken from the buffer here. */
static bool
readable(const struct pkt *p, const uint8_t *at, unsigned int len)
{
	const uint8_t *first = rte_pktmbuf_mtod(p->mbuf, const uint8_t *);
	const uint8_t *end = first + rte_pktmbuf_data_len(p->mbuf);

	return at != NULL && at >= first && at <= end && (size_t)(end - at) >= len;
}

static void
record_addresses(struct trace_record *r, const struct pkt *p)
{
	if (r->ethertype == RTE_ETHER_TYPE_IPV6 &&
		readable(p, p->l3, sizeof(struct rte_ipv6_hdr))) {
		const struct rte_ipv6_hdr *ip6 = (const struct rte_ipv6_hdr *)p->l3;

		r->family = TUPLE_IPV6;
		memcpy(r->src.b, ip6->src_addr, sizeof(r->src.b));
		memcpy(r->dst.b, ip6->dst_addr, sizeof(r->dst.b));
	} else if (r->ethertype == RTE_ETHER_TYPE_IPV4 &&
		   readable(p, p->l3, sizeof(struct rte_ipv4_hdr))) {
		const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)p->l3;

		r->family = TUPLE_IPV4;
		memcpy(r->src.b, &ip->src_addr, sizeof(ip->src_addr));
		memcpy(r->dst.b, &ip->dst_addr, sizeof(ip->dst_addr));
	}
}

static uint16_t
be16_at(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static bool
proto_has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_UDPLITE ||
	       proto == IPPROTO_SCTP;
}

static bool
is_icmp(const struct trace_record *r)
{
	return r->proto == (r->family == TUPLE_IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

static void
record_transport(struct trace_record *r, const struct pkt *p)
{
	if (proto_has_ports(r->proto) && p->l4_len >= 4 && readable(p, p->l4, 4)) {
		r->has |= TRACE_HAS_PORTS;
		r->sport = be16_at(p->l4);
		r->dport = be16_at(p->l4 + 2);
	}
	if (r->proto == IPPROTO_TCP && p->l4_len >= sizeof(struct rte_tcp_hdr) &&
		readable(p, p->l4, sizeof(struct rte_tcp_hdr))) {
		const struct rte_tcp_hdr *tcp = (const struct rte_tcp_hdr *)p->l4;

		r->has |= TRACE_HAS_TCP;
		r->tcp_flags = tcp->tcp_flags;
		r->seq = rte_be_to_cpu_32(tcp->sent_seq);
		r->ack = rte_be_to_cpu_32(tcp->recv_ack);
		r->win = rte_be_to_cpu_16(tcp->rx_win);
	}
	if (is_icmp(r) && p->l4_len >= sizeof(struct rte_icmp_hdr) &&
		readable(p, p->l4, sizeof(struct rte_icmp_hdr))) {
		const struct rte_icmp_hdr *icmp = (const struct rte_icmp_hdr *)p->l4;

		r->has |= TRACE_HAS_ICMP;
		r->icmp_type = icmp->icmp_type;
		r->icmp_code = icmp->icmp_code;
		r->icmp_id = rte_be_to_cpu_16(icmp->icmp_ident);
	}
}

static void
record_way(struct trace_record *r, const struct pkt *p)
{
	if (p->ns != NULL)
		memcpy(r->netns, p->ns->name, sizeof(r->netns));
	if (p->in != NULL)
		memcpy(r->in_link, p->in->name, sizeof(r->in_link));
	if (p->out != NULL) {
		memcpy(r->out_link, p->out->name, sizeof(r->out_link));
		memcpy(r->out_port, p->out->port->name, sizeof(r->out_port));
		r->out_vlan = p->out->vlan;
		r->out_vlan_inner = p->out->inner;
	}
	if (p->ct != NULL)
		r->has |= TRACE_HAS_ENTRY;
	r->reason = p->reason;
	r->ct_dir = p->ct_dir;
	r->ct_state_old = p->ct_state_old;
	r->ct_state_new = p->ct_state_new;
}

/* What rules said: beside the packet, in the burst. */
static void
record_rules(struct trace_record *r, const struct worker *w, const struct pkt *p)
{
	const struct datapath_way *way;

	if (p->rules == NULL || p->in == NULL)
		return;
	way = &w->dp.way[p - w->dp.pkt];
	memcpy(r->rule_verdict, way->verdict, sizeof(r->rule_verdict));
	memcpy(r->rule_handle, way->handle, sizeof(r->rule_handle));
}

static void
record_fill(struct trace_record *r, const struct worker *w, const struct port *in,
	const struct pkt *p, struct sl_now now)
{
	*r = (struct trace_record){
		.ns = now.ns,
		.worker = (uint8_t)w->index,
		.flags = p->flags,
		.frame_len = rte_pktmbuf_pkt_len(p->mbuf),
		.ip_bytes = p->ip_bytes,
		.ethertype = p->ethertype,
		.vlan = p->outer_tci & 0xfff,
		.vlan_inner = p->inner_tci & 0xfff,
		.n_tags = p->n_tags,
		.proto = p->proto,
		.frag_id = p->frag_id,
		.frag_off = p->frag_off,
		.frag_more = p->frag_more,
		.fragments = p->train == NULL ? 0 : (uint16_t)frag_train_len(p->train),
	};
	memcpy(r->in_port, in->name, sizeof(r->in_port));
	record_addresses(r, p);
	if (r->family != 0)
		record_transport(r, p);
	/* The tuple is turned round with classification. */
	if (p->flags & PKT_ICMP_ERROR && (p->ns == NULL || !tuple_invert(&r->inner, &p->tuple)))
		r->inner = p->tuple;
	record_way(r, p);
	record_rules(r, w, p);
	r->synproxy = (uint8_t)datapath_synproxy_stage(w, p);
}

static void
trace_packet(const struct worker *w, struct trace *t, const struct port *in, const struct pkt *p,
	struct sl_now now)
{
	struct trace_record r;
	bool filled = false;
	unsigned int i;

	for (i = 0; i < TRACE_SESSIONS_MAX; i++) {
		struct trace_session *s = sl_rcu_dereference(&t->session[i]);
		struct lane *lane;

		if (s == NULL || (s->by_ns && (p->ns == NULL || p->ns->id != s->ns_id ||
						      p->ns->gen != s->ns_gen)))
			continue;
		if (!filled)
			record_fill(&r, w, in, p, now);
		filled = true;
		if (!trace_match(&s->filter, &r))
			continue;
		lane = &s->lane[w->index];
		if (rte_ring_sp_enqueue_elem(lane->ring, &r, sizeof(r)) != 0)
			netns_counter_add(&lane->lost, 1);
	}
}

void
trace_burst(struct worker *w, const struct port *in, const struct pkt *p, unsigned int n,
	struct sl_now now)
{
	struct trace *t = sl_rcu_dereference(&w->trace);
	unsigned int i;

	if (t == NULL)
		return;
	for (i = 0; i < n; i++)
		trace_packet(w, t, in, &p[i], now);
}

static bool
transport_match(const struct trace_filter *f, const struct trace_record *r)
{
	if ((f->fields & TRACE_BY_PROTO) && (r->family == 0 || r->proto != f->proto))
		return false;
	if ((f->fields & TRACE_BY_SPORT) && !((r->has & TRACE_HAS_PORTS) && r->sport == f->sport))
		return false;
	if ((f->fields & TRACE_BY_DPORT) && !((r->has & TRACE_HAS_PORTS) && r->dport == f->dport))
		return false;
	if ((f->fields & TRACE_BY_ICMP_TYPE) &&
		!((r->has & TRACE_HAS_ICMP) && r->icmp_type == f->icmp_type))
		return false;
	return !(f->fields & TRACE_BY_ICMP_CODE) ||
	       ((r->has & TRACE_HAS_ICMP) && r->icmp_code == f->icmp_code);
}

bool
trace_match(const struct trace_filter *f, const struct trace_record *r)
{
	if ((f->fields & TRACE_BY_FAMILY) && r->family != f->family)
		return false;
	if ((f->fields & TRACE_BY_REASON) && r->reason != f->reason)
		return false;
	if ((f->fields & TRACE_DROPPED) && !(r->flags & PKT_DROPPED))
		return false;
	if (f->link[0] != '\0' && strcmp(f->link, r->in_link) != 0)
		return false;
	return transport_match(f, r) && prefix_match(&f->src, r->family, &r->src) &&
	       prefix_match(&f->dst, r->family, &r->dst);
}

/* ---- control ---- */

static void
session_free(void *arg)
{
	struct trace_session *s = arg;
	unsigned int i;

	for (i = 0; i < s->n_lanes; i++)
		free(s->lane[i].ring);
	free(s);
}

static struct trace_session *
session_new(const struct gateway *gw, const struct trace_filter *filter)
{
	size_t size = sizeof(struct trace_session) + gw->n_workers * sizeof(struct lane);
	uint32_t count = rte_align32pow2(RTE_MAX(RECORDS_MIN, RECORDS_TOTAL / gw->n_workers));
	struct trace_session *s;
	unsigned int i;

	s = aligned_alloc(RTE_CACHE_LINE_SIZE,
		RTE_ALIGN_CEIL(size, (size_t)RTE_CACHE_LINE_SIZE));
	if (s == NULL)
		return NULL;
	memset(s, 0, size);
	s->filter = *filter;
	s->filter.ns = NULL;
	s->by_ns = filter->ns != NULL;
	if (s->by_ns) {
		s->ns_id = filter->ns->id;
		s->ns_gen = filter->ns->gen;
	}
	for (i = 0; i < gw->n_workers; i++) {
		s->lane[i].ring = lane_ring_new(sizeof(struct trace_record), count);
		if (s->lane[i].ring == NULL) {
			session_free(s);
			return NULL;
		}
		s->n_lanes++;
	}
	return s;
}

static void
set_worker_traces(struct gateway *gw, struct trace *t)
{
	unsigned int i;

	for (i = 0; i < gw->n_workers; i++)
		sl_rcu_publish(&gw->workers[i]->trace, t);
}

int
trace_open(struct gateway *gw, const struct trace_filter *filter, struct trace_session **out,
	struct sl_err *err)
{
	unsigned int slot = 0;
	struct trace_session *s;

	while (slot < TRACE_SESSIONS_MAX && sessions.session[slot] != NULL)
		slot++;
	if (slot == TRACE_SESSIONS_MAX)
		return sl_refuse(err, EBUSY, "%d traces are running already: end one of them",
			TRACE_SESSIONS_MAX);
	s = session_new(gw, filter);
	if (s == NULL)
		return sl_refuse(err, ENOMEM, "no memory for the rings of the trace");
	sl_rcu_publish(&sessions.session[slot], s);
	set_worker_traces(gw, &sessions);
	*out = s;
	return 0;
}

/* The lane whose oldest unread record is the oldest of all, or NULL. */
static struct lane *
oldest_lane(struct trace_session *s)
{
	struct lane *best = NULL;
	unsigned int i;

	for (i = 0; i < s->n_lanes; i++) {
		struct lane *l = &s->lane[i];

		if (!l->have_head)
			l->have_head = rte_ring_sc_dequeue_elem(l->ring, &l->head,
					       sizeof(l->head)) == 0;
		if (l->have_head && (best == NULL || l->head.ns < best->head.ns))
			best = l;
	}
	return best;
}

unsigned int
trace_read(struct trace_session *s, struct trace_record *r, unsigned int max)
{
	unsigned int n = 0;

	while (n < max) {
		struct lane *l = oldest_lane(s);

		if (l == NULL)
			break;
		r[n++] = l->head;
		l->have_head = false;
	}
	return n;
}

uint64_t
trace_lost(const struct trace_session *s)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < s->n_lanes; i++)
		sum += __atomic_load_n(&s->lane[i].lost, __ATOMIC_RELAXED);
	return sum;
}

void
trace_close(struct gateway *gw, struct trace_session *s)
{
	unsigned int i, left = 0;

	for (i = 0; i < TRACE_SESSIONS_MAX; i++) {
		if (sessions.session[i] == s)
			sl_rcu_publish(&sessions.session[i], NULL);
		left += sessions.session[i] != NULL;
	}
	if (left == 0)
		set_worker_traces(gw, NULL);
	if (sl_rcu_call(session_free, s) != 0) {
		sl_rcu_synchronize();
		session_free(s);
	}
}
