/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "connlimit.h"
#include "err.h"
#include "netns_rules.h"
#include "rule_limits.h"
#include "rules.h"

void
bench_rules_prepare(struct gateway *gw)
{
	const struct gateway_config config = {.hash = SL_HASH_AUTO};
	struct sl_err err;

	if (limits_create(gw, &config, &err) < 0)
		bench_die("%s", err.msg);
	gw->rules_ops = netns_rules_ops(gw);
	if (gw->rules_ops == NULL)
		bench_die("out of memory");
}

static void
add(struct rule_list *l, const char *text)
{
	struct rule_error e;
	struct rule *r;

	if (rule_parse(text, strlen(text), RULE_FORWARD, &r, &e) < 0)
		bench_die("%s: column %u: %s", text, e.column, e.err.msg);
	if (rule_list_add(l, r) < 0)
		bench_die("out of memory");
}

void
bench_rules_publish(struct gateway *gw, struct netns *ns, uint32_t n, bool limit)
{
	struct rule_list *l = rule_list_new();
	struct sl_err err;
	char text[96];
	uint32_t i;

	if (l == NULL)
		bench_die("out of memory");
	if (limit)
		add(l, "ct count over 4294967295 by ip saddr drop");
	for (i = 0; i + 1 < n; i++) {
		snprintf(text, sizeof(text), "ip saddr 203.0.%u.0/24 %s dport %u drop",
			i >> 8 & 255, i % 2 == 0 ? "tcp" : "udp", 1 + i % 65535);
		add(l, text);
	}
	if (n > 0)
		add(l, "meta l4proto { tcp, udp } accept");
	if (netns_rules_publish(gw, ns, l, &err) < 0)
		bench_die("%s", err.msg);
	rule_list_free(l);
}

void
bench_rules_end(struct gateway *gw, struct netns *ns)
{
	netns_rules_free(ns);
	connlimit_netns_free(ns);
	free(gw->rules_ops);
	connlimit_destroy(gw->limits);
}
