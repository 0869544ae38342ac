/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rule text through the parser and the printer, for comparison with nft:
 *
 *   rule_lines < LINES     a line is CHAIN, a tab and the rule
 *
 * prints for each line `ok`, a tab and the rule's text, or `bad`, and with tabs between the first
 * and last column and the message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

static int
show(const char *chain_name, const char *text, size_t len)
{
	int chain = rule_chain_by_name(chain_name);
	struct rule_error e;
	struct rule *r;
	char *printed;

	if (chain < 0) {
		fprintf(stderr, "rule_lines: no chain %s\n", chain_name);
		return 2;
	}
	if (rule_parse(text, len, (enum rule_chain)chain, &r, &e) != 0) {
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

int
main(void)
{
	char *line = NULL, *tab;
	size_t room = 0;
	ssize_t len;
	int ret = 0;

	while (ret == 0 && (len = getline(&line, &room, stdin)) > 0) {
		line[len - 1] = '\0';
		tab = strchr(line, '\t');
		if (tab == NULL)
			continue;
		*tab++ = '\0';
		ret = show(line, tab, strlen(tab));
	}
	free(line);
	return ret;
}
