/* SPDX-License-Identifier: BSD-3-Clause */
/* link add, list, delete; link address add, delete. */
#include "link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "link_address.h"
#include "port.h"
#include "prefix.h"
#include "translate.h"
#include "txn.h"

#define LIST_SLICE 256

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
		peer = link_find(ns, spec->peer);
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
parse_mac(struct call *c, struct rte_ether_addr *mac)
{
	const char *text = call_string(c, "mac");
	char q[48];

	if (strlen(text) == RTE_ETHER_ADDR_FMT_SIZE - 1 && rte_ether_unformat_addr(text, mac) == 0)
		return 0;
	return sl_refuse(&c->err, EINVAL, "mac: \"%s\" is no MAC address: six bytes as in "
		"02:00:00:00:00:01", grammar_quote(text, q, sizeof(q)));
}

static int
cmd_link_add(struct call *c)
{
	struct rte_ether_addr mac;
	struct link_spec spec = {
		.name = call_string(c, "name"),
		.port = call_string(c, "port"),
		.netns = call_string(c, "netns"),
		.peer = call_string(c, "peer"),
		.mtu = call_uint(c, "mtu"),
		.mac = call_given(c, "mac") ? &mac : NULL,
	};
	int ret = spec.mac != NULL ? parse_mac(c, &mac) : 0;

	if (ret != 0)
		return ret;
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
		l = link_find(ns, name);
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

/* The link that parameter `param` names, within `netns` when that is given. */
static int
call_link(struct call *c, const char *param, struct link **found)
{
	const char *name = call_string(c, param);
	struct link *l = NULL;
	struct netns *ns;
	int ret;

	ret = call_netns(c, "netns", &ns);
	if (ret == 0 && ns != NULL)
		l = link_find(ns, name);
	else if (ret == 0)
		ret = find_everywhere(c, name, &l);
	if (ret != 0)
		return ret;
	if (l == NULL)
		return sl_refuse(&c->err, ENOENT, "there is no link \"%s\"", name);
	*found = l;
	return 0;
}

static int
cmd_link_delete(struct call *c)
{
	struct link *l;
	int ret = call_link(c, "name", &l);

	return ret == 0 ? txn_delete_link(c->txn, l, &c->err) : ret;
}

/* ---- addresses ---- */

struct address_id {
	struct link_id link;
	struct prefix address;
};

static void
undo_address_add(struct gateway *gw, void *arg)
{
	const struct address_id *id = arg;
	struct link *l = link_find(netns_find(gw->netns, id->link.netns), id->link.name);

	link_address_delete(link_address_find(l, &id->address));
}

/* The link and the address of a call; not of a link that the batch is about to delete. */
static int
parse_address(struct call *c, struct link **l, struct prefix *address)
{
	const char *text = call_string(c, "address");
	int ret = call_link(c, "link", l);

	if (ret != 0)
		return ret;
	if (txn_deletes(c->txn, *l) || txn_deletes(c->txn, (*l)->ns))
		return sl_refuse(
			&c->err, ENOENT, "link: \"%s\" is deleted by this batch", (*l)->name);
	ret = prefix_parse(address, text, "address", &c->err);
	if (ret == 0 && strchr(text, '/') == NULL)
		return sl_refuse(&c->err, EINVAL,
			"address: \"%s\" has no prefix length: give ADDR/LEN", text);
	return ret;
}

static int
cmd_address_add(struct call *c)
{
	struct address_id *id;
	struct prefix address;
	struct link *l;
	int ret = txn_flush(c->txn, &c->err);

	if (ret == 0)
		ret = parse_address(c, &l, &address);
	if (ret != 0)
		return ret;
	id = malloc(sizeof(*id));
	if (id == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	id->address = address;
	snprintf(id->link.netns, sizeof(id->link.netns), "%s", l->ns->name);
	snprintf(id->link.name, sizeof(id->link.name), "%s", l->name);
	ret = link_address_add(l, &address, &c->err);
	if (ret == 0 && txn_on_undo(c->txn, undo_address_add, id, free) != 0) {
		undo_address_add(c->gw, id);
		ret = sl_refuse(&c->err, ENOMEM, "out of memory");
	}
	if (ret != 0)
		free(id);
	return ret;
}

static void
delete_address(struct gateway *gw, void *address)
{
	const struct link_address gone = *(struct link_address *)address;

	link_address_delete(address);
	translate_forget(gw, &gone);
}

static int
cmd_address_delete(struct call *c)
{
	struct link_address *a;
	struct prefix address;
	struct link *l;
	int ret = parse_address(c, &l, &address);

	if (ret != 0)
		return ret;
	a = link_address_find(l, &address);
	if (a == NULL)
		return sl_refuse(&c->err, ENOENT, "address: link \"%s\" has no address %s", l->name,
			call_string(c, "address"));
	return txn_delete(c->txn, a, delete_address, "the address", &c->err);
}

/* ---- list ---- */

struct list {
	uint32_t id;       /* of the next namespace */
	bool one;          /* and of no other */
	uint32_t at, gen;  /* the namespace that is being listed */
	unsigned int skip; /* its links listed already */
};

static json_t *
address_array(const struct link *l)
{
	const struct link_address *a;
	char addr[INET6_ADDRSTRLEN];
	json_t *all = json_array();

	for (a = link_address_first(l); a != NULL; a = link_address_next(a)) {
		inet_ntop(a->family == TUPLE_IPV4 ? AF_INET : AF_INET6, &a->addr, addr,
			sizeof(addr));
		json_array_append_new(all, json_sprintf("%s/%u", addr, a->len));
	}
	return all;
}

static json_t *
link_object(const struct link *l)
{
	const struct link *peer = link_peer(l);
	char vlan[16], mac[RTE_ETHER_ADDR_FMT_SIZE];

	snprintf(vlan, sizeof(vlan), l->inner != 0 ? "%u.%u" : "%u", l->vlan, l->inner);
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", RTE_ETHER_ADDR_BYTES(&l->mac));
	return json_pack("{s:s, s:s, s:s, s:s, s:s?, s:i, s:s, s:o}", "name", l->name, "netns",
		l->ns->name, "port", l->port->name, "vlan", vlan, "peer",
		peer != NULL ? peer->name : NULL, "mtu", (int)l->mtu, "mac", mac, "addresses",
		address_array(l));
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
	{"link.address.add", cmd_address_add, NULL, NULL},
	{"link.address.delete", cmd_address_delete, NULL, NULL},
	{"link.delete", cmd_link_delete, NULL, NULL},
	{"link.list", cmd_link_list, cmd_link_list_step, cmd_link_list_end},
	{0},
};
