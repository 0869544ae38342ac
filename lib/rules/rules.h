/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rule text: the part of nft(8)'s rule language that docs/rules.md describes, to rules (rule.h)
 * and back. Control side only; nothing here is called in the packet path.
 */
#ifndef RULES_H
#define RULES_H

#include <stddef.h>

#include "err.h"
#include "rule.h"

#define RULE_TEXT_MAX (4u << 20) /* bytes of a rule's text */
#define RULE_ITEMS_MAX 128u      /* matches and statements of a rule */
#define RULE_SET_MAX  65536u     /* elements of a set */

/* Where a text is wrong. */
struct rule_error {
	struct sl_err err;   /* the message, without the column */
	unsigned int column; /* first byte of what is wrong, from 1 */
	unsigned int end;    /* behind its last byte; > column */
};

/*
 * One rule of `len` bytes for `chain`; the text need not end with a NUL. 0, and *out (one
 * reference, handle 0) is the caller's; or -EINVAL or -ENOMEM with *e filled. Every text accepted
 * is accepted by nft 1.0.6 with the same meaning, but for the short forms of docs/rules.md.
 */
int rule_parse(const char *text, size_t len, enum rule_chain chain, struct rule **out,
	struct rule_error *e);

/* rule_text() flags */
#define RULE_TEXT_STATELESS 0x01 /* `counter` without numbers */
#define RULE_TEXT_ALIKE     0x02 /* no rule text: `ct count` without its number */

/*
 * The rule as `nft list ruleset` of nft 1.0.6 shows it, without handle and newline; live numbers of
 * counters. The caller frees it; NULL: out of memory.
 */
char *rule_text(const struct rule *r, unsigned int flags);

/* The counter's numbers now; `index` as in rule_counter. */
void rule_counter_read(
	const struct rule *r, unsigned int index, uint64_t *packets, uint64_t *bytes);

/* As `log level` has it. */
const char *rule_log_level_name(uint8_t level);

const char *rule_chain_name(enum rule_chain chain);
/* By name; -1: there is none. */
int rule_chain_by_name(const char *name);

#endif
