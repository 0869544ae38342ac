/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building a classifier: for each dimension, the bounds of all ranges that rules begin with are
 * sorted and cut the values into segments; then each rule sets its bit in the segments that it
 * covers.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include <rte_common.h>

#include "classify_private.h"

struct builder {
	const struct rules_program *p;
	const struct rules_chain *chain;
	struct rules_classifier *c;
	/* of the dimension that is being built */
	enum rules_dimension what;
	uint32_t width; /* words of a value */
	uint32_t *bound;
	uint32_t n;
};

static bool
dimension_wide(enum rules_dimension dim)
{
	return dim == RULES_DIM_SRC6 || dim == RULES_DIM_DST6 || dim == RULES_DIM_IN;
}

/* The dimension of a field's values. The protocol of ports is a dimension of its own. */
static int
dimension_of(uint8_t field)
{
	switch (field) {
	case RULE_IP_SADDR:
		return RULES_DIM_SRC4;
	case RULE_IP_DADDR:
		return RULES_DIM_DST4;
	case RULE_IP6_SADDR:
		return RULES_DIM_SRC6;
	case RULE_IP6_DADDR:
		return RULES_DIM_DST6;
	case RULE_L4PROTO:
		return RULES_DIM_PROTO;
	case RULE_TCP_SPORT:
	case RULE_UDP_SPORT:
	case RULE_SCTP_SPORT:
		return RULES_DIM_SPORT;
	case RULE_TCP_DPORT:
	case RULE_UDP_DPORT:
	case RULE_SCTP_DPORT:
		return RULES_DIM_DPORT;
	case RULE_IIFNAME:
		return RULES_DIM_IN;
	default:
		return -1;
	}
}

/* The protocol that a match asks for besides; -1: none. */
static int
proto_of(uint8_t field)
{
	switch (field) {
	case RULE_TCP_SPORT:
	case RULE_TCP_DPORT:
	case RULE_TCP_FLAGS:
		return IPPROTO_TCP;
	case RULE_UDP_SPORT:
	case RULE_UDP_DPORT:
		return IPPROTO_UDP;
	case RULE_SCTP_SPORT:
	case RULE_SCTP_DPORT:
		return IPPROTO_SCTP;
	case RULE_ICMP_TYPE:
		return IPPROTO_ICMP;
	case RULE_ICMPV6_TYPE:
		return IPPROTO_ICMPV6;
	default:
		return -1;
	}
}

/* What a rule asks of a dimension. */
struct constraint {
	const uint32_t *range; /* pairs of values */
	uint32_t n;
	bool negate;
	uint32_t proto[2]; /* the range of a protocol that is asked for besides */
};

/* Of the matches that a rule begins with the first that is about the dimension; false: it asks
 * nothing of it. What is masked is not looked at. */
static bool
constraint_of(const struct builder *b, uint32_t number, struct constraint *c)
{
	uint32_t i = b->p->start[b->chain->first + number];
	uint32_t end = b->p->start[b->chain->first + number + 1];
	const struct rules_op *op;

	for (; i < end && b->p->op[i].type == RULE_MATCH; i++) {
		op = &b->p->op[i];
		if (b->what == RULES_DIM_PROTO && proto_of(op->field) >= 0) {
			c->proto[0] = c->proto[1] = (uint32_t)proto_of(op->field);
			*c = (struct constraint){.range = c->proto, .n = 1,
				.proto = {c->proto[0], c->proto[1]}};
			return true;
		}
		if (dimension_of(op->field) != (int)b->what ||
			(op->mask != UINT32_MAX && !rules_field_wide(op->field)))
			continue;
		c->range = b->p->word + op->at;
		c->n = op->n;
		c->negate = op->negate;
		return true;
	}
	return false;
}

/* ---- segments ---- */

static _Thread_local uint32_t sort_width;

static int
compare_bounds(const void *a, const void *b)
{
	return rules_compare(a, b, sort_width);
}

/* The value behind v; false when there is none. */
static bool
successor(uint32_t *to, const uint32_t *v, uint32_t width)
{
	uint32_t i = width;

	memcpy(to, v, width * sizeof(*v));
	while (i > 0)
		if (++to[--i] != 0)
			return true;
	return false;
}

static uint32_t
count_ranges(const struct builder *b)
{
	struct constraint c = {0};
	uint32_t i, n = 0;

	for (i = 0; i < b->chain->n; i++)
		if (constraint_of(b, i, &c))
			n += c.n;
	return n;
}

/* All bounds, sorted, each once; the first is zero. */
static int
collect_bounds(struct builder *b, uint32_t ranges)
{
	struct constraint c = {0};
	uint32_t i, k, n = 1, w = b->width;

	b->bound = calloc(2 * (size_t)ranges + 1, w * sizeof(uint32_t));
	if (b->bound == NULL)
		return -ENOMEM;
	for (i = 0; i < b->chain->n; i++) {
		if (!constraint_of(b, i, &c))
			continue;
		for (k = 0; k < c.n; k++) {
			memcpy(b->bound + n++ * w, c.range + 2 * k * w, w * sizeof(uint32_t));
			n += successor(b->bound + n * w, c.range + (2 * k + 1) * w, w);
		}
	}
	sort_width = w;
	qsort(b->bound, n, w * sizeof(uint32_t), compare_bounds);
	for (i = 1, k = 1; i < n; i++)
		if (rules_compare(b->bound + i * w, b->bound + (k - 1) * w, w) != 0)
			memmove(b->bound + k++ * w, b->bound + i * w, w * sizeof(uint32_t));
	b->n = k;
	return 0;
}

/* The segment that begins with the value. */
static uint32_t
find_bound(const struct builder *b, const uint32_t *v)
{
	uint32_t lo = 0, hi = b->n, mid;

	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (rules_compare(v, b->bound + mid * b->width, b->width) < 0)
			hi = mid;
		else
			lo = mid;
	}
	return lo;
}

/* ---- vectors ---- */

static void
set_rows(struct builder *b, uint64_t *vector, uint32_t rule, uint32_t from, uint32_t to)
{
	uint64_t bit = UINT64_C(1) << rule % RULES_WORD_BITS;
	uint32_t stride = b->c->stride;
	uint64_t *at = vector + (size_t)from * stride + rule / RULES_WORD_BITS;

	for (; from < to; from++, at += stride)
		*at ^= bit;
}

/* The bit of a rule in all segments: those of its ranges, or the others where it is negated. */
static void
set_rule(struct builder *b, uint64_t *vector, uint32_t rule)
{
	struct constraint c = {0};
	uint32_t k, w = b->width, from, to, next[RULES_WIDE];

	if (!constraint_of(b, rule, &c)) {
		set_rows(b, vector, rule, 0, b->n + 1);
		return;
	}
	if (c.negate)
		set_rows(b, vector, rule, 0, b->n);
	for (k = 0; k < c.n; k++) {
		from = find_bound(b, c.range + 2 * k * w);
		to = successor(next, c.range + (2 * k + 1) * w, w) ? find_bound(b, next) : b->n;
		set_rows(b, vector, rule, from, to);
	}
}

static void
aggregate(const struct rules_classifier *c, uint64_t *vector, uint32_t rows)
{
	uint32_t i;

	for (; rows > 0; rows--, vector += c->stride)
		for (i = 0; i < c->words; i++)
			if (vector[i] != 0)
				vector[c->words + i / RULES_WORD_BITS] |=
					UINT64_C(1) << i % RULES_WORD_BITS;
}

/* A dimension that no rule asks anything of, or that is too large, is not there. */
static int
build_dimension(struct builder *b)
{
	struct rules_classifier *c = b->c;
	uint32_t ranges = count_ranges(b), rule;
	struct dimension *d = &c->dim[c->n];
	size_t size;
	int ret;

	if (ranges == 0)
		return 0;
	ret = collect_bounds(b, ranges);
	if (ret != 0)
		return ret;
	size = (b->n + (size_t)1) * c->stride * sizeof(uint64_t);
	if (size > RULES_DIMENSION_BYTES) {
		free(b->bound);
		return 0;
	}
	*d = (struct dimension){.what = b->what, .wide = b->width > 1, .segments = b->n,
		.start = b->bound, .vector = calloc(1, size)};
	c->n++;
	if (d->vector == NULL)
		return -ENOMEM;
	c->bytes += size + (size_t)b->n * b->width * sizeof(uint32_t);
	for (rule = 0; rule < c->rules; rule++)
		set_rule(b, d->vector, rule);
	aggregate(c, d->vector, b->n + 1);
	return 0;
}

int
rules_classifier_build(const struct rules_program *p, enum rule_chain chain,
	struct rules_classifier **out)
{
	struct builder b = {.p = p, .chain = &p->chain[chain]};
	struct rules_classifier *c;
	int dim, ret = 0;

	*out = NULL;
	if (b.chain->n <= RULES_LIST_MAX)
		return 0;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	b.c = c;
	c->rules = b.chain->n;
	c->words = (c->rules + RULES_WORD_BITS - 1) / RULES_WORD_BITS;
	c->stride = c->words + (c->words + RULES_WORD_BITS - 1) / RULES_WORD_BITS;
	c->bytes = sizeof(*c);
	for (dim = 0; dim < RULES_DIMS && ret == 0; dim++) {
		b.what = (enum rules_dimension)dim;
		b.width = dimension_wide(b.what) ? RULES_WIDE : 1;
		ret = build_dimension(&b);
	}
	if (ret != 0 || c->n == 0) {
		rules_classifier_free(c);
		return ret;
	}
	*out = c;
	return 0;
}

void
rules_classifier_free(struct rules_classifier *c)
{
	unsigned int i;

	if (c == NULL)
		return;
	for (i = 0; i < c->n; i++) {
		free(c->dim[i].start);
		free(c->dim[i].vector);
	}
	free(c);
}

uint64_t
rules_classifier_bytes(const struct rules_classifier *c)
{
	return c == NULL ? 0 : c->bytes;
}
