/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands: what the language of grammar.h does. The front ends (socket, configuration file,
 * replay) make a call of a checked request and run it; handlers know no front end.
 *
 * To add a command: a row in grammar_table.c; a handler in app/commands/FAMILY.c, in that file's
 * array of handlers; for a new family, the array in the list at the top of command.c. The text that
 * sluicectl prints for the result is made in app/sluicectl/render*.c; without a function there it
 * is printed as "key value" lines. A unit test holds table and handlers against each other.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>

#include <jansson.h>

#include "err.h"
#include "gateway.h"
#include "grammar.h"
#include "task.h"

struct txn;
struct call;

/* Where a call's items go. */
struct call_sink {
	/* Takes the reference. */
	void (*item)(struct call *c, json_t *item);
	/* True when the sink has enough for now: the handler's step() returns TASK_MORE, and is
	 * called again once the sink has drained. */
	bool (*full)(const struct call *c);
};

struct call {
	/* set by the front end */
	struct gateway *gw;
	const struct grammar_command *cmd;
	const struct command_handler *handler;
	json_t *params;  /* checked; an object. Borrowed: lives as long as the call */
	struct txn *txn; /* of commands with GRAMMAR_CHANGE, else NULL */
	const struct call_sink *sink;
	void *sink_arg;
	bool once; /* no event loop: an endless command ends with what there is */
	/* set by the handler */
	json_t *result;       /* NULL: {} */
	struct sl_err err;    /* when it returns an error */
	void *state;          /* freed by end() */
	unsigned int wait_ms; /* with TASK_WAIT: step() is due after this time; 0: when woken */
	/* front end's and command_wake()'s */
	struct task *task;
	size_t n_items;
	int status; /* of a step that failed: 0 or -errno, with err filled */
};

struct command_handler {
	const char *method;
	/*
	 * Checks what the grammar cannot, and does the command, or starts it. 0 or -errno with
	 * c->err. Changes register with c->txn (txn.h) how they are undone.
	 */
	int (*run)(struct call *c);
	/*
	 * NULL for most. The first call follows run() within the same turn of the loop. A bounded
	 * slice of a long answer, which calls call_item() as long as call_full() is false (a few
	 * more do no harm). TASK_WAIT needs wait_ms or somebody who calls call_wake(). A failure
	 * sets c->status and returns TASK_DONE. When it is done the result is c->result, by default
	 * {"count": number of items}.
	 */
	enum task_step (*step)(struct call *c);
	/* Called once at the end, also when the client went away; frees c->state. May be NULL. */
	void (*end)(struct call *c);
};

/* For step(): one item of a streamed answer, an object without a field "id" (which the request's
 * takes). Takes the reference; NULL is out of memory. */
void call_item(struct call *c, json_t *item);
bool call_full(const struct call *c);

/* From anywhere on the control thread: has step() called soon. */
void call_wake(struct call *c);

/* Parameters: NULL or 0 where they were not given. */
const char *call_string(const struct call *c, const char *name);
bool call_given(const struct call *c, const char *name);
unsigned int call_uint(const struct call *c, const char *name);

/* The namespace of parameter `name`; *ns stays NULL when it was not given. -ENOENT with c->err. */
int call_netns(struct call *c, const char *name, struct netns **ns);

/* NULL: not built (the grammar says so), or done by the client. */
const struct command_handler *command_find(const char *method);

/* All handlers, for the test that holds them against the grammar. */
const struct command_handler *const *command_families(void);

/*
 * One command as text, to its end, in place: replay's --at, tests. *result (a new reference) is the
 * command's result; of a listing {"items":[...],"count":N}. 0 or -errno with err.
 */
int command_run_text(struct gateway *gw, const char *line, json_t **result, struct sl_err *err);

/* Prepares a call: checks the parameters and finds the handler. 0 or -errno with c->err. */
int call_init(
	struct call *c, struct gateway *gw, const struct grammar_command *cmd, json_t *params);

/* Frees what is left of a call: state, result. */
void call_end(struct call *c);

/* The registered families, one array for each file of app/commands, ended by method == NULL. */
extern const struct command_handler commands_connlimit[], commands_conntrack[], commands_events[],
	commands_link[], commands_nat[], commands_nat_pool[], commands_netns[], commands_port[],
	commands_rule[], commands_show[], commands_stats[], commands_sysctl[], commands_top[],
	commands_trace[], commands_workers[];

#endif
