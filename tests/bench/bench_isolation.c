/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a tenant feels of the flood of another on the same worker, through the gateway's own packet
 * path. The quiet one has established connections and sends at a fixed rate; the other opens
 * connections as fast as the worker takes them, in each round ten times as many as it may have.
 * Both have the same addresses and VLANs, on a port each.
 *
 *   new               SYNs alone: each new connection evicts the oldest of its own namespace
 *   assured           whole handshakes: its namespace is full, and the others are refused
 *   new, global       nf_conntrack_max of all is reached before its own; the quiet one has a
 *   assured, global   reserve, and opens connections within it all the while
 *
 * What must hold, whatever the machine: the quiet one loses no packet and no connection. Its cost
 * is the TSC from a burst's arrival until it waits to be sent, median of all bursts of a round;
 * rounds alone and under flood alternate, and medians of these are told.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "bench.h"
#include "bench_capture.h"
#include "command.h"
#include "err.h"
#include "port.h"
#include "rcu.h"
#include "replay_eal.h"
#include "worker.h"

#define BURST       ((uint16_t)DATAPATH_BURST)
#define BUFFERS     1023u
#define ROUNDS_MAX  15u
#define SAMPLES_MAX 65536u
#define OPEN_EVERY  8u /* of the quiet one's bursts one is of a handshake, while it opens some */
#define FLOOD_TIMES 10u
#define LIMIT       10.0 /* per cent, of --check */

struct options {
	unsigned int flows, capacity, pps, rounds, ms;
	bool json, check;
};

/* Opens connections, burst by burst: 32 SYNs, then their answers, then what completes them. */
struct opener {
	uint32_t next; /* the first connection of the burst */
	unsigned int step, steps;
};

/* Its one port, in place of which rx and tx below stand. */
struct tenant {
	const char *name;
	struct netns *ns;
	struct port *port;
	const struct port_ops *device;
	struct rte_mempool *pool;
	struct opener opener;
	uint64_t received, sent;
};

struct scenario {
	const char *name;
	bool assured, global;
};

static const struct scenario scenarios[] = {
	{"new", false, false},
	{"assured", true, false},
	{"new, global", false, true},
	{"assured, global", true, true},
};

static struct options o = {.flows = 512, .capacity = 65536, .pps = 500000, .rounds = 5, .ms = 1000};
static struct gateway *gw;
static struct tenant quiet = {.name = "quiet", .opener = {.steps = BENCH_HANDSHAKE}};
static struct tenant flood = {.name = "flood"};
static uint8_t (*frames)[BENCH_FRAME_LEN]; /* of the quiet one's connections, both directions */

/* The round under way; the worker's. */
static struct {
	bool flooding;
	uint32_t target;               /* connections that the quiet one shall have */
	uint64_t due, interval, start; /* TSC; start: of the burst that is measured, else 0 */
	uint32_t bursts;
	double sample[SAMPLES_MAX];
	unsigned int n;
} now;

static const struct bench_column columns[] = {
	{"flood", "flood", -16, 0},
	{"packets", "packets", 9, 0},
	{"lost", "lost", 5, 0},
	{"flood_mpps", "flood Mpps", 10, 2},
	{"opened", "opened", 9, 0},
	{"evicted", "evicted", 9, 0},
	{"refused", "refused", 9, 0},
	{"ns_alone", "ns alone", 8, 1},
	{"ns_flood", "ns flood", 8, 1},
	{"percent", "% more", 6, 1},
};

/* ---- ports ---- */

static void
take_buffers(struct tenant *t, struct rte_mbuf **m)
{
	if (rte_pktmbuf_alloc_bulk(t->pool, m, BURST) != 0)
		bench_die("buffers of %s are lost", t->name);
	t->received += BURST;
}

static uint16_t
open_burst(struct tenant *t, struct rte_mbuf **m)
{
	struct opener *w = &t->opener;
	uint16_t i;

	take_buffers(t, m);
	for (i = 0; i < BURST; i++)
		bench_frame_write((uint8_t *)rte_pktmbuf_append(m[i], BENCH_FRAME_LEN), w->next + i,
			(enum bench_frame)w->step, false);
	if (++w->step == w->steps) {
		w->step = 0;
		w->next = (w->next + BURST) % BENCH_FLOWS_MAX;
	}
	return BURST;
}

/* The next frames of the established connections. */
static uint16_t
data_burst(struct rte_mbuf **m)
{
	uint16_t i;

	take_buffers(&quiet, m);
	for (i = 0; i < BURST; i++)
		memcpy(rte_pktmbuf_append(m[i], BENCH_FRAME_LEN),
			frames[(now.bursts * BURST + i) % (2 * o.flows)], BENCH_FRAME_LEN);
	now.bursts++;
	now.start = rte_rdtsc();
	return BURST;
}

static uint16_t
quiet_rx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	bool first = quiet.opener.next < o.flows; /* before any of them is established */
	(void)port;
	(void)queue;
	(void)n;

	if (!first && rte_rdtsc() < now.due)
		return 0;
	now.due = RTE_MAX(now.due, rte_rdtsc() - now.interval) + now.interval;
	if (first)
		return open_burst(&quiet, m);
	if (quiet.opener.next < now.target && now.bursts % OPEN_EVERY == 0) {
		now.bursts += quiet.opener.step + 1 == quiet.opener.steps;
		return open_burst(&quiet, m);
	}
	return data_burst(m);
}

/* Polled after the quiet one's, whose burst is over. */
static uint16_t
flood_rx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	(void)port;
	(void)queue;
	(void)n;
	if (now.start != 0 && now.n < SAMPLES_MAX)
		now.sample[now.n++] = (double)(rte_rdtsc() - now.start);
	now.start = 0;
	return now.flooding ? open_burst(&flood, m) : 0;
}

static uint16_t
count_tx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct tenant *t = port->priv;
	uint16_t i;

	(void)queue;
	for (i = 0; i < n; i++)
		if (m[i]->pool != t->pool)
			bench_die("a packet of another leaves by the port of %s", t->name);
	rte_pktmbuf_free_bulk(m, n);
	t->sent += n;
	return n;
}

static void
close_device(struct port *port)
{
	struct tenant *t = port->priv;

	port->priv = NULL;
	t->device->close(port);
}

/* ---- set-up ---- */

static void command(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void
command(const char *fmt, ...)
{
	char line[256];
	struct sl_err err;
	json_t *result;
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (command_run_text(gw, line, &result, &err) != 0)
		bench_die("%s: %s", line, err.msg);
	json_decref(result);
}

static void
open_port(struct tenant *t, const struct port_ops *ops)
{
	command("port add %s devargs net_null_%s,no-rx=1", t->name, t->name);
	t->port = port_find(gw, t->name);
	t->device = t->port->ops;
	t->pool = rte_pktmbuf_pool_create(t->name, BUFFERS, 0, 0, 512, SOCKET_ID_ANY);
	if (t->pool == NULL)
		bench_die("no memory for packet buffers");
	t->port->priv = t;
	t->port->ops = ops;
}

static void
set_up(void)
{
	static const struct port_ops quiet_ops = {quiet_rx, count_tx, close_device};
	static const struct port_ops flood_ops = {flood_rx, count_tx, close_device};
	const struct gateway_config config = {.n_workers = 1,
		.lcores = (const unsigned int[]){1},
		.buffers = 1023,
		.max_entries = 2 * (o.capacity + 2 * o.flows),
		.buckets = rte_align32pow2(4 * o.capacity)};
	struct sl_err err;
	unsigned int i;

	if (replay_eal_init(&err) != 0 || gateway_create(&config, &gw, &err) != 0)
		bench_die("%s", err.msg);
	open_port(&quiet, &quiet_ops);
	open_port(&flood, &flood_ops);
	frames = calloc(2 * o.flows, sizeof(*frames));
	if (frames == NULL)
		bench_die("out of memory");
	for (i = 0; i < 2 * o.flows; i++)
		bench_frame_write(
			frames[i], i / 2, i % 2 ? BENCH_SERVER_DATA : BENCH_CLIENT_DATA, false);
	now.interval = rte_get_tsc_hz() * BURST / o.pps;
}

static void
tear_down(void)
{
	gateway_destroy(gw);
	rte_mempool_free(quiet.pool);
	rte_mempool_free(flood.pool);
	free(frames);
	rte_eal_cleanup();
}

static void
add_tenant(struct tenant *t, unsigned int steps)
{
	command("netns add %s", t->name);
	command("link add in port %s vlan %u netns %s", t->name, BENCH_VLAN_CLIENT, t->name);
	command("link add out port %s vlan %u netns %s peer in", t->name, BENCH_VLAN_SERVER,
		t->name);
	t->ns = netns_find(gw->netns, t->name);
	t->opener = (struct opener){.steps = steps};
	t->received = t->sent = 0;
}

/* Connections that the flood can have at most. */
static unsigned int
begin_scenario(const struct scenario *s)
{
	unsigned int reserve = s->global ? 2 * o.flows : 0;

	add_tenant(&quiet, BENCH_HANDSHAKE);
	add_tenant(&flood, s->assured ? BENCH_HANDSHAKE : 1);
	command("sysctl nf_conntrack_max=%u", s->global ? o.capacity + reserve : ct_max(gw->ct));
	command("sysctl netns flood nf_conntrack_max=%u", s->global ? 2 * o.capacity : o.capacity);
	command("sysctl netns quiet sluice.conntrack_reserve=%u", reserve);
	return o.capacity;
}

/* ---- rounds ---- */

static void
turn(struct worker *w)
{
	unsigned int n = worker_poll(w, w->plan);

	datapath_sweep(w, n == 0, sl_now_monotonic());
	sl_rcu_quiescent();
}

/* Until the time is over, and the flood has opened what it has to. */
static double
run_round(bool flooding)
{
	struct worker *w = gw->workers[0];
	uint64_t end = bench_ns() + o.ms * SL_NSEC_PER_MSEC, target;

	target = flood.received +
		 (flooding ? (uint64_t)FLOOD_TIMES * o.capacity * flood.opener.steps : 0);
	now.flooding = flooding;
	now.n = 0;
	now.due = rte_rdtsc();
	sl_rcu_register_thread();
	while (now.n == 0 || flood.received < target || bench_ns() < end)
		turn(w);
	sl_rcu_unregister_thread();
	return bench_median(now.sample, now.n) / BURST;
}

static uint64_t
drops_of(const struct netns_totals *t)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < SL_DROP_COUNT; i++)
		sum += t->drops[i];
	return sum;
}

static void
check_quiet(const char *scenario)
{
	struct netns_totals t;

	netns_totals(quiet.ns, &t);
	if (drops_of(&t) != 0 || quiet.sent != quiet.received || t.packets != quiet.received)
		bench_die("%s: the quiet tenant sent %" PRIu64 " packets and lost %" PRIu64,
			scenario, quiet.received, quiet.received - quiet.sent);
	if (t.entries != quiet.opener.next || t.created != (uint64_t)t.entries)
		bench_die("%s: the quiet tenant opened %u connections and has %" PRId64
			  " (created: %" PRIu64 ")",
			scenario, quiet.opener.next, t.entries, t.created);
}

/* It was one: it had all it could have, and more was evicted or refused. */
static void
check_flood(const struct scenario *s, unsigned int capacity, uint64_t evicted, uint64_t refused)
{
	int64_t entries = netns_entries(flood.ns, gw_threads(gw));

	if (entries != capacity)
		bench_die("%s: the flood has %" PRId64 " connections, and should have %u", s->name,
			entries, capacity);
	if (s->assured ? refused == 0 : evicted == 0)
		bench_die("%s: the flood had room", s->name);
}

static uint64_t
evictions(void)
{
	struct ct_stats s;

	ct_stats(gw->ct, 0, &s);
	return s.early_drop;
}

static double
measure(struct bench *b, const struct scenario *s)
{
	double alone[ROUNDS_MAX], under[ROUNDS_MAX], ns = 1e9 / (double)rte_get_tsc_hz();
	unsigned int capacity = begin_scenario(s), i;
	uint64_t evicted = evictions(), flooded = 0, start;
	struct netns_totals t;
	double a, u;

	now.target = o.flows;
	for (i = 0; i < o.rounds; i++) {
		alone[i] = run_round(false);
		now.target = s->global ? 2 * o.flows : o.flows;
		start = bench_ns();
		under[i] = run_round(true);
		flooded += bench_ns() - start;
	}
	check_quiet(s->name);
	netns_totals(flood.ns, &t);
	evicted = evictions() - evicted;
	check_flood(s, capacity, evicted, drops_of(&t));
	a = bench_median(alone, o.rounds);
	u = bench_median(under, o.rounds);
	bench_row(b, json_pack("{s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:f, s:f, s:f}", "flood",
			     s->name, "packets", (json_int_t)quiet.received, "lost",
			     (json_int_t)(quiet.received - quiet.sent), "flood_mpps",
			     (double)flood.received * 1e3 / (double)flooded, "opened",
			     (json_int_t)t.created, "evicted", (json_int_t)evicted, "refused",
			     (json_int_t)drops_of(&t), "ns_alone", a * ns, "ns_flood", u * ns,
			     "percent", 100 * (u / a - 1)));
	command("netns delete quiet flood");
	return 100 * (u / a - 1);
}

/* ---- the process ---- */

static void
usage(FILE *out)
{
	fputs("usage: bench_isolation [--flows N] [--capacity N] [--pps N] [--rounds N] [--ms N]\n"
	      "                       [--check] [--quick] [--json]\n"
	      "  --flows N     established connections of the quiet tenant (512)\n"
	      "  --capacity N  connections that the other can have (65536)\n"
	      "  --pps N       packets of the quiet tenant in a second (500000)\n"
	      "  --rounds N    alone and under flood in turn, whose medians count (5)\n"
	      "  --ms N        of a round, at least (1000)\n"
	      "  --check       fails when a packet costs over 10 % more under flood\n"
	      "  --quick       small and short: shows that nothing is lost\n",
		out);
}

static bool
set_number(int c, const char *text)
{
	if (c == 'f')
		o.flows = (unsigned int)bench_number("flows", text, BURST, 65536) / BURST * BURST;
	else if (c == 'c')
		o.capacity = (unsigned int)bench_number("capacity", text, 1024, 1u << 22);
	else if (c == 'p')
		o.pps = (unsigned int)bench_number("pps", text, 1000, 100000000);
	else if (c == 'r')
		o.rounds = (unsigned int)bench_number("rounds", text, 1, ROUNDS_MAX);
	else if (c == 'm')
		o.ms = (unsigned int)bench_number("ms", text, 1, 600000);
	else
		return false;
	return true;
}

static void
parse_options(int argc, char **argv)
{
	static const struct option options[] = {{"flows", required_argument, NULL, 'f'},
		{"capacity", required_argument, NULL, 'c'}, {"pps", required_argument, NULL, 'p'},
		{"rounds", required_argument, NULL, 'r'}, {"ms", required_argument, NULL, 'm'},
		{"check", no_argument, NULL, 'k'}, {"quick", no_argument, NULL, 'q'},
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (set_number(c, optarg))
			continue;
		if (c == 'k')
			o.check = true;
		else if (c == 'j')
			o.json = true;
		else if (c == 'q') {
			o.capacity = 2048;
			o.rounds = 2;
			o.ms = 50;
		} else {
			usage(c == 'h' ? stdout : stderr);
			exit(c == 'h' ? 0 : 2);
		}
	}
}

int
main(int argc, char **argv)
{
	double most = 0;
	struct bench b;
	unsigned int i;

	parse_options(argc, argv);
	set_up();
	bench_begin(&b, "isolation", columns, RTE_DIM(columns), o.json);
	bench_note(&b, "packets of the quiet tenant in a second", json_integer(o.pps));
	for (i = 0; i < RTE_DIM(scenarios); i++)
		most = RTE_MAX(most, measure(&b, &scenarios[i]));
	bench_end(&b);
	tear_down();
	if (o.check && most > LIMIT)
		bench_die(
			"a packet of the quiet tenant costs up to %.1f %% more under flood", most);
	return 0;
}
