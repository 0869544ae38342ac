/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames wait for neighbours that answer or do not, on two threads at once, while the control
 * thread adds and deletes the links they are to leave on and the namespaces of these. Time runs
 * fifty times as fast, so that waiting comes to its end, too. Run it under address and thread
 * sanitizer.
 *
 * What must hold: a frame leaves by the link it was for, to the station that its host has, while
 * that link is there; or is counted as dropped, and some senders told. At the end each buffer is
 * back.
 *
 *     stress_neighbour [--seconds N] [--seed N]
 */
#include <event2/event.h>
#include <event2/thread.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "command.h"
#include "err.h"
#include "link.h"
#include "neighbour.h"
#include "port.h"
#include "replay_eal.h"
#include "stress.h"
#include "task.h"
#include "worker.h"

#define WORKERS 2u
#define BUFFERS 4095u
#define VLANS   8u
#define HOSTS   8u /* of a link */
#define TURN    32u
#define FASTER  50u
#define MAGIC   0x6e656967u
#define TOLD    0x746f6c64u

/* What a frame carries behind its tag. */
struct frame {
	struct rte_ether_hdr eth;
	struct rte_vlan_hdr tag;
	rte_be32_t magic;
	uint32_t link, host;
} __attribute__((packed, aligned(2)));

static struct gateway *gw;
static struct event_base *base;
static bool stop;
static unsigned int seconds = 3;
static uint64_t seed = 1, sent, waited[WORKERS], changes;
static uint64_t told;

static struct tuple_addr
address_of(unsigned int host)
{
	return (struct tuple_addr){.w = {rte_cpu_to_be_32(0x0a000002u + host)}};
}

static struct rte_ether_addr
station_of(uint32_t link, unsigned int host)
{
	struct rte_ether_addr mac = {{0x02, (uint8_t)host}};

	memcpy(mac.addr_bytes + 2, &link, sizeof(link));
	return mac;
}

static uint16_t
no_rx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	(void)port;
	(void)queue;
	(void)m;
	(void)n;
	return 0;
}

/* The moment of truth; questions are not told from frames but by the magic. */
static uint16_t
check_tx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	const struct frame *f;
	struct rte_ether_addr mac;
	uint16_t i;

	(void)port;
	(void)queue;
	for (i = 0; i < n; i++) {
		f = rte_pktmbuf_mtod(m[i], const struct frame *);
		if (m[i]->pkt_len == sizeof(*f) && f->magic == MAGIC) {
			mac = station_of(f->link, f->host);
			REQUIRE(rte_is_same_ether_addr(&mac, &f->eth.dst_addr));
			__atomic_add_fetch(&sent, 1, __ATOMIC_RELAXED);
		} else if (m[i]->pkt_len == sizeof(*f) && f->magic == TOLD) {
			__atomic_add_fetch(&told, 1, __ATOMIC_RELAXED);
		}
		rte_pktmbuf_free(m[i]);
	}
	return n;
}

/* ---- workers ---- */

static struct link *
any_link(struct port *port, unsigned int vlan)
{
	const struct pkt p = {.n_tags = 1, .outer_tci = (uint16_t)vlan};

	return link_lookup(port, &p);
}

static struct rte_mbuf *
new_frame(uint32_t magic, const struct link *l, unsigned int host)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(gw->pool);
	struct frame *f;

	REQUIRE(m != NULL);
	f = (struct frame *)(void *)rte_pktmbuf_append(m, sizeof(*f));
	REQUIRE(f != NULL);
	*f = (struct frame){.magic = magic, .link = l->id, .host = host};
	return m;
}

static void
send_one(struct worker *w, struct link *l, unsigned int host)
{
	struct tuple_addr to = address_of(host);
	struct neighbour_frame waits = {.in = l};
	struct rte_ether_addr mac;

	if (neighbour_find(w, l, TUPLE_IPV4, &to, &mac) != NEIGHBOUR_ASKED)
		return;
	waits.m = new_frame(MAGIC, l, host);
	if (host & 1)
		waits.unreachable = new_frame(TOLD, l, host);
	waited[w->index]++;
	neighbour_wait(w, l, TUPLE_IPV4, &to, &waits);
}

static void
answer(struct worker *w, struct link *l, unsigned int host)
{
	struct rte_ether_addr mac = station_of(l->id, host);
	struct tuple_addr from = address_of(host);

	neighbour_heard(w, l, TUPLE_IPV4, &from, &mac);
}

static struct sl_now
fast_now(void)
{
	return sl_now_from_ns(sl_now_monotonic().ns * FASTER);
}

static void *
run_worker(void *arg)
{
	struct worker *w = arg;
	struct port *port = gw->ports[0];
	uint64_t random = seed * 2 + 77 + w->index;
	struct link *l;
	unsigned int i;

	sl_rcu_register_thread();
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		w->now = fast_now();
		for (i = 0; i < TURN; i++) {
			uint64_t r = next_random(&random);

			l = any_link(port, 1 + r % VLANS);
			if (l == NULL)
				continue;
			if (r >> 8 & 15)
				send_one(w, l, (unsigned int)(r >> 16) % HOSTS);
			else
				answer(w, l, (unsigned int)(r >> 16) % HOSTS);
		}
		neighbour_sweep(w);
		datapath_flush(w);
		sl_rcu_quiescent();
	}
	sl_rcu_unregister_thread();
	return NULL;
}

/* ---- control ---- */

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

/* A namespace, or a link alone, goes and comes again. */
static void
change(unsigned int vlan, bool netns)
{
	bool there = any_link(gw->ports[0], vlan) != NULL;

	if (there && !netns)
		command("link delete l netns t%u", vlan);
	else if (there)
		command("netns delete t%u", vlan);
	if (netns || !there)
		command("netns add t%u", vlan);
	command("link add l port p0 vlan %u netns t%u", vlan, vlan);
	command("link address add l 10.0.0.1/24 netns t%u", vlan);
	event_base_loop(base, EVLOOP_NONBLOCK);
	changes++;
}

static void
set_up(void)
{
	static const struct port_ops ops = {.rx = no_rx, .tx = check_tx};
	static struct port_ops own;
	const struct gateway_config config = {.n_workers = WORKERS,
		.lcores = (const unsigned int[WORKERS]){1, 2},
		.buffers = BUFFERS,
		.max_entries = 1024,
		.buckets = 1024};
	struct sl_err err;
	unsigned int v;

	REQUIRE(replay_eal_init(&err) == 0 && evthread_use_pthreads() == 0);
	base = event_base_new();
	REQUIRE(base != NULL && task_start(base, &err) == 0);
	REQUIRE(gateway_create(&config, &gw, &err) == 0);
	REQUIRE(port_add(gw, "p0", "net_null0,no-rx=1", 1, &err) == 0);
	own = ops;
	own.close = gw->ports[0]->ops->close;
	gw->ports[0]->ops = &own;
	for (v = 1; v <= VLANS; v++)
		change(v, true);
}

/* With a worker's own means, long after. */
static void
check_end(void)
{
	struct worker *w = gw->workers[0];
	uint64_t all = waited[0] + waited[1], dropped = 0;
	unsigned int i, r;

	command("netns delete prefix t count %u", VLANS);
	task_drain();
	sl_rcu_register_thread();
	w->now = sl_now_from_ns((sl_now_monotonic().ns + 3600 * SL_NSEC_PER_SEC) * FASTER);
	neighbour_sweep(w);
	datapath_flush(w);
	sl_rcu_unregister_thread();
	for (i = 0; i < WORKERS; i++)
		for (r = 0; r < SL_DROP_COUNT; r++)
			dropped += gw->workers[i]->stats.drops[r];
	REQUIRE(rte_mempool_avail_count(gw->pool) == BUFFERS);
	REQUIRE(all == sent + dropped);
	REQUIRE(changes > VLANS && sent > 0);
	for (i = 0; i < WORKERS; i++)
		REQUIRE(gw->workers[i]->stats.drops[SL_DROP_NEIGHBOUR_QUEUE] > 0);
	printf("%" PRIu64 " frames waited, %" PRIu64 " sent, %" PRIu64 " dropped, %" PRIu64
	       " told of; %" PRIu64 " links went\n",
		all, sent, dropped, told, changes - VLANS);
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
	uint64_t end, random;
	unsigned int i;

	parse_options(argc, argv);
	set_up();
	random = seed * 2 + 1;
	for (i = 0; i < WORKERS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, run_worker, gw->workers[i]) == 0);
	end = sl_now_monotonic().ns + seconds * SL_NSEC_PER_SEC;
	while (sl_now_monotonic().ns < end)
		change(1 + (unsigned int)(next_random(&random) % VLANS), next_random(&random) & 1);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	check_end();
	gateway_destroy(gw);
	task_stop();
	event_base_free(base);
	rte_eal_cleanup();
	return 0;
}
