/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules in the packet path: what its stages have in common. For the files datapath*.c alone. */
#ifndef DATAPATH_RULES_H
#define DATAPATH_RULES_H

#include "datapath_stages.h"
#include "icmp_error.h"
#include "ruleset.h"

/* ---- datapath_admit.c ---- */

/* A packet of no known connection: may it start one? As ct_begin() and ct_commit(). */
enum ct_verdict datapath_admit(struct worker *w, struct pkt *p);

/* ---- datapath_nat64.c ---- */

/* Prerouting has come to a `nat64` statement for the embryo: its destination becomes the IPv4 host.
 * CT_OK; CT_DROP with pkt.reason: the embryo was given back. */
enum ct_verdict datapath_nat64_admit(struct worker *w, struct pkt *p, const struct rule_nat *n);

/* An embryo from outside that goes to a host of IPv6: whether it can. As above. */
enum ct_verdict datapath_nat64_inbound(struct worker *w, struct pkt *p);

/* ---- datapath_rules.c ---- */

/* The rules of the packet's namespace, which it has for all of its way. */
static inline void
datapath_find_rules(struct worker *w, struct pkt *p)
{
	p->rules = sl_rcu_dereference(&p->ns->rules);
	if (unlikely(p->rules != NULL)) {
		w->dp.raw |= p->rules->raw;
		if (unlikely(w->dp.traced))
			w->dp.way[p - w->dp.pkt] = (struct datapath_way){0};
	}
}

/* The raw chain, for all packets of the burst whose namespace has one. */
void datapath_raw(struct worker *w, unsigned int n);

/* Looks a packet up whose two directions are in different zones (pkt.zone_set), after the lookup
 * of the burst: p->ct and ct_dir are right then. */
void datapath_lookup_zones(struct worker *w, struct pkt *p);

/* What a packet was found to be an answer of is not what it belongs to (PKT_ZONE_ANSWER): it is to
 * be looked up and admitted in its own zone. */
void datapath_zones_back(struct worker *w, struct pkt *p);

/* The forward chain for a packet that has not just opened a connection; it may be dropped. */
void datapath_filter(struct worker *w, struct pkt *p);

/* Whether that lets the packet pass by what its entry keeps, so that nothing is to be done but for
 * the trace. */
static inline bool
datapath_accepted(const struct pkt *p)
{
	const unsigned int plain = PKT_IP | PKT_ND | PKT_ICMP_ERROR | PKT_CT_AGAIN;

	/* A drop is odd, and so is CT_OLD. */
	if (p->ct_verdict & 1)
		return false;
	if (!p->rules->forward)
		return true;
	return p->ct != NULL && !p->rules->varies && (p->flags & plain) == PKT_IP &&
	       p->ct_verdict != 0 &&
	       (p->ct_status & CT_SEEN_REPLY || ruleset_stamp_current(p->rules, p->ct_verdict));
}

/*
 * True for a tracked packet that could open a connection, whose own has no answer yet and was
 * admitted under other rules that may have translated it otherwise: it is to be admitted anew.
 */
bool datapath_outdated(const struct pkt *p);

/* The packet, for an evaluation by this worker; without its second part. */
struct rules_packet datapath_rules_packet(struct worker *w, struct pkt *p);

/* ruleset_eval(), and notes the result for the trace. */
void datapath_eval(struct worker *w, enum rule_chain chain, struct rules_packet *k,
	struct rules_result *r);

/* ---- datapath_reject.c ---- */

/* Tells the packet's sender, as often as sluice.reject_rate allows; *e without its source, which is
 * set. False: nobody may be told, or not now. */
bool datapath_icmp_error(struct worker *w, const struct pkt *p, struct icmp_error *e);

/* The error that its host did not answer, for datapath_send_error() when that is certain; in a
 * buffer of its own. NULL: nobody may be told. */
struct rte_mbuf *datapath_unreachable(struct worker *w, const struct pkt *p);

/* Tells a packet's sender that no link has a network with its destination. */
void datapath_no_route(struct worker *w, const struct pkt *p);

/* Tells a packet's sender, likewise, that translation had nothing left for its connection; with
 * NAT64 in other words. */
void datapath_exhausted(struct worker *w, const struct pkt *p, bool nat64);

/* Sends a RST back for a TCP segment, likewise; false as above. */
bool datapath_reset(struct worker *w, const struct pkt *p);

/* Answers a packet that a rule rejects; it is still to be dropped, for the reason returned. */
enum sl_drop datapath_reject(struct worker *w, struct pkt *p, const struct rule_reject *reject);

#endif
