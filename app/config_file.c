/* SPDX-License-Identifier: BSD-3-Clause */
#include "config_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "txn.h"

static int
run_line(struct gateway *gw, struct txn *txn, const char *line, struct sl_err *err)
{
	struct call c = {.txn = txn};
	const struct grammar_command *cmd;
	json_t *params;
	int ret;

	ret = grammar_parse(line, &cmd, &params, &c.err);
	if (ret == 0 && cmd == NULL)
		return 0;
	if (ret == 0)
		ret = call_init(&c, gw, cmd, params);
	if (ret == 0 && (cmd->flags & GRAMMAR_CHANGE) == 0)
		ret = sl_refuse(
			&c.err, EINVAL, "%s: does not belong in a configuration file", cmd->words);
	if (ret == 0)
		ret = c.handler->run(&c);
	call_end(&c);
	json_decref(params);
	if (ret != 0)
		*err = c.err;
	return ret;
}

/* Where the text begins: some editors put a byte order mark before it. */
static const char *
after_mark(const char *line, unsigned int number)
{
	static const char mark[] = "\xef\xbb\xbf";

	return number == 1 && strncmp(line, mark, strlen(mark)) == 0 ? line + strlen(mark) : line;
}

/* The line as text: without its end; refuses what a C string cannot hold. */
static int
trim(char *line, size_t len, struct sl_err *err)
{
	if (memchr(line, '\0', len) != NULL)
		return sl_refuse(err, EINVAL, "NUL byte: this is no text");
	while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
		line[--len] = '\0';
	return 0;
}

static int
run_lines(struct gateway *gw, struct txn *txn, FILE *f, unsigned int *number, struct sl_err *err)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int ret = 0;

	for (*number = 1; ret == 0 && (len = getline(&line, &room, f)) >= 0; ++*number) {
		ret = trim(line, (size_t)len, err);
		if (ret == 0)
			ret = run_line(gw, txn, after_mark(line, *number), err);
		if (ret != 0)
			break;
	}
	if (ret == 0 && ferror(f) != 0)
		ret = sl_refuse(err, EIO, "cannot be read: %s", strerror(errno));
	free(line);
	return ret;
}

int
config_file_apply(struct gateway *gw, const char *path, struct sl_err *err)
{
	FILE *f = fopen(path, "re");
	struct txn *txn;
	struct sl_err why;
	unsigned int number;
	int ret;

	if (f == NULL)
		return sl_refuse(err, errno, "%s: %s", path, strerror(errno));
	txn = txn_begin(gw);
	if (txn == NULL) {
		fclose(f);
		return sl_refuse(err, ENOMEM, "out of memory");
	}
	ret = run_lines(gw, txn, f, &number, &why);
	fclose(f);
	if (ret != 0)
		txn_abort(txn);
	else
		ret = txn_commit(txn, NULL, NULL, &why);
	if (ret != 0)
		sl_refuse(err, 0, "%.300s:%u: %.190s", path, number, why.msg);
	return ret;
}
