/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of a namespace's rules, and its form as an nft file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rule_file.h"

static void
add(struct rule_list *l, const char *chain, const char *text)
{
	struct rule_error e;
	struct rule *r;

	assert_int_equal(rule_parse(text, strlen(text), (enum rule_chain)rule_chain_by_name(chain),
				 &r, &e), 0);
	assert_int_equal(rule_list_add(l, r), 0);
}

static struct rule_list *
some_rules(void)
{
	struct rule_list *l = rule_list_new();

	assert_non_null(l);
	add(l, "raw", "iifname \"lan*\" notrack");
	add(l, "raw", "ct original zone set 5");
	add(l, "prerouting", "tcp dport 80 dnat ip to 10.0.0.1:8080");
	add(l, "forward", "ct state established,related counter packets 5 bytes 6 accept");
	add(l, "forward", "ct count over 5 by ip saddr and 255.255.255.0 drop");
	add(l, "forward", "limit rate over 5/second by ip6 daddr drop");
	add(l, "forward", "ct helper set \"ftp\"");
	add(l, "postrouting", "masquerade");
	l->chain[RULE_FORWARD].drop = true;
	return l;
}

/* Written, read and written again, it is the same; handles go on behind those given. */
static void
test_round_trip(void **state)
{
	struct rule_list *l = some_rules(), *back;
	char *once = rule_file_text(l, "x"), *twice;
	struct rule_file_error e;
	(void)state;

	assert_non_null(once);
	assert_non_null(strstr(once, "add @by0 { ip saddr & 255.255.255.0 ct count over 5 } drop"));
	assert_non_null(strstr(once, "update @by1 { ip6 daddr limit rate over 5/second } drop"));
	assert_int_equal(rule_file_parse(once, strlen(once), l->last_handle, &back, &e), 0);
	assert_int_equal(back->chain[RULE_RAW].rule[0]->handle, 9);
	assert_int_equal(back->last_handle, 16);
	assert_true(back->chain[RULE_FORWARD].drop);
	twice = rule_file_text(back, "x");
	assert_string_equal(once, twice);
	free(once);
	free(twice);
	rule_list_free(l);
	rule_list_free(back);
}

#define TABLE(body)   "table inet x {\n" body "}\n"
#define FORWARD(body) TABLE("\tchain forward {\n\t\ttype filter hook forward priority filter;" \
	" policy drop;\n" body "\t}\n")

static void
test_read(void **state)
{
	static const char *const good[] = {
		TABLE(""), FORWARD(""), FORWARD("\t\taccept # handle 7\n"), FORWARD("accept; \n"),
		TABLE("chain raw { type filter hook prerouting priority -300\n accept }\n"),
		"# comment\n\n" FORWARD("\t\tip saddr {\t1.2.3.4, 5.6.7.8 } accept\n") "\n# end",
	};
	struct rule_file_error e;
	struct rule_list *l;
	size_t i;
	(void)state;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (rule_file_parse(good[i], strlen(good[i]), 0, &l, &e) != 0)
			fail_msg("%s: line %u, column %u: %s", good[i], e.line, e.column,
				e.err.msg);
		rule_list_free(l);
	}
}

static void
test_refused(void **state)
{
	static const struct {
		const char *text;
		unsigned int line, column;
	} bad[] = {
		{"", 1, 1}, {"table ip x {\n}\n", 1, 7}, {"table inet x {\n", 2, 1},
		{TABLE("") TABLE(""), 3, 1}, {TABLE("chain input {\n}\n"), 2, 7},
		{TABLE("chain forward {\n accept\n}\n"), 3, 2},
		{TABLE("chain forward {\n type nat hook forward priority 0\n}\n"), 3, 7},
		{TABLE("chain forward {\n type filter hook forward priority 1\n}\n"), 3, 36},
		{FORWARD("\t\ttcp dport 99999 accept\n"), 4, 13},
		{FORWARD("\t\taccept\n\t\tadd @x { ip saddr ct count 1 } accept\n"), 5, 8},
		{FORWARD("\t\tpolicy maybe\n"), 4, 10},
		{TABLE("set x {\n type ipv4_addr\n}\n"), 2, 1},
		{TABLE("set x {\n elements = { 1.2.3.4 }\n}\n"), 3, 2},
		{TABLE("ct helper a {\n type \"ftp\" protocol tcp\n}\n"), 3, 7},
	};
	struct rule_file_error e;
	struct rule_list *l;
	size_t i;
	(void)state;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_not_equal(
			rule_file_parse(bad[i].text, strlen(bad[i].text), 0, &l, &e), 0);
		if (e.line != bad[i].line || e.column != bad[i].column)
			fail_msg("%s: line %u, column %u: %s", bad[i].text, e.line, e.column,
				e.err.msg);
	}
}

static void
test_list(void **state)
{
	struct rule_list *l = some_rules(), *copy = rule_list_copy(l);
	(void)state;

	assert_false(rule_list_empty(l));
	assert_int_equal(rule_list_delete(l, 4), 0);
	assert_int_not_equal(rule_list_delete(l, 4), 0);
	assert_null(rule_list_find(l, 4));
	assert_non_null(rule_list_find(copy, 4));
	assert_int_equal(rule_list_find(l, 5)->chain, RULE_FORWARD);
	add(l, "raw", "accept");
	assert_int_equal(rule_list_find(l, 9)->chain, RULE_RAW);
	rule_list_flush(l, RULE_FORWARD);
	assert_int_equal(l->chain[RULE_FORWARD].n, 0);
	assert_int_equal(l->chain[RULE_RAW].n, 3);
	rule_list_flush(l, RULE_CHAINS);
	assert_false(rule_list_empty(l)); /* for its policy */
	l->chain[RULE_FORWARD].drop = false;
	assert_true(rule_list_empty(l));
	rule_list_free(l);
	assert_int_equal(copy->chain[RULE_FORWARD].n, 4);
	rule_list_free(copy);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
