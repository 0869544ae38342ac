/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule_features.h"

#include <errno.h>

#include "err.h"

/* The one place that says what is built: a statement is refused until its row here is true. */
static const struct {
	const char *name;
	bool built;
} statements[] = {
	[RULE_MATCH] = {"match", true},
	[RULE_COUNTER] = {"counter", true},
	[RULE_LOG] = {"log", true},
	[RULE_LIMIT] = {"limit rate", true},
	[RULE_CT_COUNT] = {"ct count", true},
	[RULE_CT_MARK_SET] = {"ct mark set", true},
	[RULE_META_MARK_SET] = {"meta mark set", true},
	[RULE_ZONE_SET] = {"ct zone set", true},
	[RULE_HELPER_SET] = {"ct helper set", false},
	[RULE_NOTRACK] = {"notrack", true},
	[RULE_ACCEPT] = {"accept", true},
	[RULE_DROP] = {"drop", true},
	[RULE_REJECT] = {"reject", true},
	[RULE_NAT] = {"nat", true}, /* by its type, below */
}, translations[] = {
	[RULE_SNAT] = {"snat", true},
	[RULE_DNAT] = {"dnat", true},
	[RULE_MASQUERADE] = {"masquerade", true},
	[RULE_REDIRECT] = {"redirect", true},
	[RULE_SNAT_PREFIX] = {"snat prefix", true},
	[RULE_DNAT_PREFIX] = {"dnat prefix", true},
	[RULE_SNAT_POOL] = {"snat to pool", true},
	[RULE_NAT64] = {"nat64", true},
};

int
rule_available(const struct rule *r, struct sl_err *err)
{
	const struct rule_item *it;
	uint32_t i;

	for (i = 0; i < r->n; i++) {
		it = &r->item[i];
		if (!statements[it->type].built)
			return sl_refuse(
				err, ENOTSUP, "%s: not available", statements[it->type].name);
		if (it->type == RULE_NAT && !translations[it->nat->type].built)
			return sl_refuse(err, ENOTSUP, "%s: not available",
				translations[it->nat->type].name);
	}
	return 0;
}
