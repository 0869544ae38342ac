/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "render.h"
#include "top.h"

int
run_connect(struct run *r)
{
	struct sl_err err;

	if (r->client.in != NULL)
		return 0;
	if (client_connect(&r->client, r->socket, &err) == 0)
		return 0;
	fprintf(stderr, "sluicectl: %s\n", err.msg);
	return EXIT_REFUSED;
}

json_t *
run_request(const struct grammar_command *cmd, json_t *params, size_t id)
{
	char method[64];

	return json_pack("{s:s, s:I, s:s, s:o}", "jsonrpc", "2.0", "id", (json_int_t)id, "method",
		grammar_method(cmd, method, sizeof(method)), "params", params);
}

static void
print_json(const json_t *v)
{
	json_dumpf(v, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
	putchar('\n');
}

static void
print_item(const struct run *r, const struct grammar_command *cmd, json_t *item)
{
	char method[64];

	json_object_del(item, "id");
	if (r->json)
		print_json(item);
	else
		render_item(grammar_method(cmd, method, sizeof(method)), item, stdout);
	fflush(stdout);
}

void
run_print_result(const struct run *r, const struct grammar_command *cmd, const json_t *result)
{
	char method[64];

	/* As JSON, the items of a listing are all of it. */
	if (!r->json)
		render_result(grammar_method(cmd, method, sizeof(method)), result, stdout);
	else if ((cmd->flags & GRAMMAR_ITEMS) == 0)
		print_json(result);
}

json_t *
run_answer(struct run *r, const struct grammar_command *const *cmds, size_t n)
{
	struct sl_err err;
	json_t *line, *params;
	size_t id;

	for (;;) {
		line = client_receive(&r->client, &err);
		if (line == NULL) {
			fprintf(stderr, "sluicectl: %s\n", err.msg);
			client_close(&r->client);
			return NULL;
		}
		params = json_object_get(line, "params");
		if (params == NULL)
			return line;
		id = (size_t)json_integer_value(json_object_get(params, "id"));
		if (id >= 1 && id <= n)
			print_item(r, cmds[id - 1], params);
		json_decref(line);
	}
}

static int
one_command(struct run *r, const struct grammar_command *cmd, json_t *params)
{
	json_t *request = run_request(cmd, params, 1), *answer = NULL, *error;
	struct sl_err err;
	int status = EXIT_REFUSED;

	if (run_connect(r) != 0)
		goto out;
	if (client_send(&r->client, request, &err) != 0) {
		fprintf(stderr, "sluicectl: %s\n", err.msg);
		goto out;
	}
	answer = run_answer(r, &cmd, 1);
	if (answer == NULL)
		goto out;
	error = json_object_get(answer, "error");
	if (error != NULL) {
		fprintf(stderr, "sluicectl: %s\n", render_string(error, "message"));
		render_caret(json_string_value(json_object_get(params, "rule")),
			render_string(error, "message"), stderr);
	} else {
		run_print_result(r, cmd, json_object_get(answer, "result"));
		status = 0;
	}
out:
	json_decref(answer);
	json_decref(request);
	fflush(stdout);
	return status;
}

int
run_line(struct run *r, const char *line)
{
	const struct grammar_command *cmd;
	struct sl_err err;
	json_t *params;
	int status;

	if (grammar_parse(line, &cmd, &params, &err) != 0) {
		fprintf(stderr, "sluicectl: %s\n", err.msg);
		return EXIT_USAGE;
	}
	if (cmd == NULL)
		return 0;
	if (top_wants_screen(r, cmd))
		return top_screen(r, cmd, params);
	if ((cmd->flags & GRAMMAR_CLIENT) == 0)
		return one_command(r, cmd, params);
	status = run_help(json_string_value(json_object_get(params, "command")));
	json_decref(params);
	return status;
}

/* ---- help ---- */

static void
print_usage(const struct grammar_command *c)
{
	char usage[4096];

	fputs(grammar_usage(c, usage, sizeof(usage)), stdout);
	printf("    %s%s\n", c->help, (c->flags & GRAMMAR_MISSING) != 0 ? " (not available)" : "");
}

int
run_help(const char *command)
{
	const struct grammar_command *c;
	size_t len = command != NULL ? strlen(command) : 0;
	bool any = false;

	for (c = grammar_table; c->words != NULL; c++) {
		if (command == NULL) {
			printf("%-22s %s%s\n", c->words, c->help,
				(c->flags & GRAMMAR_MISSING) != 0 ? " (not available)" : "");
			any = true;
		} else if (strncmp(c->words, command, len) == 0 &&
			   (c->words[len] == '\0' || c->words[len] == ' ')) {
			print_usage(c);
			any = true;
		}
	}
	if (!any)
		fprintf(stderr, "sluicectl: no such command: \"%s\"; see help\n", command);
	return any ? 0 : EXIT_USAGE;
}
