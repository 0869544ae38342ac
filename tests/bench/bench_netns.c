/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Namespaces by the thousand, through the control side's own path, with two workers that pass
 * traffic of another namespace all the while:
 *
 *   create   as one batch; and, as the baseline, with a table of 65,536 buckets for each
 *   delete   one by one, each with the grace periods of its own; and as one batch. Empty, and with
 *            100 connections each in a table of a million buckets
 *   kernel   the same number by `ip -batch`, as root: until the commands are done, and until the
 *            last namespace is gone from the kernel's memory
 *
 * Memory is what the heap has grown by; of the kernel, what is no longer available. Processor time
 * is the control thread's: what a machine that does other things too does not spoil. One by one is
 * bounded by time: `namespaces` says how many were deleted in it.
 */
#include <event2/event.h>
#include <event2/thread.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_eal.h>

#include "bench.h"
#include "command.h"
#include "err.h"
#include "replay_eal.h"
#include "task.h"
#include "txn.h"
#include "worker.h"

#define WORKERS         2u
#define PRIVATE_BUCKETS 65536u
#define PRIVATE_BYTES   (PRIVATE_BUCKETS / 8 * 64) /* eight buckets to a cache line */
#define TABLE_BUCKETS   (1u << 20)
#define ROUNDS_MAX      9u
#define GONE_SECONDS    60u

struct options {
	unsigned int namespaces, many, entries, rounds;
	unsigned int single_ms; /* how long a row of one by one may take */
	bool json, kernel;
};

static struct gateway *gw;
static struct event_base *base;
static bool done_flag;

static const struct bench_column columns[] = {
	{"what", "what", -44, 0},
	{"namespaces", "namespaces", 11, 0},
	{"ms", "ms", 10, 2},
	{"each_us", "us each", 10, 2},
	{"cpu_ms", "CPU ms", 9, 2},
	{"mb", "MB", 9, 2},
};

/* ---- the control side ---- */

static void
command(const char *line)
{
	struct sl_err err;
	json_t *result;

	if (command_run_text(gw, line, &result, &err) != 0)
		bench_die("%s: %s", line, err.msg);
	json_decref(result);
}

static struct txn *
begin(void)
{
	struct txn *t = txn_begin(gw);

	if (t == NULL)
		bench_die("out of memory");
	return t;
}

static void
on_done(void *arg)
{
	(void)arg;
	done_flag = true;
}

/* Until all of it has happened. */
static void
commit(struct txn *t)
{
	struct sl_err err;

	done_flag = false;
	if (txn_commit(t, on_done, NULL, &err) != 0)
		bench_die("%s", err.msg);
	while (!done_flag)
		event_base_loop(base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
}

static void
name_of(unsigned int i, char name[16])
{
	snprintf(name, 16, "t%u", i);
}

static void
create(unsigned int first, unsigned int n)
{
	struct txn *t = begin();
	struct sl_err err;
	char name[16];
	unsigned int i;

	for (i = 0; i < n; i++) {
		name_of(first + i, name);
		if (txn_add_netns(t, name, "init", &err) != 0)
			bench_die("%s", err.msg);
	}
	commit(t);
}

static void
destroy(unsigned int first, unsigned int n)
{
	struct txn *t = begin();
	struct sl_err err;
	char name[16];
	unsigned int i;

	for (i = 0; i < n; i++) {
		name_of(first + i, name);
		if (txn_delete_netns(t, netns_find(gw->netns, name), &err) != 0)
			bench_die("%s", err.msg);
	}
	commit(t);
}

static void
insert(struct netns *ns, unsigned int n)
{
	struct sl_now now = sl_now_monotonic();
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct pkt p = {.flags = PKT_IP, .proto = IPPROTO_UDP, .ip_bytes = 28, .ns = ns};

		p.tuple = (struct tuple){
			.scope = ns->id, .family = TUPLE_IPV4, .proto = IPPROTO_UDP};
		p.tuple.src.w[0] = rte_cpu_to_be_32(0x0a000000u + i);
		p.tuple.dst.w[0] = rte_cpu_to_be_32(0xc0000201u);
		p.tuple.sport = p.tuple.dport = rte_cpu_to_be_16(53);
		ct_lookup_bulk(gw->ct_control, &p, 1);
		if (ct_begin(gw->ct_control, &p, now) != CT_OK ||
			ct_commit(gw->ct_control, &p) != CT_OK)
			bench_die("connection %u of %s is refused", i, ns->name);
	}
}

static void
fill(const struct options *o)
{
	char name[16];
	unsigned int i;

	for (i = 0; i < o->namespaces && o->entries > 0; i++) {
		name_of(i, name);
		insert(netns_find(gw->netns, name), o->entries);
	}
}

/* ---- measuring ---- */

struct sample {
	double us[ROUNDS_MAX], cpu_us[ROUNDS_MAX]; /* of one namespace */
	double mb[ROUNDS_MAX];
	unsigned int n;
};

struct start {
	uint64_t ns, cpu_ns;
};

static double
heap_mb(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)(m.uordblks + m.hblkhd) / (1 << 20);
}

static struct start
start_now(void)
{
	return (struct start){.ns = bench_ns(), .cpu_ns = bench_cpu_ns()};
}

static void
sample_add(struct sample *s, struct start since, unsigned int namespaces)
{
	s->us[s->n] = (double)(bench_ns() - since.ns) / 1e3 / namespaces;
	s->cpu_us[s->n] = (double)(bench_cpu_ns() - since.cpu_ns) / 1e3 / namespaces;
	s->mb[s->n++] = 0;
}

/* What a row tells besides the time by the clock. */
#define ROW_CPU 1u
#define ROW_MB  2u

static void
row(struct bench *b, const char *what, unsigned int n, struct sample *s, unsigned int tells)
{
	double us = bench_median(s->us, s->n), cpu_us = bench_median(s->cpu_us, s->n);

	bench_row(b, json_pack("{s:s, s:i, s:f, s:f, s:o, s:o}", "what", what, "namespaces",
			     (int)n, "ms", us * n / 1e3, "each_us", us, "cpu_ms",
			     tells & ROW_CPU ? json_real(cpu_us * n / 1e3) : json_null(), "mb",
			     tells & ROW_MB ? json_real(bench_median(s->mb, s->n)) : json_null()));
}

static void
measure_create(struct bench *b, const struct options *o, unsigned int n, const char *what)
{
	struct sample s = {.n = 0};
	unsigned int i;

	for (i = 0; i < o->rounds; i++) {
		double before = heap_mb();
		struct start start = start_now();

		create(0, n);
		sample_add(&s, start, n);
		s.mb[i] = heap_mb() - before;
		destroy(0, n);
	}
	row(b, what, n, &s, ROW_CPU | ROW_MB);
}

/* A table for each is allocated and cleared, as it was before there was one for all. */
static void
measure_private(struct bench *b, const struct options *o)
{
	void **table = calloc(o->namespaces, sizeof(*table));
	struct sample s = {.n = 0};
	unsigned int i, k;

	for (i = 0; i < o->rounds && table != NULL; i++) {
		double before = heap_mb();
		struct start start = start_now();

		for (k = 0; k < o->namespaces; k++) {
			table[k] = malloc(PRIVATE_BYTES);
			if (table[k] == NULL)
				bench_die("no memory for %u tables", o->namespaces);
			memset(table[k], 0, PRIVATE_BYTES);
			create(k, 1);
		}
		sample_add(&s, start, o->namespaces);
		s.mb[i] = heap_mb() - before;
		destroy(0, o->namespaces);
		for (k = 0; k < o->namespaces; k++)
			free(table[k]);
	}
	free(table);
	row(b, "create, each with a table of 65,536 buckets", o->namespaces, &s,
		ROW_CPU | ROW_MB);
}

static void
check_gone(void)
{
	if (netns_count(gw->netns) != 2)
		bench_die("not all namespaces are gone");
}

static void
measure_destroy(struct bench *b, const struct options *o, const char *what)
{
	struct sample s = {.n = 0};
	struct start start;

	while (s.n < o->rounds) {
		create(0, o->namespaces);
		fill(o);
		start = start_now();
		destroy(0, o->namespaces);
		sample_add(&s, start, o->namespaces);
		check_gone();
	}
	row(b, what, o->namespaces, &s, ROW_CPU);
}

/* Each waits for grace periods of its own: how long these take is the machine's affair, so a
 * row has its time and not its number. What is left then goes in one batch. */
static void
measure_single(struct bench *b, const struct options *o, const char *what)
{
	uint64_t limit = o->single_ms * SL_NSEC_PER_MSEC / o->rounds;
	unsigned int k, least = o->namespaces;
	struct sample s = {.n = 0};
	struct start start;

	while (s.n < o->rounds) {
		create(0, o->namespaces);
		fill(o);
		start = start_now();
		for (k = 0; k < o->namespaces && (k == 0 || bench_ns() - start.ns < limit); k++)
			destroy(k, 1);
		sample_add(&s, start, k);
		least = RTE_MIN(least, k);
		destroy(k, o->namespaces - k);
		check_gone();
	}
	row(b, what, least, &s, ROW_CPU);
}

static void
measure_all(struct bench *b, const struct options *o)
{
	struct options empty = *o;

	empty.entries = 0;
	measure_create(b, o, o->namespaces, "create, one batch");
	measure_private(b, o);
	measure_create(b, o, o->many, "create, one batch");
	measure_single(b, &empty, "delete empty ones, one by one");
	measure_destroy(b, &empty, "delete empty ones, one batch");
	measure_single(b, o, "delete with connections, one by one");
	measure_destroy(b, o, "delete with connections, one batch");
}

/* ---- the kernel's ---- */

/* Objects of the kernel's namespaces that are in use; 0 when that is not to be known. */
static unsigned long
kernel_namespaces(void)
{
	FILE *f = fopen("/proc/slabinfo", "re");
	unsigned long n = 0;
	char line[512];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "net_namespace %lu", &n) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return n;
}

static double
available_mb(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long kb = 0;
	char line[256];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "MemAvailable: %lu", &kb) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return (double)kb / 1024;
}

static void
ip_batch(const char *verb, unsigned int n)
{
	FILE *ip = popen("ip -batch -", "we");
	unsigned int i;

	for (i = 0; ip != NULL && i < n; i++)
		fprintf(ip, "netns %s sluice-bench-%u\n", verb, i);
	if (ip == NULL || pclose(ip) != 0)
		bench_die("ip -batch: netns %s fails", verb);
}

static void
measure_kernel(struct bench *b, unsigned int n)
{
	unsigned long before = kernel_namespaces();
	struct sample made = {.n = 0}, told = {.n = 0}, gone = {.n = 0};
	double available = available_mb();
	struct start start = start_now();

	ip_batch("add", n);
	sample_add(&made, start, n);
	made.mb[0] = available - available_mb();
	start = start_now();
	ip_batch("delete", n);
	sample_add(&told, start, n);
	while (kernel_namespaces() > before + n / 100 &&
		bench_ns() - start.ns < GONE_SECONDS * SL_NSEC_PER_SEC)
		usleep(1000);
	sample_add(&gone, start, n);
	row(b, "kernel: ip -batch, netns add", n, &made, ROW_MB);
	row(b, "kernel: ip -batch, netns delete", n, &told, 0);
	row(b, "kernel: until 99 % of them are gone", n, &gone, 0);
}

/* ---- start ---- */

static void
set_up(const struct options *o)
{
	const struct gateway_config config = {.n_workers = WORKERS,
		.lcores = (const unsigned int[WORKERS]){1, 2},
		.buffers = 8191,
		.max_entries = RTE_MAX(262144u, o->namespaces * o->entries + 65536),
		.buckets = TABLE_BUCKETS};
	struct sl_err err;

	if (replay_eal_init(&err) != 0)
		bench_die("%s", err.msg);
	if (evthread_use_pthreads() != 0)
		bench_die("no threads for the event loop");
	base = event_base_new();
	if (base == NULL || task_start(base, &err) != 0 ||
		gateway_create(&config, &gw, &err) != 0)
		bench_die("the gateway cannot be made");
	command("netns add busy");
	command("port add p0 devargs "
		"gen,flows,flows=512,vlans=10,peer-vlans=11,prefix=10.1.0.0/16");
	command("port add p1 devargs "
		"gen,flows,flows=512,vlans=12,peer-vlans=13,prefix=10.2.0.0/16");
	command("link add a0 port p0 vlan 10 netns busy");
	command("link add b0 port p0 vlan 11 netns busy peer a0");
	command("link add a1 port p1 vlan 12 netns busy");
	command("link add b1 port p1 vlan 13 netns busy peer a1");
}

static void *
run_worker(void *arg)
{
	worker_main(arg);
	return NULL;
}

static void
tear_down(void)
{
	command("netns delete all");
	task_drain();
	gateway_destroy(gw);
	task_stop();
	event_base_free(base);
	rte_eal_cleanup();
}

static void
usage(FILE *out)
{
	fputs("usage: bench_netns [--namespaces N] [--many N] [--entries N] [--rounds N]\n"
	      "                   [--single-ms N] [--kernel] [--quick] [--json]\n"
	      "  --namespaces N  in each batch (1000)\n"
	      "  --many N        in the largest (65535: one is taken by the traffic)\n"
	      "  --entries N     connections in each (100)\n"
	      "  --rounds N      of which the median is told (3)\n"
	      "  --single-ms N   for which one by one goes on, all rounds together (30000)\n"
	      "  --kernel        the kernel's namespaces too; needs root\n"
	      "  --quick         few and small: shows that it works\n",
		out);
}

static void
parse_options(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {{"namespaces", required_argument, NULL, 'n'},
		{"many", required_argument, NULL, 'm'}, {"entries", required_argument, NULL, 'e'},
		{"rounds", required_argument, NULL, 'r'},
		{"single-ms", required_argument, NULL, 's'}, {"kernel", no_argument, NULL, 'k'},
		{"quick", no_argument, NULL, 'q'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {0}};
	int c;

	*o = (struct options){.namespaces = 1000, .many = 65535, .entries = 100, .rounds = 3,
		.single_ms = 30000};
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'n')
			o->namespaces = (unsigned int)bench_number("namespaces", optarg, 1, 65535);
		else if (c == 'm')
			o->many = (unsigned int)bench_number("many", optarg, 1, 65535);
		else if (c == 'e')
			o->entries = (unsigned int)bench_number("entries", optarg, 0, 10000);
		else if (c == 'r')
			o->rounds = (unsigned int)bench_number("rounds", optarg, 1, ROUNDS_MAX);
		else if (c == 's')
			o->single_ms = (unsigned int)bench_number("single-ms", optarg, 1, 600000);
		else if (c == 'k')
			o->kernel = true;
		else if (c == 'q')
			*o = (struct options){.namespaces = 10, .many = 500, .entries = 10,
				.rounds = 1, .single_ms = 300, .json = o->json,
				.kernel = o->kernel};
		else if (c == 'j')
			o->json = true;
		else {
			usage(c == 'h' ? stdout : stderr);
			exit(c == 'h' ? 0 : 2);
		}
	}
}

int
main(int argc, char **argv)
{
	pthread_t thread[WORKERS];
	struct options o;
	struct bench b;
	unsigned int i;

	parse_options(&o, argc, argv);
	if (o.kernel && geteuid() != 0)
		bench_die("--kernel needs root");
	set_up(&o);
	for (i = 0; i < WORKERS; i++)
		if (pthread_create(&thread[i], NULL, run_worker, gw->workers[i]) != 0)
			bench_die("no thread");
	bench_begin(&b, "namespaces", columns, RTE_DIM(columns), o.json);
	bench_note(&b, "connections of a namespace", json_integer(o.entries));
	measure_all(&b, &o);
	worker_stop_all(gw);
	for (i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	if (o.kernel)
		measure_kernel(&b, o.namespaces);
	bench_end(&b);
	tear_down();
	return 0;
}
