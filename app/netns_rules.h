/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of a namespace as the packet path has them: compiled from the list that the commands
 * edit, and published. And what the rules' statements need of the rest of the gateway.
 */
#ifndef NETNS_RULES_H
#define NETNS_RULES_H

#include "gateway.h"
#include "rule_list.h"

struct sl_err;

/* What a gateway's rules call (ruleset.h); freed with free(). NULL: no memory. */
struct rules_ops *netns_rules_ops(struct gateway *gw);

/*
 * Workers evaluate the rules of the list from now on, which stays the caller's; those they had go
 * after a grace period. A namespace that has had rules keeps an empty set, so that connections of
 * the old ones are known. 0, or -errno with err filled and nothing changed.
 */
int netns_rules_publish(
	struct gateway *gw, struct netns *ns, const struct rule_list *l, struct sl_err *err);

/* Frees what was published, when no worker sees the namespace any more. */
void netns_rules_free(struct netns *ns);

#endif
