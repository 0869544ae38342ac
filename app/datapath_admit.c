/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission: a packet of no known connection, and what is asked before it may have one. The entry
 * is an embryo that nobody else can see until ct_commit(), the last step; whoever refuses before
 * gives it back with all that was charged and bound for it.
 */
#include <netinet/in.h>

#include "datapath_rules.h"
#include "datapath_synproxy.h"
#include "link.h"
#include "own.h"
#include "station.h"
#include "tcp_table.h"
#include "translate.h"

/* The embryo goes, and with it what it holds. */
static enum ct_verdict
refuse(struct worker *w, struct pkt *p, enum sl_drop reason)
{
	ct_abort(w->ct, p);
	p->reason = (uint8_t)reason;
	return CT_DROP;
}

/* With NAT64 the statement says all, the new source, too; from outside the source is under its
 * prefix. */
static enum ct_verdict
prerouting(struct worker *w, struct pkt *p, struct rules_packet *k,
	struct translate_source *src)
{
	struct rules_result r;
	enum ct_verdict v;

	datapath_eval(w, RULE_PREROUTING, k, &r);
	if (r.verdict == RULES_DROP)
		return refuse(w, p, r.reason);
	if (r.verdict != RULES_NAT) {
		v = translate_inbound(w, p);
	} else if (unlikely(r.item->nat->type == RULE_NAT64)) {
		src->nat = r.item->nat;
		src->use = r.object;
		v = datapath_nat64_admit(w, p, r.item->nat);
	} else {
		v = translate_dst(w, p, r.item->nat);
	}
	if (v == CT_OK && p->ct->status & CT_DST_NAT)
		rules_view(k);
	return v;
}

/*
 * A connection that leaves where it came from has the source that it would have beyond the other
 * link, if it would have another there: both ends know each other by public addresses (RFC 4787,
 * REQ-9). Else what the rules say of its own link.
 */
static enum ct_verdict
postrouting(struct worker *w, struct pkt *p, struct rules_packet *k, struct translate_source *src)
{
	const struct link *peer = link_peer(p->in);
	struct rules_result r;

	src->out = p->out;
	if (unlikely(p->out == p->in) && peer != NULL) {
		k->out_name = peer->name;
		datapath_eval(w, RULE_POSTROUTING, k, &r);
		k->out_name = p->out->name;
		if (r.verdict == RULES_NAT) {
			src->nat = r.item->nat;
			src->use = r.object;
			src->out = peer;
			return CT_OK;
		}
	}
	datapath_eval(w, RULE_POSTROUTING, k, &r);
	if (r.verdict == RULES_DROP)
		return refuse(w, p, r.reason);
	if (r.verdict == RULES_NAT) {
		src->nat = r.item->nat;
		src->use = r.object;
	}
	return CT_OK;
}

/* It is for the gateway itself, and nothing has translated it: it ends here, and must not come back
 * over the wire. */
static bool
ends_here(const struct pkt *p)
{
	const struct tuple *orig = &p->ct->orig.tuple;

	return unlikely(own_any(p->in)) && !(p->ct->status & (CT_DST_NAT | CT_REFUSED)) &&
	       own_address(p->in, orig->family, &orig->dst);
}

/*
 * The chains that see the first packet of a connection, in netfilter's order. What forward says is
 * kept in the entry.
 */
static enum ct_verdict
ask_rules(struct worker *w, struct pkt *p, struct translate_source *src)
{
	struct rules_packet k = datapath_rules_packet(w, p);
	const struct ruleset *rs = p->rules;
	struct rules_result r;

	k.admission = true;
	rules_view(&k);
	if (rs->nat && prerouting(w, p, &k, src) != CT_OK)
		return CT_DROP;
	if (ends_here(p))
		return refuse(w, p, SL_DROP_OWN_ADDRESS);
	p->out = station_egress(w, p);
	k.out_name = p->out != NULL ? p->out->name : NULL;
	if (rs->forward) {
		datapath_eval(w, RULE_FORWARD, &k, &r);
		if (r.verdict == RULES_REJECT)
			return refuse(w, p, datapath_reject(w, p, &r.item->reject));
		if (r.verdict == RULES_DROP)
			return refuse(w, p, r.reason);
	}
	if (rs->nat && src->nat == NULL && !(p->ct->status & CT_NAT64) &&
		postrouting(w, p, &k, src) != CT_OK)
		return CT_DROP;
	if (unlikely(p->ct->status & CT_REFUSED) && !translate_reachable(src))
		return refuse(w, p, SL_DROP_NAT_FILTERED);
	ct_verdict_set(p, false, ruleset_stamp(rs, false));
	return CT_OK;
}

/* A SYN that everything else would let in, while as many connections are half open as may be. */
static __rte_noinline enum ct_verdict
beyond_backlog(struct worker *w, struct pkt *p)
{
	if (datapath_synproxy_may(p))
		return datapath_synproxy_answer(w, p);
	return refuse(w, p, SL_DROP_SYN_BACKLOG);
}

/* What bounds half-open TCP connections; one that a cookie has proved is none that floods. */
static enum ct_verdict
admit_tcp(struct worker *w, struct pkt *p)
{
	if (unlikely(datapath_synproxy_proved(w, p)))
		return datapath_synproxy_attach(w, p) ? CT_OK
						      : refuse(w, p, SL_DROP_SYNPROXY_FULL);
	if (unlikely(p->ct->status & CT_REFUSED))
		return tcp_table_admit(w->ct, p) ? CT_OK : refuse(w, p, SL_DROP_SYN_BACKLOG);
	if (unlikely(datapath_synproxy_always(p)))
		return datapath_synproxy_answer(w, p);
	return likely(tcp_table_admit(w->ct, p)) ? CT_OK : beyond_backlog(w, p);
}

static enum ct_verdict
no_connection(struct pkt *p, enum ct_verdict v)
{
	if (v != CT_INVALID || !datapath_synproxy_refuses(p))
		return v;
	p->reason = SL_DROP_SYNCOOKIE_INVALID;
	return CT_DROP;
}

enum ct_verdict
datapath_admit(struct worker *w, struct pkt *p)
{
	struct translate_source src = {NULL, NULL, NULL};
	enum ct_verdict v;

	if (unlikely(!netns_alive(p->ns))) {
		p->reason = SL_DROP_NETNS_DYING;
		return CT_DROP;
	}
	if (p->tuple.proto == IPPROTO_TCP)
		datapath_synproxy_prove(w, p);
	v = ct_begin(w->ct, p, w->now);
	if (v != CT_OK)
		return no_connection(p, v);
	if (unlikely(p->rules != NULL))
		v = ask_rules(w, p, &src);
	else if (ends_here(p))
		v = refuse(w, p, SL_DROP_OWN_ADDRESS);
	if (v == CT_OK && p->tuple.proto == IPPROTO_TCP)
		v = admit_tcp(w, p);
	return v == CT_OK && p->ct != NULL ? translate_commit(w, p, &src) : v;
}
