/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a rule of each chain, and as a file of rules. The text ends where its buffer ends. A
 * rule that is accepted is printed, and its listing must be a rule again, which after one more
 * round stays as it is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "rule_file.h"

static void
require(bool good, const char *wrong, const char *text)
{
	if (!good) {
		fprintf(stderr, "fuzz_rule: %s: %s\n", wrong, text);
		abort();
	}
}

static char *
again(const char *text, enum rule_chain chain)
{
	struct rule_error e;
	struct rule *r;
	char *printed;

	require(rule_parse(text, strlen(text), chain, &r, &e) == 0, "own listing refused", text);
	printed = rule_text(r, 0);
	require(printed != NULL, "no memory", text);
	rule_put(r);
	return printed;
}

static void
one_rule(const char *text, size_t len, enum rule_chain chain)
{
	struct rule_error e;
	struct rule *r;
	char *once, *twice, *thrice;

	if (rule_parse(text, len, chain, &r, &e) != 0) {
		require(e.column >= 1 && e.column <= len + 1 && e.end > e.column, "columns",
			e.err.msg);
		return;
	}
	once = rule_text(r, 0);
	rule_put(r);
	require(once != NULL, "no memory", "");
	twice = again(once, chain);
	thrice = again(twice, chain);
	require(strcmp(twice, thrice) == 0, "listing does not settle", twice);
	free(once);
	free(twice);
	free(thrice);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *exact = malloc(len > 0 ? len : 1);
	struct rule_file_error e;
	struct rule_list *l;
	int chain;

	require(exact != NULL, "no memory", "");
	if (len > 0)
		memcpy(exact, data, len);
	for (chain = 0; chain < RULE_CHAINS; chain++)
		one_rule(exact, len, (enum rule_chain)chain);
	if (rule_file_parse(exact, len, 0, &l, &e) == 0) {
		free(rule_file_text(l, "x"));
		rule_list_free(l);
	}
	free(exact);
	return 0;
}
