/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual reassembly. Fragments are held until their datagram is complete; then the packet path
 * processes it as one packet, through a view of all of it, and the fragments leave as they came:
 * same sizes, boundaries and flags, in order of their offsets. What is not complete in time, or is
 * refused, is dropped and never sent.
 *
 * One table for all namespaces and workers, so that the fragments of a datagram meet wherever they
 * arrive. The key is (scope, zone, family, source, destination, id), with the protocol in IPv4.
 *
 * What fragments must not do (RFC 791, RFC 5722, RFC 8200 4.5), and what is dropped for it:
 *
 *   be no multiple of 8 though not the last     it alone, FRAG_INVALID
 *   be empty, reach beyond 65,535 bytes,        FRAG_INVALID; of IPv4 the datagram, of IPv6
 *   end in two places, go on behind the end     it alone
 *   be in one that is there, or in several      it alone, FRAG_DUPLICATE
 *   that came one behind the other
 *   overlap otherwise                           the datagram, FRAG_OVERLAP; of IPv6 also what
 *                                               comes until the datagram's time is over
 *
 * This is what Linux does, but that it cuts an IPv4 fragment to a multiple of 8, and of IPv6
 * starts anew after an overlap.
 *
 * Bounds. What counts is the memory of the buffers, not the bytes in them, so that tiny
 * fragments are no way around. An owner (a namespace) has at most its high_thresh of it for each
 * family; at that, its own oldest datagram makes room. All together hold at most
 * frag_config.fragments, and one owner and family never more than is left for others: k floods
 * get a share of 1 / (k + 1) each, and as much stays free. Nobody's datagrams are dropped for
 * somebody else's.
 */
#ifndef FRAG_H
#define FRAG_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "drop.h"
#include "hash.h"
#include "pkt.h"

struct frag_table;
struct frag_train; /* a complete datagram: its fragments, in the hands of one worker */
struct rte_mbuf;
struct rte_mempool;
struct sl_err;

struct frag_config {
	uint32_t fragments; /* held at most, over all owners; at least 2 */
	uint32_t owners;    /* ids of owners are below this */
	enum sl_hash_backend hash;
	uint64_t hash_seed; /* 0: random */
};

/* NULL with err filled when memory is short, or the hash is not to be had. */
struct frag_table *frag_create(const struct frag_config *config, struct sl_err *err);

/* Frees all that is held. No thread uses the table any more, and no train is left. Takes NULL. */
void frag_destroy(struct frag_table *t);

/* Told of fragments that were held and had to be dropped; called with no lock held. */
struct frag_sink {
	void (*lost)(
		void *arg, uint32_t owner, uint32_t owner_gen, enum sl_drop reason, unsigned int n);
	void *arg;
};

/* Who pays for a fragment, and what he may have. */
struct frag_policy {
	uint32_t owner, owner_gen;
	uint32_t high_thresh; /* bytes of buffers, in this family */
	uint32_t timeout_ms;  /* from the first fragment that came to the last */
	struct sl_now now;
};

enum frag_verdict {
	FRAG_HELD,     /* pkt.mbuf belongs to the table */
	FRAG_COMPLETE, /* likewise; *train is the caller's */
	FRAG_REFUSED,  /* pkt.mbuf is the caller's still; the reason is in pkt.reason */
};

/* Worker: takes a fragment (PARSE_FRAGMENT), whose tuple's scope and zone are set. */
enum frag_verdict frag_add(struct frag_table *t, struct pkt *p, const struct frag_policy *policy,
	const struct frag_sink *sink, struct frag_train **train);

/*
 * Worker: drops datagrams whose time is over. Looks at a part of the table, and goes through all
 * of it every 100 ms; costs one load while nothing is held. A datagram is never completed after
 * its time, whether the sweep has found it or not.
 */
void frag_sweep(struct frag_table *t, struct sl_now now, const struct frag_sink *sink);

/* The same for the whole table at once, where time jumps (replay). */
void frag_sweep_all(struct frag_table *t, struct sl_now now, const struct frag_sink *sink);

/*
 * Control: drops the datagrams of owners that are not alive, in slices; *cursor begins at 0.
 * Returns true while there is more. No worker adds anything for such an owner any more.
 */
bool frag_purge_slice(struct frag_table *t, uint32_t *cursor, unsigned int budget,
	bool (*alive)(void *arg, uint32_t owner, uint32_t owner_gen), const struct frag_sink *sink);

struct frag_stats {
	uint64_t bytes; /* of buffers held for fragments, with what the table needs to hold them */
	uint64_t fragments; /* held, those of trains under way included */
	uint64_t datagrams;
	uint64_t max; /* the most fragments */
};

/* Any thread; exact when quiet. */
void frag_stats(const struct frag_table *t, struct frag_stats *out);
void frag_owner_stats(struct frag_table *t, uint32_t owner, struct frag_stats *out);

/* ---- trains: by the worker that has it ---- */

unsigned int frag_train_len(const struct frag_train *train);

/* The longest of the fragments, in bytes from its IP header on, and how long the first one is. */
uint32_t frag_train_longest(const struct frag_train *train, uint32_t *first);

/*
 * A view of the whole datagram: one frame, of the first fragment's headers and all payload, as
 * the sender had it before it was fragmented (an IPv6 fragment header is left out). The first
 * segment is from the pool and has the headers; the payload lies in the fragments themselves.
 * For parse_view(); it must not be sent or freed, and is gone with frag_train_next() and
 * frag_train_free(). Of its first segment MAC and IP addresses, identification and transport
 * header may be changed, if frag_train_update() is called then. NULL, with the reason to drop the
 * datagram for, when the pool is empty, or the whole would be longer than a packet can be, or its
 * headers than a buffer.
 */
struct rte_mbuf *frag_train_view(
	struct frag_train *train, struct rte_mempool *pool, enum sl_drop *reason);

/* Brings what was changed in the view into the fragments, wherever it lies: MAC and IP addresses
 * and the IPv4 identification into each, payload into the one that has it. */
void frag_train_update(struct frag_train *train);

/* A fragment's tags as pkt has them. */
struct frag_tags {
	uint16_t tpid, outer_tci, inner_tci;
	uint8_t n;
};

/* Takes out the next fragment, by offset; the mbuf is the caller's. NULL when there is none. */
struct rte_mbuf *frag_train_next(struct frag_train *train, struct frag_tags *tags);

/* Frees the train with the fragments that were not taken out. */
void frag_train_free(struct frag_train *train);

#endif
