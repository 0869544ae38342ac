/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table under threads: workers look up, insert, track, expire and delete the same and different
 * flows, while the control thread lists, flushes and resizes. Run it under thread and address
 * sanitizer.
 *
 * What must hold:
 *   - flows that stay ("stable") are found in both directions, always, and as the same entry
 *   - of a tuple there is never more than one LIVE entry
 *   - a listing has each stable flow exactly once
 *   - when all flows have expired, nothing is counted and no index is lost
 *
 *     stress_table [--seconds N] [--threads N] [--seed N]
 */
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "private.h"
#include "stress.h"

#define STABLE       2000u
#define CONTENDED    64u   /* flows that all workers fight for */
#define PRIVATE      4096u /* flows of one worker */
#define MAX_ENTRIES  65536u
#define MAX_WORKERS  16u
#define BURST        32u
#define FOREVER      86400u

static struct netns_registry *registry;
static struct ct *ct;
static struct ct_entry *stable[STABLE];
static unsigned int n_workers = 3, seconds = 5;
static uint64_t seed = 1;
static bool stop;

/* Time runs a hundred times as fast, so that the timeouts of UDP matter. */
static struct sl_now
fast_clock(void)
{
	return sl_now_from_ns(sl_now_monotonic().ns * 100);
}

enum kind { KIND_STABLE = 1, KIND_CONTENDED, KIND_PRIVATE };

static void
make_packet(struct pkt *p, enum kind kind, unsigned int owner, uint32_t flow, bool reply)
{
	struct tuple there = {.scope = 0, .family = TUPLE_IPV4, .proto = IPPROTO_UDP};

	there.src.w[0] = rte_cpu_to_be_32(0x0a000000u | (uint32_t)kind << 20 | owner);
	there.dst.w[0] = rte_cpu_to_be_32(0xc0000201u);
	there.sport = rte_cpu_to_be_16((uint16_t)flow);
	there.dport = rte_cpu_to_be_16((uint16_t)(flow >> 16));
	memset(p, 0, sizeof(*p));
	p->flags = PKT_IP;
	p->proto = IPPROTO_UDP;
	p->ip_bytes = 28;
	p->ns = netns_init_ns(registry);
	if (reply)
		tuple_invert(&p->tuple, &there);
	else
		p->tuple = there;
}

/* What the packet path does with one packet after the lookup. */
static enum ct_verdict
process(struct ct_thread *t, struct pkt *p, struct sl_now now)
{
	enum ct_verdict v = p->ct != NULL ? CT_LOST : CT_MISS;
	unsigned int turns;

	for (turns = 0; turns < 1000 && (v == CT_LOST || v == CT_MISS); turns++) {
		if (v == CT_LOST) {
			v = ct_track(t, p, now);
			continue;
		}
		v = ct_begin(t, p, now);
		if (v == CT_OK)
			v = ct_commit(t, p);
	}
	return v;
}

static void
check_stable(struct ct_thread *t, uint64_t *rnd)
{
	struct pkt p[BURST];
	uint32_t flow[BURST];
	unsigned int i;
	enum ct_verdict v;

	for (i = 0; i < BURST; i++) {
		flow[i] = (uint32_t)(next_random(rnd) % STABLE);
		make_packet(&p[i], KIND_STABLE, 0, flow[i], next_random(rnd) & 1);
	}
	ct_lookup_bulk(t, p, BURST);
	for (i = 0; i < BURST; i++) {
		if (p[i].ct == NULL) {
			/* Hidden by a writer just now; the insert has to find it. */
			REQUIRE(ct_begin(t, &p[i], fast_clock()) == CT_OK);
			v = ct_commit(t, &p[i]);
			REQUIRE(v == CT_LOST);
		}
		REQUIRE(p[i].ct == stable[flow[i]]);
	}
}

static void
delete_some(struct ct_thread *t, struct pkt *p)
{
	if (!ct_lock_live(p->ct, p->ct_gen))
		return;
	ct_mark_dying(p->ct);
	sl_unlock(&p->ct->lock);
	ct_reap(t, &p->ct, 1);
}

static void *
worker(void *arg)
{
	unsigned int index = (unsigned int)(uintptr_t)arg, i;
	struct ct_thread *t = ct_thread(ct, index);
	uint64_t rnd = seed * 7919 + index + 1;
	struct pkt p[BURST];
	struct sl_now now;

	sl_rcu_register_thread();
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		now = fast_clock();
		for (i = 0; i < BURST; i++) {
			uint64_t r = next_random(&rnd);

			if (r & 1)
				make_packet(&p[i], KIND_CONTENDED, 0, (r >> 8) % CONTENDED, r & 2);
			else
				make_packet(&p[i], KIND_PRIVATE, index, (r >> 8) % PRIVATE, r & 2);
		}
		ct_lookup_bulk(t, p, BURST);
		for (i = 0; i < BURST; i++) {
			enum ct_verdict v = process(t, &p[i], now);

			REQUIRE(v == CT_OK);
			if (next_random(&rnd) % 8 == 0)
				delete_some(t, &p[i]);
		}
		check_stable(t, &rnd);
		ct_sweep(t, next_random(&rnd) & 1, now);
		sl_rcu_quiescent();
	}
	sl_rcu_unregister_thread();
	return NULL;
}

struct listing {
	uint8_t seen[STABLE];
	unsigned int contended[CONTENDED];
};

static bool
see(const struct ct_view *v, void *arg)
{
	const struct tuple *t = &v->entry.orig.tuple;
	struct listing *l = arg;

	if (rte_be_to_cpu_32(t->src.w[0]) == (0x0a000000u | KIND_STABLE << 20))
		l->seen[rte_be_to_cpu_16(t->sport)]++;
	return true;
}

static void
list_all(struct ct_thread *t)
{
	static struct listing l;
	struct ct_filter all = {0};
	struct ct_walk w;
	unsigned int i;

	memset(&l, 0, sizeof(l));
	ct_walk_start(ct, &w, fast_clock());
	while (ct_walk_slice(t, &w, &all, 1000, fast_clock(), &(struct ct_visitor){see, &l}))
		;
	for (i = 0; i < STABLE; i++)
		REQUIRE(l.seen[i] == 1);
}

static bool
not_stable(const struct ct_view *v, const void *arg)
{
	(void)arg;
	return rte_be_to_cpu_32(v->entry.orig.tuple.src.w[0]) >> 20 !=
		       (0x0a000000u >> 20 | KIND_STABLE) &&
	       rte_be_to_cpu_32(v->entry.reply.tuple.src.w[0]) >> 20 !=
		       (0x0a000000u >> 20 | KIND_STABLE);
}

static void
resize(struct ct_thread *t, uint32_t buckets)
{
	struct sl_err err;

	REQUIRE(ct_resize_start(ct, buckets, &err) == 0);
	while (ct_resize_slice(t, 64))
		;
	ct_resize_finish(ct);
	sl_rcu_synchronize();
	while (ct_resize_release(t, 256))
		;
}

static void
control(struct ct_thread *t)
{
	uint64_t end = sl_now_monotonic().ns + seconds * SL_NSEC_PER_SEC, destroyed = 0;
	struct ct_filter others = {.match = not_stable};
	unsigned int round;
	struct ct_walk w;

	for (round = 0; sl_now_monotonic().ns < end; round++) {
		list_all(t);
		resize(t, CT_BUCKETS_MIN << round % 4);
		ct_walk_start(ct, &w, fast_clock());
		while (ct_flush_slice(t, &w, &others, 1000, fast_clock(), &destroyed))
			;
	}
	printf("%u rounds, %" PRIu64 " flushed\n", round, destroyed);
}

/* Of each contended tuple at most one entry is LIVE. */
static bool
count_contended(const struct ct_view *v, void *arg)
{
	const struct tuple *t = &v->entry.orig.tuple;
	struct listing *l = arg;
	bool forward = rte_be_to_cpu_32(t->src.w[0]) == (0x0a000000u | KIND_CONTENDED << 20);
	bool reverse = rte_be_to_cpu_32(t->dst.w[0]) == (0x0a000000u | KIND_CONTENDED << 20);

	if (forward || reverse)
		l->contended[rte_be_to_cpu_16(forward ? t->sport : t->dport)]++;
	return true;
}

static void
check_unique(struct ct_thread *t)
{
	static struct listing l;
	struct ct_filter all = {0};
	struct ct_walk w;
	unsigned int i;

	ct_walk_start(ct, &w, fast_clock());
	while (ct_walk_slice(t, &w, &all, 1000, fast_clock(),
		&(struct ct_visitor){count_contended, &l}))
		;
	for (i = 0; i < CONTENDED; i++)
		REQUIRE(l.contended[i] <= 1);
}

/* Each index ever handed out is in the depot or in a thread's cache. */
static void
check_ids(const struct sl_ids *ids, size_t cache_offset)
{
	uint32_t n = ids->n;
	unsigned int i;

	for (i = 0; i <= n_workers; i++) {
		const char *t = (const char *)ct_thread(ct, i);

		n += ((const struct sl_ids_cache *)(const void *)(t + cache_offset))->n;
	}
	REQUIRE(n == ids->high_water - 1);
}

static void
check_empty(struct ct_thread *t)
{
	struct sl_now later = sl_now_from_ns(fast_clock().ns + 2 * FOREVER * SL_NSEC_PER_SEC);
	struct ct_memory m;
	unsigned int i;

	for (i = 0; ct_count(ct) > 0 && i < 100000; i++)
		ct_sweep(t, false, later);
	REQUIRE(ct_count(ct) == 0);
	REQUIRE(netns_entries(netns_init_ns(registry), n_workers + 1) == 0);
	ct_memory(ct, &m);
	REQUIRE(m.overflow_lines_used == 0);
	for (i = 0; i <= ct->lines->mask; i++)
		REQUIRE(ct->lines->line[i].ref[0] == 0);
	check_ids(&ct->entry_ids, offsetof(struct ct_thread, entry_ids));
	check_ids(&ct->line_ids, offsetof(struct ct_thread, line_ids));
}

static void
create(void)
{
	struct ct_config config = {.max_entries = MAX_ENTRIES, .buckets = CT_BUCKETS_MIN};
	struct knobs k;
	struct sl_err err;

	registry = netns_registry_create(n_workers + 1, 16, &err);
	REQUIRE(registry != NULL);
	knobs_default(&k);
	/* Private flows come and go; what is stable gets its deadline set by hand. */
	k.acct = true;
	REQUIRE(netns_set_knobs(netns_init_ns(registry), &k, &err) == 0);
	config.threads = n_workers + 1;
	config.netns = registry;
	ct = ct_create(&config, &err);
	REQUIRE(ct != NULL);
}

static void
insert_stable(struct ct_thread *t)
{
	struct sl_now now = fast_clock();
	struct pkt p;
	unsigned int i;

	for (i = 0; i < STABLE; i++) {
		make_packet(&p, KIND_STABLE, 0, i, false);
		ct_lookup_bulk(t, &p, 1);
		REQUIRE(ct_begin(t, &p, now) == CT_OK);
		p.ct->deadline = now.ms + FOREVER * SL_MSEC_PER_SEC;
		REQUIRE(ct_commit(t, &p) == CT_OK);
		stable[i] = p.ct;
	}
}

static void
parse_options(int argc, char **argv)
{
	static const struct option options[] = {{"seconds", required_argument, NULL, 's'},
		{"threads", required_argument, NULL, 't'},
		{"seed", required_argument, NULL, 'r'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			seconds = (unsigned int)atoi(optarg);
		else if (c == 't')
			n_workers = (unsigned int)atoi(optarg);
		else if (c == 'r')
			seed = (uint64_t)atoll(optarg);
		else
			exit(2);
	}
	if (n_workers < 1 || n_workers > MAX_WORKERS) {
		fprintf(stderr, "stress_table: --threads takes 1-%u\n", MAX_WORKERS);
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	pthread_t thread[MAX_WORKERS];
	struct ct_stats sum = {0}, s;
	unsigned int i;

	parse_options(argc, argv);
	create();
	insert_stable(ct_thread(ct, n_workers));
	for (i = 0; i < n_workers; i++)
		REQUIRE(pthread_create(&thread[i], NULL, worker, (void *)(uintptr_t)i) == 0);
	control(ct_thread(ct, n_workers));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < n_workers; i++)
		pthread_join(thread[i], NULL);
	check_unique(ct_thread(ct, n_workers));
	check_empty(ct_thread(ct, n_workers));
	for (i = 0; i <= n_workers; i++) {
		ct_stats(ct, i, &s);
		sum.lookups += s.lookups;
		sum.insert += s.insert;
		sum.race_lost += s.race_lost;
		sum.expired += s.expired;
	}
	printf("%" PRIu64 " lookups, %" PRIu64 " inserts, %" PRIu64 " races lost, %" PRIu64
	       " expired\n",
		sum.lookups, sum.insert, sum.race_lost, sum.expired);
	REQUIRE(sum.insert > 0 && sum.expired > 0);
	ct_destroy(ct);
	netns_registry_destroy(registry);
	return 0;
}
