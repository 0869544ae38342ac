/* SPDX-License-Identifier: BSD-3-Clause */
#include "netns_rules.h"

#include <errno.h>
#include <stdlib.h>

#include "err.h"
#include "event_rule.h"
#include "own_rules.h"
#include "rule_limits.h"
#include "ruleset.h"
#include "task.h"
#include "translate.h"

static int
attach(void *app, struct netns *ns, const struct rule *r, const struct rule_item *item,
	void **object, struct sl_err *err)
{
	switch (item->type) {
	case RULE_LIMIT:
	case RULE_CT_COUNT:
		return limits_attach(app, ns, r, item, object, err);
	case RULE_NAT:
		return translate_attach(app, ns, r, item, object, err);
	case RULE_LOG:
		return 0;
	default:
		return sl_refuse(err, ENOTSUP, "ct helper: not available");
	}
}

static void
detach(void *app, const struct rule_item *item, void *object)
{
	if (item->type == RULE_LIMIT || item->type == RULE_CT_COUNT)
		limits_detach(app, item, object);
	else
		free(object);
}

struct rules_ops *
netns_rules_ops(struct gateway *gw)
{
	struct rules_ops *ops = calloc(1, sizeof(*ops));

	if (ops == NULL)
		return NULL;
	ops->app = gw;
	ops->threads = gw_threads(gw);
	ops->attach = attach;
	ops->detach = detach;
	ops->weigh = limits_weigh;
	ops->log = event_rule_log;
	return ops;
}

static void
free_set(void *set)
{
	ruleset_free(set);
}

/* When there is no memory to wait aside, waits in place. */
static void
free_later(struct ruleset *rs)
{
	if (rs == NULL || task_after_grace(free_set, rs) == 0)
		return;
	sl_rcu_synchronize();
	ruleset_free(rs);
}

int
netns_rules_publish(struct gateway *gw, struct netns *ns, const struct rule_list *l,
	struct sl_err *err)
{
	struct ruleset *rs;

	if (ns->rules == NULL && rule_list_empty(l))
		return 0;
	rs = ruleset_create(l, ns, gw->rules_ops, err);
	if (rs == NULL)
		return -EINVAL;
	if (own_rules_replace(ns, l, err) != 0) {
		ruleset_free(rs);
		return -ENOMEM;
	}
	free_later(ruleset_publish(ns, rs));
	return 0;
}

void
netns_rules_free(struct netns *ns)
{
	ruleset_free(ruleset_publish(ns, NULL));
}
