/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules, as `nft -a list table` prints them. */
#include "render.h"

#include <ctype.h>
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

static json_int_t
integer_of(const json_t *object, const char *field)
{
	return json_integer_value(json_object_get(object, field));
}

/* " NAME=n" when the field is there. */
static void
log_number(const json_t *p, const char *field, const char *name, FILE *out)
{
	if (json_object_get(p, field) != NULL)
		fprintf(out, " %s=%" JSON_INTEGER_FORMAT, name, integer_of(p, field));
}

static void
log_protocol(const json_t *p, FILE *out)
{
	const char *name = render_string(p, "proto");

	fputs(" PROTO=", out);
	if (strcmp(name, "icmpv6") == 0)
		fputs("ICMPv6", out);
	else if (strcmp(name, "unknown") == 0)
		fprintf(out, "%" JSON_INTEGER_FORMAT, integer_of(p, "protonum"));
	else
		for (; *name != '\0'; name++)
			fputc(toupper((unsigned char)*name), out);
}

static void
log_ip(const json_t *p, FILE *out)
{
	bool v6 = strcmp(render_string(p, "family"), "ipv6") == 0;
	const json_t *flag;
	size_t i;

	fprintf(out, " SRC=%s DST=%s", render_string(p, "src"), render_string(p, "dst"));
	log_number(p, "len", "LEN", out);
	if (v6)
		log_number(p, "tos", "TC", out);
	else
		fprintf(out, " TOS=0x%02X", (unsigned int)integer_of(p, "tos"));
	log_number(p, "ttl", v6 ? "HOPLIMIT" : "TTL", out);
	log_number(p, "ip-id", "ID", out);
	if (json_is_true(json_object_get(p, "df")))
		fputs(" DF", out);
	log_protocol(p, out);
	log_number(p, "sport", "SPT", out);
	log_number(p, "dport", "DPT", out);
	log_number(p, "window", "WINDOW", out);
	json_array_foreach(json_object_get(p, "flags"), i, flag)
		fprintf(out, " %s", json_string_value(flag));
	log_number(p, "type", "TYPE", out);
	log_number(p, "code", "CODE", out);
}

void
render_log(const json_t *p, FILE *out)
{
	if (json_object_get(p, "lost") != NULL) {
		fprintf(out, "rule events: %" JSON_INTEGER_FORMAT
			     " lost: no room in the ring\n", integer_of(p, "lost"));
		return;
	}
	fprintf(out, "netns=%s %sIN=%s OUT=%s", render_string(p, "netns"),
		render_string(p, "prefix"), render_string(p, "in"), render_string(p, "out"));
	if (json_object_get(p, "family") != NULL)
		log_ip(p, out);
	else
		fprintf(out, " MACPROTO=%04x", (unsigned int)integer_of(p, "ethertype"));
	if (integer_of(p, "mark") != 0)
		fprintf(out, " MARK=0x%x", (unsigned int)integer_of(p, "mark"));
	fputc('\n', out);
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
