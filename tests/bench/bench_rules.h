/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules for a benchmark's gateway. */
#ifndef BENCH_RULES_H
#define BENCH_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway.h"

/* What the gateway needs for rules, beside gw->ct; dies when it cannot be. */
void bench_rules_prepare(struct gateway *gw);

/*
 * Gives the namespace's forward chain n - 1 rules that match no packet, by address and port, and
 * one that accepts all. limit: before them one with a `ct count` per source, which nobody exceeds.
 */
void bench_rules_publish(struct gateway *gw, struct netns *ns, uint32_t n, bool limit);

/* No packet is under way any more; the namespace has no entry. */
void bench_rules_end(struct gateway *gw, struct netns *ns);

#endif
