/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules for a benchmark's gateway. */
#ifndef BENCH_RULES_H
#define BENCH_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "bench_gateway.h"

/* What the gateway needs for rules, beside gw->ct; dies when it cannot be. */
void bench_rules_prepare(struct gateway *gw);

/*
 * Gives the namespace's forward chain `rules` - 1 rules that match no packet, by address and port,
 * and one that accepts all. limit: before them one with a `ct count` per source, which nobody
 * exceeds. nat: connections get another source: "prefix", the one of BENCH_NAT_PREFIX that
 * bench_capture.h knows, or of a pool: "pool", "independent", "blocks".
 */
void bench_rules_publish(
	struct gateway *gw, struct netns *ns, const struct bench_gateway_config *c);

/* No packet is under way any more; the namespace has no entry. */
void bench_rules_end(struct gateway *gw, struct netns *ns);

#endif
