/* SPDX-License-Identifier: BSD-3-Clause */
/* connlimit list: a walk over the counters in use, in slices; with `top` the largest of them. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "connlimit.h"

#define COUNTERS_PER_TURN 16384
#define ITEMS_PER_TURN    256u

struct listing {
	struct call *call;
	struct connlimit_walk walk;
	bool one_netns;
	uint32_t id, gen;   /* of it */
	unsigned int items; /* of this turn */
	unsigned int top;   /* 0: all, as they come */
	unsigned int n;
	struct connlimit_view best[]; /* [top], the largest first */
};

static int
list_begin(struct call *c)
{
	unsigned int top = call_uint(c, "top");
	struct listing *l = calloc(1, sizeof(*l) + top * sizeof(l->best[0]));
	struct netns *ns;
	int ret;

	if (l == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	c->state = l;
	ret = call_netns(c, "netns", &ns);
	if (ret != 0)
		return ret;
	l->call = c;
	l->top = top;
	l->one_netns = ns != NULL;
	if (ns != NULL) {
		l->id = ns->id;
		l->gen = ns->gen;
	}
	return 0;
}

static void
list_end(struct call *c)
{
	free(c->state);
	c->state = NULL;
}

static json_t *
view_json(const struct connlimit_view *v)
{
	bool ip6 = v->by.family == TUPLE_IPV6;
	char addr[INET6_ADDRSTRLEN], key[INET6_ADDRSTRLEN + 4] = "all", by[32] = "rule";

	if (v->by.family != 0) {
		inet_ntop(ip6 ? AF_INET6 : AF_INET, &v->addr, addr, sizeof(addr));
		if (v->by.prefix == (ip6 ? 128 : 32))
			snprintf(key, sizeof(key), "%s", addr);
		else
			snprintf(key, sizeof(key), "%s/%u", addr, v->by.prefix);
		snprintf(by, sizeof(by), "%s %s", ip6 ? "ip6" : "ip",
			v->by.daddr ? "daddr" : "saddr");
	}
	return json_pack("{s:s, s:I, s:s, s:s, s:I, s:I, s:b, s:I}", "netns", v->ns->name, "handle",
		(json_int_t)v->rule, "by", by, "key", key, "count", (json_int_t)v->count, "limit",
		(json_int_t)v->limit, "over", v->over, "refused", (json_int_t)v->refused);
}

/* Keeps the largest, in order; of equals the one that was seen first. */
static void
keep(struct listing *l, const struct connlimit_view *v)
{
	unsigned int i;

	if (l->n == l->top && v->count <= l->best[l->n - 1].count)
		return;
	if (l->n < l->top)
		l->n++;
	for (i = l->n - 1; i > 0 && l->best[i - 1].count < v->count; i--)
		l->best[i] = l->best[i - 1];
	l->best[i] = *v;
}

static bool
visit(const struct connlimit_view *v, void *arg)
{
	struct listing *l = arg;

	if (l->top != 0) {
		keep(l, v);
		return true;
	}
	call_item(l->call, view_json(v));
	return ++l->items < ITEMS_PER_TURN && !call_full(l->call);
}

static enum task_step
list_step(struct call *c)
{
	struct listing *l = c->state;
	struct netns *ns = NULL;
	unsigned int i;

	if (l->one_netns) {
		ns = netns_by_id(c->gw->netns, l->id);
		if (ns == NULL || ns->gen != l->gen)
			return TASK_DONE;
	}
	l->items = 0;
	if (connlimit_walk_slice(c->gw->limits, &l->walk, ns, COUNTERS_PER_TURN, visit, l))
		return TASK_MORE;
	for (i = 0; i < l->n; i++)
		call_item(c, view_json(&l->best[i]));
	return TASK_DONE;
}

const struct command_handler commands_connlimit[] = {
	{"connlimit.list", list_begin, list_step, list_end},
	{0},
};
