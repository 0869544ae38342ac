/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <errno.h>
#include <string.h>

#include "txn.h"

static const struct command_handler *const families[] = {
	commands_connlimit,
	commands_conntrack,
	commands_events,
	commands_link,
	commands_nat,
	commands_nat_pool,
	commands_netns,
	commands_port,
	commands_rule,
	commands_show,
	commands_stats,
	commands_sysctl,
	commands_top,
	commands_trace,
	commands_workers,
	NULL,
};

const struct command_handler *const *
command_families(void)
{
	return families;
}

const struct command_handler *
command_find(const char *method)
{
	const struct command_handler *h;
	unsigned int i;

	for (i = 0; families[i] != NULL; i++)
		for (h = families[i]; h->method != NULL; h++)
			if (strcmp(h->method, method) == 0)
				return h;
	return NULL;
}

void
call_item(struct call *c, json_t *item)
{
	if (item == NULL) {
		c->status = sl_refuse(&c->err, ENOMEM, "out of memory");
		return;
	}
	c->n_items++;
	c->sink->item(c, item);
}

bool
call_full(const struct call *c)
{
	return c->sink->full(c);
}

void
call_wake(struct call *c)
{
	if (c->task != NULL)
		task_wake(c->task);
}

const char *
call_string(const struct call *c, const char *name)
{
	return json_string_value(json_object_get(c->params, name));
}

bool
call_given(const struct call *c, const char *name)
{
	return json_object_get(c->params, name) != NULL;
}

unsigned int
call_uint(const struct call *c, const char *name)
{
	return (unsigned int)json_integer_value(json_object_get(c->params, name));
}

int
call_netns(struct call *c, const char *name, struct netns **ns)
{
	const char *value = call_string(c, name);

	*ns = NULL;
	if (value == NULL)
		return 0;
	*ns = netns_find(c->gw->netns, value);
	if (*ns == NULL)
		return sl_refuse(&c->err, ENOENT, "%s: there is no namespace \"%s\"", name, value);
	if (c->txn != NULL && txn_deletes(c->txn, *ns))
		return sl_refuse(
			&c->err, ENOENT, "%s: \"%s\" is deleted by this batch", name, value);
	return 0;
}

int
call_init(struct call *c, struct gateway *gw, const struct grammar_command *cmd, json_t *params)
{
	char method[64];
	int ret;

	c->gw = gw;
	c->cmd = cmd;
	c->params = params;
	ret = grammar_check(cmd, params, &c->err);
	if (ret != 0)
		return ret;
	c->handler = command_find(grammar_method(cmd, method, sizeof(method)));
	if (c->handler == NULL)
		return sl_refuse(&c->err, ENOTSUP, "%s: not available here", cmd->words);
	return 0;
}

void
call_end(struct call *c)
{
	if (c->handler != NULL && c->handler->end != NULL)
		c->handler->end(c);
	c->state = NULL;
	json_decref(c->result);
	c->result = NULL;
}

/* ---- a command as text, in place ---- */

static void
collect_item(struct call *c, json_t *item)
{
	if (json_array_append_new(c->sink_arg, item) != 0)
		c->status = sl_refuse(&c->err, ENOMEM, "out of memory");
}

static bool
never_full(const struct call *c)
{
	(void)c;
	return false;
}

static const struct call_sink collect = {collect_item, never_full};

static int
run_change(struct call *c)
{
	int ret;

	c->txn = txn_begin(c->gw);
	if (c->txn == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	ret = c->handler->run(c);
	if (ret == 0)
		return txn_commit(c->txn, NULL, NULL, &c->err);
	txn_abort(c->txn);
	return ret;
}

static int
run_steps(struct call *c, json_t *items)
{
	enum task_step s;

	do {
		s = c->handler->step(c);
		if (c->status != 0)
			return c->status;
	} while (s == TASK_MORE);
	if (c->result == NULL)
		c->result = json_pack(
			"{s:I, s:O}", "count", (json_int_t)c->n_items, "items", items);
	else if (c->n_items > 0)
		json_object_set(c->result, "items", items);
	return 0;
}

int
command_run_text(struct gateway *gw, const char *line, json_t **result, struct sl_err *err)
{
	struct call c = {.sink = &collect, .sink_arg = json_array(), .once = true};
	const struct grammar_command *cmd;
	json_t *params;
	int ret;

	*result = NULL;
	ret = grammar_parse(line, &cmd, &params, &c.err);
	if (ret == 0 && cmd == NULL)
		ret = sl_refuse(&c.err, EINVAL, "empty command");
	if (ret != 0)
		goto out;
	ret = call_init(&c, gw, cmd, params);
	if (ret == 0)
		ret = (cmd->flags & GRAMMAR_CHANGE) != 0 ? run_change(&c) : c.handler->run(&c);
	if (ret == 0 && c.handler->step != NULL)
		ret = run_steps(&c, c.sink_arg);
	if (ret == 0) {
		*result = c.result != NULL ? c.result : json_object();
		c.result = NULL;
	}
	call_end(&c);
out:
	if (ret != 0)
		*err = c.err;
	json_decref(params);
	json_decref(c.sink_arg);
	return ret;
}
