/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rpc_private.h"

/* Steps over a string that begins at `at`; returns the offset behind its closing quote, or len. */
static size_t
skip_string(const char *s, size_t at, size_t len)
{
	for (at++; at < len; at++) {
		if (s[at] == '\\')
			at++;
		else if (s[at] == '"')
			return at + 1;
	}
	return len;
}

/* jansson recurses with the depth of its input, so that is bounded before. */
static bool
too_deep(const char *s, size_t len)
{
	unsigned int depth = 0;
	size_t at = 0;

	while (at < len) {
		if (s[at] == '"') {
			at = skip_string(s, at, len);
			continue;
		}
		if (s[at] == '{' || s[at] == '[')
			depth++;
		else if ((s[at] == '}' || s[at] == ']') && depth > 0)
			depth--;
		if (depth > RPC_DEPTH_MAX)
			return true;
		at++;
	}
	return false;
}

/* The key of the value that ends at `pos`: the last string before it that a colon follows. */
static void
key_before(const char *s, size_t pos, char *buf, size_t len)
{
	size_t at = 0, end, colon;

	snprintf(buf, len, "?");
	while (at < pos) {
		if (s[at] != '"') {
			at++;
			continue;
		}
		end = skip_string(s, at, pos);
		colon = end + strspn(s + end, " \t");
		if (end < pos && s[colon] == ':')
			snprintf(buf, len, "%.*s", (int)(end - at - 2), s + at + 1);
		at = end;
	}
}

json_t *
rpc_parse(const char *line, size_t len, struct sl_err *err)
{
	char key[64], q[64];
	json_error_t e;
	json_t *v;

	if (too_deep(line, len)) {
		sl_refuse(err, EINVAL, "nested deeper than %d", RPC_DEPTH_MAX);
		return NULL;
	}
	v = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
	if (v != NULL)
		return v;
	if (json_error_code(&e) == json_error_numeric_overflow) {
		key_before(line, e.position > 0 ? (size_t)e.position : 0, key, sizeof(key));
		sl_refuse(err, EINVAL, "%s: the number is out of range",
			grammar_quote(key, q, sizeof(q)));
	} else {
		sl_refuse(err, EINVAL, "not JSON: %.200s", e.text);
	}
	return NULL;
}
