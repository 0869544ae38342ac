/* SPDX-License-Identifier: BSD-3-Clause */
/* netns add, delete, list, show. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "link.h"
#include "tcp_table.h"
#include "txn.h"

#define LIST_SLICE 256

/* The name that prefix and number make; refuses when it is too long. */
static int
numbered_name(struct call *c, unsigned int i, char name[NETNS_NAME_MAX + 1])
{
	const char *prefix = call_string(c, "prefix");

	if (snprintf(name, NETNS_NAME_MAX + 1, "%s%u", prefix, i) > (int)NETNS_NAME_MAX)
		return sl_refuse(&c->err, EINVAL, "prefix: \"%s%u\" is longer than %u characters",
			prefix, i, NETNS_NAME_MAX);
	return 0;
}

/* Calls fn for each name of the request, until one is refused. */
static int
each_name(struct call *c, int (*fn)(struct call *c, const char *name))
{
	json_t *names = json_object_get(c->params, "names");
	unsigned int count = call_uint(c, "count"), i;
	char name[NETNS_NAME_MAX + 1];
	int ret = 0;

	for (i = 0; i < json_array_size(names) && ret == 0; i++)
		ret = fn(c, json_string_value(json_array_get(names, i)));
	for (i = 1; i <= count && ret == 0; i++) {
		ret = numbered_name(c, i, name);
		if (ret == 0)
			ret = fn(c, name);
	}
	return ret;
}

static json_t *
count_result(const struct call *c)
{
	json_t *names = json_object_get(c->params, "names");

	return json_pack("{s:I}", "count",
		names != NULL ? (json_int_t)json_array_size(names)
			      : (json_int_t)call_uint(c, "count"));
}

static int
add_one(struct call *c, const char *name)
{
	const char *from = call_string(c, "from");

	return txn_add_netns(c->txn, name, from != NULL ? from : "init", &c->err);
}

static int
netns_add(struct call *c)
{
	c->result = count_result(c);
	return each_name(c, add_one);
}

static int
delete_one(struct call *c, const char *name)
{
	struct netns *ns = netns_find(c->gw->netns, name);

	if (ns == NULL)
		return sl_refuse(&c->err, ENOENT, "there is no namespace \"%s\"", name);
	return txn_delete_netns(c->txn, ns, &c->err);
}

static int
delete_all(struct call *c)
{
	struct netns *ns, *init = netns_init_ns(c->gw->netns);
	uint32_t id = 0;
	json_int_t n = 0;
	int ret;

	while ((ns = netns_next(c->gw->netns, &id)) != NULL) {
		if (ns == init || txn_deletes(c->txn, ns))
			continue;
		ret = txn_delete_netns(c->txn, ns, &c->err);
		if (ret != 0)
			return ret;
		n++;
	}
	c->result = json_pack("{s:I}", "count", n);
	return 0;
}

static int
netns_delete(struct call *c)
{
	int ret;

	ret = txn_flush(c->txn, &c->err);
	if (ret != 0)
		return ret;
	if (call_given(c, "all"))
		return delete_all(c);
	c->result = count_result(c);
	return each_name(c, delete_one);
}

static json_t *
netns_object(const struct netns *ns)
{
	return json_pack("{s:s, s:I, s:I, s:I}", "name", ns->name, "nsid", (json_int_t)ns->id,
		"links", (json_int_t)ns->n_links, "entries",
		(json_int_t)netns_entries(ns, netns_registry_threads(ns->registry)));
}

static int
netns_list(struct call *c)
{
	c->state = calloc(1, sizeof(uint32_t)); /* the id to go on from */
	return c->state != NULL ? 0 : sl_refuse(&c->err, ENOMEM, "out of memory");
}

static enum task_step
netns_list_step(struct call *c)
{
	struct netns *ns;
	unsigned int n;

	for (n = 0; n < LIST_SLICE && !call_full(c); n++) {
		ns = netns_next(c->gw->netns, c->state);
		if (ns == NULL)
			return TASK_DONE;
		call_item(c, netns_object(ns));
	}
	return TASK_MORE;
}

static void
netns_list_end(struct call *c)
{
	free(c->state);
}

static json_t *
tcp_object(const struct gateway *gw, const struct netns *ns)
{
	struct tcp_count tcp;

	tcp_table_totals(ns, &tcp);
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "tcp_ehash_entries",
		(json_int_t)tcp_table_entries(gw, ns), "tcp_half_open",
		(json_int_t)tcp.half_open, "tcp_max_syn_backlog",
		(json_int_t)tcp_table_half_open_max(gw, ns), "tcp_time_wait",
		(json_int_t)tcp.time_wait, "tcp_max_tw_buckets",
		(json_int_t)tcp_table_time_wait_max(gw, ns));
}

static int
netns_show(struct call *c)
{
	struct netns_totals sum;
	struct netns *ns;
	struct link *l;
	json_t *links, *tcp;
	int ret;

	ret = call_netns(c, "name", &ns);
	if (ret != 0)
		return ret;
	links = json_array();
	for (l = link_first(ns); l != NULL; l = l->next)
		json_array_append_new(links, json_string(l->name));
	netns_totals(ns, &sum);
	c->result = json_pack("{s:s, s:I, s:o, s:I, s:I, s:I, s:I}", "name", ns->name, "nsid",
		(json_int_t)ns->id, "links", links, "entries", (json_int_t)sum.entries, "created",
		(json_int_t)sum.created, "packets", (json_int_t)sum.packets, "bytes",
		(json_int_t)sum.bytes);
	tcp = tcp_object(c->gw, ns);
	json_object_update(c->result, tcp);
	json_decref(tcp);
	return 0;
}

const struct command_handler commands_netns[] = {
	{"netns.add", netns_add, NULL, NULL},
	{"netns.delete", netns_delete, NULL, NULL},
	{"netns.list", netns_list, netns_list_step, netns_list_end},
	{"netns.show", netns_show, NULL, NULL},
	{0},
};
