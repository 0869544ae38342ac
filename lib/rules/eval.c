/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Evaluation of a chain: rule by rule, item by item. What is matched comes from the program that
 * namespaces share, what a statement does from the namespace's own rule.
 */
#include <netinet/in.h>

#include <rte_mbuf.h>

#include "classify.h"
#include "live.h"
#include "program.h"
#include "ruleset.h"

/* From so many ranges on they are searched by halves. */
#define SEARCH_FROM 8u

/* ---- matches ---- */

/* Lists of ranges ascend without overlap. */
static bool
in_ranges(const uint32_t *range, uint32_t n, uint32_t v)
{
	uint32_t lo = 0, mid;

	while (n - lo > SEARCH_FROM) {
		mid = lo + (n - lo) / 2;
		if (v < range[2 * mid])
			n = mid;
		else
			lo = mid;
	}
	for (; lo < n; lo++)
		if (v >= range[2 * lo] && v <= range[2 * lo + 1])
			return true;
	return false;
}

/* <0, 0, >0 as memcmp(), of values of four words. */
static int
compare_wide(const uint32_t *a, const uint32_t *b)
{
	unsigned int i;

	for (i = 0; i < RULES_WIDE; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static bool
in_ranges_wide(const uint32_t *range, uint32_t n, const uint32_t *v)
{
	uint32_t lo = 0, mid;

	while (n - lo > SEARCH_FROM) {
		mid = lo + (n - lo) / 2;
		if (compare_wide(v, &range[2 * RULES_WIDE * mid]) < 0)
			n = mid;
		else
			lo = mid;
	}
	for (; lo < n; lo++)
		if (compare_wide(v, &range[2 * RULES_WIDE * lo]) >= 0 &&
			compare_wide(v, &range[2 * RULES_WIDE * lo + RULES_WIDE]) <= 0)
			return true;
	return false;
}

static bool
port(const struct rules_packet *k, uint8_t proto, uint16_t port, uint32_t *v)
{
	*v = port;
	return k->has_ports && k->proto == proto;
}

static bool
icmp_type(const struct rules_packet *k, uint8_t proto, uint32_t *v)
{
	*v = k->icmp_type;
	return k->has_type && k->proto == proto;
}

static bool
address4(const struct rules_packet *k, const struct tuple_addr *a, uint32_t *v)
{
	*v = rte_be_to_cpu_32(a->w[0]);
	return k->family == TUPLE_IPV4;
}

/* What is in the connection, or set for it by raw. */
static bool
of_connection(const struct rules_packet *k, uint8_t field, uint32_t *v)
{
	const struct pkt *p = k->pkt;

	if (field == RULE_CT_MARK)
		return p->ct != NULL && ct_mark_get(p, v);
	if (p->ct != NULL)
		return ct_zone_get(p, v);
	*v = p->tuple.zone != 0 ? p->tuple.zone : p->zone_reply;
	return p->zone_set && !(p->flags & PKT_CT_INVALID);
}

/* The value of a field of one word; false when the packet has none. */
static bool
field_value(const struct rules_packet *k, uint8_t field, uint32_t *v)
{
	switch (field) {
	case RULE_IP_SADDR:
		return address4(k, &k->src, v);
	case RULE_IP_DADDR:
		return address4(k, &k->dst, v);
	case RULE_NFPROTO:
		*v = k->family;
		return k->family != 0;
	case RULE_L4PROTO:
		*v = k->proto;
		return k->family != 0;
	case RULE_TCP_SPORT:
		return port(k, IPPROTO_TCP, k->sport, v);
	case RULE_TCP_DPORT:
		return port(k, IPPROTO_TCP, k->dport, v);
	case RULE_UDP_SPORT:
		return port(k, IPPROTO_UDP, k->sport, v);
	case RULE_UDP_DPORT:
		return port(k, IPPROTO_UDP, k->dport, v);
	case RULE_SCTP_SPORT:
		return port(k, IPPROTO_SCTP, k->sport, v);
	case RULE_SCTP_DPORT:
		return port(k, IPPROTO_SCTP, k->dport, v);
	case RULE_TCP_FLAGS:
		*v = k->tcp_flags;
		return k->has_flags;
	case RULE_ICMP_TYPE:
		return icmp_type(k, IPPROTO_ICMP, v);
	case RULE_ICMPV6_TYPE:
		return icmp_type(k, IPPROTO_ICMPV6, v);
	case RULE_CT_STATE:
		*v = k->state;
		return true;
	case RULE_META_MARK:
		*v = k->pkt->mark;
		return true;
	default:
		return of_connection(k, field, v);
	}
}

/* The bytes of a wide field; NULL when the packet has none. */
static const void *
field_bytes(const struct rules_packet *k, uint8_t field)
{
	switch (field) {
	case RULE_IP6_SADDR:
		return k->family == TUPLE_IPV6 ? &k->src : NULL;
	case RULE_IP6_DADDR:
		return k->family == TUPLE_IPV6 ? &k->dst : NULL;
	case RULE_IIFNAME:
		return k->in_name;
	default:
		return k->out_name;
	}
}

static bool
match(const struct rules_program *p, const struct rules_op *op, const struct rules_packet *k)
{
	const uint32_t *range = p->word + op->at;
	uint32_t v, wide[RULES_WIDE];
	const void *bytes;
	unsigned int i;

	if (!rules_field_wide(op->field))
		return field_value(k, op->field, &v) &&
		       in_ranges(range, op->n, v & op->mask) != op->negate;
	bytes = field_bytes(k, op->field);
	if (bytes == NULL)
		return false;
	memcpy(wide, bytes, sizeof(wide));
	for (i = 0; i < RULES_WIDE; i++)
		wide[i] = rte_be_to_cpu_32(wide[i]);
	return in_ranges_wide(range, op->n, wide) != op->negate;
}

/* ---- statements ---- */

/* Where a limit is not weighed the connection is within it. */
static enum rules_weight
weigh(const struct rule *r, const struct rule_item *it, struct rules_packet *k)
{
	const struct rules_ops *ops = r->live->ops;
	bool rate = it->type == RULE_LIMIT;
	const struct rule_key *by = rate ? &it->limit.by : &it->ct_count.by;
	bool over = rate ? it->limit.over : it->ct_count.over;

	if (by->family != 0 && by->family != k->family)
		return RULES_NO_MATCH;
	if (k->admission || k->again || (rate && by->family == 0))
		return ops->weigh(ops->app, it, r->live->object[it - r->item], k);
	return over ? RULES_NO_MATCH : RULES_MATCH;
}

static void
set_zone(struct rules_packet *k, const struct rule_zone_set *z)
{
	struct pkt *p = k->pkt;

	/* The first zone holds, and a packet with one is tracked again. */
	if (p->zone_set || (p->flags & (PKT_IP | PKT_ND)) != PKT_IP)
		return;
	k->state = RULE_STATE_NEW;
	p->zone_set = PKT_ZONE_SET;
	p->flags &= (uint16_t)~PKT_UNTRACKED;
	p->zone_reply = z->dir == RULE_ZONE_ORIGINAL ? 0 : z->zone;
	p->tuple.zone = z->dir == RULE_ZONE_REPLY ? 0 : z->zone;
}

static void
act(const struct rule *r, const struct rule_item *it, struct rules_packet *k)
{
	const struct rules_ops *ops = r->live->ops;
	struct pkt *p = k->pkt;

	switch (it->type) {
	case RULE_COUNTER:
		rule_live_count(r, it->counter.index, k->thread,
			k->family != 0 ? p->ip_bytes : rte_pktmbuf_pkt_len(p->mbuf));
		break;
	case RULE_LOG:
		if (ops->log != NULL)
			ops->log(ops->app, r, it->log, k);
		break;
	case RULE_CT_MARK_SET:
		if (p->ct != NULL)
			ct_mark_set(k->ct, p,
				it->mark_set.from_meta ? p->mark : it->mark_set.value);
		break;
	case RULE_META_MARK_SET:
		p->mark = it->mark_set.value;
		break;
	case RULE_ZONE_SET:
		set_zone(k, &it->zone_set);
		break;
	case RULE_NOTRACK:
		if (p->zone_set)
			break;
		p->flags |= PKT_UNTRACKED;
		k->state = RULE_STATE_UNTRACKED;
		break;
	default:
		break;
	}
}

static bool
reject_fits(const struct rule_reject *reject, const struct rules_packet *k)
{
	switch (reject->type) {
	case RULE_REJECT_TCP_RESET:
		return k->family != 0 && k->proto == IPPROTO_TCP;
	case RULE_REJECT_ICMP:
		return k->family == TUPLE_IPV4;
	case RULE_REJECT_ICMPV6:
		return k->family == TUPLE_IPV6;
	default:
		return k->family != 0;
	}
}

static bool
in_prefix(const struct rule_nat *nat, const struct tuple_addr *a)
{
	return memcmp(&nat->lo, a, sizeof(*a)) <= 0 && memcmp(a, &nat->hi, sizeof(*a)) <= 0;
}

/* A verdict, if it is for this packet. */
static bool
decide(const struct rule *r, const struct rule_item *it, const struct rules_packet *k,
	struct rules_result *out)
{
	switch (it->type) {
	case RULE_ACCEPT:
		out->verdict = RULES_ACCEPT;
		break;
	case RULE_DROP:
		out->verdict = RULES_DROP;
		out->reason = SL_DROP_RULE_DROP;
		break;
	case RULE_REJECT:
		if (!reject_fits(&it->reject, k))
			return false;
		out->verdict = RULES_REJECT;
		break;
	default:
		if (k->family == 0 || (it->nat->family != 0 && it->nat->family != k->family))
			return false;
		if (it->nat->type == RULE_NAT64 && !in_prefix(it->nat, &k->dst))
			return false;
		out->verdict = RULES_NAT;
		out->object = r->live->object[it - r->item];
		break;
	}
	out->policy = false;
	out->handle = r->handle;
	out->item = it;
	return true;
}

/* ---- rules ---- */

/* True when the rule had a verdict. */
static bool
run_rule(const struct ruleset *rs, uint32_t number, struct rules_packet *k,
	struct rules_result *out)
{
	const struct rules_program *p = rs->program;
	const struct rules_op *op = p->op + p->start[number], *end = p->op + p->start[number + 1];
	const struct rule *r = rs->rule[number];
	const struct rule_item *it;
	enum rules_weight weight;

	for (; op < end; op++) {
		if (op->type == RULE_MATCH) {
			if (!match(p, op, k))
				return false;
			continue;
		}
		it = &r->item[op->at];
		if (it->type >= RULE_ACCEPT)
			return decide(r, it, k, out);
		if (it->type != RULE_LIMIT && it->type != RULE_CT_COUNT) {
			act(r, it, k);
			continue;
		}
		weight = weigh(r, it, k);
		if (weight == RULES_NO_MATCH)
			return false;
		if (weight == RULES_REFUSED) {
			*out = (struct rules_result){.verdict = RULES_DROP,
				.reason = k->pkt->reason, .handle = r->handle, .item = it};
			return true;
		}
	}
	return false;
}

void
ruleset_eval(const struct ruleset *rs, enum rule_chain chain, struct rules_packet *k,
	struct rules_result *out)
{
	const struct rules_chain *c = &rs->program->chain[chain];
	const struct rules_classifier *classifier = rs->program->classifier[chain];
	struct rules_search search;
	uint32_t i;

	out->object = NULL;
	if (classifier != NULL) {
		rules_search_start(classifier, k, &search);
		while (rules_search_next(&search, &i))
			if (run_rule(rs, c->first + i, k, out))
				return;
	} else {
		for (i = c->first; i < c->first + c->n; i++)
			if (run_rule(rs, i, k, out))
				return;
	}
	*out = (struct rules_result){.verdict = c->drop ? RULES_DROP : RULES_ACCEPT,
		.reason = SL_DROP_RULE_POLICY, .policy = true};
}
