/* SPDX-License-Identifier: BSD-3-Clause */
#include "ruleset.h"

#include <errno.h>
#include <stdlib.h>

#include "err.h"
#include "live.h"
#include "program.h"
#include "rules.h"

#define GEN_MASK 0x7fffffffu

/* Control thread only. */
static uint32_t last_gen;

static uint32_t
next_gen(void)
{
	last_gen = (last_gen + 1) & GEN_MASK;
	if (last_gen == 0)
		last_gen = 1;
	return last_gen;
}

/* Which rule was refused: by its line where it came with a file, else by its text. */
static int
name_rule(const struct rule *r, int ret, struct sl_err *err)
{
	struct sl_err why;
	char *text;

	if (err == NULL)
		return ret;
	why = *err;
	if (r->line != 0)
		return sl_refuse(err, -ret, "file: line %u: %.400s", r->line, why.msg);
	text = rule_text(r, RULE_TEXT_STATELESS);
	sl_refuse(err, -ret, "rule \"%.100s\": %.300s", text != NULL ? text : "", why.msg);
	free(text);
	return ret;
}

/* Takes a reference to each rule, live. What is taken is counted in rs->n also when it fails. */
static int
take_rules(struct ruleset *rs, const struct rule_list *l, struct netns *ns, struct sl_err *err)
{
	const struct rule_chain_list *from;
	uint32_t i;
	int c, ret;

	for (c = 0; c < RULE_CHAINS; c++) {
		from = &l->chain[c];
		rs->first[c] = rs->n;
		for (i = 0; i < from->n; i++) {
			ret = rule_live_make(from->rule[i], ns, rs->ops, err);
			if (ret != 0)
				return name_rule(from->rule[i], ret, err);
			rs->rule[rs->n++] = rule_get(from->rule[i]);
		}
	}
	rs->first[RULE_CHAINS] = rs->n;
	return 0;
}

static void
describe(struct ruleset *rs)
{
	const struct rules_chain *c = rs->program->chain;

	rs->raw = c[RULE_RAW].n > 0 || c[RULE_RAW].drop;
	rs->forward = c[RULE_FORWARD].n > 0 || c[RULE_FORWARD].drop;
	rs->varies = c[RULE_FORWARD].varies;
	rs->nat = c[RULE_PREROUTING].n > 0 || c[RULE_PREROUTING].drop ||
		  c[RULE_POSTROUTING].n > 0 || c[RULE_POSTROUTING].drop;
}

/* More than a few are not worth fetching for: most of them will not be asked. */
static void
list_counts(struct ruleset *rs)
{
	uint32_t i, k, n = 0;

	for (i = rs->first[RULE_FORWARD]; i < rs->first[RULE_FORWARD + 1]; i++) {
		const struct rule *r = rs->rule[i];

		for (k = 0; k < r->n; k++) {
			if (r->item[k].type != RULE_CT_COUNT)
				continue;
			if (n == RULES_COUNTS)
				return;
			rs->count[n++] = r->live->object[k];
		}
	}
	rs->n_counts = (uint8_t)n;
}

static void
find_source(struct ruleset *rs)
{
	uint32_t i, k;

	for (i = rs->first[RULE_POSTROUTING]; i < rs->first[RULE_POSTROUTING + 1]; i++) {
		const struct rule *r = rs->rule[i];

		for (k = 0; k < r->n; k++) {
			if (r->item[k].type != RULE_NAT)
				continue;
			rs->source = &r->item[k];
			rs->source_object = r->live->object[k];
			return;
		}
	}
}

struct ruleset *
ruleset_new(const struct rule_list *l, struct netns *ns, const struct rules_ops *ops,
	struct sl_err *err)
{
	struct ruleset *rs = calloc(1, sizeof(*rs));
	uint32_t n = 0;
	int c;

	for (c = 0; c < RULE_CHAINS; c++)
		n += l->chain[c].n;
	if (rs == NULL)
		goto no_memory;
	rs->gen = next_gen();
	rs->ops = ops;
	rs->rule = calloc(RTE_MAX(n, 1u), sizeof(struct rule *));
	if (rs->rule == NULL)
		goto no_memory;
	if (take_rules(rs, l, ns, err) != 0)
		goto fail;
	rs->program = rules_program_new(l);
	if (rs->program == NULL)
		goto no_memory;
	describe(rs);
	list_counts(rs);
	find_source(rs);
	return rs;

no_memory:
	sl_refuse(err, ENOMEM, "no memory for %u rules", n);
fail:
	ruleset_free(rs);
	return NULL;
}

int
ruleset_compile(struct ruleset *rs, struct sl_err *err)
{
	struct rules_program *p = rules_program_share(rs->program);

	rs->program = p;
	if (p == NULL)
		return sl_refuse(err, ENOMEM, "no memory to compile %u rules", rs->n);
	rs->shared = true;
	return 0;
}

struct rules_program *
ruleset_uncompiled(const struct rule_list *l)
{
	struct rules_program *p;
	uint32_t n = 0;
	int c;

	for (c = 0; c < RULE_CHAINS; c++)
		n += l->chain[c].n;
	p = n < RULES_LONG ? NULL : rules_program_new(l);
	if (p != NULL && rules_program_known(p)) {
		rules_program_free(p);
		return NULL;
	}
	return p;
}

struct ruleset *
ruleset_create(const struct rule_list *l, struct netns *ns, const struct rules_ops *ops,
	struct sl_err *err)
{
	struct ruleset *rs = ruleset_new(l, ns, ops, err);

	if (rs != NULL && ruleset_compile(rs, err) != 0) {
		ruleset_free(rs);
		return NULL;
	}
	return rs;
}

void
ruleset_free(struct ruleset *rs)
{
	uint32_t i;

	if (rs == NULL)
		return;
	if (rs->shared)
		rules_program_put(rs->program);
	else
		rules_program_free(rs->program);
	for (i = 0; i < rs->n; i++)
		rule_put(rs->rule[i]);
	free(rs->rule);
	free(rs);
}

struct ruleset *
ruleset_publish(struct netns *ns, struct ruleset *rs)
{
	struct ruleset *old = ns->rules;

	sl_rcu_publish(&ns->rules, rs);
	return old;
}
