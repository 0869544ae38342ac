/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of neighbour*.c. */
#ifndef NEIGHBOUR_PRIVATE_H
#define NEIGHBOUR_PRIVATE_H

#include "link.h"
#include "lock.h"
#include "neighbour.h"
#include "worker.h"

#define NEIGHBOUR_SETS     1024u
#define NEIGHBOUR_SET_SIZE 8u

#define NEIGHBOUR_ASK_MS 1000u
#define NEIGHBOUR_ASKS   3u /* without an answer: it is not where it was */

/* Frames that wait for a neighbour; numbers of their places, 0 is none. */
struct neighbour_queue {
	uint16_t first, last;
	uint16_t n;
	uint32_t since_ms;    /* when the first one came */
	struct link *out;     /* what they leave on; NULL: it has gone meanwhile */
	uint32_t owner, owner_gen; /* the link's namespace */
};

struct neighbour {
	uint32_t link; /* its id; 0: free */
	uint8_t family;
	uint8_t asks; /* since it was heard of */
	bool known;
	struct rte_ether_addr mac;
	struct tuple_addr addr;
	uint32_t heard_ms, asked_ms;
	struct neighbour_queue queue; /* empty while it is known */
};

struct neighbour_set {
	struct sl_lock lock;
	struct neighbour n[NEIGHBOUR_SET_SIZE]; /* guarded by lock */
};

struct neighbour_place {
	struct rte_mbuf *m, *unreachable; /* of struct neighbour_frame */
	uint32_t in;   /* id of its link */
	uint16_t next; /* of a queue, or of those that are free */
};

struct neighbours {
	struct sl_hasher hasher;
	struct neighbour_set set[NEIGHBOUR_SETS];
	/* frames that wait: see neighbour_wait.c */
	uint32_t waiting;  /* atomic */
	uint32_t swept_ms; /* atomic */
	uint64_t sets_waiting[NEIGHBOUR_SETS / 64]; /* atomic: a bit for each set that has some */
	struct sl_lock free_lock;
	uint16_t free; /* guarded by free_lock */
	struct neighbour_place place[NEIGHBOUR_WAIT_ALL + 1];
};

/* Milliseconds since `then`. What another thread has read of the clock may be a little later. */
static inline uint32_t
neighbour_age(uint32_t now_ms, uint32_t then_ms)
{
	int32_t age = (int32_t)(now_ms - then_ms);

	return age > 0 ? (uint32_t)age : 0;
}

/* ---- neighbour.c ---- */

struct neighbour_set *neighbour_set_of(struct neighbours *n, const struct link *l, uint8_t family,
	const struct tuple_addr *addr);

/* NULL: not there. */
struct neighbour *neighbour_search(struct neighbour_set *s, const struct link *l, uint8_t family,
	const struct tuple_addr *addr) SL_REQUIRES(&s->lock);

void neighbour_ask(
	struct worker *w, struct link *l, uint8_t family, const struct tuple_addr *addr);

/* ---- neighbour_wait.c ---- */

void neighbour_wait_init(struct neighbours *all);
void neighbour_wait_free(struct neighbours *all);

/* All that wait for n, one of s, are the caller's. */
void neighbour_wait_take(struct neighbours *all, struct neighbour_set *s, struct neighbour *n,
	struct neighbour_queue *out) SL_REQUIRES(&s->lock);

/* The end of a queue that was taken, with nothing held: sent to that station, or dropped. */
void neighbour_wait_send(struct worker *w, const struct link *l, const struct neighbour_queue *q,
	const struct rte_ether_addr *mac);
void neighbour_wait_drop(struct worker *w, const struct neighbour_queue *q, enum sl_drop reason);

#endif
