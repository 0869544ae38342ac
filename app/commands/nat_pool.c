/* SPDX-License-Identifier: BSD-3-Clause */
/* nat pool add, list, delete. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "nat_pool_list.h"
#include "nat_pools.h"
#include "prefix.h"
#include "rule.h"
#include "txn.h"

#define LIST_SLICE 64u

/* ---- add ---- */

static bool
of_a_host(const struct prefix *p)
{
	const struct in6_addr *a6 = (const struct in6_addr *)&p->addr;
	uint32_t a = ntohl(p->addr.w[0]);

	if (p->family == TUPLE_IPV4)
		return a >> 24 != 0 && a >> 24 != IN_LOOPBACKNET && a < INADDR_UNSPEC_GROUP;
	return !IN6_IS_ADDR_UNSPECIFIED(a6) && !IN6_IS_ADDR_LOOPBACK(a6) &&
	       !IN6_IS_ADDR_MULTICAST(a6) && !IN6_IS_ADDR_V4MAPPED(a6);
}

static int
parse_end(const char *text, uint8_t *family, struct tuple_addr *addr, struct sl_err *err)
{
	struct prefix p;
	char q[48];
	int ret;

	if (strchr(text, '/') != NULL)
		return sl_refuse(err, EINVAL,
			"addresses: \"%s\" is a prefix: give ADDR or ADDR-ADDR",
			grammar_quote(text, q, sizeof(q)));
	ret = prefix_parse(&p, text, "addresses", err);
	if (ret != 0)
		return ret;
	if (!of_a_host(&p))
		return sl_refuse(err, EINVAL, "addresses: %s is no address that a host can have",
			text);
	*family = p.family;
	*addr = p.addr;
	return 0;
}

/* ADDR[-ADDR] */
static int
parse_range(const char *text, uint8_t *family, struct nat_pool_range *r, struct sl_err *err)
{
	const char *dash = strchr(text, '-');
	char first[64], q[48];
	uint8_t other;
	int ret;

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(text, "-"), text);
	ret = parse_end(first, family, &r->lo, err);
	if (ret != 0)
		return ret;
	r->hi = r->lo;
	other = *family;
	if (dash != NULL)
		ret = parse_end(dash + 1, &other, &r->hi, err);
	if (ret == 0 && other != *family)
		return sl_refuse(err, EINVAL,
			"addresses: \"%s\" begins in one family and ends in the other",
			grammar_quote(text, q, sizeof(q)));
	return ret;
}

static struct nat_pool_range *
parse_ranges(const json_t *list, uint8_t *family, struct sl_err *err)
{
	struct nat_pool_range *range = calloc(json_array_size(list) + 1, sizeof(*range));
	const json_t *text;
	uint8_t of = 0;
	size_t i;
	int ret = 0;

	if (range == NULL) {
		sl_refuse(err, ENOMEM, "out of memory");
		return NULL;
	}
	*family = 0;
	json_array_foreach(list, i, text) {
		ret = parse_range(json_string_value(text), &of, &range[i], err);
		if (ret == 0 && *family != 0 && of != *family)
			ret = sl_refuse(err, EINVAL, "addresses: a pool has IPv4 addresses or IPv6 "
				"ones: make two");
		if (ret != 0) {
			free(range);
			return NULL;
		}
		*family = of;
	}
	return range;
}

/* P[-Q] */
static int
parse_ports(const char *text, uint16_t *lo, uint16_t *hi, struct sl_err *err)
{
	unsigned int first, last;
	char q[48];
	int end = 0, n;

	*lo = *hi = 0;
	if (text == NULL)
		return 0;
	n = sscanf(text, "%5u%n-%5u%n", &first, &end, &last, &end);
	if (n == 1)
		last = first;
	if (n < 1 || text[end] != '\0' || strspn(text, "0123456789-") != strlen(text) ||
		first == 0 || first > UINT16_MAX || last == 0 || last > UINT16_MAX)
		return sl_refuse(err, EINVAL, "ports: \"%s\" are no ports of 1-65535: give P-Q",
			grammar_quote(text, q, sizeof(q)));
	*lo = (uint16_t)first;
	*hi = (uint16_t)last;
	return 0;
}

static int
publish(struct gateway *gw, void *ns, struct sl_err *err)
{
	(void)gw;
	return nat_pools_publish(ns, err);
}

static void
undo_add(struct gateway *gw, void *pool)
{
	(void)gw;
	nat_pools_undo(pool);
}

static int
add(struct call *c, struct netns *ns, const struct nat_pool_config *config)
{
	struct nat_pool *pool = nat_pool_find(ns, config->name);
	int ret;

	if (pool != NULL && txn_deletes(c->txn, pool))
		return sl_refuse(&c->err, EEXIST,
			"pool \"%s\" is deleted by this batch: add it again in a later one",
			config->name);
	ret = nat_pool_add(c->gw->nat, ns, config, &pool, &c->err);
	if (ret != 0)
		return ret;
	if (txn_on_undo(c->txn, undo_add, pool, NULL) != 0) {
		nat_pools_undo(pool);
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	}
	if (txn_on_commit(c->txn, publish, ns) != 0)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	return 0;
}

/* The namespace of a change. */
static int
call_change(struct call *c, struct netns **ns)
{
	int ret = txn_flush(c->txn, &c->err);

	if (ret == 0)
		ret = call_netns(c, "netns", ns);
	if (ret == 0 && txn_deletes(c->txn, *ns))
		ret = sl_refuse(&c->err, ENOENT, "namespace \"%s\" is deleted by this batch",
			(*ns)->name);
	return ret;
}

static int
cmd_pool_add(struct call *c)
{
	struct nat_pool_config config = {.name = call_string(c, "name")};
	const json_t *addresses = json_object_get(c->params, "addresses");
	struct nat_pool_range *range;
	struct netns *ns;
	int ret = call_change(c, &ns);

	if (ret == 0)
		ret = parse_ports(call_string(c, "ports"), &config.port_lo, &config.port_hi,
			&c->err);
	if (ret != 0)
		return ret;
	range = parse_ranges(addresses, &config.family, &c->err);
	if (range == NULL)
		return -EINVAL;
	config.range = range;
	config.n = (unsigned int)json_array_size(addresses);
	ret = add(c, ns, &config);
	free(range);
	return ret;
}

/* ---- delete ---- */

static void
delete_pool(struct gateway *gw, void *pool)
{
	nat_pools_delete(gw, pool);
}

static int
cmd_pool_delete(struct call *c)
{
	const char *name = call_string(c, "name");
	const struct rule *user;
	struct nat_pool *pool;
	struct netns *ns;
	char what[96];
	int ret = call_change(c, &ns);

	if (ret != 0)
		return ret;
	pool = nat_pool_find(ns, name);
	if (pool == NULL)
		return sl_refuse(&c->err, ENOENT, "name: namespace \"%s\" has no pool \"%s\"",
			ns->name, name);
	user = nat_pools_user(pool);
	if (user != NULL)
		return sl_refuse(&c->err, EBUSY,
			"name: rule %u of namespace \"%s\" has pool \"%s\": delete that first",
			(unsigned int)user->handle, ns->name, name);
	snprintf(what, sizeof(what), "pool \"%s\"", name);
	return txn_delete(c->txn, pool, delete_pool, what, &c->err);
}

/* ---- list ---- */

struct list {
	uint32_t id; /* of the next namespace */
	bool one;    /* and of no other */
	uint32_t gen;
};

static json_t *
range_text(uint8_t family, const struct nat_pool_range *r)
{
	int af = family == TUPLE_IPV4 ? AF_INET : AF_INET6;
	char lo[INET6_ADDRSTRLEN], hi[INET6_ADDRSTRLEN];

	inet_ntop(af, &r->lo, lo, sizeof(lo));
	inet_ntop(af, &r->hi, hi, sizeof(hi));
	return strcmp(lo, hi) == 0 ? json_string(lo) : json_sprintf("%s-%s", lo, hi);
}

static json_t *
pool_object(const struct netns *ns, const struct nat_pool *pool)
{
	const struct nat_pool_config *config = nat_pool_config(pool);
	json_t *addresses = json_array(), *o;
	unsigned int i;

	for (i = 0; i < config->n; i++)
		json_array_append_new(addresses, range_text(config->family, &config->range[i]));
	o = json_pack("{s:s, s:s, s:o}", "netns", ns->name, "name", config->name, "addresses",
		addresses);
	if (o != NULL && config->port_hi != 0)
		json_object_set_new(o, "ports",
			json_sprintf("%u-%u", config->port_lo, config->port_hi));
	return o;
}

int
nat_pool_list_start(struct call *c)
{
	struct list *list;
	struct netns *ns;
	int ret = call_netns(c, "netns", &ns);

	if (ret != 0)
		return ret;
	c->state = list = calloc(1, sizeof(*list));
	if (list == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	if (ns != NULL)
		*list = (struct list){.id = ns->id, .one = true, .gen = ns->gen};
	return 0;
}

enum task_step
nat_pool_list_step(
	struct call *c, json_t *(*object)(const struct netns *ns, const struct nat_pool *pool))
{
	struct list *list = c->state;
	const struct nat_pool *pool;
	const struct netns *ns;
	unsigned int n = 0;
	uint32_t id;

	while (n++ < LIST_SLICE && !call_full(c)) {
		id = list->id;
		ns = netns_next(c->gw->netns, &id);
		if (ns == NULL || (list->one && (ns->id != list->id || ns->gen != list->gen)))
			return TASK_DONE;
		for (pool = nat_pool_next(ns, NULL); pool != NULL; pool = nat_pool_next(ns, pool))
			call_item(c, object(ns, pool));
		if (list->one)
			return TASK_DONE;
		list->id = id;
	}
	return TASK_MORE;
}

static enum task_step
cmd_pool_list_step(struct call *c)
{
	return nat_pool_list_step(c, pool_object);
}

static void
cmd_pool_list_end(struct call *c)
{
	free(c->state);
}

const struct command_handler commands_nat_pool[] = {
	{"nat.pool.add", cmd_pool_add, NULL, NULL},
	{"nat.pool.delete", cmd_pool_delete, NULL, NULL},
	{"nat.pool.list", nat_pool_list_start, cmd_pool_list_step, cmd_pool_list_end},
	{0},
};
