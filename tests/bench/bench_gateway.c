/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_gateway.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "bench.h"
#include "bench_capture.h"
#include "bench_rules.h"
#include "err.h"
#include "events.h"
#include "frag.h"
#include "link.h"
#include "neighbour.h"
#include "nat.h"
#include "port.h"
#include "rule_limits.h"
#include "translate.h"
#include "worker.h"

#define WARM_UP_MS 20u

static struct sl_now
monotonic(struct gateway *gw)
{
	(void)gw;
	return sl_now_monotonic();
}

static int
get_clock(void *arg)
{
	return pthread_getcpuclockid(pthread_self(), arg);
}

static int
on_worker(struct bench_gateway *b, int (*body)(void *), void *arg)
{
	if (rte_eal_remote_launch(body, arg, b->gw.workers[0]->lcore) != 0)
		bench_die("lcore %u is not free", b->gw.workers[0]->lcore);
	while (rte_eal_get_lcore_state(b->gw.workers[0]->lcore) == RUNNING)
		usleep(1000);
	return rte_eal_wait_lcore(b->gw.workers[0]->lcore);
}

/* ---- building ---- */

static void
make_netns(struct bench_gateway *b, const struct bench_gateway_config *c)
{
	const char *name = "bench";
	struct knobs k;
	struct sl_err err;

	if (netns_create_batch(b->gw.netns, &name, 1, netns_init_ns(b->gw.netns), &b->ns, &err) < 0)
		bench_die("%s", err.msg);
	knobs_default(&k);
	k.ct_max = k.connlimit_max = c->max_entries;
	if (c->udp_timeout != 0)
		k.udp_timeout = c->udp_timeout * SL_MSEC_PER_SEC;
	if (netns_set_knobs(b->ns, &k, &err) < 0 ||
		netns_set_knobs(netns_init_ns(b->gw.netns), &k, &err) < 0)
		bench_die("%s", err.msg);
}

static void
make_wire(struct bench_gateway *b, const char *in, const char *out, uint16_t vlan)
{
	struct link_spec spec[] = {
		{.name = in, .port = "source", .netns = "bench", .vlan = vlan},
		{.name = out, .port = "sink", .netns = "bench", .peer = in, .vlan = vlan},
	};
	struct sl_err err;

	if (link_add(&b->gw, &spec[0], &err) < 0 || link_add(&b->gw, &spec[1], &err) < 0)
		bench_die("%s", err.msg);
}

static struct port *
make_port(struct bench_gateway *b, const char *name, const char *devargs)
{
	struct sl_err err;

	if (port_add(&b->gw, name, devargs, 1, &err) < 0)
		bench_die("%s", err.msg);
	return port_find(&b->gw, name);
}

/* As the gateway has them. */
static void
destroyed(void *app, struct ct_thread *t, struct ct_entry *const e[], unsigned int n)
{
	struct gateway *gw = app;

	limits_destroyed(app, t, e, n);
	nat_released(nat_thread(gw->nat, ct_thread_index(t)), e, n);
}

static void
aborted(void *app, struct ct_thread *t, struct ct_entry *e)
{
	struct gateway *gw = app;

	limits_aborted(app, t, e);
	nat_aborted(nat_thread(gw->nat, ct_thread_index(t)), e);
}

static void
make_listener(struct bench_gateway *b, bool listen)
{
	struct sl_err err;

	b->gw.events->ct = b->gw.ct;
	if (listen && events_open(b->gw.events, EVENTS_CT, NULL, &b->listener, &err) < 0)
		bench_die("%s", err.msg);
}

void
bench_gateway_open(struct bench_gateway *b, const struct bench_gateway_config *c)
{
	struct ct_config config = {.max_entries = c->max_entries,
		.buckets = c->buckets,
		.threads = 2,
		.hash = SL_HASH_AUTO,
		.ops = {.destroyed = destroyed,
			.aborted = aborted,
			.closed = limits_aborted,
			.event = event_ct_emit,
			.app = &b->gw}};
	const struct frag_config frag = {.fragments = 1024, .owners = NETNS_MAX};
	struct sl_err err;

	*b = (struct bench_gateway){.gw = {.n_workers = 1, .pool = c->pool, .clock = monotonic}};
	config.netns = b->gw.netns = netns_registry_create(gw_threads(&b->gw), 64, &err);
	if (config.netns == NULL)
		bench_die("%s", err.msg);
	b->gw.ct = ct_create(&config, &err);
	if (b->gw.ct == NULL)
		bench_die("%s", err.msg);
	b->gw.ct_control = ct_thread(b->gw.ct, 1);
	bench_rules_prepare(&b->gw);
	b->gw.frag = frag_create(&frag, &err);
	b->gw.neighbours = neighbours_create(SL_HASH_AUTO, 0, &err);
	if (b->gw.frag == NULL || b->gw.neighbours == NULL)
		bench_die("%s", err.msg);
	b->gw.workers[0] = worker_create(&b->gw, 0, c->lcore, &err);
	if (b->gw.workers[0] == NULL)
		bench_die("%s", err.msg);
	b->gw.workers[0]->dp.ahead = limits_ahead_new();
	b->gw.workers[0]->dp.nat_ahead = translate_ahead_new();
	if (b->gw.workers[0]->dp.ahead == NULL || b->gw.workers[0]->dp.nat_ahead == NULL)
		bench_die("out of memory");
	make_netns(b, c);
	make_listener(b, c->events);
	b->source = make_port(b, "source", c->source);
	b->sink = make_port(b, "sink", c->sink != NULL ? c->sink : "net_null_sink,no-rx=1");
	make_wire(b, "client-in", "client-out", BENCH_VLAN_CLIENT);
	make_wire(b, "server-in", "server-out", BENCH_VLAN_SERVER);
	if (c->rules > 0 || c->limit || c->nat != NULL)
		bench_rules_publish(&b->gw, b->ns, c);
	if (on_worker(b, get_clock, &b->worker_clock) != 0)
		bench_die("no clock of the worker's processor time");
}

void
bench_gateway_close(struct bench_gateway *b)
{
	struct ct_walk w;
	uint64_t destroyed = 0;
	struct sl_err err;

	if (b->listener != NULL)
		events_close(b->gw.events, b->listener);
	link_detach_netns(&b->gw, &b->ns, 1);
	netns_kill_batch(b->gw.netns, &b->ns, 1);
	link_free_detached(&b->ns, 1);
	ct_walk_start(b->gw.ct, &w, sl_now_monotonic());
	while (ct_purge_slice(b->gw.ct_control, &w, 1u << 16, &destroyed))
		;
	bench_rules_end(&b->gw, b->ns);
	netns_free_batch(b->gw.netns, &b->ns, 1);
	if (port_delete(&b->gw, "source", &err) < 0 || port_delete(&b->gw, "sink", &err) < 0)
		bench_die("%s", err.msg);
	worker_free(b->gw.workers[0]);
	ct_destroy(b->gw.ct);
	frag_destroy(b->gw.frag);
	neighbours_destroy(b->gw.neighbours);
	netns_registry_destroy(b->gw.netns);
}

/* ---- connections ---- */

struct prime {
	struct bench_gateway *b;
	uint32_t flows;
	unsigned int how;
};

/* One step of the handshakes of n <= DATAPATH_BURST flows. */
static void
prime_burst(const struct prime *p, uint32_t first, unsigned int n, unsigned int step)
{
	static const enum bench_frame udp_step[BENCH_HANDSHAKE] = {
		BENCH_CLIENT_DATA, BENCH_SERVER_DATA, BENCH_CLIENT_DATA};
	struct worker *w = p->b->gw.workers[0];
	struct rte_mbuf *m[DATAPATH_BURST];
	unsigned int i;

	if (rte_pktmbuf_alloc_bulk(p->b->gw.pool, m, n) != 0)
		bench_die("no packet buffers are left");
	for (i = 0; i < n; i++)
		bench_frame_write((uint8_t *)rte_pktmbuf_append(m[i], BENCH_FRAME_LEN), first + i,
			p->how & BENCH_UDP ? udp_step[step] : (enum bench_frame)step, p->how);
	datapath_burst(w, p->b->source, m, n, sl_now_monotonic());
	datapath_flush(w);
	sl_rcu_quiescent();
}

static int
prime_main(void *arg)
{
	const struct prime *p = arg;
	uint32_t i, n;
	unsigned int step;

	sl_rcu_register_thread();
	for (i = 0; i < p->flows; i += n) {
		n = RTE_MIN(p->flows - i, DATAPATH_BURST);
		for (step = 0; step < BENCH_HANDSHAKE; step++)
			prime_burst(p, i, n, step);
	}
	sl_rcu_unregister_thread();
	return 0;
}

void
bench_gateway_prime(struct bench_gateway *b, uint32_t flows, unsigned int how)
{
	struct prime p = {.b = b, .flows = flows, .how = how};
	enum sl_drop reason;
	int64_t entries;

	on_worker(b, prime_main, &p);
	entries = netns_entries(b->ns, gw_threads(&b->gw));
	if (bench_gateway_drops(b, &reason) != 0 || entries != flows)
		bench_die("%u flows gave %ld entries; drops: %s", flows, (long)entries,
			sl_drop_name(reason));
}

uint64_t
bench_gateway_drops(const struct bench_gateway *b, enum sl_drop *reason)
{
	const uint64_t *drops = b->gw.workers[0]->stats.drops;
	uint64_t sum = 0, most = 0, n;
	unsigned int i;

	*reason = SL_DROP_NONE;
	for (i = 0; i < SL_DROP_COUNT; i++) {
		n = __atomic_load_n(&drops[i], __ATOMIC_RELAXED);
		sum += n;
		if (n > most) {
			most = n;
			*reason = (enum sl_drop)i;
		}
	}
	return sum;
}

/* ---- floor ---- */

struct floor {
	struct bench_gateway *b;
	unsigned int ms;
	struct bench_moment begin, end;
};

static uint64_t
read_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * SL_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* A turn as worker_poll() has it: each port is polled, and what came is sent. */
static unsigned int
floor_turn(struct bench_gateway *b)
{
	struct rte_mbuf *m[DATAPATH_BURST];
	uint16_t n = b->source->ops->rx(b->source, 0, m, DATAPATH_BURST), sent;

	sent = n == 0 ? 0 : b->sink->ops->tx(b->sink, 0, m, n);
	if (sent < n)
		rte_pktmbuf_free_bulk(m + sent, n - sent);
	n = b->sink->ops->rx(b->sink, 0, m, DATAPATH_BURST);
	rte_pktmbuf_free_bulk(m, n);
	return sent;
}

static int
floor_main(void *arg)
{
	struct floor *f = arg;
	uint64_t sent = 0;
	unsigned int i;

	f->begin.wall_ns = bench_ns();
	f->begin.cpu_ns = bench_cpu_ns();
	do {
		for (i = 0; i < 256; i++)
			sent += floor_turn(f->b);
		f->end.wall_ns = bench_ns();
	} while (f->end.wall_ns - f->begin.wall_ns < f->ms * SL_NSEC_PER_MSEC);
	f->end.cpu_ns = bench_cpu_ns();
	f->end.sent = sent;
	return 0;
}

struct bench_rate
bench_gateway_floor(struct bench_gateway *b, unsigned int ms)
{
	struct floor f = {.b = b, .ms = ms};

	on_worker(b, floor_main, &f);
	return bench_gateway_between(&f.begin, &f.end);
}

/* ---- the worker ---- */

void
bench_gateway_start(struct bench_gateway *b)
{
	struct sl_err err;

	b->gw.workers[0]->stop = false;
	if (worker_start_all(&b->gw, &err) < 0)
		bench_die("%s", err.msg);
	usleep(WARM_UP_MS * 1000);
}

void
bench_gateway_stop(struct bench_gateway *b)
{
	worker_stop_all(&b->gw);
}

struct bench_moment
bench_gateway_moment(const struct bench_gateway *b)
{
	return (struct bench_moment){
		.sent = __atomic_load_n(&b->sink->counters[0].tx_packets, __ATOMIC_RELAXED),
		.cpu_ns = read_ns(b->worker_clock),
		.wall_ns = bench_ns(),
	};
}

struct bench_rate
bench_gateway_between(const struct bench_moment *a, const struct bench_moment *b)
{
	double cpu = (double)(b->cpu_ns - a->cpu_ns), wall = (double)(b->wall_ns - a->wall_ns);

	return (struct bench_rate){
		.pps = cpu == 0 ? 0 : (double)(b->sent - a->sent) * 1e9 / cpu,
		.share = wall == 0 ? 0 : cpu / wall,
	};
}

void
bench_gateway_wait(struct bench_gateway *b, unsigned int ms)
{
	uint64_t end = bench_ns() + ms * SL_NSEC_PER_MSEC;
	struct event ev[64];
	unsigned int n;

	if (b->listener == NULL)
		usleep(ms * 1000);
	while (b->listener != NULL && bench_ns() < end) {
		n = events_read(b->listener, ev, RTE_DIM(ev));
		b->heard += n;
		b->missed += events_lost(b->listener);
		if (n == 0)
			usleep(100);
	}
}

struct bench_rate
bench_gateway_run(struct bench_gateway *b, unsigned int ms)
{
	struct bench_moment begin, end;

	bench_gateway_start(b);
	begin = bench_gateway_moment(b);
	bench_gateway_wait(b, ms);
	end = bench_gateway_moment(b);
	bench_gateway_stop(b);
	return bench_gateway_between(&begin, &end);
}
