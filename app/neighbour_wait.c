/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that wait for a neighbour's answer: those of its first packets, ready to leave but for
 * their destination. A neighbour has a queue of places, of which there is a fixed number for all.
 *
 * Locks: a queue is guarded by its neighbour's set; the free places have a lock of their own, taken
 * under a set's. Whoever hears the answer takes the queue under the same lock under which he notes
 * it, so a frame either finds the neighbour known or is in the queue that is taken. One worker at a
 * time sweeps; which sets have queues is told by bits, that it need not look at all.
 *
 * A queue has a pointer to its link, to ask again by. Control marks the link and then takes the
 * pointer out of all queues, before the grace period after which the link is freed; who has copied
 * it is within his read side. Who comes meanwhile sets the bit of his set before he looks at the
 * mark, and control looks at the bits behind it (both sequentially consistent): one of the two sees
 * the other. The frames themselves are left to the sweep, whose worker counts them.
 */
#include "neighbour_private.h"

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "datapath_stages.h"

#define SWEEP_MS 100u
#define WAIT_MS  (NEIGHBOUR_ASKS * NEIGHBOUR_ASK_MS)

/* ---- places ---- */

void
neighbour_wait_init(struct neighbours *all)
{
	uint16_t i;

	for (i = 1; i < NEIGHBOUR_WAIT_ALL; i++)
		all->place[i].next = (uint16_t)(i + 1);
	all->free = 1;
}

void
neighbour_wait_free(struct neighbours *all)
{
	uint16_t i;

	for (i = 1; i <= NEIGHBOUR_WAIT_ALL; i++) {
		rte_pktmbuf_free(all->place[i].m);
		rte_pktmbuf_free(all->place[i].unreachable);
	}
}

/* 0: there is none. */
static uint16_t
take_place(struct neighbours *all)
{
	uint16_t i;

	sl_lock(&all->free_lock);
	i = all->free;
	if (i != 0)
		all->free = all->place[i].next;
	sl_unlock(&all->free_lock);
	return i;
}

/* Returns what was there. */
static struct neighbour_place
free_place(struct neighbours *all, uint16_t i)
{
	struct neighbour_place was = all->place[i];

	all->place[i] = (struct neighbour_place){.m = NULL};
	sl_lock(&all->free_lock);
	all->place[i].next = all->free;
	all->free = i;
	sl_unlock(&all->free_lock);
	return was;
}

/* ---- queues ---- */

static void
mark_set(struct neighbours *all, const struct neighbour_set *s)
{
	size_t i = (size_t)(s - all->set);

	__atomic_or_fetch(&all->sets_waiting[i / 64], UINT64_C(1) << i % 64, __ATOMIC_SEQ_CST);
}

static void
unmark_set(struct neighbours *all, const struct neighbour_set *s) SL_REQUIRES(&s->lock)
{
	size_t i = (size_t)(s - all->set);
	unsigned int k;

	for (k = 0; k < NEIGHBOUR_SET_SIZE; k++)
		if (s->n[k].queue.n > 0)
			return;
	__atomic_and_fetch(&all->sets_waiting[i / 64], ~(UINT64_C(1) << i % 64), __ATOMIC_RELAXED);
}

static void
count(struct neighbours *all, struct link *out, int n)
{
	__atomic_add_fetch(&all->waiting, n, __ATOMIC_RELAXED);
	if (out != NULL)
		__atomic_add_fetch(&out->waiting, n, __ATOMIC_RELAXED);
}

void
neighbour_wait_take(struct neighbours *all, struct neighbour_set *s, struct neighbour *n,
	struct neighbour_queue *out)
{
	*out = n->queue;
	if (likely(out->n == 0))
		return;
	n->queue = (struct neighbour_queue){.n = 0};
	count(all, out->out, -(int)out->n);
	unmark_set(all, s);
}

void
neighbour_wait_send(struct worker *w, const struct link *l, const struct neighbour_queue *q,
	const struct rte_ether_addr *mac)
{
	struct neighbours *all = w->gw->neighbours;
	struct neighbour_place was;
	uint16_t i, next;

	for (i = q->first; i != 0; i = next) {
		next = i == q->last ? 0 : all->place[i].next;
		was = free_place(all, i);
		rte_pktmbuf_free(was.unreachable);
		rte_pktmbuf_mtod(was.m, struct rte_ether_hdr *)->dst_addr = *mac;
		datapath_send(w, l->ns, l, was.m);
	}
}

static struct netns *
owner_of(const struct worker *w, const struct neighbour_queue *q)
{
	struct netns *ns = netns_by_id(w->gw->netns, q->owner);

	return ns != NULL && ns->gen == q->owner_gen ? ns : NULL;
}

/* Its sender hears that the host has not answered, if the link is still there. */
static void
tell(struct worker *w, const struct neighbour_queue *q, const struct neighbour_place *was)
{
	const struct link *in = q->out->id == was->in ? q->out : link_peer(q->out);

	if (was->unreachable != NULL && in != NULL && in->id == was->in)
		datapath_send_error(w, in->ns, in, was->unreachable);
	else
		rte_pktmbuf_free(was->unreachable);
}

void
neighbour_wait_drop(struct worker *w, const struct neighbour_queue *q, enum sl_drop reason)
{
	struct neighbours *all = w->gw->neighbours;
	struct neighbour_place was;
	uint16_t i, next;

	for (i = q->first; i != 0; i = next) {
		next = i == q->last ? 0 : all->place[i].next;
		was = free_place(all, i);
		if (reason == SL_DROP_NEIGHBOUR_UNKNOWN)
			tell(w, q, &was);
		else
			rte_pktmbuf_free(was.unreachable);
		rte_pktmbuf_free(was.m);
	}
	if (q->n > 0)
		datapath_count_drops(w, owner_of(w, q), reason, q->n);
}

/* ---- a frame ---- */

/* One more, for which there is a place. */
static void
append(struct worker *w, struct neighbour_set *s, struct neighbour *n, struct link *l, uint16_t i)
	SL_REQUIRES(&s->lock)
{
	struct neighbours *all = w->gw->neighbours;
	struct neighbour_queue *q = &n->queue;

	if (q->n == 0)
		*q = (struct neighbour_queue){.first = i,
			.since_ms = w->now.ms,
			.owner = l->ns->id,
			.owner_gen = l->ns->gen};
	else
		all->place[q->last].next = i;
	q->last = i;
	q->n++;
	mark_set(all, s);
	q->out = __atomic_load_n(&l->leaving, __ATOMIC_SEQ_CST) ? NULL : l;
	count(all, q->out, 1);
}

/* The oldest makes room; it is the caller's. */
static void
pop(struct neighbours *all, struct neighbour *n, struct neighbour_queue *out)
{
	struct neighbour_queue *q = &n->queue;

	*out = *q;
	out->last = out->first;
	out->n = 1;
	q->first = all->place[q->first].next;
	q->n--;
	count(all, q->out, -1);
}

/* The frame waits. False: there is no room. */
static bool
wait_in(struct worker *w, struct neighbour_set *s, struct neighbour *n, struct link *l,
	const struct neighbour_frame *f) SL_REQUIRES(&s->lock)
{
	struct neighbours *all = w->gw->neighbours;
	uint16_t i = 0;

	if (__atomic_load_n(&l->waiting, __ATOMIC_RELAXED) < NEIGHBOUR_WAIT_LINK)
		i = take_place(all);
	if (i == 0)
		return false;
	all->place[i] = (struct neighbour_place){
		.m = f->m, .unreachable = f->unreachable, .in = f->in->id};
	append(w, s, n, l, i);
	return true;
}

void
neighbour_wait(struct worker *w, struct link *l, uint8_t family, const struct tuple_addr *addr,
	const struct neighbour_frame *f)
{
	struct neighbour_set *s = neighbour_set_of(w->gw->neighbours, l, family, addr);
	struct neighbour_queue oldest = {.n = 0};
	bool known = false, waits = false;
	struct rte_ether_addr mac;
	struct neighbour *n;

	sl_lock(&s->lock);
	n = neighbour_search(s, l, family, addr);
	if (n != NULL && n->known) {
		known = true;
		mac = n->mac;
	} else if (n != NULL) {
		if (n->queue.n == NEIGHBOUR_WAIT_HOST)
			pop(w->gw->neighbours, n, &oldest);
		waits = wait_in(w, s, n, l, f);
	}
	sl_unlock(&s->lock);
	neighbour_wait_drop(w, &oldest, SL_DROP_NEIGHBOUR_QUEUE);
	if (waits)
		return;
	rte_pktmbuf_free(f->unreachable);
	if (known) {
		rte_pktmbuf_mtod(f->m, struct rte_ether_hdr *)->dst_addr = mac;
		datapath_send(w, l->ns, l, f->m);
	} else {
		datapath_count_drops(w, l->ns, SL_DROP_NEIGHBOUR_QUEUE, 1);
		rte_pktmbuf_free(f->m);
	}
}

/* ---- the end of waiting ---- */

/* What is to be done about one queue. */
struct due {
	struct neighbour_queue taken; /* to be dropped for the reason */
	enum sl_drop reason;
	struct link *ask; /* NULL: not to be asked for */
	uint8_t family;
	struct tuple_addr addr;
};

/* What has taken the link away. */
static enum sl_drop
gone(const struct worker *w, const struct neighbour_queue *q)
{
	const struct netns *ns = owner_of(w, q);

	return ns != NULL && netns_alive(ns) ? SL_DROP_NO_PEER : SL_DROP_NETNS_DYING;
}

static void
judge(struct worker *w, struct neighbour_set *s, struct neighbour *n, struct due *d)
	SL_REQUIRES(&s->lock)
{
	const struct neighbour_queue *q = &n->queue;

	*d = (struct due){.ask = NULL};
	if (q->n == 0)
		return;
	if (q->out == NULL || neighbour_age(w->now.ms, q->since_ms) >= WAIT_MS) {
		d->reason = q->out == NULL ? gone(w, q) : SL_DROP_NEIGHBOUR_UNKNOWN;
		neighbour_wait_take(w->gw->neighbours, s, n, &d->taken);
	} else if (neighbour_age(w->now.ms, n->asked_ms) >= NEIGHBOUR_ASK_MS) {
		n->asked_ms = w->now.ms;
		d->ask = q->out;
		d->family = n->family;
		d->addr = n->addr;
	}
}

static void
sweep_set(struct worker *w, struct neighbour_set *s)
{
	struct due d;
	unsigned int k;

	for (k = 0; k < NEIGHBOUR_SET_SIZE; k++) {
		sl_lock(&s->lock);
		judge(w, s, &s->n[k], &d);
		sl_unlock(&s->lock);
		neighbour_wait_drop(w, &d.taken, d.reason);
		if (d.ask != NULL)
			neighbour_ask(w, d.ask, d.family, &d.addr);
	}
}

void
neighbour_sweep(struct worker *w)
{
	struct neighbours *all = w->gw->neighbours;
	uint32_t swept = __atomic_load_n(&all->swept_ms, __ATOMIC_RELAXED);
	uint64_t bits;
	unsigned int i;

	if (likely(__atomic_load_n(&all->waiting, __ATOMIC_RELAXED) == 0) ||
		w->now.ms - swept < SWEEP_MS ||
		!__atomic_compare_exchange_n(&all->swept_ms, &swept, w->now.ms, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	for (i = 0; i < NEIGHBOUR_SETS / 64; i++)
		for (bits = __atomic_load_n(&all->sets_waiting[i], __ATOMIC_RELAXED); bits != 0;
			bits &= bits - 1)
			sweep_set(w, &all->set[i * 64 + (unsigned int)__builtin_ctzll(bits)]);
	datapath_flush(w);
}

/* ---- control ---- */

static void
forget_link(struct neighbour_set *s, const struct link *l)
{
	unsigned int k;

	sl_lock(&s->lock);
	for (k = 0; k < NEIGHBOUR_SET_SIZE; k++)
		if (s->n[k].queue.out == l)
			s->n[k].queue.out = NULL;
	sl_unlock(&s->lock);
}

void
neighbours_link_gone(struct neighbours *all, struct link *l)
{
	uint64_t bits;
	unsigned int i;

	__atomic_store_n(&l->leaving, true, __ATOMIC_SEQ_CST);
	for (i = 0; i < NEIGHBOUR_SETS / 64; i++)
		for (bits = __atomic_load_n(&all->sets_waiting[i], __ATOMIC_SEQ_CST); bits != 0;
			bits &= bits - 1)
			forget_link(&all->set[i * 64 + (unsigned int)__builtin_ctzll(bits)], l);
}
