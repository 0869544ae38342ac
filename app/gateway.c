/* SPDX-License-Identifier: BSD-3-Clause */
#include "gateway.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_errno.h>
#include <rte_mbuf.h>

#include "connlimit.h"
#include "cookie.h"
#include "datapath_synproxy.h"
#include "err.h"
#include "event_ct.h"
#include "events.h"
#include "frag.h"
#include "link.h"
#include "neighbour.h"
#include "netns_rules.h"
#include "port.h"
#include "rcu.h"
#include "rule_limits.h"
#include "rule_store.h"
#include "synproxy_pool.h"
#include "table_growth.h"
#include "tcp_table.h"
#include "translate.h"
#include "worker.h"

#define DROP_BLOCKS  4096 /* namespaces times workers that may have drops of their own */
#define BUFFER_CACHE 256
#define FRAG_SHARE   4    /* one in so many packet buffers may hold a fragment that waits */

static struct sl_now
monotonic(struct gateway *gw)
{
	(void)gw;
	return sl_now_monotonic();
}

/* Gives back what the parts above conntrack have taken for an entry. */
static void
entries_destroyed(void *app, struct ct_thread *t, struct ct_entry *const e[], unsigned int n)
{
	struct gateway *gw = app;
	unsigned int i;

	limits_destroyed(app, t, e, n);
	nat_released(nat_thread(gw->nat, ct_thread_index(t)), e, n);
	for (i = 0; i < n; i++) {
		tcp_table_ended(t, e[i]);
		synproxy_ended(gw, t, e[i]);
	}
}

static void
entry_aborted(void *app, struct ct_thread *t, struct ct_entry *e)
{
	struct gateway *gw = app;

	limits_aborted(app, t, e);
	nat_aborted(nat_thread(gw->nat, ct_thread_index(t)), e);
	tcp_table_ended(t, e);
	synproxy_ended(app, t, e);
}

static int
create_table(struct gateway *gw, const struct gateway_config *config, struct sl_err *err)
{
	const struct knobs *init = netns_knobs(netns_init_ns(gw->netns));
	struct ct_config ct = {
		.max_entries = config->max_entries != 0 ? config->max_entries : init->ct_max,
		.buckets = config->buckets != 0 ? config->buckets : GW_BUCKETS_DEFAULT,
		.threads = gw_threads(gw),
		.hash = config->hash,
		.hash_seed = config->hash_seed,
		.ops = {.destroyed = entries_destroyed,
			.aborted = entry_aborted,
			.closed = limits_aborted,
			.tcp_state = tcp_table_state,
			.adjust = synproxy_adjust,
			.event = event_ct_emit,
			.app = gw},
		.netns = gw->netns,
	};

	gw->ct = ct_create(&ct, err);
	if (gw->ct == NULL)
		return -ENOMEM;
	gw->events->ct = gw->ct;
	gw->ct_control = ct_thread(gw->ct, gw->n_workers);
	return 0;
}

static int
create_workers(struct gateway *gw, const struct gateway_config *config, struct sl_err *err)
{
	unsigned int i, lcore;

	for (i = 0; i < gw->n_workers; i++) {
		lcore = config->lcores != NULL ? config->lcores[i] : LCORE_ID_ANY;
		gw->workers[i] = worker_create(gw, i, lcore, err);
		if (gw->workers[i] == NULL)
			return -ENOMEM;
		gw->workers[i]->dp.ahead = limits_ahead_new();
		gw->workers[i]->dp.nat_ahead = translate_ahead_new();
		if (gw->workers[i]->dp.ahead == NULL || gw->workers[i]->dp.nat_ahead == NULL)
			return sl_refuse(err, ENOMEM, "no memory for worker %u", i);
	}
	return 0;
}

static int
create_buffers(struct gateway *gw, const struct gateway_config *config, struct sl_err *err)
{
	const struct frag_config frag = {
		.fragments = config->buffers / FRAG_SHARE,
		.owners = NETNS_MAX,
		.hash = config->hash,
		.hash_seed = config->hash_seed,
	};

	gw->pool = rte_pktmbuf_pool_create("sluice_buffers", config->buffers, BUFFER_CACHE, 0,
		RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (gw->pool == NULL)
		return sl_refuse(err, ENOMEM,
			"too little memory for %u packet buffers (%s): give more by "
			"--memory MB",
			config->buffers, rte_strerror(rte_errno));
	gw->frag = frag_create(&frag, err);
	return gw->frag != NULL ? 0 : -ENOMEM;
}

static int
create_synproxy(struct gateway *gw, const struct gateway_config *config, struct sl_err *err)
{
	int ret = cookie_init(&gw->cookie_secret, config->hash_seed);

	if (ret < 0)
		return sl_refuse(err, -ret, "no key for SYN cookies");
	gw->synproxy = synproxy_pool_create(gw_threads(gw), err);
	return gw->synproxy != NULL ? 0 : -ENOMEM;
}

static int
create_parts(struct gateway *gw, const struct gateway_config *config, struct sl_err *err)
{
	int ret;

	gw->netns = netns_registry_create(gw_threads(gw), DROP_BLOCKS, err);
	if (gw->netns == NULL)
		return -ENOMEM;
	gw->events = events_create(gw_threads(gw));
	if (gw->events == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	gw->neighbours = neighbours_create(config->hash, config->hash_seed, err);
	if (gw->neighbours == NULL)
		return -ENOMEM;
	gw->rules_ops = netns_rules_ops(gw);
	if (gw->rules_ops == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	ret = limits_create(gw, config, err);
	if (ret == 0)
		ret = create_synproxy(gw, config, err);
	if (ret == 0)
		ret = create_table(gw, config, err);
	if (ret == 0)
		ret = table_growth_create(gw, err);
	if (ret == 0)
		ret = translate_create(gw, config, err);
	if (ret == 0)
		ret = create_workers(gw, config, err);
	if (ret == 0)
		ret = create_buffers(gw, config, err);
	return ret;
}

int
gateway_create(const struct gateway_config *config, struct gateway **out, struct sl_err *err)
{
	struct gateway *gw = calloc(1, sizeof(*gw));
	int ret;

	*out = NULL;
	if (gw == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	gw->n_workers = config->n_workers;
	gw->replay = config->replay;
	gw->clock = config->clock != NULL ? config->clock : monotonic;
	ret = create_parts(gw, config, err);
	if (ret != 0) {
		gateway_destroy(gw);
		return ret;
	}
	*out = gw;
	return 0;
}

static void
free_translation(struct gateway *gw)
{
	struct netns *ns;
	uint32_t id = 0;

	while ((ns = netns_next(gw->netns, &id)) != NULL)
		nat_netns_free(ns);
	nat_destroy(gw->nat);
}

static void
remove_links_and_rules(struct gateway *gw)
{
	struct netns *ns;
	uint32_t id = 0;

	while ((ns = netns_next(gw->netns, &id)) != NULL)
		link_detach_netns(gw, &ns, 1);
	sl_rcu_synchronize();
	for (id = 0; (ns = netns_next(gw->netns, &id)) != NULL;) {
		link_free_detached(&ns, 1);
		netns_rules_free(ns);
		rule_store_free(ns);
		connlimit_netns_free(ns);
		tcp_table_free(gw, ns);
	}
}

void
gateway_destroy(struct gateway *gw)
{
	unsigned int i;

	if (gw == NULL)
		return;
	if (gw->netns != NULL)
		remove_links_and_rules(gw);
	for (i = 0; i < GW_PORTS_MAX; i++)
		if (gw->ports[i] != NULL)
			port_delete(gw, gw->ports[i]->name, NULL);
	for (i = 0; i < gw->n_workers; i++)
		worker_free(gw->workers[i]);
	if (gw->netns != NULL)
		free_translation(gw);
	if (gw->ct != NULL)
		ct_destroy(gw->ct);
	synproxy_pool_destroy(gw->synproxy);
	connlimit_destroy(gw->limits);
	events_destroy(gw->events);
	frag_destroy(gw->frag);
	neighbours_destroy(gw->neighbours);
	netns_registry_destroy(gw->netns);
	rte_mempool_free(gw->pool);
	free(gw->rules_ops);
	table_growth_free(gw);
	free(gw);
}

uint64_t
gateway_wall_offset(struct gateway *gw)
{
	struct timespec ts;

	if (gw->replay)
		return 0;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * SL_NSEC_PER_SEC + (uint64_t)ts.tv_nsec - gw->clock(gw).ns;
}
