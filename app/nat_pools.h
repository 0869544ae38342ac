/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pools of addresses in the gateway: what of them lib/nat does not know, the rules that have them,
 * and the addresses that are the gateway's own by them. Control thread only.
 */
#ifndef NAT_POOLS_H
#define NAT_POOLS_H

#include "gateway.h"
#include "pool.h"

struct rule;
struct rule_item;
struct rule_list;
struct sl_err;
struct txn;

/* The addresses of the namespace's pools are the gateway's own (own.h) as they are now. 0 or
 * -ENOMEM, with nothing changed. */
int nat_pools_publish(struct netns *ns, struct sl_err *err);

/* The pool goes: its addresses at once, then its connections, and itself when they are gone. */
void nat_pools_delete(struct gateway *gw, struct nat_pool *pool);

/* Of a batch that is undone: a pool that has never had a connection. */
void nat_pools_undo(struct nat_pool *pool);

/* A rule of the namespace, as it is edited, that has the pool; or NULL. */
const struct rule *nat_pools_user(const struct nat_pool *pool);

/*
 * Before a rule that translates to a pool is put to the list: refuses one whose pool is not there,
 * is deleted by the batch, of the wrong family, or used otherwise by a rule of the list. A rule for
 * both families becomes one for the pool's. 0 or -errno; 0 for all other rules.
 */
int nat_pools_check(const struct txn *t, const struct netns *ns, const struct rule_list *l,
	struct rule *r, struct sl_err *err);

/* What a statement of a rule that is about to be published has of the pool that it names; for
 * rules_ops.attach(). NULL with err filled. To be freed with free(). */
struct nat_pool_use *nat_pools_attach(struct gateway *gw, struct netns *ns, const struct rule *r,
	const struct rule_item *item, struct sl_err *err);

#endif
