/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conntrack events, rule events, nat events: a stream until there are enough, the namespace goes,
 * or the client leaves. In replay a command ends with what there is: what has happened since the
 * one before it that was of the same namespace and events.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "ct_filter.h"
#include "ct_format.h"
#include "event_rule.h"
#include "events.h"

#define POLL_MS    20
#define READ_BATCH 64

struct follow {
	struct event_subscription *sub;
	void (*show)(struct call *c, struct follow *f, const struct event *ev);
	struct ct_match match; /* of connections */
	bool one_netns;
	uint32_t id, gen;        /* of it */
	uint64_t seen;           /* events shown */
	uint64_t wanted;         /* 0: no end */
	uint64_t lost;
	uint64_t wall_offset_ns; /* from the gateway's clock to the time of day */
};

/* "ALL|NEW|UPDATES|DESTROY,..." */
static int
parse_mask(struct call *c, uint32_t *types)
{
	static const struct {
		const char *name;
		uint32_t types;
	} names[] = {
		{"ALL", EVENTS_CT},
		{"NEW", EVENT_BIT(EVENT_CT_NEW)},
		{"UPDATES", EVENT_BIT(EVENT_CT_UPDATE)},
		{"DESTROY", EVENT_BIT(EVENT_CT_DESTROY)},
	};
	const char *text = call_string(c, "event-mask");
	char q[48];
	unsigned int i;
	size_t len;

	*types = text == NULL ? EVENTS_CT : 0;
	for (; text != NULL; text = text[len] == ',' ? text + len + 1 : NULL) {
		len = strcspn(text, ",");
		for (i = 0; i < RTE_DIM(names); i++)
			if (strlen(names[i].name) == len &&
				strncasecmp(names[i].name, text, len) == 0)
				break;
		if (i == RTE_DIM(names))
			return sl_refuse(&c->err, EINVAL,
				"event-mask: \"%s\" is not of ALL, NEW, UPDATES, DESTROY",
				grammar_quote(text, q, sizeof(q)));
		*types |= names[i].types;
	}
	return 0;
}

static int
begin(struct call *c, struct follow *f, uint32_t types)
{
	struct netns *ns;
	int ret = call_netns(c, "netns", &ns);

	if (ret != 0)
		return ret;
	f->one_netns = ns != NULL;
	if (ns != NULL) {
		f->id = ns->id;
		f->gen = ns->gen;
	}
	f->wanted = call_uint(c, "count");
	f->wall_offset_ns = gateway_wall_offset(c->gw);
	return (c->once ? events_open_kept : events_open)(c->gw->events, types, ns, &f->sub,
		&c->err);
}

/* The events that were lost went before what is read from now on, or amid of it. */
static void
tell_lost(struct call *c, struct follow *f)
{
	uint64_t lost = events_lost(f->sub);

	if (lost != 0)
		call_item(c, json_pack("{s:I}", "lost", (json_int_t)lost));
	f->lost += lost;
}

static void
show_connection(struct call *c, struct follow *f, const struct event *ev)
{
	struct ct_view v;

	event_ct_view(ev, &v);
	if (!ct_match_any(&f->match) && !ct_match(&v, &f->match))
		return;
	call_item(c, ct_format_event(ev, &v, f->wall_offset_ns));
	f->seen++;
}

static void
show_log(struct call *c, struct follow *f, const struct event *ev)
{
	call_item(c, event_rule_json(ev, f->wall_offset_ns));
	f->seen++;
}

static void
show_nat(struct call *c, struct follow *f, const struct event *ev)
{
	call_item(c, event_nat_json(ev, f->wall_offset_ns));
	f->seen++;
}

static int
connections_run(struct call *c)
{
	struct follow *f = calloc(1, sizeof(*f));
	uint32_t types = 0;
	int ret;

	if (f == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	f->show = show_connection;
	ret = ct_match_parse(&f->match, c->params, &c->err);
	if (ret == 0)
		ret = parse_mask(c, &types);
	if (ret == 0)
		ret = begin(c, f, types);
	if (ret == 0)
		c->state = f;
	else
		free(f);
	return ret;
}

/* All events of one type. */
static int
follow_type(struct call *c, enum event_type type,
	void (*show)(struct call *c, struct follow *f, const struct event *ev))
{
	struct follow *f = calloc(1, sizeof(*f));
	int ret;

	if (f == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	f->show = show;
	ret = begin(c, f, EVENT_BIT(type));
	if (ret == 0)
		c->state = f;
	else
		free(f);
	return ret;
}

static int
logs_run(struct call *c)
{
	return follow_type(c, EVENT_RULE_LOG, show_log);
}

static int
nat_run(struct call *c)
{
	return follow_type(c, EVENT_NAT, show_nat);
}

static bool
netns_gone(const struct call *c, const struct follow *f)
{
	const struct netns *ns = f->one_netns ? netns_by_id(c->gw->netns, f->id) : NULL;

	return f->one_netns && (ns == NULL || ns->gen != f->gen);
}

static enum task_step
events_step(struct call *c)
{
	struct event ev[READ_BATCH];
	struct follow *f = c->state;
	bool gone = netns_gone(c, f);
	unsigned int i, n;

	if (call_full(c))
		return TASK_MORE;
	tell_lost(c, f);
	n = events_read(f->sub, ev,
		f->wanted == 0 ? READ_BATCH : (unsigned int)RTE_MIN(f->wanted - f->seen,
						      (uint64_t)READ_BATCH));
	for (i = 0; i < n; i++)
		f->show(c, f, &ev[i]);
	if ((f->wanted != 0 && f->seen == f->wanted) || (n == 0 && (gone || c->once))) {
		c->result = json_pack("{s:I, s:I}", "count", (json_int_t)f->seen, "lost",
			(json_int_t)f->lost);
		return TASK_DONE;
	}
	c->wait_ms = POLL_MS;
	return n > 0 ? TASK_MORE : TASK_WAIT;
}

static void
events_end(struct call *c)
{
	struct follow *f = c->state;

	if (f == NULL)
		return;
	events_close(c->gw->events, f->sub);
	free(f);
}

const struct command_handler commands_events[] = {
	{"conntrack.events", connections_run, events_step, events_end},
	{"nat.events", nat_run, events_step, events_end},
	{"rule.events", logs_run, events_step, events_end},
	{0},
};
