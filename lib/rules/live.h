/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of a rule lives: its counters, a line of them for each thread, which that thread alone
 * writes; and for each item the object that the application gave. Made when the rule is first
 * compiled, shared by all sets that have the rule, and gone with the rule.
 */
#ifndef RULES_LIVE_H
#define RULES_LIVE_H

#include <stdint.h>

#include <rte_common.h>

#include "netns.h"
#include "ruleset.h"

struct rule_count {
	uint64_t packets, bytes;
};

struct rule_live {
	const struct rules_ops *ops;
	uint32_t stride;          /* counters of one thread, a multiple of a cache line */
	struct rule_count *count; /* [threads][stride]; NULL: the rule has no counter */
	void *object[];           /* [items] */
};

/* Makes it if it is not there yet. 0, or -errno with err filled: no memory, or attach() refused. */
int rule_live_make(
	struct rule *r, struct netns *ns, const struct rules_ops *ops, struct sl_err *err);

/* Detaches the objects and frees; for rule_put(). */
void rule_live_free(struct rule *r);

static inline void
rule_live_count(const struct rule *r, uint32_t index, unsigned int thread, uint32_t bytes)
{
	struct rule_count *c = &r->live->count[thread * r->live->stride + index];

	netns_counter_add(&c->packets, 1);
	netns_counter_add(&c->bytes, bytes);
}

#endif
