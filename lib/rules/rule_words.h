/* SPDX-License-Identifier: BSD-3-Clause */
/* Private to lib/rules: symbolic names, both ways. */
#ifndef RULE_WORDS_H
#define RULE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rule_word {
	const char *name; /* NULL ends a table; the first name of a value is the one printed */
	uint32_t value;
};

extern const struct rule_word words_icmp_type[], words_icmpv6_type[], words_tcp_flag[],
	words_ct_state[], words_nfproto[], words_reject_icmp[], words_reject_icmpv6[],
	words_reject_icmpx[], words_log_level[], words_unit[], words_nat_flag[], words_nat_filter[],
	words_helper[];

/* The value of a name of `len` bytes; false: there is none. */
bool word_value(const struct rule_word *words, const char *name, size_t len, uint32_t *value);

/* The name of a value, or NULL. */
const char *word_name(const struct rule_word *words, uint32_t value);

/* Transport protocols and services by the machine's databases, as nft has them. */
bool word_protocol(const char *name, size_t len, uint32_t *value);
const char *word_protocol_name(uint32_t value, char *buf, size_t len); /* NULL: none */
bool word_service(const char *name, size_t len, uint32_t *port);

#endif
