/* SPDX-License-Identifier: BSD-3-Clause */
/* conntrack list, count, delete, flush: walks over the entry pool, in slices. */
#include <errno.h>
#include <stdlib.h>

#include "command.h"
#include "ct_filter.h"
#include "ct_format.h"

#define SLOTS_PER_TURN 8192 /* pool slots that are looked at in one slice */
#define ITEMS_PER_TURN 128  /* entries that are formatted in one slice */

struct walk {
	struct ct_walk walk;
	struct ct_match match;
	bool one_netns;
	uint32_t id, gen; /* of it: it may be gone by the next slice */
	uint64_t n;       /* counted or destroyed */
	/* of a list, within a slice */
	struct call *call;
	struct sl_now now;
	unsigned int items;
};

static int
walk_begin(struct call *c)
{
	struct walk *w;
	struct netns *ns;
	int ret;

	ret = call_netns(c, "netns", &ns);
	if (ret != 0)
		return ret;
	w = calloc(1, sizeof(*w));
	c->state = w;
	if (w == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	ret = ct_match_parse(&w->match, c->params, &c->err);
	if (ret != 0)
		return ret;
	w->call = c;
	w->one_netns = ns != NULL;
	if (ns != NULL) {
		w->id = ns->id;
		w->gen = ns->gen;
	}
	ct_walk_start(c->gw->ct, &w->walk, c->gw->clock(c->gw));
	return 0;
}

static void
walk_end(struct call *c)
{
	free(c->state);
}

/* The filter of a slice; false when the namespace asked for is gone. */
static bool
make_filter(const struct call *c, const struct walk *w, struct ct_filter *f)
{
	*f = (struct ct_filter){0};
	if (w->one_netns) {
		f->ns = netns_by_id(c->gw->netns, w->id);
		if (f->ns == NULL || f->ns->gen != w->gen)
			return false;
	}
	if (!ct_match_any(&w->match)) {
		f->match = ct_match;
		f->match_arg = &w->match;
	}
	return true;
}

/* ---- list ---- */

static bool
list_entry(const struct ct_view *v, void *arg)
{
	struct walk *w = arg;

	call_item(w->call, ct_format_json(v, w->now));
	return ++w->items < ITEMS_PER_TURN && !call_full(w->call);
}

static enum task_step
list_step(struct call *c)
{
	struct walk *w = c->state;
	const struct ct_visitor visitor = {list_entry, w};
	struct ct_filter f;
	bool more;

	if (!make_filter(c, w, &f))
		return TASK_DONE;
	w->items = 0;
	w->now = c->gw->clock(c->gw);
	more = ct_walk_slice(c->gw->ct_control, &w->walk, &f, SLOTS_PER_TURN, w->now, &visitor);
	return more ? TASK_MORE : TASK_DONE;
}

/* ---- count ---- */

static json_t *
count_result(uint64_t n)
{
	return json_pack("{s:I}", "count", (json_int_t)n);
}

static bool
count_entry(const struct ct_view *v, void *arg)
{
	struct walk *w = arg;

	(void)v;
	w->n++;
	return true;
}

static enum task_step
count_step(struct call *c)
{
	struct walk *w = c->state;
	const struct ct_visitor visitor = {count_entry, w};
	struct ct_filter f;

	if (!make_filter(c, w, &f))
		w->n = 0;
	else if (f.match == NULL)
		w->n = f.ns != NULL ? (uint64_t)netns_entries(f.ns, gw_threads(c->gw))
				    : ct_count(c->gw->ct);
	else if (ct_walk_slice(c->gw->ct_control, &w->walk, &f, SLOTS_PER_TURN,
			 c->gw->clock(c->gw), &visitor))
		return TASK_MORE;
	c->result = count_result(w->n);
	return TASK_DONE;
}

/* ---- delete, flush ---- */

static int
delete_begin(struct call *c)
{
	int ret = walk_begin(c);

	if (ret == 0 && ct_match_any(&((struct walk *)c->state)->match))
		return sl_refuse(
			&c->err, EINVAL, "a filter is missing; all entries go by conntrack flush");
	return ret;
}

static enum task_step
destroy_step(struct call *c)
{
	struct walk *w = c->state;
	struct ct_filter f;

	if (make_filter(c, w, &f) && ct_flush_slice(c->gw->ct_control, &w->walk, &f, SLOTS_PER_TURN,
					     c->gw->clock(c->gw), &w->n))
		return TASK_MORE;
	c->result = count_result(w->n);
	return TASK_DONE;
}

const struct command_handler commands_conntrack[] = {
	{"conntrack.list", walk_begin, list_step, walk_end},
	{"conntrack.count", walk_begin, count_step, walk_end},
	{"conntrack.delete", delete_begin, destroy_step, walk_end},
	{"conntrack.flush", walk_begin, destroy_step, walk_end},
	{0},
};
