/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A record is written while its entry is an embryo or under the entry's lock. Under the lock
 * packets are changed but none is sent: a transmit buffer may have to be flushed for it.
 */
#include "datapath_synproxy.h"

#include <rte_mbuf.h>

#include "answer.h"
#include "datapath_rules.h"
#include "frag.h"
#include "parse.h"
#include "synproxy_pool.h"
#include "tcp_limit.h"

/* The SYN for the server is not repeated sooner, however often the client sends: half of the time
 * after which a host repeats its own (RFC 6298). */
#define REPEAT_MS 500u

#define KIND (PKT_TCP_SYN | PKT_TCP_ACK | PKT_TCP_RST)

static void
mark(struct worker *w, const struct pkt *p, enum synproxy_stage stage)
{
	unsigned int i = (unsigned int)(p - w->dp.pkt);

	w->dp.synproxy.marked |= UINT32_C(1) << i;
	w->dp.defers = true;
	w->dp.synproxy.stage[i] = (uint8_t)stage;
}

static enum ct_verdict
drop(struct pkt *p, enum sl_drop reason)
{
	p->reason = (uint8_t)reason;
	return CT_DROP;
}

static struct synproxy_promise
promise(const struct knobs *k)
{
	return (struct synproxy_promise){
		.mss = (uint16_t)k->synproxy_mss,
		.scale = k->synproxy_wscale,
		.sack = k->synproxy_sack,
		.timestamp = k->synproxy_timestamp,
	};
}

static struct tcp_count *
counts(const struct worker *w, const struct pkt *p)
{
	return &sl_rcu_dereference(&p->ns->tcp)->count[w->index];
}

/* ---- admission ---- */

/* The same for a SYN that was made in an earlier turn. */
static bool
may_prove(const struct pkt *p)
{
	return (p->tcp_flags & KIND) == PKT_TCP_ACK && sl_rcu_dereference(&p->ns->tcp) != NULL;
}

void
datapath_synproxy_find(struct worker *w, struct pkt *p)
{
	const struct synproxy_promise given = promise(netns_knobs(p->ns));
	struct synproxy *s = w->dp.synproxy.proof;

	if (!may_prove(p))
		return;
	if (!synproxy_prove(p, &given, &w->gw->cookie_secret, w->now, s) ||
		!synproxy_make_syn(p, s)) {
		netns_counter_add(&counts(w, p)->cookies_bad, 1);
		return;
	}
	netns_counter_add(&counts(w, p)->cookies_good, 1);
	s->syn_ms = w->now.ms;
	mark(w, p, SYNPROXY_PROVED);
}

bool
datapath_synproxy_attach(struct worker *w, struct pkt *p)
{
	struct tcp_netns *tn = sl_rcu_dereference(&p->ns->tcp);
	struct synproxy_pool *pool = w->gw->synproxy;
	uint32_t index;

	index = synproxy_pool_get(pool, w->index, tn, netns_knobs(p->ns)->synproxy_max);
	if (unlikely(index == 0))
		return false;
	*synproxy_pool_at(pool, index) = *w->dp.synproxy.proof;
	p->ct->seqadj = index;
	p->ct->status |= CT_SEQADJ;
	return true;
}

static bool
send_cookie(struct worker *w, const struct pkt *p)
{
	const struct synproxy_promise given = promise(netns_knobs(p->ns));
	struct rte_mbuf *m = NULL;

	if (answer_allowed(p))
		m = rte_pktmbuf_alloc(w->gw->pool);
	if (m == NULL)
		return false;
	if (synproxy_answer(m, p, &given, &w->gw->cookie_secret, w->now)) {
		datapath_send(w, p->ns, p->in, m);
		return true;
	}
	rte_pktmbuf_free(m);
	return false;
}

enum ct_verdict
datapath_synproxy_answer(struct worker *w, struct pkt *p)
{
	ct_abort(w->ct, p);
	if (!send_cookie(w, p))
		return drop(p, SL_DROP_SYNPROXY_SILENT);
	netns_counter_add(&counts(w, p)->cookies_sent, 1);
	p->reason = SL_DROP_NONE;
	p->flags |= PKT_DROPPED;
	mark(w, p, SYNPROXY_ANSWERED);
	return CT_OK;
}

/* ---- known connections, under the entry's lock ---- */

/* A segment of the client, before the server has answered. */
static enum ct_verdict
client_early(struct worker *w, struct pkt *p, struct synproxy *s)
{
	bool made = datapath_synproxy_proved(w, p);

	if (!synproxy_of_client(p, s))
		return (p->tcp_flags & KIND) == PKT_TCP_SYN ? CT_MISS
							    : drop(p, SL_DROP_SYNPROXY_EARLY);
	if (p->tcp_flags & PKT_TCP_RST) {
		if (!synproxy_make_rst(p, s))
			return drop(p, SL_DROP_SYNPROXY_EARLY);
		mark(w, p, SYNPROXY_TRANSLATED);
		return CT_OK;
	}
	if (w->now.ms - s->syn_ms < REPEAT_MS || (!made && !synproxy_make_syn(p, s)))
		return drop(p, SL_DROP_SYNPROXY_EARLY);
	s->syn_ms = w->now.ms;
	*w->dp.synproxy.proof = *s;
	mark(w, p, SYNPROXY_REPEATED);
	return CT_OK;
}

/* Of the server only an answer to the SYN. What acknowledges anything else is of a connection that
 * the client has forgotten, and a RST tells the server so, as the client's would (RFC 9293, 3.5.1).
 */
static enum ct_verdict
server_early(struct worker *w, struct pkt *p, const struct synproxy *s)
{
	unsigned int kind = p->tcp_flags & KIND;

	if ((kind & PKT_TCP_RST) ||
		(kind == (PKT_TCP_SYN | PKT_TCP_ACK) && synproxy_answers(p, s)))
		return CT_OK;
	if (kind & PKT_TCP_ACK)
		mark(w, p, SYNPROXY_CHALLENGED);
	return drop(p, SL_DROP_SYNPROXY_EARLY);
}

static enum ct_verdict
before(struct worker *w, struct pkt *p, struct synproxy *s)
{
	if (p == w->dp.synproxy.own)
		return CT_OK;
	if (!s->open)
		return p->ct_dir == CT_ORIGINAL ? client_early(w, p, s) : server_early(w, p, s);
	if (p->ct_dir == CT_ORIGINAL) {
		synproxy_to_server(p, s);
		mark(w, p, SYNPROXY_TRANSLATED);
	}
	return CT_OK;
}

/* A packet of the server that the machine has taken. */
static void
after(struct worker *w, struct pkt *p, struct synproxy *s)
{
	if ((p->tcp_flags & KIND) == (PKT_TCP_SYN | PKT_TCP_ACK)) {
		if (synproxy_answers(p, s)) {
			mark(w, p, SYNPROXY_OPENED);
			return;
		}
		/* The client has begun anew by a SYN that was passed, and this is the answer. */
		if (p->ct_state_new == CT_TCP_SYN_RECV && p->ct_state_old != CT_TCP_SYN_RECV)
			synproxy_renew(s);
	}
	synproxy_to_client(p, s);
	mark(w, p, SYNPROXY_TRANSLATED);
}

enum ct_verdict
synproxy_adjust(
	void *app, struct ct_thread *t, struct ct_entry *e, struct pkt *p, enum ct_adjust when)
{
	struct gateway *gw = app;
	struct worker *w = gw->workers[ct_thread_index(t)];
	struct synproxy *s = synproxy_pool_at(gw->synproxy, e->seqadj);

	switch (when) {
	case CT_ADJUST_BEFORE:
		return before(w, p, s);
	case CT_ADJUST_AFTER:
		if (p->ct_dir == CT_REPLY)
			after(w, p, s);
		break;
	case CT_ADJUST_INVALID:
		if (p->ct_dir == CT_REPLY) {
			synproxy_to_client(p, s);
			mark(w, p, SYNPROXY_TRANSLATED);
		}
		break;
	case CT_ADJUST_ERROR:
		if (p->ct_dir == CT_ORIGINAL) {
			synproxy_error_to_server(p, s);
			mark(w, p, SYNPROXY_TRANSLATED);
		}
		break;
	}
	return CT_OK;
}

void
synproxy_ended(struct gateway *gw, struct ct_thread *t, struct ct_entry *e)
{
	if (likely(!(e->status & CT_SEQADJ)))
		return;
	synproxy_pool_put(gw->synproxy, ct_thread_index(t), e->ns->tcp, e->seqadj);
	e->status &= (uint16_t)~CT_SEQADJ;
	e->seqadj = 0;
}

/* ---- the end of the burst ---- */

/* The server has answered: what is to be translated is known now. */
static bool
meet(struct worker *w, struct pkt *p, struct synproxy *s)
{
	struct synproxy *record;
	bool has;

	if (!ct_hold(p))
		return false;
	has = p->ct->status & CT_SEQADJ;
	if (has) {
		record = synproxy_pool_at(w->gw->synproxy, p->ct->seqadj);
		if (!record->open)
			synproxy_meet_server(record, p);
		*s = *record;
	}
	ct_release(p);
	return has;
}

/* The gateway's own ACK opens the connection, for conntrack too. */
static bool
track_own(struct worker *w, const struct pkt *synack, struct rte_mbuf *m)
{
	enum ct_verdict v;
	struct pkt own;

	if (parse_frame(&own, m) != SL_DROP_NONE)
		return false;
	own.ns = synack->ns;
	own.rules = NULL;
	own.ct = synack->ct;
	own.ct_gen = synack->ct_gen;
	own.ct_dir = CT_ORIGINAL;
	w->dp.synproxy.own = &own;
	v = ct_track(w->ct, &own, w->now);
	w->dp.synproxy.own = NULL;
	return v == CT_OK;
}

static void
opened(struct worker *w, struct pkt *p)
{
	struct rte_mbuf *m;
	struct synproxy s;

	if (!meet(w, p, &s)) {
		datapath_drop(w, p, SL_DROP_INV_RACE);
		return;
	}
	m = rte_pktmbuf_alloc(w->gw->pool);
	if (m == NULL || !synproxy_ack_server(m, p, &s) || !track_own(w, p, m)) {
		rte_pktmbuf_free(m);
		datapath_drop(w, p, SL_DROP_SYNPROXY_SILENT);
		return;
	}
	datapath_send(w, p->ns, p->in, m);
	synproxy_make_update(p, &s);
}

static void
finish(struct worker *w, struct pkt *p)
{
	enum synproxy_stage stage = datapath_synproxy_stage(w, p);

	if (stage == SYNPROXY_CHALLENGED)
		datapath_reset(w, p);
	if (p->flags & PKT_DROPPED)
		return;
	if (stage == SYNPROXY_PROVED || stage == SYNPROXY_REPEATED)
		synproxy_clean_syn(p);
	else if (stage == SYNPROXY_OPENED)
		opened(w, p);
	else if (p->train != NULL)
		frag_train_update(p->train);
}

void
datapath_synproxy_burst(struct worker *w)
{
	uint32_t marked = w->dp.synproxy.marked;

	for (; marked != 0; marked &= marked - 1)
		finish(w, &w->dp.pkt[__builtin_ctz(marked)]);
}
