/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules as nft 1.0.6 lists them. */
#include "rule_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rule_words.h"

static void
print_counter(FILE *f, const struct rule *r, const struct rule_counter *c, unsigned int flags)
{
	uint64_t packets, bytes;

	fputs("counter", f);
	if ((flags & RULE_TEXT_STATELESS) != 0)
		return;
	rule_counter_read(r, c->index, &packets, &bytes);
	fprintf(f, " packets %" PRIu64 " bytes %" PRIu64, packets, bytes);
}

static void
print_log(FILE *f, const struct rule_log *log)
{
	fputs("log", f);
	if (log->prefix[0] != '\0')
		fprintf(f, " prefix \"%s\"", log->prefix);
	if (log->has_group)
		fprintf(f, " group %u", log->group);
	else if (log->level != 4)
		fprintf(f, " level %s", word_name(words_log_level, log->level));
}

/* `ip saddr and 255.255.255.0`; nft lists masks with "&". */
static void
print_key(FILE *f, const struct rule_key *by, const char *and)
{
	unsigned int bits = by->family == TUPLE_IPV4 ? 32 : 128, i;
	struct tuple_addr mask = {.w = {0}};

	fprintf(f, "%s %s", by->family == TUPLE_IPV4 ? "ip" : "ip6",
		by->daddr ? "daddr" : "saddr");
	if (by->prefix == bits)
		return;
	for (i = 0; i < by->prefix; i++)
		mask.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	fprintf(f, " %s ", and);
	print_addr(f, by->family, &mask);
}

static void
print_rate(FILE *f, const struct rule_limit *l)
{
	fprintf(f, "limit rate %s%" PRIu64 "/%s", l->over ? "over " : "", l->rate,
		word_name(words_unit, l->unit));
	if (l->burst != 5)
		fprintf(f, " burst %" PRIu32 " packets", l->burst);
}

static void
print_limit(FILE *f, const struct rule_limit *l, struct print_nft *nft)
{
	if (l->by.family != 0 && nft != NULL) {
		fprintf(f, "update @by%u { ", nft->sets++);
		print_key(f, &l->by, "&");
		fputc(' ', f);
		print_rate(f, l);
		fputs(" }", f);
		return;
	}
	print_rate(f, l);
	if (l->by.family != 0) {
		fputs(" by ", f);
		print_key(f, &l->by, "and");
	}
}

static void
print_ct_count(
	FILE *f, const struct rule_ct_count *c, unsigned int flags, struct print_nft *nft)
{
	bool set = c->by.family != 0 && nft != NULL;

	if (set) {
		fprintf(f, "add @by%u { ", nft->sets++);
		print_key(f, &c->by, "&");
		fputc(' ', f);
	}
	fprintf(f, "ct count %s", c->over ? "over " : "");
	if (!(flags & RULE_TEXT_ALIKE))
		fprintf(f, "%" PRIu32, c->count);
	if (set)
		fputs(" }", f);
	else if (c->by.family != 0) {
		fputs(" by ", f);
		print_key(f, &c->by, "and");
	}
}

static void
print_reject(FILE *f, const struct rule_reject *reject)
{
	static const struct {
		const char *name;
		const struct rule_word *codes;
	} types[] = {
		[RULE_REJECT_ICMP] = {"icmp", words_reject_icmp},
		[RULE_REJECT_ICMPV6] = {"icmpv6", words_reject_icmpv6},
		[RULE_REJECT_ICMPX] = {"icmpx", words_reject_icmpx},
	};

	fputs("reject", f);
	if (reject->type == RULE_REJECT_TCP_RESET)
		fputs(" with tcp reset", f);
	else if (reject->type != RULE_REJECT_ICMPX || reject->code != RULE_ICMPX_PORT_UNREACHABLE)
		fprintf(f, " with %s %s", types[reject->type].name,
			word_name(types[reject->type].codes, reject->code));
}

static void
print_zone_set(FILE *f, const struct rule_zone_set *z)
{
	static const char *const dir[] = {"", "original ", "reply "};

	fprintf(f, "ct %szone set %u", dir[z->dir], z->zone);
}

static void
print_item(FILE *f, const struct rule *r, const struct rule_item *it, unsigned int flags,
	struct print_nft *nft)
{
	switch ((enum rule_item_type)it->type) {
	case RULE_MATCH:
		print_match(f, &it->match);
		break;
	case RULE_COUNTER:
		print_counter(f, r, &it->counter, flags);
		break;
	case RULE_LOG:
		print_log(f, it->log);
		break;
	case RULE_LIMIT:
		print_limit(f, &it->limit, nft);
		break;
	case RULE_CT_COUNT:
		print_ct_count(f, &it->ct_count, flags, nft);
		break;
	case RULE_CT_MARK_SET:
		if (it->mark_set.from_meta)
			fputs("ct mark set meta mark", f);
		else
			fprintf(f, "ct mark set 0x%08" PRIx32, it->mark_set.value);
		break;
	case RULE_META_MARK_SET:
		fprintf(f, "meta mark set 0x%08" PRIx32, it->mark_set.value);
		break;
	case RULE_ZONE_SET:
		print_zone_set(f, &it->zone_set);
		break;
	case RULE_HELPER_SET:
		fprintf(f, "ct helper set \"%s\"", it->helper);
		break;
	case RULE_NOTRACK:
		fputs("notrack", f);
		break;
	case RULE_ACCEPT:
		fputs("accept", f);
		break;
	case RULE_DROP:
		fputs("drop", f);
		break;
	case RULE_REJECT:
		print_reject(f, &it->reject);
		break;
	case RULE_NAT:
		print_nat(f, it->nat);
		break;
	}
}

void
print_rule(FILE *f, const struct rule *r, unsigned int flags, struct print_nft *nft)
{
	uint32_t i;

	for (i = 0; i < r->n; i++) {
		fputs(i > 0 ? " " : "", f);
		print_item(f, r, &r->item[i], flags, nft);
	}
}

char *
rule_text(const struct rule *r, unsigned int flags)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL)
		return NULL;
	print_rule(f, r, flags, NULL);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
