/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matches of bits: `tcp flags` and `ct state`. A bare list means "any of these", which makes them
 * unlike all other matches; equality has to be said (`==`, `/`, `&`).
 */
#include <errno.h>
#include <stdlib.h>

#include "rule_parse.h"
#include "rule_words.h"

#define FLAGS 0xffu

static int
one_value(struct rule_parse *p, struct rule_match *m, uint32_t value)
{
	m->range = calloc(1, sizeof(*m->range));
	if (m->range == NULL)
		return parse_no_memory(p);
	m->range->lo.n = m->range->hi.n = value;
	m->n = 1;
	return 0;
}

static int
set_bits(struct rule_parse *p, struct rule_match *m, enum rule_form form, uint32_t bits)
{
	m->form = (uint8_t)form;
	m->mask = bits;
	m->negate = form == RULE_FORM_BITS;
	return one_value(p, m, 0);
}

/* ---- tcp flags ---- */

static int
parse_flag(struct rule_parse *p, uint32_t *bits)
{
	uint64_t v;
	uint32_t flag;
	int ret;

	if (rule_lex_is(&p->x, "{"))
		return parse_refuse(p, "there are no sets of flags: write VALUE / MASK");
	if (p->x.type == TOK_NUMBER) {
		ret = parse_number(p, 0, FLAGS, &v);
		flag = ret == 0 ? (uint32_t)v : 0;
	} else {
		ret = parse_word(p, words_tcp_flag,
			"fin, syn, rst, psh, ack, urg, ecn or cwr", &flag);
	}
	*bits |= ret == 0 ? flag : 0;
	return ret;
}

/* a,b  a|b  (a|b) */
static int
parse_flag_list(struct rule_parse *p, uint32_t *bits)
{
	bool paren = parse_accept(p, "(");
	int ret;

	*bits = 0;
	do
		ret = parse_flag(p, bits);
	while (ret == 0 && (parse_accept(p, "|") || (!paren && parse_accept(p, ","))));
	if (ret == 0 && paren)
		ret = parse_expect(p, ")");
	return ret;
}

/* The two or more flags behind `/`, for nft takes no single one there. */
static int
parse_slash_mask(struct rule_parse *p, uint32_t *mask)
{
	unsigned int n = 0;
	int ret;

	*mask = 0;
	do {
		ret = parse_flag(p, mask);
		n++;
	} while (ret == 0 && parse_accept(p, ","));
	if (ret == 0 && n == 1)
		return parse_unexpected(p, "\",\" and another flag (for a single one: \"& syn == "
			"syn\")");
	return ret;
}

static int
flags_masked(struct rule_parse *p, struct rule_match *m, uint32_t mask, uint32_t value, size_t from)
{
	if (mask == 0)
		return parse_refuse_at(p, from, p->x.at, "the mask has no flag");
	if ((value & ~mask) != 0)
		return parse_refuse_at(p, from, p->x.at,
			"there are flags that are not in the mask: this is never equal");
	if (mask == FLAGS) {
		m->form = RULE_FORM_EXACT;
		return one_value(p, m, value);
	}
	if (value == 0)
		return set_bits(p, m, m->negate ? RULE_FORM_BITS : RULE_FORM_NO_BITS, mask);
	m->form = RULE_FORM_MASKED;
	m->mask = mask;
	return one_value(p, m, value);
}

/* & MASK [==|!=] VALUE; MASK is one flag, or several in parentheses */
static int
flags_anded(struct rule_parse *p, struct rule_match *m, size_t from)
{
	uint32_t mask = 0, value;
	int ret;

	rule_lex_next(&p->x);
	ret = rule_lex_is(&p->x, "(") ? parse_flag_list(p, &mask) : parse_flag(p, &mask);
	if (ret != 0)
		return ret;
	if (rule_lex_is(&p->x, "|") || rule_lex_is(&p->x, ","))
		return parse_refuse(p, "several flags of a mask go in parentheses: & (syn | ack)");
	m->negate = rule_lex_is(&p->x, "!=");
	if (m->negate || rule_lex_is(&p->x, "=="))
		rule_lex_next(&p->x);
	ret = parse_flag_list(p, &value);
	return ret != 0 ? ret : flags_masked(p, m, mask, value, from);
}

int
parse_tcp_flags(struct rule_parse *p, struct rule_match *m)
{
	bool equal = false, none = false;
	size_t from = p->x.at;
	uint32_t bits, mask;
	int ret;

	if (rule_lex_is(&p->x, "&") || rule_lex_is(&p->x, "and"))
		return flags_anded(p, m, from);
	if (parse_accept(p, "!="))
		m->negate = true;
	else if (parse_accept(p, "!"))
		none = true;
	else
		equal = parse_accept(p, "==");
	ret = parse_flag_list(p, &bits);
	if (ret != 0)
		return ret;
	if (!none && parse_accept(p, "/")) {
		ret = parse_slash_mask(p, &mask);
		return ret != 0 ? ret : flags_masked(p, m, mask, bits, from);
	}
	if (equal || m->negate) {
		m->form = RULE_FORM_EXACT;
		return one_value(p, m, bits);
	}
	if (bits == 0)
		return parse_refuse_at(p, from, p->x.at,
			"this is no flag, so it never matches; for packets without flags: == 0");
	m->negate = !none;
	return flags_masked(p, m, bits, 0, from);
}

/* ---- ct state ---- */

static int
parse_state_list(struct rule_parse *p, uint32_t *bits, unsigned int *n)
{
	uint32_t state;
	int ret;

	*bits = *n = 0;
	do {
		ret = parse_word(p, words_ct_state,
			"new, established, related, invalid or untracked", &state);
		if (ret != 0)
			return ret;
		*bits |= state;
		(*n)++;
	} while (parse_accept(p, ",") || parse_accept(p, "|"));
	return 0;
}

static int
parse_state_set(struct rule_parse *p, struct rule_match *m)
{
	int ret = parse_values(p, RULE_CT_STATE, m);
	uint32_t state;

	if (ret != 0 || m->form == RULE_FORM_SET)
		return ret;
	state = m->range->lo.n;
	if (m->negate) {
		m->form = RULE_FORM_EXACT;
		return 0;
	}
	free(m->range);
	m->range = NULL;
	return set_bits(p, m, RULE_FORM_BITS, state);
}

int
parse_ct_state(struct rule_parse *p, struct rule_match *m)
{
	bool equal = false, none = false;
	size_t from = p->x.at;
	unsigned int n;
	uint32_t bits;
	int ret;

	if (parse_accept(p, "!="))
		m->negate = true;
	else if (parse_accept(p, "!"))
		none = true;
	else
		equal = parse_accept(p, "==");
	if (rule_lex_is(&p->x, "{") && !none)
		return parse_state_set(p, m);
	ret = parse_state_list(p, &bits, &n);
	if (ret != 0)
		return ret;
	if (!equal && !m->negate)
		return set_bits(p, m, none ? RULE_FORM_NO_BITS : RULE_FORM_BITS, bits);
	if (n > 1)
		return parse_refuse_at(p, from, p->x.at, "a packet has one state, so it is never "
			"equal to several: write { a, b }, or \"! a,b\" for none of them");
	m->form = RULE_FORM_EXACT;
	return one_value(p, m, bits);
}
