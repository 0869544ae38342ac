/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule_limits.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>

#include "connlimit.h"
#include "err.h"
#include "worker.h"

int
limits_create(struct gateway *gw, const struct gateway_config *config, struct sl_err *err)
{
	const struct connlimit_config limits = {.threads = gw_threads(gw),
		.hash = config->hash,
		.hash_seed = config->hash_seed};

	gw->limits = connlimit_create(&limits, err);
	return gw->limits != NULL ? 0 : -ENOMEM;
}

static struct connlimit_key
key_of(const struct rule_key *by)
{
	return (struct connlimit_key){
		.family = by->family, .daddr = by->daddr, .prefix = by->prefix};
}

/* Memory for the counters is taken with the first rule that counts. */
static int
attach_count(struct gateway *gw, struct netns *ns, const struct rule *r,
	const struct rule_item *item, struct connlimit_count **out, struct sl_err *err)
{
	const struct rule_ct_count *s = &item->ct_count;
	struct connlimit_count *before = rule_object_before(r, item);
	const struct connlimit_count_config config = {.ns = ns,
		.by = key_of(&s->by),
		.limit = s->count,
		.over = s->over,
		.rule = r->handle};
	const struct knobs *init = netns_knobs(netns_init_ns(gw->netns));
	int ret = connlimit_set_max(gw->limits, init->connlimit_max, err);

	if (ret == 0)
		ret = connlimit_netns_init(gw->limits, ns, err);
	if (ret != 0)
		return ret;
	return before != NULL ? connlimit_count_share(gw->limits, before, &config, out, err)
			      : connlimit_count_create(gw->limits, &config, out, err);
}

static int
attach_rate(struct gateway *gw, const struct netns *ns, const struct rule_limit *s,
	struct connlimit_rate **out, struct sl_err *err)
{
	const struct connlimit_rate_config config = {.by = key_of(&s->by),
		.rate = s->rate,
		.unit = s->unit,
		.burst = s->burst,
		.over = s->over,
		.keys = netns_knobs(ns)->ratelimit_keys};

	return connlimit_rate_create(gw->limits, &config, out, err);
}

int
limits_attach(struct gateway *gw, struct netns *ns, const struct rule *r,
	const struct rule_item *item, void **object, struct sl_err *err)
{
	struct connlimit_count *count;
	struct connlimit_rate *rate;
	int ret;

	if (item->type == RULE_CT_COUNT) {
		ret = attach_count(gw, ns, r, item, &count, err);
		*object = ret == 0 ? count : NULL;
	} else {
		rate = rule_object_before(r, item);
		if (rate != NULL)
			rate = connlimit_rate_share(rate);
		ret = rate != NULL ? 0 : attach_rate(gw, ns, &item->limit, &rate, err);
		*object = ret == 0 ? rate : NULL;
	}
	return ret;
}

void
limits_detach(struct gateway *gw, const struct rule_item *item, void *object)
{
	if (object == NULL)
		return;
	if (item->type == RULE_CT_COUNT)
		connlimit_count_free(gw->limits, object);
	else
		connlimit_rate_free(object);
}

int
limits_set_max(struct gateway *gw, uint32_t keys, struct sl_err *err)
{
	struct connlimit_memory m;

	connlimit_memory(gw->limits, &m);
	return m.keys_max == 0 ? 0 : connlimit_set_max(gw->limits, keys, err);
}

static inline struct connlimit_thread *
thread_of(const struct gateway *gw, const struct ct_thread *t)
{
	return connlimit_thread(gw->limits, ct_thread_index(t));
}

/* One for each packet of a burst. */
struct limits_ahead {
	struct connlimit_ahead of[RULES_COUNTS];
};

struct limits_ahead *
limits_ahead_new(void)
{
	return calloc(DATAPATH_BURST, sizeof(struct limits_ahead));
}

void
limits_ahead(struct worker *w, unsigned int i)
{
	const struct pkt *p = &w->dp.pkt[i];
	struct connlimit_thread *t = connlimit_thread(w->gw->limits, w->index);
	unsigned int k;

	for (k = 0; k < p->rules->n_counts; k++) {
		w->dp.ahead[i].of[k].count = NULL;
		if (ct_lookup_missed(p))
			connlimit_prefetch(
				t, p->rules->count[k], &p->tuple, &w->dp.ahead[i].of[k]);
	}
}

/* What was begun for this packet and count; NULL: nothing. */
static const struct connlimit_ahead *
ahead_of(const struct gateway *gw, const struct rules_packet *k, const void *count)
{
	const struct worker *w = gw->workers[k->thread];
	const struct ruleset *rs = k->pkt->rules;
	unsigned int i;

	for (i = 0; i < rs->n_counts; i++)
		if (rs->count[i] == count)
			return &w->dp.ahead[k->pkt - w->dp.pkt].of[i];
	return NULL;
}

static enum rules_weight
refuse(struct rules_packet *k, enum sl_drop reason)
{
	k->pkt->reason = (uint8_t)reason;
	return RULES_REFUSED;
}

static enum rules_weight
weigh_count(const struct gateway *gw, struct connlimit_count *count, const struct tuple *seen,
	struct rules_packet *k)
{
	const struct connlimit_ahead *ahead = ahead_of(gw, k, count);

	switch (connlimit_weigh(thread_of(gw, k->ct), count, seen, k->pkt->ct, ahead)) {
	case CONNLIMIT_MATCH:
		return RULES_MATCH;
	case CONNLIMIT_NO_MATCH:
		return RULES_NO_MATCH;
	case CONNLIMIT_FULL:
		return refuse(k, SL_DROP_CONNLIMIT_FULL);
	default:
		return refuse(k, SL_DROP_CONNLIMIT_MANY);
	}
}

enum rules_weight
limits_weigh(void *app, const struct rule_item *item, void *object, struct rules_packet *k)
{
	const struct tuple seen = {.family = k->family, .src = k->src, .dst = k->dst};
	enum rules_weight weight;

	if (item->type == RULE_LIMIT)
		return connlimit_rate_match(object, &seen, k->now) ? RULES_MATCH : RULES_NO_MATCH;
	if (likely(k->admission))
		return weigh_count(app, object, &seen, k);
	if (!ct_hold(k->pkt)) /* the connection has gone meanwhile */
		return item->ct_count.over ? RULES_NO_MATCH : RULES_MATCH;
	weight = weigh_count(app, object, &seen, k);
	ct_release(k->pkt);
	return weight;
}

bool
limits_weigh_again(const struct pkt *p)
{
	bool charged;

	if (likely(!(p->flags & PKT_CT_AGAIN)) || !ct_hold(p))
		return false;
	charged = connlimit_charged(p->ct);
	ct_release(p);
	return !charged;
}

void
limits_refused(struct gateway *gw, struct ct_thread *t, const struct pkt *p)
{
	if (!ct_hold(p))
		return;
	connlimit_release(thread_of(gw, t), p->ct);
	ct_release(p);
}

void
limits_destroyed(void *app, struct ct_thread *t, struct ct_entry *const e[], unsigned int n)
{
	connlimit_release_bulk(thread_of(app, t), e, n);
}

void
limits_aborted(void *app, struct ct_thread *t, struct ct_entry *e)
{
	connlimit_release(thread_of(app, t), e);
}
