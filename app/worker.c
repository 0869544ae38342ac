/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The poll loop, and the plans it follows. A worker is an RCU reader from one quiescent state to
 * the next: a turn over its plan, in which it may use the plan, ports, links and entries. It says
 * so once a turn, when its transmit buffers are empty.
 *
 * With nothing to poll it goes offline, so that grace periods do not wait for it, and sleeps in a
 * read of its eventfd. Whoever publishes a plan, or sets `stop`, writes the eventfd afterwards;
 * what is written between the worker's look at the plan and its read ends that read at once.
 */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <sys/eventfd.h>

#include "err.h"
#include "synproxy.h"

unsigned int
worker_poll(struct worker *w, const struct poll_plan *plan)
{
	struct rte_mbuf *m[DATAPATH_BURST];
	unsigned int i, total = 0;

	for (i = 0; i < plan->n; i++) {
		struct port *port = plan->slot[i].port;
		uint16_t n = port->ops->rx(port, plan->slot[i].queue, m, DATAPATH_BURST);

		if (n == 0)
			continue;
		datapath_burst(w, port, m, n, sl_now_monotonic());
		total += n;
	}
	datapath_flush(w);
	return total;
}

static void
worker_turn(struct worker *w, const struct poll_plan *plan)
{
	uint64_t start = rte_rdtsc();
	unsigned int n = worker_poll(w, plan);

	datapath_sweep(w, n == 0, sl_now_monotonic());
	if (n == 0) {
		netns_counter_add(&w->stats.idle_polls, 1);
		return;
	}
	netns_counter_add(&w->stats.busy_polls, 1);
	netns_counter_add(&w->stats.busy_cycles, rte_rdtsc() - start);
}

static void
worker_sleep(struct worker *w)
{
	uint64_t wakes;

	sl_rcu_offline();
	while (read(w->wake_fd, &wakes, sizeof(wakes)) < 0 && errno == EINTR)
		;
	sl_rcu_online();
}

static void
worker_wake(struct worker *w)
{
	uint64_t one = 1;

	/* It fails only when the counter is full, and then the worker is awake. */
	while (write(w->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

int
worker_main(void *arg)
{
	struct worker *w = arg;

	sl_rcu_register_thread();
	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		const struct poll_plan *plan = sl_rcu_dereference(&w->plan);

		if (plan == NULL || plan->n == 0) {
			worker_sleep(w);
			continue;
		}
		worker_turn(w, plan);
		sl_rcu_quiescent();
	}
	sl_rcu_unregister_thread();
	return 0;
}

static struct poll_plan *
plan_alloc(const struct gateway *gw)
{
	struct poll_plan *plan;
	unsigned int i, n = 0;

	for (i = 0; i < GW_PORTS_MAX; i++)
		n += gw->ports[i] == NULL ? 0 : gw->ports[i]->n_queues;
	plan = malloc(sizeof(*plan) + n * sizeof(plan->slot[0]));
	if (plan != NULL)
		plan->n = 0;
	return plan;
}

static struct poll_plan *
plan_build(const struct gateway *gw, unsigned int worker)
{
	struct poll_plan *plan = plan_alloc(gw);
	unsigned int i;
	uint16_t q;

	for (i = 0; plan != NULL && i < GW_PORTS_MAX; i++) {
		struct port *port = gw->ports[i];

		for (q = 0; port != NULL && q < port->n_queues; q++) {
			if ((q + i) % gw->n_workers != worker)
				continue;
			plan->slot[plan->n].port = port;
			plan->slot[plan->n++].queue = q;
		}
	}
	return plan;
}

int
worker_replan(struct gateway *gw, struct sl_err *err)
{
	struct poll_plan *plan[GW_WORKERS_MAX] = {NULL}, *old;
	unsigned int i;

	if (gw->replay)
		return 0;
	for (i = 0; i < gw->n_workers; i++) {
		plan[i] = plan_build(gw, i);
		if (plan[i] == NULL)
			goto no_memory;
	}
	for (i = 0; i < gw->n_workers; i++) {
		old = gw->workers[i]->plan;
		sl_rcu_publish(&gw->workers[i]->plan, plan[i]);
		plan[i] = old;
		worker_wake(gw->workers[i]);
	}
	sl_rcu_synchronize();
	for (i = 0; i < gw->n_workers; i++)
		free(plan[i]);
	return 0;

no_memory:
	while (i-- > 0)
		free(plan[i]);
	return sl_refuse(err, ENOMEM, "no memory for the workers' poll plans");
}

struct worker *
worker_create(struct gateway *gw, unsigned int index, unsigned int lcore, struct sl_err *err)
{
	struct worker *w = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*w));

	if (w == NULL) {
		sl_refuse(err, ENOMEM, "no memory for worker %u", index);
		return NULL;
	}
	memset(w, 0, sizeof(*w));
	w->gw = gw;
	w->index = index;
	w->lcore = lcore;
	w->ct = ct_thread(gw->ct, index);
	w->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (w->wake_fd < 0) {
		sl_refuse(
			err, errno, "no file descriptor for worker %u: %s", index, strerror(errno));
		free(w);
		return NULL;
	}
	w->dp.synproxy.proof = calloc(1, sizeof(*w->dp.synproxy.proof));
	if (w->dp.synproxy.proof == NULL) {
		sl_refuse(err, ENOMEM, "no memory for worker %u", index);
		worker_free(w);
		return NULL;
	}
	return w;
}

void
worker_free(struct worker *w)
{
	if (w == NULL)
		return;
	close(w->wake_fd);
	free(w->dp.ahead);
	free(w->dp.nat_ahead);
	free(w->plan);
	free(w->dp.synproxy.proof);
	free(w);
}

int
worker_start_all(struct gateway *gw, struct sl_err *err)
{
	unsigned int i;
	int ret;

	for (i = 0; i < gw->n_workers; i++) {
		struct worker *w = gw->workers[i];

		ret = rte_eal_remote_launch(worker_main, w, w->lcore);
		if (ret != 0) {
			worker_stop_all(gw);
			return sl_refuse(err, -ret, "worker %u cannot run on lcore %u: %s", i,
				w->lcore, strerror(-ret));
		}
		w->launched = true;
	}
	return 0;
}

void
worker_stop_all(struct gateway *gw)
{
	unsigned int i;

	for (i = 0; i < gw->n_workers; i++) {
		__atomic_store_n(&gw->workers[i]->stop, true, __ATOMIC_RELEASE);
		worker_wake(gw->workers[i]);
	}
	for (i = 0; i < gw->n_workers; i++) {
		struct worker *w = gw->workers[i];

		if (w->launched)
			rte_eal_wait_lcore(w->lcore);
		w->launched = false;
	}
}
