/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule_store.h"

#include <errno.h>
#include <stdlib.h>

#include "log.h"
#include "netns_rules.h"
#include "program.h"
#include "ruleset.h"
#include "txn.h"

SL_LOG_REGISTER(rule_store);

/* The changes of one batch to one namespace. */
struct rule_edit {
	struct netns *ns;
	struct rule_list *before; /* NULL when it has been put back */
	bool published;
};

/* netns->rule_list: what the namespace has of it. */
struct rule_store {
	struct rule_list *list;
	struct rule_edit *edit; /* of the batch that is under way, or NULL */
};

static void
undo_edit(struct gateway *gw, void *arg)
{
	struct rule_edit *e = arg;
	struct rule_store *s = e->ns->rule_list;
	struct sl_err err;

	rule_list_free(s->list);
	s->list = e->before;
	s->edit = NULL;
	e->before = NULL;
	if (e->published && netns_rules_publish(gw, e->ns, s->list, &err) != 0)
		SL_LOG(ERR, "rules of \"%s\" cannot be put back: %s", e->ns->name, err.msg);
}

static void
free_edit(void *arg)
{
	struct rule_edit *e = arg;

	rule_list_free(e->before);
	free(e);
}

static int
publish_edit(struct gateway *gw, void *arg, struct sl_err *err)
{
	struct rule_edit *e = arg;
	struct rule_store *s = e->ns->rule_list;
	int ret = netns_rules_publish(gw, e->ns, s->list, err);

	if (ret != 0)
		return ret;
	e->published = true;
	s->edit = NULL;
	return 0;
}

/* A program of rules; NULL: no memory to compile it, and then the commit says so. */
struct program_work {
	struct txn_work work;
	struct rules_program *program;
	bool shared;
};

static void
compile(struct txn_work *work)
{
	struct program_work *w = (struct program_work *)work;

	w->program = rules_program_share(w->program);
	w->shared = true;
}

static void
free_work(struct txn_work *work)
{
	struct program_work *w = (struct program_work *)work;

	if (w->shared)
		rules_program_put(w->program);
	else
		rules_program_free(w->program);
	free(w);
}

static struct txn_work *
make_work(void *arg)
{
	const struct rule_edit *e = arg;
	struct rules_program *p = ruleset_uncompiled(e->ns->rule_list->list);
	struct program_work *w = p != NULL ? malloc(sizeof(*w)) : NULL;

	if (w == NULL) {
		rules_program_free(p);
		return NULL;
	}
	*w = (struct program_work){.work = {.run = compile, .free = free_work}, .program = p};
	return &w->work;
}

static struct rule_store *
new_store(void)
{
	struct rule_store *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->list = rule_list_new();
	if (s->list != NULL)
		return s;
	free(s);
	return NULL;
}

static int
begin_edit(struct txn *t, struct netns *ns, struct rule_store *s)
{
	struct rule_edit *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return -ENOMEM;
	e->ns = ns;
	e->before = rule_list_copy(s->list);
	if (e->before == NULL || txn_on_undo(t, undo_edit, e, free_edit) != 0) {
		free_edit(e);
		return -ENOMEM;
	}
	s->edit = e;
	if (txn_on_work(t, make_work, e) != 0)
		return -ENOMEM;
	return txn_on_commit(t, publish_edit, e);
}

struct rule_list *
rule_store_edit(struct txn *t, struct netns *ns, struct sl_err *err)
{
	struct rule_store *s = ns->rule_list;

	if (txn_deletes(t, ns)) {
		sl_refuse(err, ENOENT, "namespace \"%s\" is deleted by this batch", ns->name);
		return NULL;
	}
	if (s == NULL)
		s = ns->rule_list = new_store();
	if (s == NULL || (s->edit == NULL && begin_edit(t, ns, s) != 0)) {
		sl_refuse(err, ENOMEM, "out of memory");
		return NULL;
	}
	return s->list;
}

void
rule_store_replace(struct netns *ns, struct rule_list *l)
{
	struct rule_store *s = ns->rule_list;

	rule_list_free(s->list);
	s->list = l;
}

const struct rule_list *
rule_store_list(const struct netns *ns)
{
	return ns->rule_list != NULL ? ns->rule_list->list : NULL;
}

void
rule_store_free(struct netns *ns)
{
	if (ns->rule_list == NULL)
		return;
	rule_list_free(ns->rule_list->list);
	free(ns->rule_list);
	ns->rule_list = NULL;
}
