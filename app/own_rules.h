/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses that a namespace's rules make the gateway's own (own.h): those that `snat` translates
 * to, and those that a rule with `dnat` names as the destination, one by one; with a prefix to
 * translate to, the prefix that it names. Wider matches (`ip daddr 10.0.0.0/8 … dnat to …`) take
 * what is for others, whose the addresses stay.
 *
 * On which link they are asked for is what the rule says by `oifname` (snat) or `iifname` (dnat),
 * if it names one.
 */
#ifndef OWN_RULES_H
#define OWN_RULES_H

#include "rule_list.h"

struct netns;
struct sl_err;

/* Replaces what the namespace's rules hold by what those of the list do. 0 or -ENOMEM. */
int own_rules_replace(struct netns *ns, const struct rule_list *l, struct sl_err *err);

#endif
