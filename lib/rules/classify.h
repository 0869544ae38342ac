/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The classifier of a chain with many rules: which rules a packet may match, in order. For each
 * dimension (addresses, ports, protocol, link) the values are cut into segments within which the
 * same rules match, and each segment has a vector with a bit for each rule; the rules that may
 * match are the AND of one vector of each dimension. Aggregated bits, one for each word of a
 * vector, say which words are worth looking at.
 *
 * It leaves out rules that cannot match, and no others: only the matches that a rule begins with
 * are looked at. Which of the rest do match, and what then happens, is for the evaluation of each.
 * So the order and meaning of rules do not depend on it, and a dimension whose vectors would take
 * too much memory can be left out.
 */
#ifndef RULES_CLASSIFY_H
#define RULES_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "program.h"

struct rules_packet;
struct rules_classifier;

/* Up to so many rules the plain list is evaluated. */
#define RULES_LIST_MAX 32u

/* Bytes that the vectors of one dimension may take; else it is left out. */
#define RULES_DIMENSION_BYTES (16u << 20)

enum rules_dimension {
	RULES_DIM_SRC4,
	RULES_DIM_DST4,
	RULES_DIM_SRC6,
	RULES_DIM_DST6,
	RULES_DIM_PROTO,
	RULES_DIM_SPORT,
	RULES_DIM_DPORT,
	RULES_DIM_IN, /* link */
	RULES_DIMS
};

/* *out is NULL when the chain has no more than RULES_LIST_MAX rules. 0 or -ENOMEM. */
int rules_classifier_build(
	const struct rules_program *p, enum rule_chain chain, struct rules_classifier **out);
void rules_classifier_free(struct rules_classifier *c); /* NULL is allowed */
uint64_t rules_classifier_bytes(const struct rules_classifier *c); /* 0 for NULL */

/* ---- worker ---- */

/* Where the search for one packet is: a vector of each dimension, and the bits still to come. */
struct rules_search {
	const uint64_t *row[RULES_DIMS];
	unsigned int n;
	uint32_t words;   /* of a vector; the aggregated bits are behind */
	uint32_t group;   /* of 64 words, in `some` */
	uint32_t word;    /* in `bits` */
	uint64_t some, bits;
};

void rules_search_start(const struct rules_classifier *c, const struct rules_packet *k,
	struct rules_search *s);

/* The next rule that may match, by its number in the chain; false: there is none. */
bool rules_search_next(struct rules_search *s, uint32_t *number);

#endif
