/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tel.lock guards all of `tel`. A telemetry thread puts its request into tel.request, wakes the
 * event loop through an eventfd and waits on tel.changed; the control thread fills the answer while
 * it holds the lock. So a thread that gave up waiting has taken its request out under the lock, and
 * the control thread never writes to an answer that is gone.
 */
#include "telemetry.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include <rte_mempool.h>
#include <rte_telemetry.h>

#include "conntrack.h"
#include "err.h"
#include "gateway.h"
#include "worker.h"

#define WAIT_SECONDS 2

typedef int (*fill_fn)(struct gateway *gw, const char *params, struct rte_tel_data *d);

struct request {
	fill_fn fill;
	const char *params; /* NULL: none */
	struct rte_tel_data *data;
	int ret;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct gateway *gw;      /* NULL: stopped */
	struct request *request; /* NULL: none waits */
	struct event *event;
	int wake_fd;
	bool registered;
} tel = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake_fd = -1};

/* ---- telemetry threads ---- */

/* Waits for a change until the deadline. False once it has passed. */
static bool
wait_change(const struct timespec *deadline)
{
	return pthread_cond_timedwait(&tel.changed, &tel.lock, deadline) != ETIMEDOUT;
}

static int
ask_control(fill_fn fill, const char *params, struct rte_tel_data *d)
{
	struct request r = {.fill = fill, .params = params, .data = d, .ret = -1};
	const uint64_t one = 1;
	struct timespec deadline;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += WAIT_SECONDS;
	pthread_mutex_lock(&tel.lock);
	while (tel.gw != NULL && tel.request != NULL && wait_change(&deadline))
		;
	if (tel.gw != NULL && tel.request == NULL) {
		tel.request = &r;
		if (write(tel.wake_fd, &one, sizeof(one)) == sizeof(one))
			while (tel.request == &r && wait_change(&deadline))
				;
		if (tel.request == &r)
			tel.request = NULL;
		pthread_cond_broadcast(&tel.changed);
	}
	pthread_mutex_unlock(&tel.lock);
	return r.ret;
}

/* ---- control thread ---- */

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
	uint64_t count;

	(void)what;
	(void)arg;
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		return;
	pthread_mutex_lock(&tel.lock);
	if (tel.request != NULL) {
		tel.request->ret = tel.request->fill(tel.gw, tel.request->params,
			tel.request->data);
		tel.request = NULL;
		pthread_cond_broadcast(&tel.changed);
	}
	pthread_mutex_unlock(&tel.lock);
}

/* Names of telemetry have letters, digits, '_' and '/'. */
static void
put_drop(struct rte_tel_data *d, enum sl_drop reason, uint64_t n)
{
	char name[RTE_TEL_MAX_STRING_LEN], *p;

	snprintf(name, sizeof(name), "%s", sl_drop_name(reason));
	for (p = name; *p != '\0'; p++)
		*p = *p == '-' ? '_' : *p;
	rte_tel_data_add_dict_u64(d, name, n);
}

static uint64_t
load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static const struct {
	const char *name;
	size_t field;
} ct_counters[] = {
#define CT(name) {#name, offsetof(struct ct_stats, name)}
	CT(lookups), CT(found), CT(insert), CT(insert_failed), CT(race_lost), CT(expired),
	CT(deleted), CT(invalid), CT(early_drop), CT(chain_too_long), CT(swept),
#undef CT
};

static int
fill_stats(struct gateway *gw, const char *params, struct rte_tel_data *d)
{
	uint64_t sum[RTE_DIM(ct_counters)] = {0}, packets = 0;
	struct ct_stats stats;
	unsigned int i, k;

	(void)params;
	for (i = 0; i < gw_threads(gw); i++) {
		ct_stats(gw->ct, i, &stats);
		for (k = 0; k < RTE_DIM(ct_counters); k++)
			sum[k] += *(const uint64_t *)((const char *)&stats + ct_counters[k].field);
	}
	for (i = 0; i < gw->n_workers; i++)
		packets += load(&gw->workers[i]->stats.packets);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_u64(d, "namespaces", netns_count(gw->netns));
	rte_tel_data_add_dict_u64(d, "packets", packets);
	rte_tel_data_add_dict_u64(d, "entries", ct_count(gw->ct));
	rte_tel_data_add_dict_u64(d, "entries_max", ct_max(gw->ct));
	rte_tel_data_add_dict_u64(d, "buckets", ct_buckets(gw->ct));
	for (k = 0; k < RTE_DIM(ct_counters); k++)
		rte_tel_data_add_dict_u64(d, ct_counters[k].name, sum[k]);
	return 0;
}

static int
fill_drops(struct gateway *gw, const char *params, struct rte_tel_data *d)
{
	unsigned int reason, w;

	(void)params;
	rte_tel_data_start_dict(d);
	for (reason = SL_DROP_NONE + 1; reason < SL_DROP_COUNT; reason++) {
		uint64_t sum = 0;

		for (w = 0; w < gw->n_workers; w++)
			sum += load(&gw->workers[w]->stats.drops[reason]);
		put_drop(d, reason, sum);
	}
	return 0;
}

static const struct {
	const char *name;
	size_t field;
} worker_counters[] = {
	{"busy_polls", offsetof(struct worker_stats, busy_polls)},
	{"idle_polls", offsetof(struct worker_stats, idle_polls)},
	{"packets", offsetof(struct worker_stats, packets)},
	{"busy_cycles", offsetof(struct worker_stats, busy_cycles)},
};

/* One counter of all workers. */
static int
put_worker_counter(const struct gateway *gw, unsigned int which, struct rte_tel_data *d)
{
	struct rte_tel_data *list = rte_tel_data_alloc();
	unsigned int i;

	if (list == NULL)
		return -1;
	rte_tel_data_start_array(list, RTE_TEL_U64_VAL);
	for (i = 0; i < gw->n_workers; i++) {
		const char *stats = (const char *)&gw->workers[i]->stats;

		rte_tel_data_add_array_u64(list,
			load((const uint64_t *)(stats + worker_counters[which].field)));
	}
	if (rte_tel_data_add_dict_container(d, worker_counters[which].name, list, 0) == 0)
		return 0;
	rte_tel_data_free(list);
	return -1;
}

/* A list for each counter, by worker: a list of objects is more than telemetry can nest. */
static int
fill_workers(struct gateway *gw, const char *params, struct rte_tel_data *d)
{
	unsigned int i;

	(void)params;
	rte_tel_data_start_dict(d);
	for (i = 0; i < RTE_DIM(worker_counters); i++)
		if (put_worker_counter(gw, i, d) != 0)
			return -1;
	return 0;
}

static int
fill_memory(struct gateway *gw, const char *params, struct rte_tel_data *d)
{
	struct ct_memory m;

	(void)params;
	ct_memory_sizes(gw->ct, &m);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_u64(d, "entries_bytes", m.pool_present);
	rte_tel_data_add_dict_u64(d, "buckets_bytes", m.lines_present);
	rte_tel_data_add_dict_u64(d, "walk_bytes", m.walk_present);
	rte_tel_data_add_dict_u64(d, "high_water", m.high_water);
	rte_tel_data_add_dict_u64(d, "lines", m.lines);
	if (gw->pool != NULL) {
		rte_tel_data_add_dict_u64(d, "packet_buffers", gw->pool->size);
		rte_tel_data_add_dict_u64(d, "packet_buffers_free",
			rte_mempool_avail_count(gw->pool));
	}
	return 0;
}

/* By name; else, when the text is a number, by id. */
static struct netns *
netns_of(struct gateway *gw, const char *params)
{
	struct netns *ns = netns_find(gw->netns, params);
	unsigned long id;
	char *end;

	if (ns != NULL || params[0] < '0' || params[0] > '9')
		return ns;
	errno = 0;
	id = strtoul(params, &end, 10);
	if (*end != '\0' || errno != 0 || id >= NETNS_MAX)
		return NULL;
	ns = netns_by_id(gw->netns, (uint32_t)id);
	return ns != NULL && netns_alive(ns) ? ns : NULL;
}

static int
fill_netns(struct gateway *gw, const char *params, struct rte_tel_data *d)
{
	const struct netns *ns = params != NULL ? netns_of(gw, params) : NULL;
	struct netns_totals totals;
	unsigned int i;

	if (ns == NULL)
		return -1;
	netns_totals(ns, &totals);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(d, "name", ns->name);
	rte_tel_data_add_dict_u64(d, "id", ns->id);
	rte_tel_data_add_dict_u64(d, "packets", totals.packets);
	rte_tel_data_add_dict_u64(d, "bytes", totals.bytes);
	rte_tel_data_add_dict_u64(d, "entries", totals.entries > 0 ? (uint64_t)totals.entries : 0);
	rte_tel_data_add_dict_u64(d, "created", totals.created);
	for (i = SL_DROP_NONE + 1; i < SL_DROP_COUNT; i++)
		if (totals.drops[i] != 0)
			put_drop(d, i, totals.drops[i]);
	return 0;
}

/* ---- registration ---- */

#define ENDPOINTS(X)                                                                               \
	X(stats, "Counters of connection tracking and of all packets. No parameters")              \
	X(drops, "Refused packets, and INVALID ones, by reason. No parameters")                    \
	X(workers, "Polls, packets and cycles of each worker. No parameters")                      \
	X(memory, "Memory of the connection table, and packet buffers. No parameters")             \
	X(netns, "Counters and drops of a namespace. Parameters: its name, or its id")

#define X(name, help)                                                                              \
	static int on_##name(const char *cmd, const char *params, struct rte_tel_data *d)          \
	{                                                                                          \
		(void)cmd;                                                                         \
		return ask_control(fill_##name, params, d);                                        \
	}
ENDPOINTS(X)
#undef X

static int
register_endpoints(struct sl_err *err)
{
	static const struct {
		const char *path;
		telemetry_cb fn;
		const char *help;
	} endpoints[] = {
#define X(name, help) {"/sluice/" #name, on_##name, help},
		ENDPOINTS(X)
#undef X
	};
	pthread_condattr_t attr;
	unsigned int i;
	int ret;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&tel.changed, &attr);
	pthread_condattr_destroy(&attr);
	for (i = 0; i < RTE_DIM(endpoints); i++) {
		ret = rte_telemetry_register_cmd(endpoints[i].path, endpoints[i].fn,
			endpoints[i].help);
		if (ret != 0)
			return sl_refuse(err, -ret, "telemetry: cannot register %s: %s",
				endpoints[i].path, strerror(-ret));
	}
	return 0;
}

int
telemetry_start(struct gateway *gw, struct event_base *base, struct sl_err *err)
{
	int ret;

	if (!tel.registered) {
		ret = register_endpoints(err);
		if (ret != 0)
			return ret;
		tel.registered = true;
	}
	tel.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (tel.wake_fd < 0)
		return sl_refuse(err, errno, "telemetry: no eventfd: %s", strerror(errno));
	tel.event = event_new(base, tel.wake_fd, EV_READ | EV_PERSIST, on_wake, NULL);
	if (tel.event == NULL || event_add(tel.event, NULL) != 0) {
		if (tel.event != NULL)
			event_free(tel.event);
		close(tel.wake_fd);
		return sl_refuse(err, ENOMEM, "telemetry: out of memory");
	}
	pthread_mutex_lock(&tel.lock);
	tel.gw = gw;
	pthread_mutex_unlock(&tel.lock);
	return 0;
}

void
telemetry_stop(void)
{
	pthread_mutex_lock(&tel.lock);
	if (tel.gw != NULL) {
		tel.gw = NULL;
		tel.request = NULL;
		event_free(tel.event);
		close(tel.wake_fd);
		pthread_cond_broadcast(&tel.changed);
	}
	pthread_mutex_unlock(&tel.lock);
}
