/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports and workers without a packet path behind them: real devices that need no privilege, real
 * worker threads, and a datapath that counts what it gets.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "err.h"
#include "generator.h"
#include "link.h"
#include "neighbour.h"
#include "replay.h"
#include "worker.h"

static struct gateway gw;

/* What the workers delivered, by port and worker. */
static uint64_t delivered[GW_PORTS_MAX][GW_WORKERS_MAX];
static uint64_t swept_idle, flushes;

void
datapath_burst(struct worker *w, struct port *in, struct rte_mbuf **m, unsigned int n,
	struct sl_now now)
{
	assert_true(now.ns != 0);
	netns_counter_add(&delivered[in->index][w->index], n);
	rte_pktmbuf_free_bulk(m, n);
}

void
neighbours_link_gone(struct neighbours *n, struct link *l)
{
	(void)n;
	(void)l;
}

void
datapath_flush(struct worker *w)
{
	(void)w;
	__atomic_fetch_add(&flushes, 1, __ATOMIC_RELAXED);
}

void
datapath_sweep(struct worker *w, bool idle, struct sl_now now)
{
	(void)w;
	(void)now;
	__atomic_fetch_add(&swept_idle, idle, __ATOMIC_RELAXED);
}

struct ct_thread *
ct_thread(struct ct *ct, unsigned int index)
{
	(void)ct;
	(void)index;
	return NULL;
}

int
generator_open(struct gateway *g, struct port *port, const char *devargs, struct sl_err *err)
{
	(void)g;
	(void)port;
	return sl_refuse(err, EINVAL, "generator asked for %s", devargs);
}

int
replay_port_open(struct gateway *g, struct port *port, struct sl_err *err)
{
	(void)g;
	return sl_refuse(err, EINVAL, "capture asked for %s", port->name);
}

static int
setup_eal(void **state)
{
	static char arg[][32] = {"test_port", "--no-huge", "-m", "256", "--no-pci", "--no-shconf",
		"--no-telemetry", "--lcores=(0-2)@(0-1)", "--log-level=lib.eal:error"};
	char *argv[RTE_DIM(arg)];
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(arg); i++)
		argv[i] = arg[i];
	if (rte_eal_init(RTE_DIM(arg), argv) < 0)
		return -1;
	gw.pool = rte_pktmbuf_pool_create("test", 8191, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
		SOCKET_ID_ANY);
	return gw.pool == NULL ? -1 : 0;
}

static int
teardown_eal(void **state)
{
	(void)state;
	rte_mempool_free(gw.pool);
	return rte_eal_cleanup();
}

static int
start(void **state)
{
	(void)state;
	for (gw.n_workers = 0; gw.n_workers < 2; gw.n_workers++) {
		gw.workers[gw.n_workers] = worker_create(&gw, gw.n_workers, gw.n_workers + 1, NULL);
		assert_non_null(gw.workers[gw.n_workers]);
	}
	memset(delivered, 0, sizeof(delivered));
	return worker_start_all(&gw, NULL);
}

static int
stop(void **state)
{
	unsigned int i;
	char name[PORT_NAME_MAX + 1];
	(void)state;

	for (i = 0; i < GW_PORTS_MAX; i++) {
		if (gw.ports[i] == NULL)
			continue;
		strcpy(name, gw.ports[i]->name);
		assert_int_equal(port_delete(&gw, name, NULL), 0);
	}
	assert_int_equal(rte_eth_dev_count_avail(), 0);
	worker_stop_all(&gw);
	for (i = 0; i < gw.n_workers; i++)
		worker_free(gw.workers[i]);
	assert_int_equal(rte_mempool_in_use_count(gw.pool), 0);
	return 0;
}

static uint64_t
polls(const struct worker *w)
{
	return __atomic_load_n(&w->stats.busy_polls, __ATOMIC_RELAXED) +
		__atomic_load_n(&w->stats.idle_polls, __ATOMIC_RELAXED);
}

/* Until the counter moves beyond `from`; a second is far more than it takes. */
static bool
moves(const uint64_t *counter, uint64_t from)
{
	unsigned int i;

	for (i = 0; i < 1000 && __atomic_load_n(counter, __ATOMIC_RELAXED) == from; i++)
		usleep(1000);
	return __atomic_load_n(counter, __ATOMIC_RELAXED) != from;
}

static void
test_workers_sleep_without_ports(void **state)
{
	uint64_t before[2];
	unsigned int i;
	(void)state;

	assert_int_equal(port_add(&gw, "p", "net_null0,size=64", 1, NULL), 0);
	assert_true(moves(&delivered[0][0], 0));
	assert_int_equal(polls(gw.workers[1]), 0); /* one queue, one worker */
	assert_int_equal(port_delete(&gw, "p", NULL), 0);
	for (i = 0; i < 2; i++)
		before[i] = polls(gw.workers[i]);
	usleep(20000);
	for (i = 0; i < 2; i++)
		assert_int_equal(polls(gw.workers[i]), before[i]);
}

static void
test_queues_are_spread_over_workers(void **state)
{
	(void)state;
	/* Two queues of one port, and the single queue of the next port goes to the other
	 * worker. */
	assert_int_equal(port_add(&gw, "a", "net_null0", 0, NULL), 0);
	assert_int_equal(port_find(&gw, "a")->n_queues, 2);
	assert_int_equal(port_find(&gw, "a")->n_txq, 2);
	assert_false(port_find(&gw, "a")->tx_shared);
	assert_true(moves(&delivered[0][0], 0));
	assert_true(moves(&delivered[0][1], 0));
	assert_int_equal(port_add(&gw, "b", "net_null1", 1, NULL), 0);
	assert_true(moves(&delivered[1][1], 0));
	assert_int_equal(delivered[1][0], 0);
	assert_true(gw.workers[0]->stats.busy_cycles > 0);
	assert_true(gw.workers[0]->stats.busy_polls > 0);
}

static void
test_idle_turns_sweep(void **state)
{
	uint64_t idle = gw.workers[0]->stats.idle_polls, swept = swept_idle;
	(void)state;

	assert_int_equal(port_add(&gw, "quiet", "net_null0,no-rx=1", 1, NULL), 0);
	assert_true(moves(&gw.workers[0]->stats.idle_polls, idle));
	assert_true(moves(&swept_idle, swept));
	assert_int_equal(gw.workers[0]->stats.busy_polls, 0);
	assert_int_equal(delivered[0][0], 0);
}

static void
test_refusals(void **state)
{
	static const struct {
		const char *name, *devargs;
		unsigned int queues;
		int ret;
		const char *msg;
	} cases[] = {
		{"", "net_null1", 0, -EINVAL, "is no port name"},
		{"a b", "net_null1", 0, -EINVAL, "is no port name"},
		{"a", "net_null1", 0, -EEXIST, "port a exists already"},
		{"b", "net_null0", 0, -EEXIST, "device net_null0 is in use by another port"},
		{"b", "net_null1", 33, -EINVAL, "queues 33 is out of range: 1 to 32"},
		{"b", "net_null1,siez=1", 0, -EINVAL, "net_null has no key \"siez\""},
		{"b", "net_pcap0,rx_pcap=/dev/null", 0, -ENODEV, "DPDK cannot attach net_pcap0"},
		{"b", "net_af_xdp0,iface=nosuch0", 0, -ENODEV, "no such network interface"},
		{"b", "gen,flows", 0, -EINVAL, "generator asked for gen,flows"},
		{"b", "generic", 0, -EINVAL, "no driver for \"generic\""},
	};
	unsigned int i;
	(void)state;

	assert_int_equal(port_add(&gw, "a", "net_null0", 0, NULL), 0);
	for (i = 0; i < RTE_DIM(cases); i++) {
		struct sl_err err = {""};
		int ret = port_add(&gw, cases[i].name, cases[i].devargs, cases[i].queues, &err);

		if (strstr(err.msg, cases[i].msg) == NULL)
			fail_msg("%s %s answers \"%s\"", cases[i].name, cases[i].devargs, err.msg);
		assert_int_equal(ret, cases[i].ret);
		assert_int_equal(rte_eth_dev_count_avail(), 1);
		assert_null(gw.ports[1]);
	}
	assert_int_equal(port_delete(&gw, "zzz", NULL), -ENOENT);
}

/* A device that attaches but cannot be what was asked for is gone again. */
static void
test_failure_leaves_no_device(void **state)
{
	struct rte_mempool *pool = gw.pool;
	char path[] = "/tmp/sluice_port_XXXXXX", devargs[80];
	static const uint32_t pcap_header[] = {0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 1};
	struct sl_err err;
	int fd = mkstemp(path);
	(void)state;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, pcap_header, sizeof(pcap_header)), sizeof(pcap_header));
	close(fd);
	snprintf(devargs, sizeof(devargs), "net_pcap0,rx_pcap=%s", path);
	assert_int_equal(port_add(&gw, "p", devargs, 2, &err), -EINVAL);
	assert_string_equal(err.msg, "port p has 1 receive queues, not 2: leave out queues");
	assert_int_equal(rte_eth_dev_count_avail(), 0);

	gw.pool = NULL;
	assert_true(port_add(&gw, "p", "net_null0", 1, &err) < 0);
	assert_non_null(strstr(err.msg, "port p cannot have its queues"));
	assert_int_equal(rte_eth_dev_count_avail(), 0);
	gw.pool = pool;

	assert_int_equal(port_add(&gw, "p", devargs, 1, &err), 0);
	assert_int_equal(port_delete(&gw, "p", &err), 0);
	assert_int_equal(port_add(&gw, "p", "net_null0", 1, &err), 0);
	unlink(path);
}

static void
test_port_limit(void **state)
{
	char name[16], devargs[32];
	struct sl_err err;
	unsigned int i;
	(void)state;

	for (i = 0; i < GW_PORTS_MAX; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		snprintf(devargs, sizeof(devargs), "net_null%u,no-rx=1", i);
		assert_int_equal(port_add(&gw, name, devargs, 1, &err), 0);
	}
	assert_int_equal(port_add(&gw, "more", "net_null99", 1, &err), -ENOSPC);
	assert_string_equal(err.msg,
		"there are 32 ports, the most there can be: delete one first");
	assert_int_equal(port_delete(&gw, "p7", &err), 0);
	assert_int_equal(port_add(&gw, "more", "net_null99", 1, &err), 0);
	assert_int_equal(port_find(&gw, "more")->index, 7);
}

static void
test_links_hold_their_port(void **state)
{
	static const struct link_spec spec = {.name = "l", .port = "p", .netns = "init", .vlan = 5};
	struct sl_err err;
	(void)state;

	gw.netns = netns_registry_create(3, 0, NULL);
	assert_non_null(gw.netns);
	assert_int_equal(port_add(&gw, "p", "net_null0", 1, NULL), 0);
	assert_int_equal(link_add(&gw, &spec, NULL), 0);
	assert_int_equal(port_delete(&gw, "p", &err), -EBUSY);
	assert_string_equal(err.msg, "port p has 1 links: delete them first");
	assert_true(moves(&delivered[0][0], delivered[0][0])); /* it goes on working */
	sl_rcu_synchronize();
	assert_int_equal(link_delete(&gw, "init", "l", NULL), 0);
	assert_int_equal(port_delete(&gw, "p", &err), 0);
	netns_registry_destroy(gw.netns);
	gw.netns = NULL;
}

/* Ports come and go while the workers poll others; whoever polls a port that is gone crashes. */
static void
test_churn(void **state)
{
	unsigned int i;
	(void)state;

	assert_int_equal(port_add(&gw, "stays", "net_null0", 0, NULL), 0);
	for (i = 0; i < 50; i++) {
		assert_int_equal(port_add(&gw, "goes", "net_null1", 0, NULL), 0);
		assert_true(moves(&delivered[1][i % 2], delivered[1][i % 2]));
		assert_int_equal(port_delete(&gw, "goes", NULL), 0);
		delivered[1][0] = delivered[1][1] = 0;
	}
	assert_int_equal(delivered[1][0] + delivered[1][1], 0);
}

static void
test_replay_opens_no_device(void **state)
{
	struct sl_err err;
	(void)state;

	gw.replay = true;
	assert_int_equal(port_add(&gw, "p", "net_null0", 0, &err), -EINVAL);
	assert_string_equal(err.msg, "capture asked for p");
	gw.replay = false;
	assert_int_equal(rte_eth_dev_count_avail(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_workers_sleep_without_ports, start, stop),
		cmocka_unit_test_setup_teardown(test_queues_are_spread_over_workers, start, stop),
		cmocka_unit_test_setup_teardown(test_idle_turns_sweep, start, stop),
		cmocka_unit_test_setup_teardown(test_refusals, start, stop),
		cmocka_unit_test_setup_teardown(test_failure_leaves_no_device, start, stop),
		cmocka_unit_test_setup_teardown(test_port_limit, start, stop),
		cmocka_unit_test_setup_teardown(test_links_hold_their_port, start, stop),
		cmocka_unit_test_setup_teardown(test_churn, start, stop),
		cmocka_unit_test_setup_teardown(test_replay_opens_no_device, start, stop),
	};

	return cmocka_run_group_tests(tests, setup_eal, teardown_eal);
}
