/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of connections: from conntrack's call to the record, and from the record to a view. */
#ifndef EVENT_CT_H
#define EVENT_CT_H

#include <stdbool.h>
#include <stdint.h>

#include "conntrack.h"

struct event;
struct gateway;

/* What a listing of the connection would tell at that moment. */
struct event_ct {
	struct tuple orig, reply;
	uint64_t packets[2], bytes[2];
	uint64_t start_ns;
	int32_t left_ms; /* until its deadline */
	uint32_t mark;
	uint16_t status;
	uint8_t state;   /* of the protocol, where it has any */
	uint8_t changed; /* CT_CHANGED_…, of an update */
	bool timestamp; /* whether the namespace keeps start times */
};

/* For ct_ops.event; app: struct gateway. */
void event_ct_emit(void *app, struct ct_thread *t, const struct ct_entry *e, enum ct_event event,
	unsigned int changed);

/* The view that ct_match() and ct_format_json() take. Its entry has no namespace. */
void event_ct_view(const struct event *ev, struct ct_view *v);

#endif
