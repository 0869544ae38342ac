/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Namespaces come and go by the thousand while packets flow: the control thread creates and deletes
 * them in batches, through the control side's own path, and uses names, ids and VLANs again at
 * once; two workers poll ports whose packets go to namespaces that live, die or are gone. Some of
 * them have a TCP table of their own, of which some are much too small, with bounds to match. All
 * have the same flows, UDP and TCP, so that only the namespace tells connections apart. Run it
 * under address and thread sanitizer.
 *
 * A namespace is a wire of VLAN a on one port and VLAN b on the other, and each packet carries the
 * VLAN that it came in with. What must hold:
 *   - a packet leaves only where a namespace led that was there while it was under way
 *   - what a listener hears is of namespaces that there were, and a batch that is refused was none
 *   - when the workers have ended, each namespace with a table has counted as many connections half
 *     open and in TIME_WAIT as there are
 *   - at the end nothing is counted, no index is lost, and nothing is left over
 *
 *     stress_churn [--seconds N] [--seed N]
 */
#include <event2/event.h>
#include <event2/thread.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "churn_frame.h"
#include "command.h"
#include "err.h"
#include "events.h"
#include "frag.h"
#include "link.h"
#include "port.h"
#include "replay_eal.h"
#include "stress.h"
#include "task.h"
#include "tcp_table.h"
#include "txn.h"
#include "worker.h"

#define WORKERS  2u
#define TENANTS  200u
#define VLANS    CHURN_VLANS
#define BATCH    32u
#define JOBS_MAX 16u /* batches that are being deleted at once */
#define BUFFERS  1023u

/* A port's worker is the only one that receives from it, and the other's worker sends to it. */
struct side {
	struct port *port;
	const struct port_ops *device;
	struct rte_mempool *pool;
	uint64_t random;
	uint64_t sent; /* to this port */
	uint16_t free[VLANS];
	unsigned int n_free;
};

struct tenant {
	bool alive;
	uint16_t vlan[2];
};

/* A batch that is being deleted. */
struct batch {
	unsigned int n;
	uint16_t vlan[BATCH][2];
};

static struct gateway *gw;
static struct event_base *base;
static struct event_subscription *listener;
static struct side sides[2];
static struct tenant tenants[TENANTS];
static uint8_t leads[VLANS][VLANS]; /* how many namespaces lead from VLAN a to VLAN b, and back */
static unsigned int jobs, seconds = 3;
static uint64_t seed = 1, created, owners, deleted, refused, heard;
static uint64_t refused_syns, forgotten, counted;

/* ---- packets ---- */

static uint16_t
side_rx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct side *s = port->priv;
	uint16_t i;

	(void)queue;
	for (i = 0; i < n; i++) {
		m[i] = rte_pktmbuf_alloc(s->pool);
		REQUIRE(m[i] != NULL);
		churn_frame_fill(m[i], port->index, next_random(&s->random));
	}
	return n;
}

/* The moment of truth. */
static void
check_frame(const struct port *out, const struct rte_mbuf *m)
{
	struct churn_origin from;
	unsigned int vlan = churn_frame_read(m, &from), a, b;

	REQUIRE(from.magic == CHURN_MAGIC && from.port != out->index);
	REQUIRE(vlan > 0 && vlan < VLANS);
	a = from.port == 0 ? from.vlan : vlan;
	b = from.port == 0 ? vlan : from.vlan;
	REQUIRE(__atomic_load_n(&leads[a][b], __ATOMIC_ACQUIRE) > 0);
}

static uint16_t
side_tx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct side *s = port->priv;
	uint16_t i;

	(void)queue;
	for (i = 0; i < n; i++) {
		check_frame(port, m[i]);
		rte_pktmbuf_free(m[i]);
	}
	__atomic_store_n(&s->sent, s->sent + n, __ATOMIC_RELAXED);
	return n;
}

static void
side_close(struct port *port)
{
	struct side *s = port->priv;

	port->priv = NULL;
	s->device->close(port);
}

static void
open_side(unsigned int i)
{
	static const struct port_ops ops = {.rx = side_rx, .tx = side_tx, .close = side_close};
	struct side *s = &sides[i];
	char name[] = "p0", devargs[] = "net_null0,no-rx=1", pool[] = "side0";
	struct sl_err err;
	unsigned int v;

	name[1] = (char)('0' + i);
	devargs[8] = (char)('0' + i);
	pool[4] = (char)('0' + i);
	REQUIRE(port_add(gw, name, devargs, 1, &err) == 0);
	s->port = port_find(gw, name);
	s->device = s->port->ops;
	s->pool = rte_pktmbuf_pool_create(pool, BUFFERS, 0, 0, 512, SOCKET_ID_ANY);
	REQUIRE(s->pool != NULL && s->port->index == i && s->port->priv == NULL);
	s->random = seed * 2 + 77 + i;
	s->port->priv = s;
	s->port->ops = &ops;
	for (v = 1; v < VLANS; v++)
		s->free[s->n_free++] = (uint16_t)v;
}

/* ---- namespaces ---- */

static void command(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void
command(const char *fmt, ...)
{
	struct sl_err err;
	json_t *result;
	char line[128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	REQUIRE(command_run_text(gw, line, &result, &err) == 0);
	json_decref(result);
}

static void
name_of(unsigned int i, char name[16])
{
	snprintf(name, 16, "t%u", i);
}

static void
batch_gone(void *arg)
{
	struct batch *b = arg;
	unsigned int i;

	for (i = 0; i < b->n; i++)
		__atomic_fetch_sub(&leads[b->vlan[i][0]][b->vlan[i][1]], 1, __ATOMIC_RELEASE);
	jobs--;
	free(b);
}

/* All VLANs may be used again from the moment of the commit on. */
static void
delete_batch(const unsigned int *pick, unsigned int n)
{
	struct batch *b = calloc(1, sizeof(*b));
	struct txn *t = txn_begin(gw);
	struct sl_err err;
	char name[16];
	unsigned int i, d;

	for (i = 0; i < n; i++) {
		struct tenant *x = &tenants[pick[i]];

		if (!x->alive)
			continue;
		name_of(pick[i], name);
		REQUIRE(txn_delete_netns(t, netns_find(gw->netns, name), &err) == 0);
		memcpy(b->vlan[b->n++], x->vlan, sizeof(x->vlan));
		for (d = 0; d < 2; d++)
			sides[d].free[sides[d].n_free++] = x->vlan[d];
		x->alive = false;
	}
	deleted += b->n;
	jobs++;
	REQUIRE(txn_commit(t, batch_gone, b, &err) == 0);
}

static uint16_t
take_vlan(struct side *s)
{
	unsigned int i = (unsigned int)(next_random(&seed) % s->n_free);
	uint16_t v = s->free[i];

	s->free[i] = s->free[--s->n_free];
	return v;
}

static void
add_links(unsigned int i)
{
	struct tenant *x = &tenants[i];
	struct link_spec spec = {.name = "a", .port = "p0"};
	struct sl_err err;
	char name[16];

	name_of(i, name);
	x->vlan[0] = take_vlan(&sides[0]);
	x->vlan[1] = take_vlan(&sides[1]);
	x->alive = true;
	__atomic_fetch_add(&leads[x->vlan[0]][x->vlan[1]], 1, __ATOMIC_RELEASE);
	spec.netns = name;
	spec.vlan = x->vlan[0];
	REQUIRE(link_add(gw, &spec, &err) == 0);
	spec = (struct link_spec){
		.name = "b", .port = "p1", .netns = name, .vlan = x->vlan[1], .peer = "a"};
	REQUIRE(link_add(gw, &spec, &err) == 0);
	created++;
}

/* What the next batch will own: nothing, tables that fit, or of one bucket. */
static bool
choose_table(void)
{
	static const unsigned int buckets[] = {0, 0, 64, 1};
	unsigned int n = buckets[next_random(&seed) % RTE_DIM(buckets)];

	command("sysctl net.ipv4.tcp_child_ehash_entries=%u", n);
	return n != 0;
}

/* Of some tenants the bounds are low. */
static void
choose_bounds(const char *name)
{
	if (next_random(&seed) % 4 == 0)
		command("sysctl netns %s net.ipv4.tcp_max_syn_backlog=2", name);
	if (next_random(&seed) % 4 == 0)
		command("sysctl netns %s net.ipv4.tcp_max_tw_buckets=1", name);
}

static void
note_refusals(const char *name)
{
	struct netns *ns = netns_find(gw->netns, name);
	struct tcp_count c;

	if (ns == NULL)
		return;
	tcp_table_totals(ns, &c);
	refused_syns += c.backlog_full;
	forgotten += c.time_wait_full;
}

static void
create_batch(const unsigned int *pick, unsigned int n)
{
	bool own = choose_table();
	struct txn *t = txn_begin(gw);
	struct sl_err err;
	char name[16];
	unsigned int i;

	for (i = 0; i < n; i++) {
		name_of(pick[i], name);
		REQUIRE(txn_add_netns(t, name, "init", &err) == 0);
	}
	REQUIRE(txn_flush(t, &err) == 0);
	for (i = 0; i < n; i++)
		add_links(pick[i]);
	REQUIRE(txn_commit(t, NULL, NULL, &err) == 0);
	for (i = 0; i < n; i++) {
		name_of(pick[i], name);
		owners += own;
		REQUIRE((tcp_table_entries(gw, netns_find(gw->netns, name)) > 0) == own);
		choose_bounds(name);
	}
}

/* The last name is taken: none of the others may be left. */
static void
refused_batch(void)
{
	struct txn *t = txn_begin(gw);
	struct sl_err err;
	char name[16];
	unsigned int i;

	for (i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "never%u", i);
		REQUIRE(txn_add_netns(t, name, "init", &err) == 0);
	}
	REQUIRE(txn_flush(t, &err) == 0);
	REQUIRE(netns_find(gw->netns, "never3") != NULL);
	REQUIRE(txn_add_netns(t, "init", "init", &err) == -EEXIST);
	txn_abort(t);
	REQUIRE(netns_find(gw->netns, "never3") == NULL);
	refused++;
}

/* ---- one round of the control thread ---- */

static void
hear(void)
{
	struct event ev[64];
	unsigned int n, i;

	do {
		n = events_read(listener, ev, RTE_DIM(ev));
		for (i = 0; i < n; i++)
			REQUIRE(ev[i].netns[0] == 't' && ev[i].ct.orig.scope == ev[i].netns_id);
		heard += n;
	} while (n == RTE_DIM(ev));
}

static unsigned int
pick_tenants(unsigned int pick[BATCH])
{
	unsigned int n = 1 + (unsigned int)(next_random(&seed) % BATCH), i, first;

	first = (unsigned int)(next_random(&seed) % TENANTS);
	for (i = 0; i < n; i++)
		pick[i] = (first + i * 7) % TENANTS;
	return n;
}

static void
look_around(const char *name)
{
	static const char *const commands[] = {
		"conntrack list", "conntrack flush", "stats", "drops"};
	unsigned int i = (unsigned int)(next_random(&seed) % RTE_DIM(commands));

	command("%s netns %s", commands[i], name);
}

static void
one_round(void)
{
	unsigned int pick[BATCH], n = pick_tenants(pick), i;
	char name[16];

	for (i = 0; i < n; i++) {
		name_of(pick[i], name);
		note_refusals(name);
	}
	delete_batch(pick, n);
	create_batch(pick, n);
	if (next_random(&seed) % 8 == 0)
		refused_batch();
	if (next_random(&seed) % 64 == 0) {
		name_of(pick[0], name);
		look_around(name);
	}
	do
		event_base_loop(base, jobs < JOBS_MAX ? EVLOOP_NONBLOCK
						      : EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
	while (jobs >= JOBS_MAX);
	hear();
}

/* ---- start and end ---- */

static void *
run_worker(void *arg)
{
	worker_main(arg);
	return NULL;
}

static void
set_up(void)
{
	const struct gateway_config config = {.n_workers = WORKERS,
		.lcores = (const unsigned int[WORKERS]){1, 2},
		.buffers = 1023,
		.max_entries = 65536,
		.buckets = 8192};
	struct sl_err err;

	REQUIRE(replay_eal_init(&err) == 0 && evthread_use_pthreads() == 0);
	base = event_base_new();
	REQUIRE(base != NULL && task_start(base, &err) == 0);
	REQUIRE(gateway_create(&config, &gw, &err) == 0);
	command("sysctl nf_conntrack_udp_timeout=1");
	command("sysctl nf_conntrack_tcp_timeout_syn_sent=1");
	command("sysctl nf_conntrack_tcp_timeout_time_wait=1");
	command("sysctl nf_conntrack_checksum=0");
	open_side(0);
	open_side(1);
	REQUIRE(events_open(gw->events, EVENTS_CT, NULL, &listener, &err) == 0);
}

struct tally {
	int64_t half_open, time_wait;
};

static bool
tally(const struct ct_view *v, void *arg)
{
	struct tally *t = arg;
	unsigned int state = v->entry.proto.tcp.state;

	if (v->entry.orig.tuple.proto != IPPROTO_TCP)
		return true;
	t->half_open += state == CT_TCP_SYN_SENT || state == CT_TCP_SYN_RECV ||
			state == CT_TCP_SYN_SENT2;
	t->time_wait += state == CT_TCP_TIME_WAIT;
	return true;
}

/* Also of those whose time is over, but which nobody has swept yet. */
static void
check_counts(void)
{
	struct sl_now now = sl_now_monotonic();
	struct ct_walk w;
	uint32_t id = 0;
	struct netns *ns;

	while ((ns = netns_next(gw->netns, &id)) != NULL) {
		const struct ct_filter f = {.ns = ns};
		struct tally t = {0};
		const struct ct_visitor visitor = {.visit = tally, .arg = &t};
		struct tcp_count c;

		if (ns == netns_init_ns(gw->netns) || tcp_table_entries(gw, ns) < 0)
			continue;
		ct_walk_start(gw->ct, &w, now);
		while (ct_walk_slice(gw->ct_control, &w, &f, UINT32_MAX,
			(struct sl_now){.ns = now.ns, .ms = now.ms - 600000}, &visitor))
			;
		tcp_table_totals(ns, &c);
		REQUIRE(c.half_open == t.half_open && c.time_wait == t.time_wait);
		counted += (uint64_t)(t.half_open + t.time_wait);
	}
}

/* Everything goes in one batch. */
static void
delete_all(void)
{
	unsigned int pick[BATCH], i, n;

	for (i = 0; i < TENANTS; i += n) {
		for (n = 0; n < BATCH && i + n < TENANTS; n++)
			pick[n] = i + n;
		delete_batch(pick, n);
	}
	task_drain();
	REQUIRE(jobs == 0);
}

static void
check_end(void)
{
	uint64_t inserted = 0, gone = 0, sent = sides[0].sent + sides[1].sent;
	struct frag_stats held;
	struct ct_stats s;
	unsigned int i, k;

	for (i = 0; i < gw_threads(gw); i++) {
		ct_stats(gw->ct, i, &s);
		inserted += s.insert;
		gone += s.expired + s.deleted;
	}
	frag_stats(gw->frag, &held);
	REQUIRE(ct_count(gw->ct) == 0 && inserted == gone && held.datagrams == 0);
	REQUIRE(netns_count(gw->netns) == 1);
	for (i = 0; i < NETNS_MAX; i++)
		REQUIRE(ct_own_buckets(gw->ct, i) == 0);
	REQUIRE(netns_entries(netns_init_ns(gw->netns), gw_threads(gw)) == 0);
	for (i = 0; i < VLANS; i++)
		for (k = 0; k < VLANS; k++)
			REQUIRE(leads[i][k] == 0);
	for (i = 0; i < 2; i++) {
		REQUIRE(sides[i].port->n_links == 0 && sides[i].n_free == VLANS - 1);
		REQUIRE(rte_mempool_avail_count(sides[i].pool) == BUFFERS);
	}
	REQUIRE(sent > 0 && inserted > 0 && created > 0 && owners > 0 && heard > 0 && counted > 0);
	printf("%" PRIu64 " created, %" PRIu64 " with a TCP table, %" PRIu64 " deleted, %" PRIu64
	       " batches refused; %" PRIu64 " packets passed, %" PRIu64 " connections, %" PRIu64
	       " SYNs refused, %" PRIu64 " forgotten, %" PRIu64 " events heard\n",
		created, owners, deleted, refused, sent, inserted, refused_syns, forgotten, heard);
}

static void
parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"seconds", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'r'},
		{0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			seconds = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == 'r')
			seed = strtoull(optarg, NULL, 10) | 1;
		else
			exit(2);
	}
}

int
main(int argc, char **argv)
{
	pthread_t thread[WORKERS];
	uint64_t end;
	unsigned int i;

	parse_options(argc, argv);
	set_up();
	for (i = 0; i < WORKERS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, run_worker, gw->workers[i]) == 0);
	end = sl_now_monotonic().ns + seconds * SL_NSEC_PER_SEC;
	while (sl_now_monotonic().ns < end)
		one_round();
	worker_stop_all(gw);
	for (i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	check_counts();
	delete_all();
	hear();
	check_end();
	events_close(gw->events, listener);
	gateway_destroy(gw);
	for (i = 0; i < 2; i++)
		rte_mempool_free(sides[i].pool);
	task_stop();
	event_base_free(base);
	rte_eal_cleanup();
	return 0;
}
