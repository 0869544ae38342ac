/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rule_file.h"
#include "rule_parse.h"

#define SETS_MAX 65536

bool
rule_file_has_set(const struct rule_file *file, const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < file->n_sets; i++)
		if (strlen(file->set[i]) == len && memcmp(file->set[i], name, len) == 0)
			return true;
	return false;
}

static void
skip_lines(struct rule_parse *p)
{
	while (p->x.type == TOK_LINE)
		rule_lex_next(&p->x);
}

/* Skips what is left of a line within braces. */
static void
skip_line(struct rule_parse *p)
{
	while (p->x.type != TOK_END && p->x.type != TOK_LINE && !rule_lex_is(&p->x, "}") &&
		p->x.type != TOK_BAD)
		rule_lex_next(&p->x);
}

static int
end_line(struct rule_parse *p)
{
	if (p->x.type == TOK_LINE || rule_lex_is(&p->x, "}"))
		return 0;
	return parse_unexpected(p, "the end of the line");
}

/* ---- set NAME { … } ---- */

static int
read_set_name(struct rule_parse *p, struct rule_file *file)
{
	void *grown;
	int ret;

	if (file->n_sets == SETS_MAX)
		return parse_refuse(p, "more than %d sets", SETS_MAX);
	grown = reallocarray(file->set, file->n_sets + 1, sizeof(file->set[0]));
	if (grown == NULL)
		return parse_no_memory(p);
	file->set = grown;
	ret = parse_name(p, "a set's name", sizeof(file->set[0]) - 1, file->set[file->n_sets]);
	if (ret == 0)
		file->n_sets++;
	return ret;
}

static int
read_set(struct rule_parse *p, struct rule_file *file)
{
	static const char *const lines[] = {"type", "size", "flags", "timeout", "gc-interval"};
	size_t from = p->x.at;
	bool dynamic = false;
	unsigned int i;
	int ret;

	rule_lex_next(&p->x);
	ret = read_set_name(p, file);
	ret = ret == 0 ? parse_expect(p, "{") : ret;
	for (skip_lines(p); ret == 0 && !parse_accept(p, "}"); skip_lines(p)) {
		for (i = 0; i < 5 && !rule_lex_is(&p->x, lines[i]); i++)
			;
		if (i == 5)
			return parse_unexpected(p, "\"type\", \"size\", \"flags\" or \"timeout\" "
				"of a dynamic set");
		rule_lex_next(&p->x);
		dynamic |= i == 2 && rule_lex_is(&p->x, "dynamic");
		skip_line(p);
		ret = end_line(p);
	}
	if (ret == 0 && !dynamic)
		return parse_refuse_at(p, from, from + 3, "a set here is for limits: \"flags "
			"dynamic\"; sets of a match stand in its rule");
	return ret;
}

/* ---- ct helper NAME { … } ---- */

static int
read_helper(struct rule_parse *p)
{
	char name[RULE_NAME_MAX + 1], type[RULE_NAME_MAX + 1];
	size_t at;
	int ret;

	rule_lex_next(&p->x);
	ret = parse_expect(p, "helper");
	ret = ret == 0 ? parse_name(p, "a helper's name", RULE_NAME_MAX, name) : ret;
	ret = ret == 0 ? parse_expect(p, "{") : ret;
	for (skip_lines(p); ret == 0 && !parse_accept(p, "}"); skip_lines(p)) {
		if (parse_accept(p, "type")) {
			at = p->x.at;
			ret = parse_name(p, "a helper's type", RULE_NAME_MAX, type);
			if (ret == 0 && strcmp(name, type) != 0)
				return parse_refuse_at(p, at, p->x.at,
					"a helper's name here is its type: \"%s\"", type);
		} else if (!rule_lex_is(&p->x, "l3proto")) {
			return parse_unexpected(p, "\"type\" or \"l3proto\"");
		}
		skip_line(p);
		ret = ret == 0 ? end_line(p) : ret;
	}
	return ret;
}

/* ---- chain NAME { … } ---- */

static int
read_priority(struct rule_parse *p, const struct rule_file_chain *info)
{
	bool minus;

	if (parse_accept(p, info->priority))
		return 0;
	minus = parse_accept(p, "-");
	if (p->x.type != TOK_NUMBER ||
		(int64_t)p->x.number != (minus ? -info->number : info->number))
		return parse_unexpected(p, info->priority);
	rule_lex_next(&p->x);
	return 0;
}

/* type T hook H priority P; */
static int
read_hook(struct rule_parse *p)
{
	const struct rule_file_chain *info = &rule_file_chains[p->chain];
	int ret = parse_expect(p, "type");

	ret = ret == 0 ? parse_expect(p, info->type) : ret;
	ret = ret == 0 ? parse_expect(p, "hook") : ret;
	ret = ret == 0 ? parse_expect(p, info->hook) : ret;
	ret = ret == 0 ? parse_expect(p, "priority") : ret;
	ret = ret == 0 ? read_priority(p, info) : ret;
	return ret == 0 ? end_line(p) : ret;
}

static int
read_policy(struct rule_parse *p, bool *drop)
{
	*drop = parse_accept(p, "drop");
	if (!*drop && !parse_accept(p, "accept"))
		return parse_unexpected(p, "\"accept\" or \"drop\"");
	return end_line(p);
}

/* The line of the present token. */
static uint32_t
line_now(const struct rule_parse *p, struct rule_file *file)
{
	for (; file->counted < p->x.at; file->counted++)
		file->lines += p->x.text[file->counted] == '\n';
	return file->lines + 1;
}

static int
read_rule(struct rule_parse *p, struct rule_file *file, struct rule_list *l)
{
	uint32_t line = line_now(p, file);
	struct rule *r;
	int ret = parse_rule(p, &r);

	if (ret != 0)
		return ret;
	r->line = line;
	if (rule_list_add(l, r) == 0)
		return 0;
	rule_put(r);
	return parse_no_memory(p);
}

static int
read_chain(struct rule_parse *p, struct rule_file *file, struct rule_list *l)
{
	char name[RULE_NAME_MAX + 1];
	size_t at;
	int ret, chain;

	rule_lex_next(&p->x);
	at = p->x.at;
	ret = parse_name(p, "a chain's name", RULE_NAME_MAX, name);
	if (ret != 0)
		return ret;
	chain = rule_chain_by_name(name);
	if (chain < 0)
		return parse_refuse_at(p, at, p->x.at,
			"there are the chains raw, prerouting, forward and postrouting");
	p->chain = (enum rule_chain)chain;
	if (l->chain[chain].n > 0)
		return parse_refuse_at(p, at, p->x.at, "this chain stands above already");
	ret = parse_expect(p, "{");
	skip_lines(p);
	ret = ret == 0 ? read_hook(p) : ret;
	for (skip_lines(p); ret == 0 && !parse_accept(p, "}"); skip_lines(p)) {
		if (parse_accept(p, "policy"))
			ret = read_policy(p, &l->chain[chain].drop);
		else
			ret = read_rule(p, file, l);
	}
	return ret;
}

/* ---- table inet NAME { … } ---- */

static int
read_table(struct rule_parse *p, struct rule_file *file, struct rule_list *l)
{
	char name[64];
	int ret;

	skip_lines(p);
	ret = parse_expect(p, "table");
	ret = ret == 0 ? parse_expect(p, "inet") : ret;
	ret = ret == 0 ? parse_name(p, "a table's name", sizeof(name) - 1, name) : ret;
	ret = ret == 0 ? parse_expect(p, "{") : ret;
	for (skip_lines(p); ret == 0 && !parse_accept(p, "}"); skip_lines(p)) {
		if (rule_lex_is(&p->x, "set"))
			ret = read_set(p, file);
		else if (rule_lex_is(&p->x, "ct"))
			ret = read_helper(p);
		else if (rule_lex_is(&p->x, "chain"))
			ret = read_chain(p, file, l);
		else
			ret = parse_unexpected(p, "\"chain\", \"set\", \"ct helper\" or \"}\"");
	}
	skip_lines(p);
	if (ret == 0 && p->x.type != TOK_END)
		return parse_unexpected(p, "the end of the file: it has one table");
	return ret;
}

/* From the place in the file to a line and the column in it. */
static void
locate(const char *text, size_t len, const struct rule_error *from, struct rule_file_error *e)
{
	size_t i, begin = 0;

	e->err = from->err;
	e->line = 1;
	for (i = 0; i < len && i + 1 < from->column; i++) {
		if (text[i] != '\n')
			continue;
		e->line++;
		begin = i + 1;
	}
	e->column = from->column - (unsigned int)begin;
}

int
rule_file_parse(const char *text, size_t len, uint64_t last_handle, struct rule_list **out,
	struct rule_file_error *e)
{
	struct rule_error why = {.column = 1};
	struct rule_file file = {0};
	struct rule_parse p = {.e = &why, .file = &file};
	struct rule_list *l = rule_list_new();
	int ret;

	rule_lex_init(&p.x, text, len < RULE_FILE_MAX ? len : 0, true);
	if (l == NULL)
		ret = parse_no_memory(&p);
	else if (len >= RULE_FILE_MAX)
		ret = parse_refuse(&p, "the file is longer than %u bytes", RULE_FILE_MAX);
	else
		ret = read_table(&p, &file, l);
	free(file.set);
	if (ret != 0) {
		rule_list_free(l);
		locate(text, len, &why, e);
		return ret;
	}
	rule_list_renumber(l, last_handle);
	*out = l;
	return 0;
}
