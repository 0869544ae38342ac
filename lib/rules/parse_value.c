/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of matches: one, a range, a prefix, or a set of these, sorted and joined as nft does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rule_field.h"
#include "rule_parse.h"
#include "rule_words.h"

_Static_assert(sizeof(union rule_value) == 16, "names and addresses compare as their bytes");

int
parse_word(struct rule_parse *p, const struct rule_word *words, const char *what, uint32_t *value)
{
	const char *s;
	size_t len = rule_lex_text(&p->x, &s);

	if (p->x.type != TOK_WORD && p->x.type != TOK_STRING)
		return parse_unexpected(p, what);
	if (!word_value(words, s, len, value))
		return parse_unexpected(p, what);
	rule_lex_next(&p->x);
	return 0;
}

int
parse_port(struct rule_parse *p, uint32_t min, uint32_t *port)
{
	const char *s;
	size_t len = rule_lex_text(&p->x, &s);
	uint64_t v;
	int ret;

	if (p->x.type != TOK_WORD && p->x.type != TOK_STRING) {
		ret = parse_number(p, min, UINT16_MAX, &v);
		*port = ret == 0 ? (uint32_t)v : 0;
		return ret;
	}
	if (!word_service(s, len, port))
		return parse_unexpected(p, "a port or the name of a service");
	rule_lex_next(&p->x);
	return 0;
}

static int
parse_proto(struct rule_parse *p, uint32_t *value)
{
	const char *s;
	size_t len = rule_lex_text(&p->x, &s);
	uint64_t v;
	int ret;

	if (p->x.type != TOK_WORD && p->x.type != TOK_STRING) {
		ret = parse_number(p, 0, UINT8_MAX, &v);
		*value = ret == 0 ? (uint32_t)v : 0;
		return ret;
	}
	if (!word_protocol(s, len, value))
		return parse_unexpected(p, "a protocol");
	rule_lex_next(&p->x);
	return 0;
}

static int
parse_icmp_type(struct rule_parse *p, const struct rule_word *words, uint32_t *value)
{
	uint64_t v;
	int ret;

	if (p->x.type != TOK_NUMBER)
		return parse_word(p, words, "an ICMP type", value);
	ret = parse_number(p, 0, UINT8_MAX, &v);
	*value = ret == 0 ? (uint32_t)v : 0;
	return ret;
}

static int
parse_single(struct rule_parse *p, enum rule_field field, union rule_value *v)
{
	const struct rule_field_info *f = &rule_field_info[field];
	uint64_t n;
	int ret;

	memset(v, 0, sizeof(*v));
	switch ((enum field_kind)f->kind) {
	case KIND_ADDR:
		if (p->x.type != TOK_ADDR || p->x.family != f->family)
			return parse_unexpected(
				p, f->family == TUPLE_IPV4 ? "an IPv4 address" : "an IPv6 address");
		v->addr = p->x.addr;
		rule_lex_next(&p->x);
		return 0;
	case KIND_NFPROTO:
		return parse_word(p, words_nfproto, "ipv4 or ipv6", &v->n);
	case KIND_PROTO:
		return parse_proto(p, &v->n);
	case KIND_PORT:
		return parse_port(p, 0, &v->n);
	case KIND_ICMP:
		return parse_icmp_type(p, words_icmp_type, &v->n);
	case KIND_ICMPV6:
		return parse_icmp_type(p, words_icmpv6_type, &v->n);
	case KIND_STATE:
		return parse_word(p, words_ct_state, "a connection's state", &v->n);
	default:
		ret = parse_number(p, 0, f->max, &n);
		v->n = ret == 0 ? (uint32_t)n : 0;
		return ret;
	}
}

/* What a prefix of `len` bits covers; `r->lo` is any value in it. */
static void
make_prefix(enum rule_field field, struct rule_range *r, uint32_t len)
{
	uint32_t low, i, bits = rule_field_info[field].family == TUPLE_IPV4 ? 32 : 128;
	uint8_t host;

	if (field_is_number(field)) {
		low = len == 0 ? UINT32_MAX : (uint32_t)((UINT64_C(1) << (32 - len)) - 1);
		r->lo.n &= ~low;
		r->hi.n = r->lo.n | low;
		return;
	}
	r->hi = r->lo;
	for (i = 0; i < bits / 8; i++) {
		host = len >= 8 * (i + 1) ? 0 : len <= 8 * i ? 0xff : (uint8_t)(0xff >> (len % 8));
		r->lo.addr.b[i] &= (uint8_t)~host;
		r->hi.addr.b[i] |= host;
	}
}

static struct rule_range *
new_range(struct rule_parse *p, struct value_list *list)
{
	struct rule_range *grown;

	if (list->n == RULE_SET_MAX) {
		parse_refuse(p, "a set has at most %u elements", RULE_SET_MAX);
		return NULL;
	}
	if (list->n == list->room) {
		list->room = list->room != 0 ? 2 * list->room : 1;
		grown = reallocarray(list->range, list->room, sizeof(*grown));
		if (grown == NULL) {
			parse_no_memory(p);
			return NULL;
		}
		list->range = grown;
	}
	memset(&list->range[list->n], 0, sizeof(*grown));
	return &list->range[list->n++];
}

/* A link's name, which may end with '*' for all that begin so. */
static int
parse_link_name(struct rule_parse *p, struct rule_range *r, struct value_list *list)
{
	const char *s;
	size_t len = rule_lex_text(&p->x, &s), i;
	bool wild = len > 0 && s[len - 1] == '*';

	if (p->x.type != TOK_WORD && p->x.type != TOK_STRING)
		return parse_unexpected(p, "a link's name");
	if (len > RULE_NAME_MAX)
		return parse_refuse(
			p, "a link's name has at most %u characters", RULE_NAME_MAX);
	len -= wild;
	for (i = 0; i < len; i++)
		if (s[i] == '\0' || strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					   "0123456789._-", s[i]) == NULL)
			return parse_refuse(p, "a link's name is made of A-Za-z0-9._- ; a \"*\" at "
				"its end stands for any others");
	if (len == 0)
		return parse_refuse(p, wild ? "\"*\" alone is every link: leave the match out"
					    : "a link's name cannot be empty");
	memcpy(r->lo.name, s, len);
	r->hi = r->lo;
	if (wild)
		memset(r->hi.name + len, 0xff, sizeof(r->hi.name) - len);
	list->interval |= wild;
	rule_lex_next(&p->x);
	return 0;
}

static int
parse_length(struct rule_parse *p, enum rule_field field, struct rule_range *r)
{
	const struct rule_field_info *f = &rule_field_info[field];
	uint64_t len;
	int ret;

	if (f->kind != KIND_ADDR && f->kind != KIND_MARK)
		return parse_refuse(p, "only addresses and marks have a prefix length");
	rule_lex_next(&p->x);
	ret = parse_number(p, f->kind == KIND_MARK, f->family == TUPLE_IPV6 ? 128 : 32, &len);
	if (ret == 0)
		make_prefix(field, r, (uint32_t)len);
	return ret;
}

int
parse_element(struct rule_parse *p, enum rule_field field, struct value_list *list)
{
	struct rule_range *r = new_range(p, list);
	size_t from = p->x.at;
	int ret;

	list->as_range = false;
	if (r == NULL)
		return -EINVAL;
	if (rule_field_info[field].kind == KIND_NAME)
		return parse_link_name(p, r, list);
	ret = parse_single(p, field, &r->lo);
	r->hi = r->lo;
	if (ret != 0)
		return ret;
	if (rule_lex_is(&p->x, "/")) {
		list->interval = true;
		return parse_length(p, field, r);
	}
	if (!rule_lex_is(&p->x, "-"))
		return 0;
	if (rule_field_info[field].kind == KIND_NFPROTO ||
		rule_field_info[field].kind == KIND_STATE)
		return parse_refuse(p, "this has no ranges");
	rule_lex_next(&p->x);
	list->interval = list->as_range = true;
	ret = parse_single(p, field, &r->hi);
	if (ret == 0 && field_compare(field, &r->lo, &r->hi) > 0)
		return parse_refuse_at(p, from, p->x.at, "the range ends before it begins");
	return ret;
}

/* ---- sets ---- */

static int
compare_numbers(const void *a, const void *b)
{
	const struct rule_range *x = a, *y = b;

	return x->lo.n < y->lo.n ? -1 : x->lo.n > y->lo.n;
}

static int
compare_bytes(const void *a, const void *b)
{
	const struct rule_range *x = a, *y = b;

	return memcmp(x->lo.addr.b, y->lo.addr.b, sizeof(x->lo.addr.b));
}

/* Whether b begins right behind the end of a. Names have no neighbours: nothing lies between "a*"
 * and "b*", but they are not one wildcard. */
static bool
adjacent(enum rule_field field, const union rule_value *end, const union rule_value *begin)
{
	union rule_value next = *end;
	int i;

	if (rule_field_info[field].kind == KIND_NAME)
		return false;
	if (field_is_number(field))
		return end->n + 1 == begin->n && end->n != UINT32_MAX;
	for (i = rule_field_info[field].family == TUPLE_IPV4 ? 3 : 15; i >= 0; i--)
		if (++next.addr.b[i] != 0)
			break;
	return i >= 0 && memcmp(&next, begin, sizeof(next)) == 0;
}

/* Joins what overlaps; and, in a set with ranges, what is adjacent. */
static void
join(enum rule_field field, struct value_list *list)
{
	struct rule_range *to = list->range;
	uint32_t i;

	qsort(list->range, list->n, sizeof(list->range[0]),
		field_is_number(field) ? compare_numbers : compare_bytes);
	for (i = 1; i < list->n; i++) {
		struct rule_range *r = &list->range[i];

		if (field_compare(field, &r->lo, &to->hi) > 0 &&
			!(list->interval && adjacent(field, &to->hi, &r->lo)))
			*++to = *r;
		else if (field_compare(field, &r->hi, &to->hi) > 0)
			to->hi = r->hi;
	}
	list->n = (uint32_t)(to - list->range) + 1;
}

static int
parse_set(struct rule_parse *p, enum rule_field field, struct value_list *list)
{
	int ret;

	rule_lex_next(&p->x);
	if (rule_lex_is(&p->x, "}"))
		return parse_refuse(p, "a set cannot be empty");
	do {
		if (list->n > 0 && rule_lex_is(&p->x, "}"))
			break;
		ret = parse_element(p, field, list);
		if (ret != 0)
			return ret;
	} while (parse_accept(p, ","));
	if (!rule_lex_is(&p->x, "}"))
		return parse_unexpected(p, "\",\" or \"}\"");
	rule_lex_next(&p->x);
	return 0;
}

int
parse_values(struct rule_parse *p, enum rule_field field, struct rule_match *m)
{
	struct value_list list = {0};
	bool set = rule_lex_is(&p->x, "{");
	int ret = set ? parse_set(p, field, &list) : parse_element(p, field, &list);

	if (ret != 0) {
		free(list.range);
		return ret;
	}
	/* A set of one is that one. */
	if (list.n > 1)
		m->form = RULE_FORM_SET;
	else
		m->form = list.as_range ? RULE_FORM_RANGE : RULE_FORM_VALUE;
	join(field, &list);
	m->range = list.range;
	m->n = list.n;
	return 0;
}
