/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reassembly under threads: the fragments of each datagram are spread over all workers, in random
 * order, repeated, overlapping and with wrong ends, while time runs out, owners are purged and the
 * bounds are reached. Run it under thread and address sanitizer.
 *
 * What must hold:
 *   - a complete datagram is what its sender sent, byte for byte, and so are its fragments; only
 *     the length may be one that a wrong end says
 *   - each fragment is sent, or dropped for one reason, once
 *   - in the end nothing is held, charged or lost: all buffers are back in the pool
 *
 *     stress_frag [--seconds N] [--threads N] [--seed N]
 */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "frag.h"
#include "fragments.h"
#include "parse.h"
#include "stress.h"

#define OWNERS      4u
#define IDS         3u
#define PIECE       64u /* bytes of the usual fragment */
#define PIECES      12u /* of a datagram */
#define TAIL        21u /* bytes of its last fragment */
#define TOTAL       (PIECE * (PIECES - 1) + TAIL)
#define HELD        256u
#define BUFFERS     2048u
#define MAX_WORKERS 16u

static struct frag_table *table;
static struct rte_mempool *pool;
static uint32_t owner_gen[OWNERS];
static unsigned int n_workers = 3, seconds = 5;
static uint64_t seed = 1;
static bool stop;

struct worker {
	pthread_t thread;
	uint64_t random;
	uint64_t added, sent, refused, lost, complete;
};

static void
lost(void *arg, uint32_t owner, uint32_t gen, enum sl_drop reason, unsigned int n)
{
	struct worker *w = arg;

	REQUIRE(owner < OWNERS && gen <= __atomic_load_n(&owner_gen[owner], __ATOMIC_RELAXED));
	REQUIRE(reason > SL_DROP_NONE && reason < SL_DROP_COUNT && n > 0);
	w->lost += n;
}

/* One in 32 is odd. Owner 0 sends nothing odd, and all of it should come through. */
static struct fragment_spec
choose(struct worker *w)
{
	uint64_t r = next_random(&w->random);
	unsigned int piece = (unsigned int)(r >> 8) % PIECES;
	struct fragment_spec s = {
		.family = r & 1 ? TUPLE_IPV6 : TUPLE_IPV4,
		.owner = (uint32_t)(r >> 1) % OWNERS,
		.id = (uint32_t)(r >> 16) % IDS,
		.off = (uint16_t)(piece * PIECE),
		.len = piece == PIECES - 1 ? TAIL : PIECE,
		.more = piece != PIECES - 1,
		.padding = (uint16_t)((r >> 40) % 24),
	};

	if (s.owner == 0 || (r >> 48) % 32 != 0)
		return s;
	switch ((r >> 56) % 4) {
	case 0:
		s.off += 8;
		break;
	case 1:
		s.more = !s.more || s.off == 0;
		break;
	case 2:
		s.len = 0;
		break;
	default:
		s.len = (uint16_t)(s.len * 2);
	}
	return s;
}

static void
check_view(struct frag_train *train, const struct fragment_spec *s)
{
	enum sl_drop reason;
	struct rte_mbuf *view = frag_train_view(train, pool, &reason), *m;
	uint32_t off = 0, skip, total;
	struct pkt p;

	if (view == NULL) {
		REQUIRE(reason == SL_DROP_FRAG_MEMORY);
		return;
	}
	REQUIRE(parse_view(&p, view) == SL_DROP_NONE);
	REQUIRE(p.flags == PKT_IP);
	total = p.l4_len;
	REQUIRE(s->owner != 0 || total == TOTAL);
	skip = (uint32_t)(p.l4 - rte_pktmbuf_mtod(view, uint8_t *));
	for (m = view; m != NULL && off < total; m = m->next, skip = 0) {
		uint32_t n = RTE_MIN(m->data_len - skip, total - off);

		REQUIRE(fragment_payload_good(
			rte_pktmbuf_mtod_offset(m, uint8_t *, skip), n, off, s));
		off += n;
	}
	REQUIRE(off == total);
}

/* What leaves is whole, in order and as it came. */
static void
send_train(struct worker *w, struct frag_train *train, const struct fragment_spec *s)
{
	struct frag_tags tags;
	struct rte_mbuf *m;
	uint32_t off = 0;
	struct pkt p;

	while ((m = frag_train_next(train, &tags)) != NULL) {
		REQUIRE(m->next == NULL && m->nb_segs == 1 && m->data_len == m->pkt_len);
		REQUIRE(parse_frame(&p, m) == PARSE_FRAGMENT);
		REQUIRE(p.frag_off == off && tags.n == 0);
		REQUIRE(fragment_payload_good(p.l3 + p.l3_len, p.l4_len, off, s));
		off += p.l4_len;
		w->sent++;
		rte_pktmbuf_free(m);
	}
	REQUIRE(off == TOTAL || (s->owner != 0 && off > 0));
	frag_train_free(train);
	w->complete++;
}

static void
drop_train(struct worker *w, struct frag_train *train)
{
	w->lost += frag_train_len(train);
	frag_train_free(train);
}

static void
add_one(struct worker *w, struct sl_now now)
{
	const struct frag_sink sink = {.lost = lost, .arg = w};
	struct fragment_spec s = choose(w);
	struct frag_policy policy = {
		.owner = s.owner,
		.owner_gen = __atomic_load_n(&owner_gen[s.owner], __ATOMIC_RELAXED),
		.high_thresh = 256u << 10,
		.timeout_ms = 2000,
		.now = now,
	};
	struct rte_mbuf *m = fragment_new(pool, &s);
	struct frag_train *train;
	struct pkt p;

	if (m == NULL)
		return;
	REQUIRE(fragment_parse(&p, m, s.owner) == PARSE_FRAGMENT);
	w->added++;
	switch (frag_add(table, &p, &policy, &sink, &train)) {
	case FRAG_REFUSED:
		REQUIRE(p.reason != SL_DROP_NONE);
		w->refused++;
		rte_pktmbuf_free(m);
		break;
	case FRAG_COMPLETE:
		check_view(train, &s);
		if (next_random(&w->random) % 8 == 0)
			drop_train(w, train);
		else
			send_train(w, train, &s);
		break;
	case FRAG_HELD:
		break;
	}
}

/* Time runs a hundred times as fast, so that timeouts matter. */
static struct sl_now
fast_clock(void)
{
	return sl_now_from_ns(sl_now_monotonic().ns * 100);
}

static void *
worker_main(void *arg)
{
	const struct frag_sink sink = {.lost = lost, .arg = arg};
	struct worker *w = arg;
	struct sl_now now;
	unsigned int i;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		now = fast_clock();
		for (i = 0; i < 32; i++)
			add_one(w, now);
		frag_sweep(table, now, &sink);
	}
	return NULL;
}

static bool
alive(void *arg, uint32_t owner, uint32_t gen)
{
	(void)arg;
	return gen == __atomic_load_n(&owner_gen[owner], __ATOMIC_RELAXED);
}

/* Owners die and are born again with the same id. Workers may still add for the old one, which no
 * gateway does; that must not get mixed up with the new one either. */
static void *
purge_main(void *arg)
{
	const struct frag_sink sink = {.lost = lost, .arg = arg};
	struct worker *w = arg;
	struct frag_stats stats;
	uint32_t cursor;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint32_t owner = (uint32_t)(next_random(&w->random) % OWNERS);

		__atomic_fetch_add(&owner_gen[owner], 1, __ATOMIC_RELAXED);
		for (cursor = 0; frag_purge_slice(table, &cursor, 16, alive, &sink);)
			;
		frag_owner_stats(table, owner, &stats);
		REQUIRE(stats.bytes <= 2 * (256u << 10));
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	return NULL;
}

static void
check_end(struct worker *w)
{
	const struct frag_sink sink = {.lost = lost, .arg = &w[0]};
	uint64_t added = 0, gone = 0, complete = 0;
	struct sl_now end = sl_now_from_ns(fast_clock().ns + 3600 * SL_NSEC_PER_SEC);
	struct frag_stats stats;
	unsigned int i;

	frag_sweep_all(table, end, &sink);
	for (i = 0; i <= n_workers; i++) {
		added += w[i].added;
		gone += w[i].sent + w[i].refused + w[i].lost;
		complete += w[i].complete;
	}
	frag_stats(table, &stats);
	REQUIRE(stats.bytes == 0 && stats.fragments == 0 && stats.datagrams == 0);
	for (i = 0; i < OWNERS; i++) {
		frag_owner_stats(table, i, &stats);
		REQUIRE(stats.bytes == 0 && stats.fragments == 0 && stats.datagrams == 0);
	}
	REQUIRE(rte_mempool_avail_count(pool) == BUFFERS);
	REQUIRE(added == gone);
	REQUIRE(complete > 0);
	printf("%" PRIu64 " fragments, %" PRIu64 " complete datagrams\n", added, complete);
}

static void
parse_args(int argc, char **argv)
{
	static const struct option options[] = {{"seconds", required_argument, NULL, 's'},
		{"threads", required_argument, NULL, 't'}, {"seed", required_argument, NULL, 'r'},
		{0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			seconds = (unsigned int)atoi(optarg);
			break;
		case 't':
			n_workers = RTE_MIN((unsigned int)atoi(optarg), MAX_WORKERS);
			break;
		case 'r':
			seed = strtoull(optarg, NULL, 0);
			break;
		default:
			exit(2);
		}
	}
	if (n_workers == 0 || seed == 0)
		exit(2);
}

int
main(int argc, char **argv)
{
	static struct worker w[MAX_WORKERS + 1];
	const struct frag_config config = {.fragments = HELD, .owners = OWNERS};
	struct sl_err err;
	unsigned int i;

	parse_args(argc, argv);
	pool = fragments_pool("stress_frag", BUFFERS);
	table = frag_create(&config, &err);
	REQUIRE(table != NULL);
	for (i = 0; i <= n_workers; i++) {
		w[i].random = seed * (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
		REQUIRE(pthread_create(&w[i].thread, NULL,
				i == n_workers ? purge_main : worker_main, &w[i]) == 0);
	}
	nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i <= n_workers; i++)
		pthread_join(w[i].thread, NULL);
	check_end(w);
	frag_destroy(table);
	rte_mempool_free(pool);
	return 0;
}
