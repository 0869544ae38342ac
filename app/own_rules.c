/* SPDX-License-Identifier: BSD-3-Clause */
#include "own_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "own.h"

_Static_assert(RULE_NAME_MAX == LINK_NAME_MAX, "a rule names a link");

struct ranges {
	struct own_range *range;
	unsigned int n, room;
};

static int
add(struct ranges *all, const struct own_range *r)
{
	unsigned int room = all->room == 0 ? 16 : all->room * 2;
	struct own_range *grown;

	if (all->n == all->room) {
		grown = realloc(all->range, room * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		all->range = grown;
		all->room = room;
	}
	all->range[all->n++] = *r;
	return 0;
}

static const struct rule_nat *
translation(const struct rule *r)
{
	const struct rule_item *last = r->n > 0 ? &r->item[r->n - 1] : NULL;

	return last != NULL && last->type == RULE_NAT ? last->nat : NULL;
}

/* The one link that the rule is for by this field; "": it is for several. */
static const char *
rule_link(const struct rule *r, enum rule_field field)
{
	const struct rule_match *m;
	uint32_t i;

	for (i = 0; i < r->n; i++) {
		m = &r->item[i].match;
		if (r->item[i].type == RULE_MATCH && m->field == field && !m->negate && m->n == 1 &&
			memcmp(&m->range->lo, &m->range->hi, sizeof(m->range->lo)) == 0)
			return m->range->lo.name;
	}
	return "";
}

static void
set_link(struct own_range *range, const struct rule *r, enum rule_field field)
{
	memcpy(range->link, rule_link(r, field), strlen(rule_link(r, field)) + 1);
}

/* The last address of a prefix whose first is lo. */
static struct tuple_addr
last_of_prefix(const struct tuple_addr *lo, uint8_t family, unsigned int len)
{
	unsigned int bytes = family == TUPLE_IPV4 ? 4 : 16, i;
	struct tuple_addr hi = *lo;

	for (i = len / 8; i < bytes; i++)
		hi.b[i] |= (uint8_t)(i == len / 8 ? 0xffu >> len % 8 : 0xffu);
	return hi;
}

static int
add_source(struct ranges *all, const struct rule *r, const struct rule_nat *nat)
{
	struct own_range range = {.lo = nat->lo, .hi = nat->hi, .family = nat->family};

	if (nat->type == RULE_SNAT_PREFIX)
		range.hi = last_of_prefix(&nat->lo, nat->family, nat->prefix);
	else if (!nat->has_addr)
		return 0;
	set_link(&range, r, RULE_OIFNAME);
	return add(all, &range);
}

/* Hosts of IPv6 may take those of IPv4 for neighbours. */
static int
add_prefix(struct ranges *all, const struct rule *r, const struct rule_nat *nat)
{
	struct own_range range = {.lo = nat->lo, .hi = nat->hi, .family = TUPLE_IPV6};

	set_link(&range, r, RULE_IIFNAME);
	return add(all, &range);
}

static int
add_destinations(struct ranges *all, const struct rule *r, const struct rule_match *m, bool wide)
{
	struct own_range range = {
		.family = m->field == RULE_IP_DADDR ? TUPLE_IPV4 : TUPLE_IPV6};
	uint32_t i;
	int ret = 0;

	set_link(&range, r, RULE_IIFNAME);
	for (i = 0; i < m->n && ret == 0; i++) {
		range.lo = m->range[i].lo.addr;
		range.hi = m->range[i].hi.addr;
		if (wide || memcmp(&range.lo, &range.hi, sizeof(range.lo)) == 0)
			ret = add(all, &range);
	}
	return ret;
}

static int
add_rule(struct ranges *all, const struct rule *r)
{
	const struct rule_nat *nat = translation(r);
	const struct rule_match *m;
	uint32_t i;
	int ret = 0;

	if (nat == NULL)
		return 0;
	if (nat->type == RULE_SNAT || nat->type == RULE_SNAT_PREFIX)
		return add_source(all, r, nat);
	if (nat->type == RULE_NAT64)
		return add_prefix(all, r, nat);
	if (nat->type != RULE_DNAT && nat->type != RULE_DNAT_PREFIX)
		return 0;
	for (i = 0; i < r->n && ret == 0; i++) {
		m = &r->item[i].match;
		if (r->item[i].type == RULE_MATCH && !m->negate &&
			(m->field == RULE_IP_DADDR || m->field == RULE_IP6_DADDR))
			ret = add_destinations(all, r, m, nat->type == RULE_DNAT_PREFIX);
	}
	return ret;
}

int
own_rules_replace(struct netns *ns, const struct rule_list *l, struct sl_err *err)
{
	static const enum rule_chain chains[] = {RULE_PREROUTING, RULE_POSTROUTING};
	struct ranges all = {NULL, 0, 0};
	unsigned int c;
	uint32_t i;
	int ret = 0;

	for (c = 0; c < sizeof(chains) / sizeof(chains[0]); c++)
		for (i = 0; i < l->chain[chains[c]].n && ret == 0; i++)
			ret = add_rule(&all, l->chain[chains[c]].rule[i]);
	if (ret == 0)
		ret = own_replace(ns, OWN_RULES, all.range, all.n, err);
	else
		sl_refuse(err, ENOMEM, "out of memory");
	free(all.range);
	return ret;
}
