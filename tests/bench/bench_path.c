/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet path with 64-byte frames, from a source through one worker to net_null, made of the
 * daemon's own ports, worker and packet path.
 *
 *   established  N connections that exist, both directions of each in random order from a capture
 *                that net_pcap plays for ever; base: the same ports, only receiving and sending
 *   translated   the same connections, translated; base: untranslated, in a gateway beside
 *   new          UDP from random sources, every packet a new connection; base: the same
 *   listing      `established` while the control thread lists all entries; base: while it does not
 *
 * Rounds of base and measured alternate; medians are printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "bench.h"
#include "bench_capture.h"
#include "bench_gateway.h"
#include "bench_path_options.h"
#include "rcu.h"

/* Buffers besides those that hold the capture: in flight, in caches, and what a burst takes. */
#define BUFFERS_SPARE 16384u
#define BUFFER_ROOM   (RTE_PKTMBUF_HEADROOM + 128)

/* More than a buffer with its headers and its place in the pool's ring takes. */
#define BUFFER_BYTES    640u
#define MEMORY_SPARE_MB 192u

struct bed {
	const struct options *o;
	struct bench out;
	struct rte_mempool *pool;
};

static const struct bench_column columns[] = {
	{"test", "test", -11, 0},
	{"flows", "flows", 8, 0},
	{"mpps", "Mpps", 7, 2},
	{"ns", "ns", 6, 1},
	{"base_mpps", "base Mpps", 9, 2},
	{"base_ns", "base ns", 7, 1},
	{"percent", "% of base", 9, 1},
	{"core_percent", "core %", 6, 1},
	{"entries", "entries", 9, 0},
	{"bytes_per_entry", "B/entry", 7, 0},
};

/* ---- results ---- */

struct result {
	enum test test;
	uint32_t flows;
	double pps[ROUNDS_MAX], base[ROUNDS_MAX], share[ROUNDS_MAX];
	unsigned int n;
};

static void
add_round(struct result *r, struct bench_rate base, struct bench_rate measured)
{
	r->base[r->n] = base.pps;
	r->pps[r->n] = measured.pps;
	r->share[r->n++] = measured.share;
}

/* B/entry is of the memory that the table has for as many entries as there may be. */
static json_t *
result_row(struct result *r, const struct bench_gateway *g)
{
	double pps = bench_median(r->pps, r->n), base = bench_median(r->base, r->n);
	struct ct_memory m;
	double bytes;

	ct_memory(g->gw.ct, &m);
	bytes = (double)(m.pool_present + m.lines_present + m.walk_present) / ct_max(g->gw.ct);
	return json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:f}", "test",
		bench_path_test[r->test], "flows", (int)r->flows, "mpps", pps / 1e6, "ns",
		1e9 / pps, "base_mpps", base / 1e6, "base_ns", 1e9 / base, "percent",
		100 * pps / base, "core_percent", 100 * bench_median(r->share, r->n), "entries",
		(json_int_t)ct_count(g->gw.ct), "bytes_per_entry", bytes);
}

static void
check_no_drops(const struct bench_gateway *g, const char *during)
{
	enum sl_drop reason;
	uint64_t n = bench_gateway_drops(g, &reason);

	if (n != 0)
		bench_die("%lu packets were dropped during %s, most for %s", (unsigned long)n,
			during, sl_drop_name(reason));
}

/* ---- established connections ---- */

static void
open_established(struct bed *b, struct bench_gateway *g, uint32_t flows, const char *nat)
{
	const char *dir = getenv("TMPDIR");
	char path[128], devargs[192], sink[48];
	struct bench_gateway_config config = {.pool = b->pool,
		.lcore = 1,
		.max_entries = flows,
		.buckets = flows * b->o->buckets_per_entry,
		.rules = b->o->rules,
		.limit = b->o->limit,
		.nat = nat,
		.events = b->o->events,
		.source = devargs,
		.sink = sink};
	unsigned int how = (b->o->udp ? BENCH_UDP : 0) | (nat != NULL ? BENCH_NAT : 0);
	int fd;

	if (nat != NULL && strcmp(nat, "prefix") != 0)
		bench_die("--nat %s: answers to it are not known: established needs prefix", nat);

	snprintf(path, sizeof(path), "%.100s/sluice-bench-XXXXXX", dir == NULL ? "/tmp" : dir);
	fd = mkstemp(path);
	if (fd < 0)
		bench_die("%s cannot be made", path);
	close(fd);
	bench_capture_write(path, flows, how);
	snprintf(devargs, sizeof(devargs), "net_pcap_%p,rx_pcap=%s,infinite_rx=1", (void *)g, path);
	snprintf(sink, sizeof(sink), "net_null_%p,no-rx=1", (void *)g);
	bench_gateway_open(g, &config); /* the capture is in memory now */
	unlink(path);
	bench_gateway_prime(g, flows, how);
}

static void
measure_established(struct bed *b, uint32_t flows)
{
	struct result r = {.test = ESTABLISHED, .flows = flows};
	struct bench_gateway g;
	struct bench_rate base;
	unsigned int i;

	open_established(b, &g, flows, b->o->nat);
	for (i = 0; i < b->o->rounds; i++) {
		base = bench_gateway_floor(&g, b->o->ms);
		add_round(&r, base, bench_gateway_run(&g, b->o->ms));
	}
	check_no_drops(&g, "established");
	if (ct_count(g.gw.ct) != flows)
		bench_die("the flows of the capture made new entries");
	bench_row(&b->out, result_row(&r, &g));
	bench_gateway_close(&g);
}

static void
measure_translated(struct bed *b, uint32_t flows)
{
	struct result r = {.test = TRANSLATED, .flows = flows};
	struct bench_gateway plain, g;
	struct bench_rate base;
	unsigned int i;

	open_established(b, &plain, flows, NULL);
	open_established(b, &g, flows, "prefix");
	for (i = 0; i < b->o->rounds; i++) {
		base = bench_gateway_run(&plain, b->o->ms);
		add_round(&r, base, bench_gateway_run(&g, b->o->ms));
	}
	check_no_drops(&plain, "translated");
	check_no_drops(&g, "translated");
	bench_row(&b->out, result_row(&r, &g));
	bench_gateway_close(&plain);
	bench_gateway_close(&g);
}

/* ---- listing ---- */

struct listing {
	char line[256];
	uint64_t n, bytes;
};

/* What a listing has to do for each entry, but for sending it. */
static bool
list_entry(const struct ct_view *v, void *arg)
{
	const struct tuple *t = &v->entry.orig.tuple;
	struct listing *l = arg;

	l->bytes += (uint64_t)snprintf(l->line, sizeof(l->line),
		"%u %d src=%u.%u.%u.%u dst=%u.%u.%u.%u sport=%u dport=%u mark=%u\n", t->proto,
		v->left_ms / 1000, t->src.b[0], t->src.b[1], t->src.b[2], t->src.b[3], t->dst.b[0],
		t->dst.b[1], t->dst.b[2], t->dst.b[3], rte_be_to_cpu_16(t->sport),
		rte_be_to_cpu_16(t->dport), v->entry.mark);
	l->n++;
	return true;
}

/* One whole listing, in slices as the control thread has them. */
static void
list_all(struct bench_gateway *g, uint32_t entries)
{
	struct sl_now now = sl_now_monotonic();
	struct ct_filter all = {NULL};
	struct listing l = {.n = 0};
	struct ct_walk w;

	ct_walk_start(g->gw.ct, &w, now);
	while (ct_walk_slice(g->gw.ct_control, &w, &all, 1024, now,
		&(struct ct_visitor){list_entry, &l}))
		;
	if (l.n != entries)
		bench_die("a listing of %u entries has %lu", entries, (unsigned long)l.n);
}

static void
measure_listing(struct bed *b, uint32_t entries)
{
	struct result r = {.test = LISTING, .flows = entries};
	struct bench_moment m[3];
	struct bench_gateway g;
	uint64_t end, lists = 0;
	unsigned int i;
	json_t *row;

	open_established(b, &g, entries, b->o->nat);
	bench_gateway_start(&g);
	for (i = 0; i < b->o->rounds; i++) {
		m[0] = bench_gateway_moment(&g);
		usleep(b->o->ms * 1000);
		m[1] = bench_gateway_moment(&g);
		end = bench_ns() + b->o->ms * SL_NSEC_PER_MSEC;
		do {
			list_all(&g, entries);
			lists++;
		} while (bench_ns() < end);
		m[2] = bench_gateway_moment(&g);
		add_round(&r, bench_gateway_between(&m[0], &m[1]),
			bench_gateway_between(&m[1], &m[2]));
	}
	bench_gateway_stop(&g);
	check_no_drops(&g, "listing");
	row = result_row(&r, &g);
	if (row == NULL ||
		json_object_set_new(row, "listings", json_integer((json_int_t)lists)) < 0)
		bench_die("out of memory");
	bench_row(&b->out, row);
	bench_gateway_close(&g);
}

/* ---- new connections ---- */

struct second {
	struct bench_rate rate;
	uint64_t entries, drops;
};

static void
watch_new(struct bench_gateway *g, struct second *s, unsigned int n)
{
	struct bench_moment before, now;
	enum sl_drop reason;
	unsigned int i;

	bench_gateway_start(g);
	before = bench_gateway_moment(g);
	for (i = 0; i < n; i++) {
		bench_gateway_wait(g, 1000);
		now = bench_gateway_moment(g);
		s[i].rate = bench_gateway_between(&before, &now);
		s[i].entries = ct_count(g->gw.ct);
		s[i].drops = bench_gateway_drops(g, &reason);
		before = now;
	}
	bench_gateway_stop(g);
}

/*
 * What each second had, and what the second half tells: entries steady means that the sweep keeps
 * up. A lifetime is entries by the rate of the wall clock: one second and what the sweep is late.
 */
static json_t *
new_details(const struct second *s, unsigned int n)
{
	json_t *rates = json_array(), *entries = json_array();
	uint64_t least = UINT64_MAX, most = 0;
	double sum = 0, rate = 0;
	unsigned int i, half = n / 2;

	for (i = 0; i < n; i++) {
		json_array_append_new(rates, json_real(s[i].rate.pps * s[i].rate.share));
		json_array_append_new(entries, json_integer((json_int_t)s[i].entries));
		if (i < half)
			continue;
		least = RTE_MIN(least, s[i].entries);
		most = RTE_MAX(most, s[i].entries);
		sum += (double)s[i].entries;
		rate += s[i].rate.pps * s[i].rate.share;
	}
	return json_pack("{s:o, s:o, s:I, s:I, s:f, s:b, s:I}", "pps_over_time", rates,
		"entries_over_time", entries, "entries_min", (json_int_t)least, "entries_max",
		(json_int_t)most, "lifetime_s", sum / rate, "steady",
		(double)(most - least) < 0.2 * sum / (n - half), "dropped",
		(json_int_t)s[n - 1].drops);
}

static void
measure_new(struct bed *b)
{
	char source[96];
	struct bench_gateway_config config = {.pool = b->pool,
		.lcore = 1,
		.max_entries = b->o->max_entries,
		.buckets = b->o->max_entries * b->o->buckets_per_entry,
		.udp_timeout = 1,
		.rules = b->o->rules,
		.limit = b->o->limit,
		.nat = b->o->nat,
		.events = b->o->events,
		.source = source};
	struct second *s = calloc(b->o->seconds, sizeof(*s));
	double base[ROUNDS_MAX];
	struct result r = {.test = NEW};
	struct bench_gateway g;
	json_t *row, *details;
	unsigned int i;

	if (s == NULL)
		bench_die("out of memory");
	snprintf(source, sizeof(source), "gen,synflood,udp=1,csum=0,vlans=1,prefix=%s",
		b->o->sources);
	bench_gateway_open(&g, &config);
	for (i = 0; i < b->o->rounds; i++)
		base[i] = bench_gateway_floor(&g, b->o->ms).pps;
	watch_new(&g, s, b->o->seconds);
	r.n = RTE_MIN(b->o->seconds - b->o->seconds / 2, ROUNDS_MAX);
	for (i = 0; i < r.n; i++) {
		r.pps[i] = s[b->o->seconds - r.n + i].rate.pps;
		r.share[i] = s[b->o->seconds - r.n + i].rate.share;
		r.base[i] = base[i % b->o->rounds];
	}
	row = result_row(&r, &g);
	details = new_details(s, b->o->seconds);
	if (row == NULL || details == NULL || json_object_set(row, "over_time", details) < 0)
		bench_die("out of memory");
	bench_row(&b->out, row);
	bench_note(&b->out, "new connections", details);
	bench_gateway_close(&g);
	free(s);
}

/* ---- the process ---- */

static uint32_t
flows_max(const struct options *o)
{
	uint32_t most = o->tests & 1u << LISTING ? o->list_entries : 0;
	unsigned int i;

	for (i = 0; i < o->n_flows; i++) {
		if (o->tests & 1u << ESTABLISHED)
			most = RTE_MAX(most, o->flows[i]);
		if (o->tests & 1u << TRANSLATED)
			most = RTE_MAX(most, 2 * o->flows[i]);
	}
	return most;
}

static void
make_pool(struct bed *b, uint32_t buffers)
{
	b->pool = rte_pktmbuf_pool_create("packets", buffers, 256, 0, BUFFER_ROOM, 0);
	if (b->pool == NULL)
		bench_die("no memory for %u packet buffers", buffers);
}

static void
measure_all(struct bed *b)
{
	unsigned int i;

	for (i = 0; i < b->o->n_flows && b->o->tests & 1u << ESTABLISHED; i++)
		measure_established(b, b->o->flows[i]);
	for (i = 0; i < b->o->n_flows && b->o->tests & 1u << TRANSLATED; i++)
		measure_translated(b, b->o->flows[i]);
	if (b->o->tests & 1u << NEW)
		measure_new(b);
	if (b->o->tests & 1u << LISTING)
		measure_listing(b, b->o->list_entries);
}

static void
start_eal(struct bench *out, const struct options *o, unsigned int megabytes)
{
	bool huge = !o->no_huge && bench_huge_megabytes() >= megabytes;
	static char program[] = "bench_path", no_pci[] = "--no-pci",
		    no_telemetry[] = "--no-telemetry";
	static char level[] = "--log-level=*:4", lcores_key[] = "--lcores", m_key[] = "-m";
	static char lcores[32], memory[16], no_huge[] = "--no-huge", in_memory[] = "--in-memory";
	static char no_shconf[] = "--no-shconf", va[] = "--iova-mode=va";
	char *argv[] = {program, no_pci, no_telemetry, level, va, lcores_key, lcores, m_key, memory,
		huge ? in_memory : no_huge, huge ? NULL : no_shconf, NULL};

	snprintf(lcores, sizeof(lcores), "0@%u,1@%u", o->control_core, o->worker_core);
	snprintf(memory, sizeof(memory), "%u", megabytes);
	if (rte_eal_init((int)RTE_DIM(argv) - 1 - huge, argv) < 0)
		bench_die("EAL does not start with %u MB on cores %u and %u", megabytes,
			o->control_core, o->worker_core);
	bench_note(out, "packet_buffers",
		json_pack("{s:i, s:b}", "megabytes", (int)megabytes, "huge_pages", huge));
}

int
main(int argc, char **argv)
{
	struct options o;
	struct bed b = {.o = &o};
	uint32_t buffers;

	bench_path_options(&o, argc, argv);
	buffers = 2 * flows_max(&o) + BUFFERS_SPARE;
	bench_begin(&b.out, "packet path", columns, RTE_DIM(columns), o.json);
	start_eal(&b.out, &o,
		(unsigned int)((uint64_t)buffers * BUFFER_BYTES >> 20) + MEMORY_SPARE_MB);
	if (sl_rcu_start(NULL, NULL) < 0)
		bench_die("cannot start the helper thread");
	make_pool(&b, buffers);
	measure_all(&b);
	bench_end(&b.out);
	sl_rcu_stop();
	rte_mempool_free(b.pool);
	rte_eal_cleanup();
	return 0;
}
