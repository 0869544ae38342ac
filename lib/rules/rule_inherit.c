/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rules of a list that takes another's place go on with the counts of which. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rule_list.h"
#include "rules.h"

/* A rule that could leave its counts to another, by what has to be alike. */
struct heritage {
	char *text;
	struct rule *rule;
	bool taken;
};

/* Whether it has limits, whose counts and buckets live on. */
static bool
counts(const struct rule *r)
{
	uint32_t i;

	for (i = 0; i < r->n; i++)
		if (r->item[i].type == RULE_CT_COUNT || r->item[i].type == RULE_LIMIT)
			return true;
	return false;
}

static char *
text_of(const struct rule *r)
{
	return rule_text(r, RULE_TEXT_STATELESS | RULE_TEXT_ALIKE);
}

/* By text; those of one text as they come in the chain. */
static int
compare(const void *a, const void *b)
{
	const struct heritage *x = a, *y = b;
	int order = strcmp(x->text, y->text);

	if (order != 0)
		return order;
	return (x->rule->handle > y->rule->handle) - (x->rule->handle < y->rule->handle);
}

static void
free_all(struct heritage *h, uint32_t n)
{
	while (n-- > 0)
		free(h[n].text);
	free(h);
}

/* The rules of the chain that count, sorted. NULL: no memory. */
static struct heritage *
collect(const struct rule_chain_list *c, uint32_t *n)
{
	struct heritage *h = calloc(c->n, sizeof(*h));
	struct rule *r;
	uint32_t i;

	for (i = 0, *n = 0; h != NULL && i < c->n; i++) {
		/* Of one that was never live it is what it would have gone on with. */
		r = c->rule[i]->live != NULL ? c->rule[i] : c->rule[i]->before;
		if (r == NULL || !counts(r))
			continue;
		h[*n] = (struct heritage){.text = text_of(r), .rule = r};
		if (h[(*n)++].text == NULL) {
			free_all(h, *n);
			return NULL;
		}
	}
	if (h != NULL)
		qsort(h, *n, sizeof(*h), compare);
	return h;
}

/* The first of this text that nobody has; NULL: none. */
static struct heritage *
find(struct heritage *h, uint32_t n, const char *text)
{
	uint32_t lo = 0, hi = n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (strcmp(h[mid].text, text) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo < n && h[lo].taken && strcmp(h[lo].text, text) == 0)
		lo++;
	return lo < n && !h[lo].taken && strcmp(h[lo].text, text) == 0 ? &h[lo] : NULL;
}

static int
inherit_chain(const struct rule_chain_list *to, const struct rule_chain_list *from)
{
	struct heritage *h, *one;
	uint32_t i, n;
	char *text;
	int ret = 0;

	if (from->n == 0)
		return 0;
	h = collect(from, &n);
	if (h == NULL)
		return -ENOMEM;
	for (i = 0; i < to->n && n > 0 && ret == 0; i++) {
		if (!counts(to->rule[i]))
			continue;
		text = text_of(to->rule[i]);
		one = text != NULL ? find(h, n, text) : NULL;
		ret = text != NULL ? 0 : -ENOMEM;
		free(text);
		if (one == NULL)
			continue;
		one->taken = true;
		to->rule[i]->before = rule_get(one->rule);
	}
	free_all(h, n);
	return ret;
}

int
rule_list_inherit(struct rule_list *l, const struct rule_list *old)
{
	int c, ret = 0;

	for (c = 0; c < RULE_CHAINS && ret == 0; c++)
		ret = inherit_chain(&l->chain[c], &old->chain[c]);
	return ret;
}
