/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The noisy neighbour: what a namespace of a few connections feels of another that holds millions,
 * while it shares the hash table with it, while that table grows as it will, and with a TCP table
 * of its own. The quiet one's connections are opened last, so that in the chains they share they
 * come after the neighbour's.
 *
 *   sharing    the table has as many buckets as are said, and stays so
 *   growing    it was let grow (sluice.table_growth)
 *   owning     the quiet one has a table of its own
 *   dismantle  deleting a namespace beside the neighbour, owning and sharing
 *
 * Each rate is of the quiet one's established connections, both ways, through the packet path, with
 * the worker's processor time as its measure. Two gateways are there, one of them without the
 * neighbour. A pair is so many short slices on one and on the other, in turn, so that a machine
 * that is slower for a while is so for both; of each the median counts. What is told is the median
 * of the pairs' ratios, and their quartiles. The row without neighbour says how far two of the same
 * are apart.
 */
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>

#include "bench.h"
#include "bench_capture.h"
#include "bench_gateway.h"
#include "err.h"
#include "netns_job.h"
#include "rcu.h"
#include "table_growth.h"

#define SIZES_MAX  8u
#define ROUNDS_MAX 99u
#define SLICES_MAX 99u
#define BURST      32u
#define BUFFERS    8191u
#define MEMORY_MB  "96"
#define SLICE      65536u
#define FOREVER_MS (24u * 3600 * 1000)

struct options {
	uint32_t neighbours[SIZES_MAX], buckets[SIZES_MAX];
	unsigned int n_neighbours, n_buckets;
	uint32_t flows, own_buckets, dismantle;
	unsigned int rounds, slices, ms;
	unsigned int tests; /* bits of enum test */
	bool json;
};

enum test {
	SHARING = 1u << 0,
	GROWING = 1u << 1,
	OWNING = 1u << 2,
	DISMANTLE = 1u << 3,
};

static const char *const test_names[] = {"sharing", "growing", "owning", "dismantle"};

static struct options o;
static struct bench_gateway alone, beside;
static struct netns *noisy;
static uint32_t held; /* connections of the noisy one */

static const struct bench_column columns[] = {
	{"test", "test", -18, 0},
	{"buckets", "buckets", 9, 0},
	{"neighbour", "neighbour", 9, 0},
	{"chain", "lines", 6, 1},
	{"alone_mpps", "alone Mpps", 10, 2},
	{"mpps", "Mpps", 6, 2},
	{"percent", "% of alone", 10, 1},
	{"percent_q1", "quartile", 8, 1},
	{"percent_q3", "quartile", 8, 1},
	{"ms", "ms", 8, 2},
	{"walked", "walked", 9, 0},
};

/* ---- connections and tables ---- */

static void
open_burst(struct netns *ns, struct pkt *p, uint32_t first, unsigned int n)
{
	static struct rte_tcp_hdr syn = {.data_off = 5 << 4, .tcp_flags = RTE_TCP_SYN_FLAG};
	struct ct_thread *t = beside.gw.ct_control;
	struct sl_now now = sl_now_monotonic();
	unsigned int i;

	for (i = 0; i < n; i++) {
		p[i] = (struct pkt){.flags = PKT_IP,
			.proto = IPPROTO_TCP,
			.ip_bytes = 40,
			.ns = ns,
			.l4 = (uint8_t *)&syn,
			.l4_len = sizeof(syn),
			.l4_hdr_len = sizeof(syn),
			.tcp_flags = PKT_TCP_SYN};
		p[i].tuple = (struct tuple){
			.scope = ns->id, .family = TUPLE_IPV4, .proto = IPPROTO_TCP};
		p[i].tuple.src.w[0] = rte_cpu_to_be_32(0x0a000000u + first + i);
		p[i].tuple.dst.w[0] = rte_cpu_to_be_32(0xc6336401u);
		p[i].tuple.sport = rte_cpu_to_be_16((uint16_t)(first + i));
		p[i].tuple.dport = rte_cpu_to_be_16(443);
	}
	ct_lookup_bulk(t, p, n);
	for (i = 0; i < n; i++)
		if (ct_begin(t, &p[i], now) != CT_OK || ct_commit(t, &p[i]) != CT_OK)
			bench_die("connection %u of %s is refused: %s", first + i, ns->name,
				sl_drop_name(p[i].reason));
}

static void
open_many(struct netns *ns, uint32_t from, uint32_t to)
{
	struct pkt p[BURST];

	for (; from < to; from += BURST)
		open_burst(ns, p, from, RTE_MIN(to - from, BURST));
}

static void
resize(struct bench_gateway *b, uint32_t buckets)
{
	struct sl_err err;

	if (ct_buckets(b->gw.ct) == buckets)
		return;
	if (ct_resize_start(b->gw.ct, buckets, &err) != 0)
		bench_die("%s", err.msg);
	while (ct_resize_slice(b->gw.ct_control, SLICE))
		;
	ct_resize_finish(b->gw.ct);
	sl_rcu_synchronize();
	while (ct_resize_release(b->gw.ct_control, SLICE))
		;
}

/* The neighbour comes to hold so many; in a large table, where that is quick. */
static void
fill(uint32_t n)
{
	if (n <= held)
		return;
	resize(&beside, RTE_MAX(rte_align32pow2(n), CT_BUCKETS_MIN));
	open_many(noisy, held, n);
	held = n;
}

static void
close_quiet(void)
{
	const struct ct_filter f = {.ns = beside.ns};
	struct sl_now now = sl_now_monotonic();
	uint64_t destroyed = 0;
	struct ct_walk w;

	ct_walk_start(beside.gw.ct, &w, now);
	while (ct_flush_slice(beside.gw.ct_control, &w, &f, SLICE, now, &destroyed))
		;
	ct_own_destroy(beside.gw.ct_control, beside.ns->id);
}

static void
open_quiet(bool own)
{
	struct sl_err err;

	close_quiet();
	if (own && ct_own_create(beside.gw.ct, beside.ns->id, o.own_buckets, &err) != 0)
		bench_die("%s", err.msg);
	bench_gateway_prime(&beside, o.flows, false);
}

/* ---- rates ---- */

struct pairs {
	double alone[ROUNDS_MAX], beside[ROUNDS_MAX], percent[ROUNDS_MAX];
};

static void
check_no_drops(const struct bench_gateway *b)
{
	enum sl_drop reason;
	uint64_t n = bench_gateway_drops(b, &reason);

	if (n != 0)
		bench_die("%" PRIu64 " packets were dropped, most for %s", n, sl_drop_name(reason));
}

/* On a busy machine the worker may not come to run in so short a time. */
static double
rate(struct bench_gateway *b)
{
	double pps;

	do
		pps = bench_gateway_run(b, o.ms).pps;
	while (pps == 0);
	return pps;
}

/* The order changes from one slice to the next. */
static void
run_pair(double *one, double *other)
{
	double a[SLICES_MAX], b[SLICES_MAX];
	unsigned int i;

	for (i = 0; i < o.slices; i++) {
		if (i % 2 == 0)
			a[i] = rate(&alone);
		b[i] = rate(&beside);
		if (i % 2 != 0)
			a[i] = rate(&alone);
	}
	*one = bench_median(a, o.slices);
	*other = bench_median(b, o.slices);
}

static void
run_pairs(struct pairs *r)
{
	unsigned int i;

	for (i = 0; i < o.rounds; i++) {
		run_pair(&r->alone[i], &r->beside[i]);
		r->percent[i] = 100 * r->beside[i] / r->alone[i];
	}
	check_no_drops(&alone);
	check_no_drops(&beside);
}

static void
measure(struct bench *b, const char *test)
{
	struct ct_memory m;
	struct pairs r;
	double median;

	run_pairs(&r);
	ct_memory(beside.gw.ct, &m);
	median = bench_median(r.percent, o.rounds);
	bench_row(b,
		json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "test", test,
			"buckets", (json_int_t)ct_buckets(beside.gw.ct), "neighbour",
			(json_int_t)held, "chain", 1 + (double)m.overflow_lines_used / m.lines,
			"alone_mpps", bench_median(r.alone, o.rounds) / 1e6, "mpps",
			bench_median(r.beside, o.rounds) / 1e6, "percent", median, "percent_q1",
			r.percent[o.rounds / 4], "percent_q3", r.percent[o.rounds * 3 / 4]));
}

/* What growth makes of the smallest table, which is where it would begin. */
static void
measure_growing(struct bench *b)
{
	struct table_growth *growth = beside.gw.growth;
	uint32_t before;

	resize(&beside, o.buckets[0]);
	do {
		before = ct_buckets(beside.gw.ct);
		table_growth_check(&beside.gw);
	} while (growth != NULL && ct_buckets(beside.gw.ct) != before);
	open_quiet(false);
	measure(b, "growing");
}

static void
measure_rates(struct bench *b, uint32_t neighbour)
{
	unsigned int i;

	fill(neighbour);
	for (i = 0; i < o.n_buckets; i++) {
		resize(&alone, o.buckets[i]);
		resize(&beside, o.buckets[i]);
		if (o.tests & SHARING) {
			open_quiet(false);
			measure(b, "sharing");
		}
		if (o.tests & OWNING) {
			open_quiet(true);
			measure(b, "owning");
		}
	}
	if (o.tests & GROWING)
		measure_growing(b);
	close_quiet();
}

/* ---- dismantling ---- */

static struct netns *
add_netns(const char *name)
{
	struct netns *ns;
	struct sl_err err;

	if (netns_create_batch(beside.gw.netns, &name, 1, netns_init_ns(beside.gw.netns), &ns,
		    &err) != 0)
		bench_die("%s", err.msg);
	return ns;
}

static uint64_t
slots_walked(void)
{
	struct ct_stats s;

	ct_stats(beside.gw.ct, ct_thread_index(beside.gw.ct_control), &s);
	return s.walked;
}

/* Milliseconds until it is gone, with all its connections. */
static double
dismantle_once(bool own)
{
	struct netns **ns = calloc(1, sizeof(*ns));
	struct netns_job *job;
	struct sl_err err;
	uint64_t start;

	if (ns == NULL)
		bench_die("out of memory");
	ns[0] = add_netns("gone");
	if (own && ct_own_create(beside.gw.ct, ns[0]->id, rte_align32pow2(o.dismantle), &err) != 0)
		bench_die("%s", err.msg);
	open_many(ns[0], 0, o.dismantle);
	job = netns_job_new(&beside.gw, ns, 1);
	if (job == NULL)
		bench_die("out of memory");
	start = bench_ns();
	netns_job_start(job);
	netns_job_finish(job, NULL, NULL);
	if (ct_count(beside.gw.ct) != held)
		bench_die("connections are left over, or others are gone");
	return (double)(bench_ns() - start) / 1e6;
}

static void
measure_dismantle(struct bench *b, bool own)
{
	uint64_t before = slots_walked(), walked;
	double ms[ROUNDS_MAX];
	unsigned int i;

	for (i = 0; i < o.rounds; i++)
		ms[i] = dismantle_once(own);
	walked = (slots_walked() - before) / o.rounds;
	if (own ? walked != 0 : walked < o.dismantle)
		bench_die("%" PRIu64 " slots of the pool were walked", walked);
	bench_row(b, json_pack("{s:s, s:I, s:I, s:f, s:I}", "test",
			     own ? "dismantle owning" : "dismantle sharing", "buckets",
			     (json_int_t)ct_buckets(beside.gw.ct), "neighbour", (json_int_t)held,
			     "ms", bench_median(ms, o.rounds), "walked", (json_int_t)walked));
}

/* ---- the process ---- */

static void
start_eal(void)
{
	static char words[][24] = {"bench_ehash", "--no-huge", "--no-shconf", "--no-pci",
		"--no-telemetry", "--log-level=*:4", "-m", MEMORY_MB, "--lcores", "0@0,1@1"};
	char *argv[RTE_DIM(words) + 1] = {NULL};
	unsigned int i;

	for (i = 0; i < RTE_DIM(words); i++)
		argv[i] = words[i];
	if (rte_eal_init((int)RTE_DIM(words), argv) < 0 || sl_rcu_start(NULL, NULL) < 0)
		bench_die("DPDK does not start on cores 0 and 1 with %s MB", MEMORY_MB);
}

static void
open_gateway(struct bench_gateway *b, struct rte_mempool *pool, const char *name, uint32_t max,
	const char *capture)
{
	char source[160], sink[64];
	struct bench_gateway_config config = {.pool = pool,
		.lcore = 1,
		.max_entries = max,
		.buckets = o.buckets[0],
		.source = source,
		.sink = sink};

	snprintf(source, sizeof(source), "net_pcap_%s,rx_pcap=%s,infinite_rx=1", name, capture);
	snprintf(sink, sizeof(sink), "net_null_%s,no-rx=1", name);
	bench_gateway_open(b, &config);
}

static void
set_up(struct rte_mempool *pool)
{
	uint32_t most = o.neighbours[o.n_neighbours - 1] + o.dismantle + o.flows;
	char path[] = "/tmp/sluice-bench-XXXXXX";
	int fd = mkstemp(path);
	struct knobs k;
	struct sl_err err;

	if (fd < 0)
		bench_die("%s cannot be made", path);
	close(fd);
	bench_capture_write(path, o.flows, false);
	open_gateway(&alone, pool, "alone", o.flows + BURST, path);
	open_gateway(&beside, pool, "beside", most + BURST, path);
	unlink(path);
	bench_gateway_prime(&alone, o.flows, false);
	noisy = add_netns("noisy");
	k = *netns_knobs(noisy);
	k.tcp_timeout[CT_TCP_SYN_SENT] = FOREVER_MS;
	if (netns_set_knobs(noisy, &k, &err) != 0 || table_growth_create(&beside.gw, &err) != 0)
		bench_die("%s", err.msg);
}

static const char usage[] =
	"usage: bench_ehash [options]\n"
	"  --tests NAME[,NAME…] sharing,growing,owning,dismantle\n"
	"  --neighbours N[,N…]  connections of the neighbour, 1M,2M,4M,8M; none comes first\n"
	"  --buckets N[,N…]     of the table of all, 128k,512k\n"
	"  --flows N            connections of the quiet one, 512\n"
	"  --own N              buckets of its own table, 4096\n"
	"  --dismantle N        connections of the one that is deleted, 100000\n"
	"  --rounds N           pairs, of which the median counts, 9\n"
	"  --slices N           of each in a pair, in turn, 9\n"
	"  --ms N               time of a slice, 20\n"
	"  --quick              small and short: shows that all works\n"
	"  --json               one JSON object instead of the table\n"
	"A connection of the neighbour takes 300 bytes of memory.\n";

static void
set_quick(void)
{
	o.n_neighbours = bench_sizes("neighbours", "64k", o.neighbours, SIZES_MAX);
	o.n_buckets = bench_sizes("buckets", "8k", o.buckets, SIZES_MAX);
	o.dismantle = 2000;
	o.rounds = o.slices = 1;
}

static unsigned int
tests_of(const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;
	unsigned int set = 0, i;

	while (copy != NULL && (word = strsep(&rest, ",")) != NULL) {
		for (i = 0; i < RTE_DIM(test_names) && strcmp(word, test_names[i]) != 0; i++)
			;
		if (i == RTE_DIM(test_names))
			bench_die("--tests: there is no %s", word);
		set |= 1u << i;
	}
	free(copy);
	return set;
}

static bool
set_option(int c, const char *text)
{
	if (c == 't')
		o.tests = tests_of(text);
	else if (c == 'n')
		o.n_neighbours = bench_sizes("neighbours", text, o.neighbours, SIZES_MAX);
	else if (c == 'b')
		o.n_buckets = bench_sizes("buckets", text, o.buckets, SIZES_MAX);
	else if (c == 'f')
		o.flows = (uint32_t)bench_number("flows", text, 1, BUFFERS / 8);
	else if (c == 'o')
		o.own_buckets = (uint32_t)bench_number("own", text, 1, CT_OWN_BUCKETS_MAX);
	else if (c == 'd')
		o.dismantle = (uint32_t)bench_number("dismantle", text, 1, 1u << 20);
	else if (c == 'r')
		o.rounds = (unsigned int)bench_number("rounds", text, 1, ROUNDS_MAX);
	else if (c == 's')
		o.slices = (unsigned int)bench_number("slices", text, 1, SLICES_MAX);
	else if (c == 'm')
		o.ms = (unsigned int)bench_number("ms", text, 1, 10000);
	else if (c == 'q')
		set_quick();
	else if (c == 'j')
		o.json = true;
	else
		return false;
	return true;
}

static void
parse_options(int argc, char **argv)
{
	static const struct option longs[] = {{"tests", required_argument, NULL, 't'},
		{"neighbours", required_argument, NULL, 'n'},
		{"buckets", required_argument, NULL, 'b'}, {"flows", required_argument, NULL, 'f'},
		{"own", required_argument, NULL, 'o'},
		{"dismantle", required_argument, NULL, 'd'},
		{"rounds", required_argument, NULL, 'r'},
		{"slices", required_argument, NULL, 's'}, {"ms", required_argument, NULL, 'm'},
		{"quick", no_argument, NULL, 'q'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {0}};
	int c;

	o = (struct options){
		.flows = 512, .own_buckets = 4096, .dismantle = 100000, .rounds = 9,
		.slices = 9, .ms = 20, .tests = SHARING | GROWING | OWNING | DISMANTLE};
	set_option('n', "1M,2M,4M,8M");
	set_option('b', "128k,512k");
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'h')
			exit(fputs(usage, stdout) < 0);
		if (!set_option(c, optarg)) {
			fputs(usage, stderr);
			exit(2);
		}
	}
}

int
main(int argc, char **argv)
{
	struct rte_mempool *pool;
	struct bench b;
	unsigned int i;

	parse_options(argc, argv);
	start_eal();
	pool = rte_pktmbuf_pool_create(
		"packets", BUFFERS, 256, 0, RTE_PKTMBUF_HEADROOM + 128, SOCKET_ID_ANY);
	if (pool == NULL)
		bench_die("no memory for packet buffers");
	set_up(pool);
	bench_begin(&b, "TCP tables", columns, RTE_DIM(columns), o.json);
	bench_note(&b, "connections of the quiet namespace", json_integer(o.flows));
	bench_note(&b, "connections of the deleted one", json_integer(o.dismantle));
	measure_rates(&b, 0);
	for (i = 0; i < o.n_neighbours; i++)
		measure_rates(&b, o.neighbours[i]);
	if (o.tests & DISMANTLE) {
		measure_dismantle(&b, true);
		measure_dismantle(&b, false);
	}
	bench_end(&b);
	bench_gateway_close(&alone);
	bench_gateway_close(&beside);
	table_growth_free(&beside.gw);
	sl_rcu_stop();
	rte_mempool_free(pool);
	rte_eal_cleanup();
	return 0;
}
