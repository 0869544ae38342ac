/* SPDX-License-Identifier: BSD-3-Clause */
/* Between frag.c (the table) and frag_train.c (complete datagrams). */
#ifndef FRAG_PRIVATE_H
#define FRAG_PRIVATE_H

#include "frag.h"
#include "lock.h"
#include "stripe.h"

#define FRAG_LEVELS  4 /* of the skip list of a datagram's fragments */
#define FRAG_STRIPES 256u

/* One held fragment. References are indices; 0 is none. */
struct frag {
	struct rte_mbuf *mbuf;
	uint32_t next[FRAG_LEVELS]; /* by offset; [0] links the free ones too */
	uint16_t off, len;          /* of its payload within the datagram's */
	uint16_t hdr;               /* bytes of the frame before the payload */
	uint16_t cut;               /* in a view: bytes taken off the frame's front; 0: not in it */
	uint16_t copied;            /* in a view: bytes of payload that are in its first segment */
	struct frag_tags tags;
	bool joined; /* came behind the last one then, without a hole: of one run with it */
};

/*
 * A datagram. `gen` is odd while it is in the table; what is read without its stripe (by the
 * sweep, and when its owner makes room) is `gen`, `hash` and `deadline`, and is checked by gen
 * under the stripe.
 */
struct frag_train {
	/* constant while in the table */
	struct tuple key;
	uint32_t owner_gen;
	uint64_t hash;
	struct frag_table *table;
	uint32_t account;
	uint32_t deadline;
	/* atomic */
	uint32_t gen;
	/* its stripe */
	uint32_t chain; /* next of the bucket; next free one */
	uint32_t first[FRAG_LEVELS];
	uint32_t end;   /* how far the fragments reach; the length when `last` */
	uint32_t have;  /* bytes of payload that are there */
	uint32_t bytes; /* charged for its fragments */
	uint32_t n;
	bool last;   /* the last one has come */
	bool barred; /* overlapped: empty, and stays so until its time is over */
	/* its account's lock */
	uint32_t older, newer;
	/* complete: the worker that has it */
	struct rte_mbuf *view;
} __rte_cache_aligned;

/* What one owner holds in one family, oldest first. */
struct frag_account {
	struct sl_lock lock;
	uint32_t fragments, datagrams;
	uint32_t oldest, newest;
	uint64_t bytes;
};

struct frag_table {
	/* constant */
	uint32_t max;
	uint32_t owners;
	uint32_t bucket_mask;
	struct sl_hasher hasher;
	struct frag *frag;            /* [max + 1] */
	struct frag_train *train;     /* [max + 1] */
	uint32_t *bucket;             /* each by its stripe */
	struct frag_account *account; /* [2 * owners]: owner * 2 + (family is IPv6) */
	struct {
		struct sl_stripe stripe;
		uint32_t random; /* of the skip lists */
	} __rte_cache_aligned stripe[FRAG_STRIPES];

	struct sl_lock free_lock; /* the free lists; the counts are read by anyone */
	uint32_t free_frag, free_train;
	uint32_t n_free_frag, n_free_train;
	uint64_t bytes; /* atomic */

	struct sl_lock sweep_lock; /* the two below */
	uint32_t sweep_at;         /* next train of the pass; 0: no pass */
	uint32_t sweep_ms;         /* when it began */
};

/* What was taken from the table and is to be dropped. */
struct frag_spoils {
	uint32_t first;
	unsigned int n;
	struct frag_train *train; /* NULL: stays */
	uint32_t owner, owner_gen;
	enum sl_drop reason;
};

static inline struct frag_account *
frag_account_of(struct frag_table *t, uint32_t owner, uint8_t family)
{
	return &t->account[owner * 2 + (family == TUPLE_IPV6)];
}

static inline struct sl_stripe *
frag_stripe_of(struct frag_table *t, uint64_t hash)
{
	return &t->stripe[hash % FRAG_STRIPES].stripe;
}

/* From the free lists. Index 0, or NULL, when there is none. */
struct frag *frag_alloc(struct frag_table *t, uint32_t *index);
struct frag_train *frag_alloc_train(struct frag_table *t);

/* Give back to the free lists: a chain of n fragments, without their mbufs; a train. */
void frag_free_chain(struct frag_table *t, uint32_t first, unsigned int n);
void frag_free_train(struct frag_table *t, struct frag_train *d);

/* Charges one fragment if there is room (SL_DROP_NONE); else says why there is not. */
enum sl_drop frag_charge(
	struct frag_table *t, struct frag_account *a, uint32_t cost, uint32_t high_thresh);
void frag_uncharge(
	struct frag_table *t, struct frag_account *a, unsigned int fragments, uint32_t bytes);

/* A new datagram, the newest of its account. */
void frag_account_enter(struct frag_table *t, struct frag_account *a, struct frag_train *d);

/* Takes a datagram out of the table; the caller owns it. */
void frag_take_out(struct frag_table *t, struct sl_stripe *s, struct frag_train *d)
	SL_REQUIRES(&s->lock);

/* What a datagram holds, to be dropped for a reason. */
struct frag_spoils frag_spoils_of(struct frag_train *d, enum sl_drop reason);

/* Frees it, with no lock held, and tells the sink. */
void frag_discard(struct frag_table *t, const struct frag_spoils *s, const struct frag_sink *sink);

/*
 * Takes a datagram out for out->reason, if it is still the one that was seen as (gen, hash) without
 * its stripe. Then it is the caller's to discard.
 */
bool frag_drop_seen(
	struct frag_table *t, uint32_t i, uint32_t gen, uint64_t hash, struct frag_spoils *out);

#endif
