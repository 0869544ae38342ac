/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "rule_print.h"
#include "rule_words.h"

static void
print_flags(FILE *f, uint8_t flags)
{
	const struct rule_word *w;
	char sep = ' ';

	for (w = words_nat_flag; w->name != NULL; w++) {
		if ((flags & w->value) == 0)
			continue;
		fprintf(f, "%c%s", sep, w->name);
		sep = ',';
	}
}

static void
print_ports(FILE *f, const struct rule_nat *nat)
{
	fprintf(f, ":%u", nat->port_lo);
	if (nat->port_range)
		fprintf(f, "-%u", nat->port_hi);
}

/* The length of the prefix that the range of addresses is; -1: it is none. */
static int
range_length(const struct rule_nat *nat)
{
	unsigned int bits = nat->family == TUPLE_IPV4 ? 32 : 128, len = 0, i;

	while (len < bits &&
		((nat->lo.b[len / 8] ^ nat->hi.b[len / 8]) & (0x80 >> len % 8)) == 0)
		len++;
	for (i = len; i < bits; i++)
		if ((nat->lo.b[i / 8] & (0x80 >> i % 8)) != 0 ||
			(nat->hi.b[i / 8] & (0x80 >> i % 8)) == 0)
			return -1;
	return (int)len;
}

/* nft lists a range that is a prefix as one, but does not read it back with a port behind. */
static void
print_addrs(FILE *f, const struct rule_nat *nat)
{
	bool brackets = nat->family == TUPLE_IPV6 && nat->has_port;
	int len = nat->addr_range && !nat->has_port ? range_length(nat) : -1;

	fputs(brackets ? "[" : "", f);
	print_addr(f, nat->family, &nat->lo);
	fputs(brackets ? "]" : "", f);
	if (len >= 0)
		fprintf(f, "/%d", len);
	else if (nat->addr_range) {
		fputs(brackets ? "-[" : "-", f);
		print_addr(f, nat->family, &nat->hi);
		fputs(brackets ? "]" : "", f);
	}
}

static void
print_pool(FILE *f, const struct rule_nat *nat)
{
	fprintf(f, "to pool %s", nat->pool);
	if (nat->block_size != 0)
		fprintf(f, " block-size %u", nat->block_size);
	if (nat->blocks != 0)
		fprintf(f, " blocks %u", nat->blocks);
	if (nat->deterministic)
		fputs(" deterministic", f);
	if (nat->endpoint_independent)
		fputs(" endpoint-independent", f);
	if (nat->filter != RULE_FILTER_DEFAULT)
		fprintf(f, " filter %s", word_name(words_nat_filter, nat->filter));
}

static void
print_prefix(FILE *f, const struct rule_nat *nat)
{
	print_addr(f, nat->family, &nat->lo);
	fprintf(f, "/%u", nat->prefix);
}

void
print_nat(FILE *f, const struct rule_nat *nat)
{
	bool source = nat->type == RULE_SNAT || nat->type == RULE_SNAT_PREFIX;

	switch ((enum rule_nat_type)nat->type) {
	case RULE_MASQUERADE:
	case RULE_REDIRECT:
		fputs(nat->type == RULE_MASQUERADE ? "masquerade" : "redirect", f);
		if (nat->has_port) {
			fputs(" to ", f);
			print_ports(f, nat);
		}
		break;
	case RULE_SNAT_POOL:
		fputs("snat ", f);
		print_pool(f, nat);
		return;
	case RULE_NAT64:
		fputs("nat64 prefix ", f);
		print_prefix(f, nat);
		fputc(' ', f);
		print_pool(f, nat);
		return;
	default:
		fprintf(f, "%s %s ", source ? "snat" : "dnat",
			nat->family == TUPLE_IPV4 ? "ip" : "ip6");
		if (nat->type == RULE_SNAT_PREFIX || nat->type == RULE_DNAT_PREFIX) {
			fputs("prefix to ", f);
			print_prefix(f, nat);
			return;
		}
		fputs("to ", f);
		print_addrs(f, nat);
		if (nat->has_port)
			print_ports(f, nat);
		break;
	}
	print_flags(f, nat->flags);
}
