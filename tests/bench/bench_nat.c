/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for a port: connections of new sources to one remote end are admitted and destroyed,
 * while a given part of all ports of one public address is taken toward it. What each costs,
 * against the cost while none is taken, when every source keeps its own port.
 *
 *   range         `snat ip to ADDR`
 *   pool          `snat to pool`, of one address
 *   independent   the same with endpoint-independent mappings
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include <rte_common.h>

#include "bench.h"
#include "err.h"
#include "nat.h"
#include "pool.h"

#define PORTS      (65536u - 1024u)
#define ROUNDS_MAX 15u
#define PUBLIC     0xcb007101u
#define REMOTE     0xc0000201u

enum kind { RANGE, POOL, INDEPENDENT, KINDS };

static const char *const kind_name[KINDS] = {
	[RANGE] = "range", [POOL] = "pool", [INDEPENDENT] = "independent"};

static const double shares[] = {0, 0.5, 0.9, 0.99, 0.999};

struct bed {
	struct netns_registry *registry;
	struct netns *ns;
	struct ct *ct;
	struct ct_thread *t;
	struct nat *nat;
	struct nat_thread *n;
	struct nat_pool_use use;
	struct nat_request request;
	struct sl_now now;
	uint32_t host; /* that comes next */
	uint64_t random;
};

static const struct bench_column columns[] = {
	{"kind", "kind", -11, 0},
	{"taken_percent", "% taken", 8, 1},
	{"ns", "ns", 7, 1},
	{"times", "of empty", 8, 2},
};

static void
destroyed(void *app, struct ct_thread *t, struct ct_entry *const e[], unsigned int n)
{
	struct bed *b = app;
	(void)t;

	nat_released(b->n, e, n);
}

static void
aborted(void *app, struct ct_thread *t, struct ct_entry *e)
{
	struct bed *b = app;
	(void)t;

	nat_aborted(b->n, e);
}

static void
set_request(struct bed *b, enum kind kind)
{
	struct nat_pool_range range = {.lo.w[0] = RTE_BE32(PUBLIC), .hi.w[0] = RTE_BE32(PUBLIC)};
	const struct nat_pool_config config = {
		.name = "public", .family = TUPLE_IPV4, .range = &range, .n = 1};
	struct sl_err err;

	if (kind == RANGE) {
		b->request = (struct nat_request){
			.flags = NAT_ADDR, .family = TUPLE_IPV4, .min = range.lo, .max = range.hi};
		return;
	}
	b->use.endpoint_independent = kind == INDEPENDENT;
	if (nat_pool_add(b->nat, b->ns, &config, &b->use.pool, &err) < 0 ||
		nat_pool_prepare(b->nat, &b->use, NULL, 0, &err) < 0)
		bench_die("%s", err.msg);
	nat_pool_request(&b->request, &b->use);
}

static void
open_bed(struct bed *b, enum kind kind)
{
	struct ct_config config = {.max_entries = 2 * PORTS,
		.buckets = 8 * PORTS,
		.threads = 1,
		.hash = SL_HASH_AUTO,
		.ops = {.destroyed = destroyed, .aborted = aborted, .app = b}};
	struct nat_config nat = {.threads = 1, .max_sources = 2 * PORTS, .hash = SL_HASH_AUTO};
	struct sl_err err;

	*b = (struct bed){.host = 0x0a000000, .random = 1};
	b->registry = netns_registry_create(1, 1, &err);
	config.netns = b->registry;
	if (b->registry != NULL)
		b->ct = nat.ct = ct_create(&config, &err);
	if (b->ct != NULL)
		b->nat = nat_create(&nat, &err);
	if (b->nat == NULL)
		bench_die("%s", err.msg);
	b->t = ct_thread(b->ct, 0);
	b->n = nat_thread(b->nat, 0);
	b->ns = netns_init_ns(b->registry);
	b->now = sl_now_monotonic();
	if (nat_netns_enable(b->nat, b->ns, &err) < 0)
		bench_die("%s", err.msg);
	set_request(b, kind);
}

static void
close_bed(struct bed *b)
{
	const struct ct_filter all = {NULL};
	struct ct_walk w;
	uint64_t n = 0;

	ct_walk_start(b->ct, &w, b->now);
	while (ct_flush_slice(b->t, &w, &all, 1u << 16, b->now, &n))
		;
	nat_netns_free(b->ns);
	nat_destroy(b->nat);
	ct_destroy(b->ct);
	netns_registry_destroy(b->registry);
}

/* A connection of a new source, as the packet path admits it. */
static void
admit(struct bed *b, struct pkt *p)
{
	static uint8_t header[8];
	uint16_t port = (uint16_t)(1024 + bench_below(bench_random(&b->random), PORTS));

	*p = (struct pkt){.flags = PKT_IP, .proto = IPPROTO_UDP, .ip_bytes = 28, .ns = b->ns,
		.l4 = header, .l4_len = sizeof(header), .l4_hdr_len = sizeof(header)};
	p->tuple = (struct tuple){
		.scope = b->ns->id, .family = TUPLE_IPV4, .proto = IPPROTO_UDP};
	p->tuple.src.w[0] = rte_cpu_to_be_32(b->host++);
	p->tuple.dst.w[0] = RTE_BE32(REMOTE);
	p->tuple.sport = rte_cpu_to_be_16(port);
	p->tuple.dport = RTE_BE16(53);
	ct_lookup_bulk(b->t, p, 1);
	if (p->ct != NULL || ct_begin(b->t, p, b->now) != CT_OK ||
		nat_commit(b->n, p, &b->request) != CT_OK)
		bench_die("a connection is refused: %s", sl_drop_name(p->reason));
}

/* Nanoseconds of an admission and what ends it. */
static double
measure(struct bed *b, unsigned int ms)
{
	uint64_t begin = bench_cpu_ns(), end, n = 0;
	struct pkt p;
	unsigned int i;

	do {
		for (i = 0; i < 256; i++, n++) {
			admit(b, &p);
			ct_kill(b->t, &p);
		}
		end = bench_cpu_ns();
	} while (end - begin < ms * SL_NSEC_PER_MSEC);
	return (double)(end - begin) / (double)n;
}

static void
run(struct bench *out, enum kind kind, unsigned int rounds, unsigned int ms)
{
	double ns[ROUNDS_MAX], empty = 0, median;
	unsigned int i, k, taken = 0;
	struct pkt p;
	struct bed b;

	open_bed(&b, kind);
	for (i = 0; i < RTE_DIM(shares); i++) {
		for (; taken < (unsigned int)(shares[i] * PORTS); taken++)
			admit(&b, &p);
		for (k = 0; k < rounds; k++)
			ns[k] = measure(&b, ms);
		median = bench_median(ns, rounds);
		empty = i == 0 ? median : empty;
		bench_row(out, json_pack("{s:s, s:f, s:f, s:f}", "kind", kind_name[kind],
			"taken_percent", 100 * shares[i], "ns", median, "times", median / empty));
	}
	close_bed(&b);
}

static const char usage[] =
	"usage: bench_nat [options]\n"
	"  --rounds N   whose median counts, 5\n"
	"  --ms N       processor time of a round, 200\n"
	"  --quick      one round of 10 ms\n"
	"  --json       one JSON object instead of the table\n";

int
main(int argc, char **argv)
{
	static const struct option longs[] = {{"rounds", required_argument, NULL, 'r'},
		{"ms", required_argument, NULL, 'm'}, {"quick", no_argument, NULL, 'q'},
		{"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
	unsigned int rounds = 5, ms = 200, kind;
	struct bench out = {.name = NULL};
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'r') {
			rounds = (unsigned int)bench_number("rounds", optarg, 1, ROUNDS_MAX);
		} else if (c == 'm') {
			ms = (unsigned int)bench_number("ms", optarg, 1, 60000);
		} else if (c == 'q') {
			rounds = 1;
			ms = 10;
		} else if (c == 'j') {
			json = true;
		} else {
			fputs(usage, stderr);
			return 2;
		}
	}
	bench_begin(&out, "search for a port", columns, RTE_DIM(columns), json);
	for (kind = 0; kind < KINDS; kind++)
		run(&out, (enum kind)kind, rounds, ms);
	bench_end(&out);
	return 0;
}
