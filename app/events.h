/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bus of events: what happens to connections, what a rule logs, what NAT hands out. Workers and
 * the control thread put typed records on it; subscriptions, which belong to the control thread,
 * take them off.
 *
 * A subscription has a ring of its own for each thread that emits, so that neither a slow listener
 * nor the flood of another namespace costs it anything. A ring that is full loses the record, which
 * is counted; nobody ever waits. A record is a copy: what it tells of may be gone when it is read.
 *
 * A new type of event needs a line in enum event_type and a structure of its own in the union of
 * struct event, at most EVENT_BODY_MAX bytes. Who emits asks events_wanted() first, and only then
 * has a struct event on its stack, on which it calls event_init() with the size of the body, fills
 * in the body, and gives it to events_emit(). Who listens opens a subscription to the type.
 * event_ct.c, event_rule.c, event_nat.c and commands/events.c do the one and the other.
 */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "event_ct.h"
#include "event_nat.h"
#include "event_rule.h"
#include "netns.h"

struct event_subscription;
struct sl_err;

enum event_type {
	EVENT_CT_NEW,
	EVENT_CT_UPDATE,
	EVENT_CT_DESTROY,
	EVENT_RULE_LOG,
	EVENT_NAT,
};

#define EVENT_BIT(type) (1u << (type))
#define EVENTS_CT       (EVENT_BIT(EVENT_CT_NEW) | EVENT_BIT(EVENT_CT_UPDATE) |                    \
	EVENT_BIT(EVENT_CT_DESTROY))

#define EVENT_BODY_MAX    416u
#define EVENT_LISTENERS   16u /* subscriptions that there may be at once */

/* As it is in a ring, from its start to the end of its body. */
struct event {
	uint64_t order; /* the bus's own */
	uint64_t ns;    /* when, by the gateway's clock */
	uint32_t netns_id, netns_gen;
	uint8_t type; /* enum event_type */
	uint8_t thread; /* that emitted it */
	uint16_t len;   /* of the body */
	uint32_t unused;
	char netns[NETNS_NAME_MAX + 1];
	union {
		struct event_ct ct;
		struct event_rule rule;
		struct event_nat nat;
		uint8_t bytes[EVENT_BODY_MAX];
	};
};

_Static_assert(sizeof(struct event) == 96 + EVENT_BODY_MAX, "no body is larger");

/* Of one thread: records put into rings, and those lost, over all subscriptions ever. */
struct events_stats {
	uint64_t emitted, lost;
} __rte_cache_aligned;

struct events {
	uint32_t wanted; /* types that anyone listens to, as bits; written by control */
	unsigned int threads;
	struct event_subscription *sub[EVENT_LISTENERS]; /* RCU */
	struct ct *ct; /* is told whether anyone listens to connections; NULL: none */
	struct events_stats *stats; /* [threads], each written by its own */
};

/* threads: that emit, each by its number, control the last. NULL: no memory. */
struct events *events_create(unsigned int threads);
void events_destroy(struct events *e); /* ends what is still open; no thread emits any more */

void events_stats(const struct events *e, unsigned int thread, struct events_stats *out);
uint64_t events_memory(const struct events *e); /* bytes of the subscriptions there are */

/* ---- who emits ---- */

/* Whether anyone listens to the type: a load and a branch that is well predicted. */
static inline bool
events_wanted(const struct events *e, enum event_type type)
{
	return (__atomic_load_n(&e->wanted, __ATOMIC_RELAXED) & EVENT_BIT(type)) != 0;
}

static inline void
event_init(struct event *ev, enum event_type type, uint16_t len)
{
	ev->type = (uint8_t)type;
	ev->len = len;
}

/*
 * Puts the event of a namespace on the bus, for those who listen to it. A worker calls it within
 * its RCU read side, the control thread anywhere; each by its own thread number. Fills what
 * event_init() and the caller have left of the record.
 */
void events_emit(struct events *e, unsigned int thread, const struct netns *ns, struct sl_now now,
	struct event *ev);

/* ---- who listens: control ---- */

/*
 * Begins to listen to the types (bits) of one namespace, or of all (NULL). -EBUSY when
 * EVENT_LISTENERS do already, -ENOMEM. The caller's until events_close().
 */
int events_open(struct events *e, uint32_t types, const struct netns *ns,
	struct event_subscription **out, struct sl_err *err);

/*
 * For replay, where a command ends at once: the first call opens, and each later one with the same
 * arguments gives the same subscription again, with what has come since. It stays open to the end.
 */
int events_open_kept(struct events *e, uint32_t types, const struct netns *ns,
	struct event_subscription **out, struct sl_err *err);

/* Takes up to max events, in the order in which they happened, those of one connection always in
 * its own; 0: none now. */
unsigned int events_read(struct event_subscription *s, struct event *ev, unsigned int max);

/* Events that its rings had no room for, since it was asked the last time. */
uint64_t events_lost(struct event_subscription *s);

/* A kept one stays open. */
void events_close(struct events *e, struct event_subscription *s);

#endif
