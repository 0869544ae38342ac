/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule_parse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include "name.h"
#include "rule_words.h"

static void refuse(struct rule_parse *p, size_t from, size_t to, const char *fmt, va_list ap)
	__attribute__((format(printf, 4, 0)));

static void
refuse(struct rule_parse *p, size_t from, size_t to, const char *fmt, va_list ap)
{
	vsnprintf(p->e->err.msg, sizeof(p->e->err.msg), fmt, ap);
	while (to > from + 1 && (p->x.text[to - 1] == ' ' || p->x.text[to - 1] == '\t'))
		to--;
	p->e->column = (unsigned int)from + 1;
	p->e->end = (unsigned int)(to > from ? to : from + 1) + 1;
}

int
parse_refuse(struct rule_parse *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	refuse(p, p->x.at, p->x.end, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int
parse_refuse_at(struct rule_parse *p, size_t from, size_t to, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	refuse(p, from, to, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int
parse_no_memory(struct rule_parse *p)
{
	parse_refuse(p, "out of memory");
	return -ENOMEM;
}

int
parse_unexpected(struct rule_parse *p, const char *expected)
{
	char text[SL_SHOWN_MAX + 1], q[SL_SHOWN_MAX];
	size_t len = p->x.end - p->x.at;

	if (p->x.type == TOK_BAD)
		return parse_refuse(p, "%s", p->x.bad);
	if (p->x.type == TOK_END || p->x.type == TOK_LINE)
		return parse_refuse(p, "expected %s, and the rule ends here", expected);
	len = len < SL_SHOWN_MAX ? len : SL_SHOWN_MAX;
	memcpy(text, p->x.text + p->x.at, len);
	text[len] = '\0';
	return parse_refuse(p, "expected %s, not \"%s\"", expected, sl_shown(text, q));
}

bool
parse_accept(struct rule_parse *p, const char *word)
{
	if (!rule_lex_is(&p->x, word))
		return false;
	rule_lex_next(&p->x);
	return true;
}

int
parse_expect(struct rule_parse *p, const char *word)
{
	char expected[SL_SHOWN_MAX];

	if (parse_accept(p, word))
		return 0;
	snprintf(expected, sizeof(expected), "\"%s\"", word);
	return parse_unexpected(p, expected);
}

int
parse_number(struct rule_parse *p, uint64_t min, uint64_t max, uint64_t *v)
{
	if (p->x.type != TOK_NUMBER)
		return parse_unexpected(p, "a number");
	if (p->x.number < min || p->x.number > max)
		return parse_refuse(p, "the number is out of %llu-%llu", (unsigned long long)min,
			(unsigned long long)max);
	*v = p->x.number;
	rule_lex_next(&p->x);
	return 0;
}

int
parse_name(struct rule_parse *p, const char *what, unsigned int max, char *out)
{
	const char *s;
	size_t len = rule_lex_text(&p->x, &s), i;

	if (p->x.type != TOK_WORD && p->x.type != TOK_STRING)
		return parse_unexpected(p, what);
	if (len == 0 || len > max)
		return parse_refuse(p, "%s has 1-%u characters", what, max);
	for (i = 0; i < len; i++)
		if (s[i] == '\0' || strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					   "0123456789._-", s[i]) == NULL)
			return parse_refuse(p, "%s is made of A-Za-z0-9._-", what);
	memcpy(out, s, len);
	out[len] = '\0';
	rule_lex_next(&p->x);
	return 0;
}

/* ---- items ---- */

struct rule_item *
parse_add(struct rule_parse *p, enum rule_item_type type)
{
	struct rule *r = p->rule;
	struct rule_item *grown;

	if (r->n == RULE_ITEMS_MAX) {
		parse_refuse(p, "a rule has at most %u matches and statements", RULE_ITEMS_MAX);
		return NULL;
	}
	if (r->n == p->room) {
		p->room = p->room != 0 ? 2 * p->room : 4;
		grown = reallocarray(r->item, p->room, sizeof(*grown));
		if (grown == NULL) {
			parse_no_memory(p);
			return NULL;
		}
		r->item = grown;
	}
	r->item[r->n] = (struct rule_item){.type = (uint8_t)type};
	p->statement |= type != RULE_MATCH;
	return &r->item[r->n++];
}

int
parse_insert_first(struct rule_parse *p, enum rule_field field, uint32_t value)
{
	struct rule_item *it = parse_add(p, RULE_MATCH), made;
	struct rule_range *range;

	if (it == NULL)
		return -EINVAL;
	range = calloc(1, sizeof(*range));
	if (range == NULL)
		return parse_no_memory(p);
	range->lo.n = range->hi.n = value;
	it->match = (struct rule_match){
		.field = (uint8_t)field, .form = RULE_FORM_VALUE, .mask = UINT32_MAX, .n = 1};
	it->match.range = range;
	made = *it;
	memmove(p->rule->item + 1, p->rule->item, (p->rule->n - 1) * sizeof(made));
	p->rule->item[0] = made;
	return 0;
}

static bool
says(const struct rule_item *it, enum rule_field field, uint32_t value)
{
	return it->type == RULE_MATCH && it->match.field == field && !it->match.negate &&
	       it->match.form == RULE_FORM_VALUE && it->match.range[0].lo.n == value;
}

void
parse_drop_implied(struct rule_parse *p, enum rule_field field, uint32_t value)
{
	struct rule *r = p->rule;
	uint32_t i = r->n;

	while (i-- > 0 && r->item[i].type == RULE_MATCH) {
		if (!says(&r->item[i], field, value))
			continue;
		free(r->item[i].match.range);
		memmove(&r->item[i], &r->item[i + 1], (r->n - i - 1) * sizeof(r->item[0]));
		r->n--;
		return;
	}
}

int
parse_settle_family(struct rule_parse *p, uint8_t family, size_t from, size_t to)
{
	if (p->family != 0 && p->family != family)
		return parse_refuse_at(p, from, to, "this is for %s, what stands before it for %s",
			family == TUPLE_IPV4 ? "IPv4" : "IPv6",
			p->family == TUPLE_IPV4 ? "IPv4" : "IPv6");
	parse_drop_implied(p, RULE_NFPROTO, family);
	p->family = family;
	return 0;
}

int
parse_settle_proto(struct rule_parse *p, uint8_t proto, size_t from, size_t to)
{
	char a[32], b[32];

	if (p->proto == PARSE_PROTOS)
		return parse_refuse_at(p, from, to,
			"this is for %s alone, and a set of protocols stands before it",
			word_protocol_name(proto, a, sizeof(a)));
	if (p->proto != PARSE_NO_PROTO && p->proto != proto)
		return parse_refuse_at(p, from, to,
			"this is for %s, what stands before it for protocol %d (%s)",
			word_protocol_name(proto, a, sizeof(a)), p->proto,
			word_protocol_name((uint32_t)p->proto, b, sizeof(b)) != NULL
				? word_protocol_name((uint32_t)p->proto, b, sizeof(b)) : "?");
	parse_drop_implied(p, RULE_L4PROTO, proto);
	p->proto = proto;
	p->ports = proto != IPPROTO_ICMP && proto != IPPROTO_ICMPV6;
	return 0;
}

/* ---- the order of ports ---- */

static bool
one_port(const struct rule_item *it, bool sport)
{
	uint8_t f = it->type == RULE_MATCH ? it->match.field : RULE_FIELDS;

	if (it->type != RULE_MATCH || it->match.form != RULE_FORM_VALUE)
		return false;
	return sport ? f == RULE_TCP_SPORT || f == RULE_UDP_SPORT || f == RULE_SCTP_SPORT
		     : f == RULE_TCP_DPORT || f == RULE_UDP_DPORT || f == RULE_SCTP_DPORT;
}

/*
 * nft compares a destination port and a later source port as one: it lists the source port first,
 * and behind what stands between them. Matches may be put in that order; over a statement it would
 * change what the statement sees, and of two negated ones it makes "not both".
 */
static int
order_ports(struct rule_parse *p)
{
	struct rule *r = p->rule;
	struct rule_item dport;
	uint32_t i, j, k;

	for (i = 0; i < r->n; i++) {
		if (!one_port(&r->item[i], false))
			continue;
		for (j = 0; j < r->n; j++) {
			if (!one_port(&r->item[j], true) ||
				r->item[j].match.negate != r->item[i].match.negate)
				continue;
			if (r->item[i].match.negate)
				return parse_refuse_at(p, 0, p->x.at,
					"nft takes \"sport != A dport != B\" for one comparison, "
					"true unless both agree: write one as a range, B-B");
			if (j < i)
				continue;
			for (k = i; k < j; k++)
				if (r->item[k].type != RULE_MATCH)
					return parse_refuse_at(p, 0, p->x.at,
						"nft would move \"dport\" behind the statement "
						"before \"sport\": write both before it");
			dport = r->item[i];
			memmove(&r->item[i], &r->item[i + 1], (j - i) * sizeof(dport));
			r->item[j] = dport;
			return 0;
		}
	}
	return 0;
}

/* ---- the rule ---- */

static const char *const not_ours[] = {"jump", "goto", "return", "continue", "queue", "comment",
	"iif", "oif", "iifgroup", "oifgroup", "th", "vlan", "arp", "ether", "fib", "socket", "rt",
	"meter", "set", "map", "vmap", "dup", "fwd", "tproxy", "synproxy", "quota", "flow", "osf",
	"numgen", "jhash", "symhash", "exthdr", "frag", "mh", "hbh", "dst", "udplite", "dccp",
	"ah", "esp", "comp", "igmp", "xt", "secmark", NULL};

static int
refuse_word(struct rule_parse *p)
{
	unsigned int i;

	for (i = 0; not_ours[i] != NULL; i++)
		if (rule_lex_is(&p->x, not_ours[i]))
			return parse_refuse(p, "\"%s\" is nft's, but not of the part of its "
				"language that there is here: see docs/rules.md", not_ours[i]);
	return parse_unexpected(p, "a match, a statement or a verdict");
}

static bool
rule_ends(const struct rule_parse *p)
{
	return p->x.type == TOK_END || p->x.type == TOK_LINE ||
	       (p->file != NULL && rule_lex_is(&p->x, "}"));
}

static int
parse_items(struct rule_parse *p)
{
	int ret;

	if (rule_ends(p))
		return parse_refuse(p, "the rule is empty");
	while (!rule_ends(p)) {
		if (p->stop && p->x.type != TOK_BAD)
			return parse_refuse(p, "nothing can follow a verdict");
		ret = parse_match(p);
		if (ret == 1)
			ret = parse_statement(p);
		if (ret == 1)
			ret = refuse_word(p);
		if (ret != 0)
			return ret;
	}
	return order_ports(p);
}

static void
number_counters(struct rule *r)
{
	uint32_t i;

	for (i = 0; i < r->n; i++)
		if (r->item[i].type == RULE_COUNTER)
			r->item[i].counter.index = r->n_counters++;
}

int
parse_rule(struct rule_parse *p, struct rule **out)
{
	int ret;

	p->room = 0;
	p->family = 0;
	p->proto = PARSE_NO_PROTO;
	p->ports = p->statement = p->stop = false;
	p->rule = calloc(1, sizeof(*p->rule));
	if (p->rule == NULL)
		return parse_no_memory(p);
	p->rule->refs = 1;
	p->rule->chain = (uint8_t)p->chain;
	ret = parse_items(p);
	if (ret != 0) {
		rule_put(p->rule);
		return ret;
	}
	number_counters(p->rule);
	*out = p->rule;
	return 0;
}

int
rule_parse(const char *text, size_t len, enum rule_chain chain, struct rule **out,
	struct rule_error *e)
{
	struct rule_parse p = {.chain = chain, .e = e};

	if (len > RULE_TEXT_MAX)
		return parse_refuse_at(
			&p, 0, 0, "the rule is longer than %u bytes", RULE_TEXT_MAX);
	rule_lex_init(&p.x, text, len, false);
	return parse_rule(&p, out);
}
