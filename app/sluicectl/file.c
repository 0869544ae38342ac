/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file of commands is one JSON-RPC batch: its adds, deletes and knobs are applied together or not
 * at all, and the other commands follow in order. The id of a request is its number in the batch.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "render.h"
#include "run.h"

struct file {
	const char *path;
	json_t *batch;
	const struct grammar_command **cmds; /* of each request */
	unsigned int *lines;                 /* its line */
	size_t n, room;
};

static int
append(struct file *f, const struct grammar_command *cmd, json_t *params, unsigned int line)
{
	if (f->n == f->room) {
		size_t room = f->room != 0 ? 2 * f->room : 64;
		void *cmds = reallocarray(f->cmds, room, sizeof(f->cmds[0]));
		void *lines = reallocarray(f->lines, room, sizeof(f->lines[0]));

		f->cmds = cmds != NULL ? cmds : f->cmds;
		f->lines = lines != NULL ? lines : f->lines;
		if (cmds == NULL || lines == NULL) {
			json_decref(params);
			return -ENOMEM;
		}
		f->room = room;
	}
	f->cmds[f->n] = cmd;
	f->lines[f->n++] = line;
	return json_array_append_new(f->batch, run_request(cmd, params, f->n)) == 0 ? 0 : -ENOMEM;
}

static int
complain(const struct file *f, unsigned int line, const char *why, int status)
{
	fprintf(stderr, "sluicectl: %s:%u: %s\n", f->path, line, why);
	return status;
}

static int
take_line(struct file *f, char *text, size_t len, unsigned int line)
{
	const struct grammar_command *cmd;
	struct sl_err err;
	json_t *params;

	if (memchr(text, '\0', len) != NULL)
		return complain(f, line, "NUL byte: this is no text", EXIT_USAGE);
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		text[--len] = '\0';
	if (grammar_parse(text, &cmd, &params, &err) != 0)
		return complain(f, line, err.msg, EXIT_USAGE);
	if (cmd == NULL)
		return 0;
	if ((cmd->flags & GRAMMAR_CLIENT) != 0) {
		json_decref(params);
		snprintf(err.msg, sizeof(err.msg), "%s: does not belong in a file", cmd->words);
		return complain(f, line, err.msg, EXIT_USAGE);
	}
	return append(f, cmd, params, line) == 0 ? 0
						 : complain(f, line, "out of memory", EXIT_REFUSED);
}

static int
read_file(struct file *f, FILE *in)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t len;
	unsigned int line = 0;
	int status = 0;

	while (status == 0 && (len = getline(&text, &room, in)) >= 0)
		status = take_line(f, text, (size_t)len, ++line);
	if (status == 0 && ferror(in) != 0)
		status = complain(f, line + 1, strerror(errno), EXIT_REFUSED);
	free(text);
	return status;
}

/* The rule that a request adds, or NULL. */
static const char *
rule_of(const struct file *f, size_t id)
{
	const json_t *params = json_object_get(json_array_get(f->batch, id - 1), "params");

	return json_string_value(json_object_get(params, "rule"));
}

/* Answers have the ids of their requests; one without is about the batch as a whole. */
static int
print_answer(struct run *r, const struct file *f, const json_t *answer)
{
	const json_t *error = json_object_get(answer, "error");
	size_t id = (size_t)json_integer_value(json_object_get(answer, "id"));
	const char *message = render_string(error, "message");

	if (error == NULL) {
		if (id >= 1 && id <= f->n)
			run_print_result(r, f->cmds[id - 1], json_object_get(answer, "result"));
		return 0;
	}
	if (json_integer_value(json_object_get(error, "code")) == -32004)
		return EXIT_REFUSED; /* because of another, which says why */
	if (id >= 1 && id <= f->n) {
		complain(f, f->lines[id - 1], message, EXIT_REFUSED);
		render_caret(rule_of(f, id), message, stderr);
		return EXIT_REFUSED;
	}
	fprintf(stderr, "sluicectl: %s: %s\n", f->path, message);
	return EXIT_REFUSED;
}

static int
send_batch(struct run *r, const struct file *f)
{
	json_t *answer;
	struct sl_err err;
	size_t i;
	int status = 0, one;

	if (run_connect(r) != 0)
		return EXIT_REFUSED;
	if (client_send(&r->client, f->batch, &err) != 0) {
		fprintf(stderr, "sluicectl: %s: %s\n", f->path, err.msg);
		return EXIT_REFUSED;
	}
	answer = run_answer(r, f->cmds, f->n);
	if (answer == NULL)
		return EXIT_REFUSED;
	if (!json_is_array(answer))
		status = print_answer(r, f, answer);
	for (i = 0; i < json_array_size(answer); i++) {
		one = print_answer(r, f, json_array_get(answer, i));
		status = status != 0 ? status : one;
	}
	json_decref(answer);
	return status;
}

int
run_file(struct run *r, const char *path)
{
	struct file f = {.path = path, .batch = json_array()};
	FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	int status;

	if (in == NULL) {
		fprintf(stderr, "sluicectl: %s: %s\n", path, strerror(errno));
		json_decref(f.batch);
		return EXIT_REFUSED;
	}
	status = read_file(&f, in);
	if (in != stdin)
		fclose(in);
	if (status == 0 && f.n > 0)
		status = send_batch(r, &f);
	json_decref(f.batch);
	free(f.cmds);
	free(f.lines);
	return status;
}
