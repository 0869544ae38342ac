/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the client: sent, their answers printed. */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stdio.h>

#include "client.h"
#include "grammar.h"

#define EXIT_REFUSED 1
#define EXIT_USAGE   2

struct run {
	struct client client;
	const char *socket;
	bool json; /* answers as they come, one object a line */
};

/* One line of text. The exit status; the reason on stderr. An empty line is 0. */
int run_line(struct run *r, const char *line);

/* A file of commands as one batch; "-": standard input. */
int run_file(struct run *r, const char *path);

/* The interactive shell. */
int run_shell(struct run *r);

/* `help` and `help COMMAND`. */
int run_help(const char *command);

/* Within the module: connects if need be. */
int run_connect(struct run *r);

/* Prints items as they come until the answer; a new reference, or NULL: the reason was printed.
 * cmds[i] is the command of request id i + 1. */
json_t *run_answer(struct run *r, const struct grammar_command *const *cmds, size_t n);

/* Prints a result. */
void run_print_result(const struct run *r, const struct grammar_command *cmd, const json_t *result);

/* A request of JSON-RPC; takes the reference to params. */
json_t *run_request(const struct grammar_command *cmd, json_t *params, size_t id);

#endif
