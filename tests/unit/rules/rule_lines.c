/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rule text through the parser and the printer, for comparison with nft:
 *
 *   rule_lines < LINES     a line is CHAIN, a tab and the rule
 *
 * prints for each line `ok`, a tab and the rule's text, or `bad`, and with tabs between the first
 * and last column and the message. With `export` it prints the rules as an nft file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule_file.h"

static int
show(enum rule_chain chain, const char *text, size_t len)
{
	struct rule_error e;
	struct rule *r;
	char *printed;

	if (rule_parse(text, len, chain, &r, &e) != 0) {
		printf("bad\t%u\t%u\t%s\n", e.column, e.end - 1, e.err.msg);
		return 0;
	}
	printed = rule_text(r, 0);
	rule_put(r);
	if (printed == NULL)
		return 1;
	printf("ok\t%s\n", printed);
	free(printed);
	return 0;
}

static int
collect(struct rule_list *l, enum rule_chain chain, const char *text, size_t len)
{
	struct rule_error e;
	struct rule *r;

	if (rule_parse(text, len, chain, &r, &e) != 0) {
		fprintf(stderr, "rule_lines: %s: %s\n", text, e.err.msg);
		return 1;
	}
	return rule_list_add(l, r) == 0 ? 0 : 1;
}

static int
print_export(const struct rule_list *l)
{
	char *text = rule_file_text(l, "sluice");

	if (text == NULL)
		return 1;
	fputs(text, stdout);
	free(text);
	return 0;
}

int
main(int argc, char **argv)
{
	bool export = argc == 2 && strcmp(argv[1], "export") == 0;
	struct rule_list *l = rule_list_new();
	char *line = NULL, *tab;
	size_t room = 0;
	ssize_t len;
	int ret = l == NULL, chain;

	while (ret == 0 && (len = getline(&line, &room, stdin)) > 0) {
		line[len - 1] = '\0';
		tab = strchr(line, '\t');
		if (tab == NULL)
			continue;
		*tab++ = '\0';
		chain = rule_chain_by_name(line);
		if (chain < 0)
			ret = 2;
		else if (export)
			ret = collect(l, (enum rule_chain)chain, tab, strlen(tab));
		else
			ret = show((enum rule_chain)chain, tab, strlen(tab));
	}
	if (ret == 0 && export)
		ret = print_export(l);
	rule_list_free(l);
	free(line);
	return ret;
}
