/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits. `… by ip saddr and MASK` is a short form: nft has it as the element of a dynamic set,
 * `add @SET { ip saddr & MASK ct count over N }`, which is read where such a file is.
 */
#include <errno.h>
#include <string.h>

#include "rule_file.h"
#include "rule_parse.h"
#include "rule_words.h"

/* The length of a mask that is a prefix; -1: it is none. */
static int
mask_length(const struct tuple_addr *mask, unsigned int bits)
{
	unsigned int len = 0, i;

	while (len < bits && (mask->b[len / 8] >> (7 - len % 8) & 1) != 0)
		len++;
	for (i = len; i < bits; i++)
		if ((mask->b[i / 8] >> (7 - i % 8) & 1) != 0)
			return -1;
	return (int)len;
}

/* ip|ip6 saddr|daddr [and|& MASK] */
static int
parse_key(struct rule_parse *p, struct rule_key *by)
{
	size_t from = p->x.at;
	unsigned int bits;
	int ret, len;

	if (!rule_lex_is(&p->x, "ip") && !rule_lex_is(&p->x, "ip6"))
		return parse_unexpected(p, "\"ip\" or \"ip6\"");
	by->family = rule_lex_is(&p->x, "ip") ? TUPLE_IPV4 : TUPLE_IPV6;
	bits = by->family == TUPLE_IPV4 ? 32 : 128;
	rule_lex_next(&p->x);
	by->daddr = rule_lex_is(&p->x, "daddr");
	if (!by->daddr && !rule_lex_is(&p->x, "saddr"))
		return parse_unexpected(p, "\"saddr\" or \"daddr\"");
	rule_lex_next(&p->x);
	ret = parse_settle_family(p, by->family, from, p->x.at);
	if (ret != 0)
		return ret;
	by->prefix = (uint8_t)bits;
	if (!parse_accept(p, "and") && !parse_accept(p, "&"))
		return 0;
	if (p->x.type != TOK_ADDR || p->x.family != by->family)
		return parse_unexpected(p, by->family == TUPLE_IPV4
			? "a mask such as 255.255.255.0" : "a mask such as ffff:ffff::");
	len = mask_length(&p->x.addr, bits);
	if (len < 0)
		return parse_refuse(p, "the ones of a mask have to stand together at its left");
	by->prefix = (uint8_t)len;
	rule_lex_next(&p->x);
	return 0;
}

static int
parse_by(struct rule_parse *p, struct rule_key *by)
{
	return parse_accept(p, "by") ? parse_key(p, by) : 0;
}

static int
parse_rate(struct rule_parse *p, struct rule_limit *l)
{
	uint64_t burst;
	int ret = parse_expect(p, "rate");

	if (ret != 0)
		return ret;
	l->over = parse_accept(p, "over");
	l->burst = 5;
	ret = parse_number(p, 1, UINT32_MAX, &l->rate);
	if (ret != 0)
		return ret;
	if (!rule_lex_is(&p->x, "/"))
		return parse_unexpected(p, "\"/second\", \"/minute\", \"/hour\", \"/day\" or "
			"\"/week\"; rates of bytes there are none");
	rule_lex_next(&p->x);
	ret = parse_word(p, words_unit, "second, minute, hour, day or week", &l->unit);
	if (ret != 0 || !parse_accept(p, "burst"))
		return ret;
	ret = parse_number(p, 1, UINT32_MAX, &burst);
	l->burst = ret == 0 ? (uint32_t)burst : 0;
	return ret == 0 ? parse_expect(p, "packets") : ret;
}

int
parse_limit(struct rule_parse *p)
{
	struct rule_item *it = parse_add(p, RULE_LIMIT);
	int ret;

	if (it == NULL)
		return -EINVAL;
	ret = parse_rate(p, &it->limit);
	return ret == 0 ? parse_by(p, &it->limit.by) : ret;
}

static int
parse_count(struct rule_parse *p, struct rule_ct_count *c)
{
	uint64_t v;
	int ret;

	c->over = parse_accept(p, "over");
	ret = parse_number(p, 0, UINT32_MAX, &v);
	c->count = ret == 0 ? (uint32_t)v : 0;
	return ret;
}

int
parse_ct_count(struct rule_parse *p)
{
	struct rule_item *it = parse_add(p, RULE_CT_COUNT);
	int ret;

	if (it == NULL)
		return -EINVAL;
	ret = parse_count(p, &it->ct_count);
	return ret == 0 ? parse_by(p, &it->ct_count.by) : ret;
}

/* ---- add|update @SET { KEY ct count … | limit rate … } ---- */

static int
parse_set_name(struct rule_parse *p)
{
	const char *s;
	size_t len;

	if (p->file == NULL)
		return parse_refuse(p, "there are no named sets: write \"ct count … by ip saddr\" "
			"or \"limit rate … by ip saddr\"");
	rule_lex_next(&p->x);
	if (!rule_lex_is(&p->x, "@"))
		return parse_unexpected(p, "\"@\" and the name of a set");
	rule_lex_next(&p->x);
	len = rule_lex_text(&p->x, &s);
	if (p->x.type != TOK_WORD || !rule_file_has_set(p->file, s, len))
		return parse_unexpected(p, "the name of a dynamic set that stands above");
	rule_lex_next(&p->x);
	return parse_expect(p, "{");
}

int
parse_dynset(struct rule_parse *p)
{
	struct rule_key by = {0};
	struct rule_item *it;
	bool adds = rule_lex_is(&p->x, "add");
	int ret = parse_set_name(p);

	if (ret == 0)
		ret = parse_key(p, &by);
	if (ret != 0)
		return ret;
	if (adds && parse_accept(p, "ct")) {
		it = parse_add(p, RULE_CT_COUNT);
		if (it == NULL)
			return -EINVAL;
		it->ct_count.by = by;
		ret = parse_expect(p, "count");
		ret = ret == 0 ? parse_count(p, &it->ct_count) : ret;
	} else if (!adds && parse_accept(p, "limit")) {
		it = parse_add(p, RULE_LIMIT);
		if (it == NULL)
			return -EINVAL;
		it->limit.by = by;
		ret = parse_rate(p, &it->limit);
	} else {
		return parse_unexpected(
			p, adds ? "\"ct count\" behind \"add\"" : "\"limit\" behind \"update\"");
	}
	return ret == 0 ? parse_expect(p, "}") : ret;
}
