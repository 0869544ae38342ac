/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chains that see every packet: raw, before tracking, and forward. Where forward has nothing
 * that varies from packet to packet, its verdict is kept in the entry for each direction, with the
 * generation of the rules, and most packets come no further than to look at that.
 *
 * A verdict of other rules than the present holds on for a connection that has been answered. One
 * that has not is judged anew, and where translation is in play, admitted anew.
 */
#include "datapath_rules.h"

#include <netinet/in.h>

#include <rte_sctp.h>

#include "link.h"
#include "rule_limits.h"

_Static_assert(DATAPATH_CHAINS == RULE_CHAINS, "one for each chain");

struct rules_packet
datapath_rules_packet(struct worker *w, struct pkt *p)
{
	return (struct rules_packet){
		.pkt = p,
		.ct = w->ct,
		.in_name = p->in->name,
		.out_name = p->out != NULL ? p->out->name : NULL,
		.now = w->now,
		.thread = w->index,
	};
}

void
datapath_eval(struct worker *w, enum rule_chain chain, struct rules_packet *k,
	struct rules_result *r)
{
	struct datapath_way *way = &w->dp.way[k->pkt - w->dp.pkt];

	ruleset_eval(k->pkt->rules, chain, k, r);
	way->handle[chain] = r->handle;
	way->verdict[chain] = (uint8_t)(DATAPATH_WAY_SEEN | r->verdict);
	if (r->policy)
		way->verdict[chain] |= DATAPATH_WAY_POLICY;
}

/* ---- raw ---- */

static void
raw(struct worker *w, struct pkt *p)
{
	struct rules_packet k = datapath_rules_packet(w, p);
	struct rules_result r;

	rules_view(&k);
	datapath_eval(w, RULE_RAW, &k, &r);
	/* The policy is for IP; ARP is dropped by a rule only. */
	if (r.verdict == RULES_DROP && !(r.policy && !(p->flags & PKT_IP)))
		datapath_drop(w, p, r.reason);
}

void
datapath_raw(struct worker *w, unsigned int n)
{
	struct pkt *p = w->dp.pkt, *end = p + n;

	for (; p < end; p++)
		if (p->rules != NULL && p->rules->raw && !(p->flags & PKT_DROPPED))
			raw(w, p);
}

void
datapath_lookup_zones(struct worker *w, struct pkt *p)
{
	uint16_t zone = p->tuple.zone;
	uint64_t hash = p->hash;

	if (zone == p->zone_reply)
		return;
	if (p->ct != NULL && p->ct_dir == CT_ORIGINAL)
		return;
	p->tuple.zone = p->zone_reply;
	ct_lookup_bulk(w->ct, p, 1);
	if (p->ct != NULL && p->ct_dir == CT_REPLY) {
		p->zone_reply = zone;
		p->zone_set = PKT_ZONE_ANSWER;
		return;
	}
	p->ct = NULL;
	p->tuple.zone = zone;
	p->hash = hash;
	p->ct_reply_hash = 0;
}

void
datapath_zones_back(struct worker *w, struct pkt *p)
{
	uint16_t zone = p->zone_reply;

	p->zone_reply = p->tuple.zone;
	p->tuple.zone = zone;
	p->zone_set = PKT_ZONE_SET;
	p->ct = NULL;
	p->hash = ct_tuple_hash(w->ct, &p->tuple);
	p->ct_reply_hash = 0;
}

/* ---- forward ---- */

static bool
answered(const struct pkt *p)
{
	return p->ct_status & CT_SEEN_REPLY;
}

/* Whether a segment or chunk may begin a connection. */
static bool
opens(const struct pkt *p)
{
	const unsigned int flags = PKT_TCP_SYN | PKT_TCP_ACK | PKT_TCP_RST | PKT_TCP_FIN;

	if (p->proto == IPPROTO_TCP)
		return (p->tcp_flags & flags) == PKT_TCP_SYN;
	if (p->proto == IPPROTO_SCTP) /* INIT */
		return p->l4_len > sizeof(struct rte_sctp_hdr) &&
		       p->l4[sizeof(struct rte_sctp_hdr)] == 1;
	return true;
}

bool
datapath_outdated(const struct pkt *p)
{
	const struct ruleset *rs = p->rules;

	return p->ct_dir == CT_ORIGINAL && !answered(p) && p->ct_verdict != CT_OLD &&
	       !ruleset_stamp_current(rs, p->ct_verdict) &&
	       (rs->nat || (p->ct_status & (CT_SRC_NAT | CT_DST_NAT))) && opens(p);
}

/* Whether the verdict that the entry had for this direction still holds. */
static bool
settled(const struct pkt *p)
{
	if (p->ct_verdict == 0 || p->ct_verdict == CT_OLD)
		return p->ct_verdict == CT_OLD;
	return answered(p) || ruleset_stamp_current(p->rules, p->ct_verdict);
}

static void
apply_kept(struct worker *w, struct pkt *p)
{
	struct datapath_way *way = &w->dp.way[p - w->dp.pkt];
	bool drop = p->ct_verdict != CT_OLD && (p->ct_verdict & 1);

	way->verdict[RULE_FORWARD] = (uint8_t)(DATAPATH_WAY_SEEN | DATAPATH_WAY_KEPT |
					       (drop ? RULES_DROP : RULES_ACCEPT));
	if (p->ct_verdict == CT_OLD)
		ct_verdict_set(p, true, ruleset_stamp(p->rules, false));
	if (drop)
		datapath_drop(w, p, SL_DROP_RULE_DROP);
}

static void
evaluate(struct worker *w, struct pkt *p, bool keep)
{
	struct rules_packet k = datapath_rules_packet(w, p);
	struct rules_result r;

	k.again = limits_weigh_again(p);
	rules_view(&k);
	datapath_eval(w, RULE_FORWARD, &k, &r);
	if (unlikely(k.again) && r.verdict != RULES_ACCEPT)
		limits_refused(w->gw, w->ct, p);
	if (keep && r.verdict != RULES_REJECT)
		ct_verdict_set(p, false, ruleset_stamp(p->rules, r.verdict == RULES_DROP));
	if (r.verdict == RULES_REJECT)
		datapath_drop(w, p, datapath_reject(w, p, &r.item->reject));
	else if (r.verdict == RULES_DROP)
		datapath_drop(w, p, r.reason);
}

void
datapath_filter(struct worker *w, struct pkt *p)
{
	bool tracked = p->ct != NULL && !(p->flags & PKT_ICMP_ERROR);

	/* What goes over a wire outside of the chains. */
	if ((p->flags & (PKT_IP | PKT_ND)) != PKT_IP)
		return;
	if (likely(tracked && !p->rules->varies && settled(p) && !(p->flags & PKT_CT_AGAIN)))
		apply_kept(w, p);
	else if (p->rules->forward)
		evaluate(w, p, tracked && !p->rules->varies && !(p->flags & PKT_CT_AGAIN));
}
