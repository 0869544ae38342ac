/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conntrack table through its contract, without packets: ns and millions a second of each
 * operation beside its floor, which touches the same number of random cache lines with the same
 * batching and prefetch, and does nothing else.
 *
 *   hit     ct_lookup_bulk() of a tuple that is there: bucket line, tuple line, shared line
 *   track   the same and ct_track(), which writes the shared line
 *   miss    ct_lookup_bulk() of one that is not there: bucket line
 *   insert  miss, ct_begin(), ct_commit(): two bucket lines and an entry's four
 *   mixed   30 of `track` and 2 of `insert` in a burst, and the sweep removes as many
 *
 * Connections are UDP, so that the state machine weighs little. With two threads each has its own
 * half of the connections, as workers have under symmetric RSS. Rounds of floor and table
 * alternate; medians are printed.
 */
#include <getopt.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_floor.h"
#include "conntrack.h"
#include "err.h"

#define BURST       32u
#define MIXED_NEW   2u /* of a burst */
#define ROUNDS_MAX  15u
#define SIZES_MAX   8u
#define THREADS_MAX 8u

/* Bursts between two looks at the clock. */
#define CLOCK_EVERY 64u

static const char *const op_name[BENCH_OPS] = {
	[BENCH_HIT] = "hit",
	[BENCH_TRACK] = "track",
	[BENCH_MISS] = "miss",
	[BENCH_INSERT] = "insert",
	[BENCH_MIXED] = "mixed",
};

struct options {
	uint32_t entries[SIZES_MAX], threads[SIZES_MAX];
	unsigned int n_entries, n_threads;
	unsigned int ops; /* bits */
	unsigned int ms, rounds, buckets_per_entry, first_core;
	bool json;
};

/* A table of one size, and the floor's arrays of the same. */
struct bed {
	uint32_t entries;
	unsigned int threads;
	struct netns_registry *registry;
	struct netns *ns, *ns_short; /* entries of the second live for a second */
	struct ct *ct;
	struct bench_floor floor;
	uint64_t clock_ns; /* as far as it has come */
	struct ct_memory memory;
};

struct thread {
	pthread_t id;
	pthread_barrier_t *barrier;
	struct bed *bed;
	struct ct_thread *ct;
	unsigned int index, core, ms;
	enum bench_op op;
	bool floor;
	uint32_t first, n; /* connections of this thread */
	uint32_t new_keys;
	uint64_t random;
	struct sl_now now;
	uint64_t done, ns;
	struct pkt pkt[BURST];
};

/* ---- packets ---- */

static void
set_packet(struct pkt *p, struct netns *ns, uint32_t number, bool reply)
{
	uint32_t client = rte_cpu_to_be_32(number), server = rte_cpu_to_be_32(0xc0000201);
	rte_be16_t port = rte_cpu_to_be_16((uint16_t)(number * 40503u) | 1024);

	p->tuple = (struct tuple){.scope = ns->id, .family = TUPLE_IPV4, .proto = IPPROTO_UDP};
	p->tuple.src.w[0] = reply ? server : client;
	p->tuple.dst.w[0] = reply ? client : server;
	p->tuple.sport = reply ? rte_cpu_to_be_16(53) : port;
	p->tuple.dport = reply ? port : rte_cpu_to_be_16(53);
	p->ns = ns;
	p->flags = PKT_IP | PKT_CSUM_GOOD;
	p->proto = IPPROTO_UDP;
	p->ip_bytes = 46;
}

/* Packets of connections that exist, in either direction. */
static void
set_known(struct thread *t, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		uint64_t r = bench_random(&t->random);

		set_packet(&t->pkt[i], t->bed->ns, t->first + bench_below(r, t->n), r & 1);
	}
}

static void
admit(struct thread *t, struct pkt *p)
{
	if (p->ct != NULL || ct_begin(t->ct, p, t->now) != CT_OK || ct_commit(t->ct, p) != CT_OK)
		bench_die("a new connection was not inserted: %s", sl_drop_name(p->reason));
}

/* ---- operations: a burst each ---- */

static void
burst_hit(struct thread *t)
{
	unsigned int i, found = 0;

	set_known(t, BURST);
	ct_lookup_bulk(t->ct, t->pkt, BURST);
	for (i = 0; i < BURST; i++)
		found += t->pkt[i].ct != NULL;
	if (found != BURST)
		bench_die("%u of %u known tuples were found", found, BURST);
}

static void
burst_track(struct thread *t, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (t->pkt[i].ct == NULL || ct_track(t->ct, &t->pkt[i], t->now) != CT_OK)
			bench_die("a packet of a known connection was not tracked");
}

static void
burst_miss(struct thread *t)
{
	unsigned int i, found = 0;

	for (i = 0; i < BURST; i++)
		set_packet(&t->pkt[i], t->bed->ns, (uint32_t)bench_random(&t->random) | 1u << 31,
			false);
	ct_lookup_bulk(t->ct, t->pkt, BURST);
	for (i = 0; i < BURST; i++)
		found += t->pkt[i].ct != NULL;
	if (found != 0)
		bench_die("%u unknown tuples were found", found);
}

static void
burst_insert(struct thread *t, uint32_t number, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		set_packet(&t->pkt[i], t->bed->ns, number + i, false);
	ct_lookup_bulk(t->ct, t->pkt, n);
	for (i = 0; i < n; i++)
		admit(t, &t->pkt[i]);
}

/* The clock goes on so that new ones, an eighth of `entries`, are made in the second they live. */
static void
burst_mixed(struct thread *t)
{
	unsigned int i;

	set_known(t, BURST - MIXED_NEW);
	for (i = BURST - MIXED_NEW; i < BURST; i++)
		set_packet(&t->pkt[i], t->bed->ns_short, t->new_keys++ * THREADS_MAX + t->index,
			false);
	ct_lookup_bulk(t->ct, t->pkt, BURST);
	burst_track(t, BURST - MIXED_NEW);
	for (i = BURST - MIXED_NEW; i < BURST; i++)
		admit(t, &t->pkt[i]);
	t->now = sl_now_from_ns(
		t->now.ns + MIXED_NEW * 8 * t->bed->threads * SL_NSEC_PER_SEC / t->bed->entries);
	ct_sweep(t->ct, false, t->now);
}

static void
table_burst(struct thread *t)
{
	if (t->op == BENCH_HIT) {
		burst_hit(t);
	} else if (t->op == BENCH_TRACK) {
		set_known(t, BURST);
		ct_lookup_bulk(t->ct, t->pkt, BURST);
		burst_track(t, BURST);
	} else if (t->op == BENCH_MISS) {
		burst_miss(t);
	} else {
		burst_mixed(t);
	}
}

/* ---- threads ---- */

static void
run_insert(struct thread *t)
{
	uint32_t i, n;

	for (i = 0; i < t->n; i += n) {
		n = RTE_MIN(t->n - i, BURST);
		if (t->floor)
			bench_floor_insert(&t->bed->floor, t->first + i, n, &t->random);
		else
			burst_insert(t, t->first + i, n);
		sl_rcu_quiescent();
	}
	t->done = t->n;
}

static void
run_for_time(struct thread *t, uint64_t begin)
{
	uint64_t end = begin + t->ms * SL_NSEC_PER_MSEC;
	unsigned int i;

	do {
		for (i = 0; i < CLOCK_EVERY; i++) {
			if (t->floor)
				bench_floor_burst(&t->bed->floor, t->op, &t->random);
			else
				table_burst(t);
			sl_rcu_quiescent();
		}
		t->done += CLOCK_EVERY * BURST;
	} while (bench_ns() < end);
}

static void *
thread_main(void *arg)
{
	struct thread *t = arg;
	uint64_t begin, begin_cpu;

	bench_pin(t->core);
	sl_rcu_register_thread();
	sl_rcu_offline();
	pthread_barrier_wait(t->barrier);
	sl_rcu_online();
	begin = bench_ns();
	begin_cpu = bench_cpu_ns();
	if (t->op == BENCH_INSERT)
		run_insert(t);
	else
		run_for_time(t, begin);
	t->ns = bench_cpu_ns() - begin_cpu; /* so that a busy machine does not spoil it */
	sl_rcu_unregister_thread();
	return NULL;
}

/* Runs one operation on all threads. Returns operations a second. */
static double
run(struct bed *b, const struct options *o, enum bench_op op, bool floor)
{
	static uint64_t seed = 1;
	static uint32_t new_keys[THREADS_MAX];
	static struct thread t[THREADS_MAX];
	pthread_barrier_t barrier;
	double rate = 0;
	unsigned int i;

	pthread_barrier_init(&barrier, NULL, b->threads);
	for (i = 0; i < b->threads; i++) {
		uint32_t first = (uint32_t)((uint64_t)b->entries * i / b->threads);
		uint32_t end = (uint32_t)((uint64_t)b->entries * (i + 1) / b->threads);

		t[i] = (struct thread){.barrier = &barrier,
			.bed = b,
			.ct = ct_thread(b->ct, i),
			.index = i,
			.core = o->first_core + i,
			.ms = o->ms,
			.op = op,
			.floor = floor,
			.first = first,
			.n = end - first,
			.new_keys = new_keys[i],
			.random = seed++ * UINT64_C(0x9e3779b97f4a7c15),
			.now = sl_now_from_ns(b->clock_ns)};
		if (pthread_create(&t[i].id, NULL, thread_main, &t[i]) != 0)
			bench_die("cannot start a thread");
	}
	for (i = 0; i < b->threads; i++) {
		pthread_join(t[i].id, NULL);
		rate += (double)t[i].done * 1e9 / (double)t[i].ns;
		new_keys[i] = t[i].new_keys;
		b->clock_ns = RTE_MAX(b->clock_ns, t[i].now.ns);
	}
	pthread_barrier_destroy(&barrier);
	return rate;
}

/* ---- the bed ---- */

static struct netns *
make_netns(struct netns_registry *r, const char *name, uint32_t udp_timeout_ms)
{
	struct netns *ns;
	struct knobs k;
	struct sl_err err;

	if (netns_create_batch(r, &name, 1, netns_init_ns(r), &ns, &err) < 0)
		bench_die("%s", err.msg);
	knobs_default(&k);
	k.ct_max = CT_ENTRIES_MAX;
	k.udp_timeout = udp_timeout_ms;
	k.udp_timeout_stream = udp_timeout_ms;
	if (netns_set_knobs(ns, &k, &err) < 0)
		bench_die("%s", err.msg);
	return ns;
}

static void
make_bed(struct bed *b, uint32_t entries, unsigned int threads, unsigned int buckets_per_entry)
{
	struct ct_config config = {.max_entries = entries,
		.threads = threads + 1,
		.hash = SL_HASH_AUTO,
		.buckets =
			(uint32_t)RTE_MIN((uint64_t)entries * buckets_per_entry, CT_BUCKETS_MAX)};
	struct sl_err err;

	*b = (struct bed){.entries = entries, .threads = threads, .clock_ns = SL_NSEC_PER_SEC};
	b->registry = netns_registry_create(threads + 1, 16, &err);
	if (b->registry == NULL)
		bench_die("%s", err.msg);
	config.netns = b->registry;
	b->ct = ct_create(&config, &err);
	if (b->ct == NULL)
		bench_die("%s", err.msg);
	b->ns = make_netns(b->registry, "steady", SL_TIMEOUT_MAX * SL_MSEC_PER_SEC);
	b->ns_short = make_netns(b->registry, "short", SL_MSEC_PER_SEC);
	bench_floor_create(&b->floor, entries, ct_buckets(b->ct) / 8);
}

static void
empty_table(struct bed *b)
{
	struct ct_filter all = {NULL};
	struct ct_walk w;
	uint64_t destroyed = 0;
	bool more;

	ct_walk_start(b->ct, &w, sl_now_from_ns(b->clock_ns));
	do {
		more = ct_flush_slice(ct_thread(b->ct, b->threads), &w, &all, 1u << 16,
			sl_now_from_ns(b->clock_ns), &destroyed);
	} while (more);
	if (ct_count(b->ct) != 0)
		bench_die("entries are left after a flush");
}

static void
destroy_bed(struct bed *b)
{
	struct netns *ns[] = {b->ns, b->ns_short};
	uint64_t destroyed = 0;
	struct ct_walk w;

	netns_kill_batch(b->registry, ns, RTE_DIM(ns));
	ct_walk_start(b->ct, &w, sl_now_from_ns(b->clock_ns));
	while (ct_purge_slice(ct_thread(b->ct, b->threads), &w, 1u << 16, &destroyed))
		;
	if (ct_count(b->ct) != 0)
		bench_die("entries are left after a purge");
	netns_free_batch(b->registry, ns, RTE_DIM(ns));
	ct_destroy(b->ct);
	netns_registry_destroy(b->registry);
	bench_floor_destroy(&b->floor);
}

/* ---- results ---- */

static const struct bench_column columns[] = {
	{"op", "operation", -9, 0},
	{"entries", "entries", 9, 0},
	{"threads", "threads", 7, 0},
	{"ns", "ns", 7, 1},
	{"mps", "M/s", 7, 2},
	{"floor_ns", "floor ns", 8, 1},
	{"floor_mps", "floor M/s", 9, 2},
	{"percent", "% of floor", 10, 1},
	{"bytes_per_entry", "B/entry", 7, 0},
};

/* Of the table when it is full. */
static void
add_memory(json_t *row, const struct bed *b)
{
	const struct ct_memory *m = &b->memory;
	double bytes = (double)(m->pool_present + m->lines_present + m->walk_present);
	json_t *more = json_pack("{s:f, s:i, s:i, s:i, s:i}", "bytes_per_entry", bytes / b->entries,
		"buckets", (int)ct_buckets(b->ct), "lines", (int)m->lines, "overflow_lines",
		(int)m->overflow_lines_used, "longest_chain", (int)m->longest_chain);

	if (more == NULL || json_object_update(row, more) < 0)
		bench_die("out of memory");
	json_decref(more);
}

static void
measure(struct bench *out, struct bed *b, const struct options *o, enum bench_op op)
{
	double table[ROUNDS_MAX], floor[ROUNDS_MAX], t, f;
	unsigned int i;
	json_t *row;

	for (i = 0; i < o->rounds; i++) {
		floor[i] = run(b, o, op, true);
		if (op == BENCH_INSERT)
			empty_table(b);
		table[i] = run(b, o, op, false);
	}
	t = bench_median(table, o->rounds);
	f = bench_median(floor, o->rounds);
	row = json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f}", "op", op_name[op], "entries",
		(int)b->entries, "threads", (int)b->threads, "ns", 1e9 * b->threads / t, "mps",
		t / 1e6, "floor_ns", 1e9 * b->threads / f, "floor_mps", f / 1e6, "percent",
		100 * t / f);
	add_memory(row, b);
	bench_row(out, row);
}

static void
measure_size(struct bench *out, const struct options *o, uint32_t entries, unsigned int threads)
{
	struct sl_err err;
	struct bed b;
	unsigned int op;

	make_bed(&b, entries, threads, o->buckets_per_entry);
	run(&b, o, BENCH_INSERT, false);
	ct_memory(b.ct, &b.memory);
	if (o->ops & 1u << BENCH_INSERT)
		measure(out, &b, o, BENCH_INSERT);
	/* Room for what lives beside them in `mixed` until it is swept. */
	if (ct_set_max(b.ct, RTE_MIN(2 * entries, CT_ENTRIES_MAX), &err) < 0)
		bench_die("%s", err.msg);
	for (op = 0; op < BENCH_OPS; op++)
		if (op != BENCH_INSERT && o->ops & 1u << op)
			measure(out, &b, o, op);
	destroy_bed(&b);
}

/* ---- options ---- */

static const char usage[] =
	"usage: bench_table [options]\n"
	"  --entries N[,N…]       connections, 64k,1M,8M (suffixes k and M are powers of two)\n"
	"  --threads N[,N…]       1,2\n"
	"  --ops OP[,OP…]         hit,track,miss,insert,mixed\n"
	"  --buckets-per-entry N  nf_conntrack_buckets for each entry, 4\n"
	"  --rounds N             of floor and table in turn, whose median counts, 5\n"
	"  --ms N                 time of a round, 300\n"
	"  --core N               of the first thread, 0\n"
	"  --quick                64k and 1M, 3 rounds of 50 ms\n"
	"  --json                 one JSON object instead of the table\n";

static unsigned int
parse_ops(const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;
	unsigned int ops = 0, i;

	while (copy != NULL && (word = strsep(&rest, ",")) != NULL) {
		for (i = 0; i < BENCH_OPS && strcmp(word, op_name[i]) != 0; i++)
			;
		if (i == BENCH_OPS)
			bench_die("--ops %s: hit, track, miss, insert or mixed", word);
		ops |= 1u << i;
	}
	free(copy);
	return ops;
}

static void
set_sizes(struct options *o, const char *entries, const char *threads)
{
	unsigned int i;

	if (entries != NULL)
		o->n_entries = bench_sizes("entries", entries, o->entries, SIZES_MAX);
	for (i = 0; i < o->n_entries; i++)
		if (o->entries[i] < 1024)
			bench_die("--entries: at least 1024");
	if (threads != NULL)
		o->n_threads = bench_sizes("threads", threads, o->threads, SIZES_MAX);
	for (i = 0; i < o->n_threads; i++)
		if (o->threads[i] > THREADS_MAX)
			bench_die("--threads: at most %u", THREADS_MAX);
}

static void
set_quick(struct options *o)
{
	set_sizes(o, "64k,1M", "1,2");
	o->rounds = 3;
	o->ms = 50;
}

static void
parse_options(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"entries", required_argument, NULL, 'e'},
		{"threads", required_argument, NULL, 't'}, {"ops", required_argument, NULL, 'o'},
		{"rounds", required_argument, NULL, 'r'}, {"ms", required_argument, NULL, 'm'},
		{"core", required_argument, NULL, 'c'},
		{"buckets-per-entry", required_argument, NULL, 'b'},
		{"quick", no_argument, NULL, 'q'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c;

	*o = (struct options){
		.ops = (1u << BENCH_OPS) - 1, .ms = 300, .rounds = 5, .buckets_per_entry = 4};
	set_sizes(o, "64k,1M,8M", "1,2");
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'e')
			set_sizes(o, optarg, NULL);
		else if (c == 't')
			set_sizes(o, NULL, optarg);
		else if (c == 'o')
			o->ops = parse_ops(optarg);
		else if (c == 'r')
			o->rounds = (unsigned int)bench_number("rounds", optarg, 1, ROUNDS_MAX);
		else if (c == 'm')
			o->ms = (unsigned int)bench_number("ms", optarg, 1, 60000);
		else if (c == 'c')
			o->first_core = (unsigned int)bench_number("core", optarg, 0, 1023);
		else if (c == 'b')
			o->buckets_per_entry =
				(unsigned int)bench_number("buckets-per-entry", optarg, 1, 16);
		else if (c == 'q')
			set_quick(o);
		else if (c == 'j')
			o->json = true;
		else if (c == 'h')
			exit(fputs(usage, stdout) < 0);
		else {
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (optind != argc)
		bench_die("\"%s\" is no option", argv[optind]);
}

int
main(int argc, char **argv)
{
	struct options o;
	struct bench out;
	unsigned int i, k;

	parse_options(&o, argc, argv);
	if (sl_rcu_start(NULL, NULL) < 0)
		bench_die("cannot start the helper thread");
	bench_begin(&out, "conntrack table", columns, RTE_DIM(columns), o.json);
	for (i = 0; i < o.n_entries; i++)
		for (k = 0; k < o.n_threads; k++)
			measure_size(&out, &o, o.entries[i], o.threads[k]);
	bench_end(&out);
	sl_rcu_stop();
	return 0;
}
