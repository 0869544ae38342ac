/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule.h"

#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "rule_words.h"
#include "rules.h"

static const char *const chain_names[RULE_CHAINS] = {
	[RULE_RAW] = "raw",
	[RULE_PREROUTING] = "prerouting",
	[RULE_FORWARD] = "forward",
	[RULE_POSTROUTING] = "postrouting",
};

const char *
rule_log_level_name(uint8_t level)
{
	return word_name(words_log_level, level);
}

const char *
rule_chain_name(enum rule_chain chain)
{
	return chain_names[chain];
}

int
rule_chain_by_name(const char *name)
{
	int i;

	for (i = 0; i < RULE_CHAINS; i++)
		if (strcmp(chain_names[i], name) == 0)
			return i;
	return -1;
}

struct rule *
rule_get(struct rule *r)
{
	__atomic_fetch_add(&r->refs, 1, __ATOMIC_RELAXED);
	return r;
}

static void
free_item(struct rule_item *it)
{
	switch (it->type) {
	case RULE_MATCH:
		free(it->match.range);
		break;
	case RULE_LOG:
		free(it->log);
		break;
	case RULE_NAT:
		free(it->nat);
		break;
	default:
		break;
	}
}

void
rule_put(struct rule *r)
{
	uint32_t i;

	if (r == NULL || __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	rule_live_free(r);
	rule_put(r->before);
	for (i = 0; i < r->n; i++)
		free_item(&r->item[i]);
	free(r->item);
	free(r);
}
