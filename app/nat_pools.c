/* SPDX-License-Identifier: BSD-3-Clause */
#include "nat_pools.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "forget.h"
#include "log.h"
#include "nat.h"
#include "own.h"
#include "rule_list.h"
#include "rule_store.h"
#include "task.h"
#include "txn.h"

SL_LOG_REGISTER(nat_pools);

#define LEAVING_MS 1000u

/* ---- their addresses ---- */

int
nat_pools_publish(struct netns *ns, struct sl_err *err)
{
	const struct nat_pool *p;
	struct own_range *range;
	unsigned int n = 0, i;
	int ret;

	for (p = nat_pool_next(ns, NULL); p != NULL; p = nat_pool_next(ns, p))
		n += nat_pool_config(p)->n;
	range = calloc(n + 1, sizeof(*range));
	if (range == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	n = 0;
	for (p = nat_pool_next(ns, NULL); p != NULL; p = nat_pool_next(ns, p)) {
		const struct nat_pool_config *c = nat_pool_config(p);

		for (i = 0; i < c->n; i++)
			range[n++] = (struct own_range){.lo = c->range[i].lo,
				.hi = c->range[i].hi,
				.family = c->family};
	}
	ret = own_replace(ns, OWN_POOLS, range, n, err);
	free(range);
	return ret;
}

/* ---- their end ---- */

static void
take_away(struct nat_pool *pool)
{
	struct netns *ns = nat_pool_netns(pool);
	struct sl_err err;

	nat_pool_remove(pool);
	if (nat_pools_publish(ns, &err) != 0)
		SL_LOG(ERR, "addresses of pool \"%s\" stay the gateway's: %s",
			nat_pool_config(pool)->name, err.msg);
}

static void
free_pool(void *pool)
{
	nat_pool_free(pool);
}

/* A grace period after the last time that somebody could use it. Without memory for it, the pool
 * stays until the gateway ends. */
static void
free_later(struct nat_pool *pool)
{
	if (task_after_grace(free_pool, pool) != 0)
		SL_LOG(WARNING, "pool \"%s\": no memory to wait until it can be freed",
			nat_pool_config(pool)->name);
}

/* A pool whose connections have ended but for those that are past their time, which workers find
 * sooner or later. */
struct leaving {
	struct task task;
	struct nat_pool *pool;
};

static enum task_step
leaving_step(struct task *t)
{
	struct leaving *l = (struct leaving *)((char *)t - offsetof(struct leaving, task));
	struct nat_pool_stats s;

	nat_pool_stats(l->pool, &s);
	if (s.connections != 0) {
		task_wake_after(&l->task, LEAVING_MS);
		return TASK_WAIT;
	}
	free_later(l->pool);
	free(l);
	return TASK_DONE;
}

/* In replay, where no time passes here, one that still has connections stays to the end. */
static void
connections_ended(void *pool)
{
	struct leaving *l;
	struct nat_pool_stats s;

	nat_pool_stats(pool, &s);
	if (s.connections == 0) {
		free_later(pool);
		return;
	}
	l = task_live() ? calloc(1, sizeof(*l)) : NULL;
	if (l == NULL)
		return;
	l->task.step = leaving_step;
	l->pool = pool;
	task_wake_after(&l->task, LEAVING_MS);
}

void
nat_pools_delete(struct gateway *gw, struct nat_pool *pool)
{
	take_away(pool);
	if (forget_connections(gw, nat_pool_has_entry, pool, connections_ended) != 0)
		SL_LOG(ERR, "pool \"%s\": no memory to end its connections, which stay",
			nat_pool_config(pool)->name);
}

void
nat_pools_undo(struct nat_pool *pool)
{
	take_away(pool);
	free_later(pool);
}

/* ---- their rules ---- */

/* The rule's statement that translates to a pool, or NULL. */
static struct rule_nat *
pool_statement(const struct rule *r)
{
	const struct rule_item *last = r->n > 0 ? &r->item[r->n - 1] : NULL;

	if (last == NULL || last->type != RULE_NAT)
		return NULL;
	return last->nat->type == RULE_SNAT_POOL || last->nat->type == RULE_NAT64 ? last->nat
										   : NULL;
}

/* The first rule behind `*i` of all chains that has the pool. */
static const struct rule *
next_user(const struct rule_list *l, const char *pool, unsigned int *chain, uint32_t *i)
{
	const struct rule_nat *n;

	for (; *chain < RULE_CHAINS; ++*chain, *i = 0) {
		while (*i < l->chain[*chain].n) {
			const struct rule *r = l->chain[*chain].rule[(*i)++];

			n = pool_statement(r);
			if (n != NULL && strcmp(n->pool, pool) == 0)
				return r;
		}
	}
	return NULL;
}

const struct rule *
nat_pools_user(const struct nat_pool *pool)
{
	const struct rule_list *l = rule_store_list(nat_pool_netns(pool));
	unsigned int chain = 0;
	uint32_t i = 0;

	return l != NULL ? next_user(l, nat_pool_config(pool)->name, &chain, &i) : NULL;
}

/* With NAT64 always (RFC 6146 3.5). */
static bool
endpoint_independent(const struct rule_nat *n)
{
	return n->endpoint_independent || n->type == RULE_NAT64;
}

static bool
same_use(const struct rule_nat *a, const struct rule_nat *b)
{
	return b != NULL && a->block_size == b->block_size && a->blocks == b->blocks &&
	       a->deterministic == b->deterministic &&
	       endpoint_independent(a) == endpoint_independent(b) && a->filter == b->filter;
}

/* Rules of one pool hand it out in one way, since else one would give what the other has given. */
static int
agrees(const struct rule_list *l, const struct rule *r, const struct rule_nat *n,
	struct sl_err *err)
{
	const struct rule *other;
	unsigned int chain = 0;
	uint32_t i = 0;

	while ((other = next_user(l, n->pool, &chain, &i)) != NULL) {
		if (other == r)
			continue;
		if (!same_use(n, pool_statement(other)))
			return sl_refuse(err, EINVAL,
				"pool \"%s\" is handed out otherwise by rule %u: say the same",
				n->pool, (unsigned int)other->handle);
		if (n->deterministic)
			return sl_refuse(err, EINVAL,
				"pool \"%s\": rule %u has it, and a deterministic one is for one "
				"rule: put all hosts into that",
				n->pool, (unsigned int)other->handle);
	}
	return 0;
}

static int
family_fits(struct rule_nat *n, uint8_t family, struct sl_err *err)
{
	uint8_t want = n->type == RULE_NAT64 ? TUPLE_IPV4 : n->family;

	if (want != 0 && want != family)
		return sl_refuse(err, EINVAL, "pool \"%s\" is of %s, and the rule needs %s",
			n->pool, family == TUPLE_IPV4 ? "IPv4" : "IPv6",
			want == TUPLE_IPV4 ? "IPv4" : "IPv6");
	if (n->type == RULE_SNAT_POOL)
		n->family = family;
	return 0;
}

/* ---- how a rule has it ---- */

/* Hosts that a rule is for. */
struct hosts {
	struct nat_pool_range *range;
	unsigned int n;
};

/* The first match of the rule that names its sources; NULL: there is none. */
static const struct rule_match *
source_match(const struct rule *r, uint8_t family)
{
	uint8_t field = family == TUPLE_IPV4 ? RULE_IP_SADDR : RULE_IP6_SADDR;
	uint32_t i;

	for (i = 0; i < r->n; i++)
		if (r->item[i].type == RULE_MATCH && r->item[i].match.field == field &&
			!r->item[i].match.negate)
			return &r->item[i].match;
	return NULL;
}

static int
hosts_of(const struct rule *r, const struct rule_nat *n, uint8_t family, struct hosts *h,
	struct sl_err *err)
{
	const struct rule_match *m = n->deterministic ? source_match(r, family) : NULL;
	uint32_t i;

	*h = (struct hosts){NULL, 0};
	if (!n->deterministic)
		return 0;
	if (m == NULL)
		return sl_refuse(err, EINVAL,
			"pool \"%s\": deterministic blocks are for hosts that the rule names, by "
			"\"%s saddr\"",
			n->pool, family == TUPLE_IPV4 ? "ip" : "ip6");
	h->range = calloc(m->n, sizeof(*h->range));
	if (h->range == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	for (i = 0; i < m->n; i++)
		h->range[i] = (struct nat_pool_range){m->range[i].lo.addr, m->range[i].hi.addr};
	h->n = m->n;
	return 0;
}

static enum nat_filter
filter_of(const struct rule_nat *n)
{
	switch (n->filter) {
	case RULE_FILTER_ENDPOINT_INDEPENDENT:
		return NAT_FILTER_NONE;
	case RULE_FILTER_ADDRESS_DEPENDENT:
		return NAT_FILTER_ADDRESS;
	default:
		return NAT_FILTER_PORT;
	}
}

static struct nat_pool_use
use_of(const struct rule_nat *n, struct nat_pool *pool)
{
	return (struct nat_pool_use){
		.pool = pool,
		.block_size = n->block_size,
		.blocks = n->block_size != 0 && n->blocks == 0 ? 1 : n->blocks,
		.deterministic = n->deterministic,
		.endpoint_independent = endpoint_independent(n),
		.filter = (uint8_t)filter_of(n),
	};
}

int
nat_pools_check(const struct txn *t, const struct netns *ns, const struct rule_list *l,
	struct rule *r, struct sl_err *err)
{
	struct rule_nat *n = pool_statement(r);
	struct nat_pool_use use;
	struct nat_pool *pool;
	struct hosts hosts;
	int ret;

	if (n == NULL)
		return 0;
	pool = nat_pool_find(ns, n->pool);
	if (pool == NULL)
		return sl_refuse(err, ENOENT,
			"there is no pool \"%s\" in namespace \"%s\": nat pool add %s %s ADDR",
			n->pool, ns->name, ns->name, n->pool);
	if (txn_deletes(t, pool))
		return sl_refuse(err, ENOENT, "pool \"%s\" is deleted by this batch", n->pool);
	ret = family_fits(n, nat_pool_config(pool)->family, err);
	if (ret == 0)
		ret = agrees(l, r, n, err);
	if (ret == 0)
		ret = hosts_of(r, n, nat_pool_config(pool)->family, &hosts, err);
	if (ret != 0)
		return ret;
	use = use_of(n, pool);
	ret = nat_pool_use_valid(&use, hosts.range, hosts.n, err);
	free(hosts.range);
	return ret;
}

struct nat_pool_use *
nat_pools_attach(struct gateway *gw, struct netns *ns, const struct rule *r,
	const struct rule_item *item, struct sl_err *err)
{
	struct nat_pool *pool = nat_pool_find(ns, item->nat->pool);
	struct nat_pool_use *use;
	struct hosts hosts;

	if (pool == NULL) {
		sl_refuse(err, ENOENT, "there is no pool \"%s\" in namespace \"%s\"",
			item->nat->pool, ns->name);
		return NULL;
	}
	if (hosts_of(r, item->nat, nat_pool_config(pool)->family, &hosts, err) != 0)
		return NULL;
	use = malloc(sizeof(*use));
	if (use == NULL)
		sl_refuse(err, ENOMEM, "out of memory");
	else
		*use = use_of(item->nat, pool);
	if (use != NULL && nat_pool_prepare(gw->nat, use, hosts.range, hosts.n, err) != 0) {
		free(use);
		use = NULL;
	}
	free(hosts.range);
	return use;
}
