/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a limit of connections per source costs: new connections a second without one, with the
 * three ways of bench_conncount.h, and with lib/connlimit, beside as many live connections as is
 * said. Each thread looks up bursts of new connections, weighs and inserts them; the clock runs
 * with them, so that the sweep removes as many. Nothing is refused: what counting costs is
 * measured, on the table and without packets, so that nothing else hides it.
 *
 *   spread  each connection has a source of its own
 *   net     the sources are the 256 of one /24
 *
 * Rounds of all ways alternate; medians are printed.
 */
#include <getopt.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_conncount.h"
#include "connlimit.h"
#include "conntrack.h"
#include "err.h"

#define BURST       32u
#define ROUNDS_MAX  15u
#define THREADS_MAX 8u
#define LIFE_S      30u /* of a connection: nf_conntrack_udp_timeout */

enum way { NONE, ONE_LOCK, LISTS, TREES, SLUICE, WAYS };

static const struct {
	const char *word, *name;
	int conncount; /* enum conncount_kind, or -1 */
} ways[WAYS] = {
	[NONE] = {"none", "no rule", -1},
	[ONE_LOCK] = {"one-lock", "one lock, lists", CONNCOUNT_ONE_LOCK},
	[LISTS] = {"lists", "keyed locks, lists", CONNCOUNT_LISTS},
	[TREES] = {"trees", "keyed locks, trees", CONNCOUNT_TREES},
	[SLUICE] = {"sluice", "sluice", -1},
};

enum sources { SPREAD, NET, SOURCES };

static const char *const source_name[SOURCES] = {"spread", "net"};

struct options {
	uint32_t threads[THREADS_MAX], live;
	unsigned int ways; /* bits; NONE is always among them */
	unsigned int sources; /* bits */
	unsigned int n_threads, ms, rounds, first_core;
	bool json;
};

struct bed {
	enum way way;
	enum sources sources;
	uint32_t live;
	struct netns_registry *registry;
	struct netns *ns;
	struct ct *ct;
	struct connlimit *cl;
	struct connlimit_count *count;
	struct conncount *records;
	uint64_t made; /* connections, of all threads: the clock */
};

struct thread {
	pthread_t id;
	pthread_barrier_t *barrier;
	struct bed *bed;
	struct ct_thread *ct;
	struct connlimit_thread *cl;
	unsigned int index, core, ms;
	uint32_t fill; /* connections to make before it is measured */
	uint32_t number;
	uint64_t done, ns;
	struct pkt pkt[BURST];
	struct connlimit_ahead ahead[BURST];
};

/* ---- packets ---- */

/* The number-th connection of a thread: its tuple is no other's. */
static void
set_packet(struct thread *t, struct pkt *p)
{
	struct bed *b = t->bed;
	uint32_t n = t->number++ * THREADS_MAX + t->index, mixed = n * 2654435761u;

	p->tuple = (struct tuple){.family = TUPLE_IPV4, .proto = IPPROTO_UDP};
	p->tuple.src.w[0] = mixed;
	if (b->sources == NET)
		p->tuple.src.w[0] = rte_cpu_to_be_32(0x0a000000 | mixed >> 24);
	p->tuple.dst.w[0] = rte_cpu_to_be_32(0xc6120000 | n >> 16);
	p->tuple.sport = (rte_be16_t)n;
	p->tuple.dport = rte_cpu_to_be_16(53);
	p->ns = b->ns;
	p->flags = PKT_IP | PKT_CSUM_GOOD;
	p->proto = IPPROTO_UDP;
	p->ip_bytes = 46;
}

/* ---- one burst ---- */

/* The clock is such that `live` connections are made in the time that one lives. */
static struct sl_now
tick(struct bed *b)
{
	uint64_t made = __atomic_add_fetch(&b->made, BURST, __ATOMIC_RELAXED);

	return sl_now_from_ns(SL_NSEC_PER_SEC + made * (LIFE_S * SL_NSEC_PER_SEC / b->live));
}

static void
look_up(struct thread *t)
{
	unsigned int i, more;

	ct_lookup_start(t->ct, t->pkt, BURST);
	if (t->cl != NULL) {
		for (i = 0; i < BURST; i++)
			connlimit_prefetch(
				t->cl, t->bed->count, &t->pkt[i].tuple, &t->ahead[i]);
	}
	more = ct_lookup_match(t->ct, t->pkt, BURST);
	if (more > 0)
		ct_lookup_chains(t->ct, t->pkt, BURST);
	for (i = 0; i < BURST; i++)
		ct_lookup_finish(t->ct, &t->pkt[i]);
}

static void
weigh(struct thread *t, struct pkt *p, bool fill)
{
	struct bed *b = t->bed;

	if (t->cl != NULL) {
		if (connlimit_weigh(t->cl, b->count, &p->tuple, p->ct, &t->ahead[p - t->pkt]) !=
			CONNLIMIT_NO_MATCH)
			bench_die("a connection is over its limit");
	} else if (b->records != NULL) {
		if (fill)
			conncount_record(b->records, p);
		else if (conncount_weigh(b->records, t->ct, p) > b->live * 2)
			bench_die("more connections of a source than there are");
	}
}

static void
burst(struct thread *t, bool fill)
{
	struct sl_now now = tick(t->bed);
	unsigned int i;

	for (i = 0; i < BURST; i++)
		set_packet(t, &t->pkt[i]);
	look_up(t);
	for (i = 0; i < BURST; i++) {
		struct pkt *p = &t->pkt[i];

		if (p->ct != NULL || ct_begin(t->ct, p, now) != CT_OK)
			bench_die("a new connection is refused: %s", sl_drop_name(p->reason));
		weigh(t, p, fill);
		if (ct_commit(t->ct, p) != CT_OK)
			bench_die("a new connection is refused: %s", sl_drop_name(p->reason));
	}
	ct_sweep(t->ct, false, now);
	sl_rcu_quiescent();
}

static void *
thread_main(void *arg)
{
	struct thread *t = arg;
	uint64_t start, end;
	uint32_t i;

	bench_pin(t->core);
	sl_rcu_register_thread();
	for (i = 0; i < t->fill; i += BURST)
		burst(t, true);
	sl_rcu_offline();
	pthread_barrier_wait(t->barrier);
	sl_rcu_online();
	start = bench_cpu_ns();
	end = start + t->ms * SL_NSEC_PER_MSEC;
	do {
		burst(t, false);
		t->done += BURST;
		t->ns = bench_cpu_ns() - start;
	} while (start + t->ns < end);
	sl_rcu_unregister_thread();
	return NULL;
}

/* ---- a bed ---- */

static void
release(void *app, struct ct_thread *t, struct ct_entry *const e[], unsigned int n)
{
	struct bed *b = app;

	connlimit_release_bulk(connlimit_thread(b->cl, ct_thread_index(t)), e, n);
}

static void
make_limit(struct bed *b, unsigned int threads, struct sl_err *err)
{
	struct connlimit_config config = {.threads = threads, .hash = SL_HASH_AUTO};
	struct connlimit_count_config count = {
		.ns = b->ns, .by = {TUPLE_IPV4, false, 32}, .limit = 4 * b->live, .over = true};

	b->cl = connlimit_create(&config, err);
	if (b->cl == NULL || connlimit_set_max(b->cl, 4 * b->live, err) < 0 ||
		connlimit_netns_init(b->cl, b->ns, err) < 0 ||
		connlimit_count_create(b->cl, &count, &b->count, err) < 0)
		bench_die("%s", err->msg);
}

static void
make_bed(struct bed *b, const struct options *o, unsigned int threads)
{
	struct ct_config config = {.max_entries = 4 * o->live, .buckets = 4 * o->live,
		.threads = threads + 1, .ops = {.app = b}};
	struct sl_err err;
	struct knobs k;

	b->live = o->live;
	b->registry = netns_registry_create(threads + 1, 1, &err);
	if (b->registry == NULL)
		bench_die("%s", err.msg);
	b->ns = netns_init_ns(b->registry);
	k = *netns_knobs(b->ns);
	k.ct_max = k.connlimit_max = 4 * b->live;
	if (netns_set_knobs(b->ns, &k, &err) < 0)
		bench_die("%s", err.msg);
	if (b->way == SLUICE) {
		make_limit(b, threads + 1, &err);
		config.ops.destroyed = release;
	}
	if (ways[b->way].conncount >= 0)
		b->records = conncount_create((enum conncount_kind)ways[b->way].conncount);
	config.netns = b->registry;
	b->ct = ct_create(&config, &err);
	if (b->ct == NULL)
		bench_die("%s", err.msg);
}

static void
destroy_bed(struct bed *b)
{
	ct_destroy(b->ct);
	if (b->count != NULL)
		connlimit_count_free(b->cl, b->count);
	connlimit_netns_free(b->ns);
	connlimit_destroy(b->cl);
	if (b->records != NULL)
		conncount_destroy(b->records);
	netns_registry_destroy(b->registry);
}

/* Connections a second. */
static double
run(const struct options *o, enum way way, enum sources sources, unsigned int threads)
{
	struct bed b = {.way = way, .sources = sources};
	struct thread *t = aligned_alloc(RTE_CACHE_LINE_SIZE, threads * sizeof(*t));
	pthread_barrier_t barrier;
	double rate = 0;
	unsigned int i;

	if (t == NULL)
		bench_die("out of memory");
	memset(t, 0, threads * sizeof(*t));
	make_bed(&b, o, threads);
	pthread_barrier_init(&barrier, NULL, threads);
	for (i = 0; i < threads; i++) {
		t[i].barrier = &barrier;
		t[i].bed = &b;
		t[i].ct = ct_thread(b.ct, i);
		t[i].cl = b.cl != NULL ? connlimit_thread(b.cl, i) : NULL;
		t[i].index = i;
		t[i].core = o->first_core + i;
		t[i].ms = o->ms;
		t[i].fill = 3 * o->live / 2 / threads;
		if (pthread_create(&t[i].id, NULL, thread_main, &t[i]) != 0)
			bench_die("cannot start a thread");
	}
	for (i = 0; i < threads; i++) {
		pthread_join(t[i].id, NULL);
		rate += (double)t[i].done * 1e9 / (double)t[i].ns;
	}
	pthread_barrier_destroy(&barrier);
	destroy_bed(&b);
	free(t);
	return rate;
}

static const struct bench_column columns[] = {
	{"threads", "threads", 7, 0},
	{"sources", "sources", 8, 0},
	{"way", "rule", 20, 0},
	{"kpps", "k/s", 10, 1},
	{"percent", "% of none", 10, 1},
};

static void
measure(struct bench *out, const struct options *o, enum sources sources, unsigned int threads)
{
	double rate[WAYS][ROUNDS_MAX], percent[ROUNDS_MAX], sorted[ROUNDS_MAX];
	unsigned int i, w;

	for (i = 0; i < o->rounds; i++)
		for (w = 0; w < WAYS; w++)
			rate[w][i] = o->ways & 1u << w ? run(o, (enum way)w, sources, threads) : 0;
	for (w = 0; w < WAYS; w++) {
		if (!(o->ways & 1u << w))
			continue;
		memcpy(sorted, rate[w], sizeof(sorted));
		/* Of neighbours in time, so that what slows the machine down slows both down. */
		for (i = 0; i < o->rounds; i++)
			percent[i] = 100 * rate[w][i] / rate[NONE][i];
		bench_row(out, json_pack("{s:i, s:s, s:s, s:f, s:f}", "threads", (int)threads,
				       "sources", source_name[sources], "way", ways[w].name,
				       "kpps", bench_median(sorted, o->rounds) / 1e3, "percent",
				       bench_median(percent, o->rounds)));
	}
}

/* ---- options ---- */

static const char usage[] =
	"usage: bench_connlimit [options]\n"
	"  --live N         live connections, 256k (suffixes k and M are powers of two)\n"
	"  --threads N[,N…] 1,2\n"
	"  --ways WAY[,WAY…] one-lock, lists, trees, sluice, all compared with none\n"
	"  --sources spread|net  one of the two\n"
	"  --rounds N       of each way in turn, whose median counts, 5\n"
	"  --ms N           time of a round, 500\n"
	"  --core N         of the first thread, 0\n"
	"  --quick          3 rounds of 50 ms\n"
	"  --json           one JSON object instead of the table\n";

static unsigned int
parse_ways(const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;
	unsigned int bits = 1u << NONE, w;

	while (copy != NULL && (word = strsep(&rest, ",")) != NULL) {
		for (w = 0; w < WAYS && strcmp(word, ways[w].word) != 0; w++)
			;
		if (w == WAYS)
			bench_die("--ways %s: one-lock, lists, trees or sluice", word);
		bits |= 1u << w;
	}
	free(copy);
	return bits;
}

static unsigned int
parse_sources(const char *text)
{
	unsigned int s;

	for (s = 0; s < SOURCES && strcmp(source_name[s], text) != 0; s++)
		;
	if (s == SOURCES)
		bench_die("--sources %s: spread or net", text);
	return 1u << s;
}

static void
parse_options(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"live", required_argument, NULL, 'l'},
		{"threads", required_argument, NULL, 't'}, {"rounds", required_argument, NULL, 'r'},
		{"ways", required_argument, NULL, 'w'}, {"ms", required_argument, NULL, 'm'},
		{"core", required_argument, NULL, 'c'}, {"sources", required_argument, NULL, 's'},
		{"quick", no_argument, NULL, 'q'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	unsigned int i;
	int c;

	*o = (struct options){
		.ms = 500, .rounds = 5, .live = 256 << 10, .ways = (1u << WAYS) - 1,
		.sources = (1u << SOURCES) - 1};
	o->n_threads = bench_sizes("threads", "1,2", o->threads, THREADS_MAX);
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'l')
			bench_sizes("live", optarg, &o->live, 1);
		else if (c == 't')
			o->n_threads = bench_sizes("threads", optarg, o->threads, THREADS_MAX);
		else if (c == 'w')
			o->ways = parse_ways(optarg);
		else if (c == 's')
			o->sources = parse_sources(optarg);
		else if (c == 'r')
			o->rounds = (unsigned int)bench_number("rounds", optarg, 1, ROUNDS_MAX);
		else if (c == 'm')
			o->ms = (unsigned int)bench_number("ms", optarg, 1, 60000);
		else if (c == 'c')
			o->first_core = (unsigned int)bench_number("core", optarg, 0, 1023);
		else if (c == 'q')
			o->rounds = 3, o->ms = 50;
		else if (c == 'j')
			o->json = true;
		else if (c == 'h')
			exit(fputs(usage, stdout) < 0);
		else {
			fputs(usage, stderr);
			exit(2);
		}
	}
	for (i = 0; i < o->n_threads; i++)
		if (o->threads[i] > THREADS_MAX)
			bench_die("--threads: at most %u", THREADS_MAX);
	if (optind != argc)
		bench_die("\"%s\" is no option", argv[optind]);
	if (o->live < 4096 || o->live > CT_ENTRIES_MAX / 4)
		bench_die("--live: from 4096 to %u", CT_ENTRIES_MAX / 4);
}

int
main(int argc, char **argv)
{
	struct options o;
	struct bench out;
	unsigned int i, s;

	parse_options(&o, argc, argv);
	if (sl_rcu_start(NULL, NULL) < 0)
		bench_die("cannot start the helper thread");
	bench_begin(&out, "connection limits", columns, RTE_DIM(columns), o.json);
	for (i = 0; i < o.n_threads; i++)
		for (s = 0; s < SOURCES; s++)
			if (o.sources & 1u << s)
				measure(&out, &o, (enum sources)s, o.threads[i]);
	bench_end(&out);
	sl_rcu_stop();
	return 0;
}
