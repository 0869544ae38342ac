/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "rule_parse.h"
#include "rule_words.h"
#include "siit.h"

static struct rule_nat *
add_nat(struct rule_parse *p, enum rule_nat_type type)
{
	struct rule_item *it = parse_add(p, RULE_NAT);

	if (it == NULL)
		return NULL;
	it->nat = calloc(1, sizeof(*it->nat));
	if (it->nat == NULL)
		parse_no_memory(p);
	else
		it->nat->type = (uint8_t)type;
	return it->nat;
}

static bool
is_flag(const struct rule_parse *p, uint32_t *flag)
{
	const char *s;
	size_t len = rule_lex_text(&p->x, &s);

	return p->x.type == TOK_WORD && word_value(words_nat_flag, s, len, flag);
}

static int
parse_flags(struct rule_parse *p, struct rule_nat *nat)
{
	uint32_t flag;

	if (!is_flag(p, &flag))
		return 0;
	do {
		if (!is_flag(p, &flag))
			return parse_unexpected(p, "random, fully-random or persistent");
		nat->flags |= (uint8_t)flag;
		rule_lex_next(&p->x);
	} while (parse_accept(p, ","));
	if (is_flag(p, &flag))
		return parse_refuse(
			p, "flags are separated by commas: nft would keep the last only");
	return 0;
}

/* PORT[-PORT] behind the colon. */
static int
parse_ports(struct rule_parse *p, struct rule_nat *nat)
{
	size_t from = p->x.at;
	uint32_t lo, hi;
	int ret = parse_port(p, 1, &lo);

	if (ret != 0)
		return ret;
	hi = lo;
	if (parse_accept(p, "-")) {
		nat->port_range = true;
		ret = parse_port(p, 1, &hi);
		if (ret != 0)
			return ret;
	}
	if (lo > hi)
		return parse_refuse_at(p, from, p->x.at, "the range ends before it begins");
	if (!p->ports)
		return parse_refuse_at(p, from, p->x.at, "a port needs a match of a protocol that "
			"has ports before it, such as \"meta l4proto { tcp, udp }\"");
	nat->has_port = true;
	nat->port_lo = (uint16_t)lo;
	nat->port_hi = (uint16_t)hi;
	return 0;
}

/* An address, in brackets or not. */
static int
parse_addr(struct rule_parse *p, uint8_t family, struct tuple_addr *addr, bool *brackets)
{
	*brackets = family == TUPLE_IPV6 && parse_accept(p, "[");
	if (p->x.type != TOK_ADDR || p->x.family != family)
		return parse_unexpected(p, family == TUPLE_IPV4 ? "an IPv4 address"
								: "an IPv6 address");
	*addr = p->x.addr;
	rule_lex_next(&p->x);
	return *brackets ? parse_expect(p, "]") : 0;
}

/* Widens lo to what a prefix of it covers. */
static void
cover(struct rule_nat *nat, unsigned int len)
{
	unsigned int bits = nat->family == TUPLE_IPV4 ? 32 : 128, i;

	nat->hi = nat->lo;
	for (i = len; i < bits; i++) {
		nat->lo.b[i / 8] &= (uint8_t)~(0x80 >> i % 8);
		nat->hi.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	}
	nat->prefix = (uint8_t)len;
}

static int
parse_prefix(struct rule_parse *p, struct rule_nat *nat)
{
	uint64_t len;
	bool brackets;
	int ret = parse_addr(p, nat->family, &nat->lo, &brackets);

	ret = ret == 0 ? parse_expect(p, "/") : ret;
	if (ret == 0)
		ret = parse_number(p, 0, nat->family == TUPLE_IPV4 ? 32 : 128, &len);
	if (ret != 0)
		return ret;
	nat->has_addr = true;
	cover(nat, (unsigned int)len);
	return 0;
}

/* ADDR, ADDR-ADDR, or a prefix for all of its addresses. */
static int
parse_addrs(struct rule_parse *p, struct rule_nat *nat)
{
	bool brackets, closing;
	size_t from = p->x.at;
	uint64_t len;
	int ret = parse_addr(p, nat->family, &nat->lo, &brackets);

	if (ret != 0)
		return ret;
	nat->has_addr = true;
	nat->hi = nat->lo;
	if (parse_accept(p, "/")) {
		ret = parse_number(p, 0, nat->family == TUPLE_IPV4 ? 32 : 128, &len);
		if (ret != 0)
			return ret;
		cover(nat, (unsigned int)len);
		nat->prefix = 0;
		if (rule_lex_is(&p->x, ":"))
			return parse_refuse(p, "ports go with an address or a range, ADDR-ADDR");
		nat->addr_range = true;
	} else if (parse_accept(p, "-")) {
		nat->addr_range = true;
		ret = parse_addr(p, nat->family, &nat->hi, &closing);
		if (ret != 0)
			return ret;
		if (memcmp(&nat->lo, &nat->hi, sizeof(nat->lo)) > 0)
			return parse_refuse_at(p, from, p->x.at, "the range ends before it begins");
	}
	if (!parse_accept(p, ":"))
		return 0;
	return parse_ports(p, nat);
}

/* ---- snat to pool NAME … ---- */

static int
parse_block(struct rule_parse *p, struct rule_nat *nat)
{
	uint64_t v;
	int ret = parse_number(p, 1, UINT16_MAX, &v);

	if (ret != 0)
		return ret;
	nat->block_size = (uint32_t)v;
	if (parse_accept(p, "blocks")) {
		ret = parse_number(p, 1, UINT16_MAX, &v);
		nat->blocks = ret == 0 ? (uint32_t)v : 0;
	}
	nat->deterministic = parse_accept(p, "deterministic");
	return ret;
}

static int
parse_pool(struct rule_parse *p, struct rule_nat *nat)
{
	uint32_t filter;
	size_t from;
	int ret;

	ret = parse_expect(p, "pool");
	ret = ret == 0 ? parse_name(p, "a pool's name", RULE_POOL_MAX, nat->pool) : ret;
	from = p->x.at;
	if (ret == 0 && parse_accept(p, "block-size"))
		ret = nat->type == RULE_SNAT_POOL
			      ? parse_block(p, nat)
			      : parse_refuse_at(p, from, p->x.at,
					"nat64 gives no blocks of ports: a host has as many as it "
					"needs of all");
	if (ret != 0)
		return ret;
	nat->endpoint_independent = parse_accept(p, "endpoint-independent");
	if (!parse_accept(p, "filter"))
		return 0;
	ret = parse_word(p, words_nat_filter, "endpoint-independent, address-dependent or "
		"address-and-port-dependent", &filter);
	nat->filter = ret == 0 ? (uint8_t)filter : 0;
	return ret;
}

/* ---- statements ---- */

/* `ip` or `ip6` behind the statement's name, or what the matches have settled. */
static int
parse_nat_family(struct rule_parse *p, struct rule_nat *nat, size_t from)
{
	size_t at = p->x.at;

	if (parse_accept(p, "ip"))
		nat->family = TUPLE_IPV4;
	else if (parse_accept(p, "ip6"))
		nat->family = TUPLE_IPV6;
	else
		nat->family = p->family;
	if (nat->family == 0)
		return parse_refuse_at(p, from, at,
			"say \"ip\" or \"ip6\" behind it, or match one before it");
	if (p->family != 0 && p->family != nat->family)
		return parse_settle_family(p, nat->family, at, p->x.at);
	return 0;
}

/* Whether `pool` follows: `snat to pool NAME` serves both families. */
static bool
to_pool(const struct rule_parse *p)
{
	struct rule_lex next = p->x;

	rule_lex_next(&next);
	return rule_lex_is(&p->x, "to") && rule_lex_is(&next, "pool");
}

static int
parse_translation(struct rule_parse *p, bool source)
{
	struct rule_nat *nat = add_nat(p, source ? RULE_SNAT : RULE_DNAT);
	size_t from = p->x.at;
	int ret;

	if (nat == NULL)
		return -EINVAL;
	if (source && to_pool(p)) {
		nat->type = RULE_SNAT_POOL;
		nat->family = p->family;
		rule_lex_next(&p->x);
		return parse_pool(p, nat);
	}
	ret = parse_nat_family(p, nat, from);
	if (ret != 0)
		return ret;
	if (parse_accept(p, "prefix")) {
		nat->type = source ? RULE_SNAT_PREFIX : RULE_DNAT_PREFIX;
		ret = parse_expect(p, "to");
		return ret == 0 ? parse_prefix(p, nat) : ret;
	}
	ret = parse_expect(p, "to");
	ret = ret == 0 ? parse_addrs(p, nat) : ret;
	return ret == 0 ? parse_flags(p, nat) : ret;
}

int
parse_snat(struct rule_parse *p)
{
	return parse_translation(p, true);
}

int
parse_dnat(struct rule_parse *p)
{
	return parse_translation(p, false);
}

static int
parse_own_address(struct rule_parse *p, enum rule_nat_type type)
{
	struct rule_nat *nat = add_nat(p, type);
	int ret;

	if (nat == NULL)
		return -EINVAL;
	nat->family = p->family;
	if (parse_accept(p, "to")) {
		ret = parse_expect(p, ":");
		ret = ret == 0 ? parse_ports(p, nat) : ret;
		if (ret != 0)
			return ret;
	}
	return parse_flags(p, nat);
}

int
parse_masquerade(struct rule_parse *p)
{
	return parse_own_address(p, RULE_MASQUERADE);
}

int
parse_redirect(struct rule_parse *p)
{
	return parse_own_address(p, RULE_REDIRECT);
}

int
parse_nat64(struct rule_parse *p)
{
	struct rule_nat *nat = add_nat(p, RULE_NAT64);
	size_t from = p->x.at;
	struct sl_err err;
	int ret;

	if (nat == NULL)
		return -EINVAL;
	nat->family = TUPLE_IPV6;
	if (p->family == TUPLE_IPV4)
		return parse_settle_family(p, TUPLE_IPV6, from, p->x.at);
	ret = parse_expect(p, "prefix");
	from = p->x.at;
	ret = ret == 0 ? parse_prefix(p, nat) : ret;
	if (ret == 0 && siit_prefix_valid(&nat->lo, nat->prefix, &err) < 0)
		return parse_refuse_at(p, from, p->x.at, "%s", err.msg);
	ret = ret == 0 ? parse_expect(p, "to") : ret;
	return ret == 0 ? parse_pool(p, nat) : ret;
}
