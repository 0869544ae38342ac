/* SPDX-License-Identifier: BSD-3-Clause */
#include "event_ct.h"

#include <netinet/in.h>

#include "events.h"
#include "gateway.h"
#include "worker.h"

static const enum event_type type_of[] = {
	[CT_EVENT_NEW] = EVENT_CT_NEW,
	[CT_EVENT_UPDATE] = EVENT_CT_UPDATE,
	[CT_EVENT_DESTROY] = EVENT_CT_DESTROY,
};

static uint8_t
state_of(const struct ct_entry *e)
{
	if (e->orig.tuple.proto == IPPROTO_TCP)
		return e->proto.tcp.state;
	return e->orig.tuple.proto == IPPROTO_SCTP ? e->proto.sctp.state : 0;
}

static void
fill(struct event_ct *c, const struct ct_entry *e, const struct knobs *knobs, struct sl_now now)
{
	*c = (struct event_ct){
		.orig = e->orig.tuple,
		.reply = e->reply.tuple,
		.packets = {e->orig.packets, e->reply.packets},
		.bytes = {e->orig.bytes, e->reply.bytes},
		.start_ns = e->start_ns,
		.left_ms = sl_ms_left(e->deadline, now.ms),
		.mark = e->mark,
		.status = e->status,
		.state = state_of(e),
		.timestamp = knobs->timestamp,
	};
}

void
event_ct_emit(void *app, struct ct_thread *t, const struct ct_entry *e, enum ct_event event,
	unsigned int changed)
{
	struct gateway *gw = app;
	unsigned int thread = ct_thread_index(t);
	const struct knobs *knobs = netns_knobs(e->ns);
	struct event ev;
	struct sl_now now;

	if (knobs->events == 0 || !events_wanted(gw->events, type_of[event]))
		return;
	now = thread < gw->n_workers ? gw->workers[thread]->now : gw->clock(gw);
	event_init(&ev, type_of[event], sizeof(ev.ct));
	fill(&ev.ct, e, knobs, now);
	ev.ct.changed = (uint8_t)changed;
	events_emit(gw->events, thread, e->ns, now, &ev);
}

void
event_ct_view(const struct event *ev, struct ct_view *v)
{
	const struct event_ct *c = &ev->ct;
	struct ct_entry *e = &v->entry;

	*v = (struct ct_view){.left_ms = c->left_ms};
	e->orig.tuple = c->orig;
	e->orig.packets = c->packets[CT_ORIGINAL];
	e->orig.bytes = c->bytes[CT_ORIGINAL];
	e->reply.tuple = c->reply;
	e->reply.packets = c->packets[CT_REPLY];
	e->reply.bytes = c->bytes[CT_REPLY];
	e->status = c->status;
	e->mark = c->mark;
	e->start_ns = c->start_ns;
	if (c->orig.proto == IPPROTO_TCP)
		e->proto.tcp.state = c->state & 0xf;
	else if (c->orig.proto == IPPROTO_SCTP)
		e->proto.sctp.state = c->state;
}
