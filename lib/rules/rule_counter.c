/* SPDX-License-Identifier: BSD-3-Clause */
#include "rules.h"

/* What the rule's text says, which is what it begins with. */
void
rule_counter_read(const struct rule *r, unsigned int index, uint64_t *packets, uint64_t *bytes)
{
	uint32_t i;

	*packets = *bytes = 0;
	for (i = 0; i < r->n; i++) {
		if (r->item[i].type == RULE_COUNTER && r->item[i].counter.index == index) {
			*packets = r->item[i].counter.packets;
			*bytes = r->item[i].counter.bytes;
		}
	}
}
