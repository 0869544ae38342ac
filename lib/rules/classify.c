/* SPDX-License-Identifier: BSD-3-Clause */
#include "classify.h"

#include <rte_byteorder.h>

#include "classify_private.h"
#include "ruleset.h"

/* The packet's value in a dimension, in words; false when it has none. */
static bool
value_of(const struct rules_packet *k, enum rules_dimension dim, uint32_t *v)
{
	const void *wide;
	unsigned int i;

	switch (dim) {
	case RULES_DIM_SRC4:
	case RULES_DIM_DST4:
		*v = rte_be_to_cpu_32(dim == RULES_DIM_SRC4 ? k->src.w[0] : k->dst.w[0]);
		return k->family == TUPLE_IPV4;
	case RULES_DIM_PROTO:
		*v = k->proto;
		return k->family != 0;
	case RULES_DIM_SPORT:
		*v = k->sport;
		return k->has_ports;
	case RULES_DIM_DPORT:
		*v = k->dport;
		return k->has_ports;
	case RULES_DIM_IN:
		wide = k->in_name;
		break;
	default:
		wide = dim == RULES_DIM_SRC6 ? &k->src : &k->dst;
		if (k->family != TUPLE_IPV6)
			return false;
		break;
	}
	if (wide == NULL)
		return false;
	memcpy(v, wide, RULES_WIDE * sizeof(*v));
	for (i = 0; i < RULES_WIDE; i++)
		v[i] = rte_be_to_cpu_32(v[i]);
	return true;
}

/* The last segment that begins at or before the value; the first begins at zero. */
static uint32_t
segment_of(const struct dimension *d, const uint32_t *v)
{
	const uint32_t *base = d->start;
	uint32_t n = d->segments, half;

	if (d->wide) {
		uint32_t lo = 0;

		while (n - lo > 1) {
			half = lo + (n - lo) / 2;
			if (rules_compare(v, d->start + half * RULES_WIDE, RULES_WIDE) < 0)
				n = half;
			else
				lo = half;
		}
		return lo;
	}
	while (n > 1) {
		half = n / 2;
		base += base[half] <= *v ? half : 0;
		n -= half;
	}
	return (uint32_t)(base - d->start);
}

void
rules_search_start(const struct rules_classifier *c, const struct rules_packet *k,
	struct rules_search *s)
{
	const struct dimension *d;
	uint32_t v[RULES_WIDE] = {0}, row;
	unsigned int i;

	s->n = 0;
	s->words = c->words;
	s->group = 0;
	s->some = s->bits = 0;
	for (i = 0; i < c->n; i++) {
		d = &c->dim[i];
		row = value_of(k, d->what, v) ? segment_of(d, v) : d->segments;
		s->row[s->n++] = d->vector + (size_t)row * c->stride;
	}
	s->some = rules_and(s, c->words);
}

bool
rules_search_next(struct rules_search *s, uint32_t *number)
{
	while (s->bits == 0) {
		while (s->some == 0) {
			if (++s->group * RULES_WORD_BITS >= s->words)
				return false;
			s->some = rules_and(s, s->words + s->group);
		}
		s->word = s->group * RULES_WORD_BITS + (uint32_t)__builtin_ctzll(s->some);
		s->some &= s->some - 1;
		s->bits = rules_and(s, s->word);
	}
	*number = s->word * RULES_WORD_BITS + (uint32_t)__builtin_ctzll(s->bits);
	s->bits &= s->bits - 1;
	return true;
}
