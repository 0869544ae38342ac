/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rule text against tables: good.txt and short.txt (accepted, and how it is listed), bad.txt
 * (refused, and where). The oracle ring holds the same tables against nft.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules.h"

#define FIELDS_MAX 5

static const char *tables; /* directory */

/* Calls fn for the fields of each line; a missing one is NULL. */
static unsigned int
each_line(const char *name, void (*fn)(char *field[FIELDS_MAX]))
{
	char path[4096], *line = NULL, *field[FIELDS_MAX], *next;
	unsigned int lines = 0, n;
	size_t room = 0;
	ssize_t len;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", tables, name);
	f = fopen(path, "r");
	assert_non_null(f);
	while ((len = getline(&line, &room, f)) > 0) {
		if (line[0] == '#')
			continue;
		line[len - 1] = '\0';
		memset(field, 0, sizeof(field));
		for (n = 0, next = line; n < FIELDS_MAX && next != NULL; n++)
			field[n] = strsep(&next, "\t");
		fn(field);
		lines++;
	}
	free(line);
	fclose(f);
	return lines;
}

/* The listing of a rule, to be freed; fails the test when it is refused. */
static char *
listed(const char *chain, const char *text)
{
	struct rule_error e;
	struct rule *r;
	char *printed;

	if (rule_parse(text, strlen(text), (enum rule_chain)rule_chain_by_name(chain), &r, &e) != 0)
		fail_msg("%s: %s: column %u: %s", chain, text, e.column, e.err.msg);
	printed = rule_text(r, 0);
	assert_non_null(printed);
	rule_put(r);
	return printed;
}

/* What is listed is itself a rule, and its listing stays as it is (nft's own form of a set that was
 * joined to one element, or of a match that stands twice, takes one more round). */
static void
good_line(char *field[FIELDS_MAX])
{
	const char *expected = field[2] != NULL ? field[2] : field[1];
	char *once = listed(field[0], field[1]), *twice, *thrice;

	assert_string_equal(once, expected);
	twice = listed(field[0], once);
	thrice = listed(field[0], twice);
	assert_string_equal(twice, thrice);
	free(once);
	free(twice);
	free(thrice);
}

static void
test_good(void **state)
{
	(void)state;
	assert_true(each_line("good.txt", good_line) > 500);
	assert_true(each_line("short.txt", good_line) > 10);
}

static void
bad_line(char *field[FIELDS_MAX])
{
	char columns[32];
	struct rule_error e;
	struct rule *r;

	if (rule_parse(field[3], strlen(field[3]), (enum rule_chain)rule_chain_by_name(field[0]),
		    &r, &e) == 0)
		fail_msg("accepted: %s: %s", field[0], field[3]);
	snprintf(columns, sizeof(columns), "%u-%u", e.column, e.end - 1);
	if (strcmp(columns, field[1]) != 0)
		fail_msg("%s: columns %s, not %s", field[3], columns, field[1]);
	assert_string_equal(e.err.msg, field[4]);
}

static void
test_bad(void **state)
{
	(void)state;
	assert_true(each_line("bad.txt", bad_line) > 250);
}

/* ---- odd input ---- */

static int
parse_bytes(const char *text, size_t len, struct rule_error *e)
{
	struct rule *r = NULL;
	int ret = rule_parse(text, len, RULE_FORWARD, &r, e);

	rule_put(r);
	return ret;
}

static void
test_bytes(void **state)
{
	static const char nul[] = "ip saddr 1.2.3.4\0 accept";
	struct rule_error e;
	char junk[256];
	unsigned int i;
	(void)state;

	assert_int_equal(parse_bytes("accept foo", 6, &e), 0); /* no terminator needed */
	assert_int_not_equal(parse_bytes(nul, sizeof(nul) - 1, &e), 0);
	assert_int_equal(e.column, 17);
	assert_int_not_equal(parse_bytes("\xff\xfe", 2, &e), 0);
	assert_int_equal(e.column, 1);
	assert_int_not_equal(parse_bytes("a\nb", 3, &e), 0);
	for (i = 0; i < 256; i++)
		junk[i] = (char)i;
	for (i = 0; i < 256; i++)
		assert_int_not_equal(parse_bytes(junk + i, 256 - i, &e), 0);
}

/* `ip6 saddr { … } accept` with n elements, backwards, so that sorting has work. */
static char *
big_set(unsigned int n, size_t *len)
{
	char *text = NULL;
	unsigned int i;
	FILE *f = open_memstream(&text, len);

	assert_non_null(f);
	fputs("ip6 saddr {", f);
	for (i = n; i > 0; i--)
		fprintf(f, "%s2001:db8::%x:%x", i < n ? "," : "", 2 * i >> 16, 2 * i & 0xffff);
	fputs("} accept", f);
	fclose(f);
	return text;
}

static void
test_big_sets(void **state)
{
	struct rule_error e;
	struct rule *r;
	size_t len;
	char *text;
	(void)state;

	text = big_set(RULE_SET_MAX, &len);
	assert_int_equal(rule_parse(text, len, RULE_FORWARD, &r, &e), 0);
	assert_int_equal(r->item[0].match.n, RULE_SET_MAX);
	assert_int_equal(r->item[0].match.range[0].lo.addr.b[15], 2);
	rule_put(r);
	free(text);
	text = big_set(RULE_SET_MAX + 1, &len);
	assert_int_not_equal(rule_parse(text, len, RULE_FORWARD, &r, &e), 0);
	assert_string_equal(e.err.msg, "a set has at most 65536 elements");
	free(text);
}

static void
test_long_rules(void **state)
{
	size_t len = RULE_TEXT_MAX + 1, i;
	char *text = malloc(len);
	struct rule_error e;
	(void)state;

	assert_non_null(text);
	memset(text, ' ', len);
	assert_int_not_equal(parse_bytes(text, len, &e), 0);
	assert_int_not_equal(parse_bytes(text, len - 1, &e), 0);
	assert_string_equal(e.err.msg, "the rule is empty");
	memset(text, 'a', len - 1);
	assert_int_not_equal(parse_bytes(text, len - 1, &e), 0);
	for (i = 0; i < RULE_ITEMS_MAX + 1; i++)
		memcpy(text + 8 * i, "counter ", 8);
	assert_int_equal(parse_bytes(text, 8 * RULE_ITEMS_MAX, &e), 0);
	assert_int_not_equal(parse_bytes(text, 8 * (RULE_ITEMS_MAX + 1), &e), 0);
	assert_string_equal(e.err.msg, "a rule has at most 128 matches and statements");
	memset(text, '{', len - 1);
	assert_int_not_equal(parse_bytes(text, len - 1, &e), 0);
	free(text);
}

/* ---- what the parser makes of text ---- */

static struct rule *
made(const char *text)
{
	struct rule_error e;
	struct rule *r;

	assert_int_equal(rule_parse(text, strlen(text), RULE_FORWARD, &r, &e), 0);
	return r;
}

static void
check_match(const struct rule *r, uint32_t mask, uint32_t value, bool negate)
{
	const struct rule_match *m = &r->item[0].match;

	assert_int_equal(r->item[0].type, RULE_MATCH);
	assert_int_equal(m->mask, mask);
	assert_int_equal(m->n, 1);
	assert_int_equal(m->range[0].lo.n, value);
	assert_int_equal(m->range[0].hi.n, value);
	assert_int_equal(m->negate, negate);
}

/* Every form comes down to ((field & mask) in ranges) != negate. */
static void
test_bits(void **state)
{
	static const struct {
		const char *text;
		uint32_t mask, value;
		bool negate;
	} cases[] = {
		{"tcp flags syn", 0x02, 0, true},
		{"tcp flags syn,ack", 0x12, 0, true},
		{"tcp flags ! syn", 0x02, 0, false},
		{"tcp flags == syn", UINT32_MAX, 0x02, false},
		{"tcp flags != syn", UINT32_MAX, 0x02, true},
		{"tcp flags syn / fin,syn,rst,ack", 0x17, 0x02, false},
		{"tcp flags != syn / syn,ack", 0x12, 0x02, true},
		{"tcp flags & (syn | ack) == 0", 0x12, 0, false},
		{"tcp flags & 0xff == syn", UINT32_MAX, 0x02, false},
		{"ct state new,invalid", RULE_STATE_NEW | RULE_STATE_INVALID, 0, true},
		{"ct state ! new", RULE_STATE_NEW, 0, false},
		{"ct state != new", UINT32_MAX, RULE_STATE_NEW, true},
		{"ct mark and 0xff == 1", 0xff, 1, false},
		{"ct mark 0x01000000/8", 0xff000000, 0x01000000, false},
		{"ct zone != 7", UINT32_MAX, 7, true},
	};
	struct rule *r;
	size_t i;
	(void)state;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		r = made(cases[i].text);
		check_match(r, cases[i].mask, cases[i].value, cases[i].negate);
		rule_put(r);
	}
}

static void
test_values(void **state)
{
	struct rule *r = made("ip saddr { 10.1.0.0/16, 10.0.0.0/16, 10.0.0.9 } accept");
	const struct rule_match *m = &r->item[0].match;
	(void)state;

	assert_int_equal(m->n, 1);
	assert_memory_equal(m->range[0].lo.addr.b, "\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_memory_equal(m->range[0].hi.addr.b, "\x0a\1\xff\xff\0\0\0\0\0\0\0\0\0\0\0", 16);
	rule_put(r);
	r = made("iifname \"lan*\"");
	m = &r->item[0].match;
	assert_memory_equal(m->range[0].lo.name, "lan\0\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_memory_equal(m->range[0].hi.name,
		"lan\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16);
	rule_put(r);
	r = made("counter log prefix \"x\" counter packets 7 bytes 8");
	assert_int_equal(r->n_counters, 2);
	assert_int_equal(r->item[2].counter.index, 1);
	assert_int_equal(r->item[2].counter.packets, 7);
	rule_put(r);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_big_sets),
		cmocka_unit_test(test_long_rules),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_values),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY-OF-TABLES\n", argv[0]);
		return 2;
	}
	tables = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
