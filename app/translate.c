/* SPDX-License-Identifier: BSD-3-Clause */
#include "translate.h"

#include <stdlib.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "datapath_rules.h"
#include "err.h"
#include "event_nat.h"
#include "forget.h"
#include "link.h"
#include "link_address.h"
#include "nat64.h"
#include "nat_pools.h"
#include "rule.h"
#include "ruleset.h"
#include "station.h"
#include "worker.h"

#define SOURCES_MIN   65536u
#define SOURCES_SHARE 4u /* of the entries may have a port that is not their source's own */

int
translate_create(struct gateway *gw, const struct gateway_config *config, struct sl_err *err)
{
	const struct nat_config nat = {
		.ct = gw->ct,
		.threads = gw_threads(gw),
		.max_sources = RTE_MAX(ct_max(gw->ct) / SOURCES_SHARE, SOURCES_MIN),
		.hash = config->hash,
		.seed = config->hash_seed,
		.ops = {.clock = event_nat_clock, .report = event_nat_report, .app = gw},
	};

	gw->nat = nat_create(&nat, err);
	return gw->nat != NULL ? 0 : -ENOMEM;
}

static uint8_t
request_flags(const struct rule_nat *n)
{
	uint8_t flags = 0;

	if (n->has_port)
		flags |= NAT_PORTS;
	if (n->flags & RULE_NAT_RANDOM)
		flags |= NAT_RANDOM;
	if (n->flags & RULE_NAT_FULLY_RANDOM)
		flags |= NAT_FULLY_RANDOM;
	if (n->flags & RULE_NAT_PERSISTENT)
		flags |= NAT_PERSISTENT;
	return flags;
}

static void
request_init(struct nat_request *r, const struct rule_nat *n)
{
	*r = (struct nat_request){
		.flags = request_flags(n),
		.family = n->family,
		.port_min = n->port_lo,
		.port_max = n->port_hi,
	};
	if (n->type == RULE_SNAT_PREFIX || n->type == RULE_DNAT_PREFIX) {
		r->flags |= NAT_ADDR | NAT_PREFIX;
		r->min = n->lo;
		r->prefix_len = n->prefix;
	} else if (n->has_addr) {
		r->flags |= NAT_ADDR;
		r->min = n->lo;
		r->max = n->hi;
	}
}

static bool
any_address(const struct netns *ns)
{
	const struct link *l;

	for (l = link_first(ns); l != NULL; l = l->next)
		if (link_address_first(l) != NULL)
			return true;
	return false;
}

static int
valid(const struct netns *ns, const struct rule_nat *n, struct sl_err *err)
{
	struct nat_request r;

	if ((n->type == RULE_MASQUERADE || n->type == RULE_REDIRECT) && !any_address(ns))
		return sl_refuse(err, EADDRNOTAVAIL,
			"no link of %s has an address to translate to: "
			"link address add LINK ADDR/LEN",
			ns->name);
	request_init(&r, n);
	return nat_request_valid(&r, err);
}

int
translate_attach(struct gateway *gw, struct netns *ns, const struct rule *r,
	const struct rule_item *item, void **object, struct sl_err *err)
{
	const struct rule_nat *n = item->nat;
	int ret;

	if (n->type == RULE_SNAT_POOL || n->type == RULE_NAT64) {
		*object = nat_pools_attach(gw, ns, r, item, err);
		ret = *object != NULL ? 0 : -EINVAL;
	} else {
		ret = valid(ns, n, err);
	}
	return ret == 0 ? nat_netns_enable(gw->nat, ns, err) : ret;
}

/* To the link's address. False: it has none. */
static bool
to_link(struct nat_request *r, const struct link *l, uint8_t family, const struct tuple_addr *end)
{
	const struct link_address *a = l == NULL ? NULL : link_address(l, family, end);

	if (a == NULL)
		return false;
	r->flags |= NAT_ADDR;
	r->family = family;
	r->min = r->max = a->addr;
	return true;
}

/* ---- an address that goes ---- */

void
translate_forget(struct gateway *gw, const struct link_address *a)
{
	const struct netns *ns = a->link->ns;
	struct nat_address *address;

	if (!translate_on(ns))
		return;
	address = malloc(sizeof(*address));
	if (address == NULL) /* they end by their timeouts then */
		return;
	*address = (struct nat_address){
		.ns_id = ns->id, .ns_gen = ns->gen, .family = a->family, .addr = a->addr};
	if (forget_connections(gw, nat_masqueraded, address, free) != 0)
		free(address);
}

/* ---- worker ---- */

static struct nat_thread *
thread_of(const struct worker *w)
{
	return nat_thread(w->gw->nat, w->index);
}

/* What a mapping keeps of the link that its source is on, to know it from the link's peer. */
static uint16_t
link_tag(const struct link *l)
{
	return (uint16_t)l->id;
}

void
translate_turns_back(struct pkt *p, uint16_t where)
{
	if (where != 0 && where == link_tag(p->in))
		p->ct->status |= CT_HAIRPIN;
}

static enum ct_verdict
no_address(struct worker *w, struct pkt *p)
{
	ct_abort(w->ct, p);
	p->reason = SL_DROP_NAT_NO_ADDRESS;
	return CT_DROP;
}

static enum ct_verdict
filtered(struct worker *w, struct pkt *p)
{
	ct_abort(w->ct, p);
	p->reason = SL_DROP_NAT_FILTERED;
	return CT_DROP;
}

bool
translate_refused(struct pkt *p, uint16_t where)
{
	if (where == 0 || where != link_tag(p->in))
		return false;
	p->ct->status |= CT_REFUSED;
	return true;
}

bool
translate_reachable(const struct translate_source *src)
{
	return src->use != NULL && nat_pool_exclusive(src->use);
}

enum ct_verdict
translate_again(struct worker *w, struct pkt *p)
{
	enum ct_verdict v;
	uint32_t mapping;

	p->reason = SL_DROP_NAT_FILTERED;
	if (p->ct_dir == CT_ORIGINAL && !nat_admitted(thread_of(w), p, &mapping))
		return CT_DROP;
	ct_kill(w->ct, p);
	if (p->ct_dir == CT_REPLY) /* nothing has left, so that nobody can answer */
		return CT_DROP;
	v = datapath_admit(w, p);
	nat_unhold(thread_of(w), mapping);
	return v;
}

enum ct_verdict
translate_dst(struct worker *w, struct pkt *p, const struct rule_nat *n)
{
	const struct tuple *orig = &p->ct->orig.tuple;
	struct nat_request r;

	request_init(&r, n);
	if (n->type == RULE_REDIRECT && !to_link(&r, p->in, orig->family, &orig->src))
		return no_address(w, p);
	nat_dst(thread_of(w), p, &r);
	return CT_OK;
}

enum ct_verdict
translate_inbound(struct worker *w, struct pkt *p)
{
	enum ct_verdict v;
	uint16_t where;

	if (!translate_on(p->ns))
		return CT_OK;
	v = nat_inbound(thread_of(w), p, &where);
	if (unlikely(v == CT_MISS))
		return translate_refused(p, where) ? CT_OK : filtered(w, p);
	if (v != CT_OK)
		return CT_DROP;
	translate_turns_back(p, where);
	return unlikely(nat64_translated(p->ct)) ? datapath_nat64_inbound(w, p) : CT_OK;
}

/* RFC 5508 REQ-8: who gets none of what there is only so much of is told. */
static enum ct_verdict
tell(struct worker *w, const struct pkt *p, const struct rule_nat *n, enum ct_verdict v)
{
	bool nat64 = n != NULL && n->type == RULE_NAT64;

	if (likely(v != CT_DROP))
		return v;
	if ((p->reason == SL_DROP_NAT_EXHAUSTED || p->reason == SL_DROP_NAT_HOST_LIMIT ||
		    p->reason == SL_DROP_NAT_MAPPINGS_FULL) &&
		netns_knobs(p->ns)->nat_exhaustion_icmp)
		datapath_exhausted(w, p, nat64);
	return v;
}

/* What a statement of postrouting asks for a connection of that reply tuple. False: its link has no
 * address. */
static bool
source_request(struct nat_request *r, const struct worker *w, const struct pkt *p,
	const struct translate_source *src, const struct tuple *reply)
{
	if (src->use != NULL) {
		nat_pool_request(r, src->use);
		r->where = link_tag(p->in);
	} else {
		request_init(r, src->nat);
	}
	r->ahead = &w->dp.nat_ahead[p - w->dp.pkt];
	if (src->nat->type != RULE_MASQUERADE)
		return true;
	r->flags |= NAT_MASQUERADE;
	return to_link(r, src->out, reply->family, &reply->src);
}

/* Its connection is what there is to keep. */
static enum ct_verdict
drop_refused(struct pkt *p, enum ct_verdict v)
{
	if (v != CT_OK)
		return v;
	p->reason = SL_DROP_NAT_FILTERED;
	return CT_DROP;
}

enum ct_verdict
translate_commit(struct worker *w, struct pkt *p, const struct translate_source *src)
{
	const struct tuple *reply = &p->ct->reply.tuple;
	const struct rule_nat *n = src->nat;
	struct nat64_prefix prefix;
	struct nat_request r;
	enum ct_verdict v;
	bool refused;

	if (likely(!translate_on(p->ns)))
		return ct_commit(w->ct, p);
	if (unlikely(!station_admit(w, p))) {
		ct_abort(w->ct, p);
		return CT_DROP;
	}
	if (n == NULL)
		return nat_commit(thread_of(w), p, NULL);
	if (!source_request(&r, w, p, src, reply))
		return no_address(w, p);
	if (n->type == RULE_NAT64) {
		prefix = (struct nat64_prefix){.addr = n->lo, .len = n->prefix};
		r.nat64 = &prefix;
	}
	refused = p->ct->status & CT_REFUSED;
	v = tell(w, p, n, nat_commit(thread_of(w), p, &r));
	return unlikely(refused) ? drop_refused(p, v) : v;
}

struct nat_ahead *
translate_ahead_new(void)
{
	return calloc(DATAPATH_BURST, sizeof(struct nat_ahead));
}

#define NO_CONNECTION (PKT_DROPPED | PKT_UNTRACKED | PKT_L4_BAD | PKT_ICMP_ERROR)

/* The first statement of postrouting is taken for the one that it will come to. */
void
translate_ahead_begin(struct worker *w, unsigned int i)
{
	const struct pkt *p = &w->dp.pkt[i];
	const struct ruleset *rs = p->rules;
	struct nat_ahead *ahead = &w->dp.nat_ahead[i];
	struct translate_source src;
	struct nat_request r;
	struct tuple reply;

	ahead->key = 0;
	if (rs == NULL || rs->source == NULL || !ct_lookup_missed(p) ||
		(p->flags & (PKT_IP | NO_CONNECTION)) != PKT_IP)
		return;
	src = (struct translate_source){rs->source->nat, rs->source_object, link_peer(p->in)};
	if (tuple_invert(&reply, &p->tuple) && source_request(&r, w, p, &src, &reply))
		nat_ahead_begin(thread_of(w), p, &r, ahead);
}

void
translate_ahead_finish(struct worker *w, unsigned int i)
{
	nat_ahead_finish(thread_of(w), &w->dp.nat_ahead[i]);
}

static __rte_noinline void
give_up(struct worker *w, struct pkt *p)
{
	station_cancel(p);
	datapath_drop(w, p, p->reason);
}

void
translate_burst(struct worker *w)
{
	struct nat_thread *t = thread_of(w);
	uint32_t left = w->dp.translate;
	struct pkt *p;

	for (; left != 0; left &= left - 1) {
		p = &w->dp.pkt[__builtin_ctz(left)];
		if (p->flags & PKT_DROPPED || p->ct == NULL ||
			translate_ready(p, translate_status(p)))
			continue;
		if (unlikely(nat64_translated(p->ct)))
			datapath_nat64(w, p);
		else if (unlikely(!station_write(w, p) || !nat_rewrite(t, p)))
			give_up(w, p);
		if (unlikely(p->late))
			p->flags |= PKT_DATAGRAM;
	}
}
