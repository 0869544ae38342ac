/* SPDX-License-Identifier: BSD-3-Clause */
#include "txn.h"

#include <errno.h>
#include <jansson.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "log.h"
#include "netns_job.h"
#include "port.h"
#include "resize_job.h"
#include "tcp_table.h"

SL_LOG_REGISTER(txn);

struct undo {
	void (*fn)(struct gateway *gw, void *arg);
	void *arg;
	void (*free_arg)(void *arg);
	struct undo *before;
};

/* What is to be deleted, in the order of the requests. */
struct doomed {
	void **object;
	unsigned int n, room;
};

/* One of those deleted by a function. */
struct deletion {
	void *object;
	void (*fn)(struct gateway *gw, void *object);
};

struct step {
	int (*fn)(struct gateway *gw, void *arg, struct sl_err *err);
	void *arg;
	struct step *after;
};

struct work_maker {
	struct txn_work *(*make)(void *arg);
	void *arg;
	struct work_maker *next;
};

struct txn {
	struct gateway *gw;
	struct work_maker *works;
	struct undo *last;
	struct step *steps, **steps_end; /* of the commit */
	struct deletion *others;
	unsigned int n_others, room_others;
	struct doomed links, netns, ports;
	void *doomed_set; /* search tree of all of them */
	/* namespaces to be created with the next flush: an object whose keys are their names */
	json_t *names;
	char parent[NETNS_NAME_MAX + 1];
	struct resize_job *resize; /* to be started; NULL: none */
	/* while a commit goes on */
	unsigned int pending; /* parts of it */
	void (*done)(void *arg);
	void *done_arg;
};

struct txn *
txn_begin(struct gateway *gw)
{
	struct txn *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->gw = gw;
	t->steps_end = &t->steps;
	t->names = json_object();
	if (t->names == NULL) {
		free(t);
		return NULL;
	}
	return t;
}

static void
keep_node(void *node)
{
	(void)node;
}

static void
txn_free(struct txn *t)
{
	struct work_maker *m;
	struct undo *u;
	struct step *s;

	while ((m = t->works) != NULL) {
		t->works = m->next;
		free(m);
	}
	while ((s = t->steps) != NULL) {
		t->steps = s->after;
		free(s);
	}
	while ((u = t->last) != NULL) {
		t->last = u->before;
		if (u->free_arg != NULL)
			u->free_arg(u->arg);
		free(u);
	}
	tdestroy(t->doomed_set, keep_node);
	free(t->others);
	free(t->links.object);
	free(t->netns.object);
	free(t->ports.object);
	json_decref(t->names);
	free(t);
}

int
txn_on_undo(struct txn *t, void (*undo)(struct gateway *gw, void *arg), void *arg,
	void (*free_arg)(void *arg))
{
	struct undo *u = malloc(sizeof(*u));

	if (u == NULL)
		return -ENOMEM;
	*u = (struct undo){.fn = undo, .arg = arg, .free_arg = free_arg, .before = t->last};
	t->last = u;
	return 0;
}

int
txn_on_commit(struct txn *t, int (*fn)(struct gateway *gw, void *arg, struct sl_err *err),
	void *arg)
{
	struct step *s = malloc(sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	*s = (struct step){.fn = fn, .arg = arg};
	*t->steps_end = s;
	t->steps_end = &s->after;
	return 0;
}

int
txn_on_work(struct txn *t, struct txn_work *(*make)(void *arg), void *arg)
{
	struct work_maker *m = malloc(sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	*m = (struct work_maker){.make = make, .arg = arg, .next = t->works};
	t->works = m;
	return 0;
}

struct txn_work *
txn_work(const struct txn *t)
{
	struct txn_work *all = NULL, *w;
	const struct work_maker *m;

	for (m = t->works; m != NULL; m = m->next) {
		w = m->make(m->arg);
		if (w == NULL)
			continue;
		w->next = all;
		all = w;
	}
	return all;
}

void
txn_work_free(struct txn_work *all)
{
	struct txn_work *next;

	for (; all != NULL; all = next) {
		next = all->next;
		all->free(all);
	}
}

static int
run_steps(struct txn *t, struct sl_err *err)
{
	struct step *s;
	int ret = 0;

	for (s = t->steps; s != NULL && ret == 0; s = s->after)
		ret = s->fn(t->gw, s->arg, err);
	return ret;
}

/* ---- namespaces to be created ---- */

int
txn_add_netns(struct txn *t, const char *name, const char *parent, struct sl_err *err)
{
	struct netns *ns;
	int ret;

	if (json_object_size(t->names) > 0 && strcmp(t->parent, parent) != 0) {
		ret = txn_flush(t, err);
		if (ret != 0)
			return ret;
	}
	ret = netns_name_valid(name, err);
	if (ret != 0)
		return ret;
	ns = netns_find(t->gw->netns, name);
	if (ns != NULL && txn_deletes(t, ns))
		return sl_refuse(err, EEXIST,
			"namespace \"%s\" is deleted by this batch: add it again in "
			"a later one",
			name);
	if (ns != NULL)
		return sl_refuse(err, EEXIST, "namespace \"%s\" exists", name);
	if (json_object_get(t->names, name) != NULL)
		return sl_refuse(
			err, EEXIST, "namespace \"%s\" is added twice by this batch", name);
	if (netns_count(t->gw->netns) + json_object_size(t->names) >= NETNS_MAX)
		return sl_refuse(err, ENOSPC,
			"namespace \"%s\": there are %u, the most there can be", name, NETNS_MAX);
	snprintf(t->parent, sizeof(t->parent), "%s", parent);
	if (json_object_set_new(t->names, name, json_true()) != 0)
		return sl_refuse(err, ENOMEM, "out of memory");
	return 0;
}

struct netns_group {
	struct netns_job *job; /* that undoes it; owns ns until it is started */
	struct netns **ns;
	unsigned int n;
};

static void
undo_group(struct gateway *gw, void *arg)
{
	struct netns_group *g = arg;

	(void)gw;
	netns_job_start(g->job);
	netns_job_finish(g->job, NULL, NULL);
	g->job = NULL;
	g->ns = NULL;
}

static void
free_group(void *arg)
{
	struct netns_group *g = arg;

	free(g->job);
	free(g->ns);
	free(g);
}

static struct netns_group *
new_group(struct txn *t, unsigned int n)
{
	struct netns_group *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->n = n;
	g->ns = calloc(n, sizeof(struct netns *));
	if (g->ns != NULL)
		g->job = netns_job_new(t->gw, g->ns, n);
	if (g->job == NULL || txn_on_undo(t, undo_group, g, free_group) != 0) {
		free_group(g);
		return NULL;
	}
	return g;
}

/* Takes the youngest undo step off again: what it would undo has not happened. */
static void
forget_last(struct txn *t)
{
	struct undo *u = t->last;

	t->last = u->before;
	if (u->free_arg != NULL)
		u->free_arg(u->arg);
	free(u);
}

static int
create_group(struct txn *t, const char **names, unsigned int n, struct sl_err *err)
{
	struct netns *parent = netns_find(t->gw->netns, t->parent);
	struct netns_group *g;
	int ret;

	if (parent == NULL || txn_deletes(t, parent))
		return sl_refuse(err, ENOENT, "from: there is no namespace \"%s\"", t->parent);
	g = new_group(t, n);
	if (g == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	ret = netns_create_batch(t->gw->netns, names, n, parent, g->ns, err);
	if (ret != 0)
		forget_last(t);
	else
		tcp_table_create(t->gw, parent, g->ns, n);
	return ret;
}

int
txn_flush(struct txn *t, struct sl_err *err)
{
	unsigned int n = (unsigned int)json_object_size(t->names), i = 0;
	const char **names, *key;
	json_t *v;
	int ret;

	if (n == 0)
		return 0;
	names = calloc(n, sizeof(*names));
	if (names == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	json_object_foreach(t->names, key, v) names[i++] = key;
	ret = create_group(t, names, n, err);
	free(names);
	json_object_clear(t->names);
	return ret;
}

/* ---- deletes ---- */

static int
compare_pointers(const void *a, const void *b)
{
	return a < b ? -1 : a > b;
}

bool
txn_deletes(const struct txn *t, const void *object)
{
	return tfind(object, &t->doomed_set, compare_pointers) != NULL;
}

static int
doom(struct txn *t, struct doomed *d, void *object, struct sl_err *err)
{
	void **grown;

	if (d->n == d->room) {
		d->room = d->room != 0 ? 2 * d->room : 16;
		grown = reallocarray(d->object, d->room, sizeof(*grown));
		if (grown == NULL)
			return sl_refuse(err, ENOMEM, "out of memory");
		d->object = grown;
	}
	if (tsearch(object, &t->doomed_set, compare_pointers) == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	d->object[d->n++] = object;
	return 0;
}

int
txn_delete(struct txn *t, void *object, void (*fn)(struct gateway *gw, void *object),
	const char *what, struct sl_err *err)
{
	struct deletion *grown;

	if (txn_deletes(t, object))
		return sl_refuse(err, ENOENT, "%s is deleted already by this batch", what);
	if (t->n_others == t->room_others) {
		t->room_others = t->room_others != 0 ? 2 * t->room_others : 16;
		grown = reallocarray(t->others, t->room_others, sizeof(*grown));
		if (grown == NULL)
			return sl_refuse(err, ENOMEM, "out of memory");
		t->others = grown;
	}
	if (tsearch(object, &t->doomed_set, compare_pointers) == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	t->others[t->n_others++] = (struct deletion){.object = object, .fn = fn};
	return 0;
}

int
txn_delete_netns(struct txn *t, struct netns *ns, struct sl_err *err)
{
	if (ns == netns_init_ns(t->gw->netns))
		return sl_refuse(err, EPERM, "namespace \"%s\" cannot be deleted", ns->name);
	if (txn_deletes(t, ns))
		return sl_refuse(
			err, ENOENT, "namespace \"%s\" is deleted twice by this batch", ns->name);
	return doom(t, &t->netns, ns, err);
}

int
txn_delete_link(struct txn *t, struct link *l, struct sl_err *err)
{
	if (txn_deletes(t, l) || txn_deletes(t, l->ns))
		return sl_refuse(
			err, ENOENT, "link \"%s\" is deleted already by this batch", l->name);
	return doom(t, &t->links, l, err);
}

/* A link that keeps the port in use after this batch, or NULL. */
static const struct link *
link_that_stays(const struct txn *t, const struct port *p)
{
	const struct link *l;
	const struct netns *ns;
	uint32_t id = 0;

	if (p->n_links == 0)
		return NULL;
	while ((ns = netns_next(t->gw->netns, &id)) != NULL) {
		if (txn_deletes(t, ns))
			continue;
		for (l = link_first(ns); l != NULL; l = l->next)
			if (l->port == p && !txn_deletes(t, l))
				return l;
	}
	return NULL;
}

int
txn_delete_port(struct txn *t, struct port *p, struct sl_err *err)
{
	const struct link *l;

	if (txn_deletes(t, p))
		return sl_refuse(
			err, ENOENT, "port \"%s\" is deleted twice by this batch", p->name);
	l = link_that_stays(t, p);
	if (l != NULL)
		return sl_refuse(err, EBUSY,
			"port \"%s\" has links, such as \"%s\" of namespace \"%s\": "
			"delete them first",
			p->name, l->name, l->ns->name);
	return doom(t, &t->ports, p, err);
}

int
txn_resize(struct txn *t, uint32_t buckets, struct sl_err *err)
{
	struct resize_job *job = resize_job_new(t->gw, buckets, err);

	if (job == NULL)
		return -EINVAL;
	t->resize = job;
	return 0;
}

/* ---- the end ---- */

static void
delete_others(struct txn *t)
{
	unsigned int i;

	for (i = 0; i < t->n_others; i++)
		t->others[i].fn(t->gw, t->others[i].object);
}

static void
delete_links(struct txn *t)
{
	struct sl_err err;
	struct link *l;
	char name[LINK_NAME_MAX + 1];
	unsigned int i;

	for (i = 0; i < t->links.n; i++) {
		l = t->links.object[i];
		snprintf(name, sizeof(name), "%s", l->name);
		if (link_delete(t->gw, l->ns->name, name, &err) != 0)
			SL_LOG(ERR, "link %s: %s", name, err.msg);
	}
}

static void
delete_ports(struct txn *t)
{
	struct sl_err err;
	char name[PORT_NAME_MAX + 1];
	unsigned int i;

	for (i = 0; i < t->ports.n; i++) {
		snprintf(name, sizeof(name), "%s", ((struct port *)t->ports.object[i])->name);
		if (port_delete(t->gw, name, &err) != 0)
			SL_LOG(ERR, "port %s: %s", name, err.msg);
	}
}

static void
commit_done(void *arg)
{
	struct txn *t = arg;
	void (*done)(void *) = t->done;
	void *done_arg = t->done_arg;

	if (--t->pending > 0)
		return;
	txn_free(t);
	if (done != NULL)
		done(done_arg);
}

int
txn_commit(struct txn *t, void (*done)(void *arg), void *arg, struct sl_err *err)
{
	struct netns_job *job = NULL;
	int ret;

	ret = txn_flush(t, err);
	if (ret == 0 && t->netns.n > 0) {
		job = netns_job_new(t->gw, (struct netns **)t->netns.object, t->netns.n);
		if (job == NULL)
			ret = sl_refuse(err, ENOMEM, "out of memory");
	}
	if (ret == 0)
		ret = run_steps(t, err);
	if (ret != 0) {
		free(job);
		txn_abort(t);
		return ret;
	}
	t->done = done;
	t->done_arg = arg;
	t->pending = 1 + (job != NULL) + (t->resize != NULL);
	delete_others(t);
	delete_links(t);
	if (job != NULL) {
		t->netns.object = NULL;
		netns_job_start(job);
	}
	delete_ports(t);
	if (job != NULL)
		netns_job_finish(job, commit_done, t);
	if (t->resize != NULL)
		resize_job_start(t->resize, commit_done, t);
	commit_done(t);
	return 0;
}

void
txn_abort(struct txn *t)
{
	struct undo *u;

	if (t->resize != NULL)
		resize_job_cancel(t->resize);
	for (u = t->last; u != NULL; u = u->before)
		u->fn(t->gw, u->arg);
	txn_free(t);
}
