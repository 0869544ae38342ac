/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rule_list *
rule_list_new(void)
{
	return calloc(1, sizeof(struct rule_list));
}

struct rule_list *
rule_list_copy(const struct rule_list *l)
{
	struct rule_list *copy = rule_list_new();
	struct rule_chain_list *to;
	const struct rule_chain_list *from;
	uint32_t i;
	int c;

	if (copy == NULL)
		return NULL;
	copy->last_handle = l->last_handle;
	for (c = 0; c < RULE_CHAINS; c++) {
		from = &l->chain[c];
		to = &copy->chain[c];
		to->drop = from->drop;
		if (from->n == 0)
			continue;
		to->rule = reallocarray(NULL, from->n, sizeof(struct rule *));
		if (to->rule == NULL) {
			rule_list_free(copy);
			return NULL;
		}
		for (i = 0; i < from->n; i++)
			to->rule[i] = rule_get(from->rule[i]);
		to->n = to->room = from->n;
	}
	return copy;
}

static void
flush_chain(struct rule_chain_list *c)
{
	uint32_t i;

	for (i = 0; i < c->n; i++)
		rule_put(c->rule[i]);
	free(c->rule);
	c->rule = NULL;
	c->n = c->room = 0;
}

void
rule_list_flush(struct rule_list *l, enum rule_chain chain)
{
	int c;

	for (c = 0; c < RULE_CHAINS; c++)
		if (chain == RULE_CHAINS || chain == (enum rule_chain)c)
			flush_chain(&l->chain[c]);
}

void
rule_list_free(struct rule_list *l)
{
	if (l == NULL)
		return;
	rule_list_flush(l, RULE_CHAINS);
	free(l);
}

bool
rule_list_empty(const struct rule_list *l)
{
	int c;

	for (c = 0; c < RULE_CHAINS; c++)
		if (l->chain[c].n > 0 || l->chain[c].drop)
			return false;
	return true;
}

int
rule_list_add(struct rule_list *l, struct rule *r)
{
	struct rule_chain_list *c = &l->chain[r->chain];
	struct rule **grown;
	uint32_t room;

	if (c->n == c->room) {
		room = c->room != 0 ? 2 * c->room : 8;
		grown = reallocarray(c->rule, room, sizeof(struct rule *));
		if (grown == NULL)
			return -ENOMEM;
		c->rule = grown;
		c->room = room;
	}
	r->handle = ++l->last_handle;
	c->rule[c->n++] = r;
	return 0;
}

/* Where the rule of this handle is: handles ascend within a chain. */
static struct rule_chain_list *
locate(const struct rule_list *l, uint64_t handle, uint32_t *at)
{
	struct rule_chain_list *c;
	uint32_t lo, hi, mid;
	int i;

	for (i = 0; i < RULE_CHAINS; i++) {
		c = (struct rule_chain_list *)(uintptr_t)&l->chain[i];
		for (lo = 0, hi = c->n; lo < hi;) {
			mid = lo + (hi - lo) / 2;
			if (c->rule[mid]->handle < handle)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo < c->n && c->rule[lo]->handle == handle) {
			*at = lo;
			return c;
		}
	}
	return NULL;
}

struct rule *
rule_list_find(const struct rule_list *l, uint64_t handle)
{
	uint32_t at;
	const struct rule_chain_list *c = locate(l, handle, &at);

	return c == NULL ? NULL : c->rule[at];
}

int
rule_list_delete(struct rule_list *l, uint64_t handle)
{
	uint32_t at;
	struct rule_chain_list *c = locate(l, handle, &at);

	if (c == NULL)
		return -ENOENT;
	rule_put(c->rule[at]);
	memmove(&c->rule[at], &c->rule[at + 1], (c->n - at - 1) * sizeof(struct rule *));
	c->n--;
	return 0;
}

void
rule_list_renumber(struct rule_list *l, uint64_t last)
{
	uint32_t i;
	int c;

	l->last_handle = last;
	for (c = 0; c < RULE_CHAINS; c++)
		for (i = 0; i < l->chain[c].n; i++)
			l->chain[c].rule[i]->handle = ++l->last_handle;
}
