/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A full table under threads: workers flood two namespaces beyond their maximum and that of all,
 * answer some of what they opened, and let it expire; a third is quiet, within its reserve; the
 * control thread changes the reserve of a flooded one, and deletes entries.
 *
 * What must hold:
 *   - the quiet namespace has none of its connections taken and none refused
 *   - no maximum is exceeded by more than one entry for each worker but one, at any moment
 *   - at rest the queues have just what is LIVE and not assured, once, and the counts are exact
 *   - when all has expired nothing is counted and no index is lost
 *
 *     stress_room [--seconds N] [--threads N] [--seed N]
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

#define MAX_ENTRIES 1500u
#define FLOOD_MAX   500u
#define OTHER_MAX   1400u /* the maximum of all comes first */
#define QUIET       100u  /* flows of each worker that stay */
#define FLOWS       10000u
#define MAX_WORKERS 8u
#define BURST       32u
#define FOREVER     86400u

enum { QUIET_NS, FLOOD_NS, OTHER_NS, N_NS };

static struct netns_registry *registry;
static struct netns *ns[N_NS];
static struct ct *ct;
static unsigned int n_workers = 3, seconds = 4;
static uint64_t seed = 1;
static bool stop;

/* Time runs twenty times as fast, so that the timeouts of UDP matter. */
static struct sl_now
fast_clock(void)
{
	return sl_now_from_ns(sl_now_monotonic().ns * 20);
}

static void
make_packet(struct pkt *p, struct netns *in, uint32_t flow, bool reply)
{
	struct tuple there = {.scope = in->id, .family = TUPLE_IPV4, .proto = IPPROTO_UDP};

	there.src.w[0] = rte_cpu_to_be_32(0x0a000000u + flow);
	there.dst.w[0] = rte_cpu_to_be_32(0xc0000201u);
	there.sport = rte_cpu_to_be_16(1000);
	there.dport = rte_cpu_to_be_16(53);
	memset(p, 0, sizeof(*p));
	p->flags = PKT_IP;
	p->proto = IPPROTO_UDP;
	p->ip_bytes = 28;
	p->ns = in;
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
check_maxima(void)
{
	/* Of a sum that is taken while others count: see ct_count(). */
	const int64_t slack = 2 * (int64_t)n_workers;

	REQUIRE(netns_entries(ns[FLOOD_NS], n_workers + 1) <= FLOOD_MAX + slack);
	REQUIRE((int64_t)ct_count(ct) <= MAX_ENTRIES + slack);
}

/* The flows that stay are found; one more is opened for a moment. */
static void
be_quiet(struct ct_thread *t, uint64_t *rnd, struct sl_now now)
{
	uint32_t first = t->index * FLOWS;
	struct pkt p[BURST];
	unsigned int i;

	for (i = 0; i < BURST; i++)
		make_packet(&p[i], ns[QUIET_NS], first + (uint32_t)(next_random(rnd) % QUIET),
			false);
	make_packet(&p[0], ns[QUIET_NS], first + QUIET, false);
	ct_lookup_bulk(t, p, BURST);
	for (i = 1; i < BURST; i++) {
		if (p[i].ct != NULL)
			continue;
		/* Hidden by a writer just now: the insert has to find it. */
		REQUIRE(ct_begin(t, &p[i], now) == CT_OK);
		REQUIRE(ct_commit(t, &p[i]) == CT_LOST);
	}
	REQUIRE(process(t, &p[0], now) == CT_OK);
}

static uint64_t
flood(struct ct_thread *t, uint64_t *rnd, struct sl_now now)
{
	uint64_t refused = 0;
	struct pkt p[BURST];
	unsigned int i;

	for (i = 0; i < BURST; i++) {
		uint64_t r = next_random(rnd);

		make_packet(&p[i], ns[r & 1 ? FLOOD_NS : OTHER_NS], (uint32_t)(r >> 8) % FLOWS,
			(r & 6) == 0);
	}
	ct_lookup_bulk(t, p, BURST);
	for (i = 0; i < BURST; i++) {
		enum ct_verdict v = process(t, &p[i], now);

		REQUIRE(v == CT_OK || v == CT_DROP);
		REQUIRE(v == CT_OK || p[i].reason == SL_DROP_CT_NETNS_FULL ||
			p[i].reason == SL_DROP_CT_TABLE_FULL);
		refused += v == CT_DROP;
	}
	return refused;
}

static void *
worker(void *arg)
{
	struct ct_thread *t = ct_thread(ct, (unsigned int)(uintptr_t)arg);
	uint64_t rnd = seed * 7919 + t->index + 1, refused = 0;
	struct sl_now now;

	sl_rcu_register_thread();
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		now = fast_clock();
		refused += flood(t, &rnd, now);
		be_quiet(t, &rnd, now);
		check_maxima();
		ct_sweep(t, next_random(&rnd) % 4 == 0, now);
		sl_rcu_quiescent();
	}
	sl_rcu_unregister_thread();
	return (void *)(uintptr_t)refused;
}

static void
set_knobs(struct netns *of, uint32_t max, uint32_t reserve)
{
	struct knobs k = *netns_knobs(of);
	struct sl_err err;

	REQUIRE(ct_reserve(ct, of, k.ct_reserve, reserve, &err) == 0);
	k.ct_max = max;
	k.ct_reserve = reserve;
	REQUIRE(netns_set_knobs(of, &k, &err) == 0);
	ct_reserve_settle(ct_thread(ct, n_workers), of);
}

static bool
some_flood(const struct ct_view *v, const void *arg)
{
	(void)arg;
	return v->entry.ns != ns[QUIET_NS] && v->index % 16 == 0;
}

static void
control(struct ct_thread *t)
{
	uint64_t end = sl_now_monotonic().ns + seconds * SL_NSEC_PER_SEC, destroyed = 0;
	struct ct_filter some = {.match = some_flood};
	uint64_t rnd = seed + 12345;
	unsigned int round;
	struct ct_walk w;

	for (round = 0; sl_now_monotonic().ns < end; round++) {
		set_knobs(ns[OTHER_NS], OTHER_MAX,
			round & 1 ? (uint32_t)(next_random(&rnd) % 300) : 0);
		sl_rcu_synchronize();
		ct_walk_start(ct, &w, fast_clock());
		while (ct_flush_slice(t, &w, &some, 200, fast_clock(), &destroyed))
			;
	}
	printf("%u rounds, %" PRIu64 " flushed\n", round, destroyed);
}

/* ---- at rest ---- */

static unsigned int
queue_length(const struct netns *of, unsigned int thread)
{
	const struct netns_queue *q = &of->counters[thread].unassured;
	uint32_t at, before = 0;
	unsigned int n = 0;

	for (at = q->head; at != 0; before = at, at = ct->queued[at].next) {
		const struct ct_entry *e = &ct->pool[at];

		REQUIRE(e->life == CT_LIVE && e->ns == of && !(e->status & CT_ASSURED));
		REQUIRE(ct->slot[at].queue == thread + 1 && ct->queued[at].prev == before);
		n++;
	}
	REQUIRE(q->tail == before);
	return n;
}

static void
check_queues(void)
{
	unsigned int i, k, queued = 0, live = 0, unassured = 0;

	for (i = 1; i < ct->entry_ids.high_water; i++) {
		if (ct->pool[i].life != CT_LIVE)
			continue;
		live++;
		unassured += !(ct->pool[i].status & CT_ASSURED);
	}
	for (k = 0; k < N_NS; k++)
		for (i = 0; i <= n_workers; i++)
			queued += queue_length(ns[k], i);
	REQUIRE(queued == unassured);
	REQUIRE(ct_count(ct) == live);
	printf("%u live, %u of them not assured\n", live, unassured);
}

static int64_t
common(void)
{
	int64_t sum = 0;
	unsigned int i;

	for (i = 0; i <= n_workers; i++)
		sum += ct_thread(ct, i)->common;
	return sum;
}

static void
check_common(void)
{
	int64_t want = 0;
	unsigned int k;

	for (k = 0; k < N_NS; k++) {
		ct_reserve_settle(ct_thread(ct, n_workers), ns[k]);
		want += RTE_MAX(netns_entries(ns[k], n_workers + 1) -
					netns_knobs(ns[k])->ct_reserve,
			0);
	}
	REQUIRE(common() == want);
}

static void
check_empty(struct ct_thread *t)
{
	struct sl_now later = sl_now_from_ns(fast_clock().ns + 2 * FOREVER * SL_NSEC_PER_SEC);
	uint32_t ids = ct->entry_ids.n;
	unsigned int i;

	for (i = 0; ct_count(ct) > 0 && i < 100000; i++)
		ct_sweep(t, false, later);
	REQUIRE(ct_count(ct) == 0 && common() == 0);
	for (i = 0, ids = ct->entry_ids.n; i <= n_workers; i++)
		ids += ct_thread(ct, i)->entry_ids.n;
	REQUIRE(ids == ct->entry_ids.high_water - 1);
	check_queues();
}

/* ---- beginning ---- */

static void
create(void)
{
	static const char *const names[N_NS] = {"quiet", "flood", "other"};
	struct ct_config config = {.max_entries = MAX_ENTRIES, .buckets = CT_BUCKETS_MIN};
	struct sl_err err;

	registry = netns_registry_create(n_workers + 1, 16, &err);
	REQUIRE(registry != NULL);
	config.threads = n_workers + 1;
	config.netns = registry;
	ct = ct_create(&config, &err);
	REQUIRE(ct != NULL);
	REQUIRE(netns_create_batch(registry, names, N_NS, netns_init_ns(registry), ns, &err) == 0);
	set_knobs(ns[QUIET_NS], MAX_ENTRIES, (QUIET + 1) * n_workers);
	set_knobs(ns[FLOOD_NS], FLOOD_MAX, 0);
	set_knobs(ns[OTHER_NS], OTHER_MAX, 0);
}

static void
insert_quiet(struct ct_thread *t)
{
	struct sl_now now = fast_clock();
	struct pkt p;
	unsigned int i;

	for (i = 0; i < QUIET * n_workers; i++) {
		make_packet(&p, ns[QUIET_NS], i / QUIET * FLOWS + i % QUIET, false);
		ct_lookup_bulk(t, &p, 1);
		REQUIRE(ct_begin(t, &p, now) == CT_OK);
		p.ct->deadline = now.ms + FOREVER * SL_MSEC_PER_SEC;
		REQUIRE(ct_commit(t, &p) == CT_OK);
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
		fprintf(stderr, "stress_room: --threads takes 1-%u\n", MAX_WORKERS);
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	uint64_t refused = 0, early_drops = 0, inserts = 0;
	pthread_t thread[MAX_WORKERS];
	struct ct_stats s;
	unsigned int i;
	void *ret;

	parse_options(argc, argv);
	REQUIRE(sl_rcu_start(NULL, NULL) == 0);
	create();
	insert_quiet(ct_thread(ct, n_workers));
	for (i = 0; i < n_workers; i++)
		REQUIRE(pthread_create(&thread[i], NULL, worker, (void *)(uintptr_t)i) == 0);
	control(ct_thread(ct, n_workers));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < n_workers; i++) {
		pthread_join(thread[i], &ret);
		refused += (uintptr_t)ret;
	}
	check_queues();
	check_common();
	REQUIRE(netns_entries(ns[FLOOD_NS], n_workers + 1) <= FLOOD_MAX + n_workers - 1);
	REQUIRE(ct_count(ct) <= MAX_ENTRIES + n_workers - 1);
	REQUIRE(netns_entries(ns[QUIET_NS], n_workers + 1) >= (int64_t)(QUIET * n_workers));
	check_empty(ct_thread(ct, n_workers));
	for (i = 0; i <= n_workers; i++) {
		ct_stats(ct, i, &s);
		early_drops += s.early_drop;
		inserts += s.insert;
	}
	printf("%" PRIu64 " inserts, %" PRIu64 " early drops, %" PRIu64 " refused\n", inserts,
		early_drops, refused);
	REQUIRE(early_drops > 0);
	sl_rcu_stop();
	ct_destroy(ct);
	netns_registry_destroy(registry);
	return 0;
}
