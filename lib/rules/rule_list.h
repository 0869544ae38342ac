/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of a namespace as they are edited and listed: for each chain its rules in order, and
 * its policy. Control thread only. What workers evaluate is an immutable set compiled of it
 * (rules_publish()); a list is edited as often as one likes before it is published.
 */
#ifndef RULE_LIST_H
#define RULE_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "rule.h"

struct sl_err;

struct rule_chain_list {
	struct rule **rule; /* one reference each */
	uint32_t n, room;
	bool drop; /* policy */
};

struct rule_list {
	struct rule_chain_list chain[RULE_CHAINS];
	uint64_t last_handle; /* given to a rule of this list, ever */
};

struct rule_list *rule_list_new(void);                               /* NULL: no memory */
struct rule_list *rule_list_copy(const struct rule_list *l);         /* shares the rules */
void rule_list_free(struct rule_list *l);                            /* NULL is allowed */

/* No rules, and every policy is accept. */
bool rule_list_empty(const struct rule_list *l);

/* Appends to the rule's chain and gives it the next handle; takes the reference. 0 or -ENOMEM
 * (the reference stays the caller's). */
int rule_list_add(struct rule_list *l, struct rule *r);

/* 0 or -ENOENT. */
int rule_list_delete(struct rule_list *l, uint64_t handle);

/* All rules of a chain go, its policy stays; RULE_CHAINS: of all chains. */
void rule_list_flush(struct rule_list *l, enum rule_chain chain);

/* Gives all rules handles behind `last`, in order: for a list that takes the place of another. */
void rule_list_renumber(struct rule_list *l, uint64_t last);

/*
 * The list is to take the place of `old`: each rule with a `ct count` or `limit rate` that is as
 * one of the old list, but for the number of a `ct count`, in the same chain, goes on with the
 * counts and buckets of that (rule.before). Each old rule has one heir at most, in order. 0 or
 * -ENOMEM.
 */
int rule_list_inherit(struct rule_list *l, const struct rule_list *old);

struct rule *rule_list_find(const struct rule_list *l, uint64_t handle); /* borrowed, or NULL */

#endif
