/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The compiled form of rules that namespaces share: what is matched, in flat arrays without
 * pointers. Two lists of rules with the same matches, statements and policies have programs of the
 * same bytes, and these are found by their hash and made one. Immutable once registered; the
 * reference counts and the registry are under one mutex, never taken in the packet path.
 */
#ifndef RULES_PROGRAM_H
#define RULES_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rule.h"
#include "rule_list.h"

struct rules_classifier;
struct sl_err;

/* One item of a rule. */
struct rules_op {
	uint8_t type;  /* enum rule_item_type */
	uint8_t field; /* RULE_MATCH: enum rule_field */
	bool negate;
	uint8_t pad;
	uint32_t mask;
	uint32_t n;    /* RULE_MATCH: ranges */
	uint32_t at;   /* RULE_MATCH: the first word of its ranges; others: number of the item */
};

/* How a field's values are compared: as one word, or as four. Words are in host order, the most
 * significant first, so that they compare as numbers. A range is lo, then hi. */
#define RULES_WIDE 4u

struct rules_chain {
	uint32_t first, n; /* rules, by number within the program */
	uint32_t drop;     /* policy */
	uint32_t varies;   /* has a match that is not constant over a flow and direction */
};

struct rules_program {
	/* under the registry's mutex */
	uint32_t refs;
	uint64_t hash;
	struct rules_program *next;
	/* constant */
	uint64_t bytes; /* of all, with the classifiers */
	struct rules_classifier *classifier[RULE_CHAINS]; /* NULL: the plain list does */
	size_t size;    /* of image[] */
	const uint32_t *start;     /* [rules + 1]: first op of each rule */
	const struct rules_op *op;
	const uint32_t *word;
	struct rules_chain chain[RULE_CHAINS];
	/* start, op and word; with `chain` the key */
	uint64_t image[];
};

/* The program of a list, not registered and without classifiers yet; NULL: no memory. */
struct rules_program *rules_program_new(const struct rule_list *l);
void rules_program_free(struct rules_program *p);

/*
 * Takes a program; returns the registered one of the same bytes, with one more reference, which
 * may be it; else it is freed. The first of its kind gets its classifiers. NULL: no memory, it is
 * freed.
 */
struct rules_program *rules_program_share(struct rules_program *p);

/* Whether one of the same bytes is registered. */
bool rules_program_known(struct rules_program *p);

void rules_program_put(const struct rules_program *p); /* NULL is allowed */

/* Whether a field is compared as four words. */
static inline bool
rules_field_wide(uint8_t field)
{
	return field == RULE_IP6_SADDR || field == RULE_IP6_DADDR || field == RULE_IIFNAME ||
	       field == RULE_OIFNAME;
}

static inline uint32_t
rules_words(uint8_t field)
{
	return rules_field_wide(field) ? RULES_WIDE : 1u;
}

#endif
