/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_capture.h"
#include "connlimit.h"
#include "err.h"
#include "events.h"
#include "nat.h"
#include "netns_rules.h"
#include "pool.h"
#include "rule_limits.h"
#include "rules.h"
#include "translate.h"

void
bench_rules_prepare(struct gateway *gw)
{
	const struct gateway_config config = {.hash = SL_HASH_AUTO};
	struct sl_err err;

	if (limits_create(gw, &config, &err) < 0)
		bench_die("%s", err.msg);
	if (translate_create(gw, &config, &err) < 0)
		bench_die("%s", err.msg);
	gw->rules_ops = netns_rules_ops(gw);
	gw->events = events_create(gw_threads(gw));
	if (gw->rules_ops == NULL || gw->events == NULL)
		bench_die("out of memory");
}

static void
add(struct rule_list *l, enum rule_chain chain, const char *text)
{
	struct rule_error e;
	struct rule *r;

	if (rule_parse(text, strlen(text), chain, &r, &e) < 0)
		bench_die("%s: column %u: %s", text, e.column, e.err.msg);
	if (rule_list_add(l, r) < 0)
		bench_die("out of memory");
}

static void
add_pool(struct gateway *gw, struct netns *ns)
{
	struct nat_pool_range range = {.lo.b = {100, 64, 0, 0}, .hi.b = {100, 64, 255, 255}};
	const struct nat_pool_config config = {
		.name = "public", .family = TUPLE_IPV4, .range = &range, .n = 1};
	struct nat_pool *pool;
	struct sl_err err;

	if (nat_pool_add(gw->nat, ns, &config, &pool, &err) < 0)
		bench_die("%s", err.msg);
}

static void
add_nat(struct gateway *gw, struct netns *ns, struct rule_list *l, const char *kind)
{
	static const struct {
		const char *kind, *text;
	} rules[] = {
		{"prefix", "snat ip prefix to " BENCH_NAT_PREFIX},
		{"pool", "snat to pool public"},
		{"independent", "snat to pool public endpoint-independent"},
		{"blocks", "snat to pool public block-size 1024 blocks 4"},
	};
	unsigned int i;

	for (i = 0; i < RTE_DIM(rules) && strcmp(rules[i].kind, kind) != 0; i++)
		;
	if (i == RTE_DIM(rules))
		bench_die("--nat %s: prefix, pool, independent or blocks", kind);
	if (i > 0)
		add_pool(gw, ns);
	add(l, RULE_POSTROUTING, rules[i].text);
}

void
bench_rules_publish(struct gateway *gw, struct netns *ns, const struct bench_gateway_config *c)
{
	struct rule_list *l = rule_list_new();
	struct sl_err err;
	char text[96];
	uint32_t i;

	if (l == NULL)
		bench_die("out of memory");
	if (c->nat != NULL)
		add_nat(gw, ns, l, c->nat);
	if (c->limit)
		add(l, RULE_FORWARD, "ct count over 4294967295 by ip saddr drop");
	for (i = 0; i + 1 < c->rules; i++) {
		snprintf(text, sizeof(text), "ip saddr 203.0.%u.0/24 %s dport %u drop",
			i >> 8 & 255, i % 2 == 0 ? "tcp" : "udp", 1 + i % 65535);
		add(l, RULE_FORWARD, text);
	}
	if (c->rules > 0)
		add(l, RULE_FORWARD, "meta l4proto { tcp, udp } accept");
	if (netns_rules_publish(gw, ns, l, &err) < 0)
		bench_die("%s", err.msg);
	rule_list_free(l);
}

void
bench_rules_end(struct gateway *gw, struct netns *ns)
{
	netns_rules_free(ns);
	connlimit_netns_free(ns);
	nat_netns_free(ns);
	nat_destroy(gw->nat);
	events_destroy(gw->events);
	free(gw->rules_ops);
	connlimit_destroy(gw->limits);
}
