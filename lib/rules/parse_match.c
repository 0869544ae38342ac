/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include "rule_field.h"
#include "rule_parse.h"
#include "rule_words.h"

/* The field that the words at the present token name; RULE_FIELDS: none. *known_first is whether
 * there are fields of this first word. */
static enum rule_field
find_field(const struct rule_parse *p, bool *known_first)
{
	const struct rule_field_info *f;
	struct rule_lex next = p->x;
	unsigned int i;

	*known_first = false;
	if (p->x.type != TOK_WORD)
		return RULE_FIELDS;
	rule_lex_next(&next);
	for (i = 0; i < RULE_FIELDS; i++) {
		f = &rule_field_info[i];
		if (!rule_lex_is(&p->x, f->word))
			continue;
		*known_first = true;
		if (f->second == NULL || rule_lex_is(&next, f->second))
			return (enum rule_field)i;
	}
	return RULE_FIELDS;
}

/* `ct mark set`, `ct zone set` and `meta mark set` are statements. */
static bool
is_setting(const struct rule_parse *p, enum rule_field field)
{
	struct rule_lex next = p->x;

	if (field != RULE_CT_MARK && field != RULE_CT_ZONE && field != RULE_META_MARK)
		return false;
	rule_lex_next(&next);
	rule_lex_next(&next);
	return rule_lex_is(&next, "set");
}

/* What there is behind a first word that begins matches. */
static int
refuse_second(struct rule_parse *p)
{
	static const char *const hints[][2] = {
		{"ip", "\"saddr\" or \"daddr\""},
		{"ip6", "\"saddr\" or \"daddr\""},
		{"meta", "\"l4proto\", \"nfproto\" or \"mark\""},
		{"tcp", "\"sport\", \"dport\" or \"flags\""},
		{"udp", "\"sport\" or \"dport\""},
		{"sctp", "\"sport\" or \"dport\""},
		{"icmp", "\"type\""},
		{"icmpv6", "\"type\""},
		{"ct", "\"state\", \"mark\", \"zone\", \"count\", \"original\", \"reply\" or "
			"\"helper\""},
	};
	unsigned int i;

	for (i = 0; !rule_lex_is(&p->x, hints[i][0]); i++)
		;
	rule_lex_next(&p->x);
	return parse_unexpected(p, hints[i][1]);
}

static int
parse_masked(struct rule_parse *p, enum rule_field field, struct rule_match *m)
{
	uint32_t max = rule_field_info[field].max;
	uint64_t v;
	size_t from = p->x.at;
	int ret;

	rule_lex_next(&p->x);
	ret = parse_number(p, 1, max, &v);
	if (ret != 0)
		return ret;
	m->mask = (uint32_t)v;
	m->negate = rule_lex_is(&p->x, "!=");
	if (m->negate || rule_lex_is(&p->x, "=="))
		rule_lex_next(&p->x);
	if (p->x.type != TOK_NUMBER)
		return parse_unexpected(p, "\"==\", \"!=\" or a number");
	ret = parse_values(p, field, m);
	if (ret != 0)
		return ret;
	if (m->form != RULE_FORM_VALUE || m->range->lo.n != m->range->hi.n)
		return parse_refuse_at(p, from, p->x.at, "a mask goes with one number");
	if ((m->range->lo.n & ~m->mask) != 0)
		return parse_refuse_at(p, from, p->x.at,
			"the number has bits that are not in the mask: this is never equal");
	if (m->mask == max)
		m->mask = UINT32_MAX;
	else
		m->form = RULE_FORM_MASKED;
	return 0;
}

/* MARK/LEN is what nft makes of a mask from the left. */
static void
mark_prefix(struct rule_match *m)
{
	uint32_t span = m->range->lo.n ^ m->range->hi.n;

	if (m->form != RULE_FORM_VALUE || span == 0)
		return;
	m->mask = ~span;
	m->range->hi = m->range->lo;
	m->form = RULE_FORM_MASKED;
}

static int
parse_plain(struct rule_parse *p, enum rule_field field, struct rule_match *m)
{
	uint8_t kind = rule_field_info[field].kind;
	int ret;

	if ((kind == KIND_MARK || kind == KIND_ZONE) &&
		(rule_lex_is(&p->x, "and") || rule_lex_is(&p->x, "&")))
		return parse_masked(p, field, m);
	m->negate = rule_lex_is(&p->x, "!=");
	if (m->negate || rule_lex_is(&p->x, "=="))
		rule_lex_next(&p->x);
	ret = parse_values(p, field, m);
	if (ret != 0)
		return ret;
	if (kind == KIND_MARK)
		mark_prefix(m);
	return 0;
}

/* What a match of the family or the protocol itself settles; only a plain comparison does. */
static int
settle_explicit(struct rule_parse *p, const struct rule_match *m, size_t from)
{
	uint32_t i, v = m->range->lo.n;

	if (m->negate || m->form == RULE_FORM_RANGE)
		return 0;
	if (m->field == RULE_NFPROTO) {
		if (m->form == RULE_FORM_SET)
			return parse_refuse_at(p, from, p->x.at,
				"both families are every packet that has one: leave this out");
		if (p->family != 0 && p->family != v)
			return parse_settle_family(p, (uint8_t)v, from, p->x.at);
		p->family = (uint8_t)v;
		return 0;
	}
	if (m->form == RULE_FORM_VALUE && p->proto >= 0 && p->proto != (int)v)
		return parse_settle_proto(p, (uint8_t)v, from, p->x.at);
	for (i = 0; i < m->n; i++)
		if (field_compare(RULE_L4PROTO, &m->range[i].lo, &m->range[i].hi) != 0)
			return 0;
	if (m->form == RULE_FORM_SET || p->proto == PARSE_PROTOS)
		p->proto = PARSE_PROTOS;
	else
		p->proto = (int16_t)v;
	p->ports = true;
	for (i = 0; i < m->n; i++) {
		v = m->range[i].lo.n;
		p->ports &= v == IPPROTO_TCP || v == IPPROTO_UDP || v == IPPROTO_SCTP ||
			    v == IPPROTO_DCCP || v == IPPROTO_UDPLITE;
	}
	return 0;
}

static int
settle(struct rule_parse *p, enum rule_field field, size_t from, size_t to)
{
	const struct rule_field_info *f = &rule_field_info[field];
	int ret = 0;

	if (f->family != 0)
		ret = parse_settle_family(p, f->family, from, to);
	if (ret == 0 && f->proto != 0)
		ret = parse_settle_proto(p, f->proto, from, to);
	return ret;
}

int
parse_match(struct rule_parse *p)
{
	struct rule_match m = {.mask = UINT32_MAX};
	struct rule_item *it;
	size_t from = p->x.at;
	enum rule_field field;
	bool known;
	int ret;

	field = find_field(p, &known);
	if (field == RULE_FIELDS || is_setting(p, field))
		return known && field == RULE_FIELDS && !rule_lex_is(&p->x, "ct") &&
			       !rule_lex_is(&p->x, "meta")
			       ? refuse_second(p) : 1;
	m.field = (uint8_t)field;
	rule_lex_next(&p->x);
	if (rule_field_info[field].second != NULL)
		rule_lex_next(&p->x);
	ret = settle(p, field, from, p->x.at);
	if (ret != 0)
		return ret;
	if (rule_field_info[field].kind == KIND_FLAGS)
		ret = parse_tcp_flags(p, &m);
	else if (rule_field_info[field].kind == KIND_STATE)
		ret = parse_ct_state(p, &m);
	else
		ret = parse_plain(p, field, &m);
	if (ret == 0 && (field == RULE_NFPROTO || field == RULE_L4PROTO))
		ret = settle_explicit(p, &m, from);
	if (ret == 0) {
		it = parse_add(p, RULE_MATCH);
		if (it != NULL) {
			it->match = m;
			return 0;
		}
		ret = -EINVAL;
	}
	free(m.range);
	return ret;
}
