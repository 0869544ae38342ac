/* SPDX-License-Identifier: BSD-3-Clause */
#include "grammar.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LEN 63

const char *
grammar_quote(const char *s, char *buf, size_t len)
{
	size_t i;

	for (i = 0; i + 4 < len && i < 40 && s[i] != '\0'; i++)
		buf[i] = isprint((unsigned char)s[i]) && s[i] != '"' ? s[i] : '?';
	snprintf(buf + i, len - i, "%s", s[i] != '\0' ? "..." : "");
	return buf;
}

const char *
grammar_method(const struct grammar_command *c, char *buf, size_t len)
{
	char *p;

	snprintf(buf, len, "%s", c->words);
	for (p = buf; *p != '\0'; p++)
		*p = *p == ' ' ? '.' : *p;
	return buf;
}

const struct grammar_command *
grammar_find(const char *method)
{
	const struct grammar_command *c;
	char name[64];

	for (c = grammar_table; c->words != NULL; c++)
		if (strcmp(grammar_method(c, name, sizeof(name)), method) == 0)
			return c;
	return NULL;
}

const struct grammar_param *
grammar_keyword(const struct grammar_command *c, const char *word)
{
	const struct grammar_param *p;

	for (p = c->params; p->name != NULL; p++)
		if ((p->flags & (GRAMMAR_POS | GRAMMAR_HIDDEN)) == 0 && strcmp(p->name, word) == 0)
			return p;
	return NULL;
}

/* Whether one of the words of `words` (separated by a space) is `word`. */
static bool
has_word(const char *words, const char *word)
{
	size_t len = strlen(word), n;

	for (; *words != '\0'; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		if (n == len && memcmp(words, word, n) == 0)
			return true;
	}
	return false;
}

bool
grammar_is_word(const char *word)
{
	const struct grammar_command *c;

	for (c = grammar_table; c->words != NULL; c++)
		if (has_word(c->words, word) || grammar_keyword(c, word) != NULL)
			return true;
	return false;
}

bool
grammar_is_name(const char *s, size_t len)
{
	size_t i;

	if (len == 0 || len > NAME_MAX_LEN)
		return false;
	for (i = 0; i < len; i++)
		if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-",
			    s[i]) == NULL ||
			s[i] == '\0')
			return false;
	return true;
}

/* ---- text to parameters ---- */

struct parse {
	const struct grammar_command *cmd;
	const struct grammar_tokens *tok;
	unsigned int at;
	json_t *params;
	struct sl_err *err;
};

static json_t *
text_value(struct parse *s, const struct grammar_param *p, const char *text)
{
	unsigned long long v;
	char *end, q[48];

	if (p->type == GRAMMAR_FILE)
		return grammar_load(p->name, text, s->err);
	if (p->type != GRAMMAR_UINT)
		return json_string(text);
	errno = 0;
	v = strtoull(text, &end, 0);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || v > INT64_MAX) {
		sl_refuse(s->err, EINVAL, "%s: \"%s\" is no number of %" PRIu32 "-%" PRIu32,
			p->name, grammar_quote(text, q, sizeof(q)), p->min, p->max);
		return NULL;
	}
	return json_integer((json_int_t)v);
}

/* KEY[=VALUE], and KEY = VALUE as sysctl.conf has it. */
static int
take_setting(struct parse *s, const struct grammar_param *p)
{
	char *text = s->tok->t[s->at++].text, *value = strchr(text, '=');
	const struct grammar_tokens *tok = s->tok;

	if (value != NULL)
		*value++ = '\0';
	else if (s->at < tok->n && tok->t[s->at].text[0] == '=')
		value = tok->t[s->at++].text + 1;
	if (value != NULL && *value == '\0' && s->at < tok->n)
		value = tok->t[s->at++].text;
	if (json_object_set_new(s->params, p->name, json_string(text)) != 0 ||
		(value != NULL &&
			json_object_set_new(s->params, p[1].name, json_string(value)) != 0))
		return sl_refuse(s->err, ENOMEM, "out of memory");
	return 0;
}

static int
take_keyword(struct parse *s, const struct grammar_param *p)
{
	json_t *v;

	if (json_object_get(s->params, p->name) != NULL)
		return sl_refuse(s->err, EINVAL, "\"%s\" is given twice", p->name);
	s->at++;
	if (p->type == GRAMMAR_FLAG) {
		v = json_true();
	} else {
		if (s->at == s->tok->n)
			return sl_refuse(s->err, EINVAL, "\"%s\" needs a value: %s %s", p->name,
				p->name, p->meta);
		v = text_value(s, p, s->tok->t[s->at++].text);
		if (v == NULL)
			return -EINVAL;
	}
	return json_object_set_new(s->params, p->name, v) == 0
		       ? 0
		       : sl_refuse(s->err, ENOMEM, "out of memory");
}

/* The positional parameter whose turn it is: the first that has no value yet, or is a list. */
static const struct grammar_param *
next_positional(const struct parse *s)
{
	const struct grammar_param *p;

	for (p = s->cmd->params; p->name != NULL; p++)
		if ((p->flags & GRAMMAR_POS) != 0 &&
			((p->flags & GRAMMAR_LIST) != 0 ||
				json_object_get(s->params, p->name) == NULL))
			return p;
	return NULL;
}

static int
take_positional(struct parse *s)
{
	const struct grammar_param *p = next_positional(s);
	const struct grammar_token *t = &s->tok->t[s->at];
	json_t *list, *v;
	char q[48];

	if (p == NULL)
		return sl_refuse(s->err, EINVAL, "unexpected \"%s\"; usage: help %s",
			grammar_quote(t->text, q, sizeof(q)), s->cmd->words);
	if (p->type == GRAMMAR_SETTING)
		return take_setting(s, p);
	if (p->type == GRAMMAR_REST) {
		s->at = s->tok->n;
		return json_object_set_new(s->params, p->name, json_string(t->raw)) == 0
			       ? 0
			       : sl_refuse(s->err, ENOMEM, "out of memory");
	}
	s->at++;
	v = text_value(s, p, t->text);
	if (v == NULL)
		return -EINVAL;
	if ((p->flags & GRAMMAR_LIST) == 0)
		return json_object_set_new(s->params, p->name, v) == 0
			       ? 0
			       : sl_refuse(s->err, ENOMEM, "out of memory");
	list = json_object_get(s->params, p->name);
	if (list == NULL) {
		list = json_array();
		json_object_set_new(s->params, p->name, list);
	}
	return json_array_append_new(list, v) == 0 ? 0 : sl_refuse(s->err, ENOMEM, "out of memory");
}

const struct grammar_command *
grammar_match(const struct grammar_tokens *tok, unsigned int *n_words)
{
	const struct grammar_command *c, *best = NULL;
	const char *w;
	unsigned int n;
	size_t len;

	*n_words = 0;
	for (c = grammar_table; c->words != NULL; c++) {
		for (w = c->words, n = 0; *w != '\0' && n < tok->n;
			n++, w += len + (w[len] == ' ')) {
			len = strcspn(w, " ");
			if (strlen(tok->t[n].text) != len || memcmp(tok->t[n].text, w, len) != 0)
				break;
		}
		if (*w == '\0' && n > *n_words) {
			best = c;
			*n_words = n;
		}
	}
	return best;
}

/* No command begins so: say how far the words were understood, and what could have followed. */
static int
refuse_words(const struct grammar_tokens *tok, struct sl_err *err)
{
	const struct grammar_command *c;
	const char *first = tok->t[0].text;
	char q[48], known[160] = "";
	size_t used = 0, len = strlen(first);

	for (c = grammar_table; c->words != NULL; c++)
		if (strncmp(c->words, first, len) == 0 && c->words[len] == ' ' &&
			used < sizeof(known))
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
				used != 0 ? ", " : "", c->words);
	if (used != 0)
		return sl_refuse(err, EINVAL, "no such command; there are: %s", known);
	return sl_refuse(err, EINVAL, "no such command: \"%s\"; see help",
		grammar_quote(first, q, sizeof(q)));
}

static int check_forms(const struct grammar_command *cmd, const json_t *params, struct sl_err *err);

static int
parse_params(struct parse *s)
{
	const struct grammar_param *p;
	int ret = 0;

	while (ret == 0 && s->at < s->tok->n) {
		p = s->tok->t[s->at].quoted ? NULL : grammar_keyword(s->cmd, s->tok->t[s->at].text);
		ret = p != NULL ? take_keyword(s, p) : take_positional(s);
	}
	return ret == 0 ? check_forms(s->cmd, s->params, s->err) : ret;
}

int
grammar_parse(
	const char *line, const struct grammar_command **cmd, json_t **params, struct sl_err *err)
{
	struct grammar_tokens *tok = NULL;
	struct parse s = {.err = err};
	int ret;

	*cmd = NULL;
	*params = NULL;
	ret = grammar_split(line, false, &tok, err);
	if (ret != 0 || tok->n == 0)
		goto out;
	s.tok = tok;
	s.cmd = grammar_match(tok, &s.at);
	if (s.cmd == NULL) {
		ret = refuse_words(tok, err);
		goto out;
	}
	s.params = json_object();
	ret = parse_params(&s);
	if (ret != 0) {
		json_decref(s.params);
		goto out;
	}
	*cmd = s.cmd;
	*params = s.params;
out:
	grammar_tokens_free(tok);
	return ret;
}

/* ---- checks ---- */

static bool
in_form(const struct grammar_param *p, uint8_t form)
{
	return p->forms == 0 || (p->forms & form) != 0;
}

/* All forms of a command as a bit set; 1 when it has only one. */
static uint8_t
all_forms(const struct grammar_command *cmd)
{
	const struct grammar_param *p;
	uint8_t all = 0;

	for (p = cmd->params; p->name != NULL; p++)
		all |= p->forms;
	return all != 0 ? all : 1;
}

/* What the form lacks, or has too much; NULL when the parameters fit it. */
static const struct grammar_param *
misfit(const struct grammar_command *cmd, const json_t *params, uint8_t form, bool *missing)
{
	const struct grammar_param *p, *lacks = NULL;

	for (p = cmd->params; p->name != NULL; p++) {
		bool given = json_object_get(params, p->name) != NULL;

		if (given && !in_form(p, form)) {
			*missing = false;
			return p;
		}
		if (!given && in_form(p, form) &&
			(p->flags & (GRAMMAR_OPT | GRAMMAR_HIDDEN)) == 0 && lacks == NULL)
			lacks = p;
	}
	*missing = true;
	return lacks;
}

static int
check_forms(const struct grammar_command *cmd, const json_t *params, struct sl_err *err)
{
	const struct grammar_param *p, *lacks = NULL, *extra = NULL;
	uint8_t all = all_forms(cmd), form;
	bool missing;

	for (form = 1; form != 0 && form <= all; form = (uint8_t)(form << 1)) {
		if ((all & form) == 0)
			continue;
		p = misfit(cmd, params, form, &missing);
		if (p == NULL)
			return 0;
		if (missing && lacks == NULL)
			lacks = p;
		else if (!missing)
			extra = p;
	}
	if (lacks != NULL)
		return sl_refuse(
			err, EINVAL, "%s: missing; usage: help %s", lacks->name, cmd->words);
	return sl_refuse(err, EINVAL, "%s: does not go with the rest; usage: help %s", extra->name,
		cmd->words);
}

static int
check_name(const struct grammar_param *p, const json_t *v, struct sl_err *err)
{
	const char *s = json_string_value(v);
	char q[48];

	if (!grammar_is_name(s, json_string_length(v)))
		return sl_refuse(err, EINVAL, "%s: \"%s\" is no name: 1-63 of A-Za-z0-9._-",
			p->name, grammar_quote(s, q, sizeof(q)));
	if (p->type == GRAMMAR_NEW_NAME && grammar_is_word(s))
		return sl_refuse(err, EINVAL,
			"%s: \"%s\" is a word of the command language, choose another", p->name, s);
	return 0;
}

static int
check_text(const struct grammar_param *p, const json_t *v, struct sl_err *err)
{
	const char *s = json_string_value(v);
	size_t len = json_string_length(v), i;

	if (len == 0)
		return sl_refuse(err, EINVAL, "%s: is empty", p->name);
	if (len > GRAMMAR_STRING_MAX)
		return sl_refuse(
			err, EINVAL, "%s: longer than %d bytes", p->name, GRAMMAR_STRING_MAX);
	for (i = 0; i < len; i++)
		if (iscntrl((unsigned char)s[i]))
			return sl_refuse(err, EINVAL, "%s: has a control character", p->name);
	return 0;
}

static int
check_word(const struct grammar_param *p, const char *s, struct sl_err *err)
{
	char known[192];
	size_t used = 0;
	unsigned int i;

	for (i = 0; p->words[i] != NULL; i++)
		if (strcmp(p->words[i], s) == 0)
			return 0;
	for (i = 0; p->words[i] != NULL && used < sizeof(known); i++)
		used += (size_t)snprintf(
			known + used, sizeof(known) - used, "%s%s", i ? ", " : "", p->words[i]);
	return sl_refuse(err, EINVAL, "%s: must be one of %s", p->name, known);
}

static int
check_string(const struct grammar_param *p, const json_t *v, struct sl_err *err)
{
	if (!json_is_string(v))
		return sl_refuse(err, EINVAL, "%s: must be a string", p->name);
	switch (p->type) {
	case GRAMMAR_NAME:
	case GRAMMAR_NEW_NAME:
		return check_name(p, v, err);
	case GRAMMAR_WORD:
		return check_word(p, json_string_value(v), err);
	default:
		return check_text(p, v, err);
	}
}

static int
check_uint(const struct grammar_param *p, const json_t *v, struct sl_err *err)
{
	json_int_t n;

	if (!json_is_integer(v))
		return sl_refuse(err, EINVAL, "%s: must be an integer of %" PRIu32 "-%" PRIu32,
			p->name, p->min, p->max);
	n = json_integer_value(v);
	if (n < (json_int_t)p->min || n > (json_int_t)p->max)
		return sl_refuse(err, EINVAL,
			"%s: %" JSON_INTEGER_FORMAT " is out of %" PRIu32 "-%" PRIu32, p->name, n,
			p->min, p->max);
	return 0;
}

static int
check_lines(const struct grammar_param *p, const json_t *v, struct sl_err *err)
{
	const json_t *line;
	const char *s;
	size_t i;

	if (!json_is_array(v))
		return sl_refuse(err, EINVAL, "%s: must be an array of the file's lines", p->name);
	json_array_foreach(v, i, line)
	{
		s = json_string_value(line);
		if (s == NULL || strlen(s) != json_string_length(line) || strchr(s, '\n') != NULL)
			return sl_refuse(err, EINVAL, "%s: line %zu is no line of text", p->name,
				i + 1);
	}
	return 0;
}

static int
check_value(const struct grammar_param *p, const json_t *v, struct sl_err *err)
{
	if ((p->flags & GRAMMAR_UNBUILT) != 0)
		return sl_refuse(err, ENOTSUP, "%s: not available", p->name);
	switch (p->type) {
	case GRAMMAR_UINT:
		return check_uint(p, v, err);
	case GRAMMAR_FLAG:
		return json_is_true(v) ? 0 : sl_refuse(err, EINVAL, "%s: must be true", p->name);
	case GRAMMAR_FILE:
		return check_lines(p, v, err);
	case GRAMMAR_VALUE:
		if (json_is_integer(v))
			return 0;
		if (!json_is_string(v))
			return sl_refuse(
				err, EINVAL, "%s: must be a string or an integer", p->name);
		return check_string(p, v, err);
	default:
		return check_string(p, v, err);
	}
}

static int
check_param(const struct grammar_param *p, const json_t *v, struct sl_err *err)
{
	size_t i;
	int ret = 0;

	if ((p->flags & GRAMMAR_LIST) == 0)
		return check_value(p, v, err);
	if (!json_is_array(v) || json_array_size(v) == 0)
		return sl_refuse(err, EINVAL, "%s: must be an array that is not empty", p->name);
	for (i = 0; i < json_array_size(v) && ret == 0; i++)
		ret = check_value(p, json_array_get(v, i), err);
	return ret;
}

static const struct grammar_param *
find_param(const struct grammar_command *cmd, const char *name)
{
	const struct grammar_param *p;

	for (p = cmd->params; p->name != NULL; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

int
grammar_check(const struct grammar_command *cmd, const json_t *params, struct sl_err *err)
{
	const struct grammar_param *p;
	const char *key;
	json_t *object = json_incref((json_t *)(uintptr_t)params), *v;
	char q[48];
	int ret = 0;

	if ((cmd->flags & GRAMMAR_MISSING) != 0)
		ret = sl_refuse(err, ENOTSUP, "%s: not available", cmd->words);
	else if (!json_is_object(object))
		ret = sl_refuse(err, EINVAL, "params: must be an object");
	if (ret != 0)
		goto out;
	json_object_foreach(object, key, v)
	{
		p = find_param(cmd, key);
		if (p == NULL)
			ret = sl_refuse(err, EINVAL, "%s: no such field of %s",
				grammar_quote(key, q, sizeof(q)), cmd->words);
		else
			ret = check_param(p, v, err);
		if (ret != 0)
			goto out;
	}
	ret = check_forms(cmd, object, err);
out:
	json_decref(object);
	return ret;
}
