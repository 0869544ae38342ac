/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts under threads: workers admit, close, lose races for, delete and expire connections of few
 * sources and of many, against limits, while the control thread lists, flushes and changes limits.
 * Run it under thread and address sanitizer.
 *
 * What must hold:
 *   - of a source there are never more live connections than its limit: each worker keeps its own
 *     number of those it admitted and did not see end, and their sum is never above
 *   - a listing has no count above what the limit and refusals under way allow
 *   - when all is over, every count is 0, nothing is lost and nothing was given back twice
 *
 *     stress_connlimit [--seconds N] [--threads N] [--seed N]
 */
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connlimit.h"
#include "conntrack.h"
#include "err.h"
#include "stress.h"

#define SOURCES     16u /* that all workers fight for */
#define FLOWS       64u /* of each source, four times its limit and more */
#define LIMIT       12u
#define SPREAD      8192u /* sources of one connection each */
#define MAX_ENTRIES 32768u
#define MAX_WORKERS 16u

static struct netns_registry *registry;
static struct ct *ct;
static struct connlimit *cl;
static struct connlimit_count *per_source, *per_net;
static unsigned int n_workers = 3, seconds = 5;
static uint64_t seed = 1;
static bool stop;
/* Connections of a source that are live: counted up after its admission, down before it ends. */
static int32_t live[SOURCES];

/* Time runs a hundred times as fast, so that timeouts matter. */
static struct sl_now
fast_clock(void)
{
	return sl_now_from_ns(sl_now_monotonic().ns * 100);
}

/* ---- what conntrack calls: the entry's mark is 1 + its source while it is in live[] ---- */

static void
forget(struct ct_entry *e)
{
	if (e->mark != 0)
		__atomic_fetch_sub(&live[e->mark - 1], 1, __ATOMIC_RELAXED);
	e->mark = 0;
}

static void
give_back(void *app, struct ct_thread *t, struct ct_entry *e)
{
	(void)app;
	forget(e);
	connlimit_release(connlimit_thread(cl, ct_thread_index(t)), e);
}

static void
give_back_many(void *app, struct ct_thread *t, struct ct_entry *const e[], unsigned int n)
{
	unsigned int i;

	(void)app;
	for (i = 0; i < n; i++)
		forget(e[i]);
	connlimit_release_bulk(connlimit_thread(cl, ct_thread_index(t)), e, n);
}

/* ---- packets: one exchange, of which any segment may come at any time ---- */

enum kind { SYN, SYNACK, ACK, RST_BY_CLIENT, RST_BY_SERVER, KINDS };

static const struct {
	uint32_t seq, ack;
	uint8_t flags;
	bool reply;
} segments[KINDS] = {
	[SYN] = {100, 0, PKT_TCP_SYN, false},
	[SYNACK] = {500, 101, PKT_TCP_SYN | PKT_TCP_ACK, true},
	[ACK] = {101, 501, PKT_TCP_ACK, false},
	[RST_BY_CLIENT] = {101, 501, PKT_TCP_RST | PKT_TCP_ACK, false},
	[RST_BY_SERVER] = {501, 101, PKT_TCP_RST | PKT_TCP_ACK, true},
};

static uint8_t headers[KINDS][20];

static void
make_headers(void)
{
	unsigned int k;

	for (k = 0; k < KINDS; k++) {
		rte_be32_t seq = rte_cpu_to_be_32(segments[k].seq);
		rte_be32_t ack = rte_cpu_to_be_32(segments[k].ack);

		memcpy(headers[k] + 4, &seq, sizeof(seq));
		memcpy(headers[k] + 8, &ack, sizeof(ack));
		headers[k][14] = 0xff; /* window */
	}
}

static void
make_packet(struct pkt *p, uint32_t source, uint16_t port, enum kind kind)
{
	struct tuple there = {.family = TUPLE_IPV4, .proto = IPPROTO_TCP};

	there.src.w[0] = rte_cpu_to_be_32(source);
	there.dst.w[0] = rte_cpu_to_be_32(0xc0000250u);
	there.sport = rte_cpu_to_be_16(port);
	there.dport = rte_cpu_to_be_16(80);
	memset(p, 0, sizeof(*p));
	p->flags = PKT_IP;
	p->proto = IPPROTO_TCP;
	p->ip_bytes = 40;
	p->ns = netns_init_ns(registry);
	p->l4 = headers[kind];
	p->l4_len = p->l4_hdr_len = 20;
	p->tcp_flags = segments[kind].flags;
	if (segments[kind].reply)
		tuple_invert(&p->tuple, &there);
	else
		p->tuple = there;
}

/* ---- the packet path, as far as it matters here ---- */

static enum ct_verdict
admit(struct ct_thread *t, struct pkt *p, struct sl_now now, uint32_t contended)
{
	struct connlimit_thread *ct_limit = connlimit_thread(cl, ct_thread_index(t));
	enum ct_verdict v = ct_begin(t, p, now);
	enum connlimit_verdict own;
	int32_t n;

	if (v != CT_OK)
		return v;
	own = connlimit_weigh(ct_limit, per_source, &p->tuple, p->ct, NULL);
	connlimit_weigh(ct_limit, per_net, &p->tuple, p->ct, NULL);
	if (own != CONNLIMIT_NO_MATCH) {
		ct_abort(t, p);
		return CT_DROP;
	}
	if (contended < SOURCES) {
		p->ct->mark = 1 + contended;
		n = __atomic_add_fetch(&live[contended], 1, __ATOMIC_RELAXED);
		REQUIRE(n <= (int32_t)LIMIT);
	}
	return ct_commit(t, p);
}

static void
process(struct ct_thread *t, struct pkt *p, struct sl_now now, uint32_t contended)
{
	enum ct_verdict v = CT_MISS;
	unsigned int turns;

	ct_lookup_bulk(t, p, 1);
	if (p->ct != NULL)
		v = CT_LOST;
	for (turns = 0; turns < 4 && (v == CT_LOST || v == CT_MISS); turns++)
		v = v == CT_LOST ? ct_track(t, p, now) : admit(t, p, now, contended);
}

static void *
worker(void *arg)
{
	unsigned int index = (unsigned int)(uintptr_t)arg, i;
	struct ct_thread *t = ct_thread(ct, index);
	uint64_t rnd = seed * 7919 + index + 1;

	sl_rcu_register_thread();
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct sl_now now = fast_clock();

		for (i = 0; i < 32; i++) {
			uint64_t r = next_random(&rnd);
			uint32_t source = r % SOURCES;
			enum kind kind = (enum kind)((r >> 8) % KINDS);
			struct pkt p;

			/* One in four comes from somewhere else. */
			if ((r >> 16) % 4 == 0)
				source = SOURCES + (r >> 20) % SPREAD;
			make_packet(&p, 0x0a000000u + source, (uint16_t)((r >> 40) % FLOWS), kind);
			process(t, &p, now, source);
		}
		ct_sweep(t, next_random(&rnd) & 1, now);
		sl_rcu_quiescent();
	}
	sl_rcu_unregister_thread();
	return NULL;
}

/* ---- control ---- */

static bool
see(const struct connlimit_view *v, void *arg)
{
	uint32_t source = rte_be_to_cpu_32(v->addr.w[0]) - 0x0a000000u;

	(void)arg;
	if (v->by.prefix == 32 && source < SOURCES)
		REQUIRE(v->count <= LIMIT + n_workers);
	return true;
}

static bool
one_in_eight(const struct ct_view *v, const void *arg)
{
	return (v->index ^ *(const uint64_t *)arg) % 8 == 0;
}

static void
control(uint64_t *rnd)
{
	struct connlimit_count_config config = {.limit = (uint32_t)(next_random(rnd) % 1000)};
	struct ct_thread *t = ct_thread(ct, n_workers);
	struct ct_filter filter = {.match = one_in_eight, .match_arg = rnd};
	struct connlimit_walk cw = {0};
	struct ct_walk w;
	uint64_t killed = 0;

	while (connlimit_walk_slice(cl, &cw, NULL, 1000, see, NULL))
		;
	connlimit_count_change(per_net, &config);
	ct_walk_start(ct, &w, fast_clock());
	while (ct_flush_slice(t, &w, &filter, 1000, fast_clock(), &killed))
		;
}

static void
finish(void)
{
	struct sl_now later = sl_now_from_ns(fast_clock().ns + 10 * 86400 * SL_NSEC_PER_SEC);
	struct connlimit_stats s, sum = {0};
	struct connlimit_memory m;
	unsigned int i;

	while (ct_count(ct) > 0)
		ct_sweep(ct_thread(ct, n_workers), true, later);
	connlimit_memory(cl, &m);
	REQUIRE(m.keys == 0);
	REQUIRE(connlimit_netns_keys(netns_init_ns(registry)) == 0);
	for (i = 0; i <= n_workers; i++) {
		connlimit_stats(cl, i, &s);
		REQUIRE(s.errors == 0 && s.many == 0 && s.full == 0);
		sum.weighed += s.weighed;
		sum.over += s.over;
	}
	for (i = 0; i < SOURCES; i++)
		REQUIRE(live[i] == 0);
	REQUIRE(sum.over > 0 && sum.weighed > sum.over);
	printf("%" PRIu64 " weighed, %" PRIu64 " above a limit; all is given back\n", sum.weighed,
		sum.over);
}

static void
create(void)
{
	struct connlimit_config limits = {.threads = n_workers + 1, .hash = SL_HASH_AUTO};
	struct ct_config config = {.max_entries = MAX_ENTRIES, .buckets = CT_BUCKETS_MIN,
		.threads = n_workers + 1, .ops = {.destroyed = give_back_many, .aborted = give_back,
			.closed = give_back}};
	struct connlimit_count_config by_source = {
		.by = {TUPLE_IPV4, false, 32}, .limit = LIMIT, .over = true};
	struct connlimit_count_config by_net = {.by = {TUPLE_IPV4, false, 16}, .limit = 500};
	struct netns *ns;
	struct sl_err err;

	registry = netns_registry_create(n_workers + 1, 4, &err);
	config.netns = registry;
	ns = netns_init_ns(registry);
	by_source.ns = by_net.ns = ns;
	ct = ct_create(&config, &err);
	cl = connlimit_create(&limits, &err);
	REQUIRE(ct != NULL && cl != NULL && connlimit_set_max(cl, 2 * MAX_ENTRIES, &err) == 0);
	REQUIRE(connlimit_netns_init(cl, ns, &err) == 0);
	REQUIRE(connlimit_count_create(cl, &by_source, &per_source, &err) == 0);
	REQUIRE(connlimit_count_create(cl, &by_net, &per_net, &err) == 0);
}

static void
destroy(void)
{
	connlimit_count_free(cl, per_source);
	connlimit_count_free(cl, per_net);
	connlimit_netns_free(netns_init_ns(registry));
	connlimit_destroy(cl);
	ct_destroy(ct);
	netns_registry_destroy(registry);
}

static void
options(int argc, char **argv)
{
	static const struct option known[] = {{"seconds", required_argument, NULL, 's'},
		{"threads", required_argument, NULL, 't'},
		{"seed", required_argument, NULL, 'r'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 's':
			seconds = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 't':
			n_workers = RTE_MIN((unsigned int)strtoul(optarg, NULL, 10), MAX_WORKERS);
			break;
		case 'r':
			seed = strtoull(optarg, NULL, 10);
			break;
		default:
			exit(2);
		}
	}
}

int
main(int argc, char **argv)
{
	pthread_t thread[MAX_WORKERS];
	uint64_t rnd, end;
	unsigned int i;

	options(argc, argv);
	rnd = seed * 31 + 1;
	make_headers();
	create();
	end = sl_now_monotonic().ns + seconds * SL_NSEC_PER_SEC;
	for (i = 0; i < n_workers; i++)
		REQUIRE(pthread_create(&thread[i], NULL, worker, (void *)(uintptr_t)i) == 0);
	while (sl_now_monotonic().ns < end)
		control(&rnd);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < n_workers; i++)
		pthread_join(thread[i], NULL);
	finish();
	destroy();
	return 0;
}
