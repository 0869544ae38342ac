/* SPDX-License-Identifier: BSD-3-Clause */
/* Private to lib/rules: the fields that matches look at, by name and kind of value. */
#ifndef RULE_FIELD_H
#define RULE_FIELD_H

#include <stdint.h>

#include "rule.h"

enum field_kind {
	KIND_ADDR,
	KIND_NFPROTO,
	KIND_PROTO,
	KIND_PORT,
	KIND_FLAGS,
	KIND_ICMP,
	KIND_ICMPV6,
	KIND_STATE,
	KIND_MARK, /* printed as 0x%08x, and a mask from the left as a prefix */
	KIND_ZONE,
	KIND_NAME,
};

struct rule_field_info {
	const char *word, *second; /* second NULL: a name of one word */
	uint8_t kind;              /* enum field_kind */
	uint8_t family;            /* that it implies, or 0 */
	uint8_t proto;             /* that it implies, or 0 */
	uint32_t max;              /* of numbers */
};

extern const struct rule_field_info rule_field_info[RULE_FIELDS];

/* Whether the values are union rule_value's n; else its bytes. */
bool field_is_number(enum rule_field field);

/* Order of values of a field. */
int field_compare(enum rule_field field, const union rule_value *a, const union rule_value *b);

#endif
