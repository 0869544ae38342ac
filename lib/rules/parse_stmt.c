/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements and verdicts but for limits and NAT. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include "rule_field.h"
#include "rule_parse.h"
#include "rule_words.h"

#define CHAIN(c)  (1u << (c))
#define ANY_CHAIN (CHAIN(RULE_CHAINS) - 1)
#define TRACKED   (ANY_CHAIN & ~CHAIN(RULE_RAW))

/* ---- counter, log ---- */

static int
parse_counter(struct rule_parse *p)
{
	struct rule_item *it = parse_add(p, RULE_COUNTER);
	bool packets = false, bytes = false;
	int ret = 0;

	if (it == NULL)
		return -EINVAL;
	while (ret == 0) {
		if (!packets && parse_accept(p, "packets"))
			ret = parse_number(p, 0, UINT64_MAX, &it->counter.packets), packets = true;
		else if (!bytes && parse_accept(p, "bytes"))
			ret = parse_number(p, 0, UINT64_MAX, &it->counter.bytes), bytes = true;
		else
			break;
	}
	return ret;
}

static int
parse_log_prefix(struct rule_parse *p, struct rule_log *log)
{
	const char *s;
	size_t len = rule_lex_text(&p->x, &s);

	if (p->x.type != TOK_STRING && p->x.type != TOK_WORD)
		return parse_unexpected(p, "the prefix in quotes");
	if (len == 0)
		return parse_refuse(p, "an empty prefix: leave it out");
	if (len > RULE_PREFIX_MAX)
		return parse_refuse(p, "a prefix has at most %u bytes", RULE_PREFIX_MAX);
	if (memchr(s, '$', len) != NULL)
		return parse_refuse(p, "\"$\" in a prefix names one of nft's variables: there are "
			"none here");
	memcpy(log->prefix, s, len);
	rule_lex_next(&p->x);
	return 0;
}

static int
parse_log_level(struct rule_parse *p, struct rule_log *log)
{
	uint32_t level;
	int ret = parse_word(p, words_log_level,
		"emerg, alert, crit, err, warn, notice, info, debug or audit", &level);

	if (ret == 0)
		log->level = (uint8_t)level;
	return ret;
}

static int
parse_log_option(struct rule_parse *p, struct rule_log *log, bool *more)
{
	uint64_t group;
	int ret;

	if (rule_lex_is(&p->x, "prefix") && log->prefix[0] == '\0') {
		rule_lex_next(&p->x);
		return parse_log_prefix(p, log);
	}
	if (rule_lex_is(&p->x, "level") && !log->has_level) {
		rule_lex_next(&p->x);
		log->has_level = true;
		return parse_log_level(p, log);
	}
	if (rule_lex_is(&p->x, "group") && !log->has_group) {
		rule_lex_next(&p->x);
		log->has_group = true;
		ret = parse_number(p, 0, UINT16_MAX, &group);
		log->group = ret == 0 ? (uint16_t)group : 0;
		return ret;
	}
	if (rule_lex_is(&p->x, "prefix") || rule_lex_is(&p->x, "level") ||
		rule_lex_is(&p->x, "group"))
		return parse_refuse(p, "this is given twice");
	if (rule_lex_is(&p->x, "flags") || rule_lex_is(&p->x, "snaplen") ||
		rule_lex_is(&p->x, "queue-threshold"))
		return parse_refuse(p, "a log statement has \"prefix\", \"level\" and \"group\"");
	*more = false;
	return 0;
}

static int
parse_log(struct rule_parse *p)
{
	struct rule_item *it = parse_add(p, RULE_LOG);
	size_t from = p->x.at;
	bool more = true;
	int ret = 0;

	if (it == NULL)
		return -EINVAL;
	it->log = calloc(1, sizeof(*it->log));
	if (it->log == NULL)
		return parse_no_memory(p);
	it->log->level = 4;
	while (ret == 0 && more)
		ret = parse_log_option(p, it->log, &more);
	if (ret != 0)
		return ret;
	if (it->log->has_level && it->log->has_group)
		return parse_refuse_at(
			p, from, p->x.at, "\"level\" and \"group\" exclude each other");
	if (it->log->level == 8 && it->log->prefix[0] != '\0')
		return parse_refuse_at(p, from, p->x.at, "level audit goes with no prefix");
	return 0;
}

/* ---- marks, zones, helpers ---- */

static int
parse_mark_set(struct rule_parse *p, enum rule_item_type type)
{
	struct rule_item *it = parse_add(p, type);
	uint64_t v;
	int ret;

	if (it == NULL)
		return -EINVAL;
	if (type == RULE_CT_MARK_SET && parse_accept(p, "meta")) {
		it->mark_set.from_meta = true;
		return parse_expect(p, "mark");
	}
	ret = parse_number(p, 0, UINT32_MAX, &v);
	it->mark_set.value = ret == 0 ? (uint32_t)v : 0;
	return ret;
}

static int
parse_meta(struct rule_parse *p)
{
	int ret;

	if (!parse_accept(p, "mark"))
		return parse_unexpected(p, "\"l4proto\", \"nfproto\" or \"mark\"");
	ret = parse_expect(p, "set");
	return ret == 0 ? parse_mark_set(p, RULE_META_MARK_SET) : ret;
}

static int
parse_zone_set(struct rule_parse *p, enum rule_zone_dir dir)
{
	struct rule_item *it;
	uint64_t v;
	int ret = parse_expect(p, "set");

	if (ret != 0)
		return ret;
	it = parse_add(p, RULE_ZONE_SET);
	if (it == NULL)
		return -EINVAL;
	it->zone_set.dir = (uint8_t)dir;
	ret = parse_number(p, 0, UINT16_MAX, &v);
	it->zone_set.zone = ret == 0 ? (uint16_t)v : 0;
	return ret;
}

static int
parse_helper(struct rule_parse *p)
{
	struct rule_item *it;
	uint32_t proto;
	const char *s;
	size_t len;
	int ret = parse_expect(p, "set");

	if (ret != 0)
		return ret;
	it = parse_add(p, RULE_HELPER_SET);
	if (it == NULL)
		return -EINVAL;
	len = rule_lex_text(&p->x, &s);
	ret = parse_word(p, words_helper, "ftp, tftp, sip, pptp, irc or amanda", &proto);
	if (ret == 0)
		memcpy(it->helper, s, len);
	return ret;
}

/* A statement that the chain cannot have, since there it would come too early or too late. */
static int
only_in(struct rule_parse *p, unsigned int chains, size_t from, const char *where)
{
	if ((chains & CHAIN(p->chain)) != 0)
		return 0;
	return parse_refuse_at(p, from, p->x.end, "this is for %s, not for \"%s\"", where,
		rule_chain_name(p->chain));
}

#define ONLY_RAW     "the chain \"raw\""
#define ONLY_TRACKED "the chains behind connection tracking"

static int
parse_ct(struct rule_parse *p)
{
	size_t from = p->x.at;
	int ret;

	rule_lex_next(&p->x);
	if (rule_lex_is(&p->x, "mark")) {
		ret = only_in(p, TRACKED, from, ONLY_TRACKED);
		rule_lex_next(&p->x);
		ret = ret == 0 ? parse_expect(p, "set") : ret;
		return ret == 0 ? parse_mark_set(p, RULE_CT_MARK_SET) : ret;
	}
	if (rule_lex_is(&p->x, "helper")) {
		ret = only_in(p, TRACKED, from, ONLY_TRACKED);
		rule_lex_next(&p->x);
		return ret == 0 ? parse_helper(p) : ret;
	}
	if (rule_lex_is(&p->x, "count")) {
		ret = only_in(p, TRACKED, from, ONLY_TRACKED);
		rule_lex_next(&p->x);
		return ret == 0 ? parse_ct_count(p) : ret;
	}
	ret = only_in(p, CHAIN(RULE_RAW), from, ONLY_RAW);
	if (parse_accept(p, "zone"))
		return ret == 0 ? parse_zone_set(p, RULE_ZONE_BOTH) : ret;
	if (rule_lex_is(&p->x, "original") || rule_lex_is(&p->x, "reply")) {
		enum rule_zone_dir dir = rule_lex_is(&p->x, "original") ? RULE_ZONE_ORIGINAL
									: RULE_ZONE_REPLY;
		rule_lex_next(&p->x);
		ret = ret == 0 ? parse_expect(p, "zone") : ret;
		return ret == 0 ? parse_zone_set(p, dir) : ret;
	}
	return parse_unexpected(p,
		"\"state\", \"mark\", \"zone\", \"count\", \"original\", \"reply\" or \"helper\"");
}

static int
parse_notrack(struct rule_parse *p)
{
	return parse_add(p, RULE_NOTRACK) == NULL ? -EINVAL : 0;
}

/* ---- verdicts ---- */

static int
parse_accept_verdict(struct rule_parse *p)
{
	return parse_add(p, RULE_ACCEPT) == NULL ? -EINVAL : 0;
}

static int
parse_drop_verdict(struct rule_parse *p)
{
	return parse_add(p, RULE_DROP) == NULL ? -EINVAL : 0;
}

/* `tcp reset` behind `reject with`. */
static int
parse_tcp_reset(struct rule_parse *p, size_t from)
{
	int ret = parse_expect(p, "reset");

	if (ret != 0)
		return ret;
	if (p->proto == PARSE_PROTOS || (p->proto >= 0 && p->proto != IPPROTO_TCP))
		return parse_refuse_at(
			p, from, p->x.at, "a TCP reset answers TCP only: match one protocol, tcp");
	if (p->proto == PARSE_NO_PROTO)
		return parse_insert_first(p, RULE_L4PROTO, IPPROTO_TCP);
	return 0;
}

/* `icmp [type] CODE` and its kin. `open`: statements before it count packets of both families. */
static int
parse_reject_icmp(struct rule_parse *p, struct rule_reject *reject, bool open, size_t from)
{
	const struct rule_word *words = words_reject_icmpx;
	uint8_t family = 0;
	uint32_t code;
	int ret;

	reject->type = RULE_REJECT_ICMPX;
	if (rule_lex_is(&p->x, "icmp")) {
		reject->type = RULE_REJECT_ICMP;
		family = TUPLE_IPV4;
		words = words_reject_icmp;
	} else if (rule_lex_is(&p->x, "icmpv6")) {
		reject->type = RULE_REJECT_ICMPV6;
		family = TUPLE_IPV6;
		words = words_reject_icmpv6;
	} else if (!rule_lex_is(&p->x, "icmpx")) {
		return parse_unexpected(p, "\"tcp reset\", \"icmp\", \"icmpv6\" or \"icmpx\"");
	}
	rule_lex_next(&p->x);
	parse_accept(p, "type");
	ret = parse_word(p, words, "the name of a code, such as port-unreachable", &code);
	if (ret != 0)
		return ret;
	reject->code = (uint8_t)code;
	if (family == 0)
		return 0;
	if (p->family == 0 && open) {
		p->family = family;
		return parse_insert_first(p, RULE_NFPROTO, family);
	}
	return parse_settle_family(p, family, from, p->x.at);
}

/* Without `with`: port unreachable, of the family settled. */
static int
default_reject(struct rule_parse *p, struct rule_reject *reject)
{
	if (p->family == TUPLE_IPV4)
		*reject = (struct rule_reject){RULE_REJECT_ICMP, 3};
	else if (p->family == TUPLE_IPV6)
		*reject = (struct rule_reject){RULE_REJECT_ICMPV6, 4};
	else
		*reject = (struct rule_reject){RULE_REJECT_ICMPX, RULE_ICMPX_PORT_UNREACHABLE};
	return p->family != 0 ? parse_settle_family(p, p->family, p->x.at, p->x.at) : 0;
}

static int
parse_reject(struct rule_parse *p)
{
	struct rule_reject reject = {0};
	struct rule_item *it;
	size_t from;
	int ret;

	if (!parse_accept(p, "with")) {
		ret = default_reject(p, &reject);
	} else {
		from = p->x.at;
		if (parse_accept(p, "tcp"))
			ret = parse_tcp_reset(p, from); /* of type 0 */
		else
			ret = parse_reject_icmp(p, &reject, p->statement, from);
	}
	if (ret != 0)
		return ret;
	it = parse_add(p, RULE_REJECT);
	if (it == NULL)
		return -EINVAL;
	it->reject = reject;
	return 0;
}

/* ---- all ---- */

struct statement {
	const char *word;
	bool verdict;
	bool whole; /* parse() begins at the word itself */
	unsigned int chains;
	const char *where;
	int (*parse)(struct rule_parse *p);
};

static const struct statement statements[] = {
	{"accept", true, false, ANY_CHAIN, NULL, parse_accept_verdict},
	{"drop", true, false, ANY_CHAIN, NULL, parse_drop_verdict},
	{"reject", true, false, ANY_CHAIN & ~CHAIN(RULE_POSTROUTING),
		"the chains before \"postrouting\"", parse_reject},
	{"snat", true, false, CHAIN(RULE_POSTROUTING), "the chain \"postrouting\"", parse_snat},
	{"dnat", true, false, CHAIN(RULE_PREROUTING), "the chain \"prerouting\"", parse_dnat},
	{"masquerade", true, false, CHAIN(RULE_POSTROUTING), "the chain \"postrouting\"",
		parse_masquerade},
	{"redirect", true, false, CHAIN(RULE_PREROUTING), "the chain \"prerouting\"",
		parse_redirect},
	{"nat64", true, false, CHAIN(RULE_PREROUTING), "the chain \"prerouting\"", parse_nat64},
	{"counter", false, false, ANY_CHAIN, NULL, parse_counter},
	{"log", false, false, ANY_CHAIN, NULL, parse_log},
	{"limit", false, false, ANY_CHAIN, NULL, parse_limit},
	{"ct", false, true, ANY_CHAIN, NULL, parse_ct},
	{"meta", false, false, ANY_CHAIN, NULL, parse_meta},
	{"notrack", false, false, CHAIN(RULE_RAW), ONLY_RAW, parse_notrack},
	{"add", false, true, ANY_CHAIN, NULL, parse_dynset},
	{"update", false, true, ANY_CHAIN, NULL, parse_dynset},
};

int
parse_statement(struct rule_parse *p)
{
	const struct statement *s;
	unsigned int i;
	int ret;

	for (i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
		s = &statements[i];
		if (!rule_lex_is(&p->x, s->word))
			continue;
		ret = only_in(p, s->chains, p->x.at, s->where);
		if (ret != 0)
			return ret;
		if (!s->whole)
			rule_lex_next(&p->x);
		p->stop |= s->verdict;
		return s->parse(p);
	}
	return 1;
}
