/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that a command names: its lines become the parameter, so that the daemon opens none. */
#include "grammar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (16u << 20) /* bytes */

static int
append(json_t *lines, char *line, size_t len, struct sl_err *err)
{
	json_t *v;

	if (memchr(line, '\0', len) != NULL)
		return sl_refuse(err, EINVAL, "NUL byte: this is no text");
	while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
		line[--len] = '\0';
	v = json_stringn(line, len);
	if (v == NULL)
		return sl_refuse(err, EINVAL, "line %zu is no UTF-8 text",
			json_array_size(lines) + 1);
	return json_array_append_new(lines, v) == 0 ? 0 : sl_refuse(err, ENOMEM, "out of memory");
}

static int
read_lines(FILE *f, json_t *lines, struct sl_err *err)
{
	char *line = NULL;
	size_t room = 0, total = 0;
	ssize_t len;
	int ret = 0;

	while (ret == 0 && (len = getline(&line, &room, f)) >= 0) {
		total += (size_t)len;
		ret = total > FILE_MAX
			      ? sl_refuse(err, EFBIG, "longer than %u bytes", FILE_MAX)
			      : append(lines, line, (size_t)len, err);
	}
	if (ret == 0 && ferror(f) != 0)
		ret = sl_refuse(err, errno, "%s", strerror(errno));
	free(line);
	return ret;
}

json_t *
grammar_load(const char *param, const char *path, struct sl_err *err)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	json_t *lines = json_array();
	struct sl_err why;
	char q[48];
	int ret;

	if (f == NULL)
		ret = sl_refuse(&why, errno, "%s", strerror(errno));
	else if (lines == NULL)
		ret = sl_refuse(&why, ENOMEM, "out of memory");
	else
		ret = read_lines(f, lines, &why);
	if (f != NULL && f != stdin)
		fclose(f);
	if (ret == 0)
		return lines;
	json_decref(lines);
	sl_refuse(err, -ret, "%s: %s: %.300s", param, grammar_quote(path, q, sizeof(q)), why.msg);
	return NULL;
}
