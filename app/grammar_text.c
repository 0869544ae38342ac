/* SPDX-License-Identifier: BSD-3-Clause */
/* The text side of the command language: splitting lines, usage texts, completion. */
#include "grammar.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
grammar_tokens_free(struct grammar_tokens *t)
{
	if (t == NULL)
		return;
	free(t->store);
	free(t);
}

/* The length of the UTF-8 sequence at s, or 0 when it is none (overlong, surrogate, cut). */
static unsigned int
utf8_len(const unsigned char *s)
{
	static const struct {
		unsigned char mask, lead, len;
		uint32_t min;
	} kind[] = {{0x80, 0, 1, 0}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800},
		{0xf8, 0xf0, 4, 0x10000}};
	unsigned int i, k;
	uint32_t c;

	for (k = 0; k < 4; k++)
		if ((s[0] & kind[k].mask) == kind[k].lead)
			break;
	if (k == 4)
		return 0;
	c = s[0] & (unsigned char)~kind[k].mask;
	for (i = 1; i < kind[k].len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < kind[k].min || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return kind[k].len;
}

static int
check_bytes(const char *line, struct sl_err *err)
{
	const unsigned char *s = (const unsigned char *)line;
	unsigned int len;

	if (strlen(line) > GRAMMAR_LINE_MAX)
		return sl_refuse(err, EINVAL, "line longer than %d bytes", GRAMMAR_LINE_MAX);
	for (; *s != '\0'; s += len) {
		len = utf8_len(s);
		if (len == 0)
			return sl_refuse(err, EINVAL, "byte 0x%02x is not UTF-8 text", *s);
		if (iscntrl(*s) && *s != '\t')
			return sl_refuse(err, EINVAL, "control character 0x%02x", *s);
	}
	return 0;
}

/* One token from *in to *out; quotes of both kinds may be anywhere in it. */
static int
take_token(const char **in, char **out, bool lenient, struct grammar_token *t, struct sl_err *err)
{
	const char *s = *in;
	char *d = *out, quote = '\0';

	*t = (struct grammar_token){.raw = s, .text = d};
	for (; *s != '\0' && (quote != '\0' || !isspace((unsigned char)*s)); s++) {
		if (quote == '\0' && (*s == '"' || *s == '\'')) {
			quote = *s;
			t->quoted = true;
		} else if (*s == quote) {
			quote = '\0';
		} else {
			*d++ = *s;
		}
	}
	if (quote != '\0' && !lenient)
		return sl_refuse(err, EINVAL, "quote %c has no end", quote);
	*d++ = '\0';
	*in = s;
	*out = d;
	return 0;
}

int
grammar_split(const char *line, bool lenient, struct grammar_tokens **out, struct sl_err *err)
{
	struct grammar_tokens *tok;
	char *store;
	int ret;

	*out = NULL;
	ret = check_bytes(line, err);
	if (ret != 0)
		return ret;
	/* A token needs one byte and a space, and its copy a byte for the terminator. */
	tok = calloc(1, sizeof(*tok) + (strlen(line) / 2 + 1) * sizeof(tok->t[0]));
	store = malloc(strlen(line) + 2);
	if (tok == NULL || store == NULL) {
		free(tok);
		free(store);
		return sl_refuse(err, ENOMEM, "out of memory");
	}
	tok->store = store;
	*out = tok;
	for (;;) {
		line += strspn(line, " \t");
		if (*line == '\0' || *line == '#')
			return 0;
		ret = take_token(&line, &store, lenient, &tok->t[tok->n], err);
		if (ret != 0)
			return ret;
		tok->n++;
	}
}

/* ---- usage ---- */

static void
param_usage(const struct grammar_param *p, FILE *f)
{
	const char *more = (p->flags & GRAMMAR_LIST) != 0 ? "…" : "";
	bool opt = (p->flags & GRAMMAR_OPT) != 0;

	fputs(opt ? " [" : " ", f);
	if ((p->flags & GRAMMAR_POS) != 0)
		fprintf(f, "%s%s", p->meta, more);
	else if (p->type == GRAMMAR_FLAG)
		fputs(p->name, f);
	else
		fprintf(f, "%s %s", p->name, p->meta);
	if (opt)
		fputc(']', f);
}

char *
grammar_usage(const struct grammar_command *c, char *buf, size_t len)
{
	const struct grammar_param *p;
	unsigned int form, all = 0;
	FILE *f;

	buf[0] = '\0';
	f = fmemopen(buf, len, "w");
	if (f == NULL)
		return buf;
	for (p = c->params; p->name != NULL; p++)
		all |= p->forms;
	for (form = 1; form <= (all | 1); form <<= 1) {
		fputs(c->words, f);
		for (p = c->params; p->name != NULL; p++)
			if ((p->flags & GRAMMAR_HIDDEN) == 0 &&
				(p->forms == 0 || (p->forms & form) != 0))
				param_usage(p, f);
		fputc('\n', f);
	}
	fclose(f);
	buf[len - 1] = '\0';
	return buf;
}

/* ---- completion ---- */

struct complete {
	const struct grammar_tokens *tok;
	unsigned int n; /* tokens before the one being typed */
	const char *part;
	void (*each)(void *arg, const char *word);
	void *arg;
};

static void
offer(const struct complete *c, const char *word)
{
	if (strncmp(word, c->part, strlen(c->part)) == 0)
		c->each(c->arg, word);
}

/* The word of each command that follows the complete tokens, each once. */
static void
complete_words(const struct complete *c)
{
	const struct grammar_command *cmd;
	char last[64] = "", word[64];
	const char *w;
	unsigned int i;
	size_t len;

	for (cmd = grammar_table; cmd->words != NULL; cmd++) {
		w = cmd->words;
		for (i = 0; i < c->n && *w != '\0'; i++, w += len + (w[len] == ' ')) {
			len = strcspn(w, " ");
			if (strlen(c->tok->t[i].text) != len ||
				memcmp(c->tok->t[i].text, w, len) != 0)
				break;
		}
		if (i < c->n || *w == '\0')
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(w, " "), w);
		if (strcmp(word, last) != 0)
			offer(c, word);
		snprintf(last, sizeof(last), "%s", word);
	}
}

static bool
keyword_given(const struct complete *c, unsigned int first, const char *name)
{
	unsigned int i;

	for (i = first; i < c->n; i++)
		if (strcmp(c->tok->t[i].text, name) == 0)
			return true;
	return false;
}

static void
complete_params(const struct complete *c, const struct grammar_command *cmd, unsigned int first)
{
	const struct grammar_param *p, *before = NULL;
	unsigned int i;

	if (c->n > first)
		before = grammar_keyword(cmd, c->tok->t[c->n - 1].text);
	if (before != NULL && before->type != GRAMMAR_FLAG) {
		for (i = 0; before->type == GRAMMAR_WORD && before->words[i] != NULL; i++)
			offer(c, before->words[i]);
		return;
	}
	for (p = cmd->params; p->name != NULL; p++) {
		if ((p->flags & (GRAMMAR_UNBUILT | GRAMMAR_HIDDEN)) != 0)
			continue;
		if ((p->flags & GRAMMAR_POS) == 0 && !keyword_given(c, first, p->name))
			offer(c, p->name);
		for (i = 0; (p->flags & GRAMMAR_POS) != 0 && p->type == GRAMMAR_WORD &&
			    p->words[i] != NULL;
			i++)
			offer(c, p->words[i]);
	}
}

void
grammar_complete(const char *line, void (*each)(void *arg, const char *word), void *arg)
{
	const struct grammar_command *cmd;
	struct grammar_tokens *tok;
	struct complete c = {.each = each, .arg = arg};
	size_t len = strlen(line);
	unsigned int first;

	if (grammar_split(line, true, &tok, NULL) != 0) {
		grammar_tokens_free(tok);
		return;
	}
	c.tok = tok;
	c.n = tok->n;
	c.part = "";
	if (c.n > 0 && !isspace((unsigned char)line[len - 1]))
		c.part = tok->t[--c.n].text;
	complete_words(&c);
	tok->n = c.n;
	cmd = grammar_match(tok, &first);
	if (cmd != NULL)
		complete_params(&c, cmd, first);
	grammar_tokens_free(tok);
}
