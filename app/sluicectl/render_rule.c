/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules, as `nft -a list table` prints them. */
#include "render.h"

#include <stdbool.h>
#include <string.h>

/* Items come one by one, those of a chain together; these say what is open. */
static bool in_table, in_chain;

static void
begin_chain(const json_t *c, FILE *out)
{
	if (!in_table)
		fprintf(out, "table inet %s {\n", render_string(c, "netns"));
	if (in_chain)
		fputs("\t}\n\n", out);
	in_table = in_chain = true;
	fprintf(out, "\tchain %s {\n\t\ttype %s hook %s priority %s; policy %s;\n",
		render_string(c, "chain"), render_string(c, "type"), render_string(c, "hook"),
		render_string(c, "priority"), render_string(c, "policy"));
}

void
render_rule(const json_t *item, FILE *out)
{
	if (json_object_get(item, "policy") != NULL)
		begin_chain(item, out);
	else
		fprintf(out, "\t\t%s # handle %" JSON_INTEGER_FORMAT "\n",
			render_string(item, "rule"),
			json_integer_value(json_object_get(item, "handle")));
}

void
render_rule_end(const json_t *result, FILE *out)
{
	(void)result;
	if (in_chain)
		fputs("\t}\n", out);
	if (in_table)
		fputs("}\n", out);
	in_table = in_chain = false;
}

void
render_line(const json_t *item, FILE *out)
{
	fprintf(out, "%s\n", render_string(item, "line"));
}

/* Characters of the first n bytes of UTF-8 text. */
static size_t
characters(const char *s, size_t n)
{
	size_t i, count = 0;

	for (i = 0; i < n && s[i] != '\0'; i++)
		count += ((unsigned char)s[i] & 0xc0) != 0x80;
	return count;
}

void
render_caret(const char *rule, const char *message, FILE *out)
{
	unsigned int from, to;
	size_t len, before, under;

	if (rule == NULL || sscanf(message, "rule: column %u-%u:", &from, &to) != 2)
		return;
	len = strlen(rule);
	if (from < 1 || to < from || from > len + 1 || len > 1000)
		return;
	before = characters(rule, from - 1);
	under = to <= len ? characters(rule + from - 1, to - from + 1) : 1;
	fprintf(out, "    %s\n    %*s", rule, (int)before, "");
	while (under-- > 0)
		fputc('^', out);
	fputc('\n', out);
}
