/* SPDX-License-Identifier: BSD-3-Clause */
/* link add, list, delete. */
#include "link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "port.h"
#include "txn.h"

#define LIST_SLICE 256

static struct link *
find_link(const struct netns *ns, const char *name)
{
	struct link *l;

	for (l = link_first(ns); l != NULL; l = l->next)
		if (strcmp(l->name, name) == 0)
			return l;
	return NULL;
}

/* ---- add ---- */

/* V or V.INNER of 0-4094 each. */
static bool
parse_vlan(const json_t *v, uint16_t *outer, uint16_t *inner)
{
	char text[32], *end;
	unsigned long n;

	if (json_is_integer(v))
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else
		snprintf(text, sizeof(text), "%s", json_string_value(v));
	if (text[0] < '0' || text[0] > '9')
		return false;
	n = strtoul(text, &end, 10);
	if (n > 4094)
		return false;
	*outer = (uint16_t)n;
	*inner = 0;
	if (*end == '\0')
		return true;
	if (end[0] != '.' || end[1] < '0' || end[1] > '9')
		return false;
	n = strtoul(end + 1, &end, 10);
	*inner = (uint16_t)n;
	return *end == '\0' && n <= 4094;
}

struct link_id {
	char netns[NETNS_NAME_MAX + 1];
	char name[LINK_NAME_MAX + 1];
};

static void
undo_add(struct gateway *gw, void *arg)
{
	struct link_id *id = arg;

	link_delete(gw, id->netns, id->name, NULL);
}

/* What link_add() cannot know: the batch is about to delete what the link would hang on. */
static int
check_batch(struct call *c, const struct link_spec *spec)
{
	const struct port *p = port_find(c->gw, spec->port);
	const struct link *peer = NULL;
	struct netns *ns;
	int ret;

	ret = call_netns(c, "netns", &ns);
	if (ret != 0)
		return ret;
	if (p != NULL && txn_deletes(c->txn, p))
		return sl_refuse(
			&c->err, ENOENT, "port: \"%s\" is deleted by this batch", spec->port);
	if (spec->peer != NULL)
		peer = find_link(ns, spec->peer);
	if (peer != NULL && txn_deletes(c->txn, peer))
		return sl_refuse(
			&c->err, ENOENT, "peer: \"%s\" is deleted by this batch", spec->peer);
	return 0;
}

/* Has the batch undo what link_add() did. */
static int
register_undo(struct call *c, const struct link_spec *spec)
{
	struct link_id *id = malloc(sizeof(*id));

	if (id != NULL) {
		snprintf(id->netns, sizeof(id->netns), "%s", spec->netns);
		snprintf(id->name, sizeof(id->name), "%s", spec->name);
	}
	if (id == NULL || txn_on_undo(c->txn, undo_add, id, free) != 0) {
		free(id);
		link_delete(c->gw, spec->netns, spec->name, NULL);
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	}
	return 0;
}

static int
cmd_link_add(struct call *c)
{
	struct link_spec spec = {
		.name = call_string(c, "name"),
		.port = call_string(c, "port"),
		.netns = call_string(c, "netns"),
		.peer = call_string(c, "peer"),
	};
	int ret;

	if (call_given(c, "vlan") &&
		!parse_vlan(json_object_get(c->params, "vlan"), &spec.vlan, &spec.inner))
		return sl_refuse(&c->err, EINVAL, "vlan: must be V or V.INNER, each of 0-4094");
	ret = txn_flush(c->txn, &c->err);
	if (ret == 0)
		ret = check_batch(c, &spec);
	if (ret == 0)
		ret = link_add(c->gw, &spec, &c->err);
	return ret == 0 ? register_undo(c, &spec) : ret;
}

/* ---- delete ---- */

/* The only link of that name of all namespaces. */
static int
find_everywhere(struct call *c, const char *name, struct link **found)
{
	const struct netns *ns;
	struct link *l;
	uint32_t id = 0;

	*found = NULL;
	while ((ns = netns_next(c->gw->netns, &id)) != NULL) {
		l = find_link(ns, name);
		if (l == NULL)
			continue;
		if (*found != NULL)
			return sl_refuse(&c->err, EEXIST,
				"link \"%s\" is in \"%s\" and in \"%s\": say which "
				"by netns",
				name, (*found)->ns->name, ns->name);
		*found = l;
	}
	return 0;
}

static int
cmd_link_delete(struct call *c)
{
	const char *name = call_string(c, "name");
	struct link *l = NULL;
	struct netns *ns;
	int ret;

	ret = call_netns(c, "netns", &ns);
	if (ret == 0 && ns != NULL)
		l = find_link(ns, name);
	else if (ret == 0)
		ret = find_everywhere(c, name, &l);
	if (ret != 0)
		return ret;
	if (l == NULL)
		return sl_refuse(&c->err, ENOENT, "there is no link \"%s\"", name);
	return txn_delete_link(c->txn, l, &c->err);
}

/* ---- list ---- */

struct list {
	uint32_t id;       /* of the next namespace */
	bool one;          /* and of no other */
	uint32_t at, gen;  /* the namespace that is being listed */
	unsigned int skip; /* its links listed already */
};

static json_t *
link_object(const struct link *l)
{
	const struct link *peer = link_peer(l);
	char vlan[16];

	snprintf(vlan, sizeof(vlan), l->inner != 0 ? "%u.%u" : "%u", l->vlan, l->inner);
	return json_pack("{s:s, s:s, s:s, s:s, s:s?}", "name", l->name, "netns", l->ns->name,
		"port", l->port->name, "vlan", vlan, "peer", peer != NULL ? peer->name : NULL);
}

static int
cmd_link_list(struct call *c)
{
	struct list *list;
	struct netns *ns;
	int ret;

	ret = call_netns(c, "netns", &ns);
	if (ret != 0)
		return ret;
	c->state = list = calloc(1, sizeof(*list));
	if (list == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	list->one = ns != NULL;
	list->id = ns != NULL ? ns->id : 0;
	list->gen = ns != NULL ? ns->gen : 0;
	list->at = list->id;
	return 0;
}

/* Links of one namespace; a slice may end within it. */
static void
list_netns(struct call *c, struct list *list, const struct netns *ns)
{
	const struct link *l = link_first(ns);
	unsigned int i;

	for (i = 0; i < list->skip && l != NULL; i++)
		l = l->next;
	for (i = 0; l != NULL && i < LIST_SLICE && !call_full(c); l = l->next, i++)
		call_item(c, link_object(l));
	list->skip += i;
	if (l == NULL) {
		list->skip = 0;
		list->id = ns->id + 1;
	}
}

static enum task_step
cmd_link_list_step(struct call *c)
{
	struct list *list = c->state;
	const struct netns *ns;
	uint32_t id;
	unsigned int n;

	for (n = 0; n < LIST_SLICE && !call_full(c); n++) {
		id = list->id;
		ns = netns_next(c->gw->netns, &id);
		if (ns == NULL || (list->one && (ns->id != list->at || ns->gen != list->gen)))
			return TASK_DONE;
		if (ns->id != list->at || ns->gen != list->gen)
			list->skip = 0;
		list->at = ns->id;
		list->gen = ns->gen;
		list_netns(c, list, ns);
		if (list->skip != 0)
			break;
		if (list->one)
			return TASK_DONE;
	}
	return TASK_MORE;
}

static void
cmd_link_list_end(struct call *c)
{
	free(c->state);
}

const struct command_handler commands_link[] = {
	{"link.add", cmd_link_add, NULL, NULL},
	{"link.delete", cmd_link_delete, NULL, NULL},
	{"link.list", cmd_link_list, cmd_link_list_step, cmd_link_list_end},
	{0},
};
