/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the classifier. */
#ifndef RULES_CLASSIFY_PRIVATE_H
#define RULES_CLASSIFY_PRIVATE_H

#include <string.h>

#include "classify.h"

#define RULES_WORD_BITS 64u

/* One dimension. A row is a vector and its aggregated bits; the row behind the segments' is for
 * packets that have no value. */
struct dimension {
	enum rules_dimension what;
	bool wide;
	uint32_t segments;
	uint32_t *start;  /* [segments], of one word or RULES_WIDE, ascending from zero */
	uint64_t *vector; /* [segments + 1][stride] */
};

struct rules_classifier {
	uint32_t rules;
	uint32_t words;  /* of a vector */
	uint32_t stride; /* of a row: the vector and its aggregated bits */
	uint64_t bytes;
	unsigned int n;
	struct dimension dim[RULES_DIMS];
};

/* <0, 0, >0: values of n words, the most significant first. */
static inline int
rules_compare(const uint32_t *a, const uint32_t *b, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* One word of the AND over all dimensions; without any, all rules may match. */
static inline uint64_t
rules_and(const struct rules_search *s, uint32_t word)
{
	uint64_t bits = UINT64_MAX;
	unsigned int i;

	for (i = 0; i < s->n; i++)
		bits &= s->row[i][word];
	return bits;
}

#endif
