/* SPDX-License-Identifier: BSD-3-Clause */
/* The pools of one namespace or of all, in slices: what `nat pool list` and `nat list` show. */
#ifndef NAT_POOL_LIST_H
#define NAT_POOL_LIST_H

#include "command.h"
#include "pool.h"

/* Begins; c->state is to be freed at the end. 0, or negative with c->err. */
int nat_pool_list_start(struct call *c);

/* Goes on; object() makes the item of a pool, NULL: no memory. */
enum task_step nat_pool_list_step(
	struct call *c, json_t *(*object)(const struct netns *ns, const struct nat_pool *pool));

#endif
