/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission: a packet of no known connection, and what is asked before it may have one. The entry
 * is an embryo that nobody else can see until ct_commit(), the last step; whoever refuses before
 * gives it back with all that was charged and bound for it.
 */
#include "datapath_rules.h"
#include "link.h"
#include "translate.h"

/* The embryo goes, and with it what it holds. */
static enum ct_verdict
refuse(struct worker *w, struct pkt *p, enum sl_drop reason)
{
	ct_abort(w->ct, p);
	p->reason = (uint8_t)reason;
	return CT_DROP;
}

/*
 * The chains that see the first packet of a connection, in netfilter's order. What forward says is
 * kept in the entry. *src is set to the statement that postrouting came to.
 */
static enum ct_verdict
ask_rules(struct worker *w, struct pkt *p, const struct rule_nat **src)
{
	struct rules_packet k = datapath_rules_packet(w, p);
	const struct ruleset *rs = p->rules;
	struct rules_result r;

	k.admission = true;
	rules_view(&k);
	if (rs->nat) {
		datapath_eval(w, RULE_PREROUTING, &k, &r);
		if (r.verdict == RULES_DROP)
			return refuse(w, p, r.reason);
		if (r.verdict == RULES_NAT) {
			if (translate_dst(w, p, r.item->nat) != CT_OK)
				return CT_DROP;
			rules_view(&k);
		}
	}
	if (p->out == NULL)
		p->out = link_peer(p->in);
	k.out_name = p->out != NULL ? p->out->name : NULL;
	if (rs->forward) {
		datapath_eval(w, RULE_FORWARD, &k, &r);
		if (r.verdict == RULES_REJECT)
			return refuse(w, p, datapath_reject(w, p, &r.item->reject));
		if (r.verdict == RULES_DROP)
			return refuse(w, p, r.reason);
	}
	if (rs->nat) {
		datapath_eval(w, RULE_POSTROUTING, &k, &r);
		if (r.verdict == RULES_DROP)
			return refuse(w, p, r.reason);
		if (r.verdict == RULES_NAT)
			*src = r.item->nat;
	}
	ct_verdict_set(p, false, ruleset_stamp(rs, false));
	return CT_OK;
}

enum ct_verdict
datapath_admit(struct worker *w, struct pkt *p)
{
	const struct rule_nat *src = NULL;
	enum ct_verdict v;

	if (unlikely(!netns_alive(p->ns))) {
		p->reason = SL_DROP_NETNS_DYING;
		return CT_DROP;
	}
	v = ct_begin(w->ct, p, w->now);
	if (v == CT_OK && unlikely(p->rules != NULL))
		v = ask_rules(w, p, &src);
	return v == CT_OK ? translate_commit(w, p, src) : v;
}
