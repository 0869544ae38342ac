/* SPDX-License-Identifier: BSD-3-Clause */
/* Matches as nft 1.0.6 lists them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "rule_field.h"
#include "rule_print.h"
#include "rule_words.h"

#define FLAGS 0xffu

void
print_addr(FILE *f, uint8_t family, const struct tuple_addr *addr)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(family == TUPLE_IPV4 ? AF_INET : AF_INET6, addr->b, text, sizeof(text));
	fputs(text, f);
}

static void
print_number(FILE *f, enum field_kind kind, uint32_t n)
{
	char buf[32];
	const char *name = NULL;

	switch (kind) {
	case KIND_NFPROTO:
		name = word_name(words_nfproto, n);
		break;
	case KIND_PROTO:
		name = word_protocol_name(n, buf, sizeof(buf));
		break;
	case KIND_ICMP:
		name = word_name(words_icmp_type, n);
		break;
	case KIND_ICMPV6:
		name = word_name(words_icmpv6_type, n);
		break;
	case KIND_STATE:
		name = word_name(words_ct_state, n);
		break;
	default:
		break;
	}
	if (name != NULL)
		fputs(name, f);
	else
		fprintf(f, kind == KIND_MARK ? "0x%08" PRIx32 : "%" PRIu32, n);
}

static void
print_name(FILE *f, const struct rule_range *r)
{
	fprintf(f, "\"%.*s%s\"", (int)sizeof(r->lo.name), r->lo.name,
		memcmp(&r->lo, &r->hi, sizeof(r->lo)) != 0 ? "*" : "");
}

/* The length of the prefix that a range is; -1: it is none. */
static int
prefix_length(enum rule_field field, const struct rule_range *r)
{
	unsigned int bits = rule_field_info[field].family == TUPLE_IPV4 ? 32 : 128, len = 0, i;
	uint32_t span = r->lo.n ^ r->hi.n;

	if (field_is_number(field)) {
		if ((span & (span + 1)) != 0 || (r->lo.n & span) != 0)
			return -1;
		return span == 0 ? 32 : __builtin_clz(span);
	}
	while (len < bits && ((r->lo.addr.b[len / 8] ^ r->hi.addr.b[len / 8]) &
				     (0x80 >> len % 8)) == 0)
		len++;
	for (i = len; i < bits; i++)
		if ((r->lo.addr.b[i / 8] & (0x80 >> i % 8)) != 0 ||
			(r->hi.addr.b[i / 8] & (0x80 >> i % 8)) == 0)
			return -1;
	return (int)len;
}

static void
print_value(FILE *f, enum rule_field field, const union rule_value *v)
{
	const struct rule_field_info *info = &rule_field_info[field];

	if (info->kind == KIND_ADDR)
		print_addr(f, info->family, &v->addr);
	else
		print_number(f, (enum field_kind)info->kind, v->n);
}

/* Names of numbers are for single ones only: `6-17`, not `tcp-udp`. */
static void
print_range(FILE *f, enum rule_field field, const struct rule_range *r)
{
	uint8_t kind = rule_field_info[field].kind;

	if (field_is_number(field) && kind != KIND_MARK) {
		fprintf(f, "%" PRIu32 "-%" PRIu32, r->lo.n, r->hi.n);
		return;
	}
	print_value(f, field, &r->lo);
	fputc('-', f);
	print_value(f, field, &r->hi);
}

static void
print_element(FILE *f, enum rule_field field, const struct rule_range *r)
{
	uint8_t kind = rule_field_info[field].kind;
	int len;

	if (kind == KIND_NAME) {
		print_name(f, r);
		return;
	}
	if (field_compare(field, &r->lo, &r->hi) == 0) {
		print_value(f, field, &r->lo);
		return;
	}
	len = kind == KIND_ADDR || kind == KIND_MARK ? prefix_length(field, r) : -1;
	if (len < 0) {
		print_range(f, field, r);
		return;
	}
	print_value(f, field, &r->lo);
	fprintf(f, "/%d", len);
}

/* nft sorts plain names as numbers whose lowest byte is the first character. */
static int
compare_plain_names(const void *a, const void *b)
{
	const char *x = ((const struct rule_range *)a)->lo.name;
	const char *y = ((const struct rule_range *)b)->lo.name;
	int i;

	for (i = RULE_NAME_MAX; i >= 0; i--)
		if (x[i] != y[i])
			return (unsigned char)x[i] < (unsigned char)y[i] ? -1 : 1;
	return 0;
}

static bool
has_wildcard(const struct rule_match *m)
{
	uint32_t i;

	for (i = 0; i < m->n; i++)
		if (memcmp(&m->range[i].lo, &m->range[i].hi, sizeof(m->range[i].lo)) != 0)
			return true;
	return false;
}

static void
print_set(FILE *f, const struct rule_match *m)
{
	struct rule_range *sorted = NULL;
	const struct rule_range *r = m->range;
	uint32_t i;

	if (rule_field_info[m->field].kind == KIND_NAME && !has_wildcard(m)) {
		sorted = reallocarray(NULL, m->n, sizeof(*sorted));
		if (sorted != NULL) {
			memcpy(sorted, r, m->n * sizeof(*sorted));
			qsort(sorted, m->n, sizeof(*sorted), compare_plain_names);
			r = sorted;
		}
	}
	fputs("{ ", f);
	for (i = 0; i < m->n; i++) {
		fputs(i > 0 ? ", " : "", f);
		print_element(f, m->field, &r[i]);
	}
	fputs(" }", f);
	free(sorted);
}

static void
print_bits(FILE *f, const struct rule_word *words, uint32_t bits)
{
	const char *comma = "";

	for (; words->name != NULL; words++) {
		if ((bits & words->value) == 0)
			continue;
		fprintf(f, "%s%s", comma, words->name);
		comma = ",";
	}
}

/* An exact value: the name of a single flag, else a number. */
static void
print_exact(FILE *f, const struct rule_match *m)
{
	uint32_t v = m->range->lo.n;
	const char *name = word_name(m->field == RULE_TCP_FLAGS ? words_tcp_flag : words_ct_state,
		v);

	fputs(m->negate ? "!= " : m->field == RULE_TCP_FLAGS || name != NULL ? "== " : "", f);
	if (name != NULL)
		fputs(name, f);
	else
		fprintf(f, "0x%" PRIx32, v);
}

static void
print_flags_masked(FILE *f, const struct rule_match *m)
{
	const char *one = word_name(words_tcp_flag, m->mask);

	if (one != NULL) {
		fprintf(f, "& %s %s %s", one, m->negate ? "!=" : "==", one);
		return;
	}
	fputs(m->negate ? "!= " : "", f);
	print_bits(f, words_tcp_flag, m->range->lo.n);
	fputs(" / ", f);
	print_bits(f, words_tcp_flag, m->mask);
}

static void
print_masked(FILE *f, const struct rule_match *m)
{
	enum field_kind kind = (enum field_kind)rule_field_info[m->field].kind;
	uint32_t low = ~m->mask;

	if (kind == KIND_FLAGS) {
		print_flags_masked(f, m);
	} else if (kind == KIND_MARK && (low & (low + 1)) == 0) {
		fprintf(f, "%s0x%08" PRIx32 "/%d", m->negate ? "!= " : "", m->range->lo.n,
			__builtin_popcount(m->mask));
	} else {
		fputs("& ", f);
		print_number(f, kind, m->mask);
		fputs(m->negate ? " != " : " == ", f);
		print_number(f, kind, m->range->lo.n);
	}
}

void
print_match(FILE *f, const struct rule_match *m)
{
	const struct rule_field_info *info = &rule_field_info[m->field];
	const struct rule_word *words =
		info->kind == KIND_FLAGS ? words_tcp_flag : words_ct_state;

	fprintf(f, "%s%s%s ", info->word, info->second != NULL ? " " : "",
		info->second != NULL ? info->second : "");
	switch ((enum rule_form)m->form) {
	case RULE_FORM_BITS:
		print_bits(f, words, m->mask);
		return;
	case RULE_FORM_NO_BITS:
		fputs("! ", f);
		print_bits(f, words, m->mask);
		return;
	case RULE_FORM_EXACT:
		print_exact(f, m);
		return;
	case RULE_FORM_MASKED:
		print_masked(f, m);
		return;
	default:
		break;
	}
	fputs(m->negate ? "!= " : "", f);
	if (m->form == RULE_FORM_SET)
		print_set(f, m);
	else if (m->form == RULE_FORM_RANGE)
		print_range(f, m->field, m->range);
	else
		print_element(f, m->field, m->range);
}
