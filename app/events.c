/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each subscription has a lane for each emitting thread: a ring with that one producer, and the
 * control thread as its one consumer. A subscription is put into a slot when it is complete; a
 * worker finds it there within its RCU read side, and it is freed a grace period after it was taken
 * out. The control thread emits too, but it is also the one that frees.
 *
 * Order: a record carries the TSC of the moment before it is put into a ring. A reader takes the
 * TSC first and gives only what is older. So when it gives an event of a connection, whatever came
 * before it for that connection (the calls of conntrack are ordered) was in its ring before the
 * reader looked. TSCs of the cores agree on every machine that this runs on.
 */
/* The same instructions on x86, but thread sanitizer understands them. */
#define RTE_USE_C11_MEM_MODEL

#include "events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ring_elem.h>

#include "err.h"
#include "lane_ring.h"
#include "rcu.h"

/* A ring's elements, of which a record takes as many as it needs; and how many a ring has. The
 * control thread destroys thousands of connections in one turn of its loop. */
#define UNIT          64u
#define LANE_UNITS    (1u << 14)
#define CONTROL_UNITS (1u << 16)

_Static_assert(sizeof(struct event) % UNIT == 0, "a record is whole units");

struct lane {
	struct rte_ring *ring;
	uint64_t lost; /* written by the emitting thread */
	/* control only */
	bool have_head;
	struct event head; /* taken from the ring, not read yet */
} __rte_cache_aligned;

struct event_subscription {
	/* constant */
	uint32_t types;
	bool by_ns, kept;
	uint32_t ns_id, ns_gen;
	unsigned int n_lanes;
	/* control only */
	uint64_t told_lost;
	struct lane lane[];
};

/* ---- who emits ---- */

static unsigned int
units_of(const struct event *ev)
{
	return (offsetof(struct event, bytes) + ev->len + UNIT - 1) / UNIT;
}

static bool
listens(const struct event_subscription *s, const struct event *ev)
{
	return (s->types & EVENT_BIT(ev->type)) != 0 &&
	       (!s->by_ns || (s->ns_id == ev->netns_id && s->ns_gen == ev->netns_gen));
}

static void
fill_header(struct event *ev, unsigned int thread, const struct netns *ns, struct sl_now now)
{
	ev->order = rte_rdtsc_precise();
	ev->ns = now.ns;
	ev->thread = (uint8_t)thread;
	memcpy(ev->netns, ns->name, sizeof(ev->netns));
}

void
events_emit(struct events *e, unsigned int thread, const struct netns *ns, struct sl_now now,
	struct event *ev)
{
	struct events_stats *stats = &e->stats[thread];
	unsigned int i, units = units_of(ev);
	bool filled = false;

	ev->netns_id = ns->id;
	ev->netns_gen = ns->gen;
	for (i = 0; i < EVENT_LISTENERS; i++) {
		struct event_subscription *s = sl_rcu_dereference(&e->sub[i]);
		struct lane *lane;

		if (s == NULL || !listens(s, ev))
			continue;
		if (!filled)
			fill_header(ev, thread, ns, now);
		filled = true;
		lane = &s->lane[thread];
		if (rte_ring_sp_enqueue_bulk_elem(lane->ring, ev, UNIT, units, NULL) != 0) {
			netns_counter_add(&stats->emitted, 1);
			continue;
		}
		netns_counter_add(&lane->lost, 1);
		netns_counter_add(&stats->lost, 1);
	}
}

/* ---- who listens ---- */

static void
subscription_free(void *arg)
{
	struct event_subscription *s = arg;
	unsigned int i;

	for (i = 0; i < s->n_lanes; i++)
		free(s->lane[i].ring);
	free(s);
}

static unsigned int
lane_units(unsigned int thread, unsigned int threads)
{
	return thread == threads - 1 ? CONTROL_UNITS : LANE_UNITS;
}

static struct event_subscription *
subscription_new(unsigned int threads, uint32_t types, const struct netns *ns)
{
	size_t size = sizeof(struct event_subscription) + threads * sizeof(struct lane);
	struct event_subscription *s;
	unsigned int i;

	s = aligned_alloc(RTE_CACHE_LINE_SIZE,
		RTE_ALIGN_CEIL(size, (size_t)RTE_CACHE_LINE_SIZE));
	if (s == NULL)
		return NULL;
	memset(s, 0, size);
	s->types = types;
	s->by_ns = ns != NULL;
	if (ns != NULL) {
		s->ns_id = ns->id;
		s->ns_gen = ns->gen;
	}
	for (i = 0; i < threads; i++) {
		s->lane[i].ring = lane_ring_new(UNIT, lane_units(i, threads));
		if (s->lane[i].ring == NULL) {
			subscription_free(s);
			return NULL;
		}
		s->n_lanes++;
	}
	return s;
}

static void
update_wanted(struct events *e)
{
	uint32_t types = 0;
	unsigned int i;

	for (i = 0; i < EVENT_LISTENERS; i++)
		types |= e->sub[i] != NULL ? e->sub[i]->types : 0;
	__atomic_store_n(&e->wanted, types, __ATOMIC_RELAXED);
	if (e->ct != NULL)
		ct_listen(e->ct, (types & EVENTS_CT) != 0);
}

int
events_open(struct events *e, uint32_t types, const struct netns *ns,
	struct event_subscription **out, struct sl_err *err)
{
	struct event_subscription *s;
	unsigned int slot = 0;

	while (slot < EVENT_LISTENERS && e->sub[slot] != NULL)
		slot++;
	if (slot == EVENT_LISTENERS)
		return sl_refuse(err, EBUSY, "%u listen to events already: end one of them",
			EVENT_LISTENERS);
	s = subscription_new(e->threads, types, ns);
	if (s == NULL)
		return sl_refuse(err, ENOMEM, "no memory for rings of events");
	sl_rcu_publish(&e->sub[slot], s);
	update_wanted(e);
	*out = s;
	return 0;
}

int
events_open_kept(struct events *e, uint32_t types, const struct netns *ns,
	struct event_subscription **out, struct sl_err *err)
{
	unsigned int i;
	int ret;

	for (i = 0; i < EVENT_LISTENERS; i++) {
		struct event_subscription *s = e->sub[i];

		if (s != NULL && s->kept && s->types == types && s->by_ns == (ns != NULL) &&
			(ns == NULL || (s->ns_id == ns->id && s->ns_gen == ns->gen))) {
			*out = s;
			return 0;
		}
	}
	ret = events_open(e, types, ns, out, err);
	if (ret == 0)
		(*out)->kept = true;
	return ret;
}

/* Makes the oldest record of the lane its head; false when there is none. */
static bool
lane_peek(struct lane *l)
{
	char *rest = (char *)&l->head + UNIT;

	if (l->have_head || rte_ring_sc_dequeue_elem(l->ring, &l->head, UNIT) != 0)
		return l->have_head;
	/* It was put there whole. */
	l->have_head = true;
	if (units_of(&l->head) > 1)
		l->have_head = rte_ring_sc_dequeue_bulk_elem(l->ring, rest, UNIT,
				       units_of(&l->head) - 1, NULL) != 0;
	return l->have_head;
}

/* The lane whose oldest record is the oldest of all that are older than `before`, or NULL. */
static struct lane *
oldest_lane(struct event_subscription *s, uint64_t before)
{
	struct lane *best = NULL;
	unsigned int i;

	for (i = 0; i < s->n_lanes; i++) {
		struct lane *l = &s->lane[i];

		if (lane_peek(l) && l->head.order <= before &&
			(best == NULL || l->head.order < best->head.order))
			best = l;
	}
	return best;
}

unsigned int
events_read(struct event_subscription *s, struct event *ev, unsigned int max)
{
	uint64_t before = rte_rdtsc_precise();
	unsigned int n = 0;

	while (n < max) {
		struct lane *l = oldest_lane(s, before);

		if (l == NULL)
			break;
		memcpy(&ev[n++], &l->head, units_of(&l->head) * UNIT);
		l->have_head = false;
	}
	return n;
}

uint64_t
events_lost(struct event_subscription *s)
{
	uint64_t sum = 0, since;
	unsigned int i;

	for (i = 0; i < s->n_lanes; i++)
		sum += __atomic_load_n(&s->lane[i].lost, __ATOMIC_RELAXED);
	since = sum - s->told_lost;
	s->told_lost = sum;
	return since;
}

void
events_close(struct events *e, struct event_subscription *s)
{
	unsigned int i;

	if (s->kept)
		return;
	for (i = 0; i < EVENT_LISTENERS; i++)
		if (e->sub[i] == s)
			sl_rcu_publish(&e->sub[i], NULL);
	update_wanted(e);
	if (sl_rcu_call(subscription_free, s) != 0) {
		sl_rcu_synchronize();
		subscription_free(s);
	}
}

/* ---- the bus ---- */

struct events *
events_create(unsigned int threads)
{
	size_t size = threads * sizeof(struct events_stats);
	struct events *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->threads = threads;
	e->stats = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	if (e->stats == NULL) {
		free(e);
		return NULL;
	}
	memset(e->stats, 0, size);
	return e;
}

void
events_destroy(struct events *e)
{
	unsigned int i;

	if (e == NULL)
		return;
	for (i = 0; i < EVENT_LISTENERS; i++)
		if (e->sub[i] != NULL)
			subscription_free(e->sub[i]);
	free(e->stats);
	free(e);
}

void
events_stats(const struct events *e, unsigned int thread, struct events_stats *out)
{
	const struct events_stats *s = &e->stats[thread];

	out->emitted = __atomic_load_n(&s->emitted, __ATOMIC_RELAXED);
	out->lost = __atomic_load_n(&s->lost, __ATOMIC_RELAXED);
}

uint64_t
events_memory(const struct events *e)
{
	uint64_t each = sizeof(struct event_subscription), sum = 0;
	unsigned int i;

	for (i = 0; i < e->threads; i++)
		each += sizeof(struct lane) +
			(uint64_t)rte_ring_get_memsize_elem(UNIT, lane_units(i, e->threads));
	for (i = 0; i < EVENT_LISTENERS; i++)
		sum += e->sub[i] != NULL ? each : 0;
	return sum;
}
