/* SPDX-License-Identifier: BSD-3-Clause */
/* The table, and who is asked for. What waits for an answer is neighbour_wait.c's. */
#include "neighbour_private.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_mbuf.h>

#include "datapath_stages.h"
#include "err.h"
#include "link_address.h"
#include "neigh.h"

#define FRESH_MS 30000u /* since it was heard of; then it is asked again */

struct neighbours *
neighbours_create(enum sl_hash_backend hash, uint64_t hash_seed, struct sl_err *err)
{
	struct neighbours *n = aligned_alloc(RTE_CACHE_LINE_SIZE,
		RTE_ALIGN_CEIL(sizeof(*n), (size_t)RTE_CACHE_LINE_SIZE));

	if (n == NULL) {
		sl_refuse(err, ENOMEM, "out of memory");
		return NULL;
	}
	memset(n, 0, sizeof(*n));
	neighbour_wait_init(n);
	if (sl_hasher_init(&n->hasher, hash, hash_seed) != 0) {
		sl_refuse(err, ENOTSUP, "no random numbers, or not the hash that is asked for");
		free(n);
		return NULL;
	}
	return n;
}

void
neighbours_destroy(struct neighbours *n)
{
	if (n != NULL)
		neighbour_wait_free(n);
	free(n);
}

/* ---- worker ---- */

struct neighbour_set *
neighbour_set_of(
	struct neighbours *n, const struct link *l, uint8_t family, const struct tuple_addr *addr)
{
	const struct tuple key = {.scope = l->id, .family = family, .src = *addr};

	return &n->set[sl_hash(&n->hasher, &key) % NEIGHBOUR_SETS];
}

struct neighbour *
neighbour_search(struct neighbour_set *s, const struct link *l, uint8_t family,
	const struct tuple_addr *addr)
{
	struct neighbour *n;

	for (n = s->n; n < s->n + NEIGHBOUR_SET_SIZE; n++)
		if (n->link == l->id && n->family == family &&
			memcmp(&n->addr, addr, sizeof(n->addr)) == 0)
			return n;
	return NULL;
}

/*
 * Whose place a new one takes: a free one, else the one that was not heard of for longest, those of
 * the same link first, so that no namespace's neighbours go for another's; one that frames wait for
 * only where they wait for all.
 */
static struct neighbour *
victim(struct neighbour_set *s, const struct link *l, uint32_t now_ms)
{
	struct neighbour *n, *best = s->n;
	uint64_t age, best_age = 0;

	for (n = s->n; n < s->n + NEIGHBOUR_SET_SIZE; n++) {
		if (n->link == 0)
			return n;
		age = (uint64_t)(n->queue.n == 0) << 34 | (uint64_t)(n->link == l->id) << 33 |
		      (uint64_t)!n->known << 32 | neighbour_age(now_ms, n->heard_ms);
		if (age > best_age) {
			best = n;
			best_age = age;
		}
	}
	return best;
}

/* Whether it is time to ask; counts the question. */
static bool
due(struct neighbour *n, uint32_t now_ms)
{
	if (n->known && neighbour_age(now_ms, n->heard_ms) < FRESH_MS)
		return false;
	if (n->asks > 0 && neighbour_age(now_ms, n->asked_ms) < NEIGHBOUR_ASK_MS)
		return false;
	if (n->asks >= NEIGHBOUR_ASKS)
		n->known = false;
	else
		n->asks++;
	n->asked_ms = now_ms;
	return true;
}

void
neighbour_ask(struct worker *w, struct link *l, uint8_t family, const struct tuple_addr *addr)
{
	const struct link_address *from = link_address(l, family, addr);
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->gw->pool);

	if (m == NULL)
		return;
	if (from != NULL && neigh_ask(m, family, addr, &from->addr, &l->mac))
		datapath_send_untagged(w, l, m);
	else
		rte_pktmbuf_free(m);
}

enum neighbour_state
neighbour_find(struct worker *w, struct link *l, uint8_t family, const struct tuple_addr *addr,
	struct rte_ether_addr *mac)
{
	struct neighbour_set *s = neighbour_set_of(w->gw->neighbours, l, family, addr);
	bool on_link = link_on_link(l, family, addr) >= 0, known, asks = false;
	struct neighbour_queue evicted = {.n = 0};
	struct neighbour *n;

	sl_lock(&s->lock);
	n = neighbour_search(s, l, family, addr);
	if (n == NULL && on_link) {
		n = victim(s, l, w->now.ms);
		neighbour_wait_take(w->gw->neighbours, s, n, &evicted);
		*n = (struct neighbour){.link = l->id, .family = family, .addr = *addr,
			.heard_ms = w->now.ms};
	}
	if (n != NULL)
		asks = on_link && due(n, w->now.ms);
	known = n != NULL && n->known;
	if (known)
		*mac = n->mac;
	sl_unlock(&s->lock);
	neighbour_wait_drop(w, &evicted, SL_DROP_NEIGHBOUR_QUEUE);
	if (asks)
		neighbour_ask(w, l, family, addr);
	if (known)
		return NEIGHBOUR_KNOWN;
	return on_link ? NEIGHBOUR_ASKED : NEIGHBOUR_NONE;
}

void
neighbour_heard(struct worker *w, const struct link *l, uint8_t family,
	const struct tuple_addr *addr, const struct rte_ether_addr *mac)
{
	struct neighbour_set *s = neighbour_set_of(w->gw->neighbours, l, family, addr);
	struct neighbour_queue waited = {.n = 0};
	struct neighbour *n;

	sl_lock(&s->lock);
	n = neighbour_search(s, l, family, addr);
	if (n != NULL) {
		n->mac = *mac;
		n->known = true;
		n->asks = 0;
		n->heard_ms = w->now.ms;
		neighbour_wait_take(w->gw->neighbours, s, n, &waited);
	}
	sl_unlock(&s->lock);
	neighbour_wait_send(w, l, &waited, mac);
}
