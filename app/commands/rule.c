/* SPDX-License-Identifier: BSD-3-Clause */
/* rule add, list, delete, flush, replace, policy, export. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "nat_pools.h"
#include "rule_features.h"
#include "rule_file.h"
#include "rule_store.h"
#include "rules.h"
#include "txn.h"

#define LIST_SLICE 64

/* The namespace's list for a change. */
static int
call_edit(struct call *c, struct netns **ns, struct rule_list **list)
{
	int ret = txn_flush(c->txn, &c->err);

	if (ret == 0)
		ret = call_netns(c, "netns", ns);
	if (ret != 0)
		return ret;
	*list = rule_store_edit(c->txn, *ns, &c->err);
	return *list != NULL ? 0 : -EINVAL;
}

/* The chain of the call; RULE_CHAINS when none is given. */
static enum rule_chain
call_chain(const struct call *c)
{
	const char *name = call_string(c, "chain");

	return name != NULL ? (enum rule_chain)rule_chain_by_name(name) : RULE_CHAINS;
}

/* ---- changes ---- */

static int
cmd_rule_add(struct call *c)
{
	const char *text = call_string(c, "rule");
	struct rule_list *list;
	struct rule_error e;
	struct netns *ns;
	struct rule *r;
	int ret = call_edit(c, &ns, &list);

	if (ret != 0)
		return ret;
	ret = rule_parse(text, strlen(text), call_chain(c), &r, &e);
	if (ret != 0)
		return sl_refuse(&c->err, -ret, "rule: column %u-%u: %s", e.column, e.end - 1,
			e.err.msg);
	ret = rule_available(r, &c->err);
	if (ret == 0)
		ret = nat_pools_check(c->txn, ns, list, r, &c->err);
	if (ret == 0 && rule_list_add(list, r) != 0)
		ret = sl_refuse(&c->err, ENOMEM, "out of memory");
	if (ret != 0) {
		rule_put(r);
		return ret;
	}
	c->result = json_pack("{s:I}", "handle", (json_int_t)r->handle);
	return 0;
}

static int
cmd_rule_delete(struct call *c)
{
	struct rule_list *list;
	struct netns *ns;
	int ret = call_edit(c, &ns, &list);

	if (ret == 0 && rule_list_delete(list, call_uint(c, "handle")) != 0)
		ret = sl_refuse(&c->err, ENOENT, "handle: namespace \"%s\" has no rule %u",
			ns->name, call_uint(c, "handle"));
	return ret;
}

static int
cmd_rule_flush(struct call *c)
{
	struct rule_list *list;
	struct netns *ns;
	int ret = call_edit(c, &ns, &list);

	if (ret == 0)
		rule_list_flush(list, call_chain(c));
	return ret;
}

static int
cmd_rule_policy(struct call *c)
{
	struct rule_list *list;
	struct netns *ns;
	int ret = call_edit(c, &ns, &list);

	if (ret == 0)
		list->chain[call_chain(c)].drop = strcmp(call_string(c, "policy"), "drop") == 0;
	return ret;
}

/* The lines of the parameter as one text; NULL: no memory. */
static char *
join_lines(const json_t *lines, size_t *len)
{
	const json_t *line;
	char *text = NULL;
	size_t i;
	FILE *f = open_memstream(&text, len);

	if (f == NULL)
		return NULL;
	json_array_foreach(lines, i, line)
		fprintf(f, "%s\n", json_string_value(line));
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int
check_rules(const struct call *c, const struct netns *ns, const struct rule_list *l,
	struct sl_err *err)
{
	struct sl_err why;
	uint32_t i;
	int n, ret;

	for (n = 0; n < RULE_CHAINS; n++) {
		for (i = 0; i < l->chain[n].n; i++) {
			struct rule *r = l->chain[n].rule[i];

			ret = rule_available(r, &why);
			if (ret == 0)
				ret = nat_pools_check(c->txn, ns, l, r, &why);
			if (ret != 0)
				return sl_refuse(err, -ret, "file: line %u: %.460s", r->line,
					why.msg);
		}
	}
	return 0;
}

static int
cmd_rule_replace(struct call *c)
{
	struct rule_list *list, *made = NULL;
	struct rule_file_error e;
	struct netns *ns;
	size_t len = 0;
	char *text;
	int ret = call_edit(c, &ns, &list);

	if (ret != 0)
		return ret;
	text = join_lines(json_object_get(c->params, "file"), &len);
	if (text == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	ret = rule_file_parse(text, len, list->last_handle, &made, &e);
	free(text);
	if (ret != 0)
		return sl_refuse(&c->err, -ret, "file: line %u, column %u: %s", e.line, e.column,
			e.err.msg);
	ret = check_rules(c, ns, made, &c->err);
	if (ret == 0 && rule_list_inherit(made, list) != 0)
		ret = sl_refuse(&c->err, ENOMEM, "out of memory");
	if (ret != 0) {
		rule_list_free(made);
		return ret;
	}
	rule_store_replace(ns, made);
	return 0;
}

/* ---- list ---- */

/* A copy, which changes between two slices do not touch. */
struct list {
	char netns[NETNS_NAME_MAX + 1];
	struct rule_list *rules; /* NULL: none */
	unsigned int chain;
	uint32_t at;     /* next rule of the chain */
	bool begun;      /* the chain's own item is out */
	uint32_t listed; /* rules */
};

static int
cmd_rule_list(struct call *c)
{
	const struct rule_list *rules;
	struct list *list;
	struct netns *ns;
	int ret = call_netns(c, "netns", &ns);

	if (ret != 0)
		return ret;
	c->state = list = calloc(1, sizeof(*list));
	if (list == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	snprintf(list->netns, sizeof(list->netns), "%s", ns->name);
	rules = rule_store_list(ns);
	if (rules == NULL)
		return 0;
	list->rules = rule_list_copy(rules);
	return list->rules != NULL ? 0 : sl_refuse(&c->err, ENOMEM, "out of memory");
}

static void
chain_item(struct call *c, const struct list *list)
{
	const struct rule_file_chain *info = &rule_file_chains[list->chain];

	call_item(c, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "netns", list->netns, "chain",
		rule_chain_name((enum rule_chain)list->chain), "type", info->type, "hook",
		info->hook, "priority", info->priority, "policy",
		list->rules->chain[list->chain].drop ? "drop" : "accept"));
}

static void
rule_item(struct call *c, const struct list *list, const struct rule *r)
{
	char *text = rule_text(r, 0);

	call_item(c, text == NULL ? NULL : json_pack("{s:s, s:s, s:I, s:s}", "netns", list->netns,
		"chain", rule_chain_name((enum rule_chain)list->chain), "handle",
		(json_int_t)r->handle, "rule", text));
	free(text);
}

static enum task_step
cmd_rule_list_step(struct call *c)
{
	struct list *list = c->state;
	const struct rule_chain_list *chain;
	unsigned int n = 0;

	while (list->rules != NULL && list->chain < RULE_CHAINS) {
		if (n++ == LIST_SLICE || call_full(c))
			return TASK_MORE;
		chain = &list->rules->chain[list->chain];
		if (!list->begun && (chain->n > 0 || chain->drop))
			chain_item(c, list);
		list->begun = true;
		if (list->at < chain->n) {
			rule_item(c, list, chain->rule[list->at++]);
			list->listed++;
			continue;
		}
		list->chain++;
		list->at = 0;
		list->begun = false;
	}
	c->result = json_pack("{s:I}", "count", (json_int_t)list->listed);
	return TASK_DONE;
}

static void
cmd_rule_list_end(struct call *c)
{
	struct list *list = c->state;

	if (list != NULL)
		rule_list_free(list->rules);
	free(list);
}

/* ---- export ---- */

struct export {
	char *text;
	char *next; /* line */
};

static int
cmd_rule_export(struct call *c)
{
	const struct rule_list *rules;
	struct rule_list none = {0};
	struct export *x;
	struct netns *ns;
	int ret = call_netns(c, "netns", &ns);

	if (ret != 0)
		return ret;
	c->state = x = calloc(1, sizeof(*x));
	if (x == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	rules = rule_store_list(ns);
	x->text = x->next = rule_file_text(rules != NULL ? rules : &none, "sluice");
	return x->text != NULL ? 0 : sl_refuse(&c->err, ENOMEM, "out of memory");
}

static enum task_step
cmd_rule_export_step(struct call *c)
{
	struct export *x = c->state;
	unsigned int n;
	char *end;

	for (n = 0; n < LIST_SLICE && !call_full(c); n++) {
		end = strchr(x->next, '\n');
		if (end == NULL)
			return TASK_DONE;
		*end = '\0';
		call_item(c, json_pack("{s:s}", "line", x->next));
		x->next = end + 1;
	}
	return TASK_MORE;
}

static void
cmd_rule_export_end(struct call *c)
{
	struct export *x = c->state;

	if (x != NULL)
		free(x->text);
	free(x);
}

const struct command_handler commands_rule[] = {
	{"rule.add", cmd_rule_add, NULL, NULL},
	{"rule.delete", cmd_rule_delete, NULL, NULL},
	{"rule.export", cmd_rule_export, cmd_rule_export_step, cmd_rule_export_end},
	{"rule.flush", cmd_rule_flush, NULL, NULL},
	{"rule.list", cmd_rule_list, cmd_rule_list_step, cmd_rule_list_end},
	{"rule.policy", cmd_rule_policy, NULL, NULL},
	{"rule.replace", cmd_rule_replace, NULL, NULL},
	{0},
};
