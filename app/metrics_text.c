/* SPDX-License-Identifier: BSD-3-Clause */
#include "metrics_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <event2/buffer.h>

#include <rte_mempool.h>

#include "connlimit.h"
#include "conntrack.h"
#include "events.h"
#include "frag.h"
#include "gateway.h"
#include "netns.h"
#include "pool.h"
#include "port.h"
#include "tcp_limit.h"
#include "worker.h"

#define SLICE_NETNS 512   /* namespaces looked at in a slice */
#define SLICE_BYTES 65536 /* a slice ends when it has written this much */

struct ns_ref {
	uint32_t id, gen;
};

struct metrics_text {
	struct gateway *gw;
	struct ns_ref *ns;
	unsigned int n_ns, room;
	uint32_t next_id;    /* of the listing of namespaces; done when `listed` */
	bool listed;
	unsigned int family; /* being written */
	unsigned int at;     /* next namespace of that family */
	bool failed;         /* a write found no memory */
	struct evbuffer *out;
};

/*
 * A metric family. One of `all` (writes all samples) and `each` (those of one namespace). `field`
 * is where the counter lies in the structure that the function reads.
 */
struct family {
	const char *name, *type, *unit, *help;
	void (*all)(struct metrics_text *t, const struct family *f);
	void (*each)(struct metrics_text *t, const struct family *f, const struct netns *ns);
	size_t field;
};

const char *
metrics_escape(const char *s, char *buf, size_t len)
{
	size_t n = 0;

	for (; *s != '\0'; s++) {
		bool escape = *s == '\\' || *s == '"' || *s == '\n';

		if (n + 1 + escape >= len)
			break;
		if (escape)
			buf[n++] = '\\';
		buf[n++] = *s;
		if (*s == '\n')
			buf[n - 1] = 'n';
	}
	buf[n] = '\0';
	return buf;
}

static void put(struct metrics_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
put(struct metrics_text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (evbuffer_add_vprintf(t->out, fmt, ap) < 0)
		t->failed = true;
	va_end(ap);
}

/* One sample with one label, whose name is a literal. */
static void
sample(struct metrics_text *t, const struct family *f, const char *label, const char *value,
	uint64_t v)
{
	char escaped[2 * 64 + 1];

	put(t, "%s%s{%s=\"%s\"} %" PRIu64 "\n", f->name, f->type[0] == 'c' ? "_total" : "", label,
		metrics_escape(value, escaped, sizeof(escaped)), v);
}

static void
sample_bare(struct metrics_text *t, const struct family *f, uint64_t v)
{
	put(t, "%s%s %" PRIu64 "\n", f->name, f->type[0] == 'c' ? "_total" : "", v);
}

static uint64_t
load(const void *base, size_t field)
{
	const uint64_t *counter = (const uint64_t *)((const char *)base + field);

	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* ---- namespaces ---- */

static void
netns_counter(struct metrics_text *t, const struct family *f, const struct netns *ns)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < gw_threads(t->gw); i++)
		sum += load(&ns->counters[i], f->field);
	sample(t, f, "netns", ns->name, sum);
}

/* A sum taken while workers count may be below zero for a moment. */
static void
netns_entries_now(struct metrics_text *t, const struct family *f, const struct netns *ns)
{
	int64_t n = netns_entries(ns, gw_threads(t->gw));

	sample(t, f, "netns", ns->name, n > 0 ? (uint64_t)n : 0);
}

static void
netns_drops_by_reason(struct metrics_text *t, const struct family *f, const struct netns *ns)
{
	struct netns_totals totals;
	char name[2 * 64 + 1];
	unsigned int i;

	netns_totals(ns, &totals);
	for (i = 0; i < SL_DROP_COUNT; i++)
		if (totals.drops[i] != 0)
			put(t, "%s_total{netns=\"%s\",reason=\"%s\"} %" PRIu64 "\n", f->name,
				metrics_escape(ns->name, name, sizeof(name)), sl_drop_name(i),
				totals.drops[i]);
}

/* Where nothing of TCP is bounded, nothing is counted. */
static void
netns_tcp(struct metrics_text *t, const struct family *f, const struct netns *ns)
{
	struct tcp_count sum;

	if (ns->tcp == NULL)
		return;
	tcp_netns_totals(ns->tcp, &sum);
	sample(t, f, "netns", ns->name, load(&sum, f->field));
}

/* One number of each of the namespace's pools. */
static void
pool_number(struct metrics_text *t, const struct family *f, const struct netns *ns)
{
	const struct nat_pool *pool;
	struct nat_pool_stats stats;
	char name[2 * 64 + 1];

	metrics_escape(ns->name, name, sizeof(name));
	for (pool = nat_pool_next(ns, NULL); pool != NULL; pool = nat_pool_next(ns, pool)) {
		nat_pool_stats(pool, &stats);
		put(t, "%s%s{netns=\"%s\",pool=\"%s\"} %" PRIu64 "\n", f->name,
			f->type[0] == 'c' ? "_total" : "", name, nat_pool_config(pool)->name,
			load(&stats, f->field));
	}
}

static void
unattributed_drops(struct metrics_text *t, const struct family *f)
{
	uint64_t drops[SL_DROP_COUNT];
	unsigned int i;

	netns_unattributed_drops(t->gw->netns, drops);
	for (i = 0; i < SL_DROP_COUNT; i++)
		if (drops[i] != 0)
			sample(t, f, "reason", sl_drop_name(i), drops[i]);
}

static void
namespaces(struct metrics_text *t, const struct family *f)
{
	sample_bare(t, f, netns_count(t->gw->netns));
}

/* ---- ports and workers ---- */

static void
port_counter(struct metrics_text *t, const struct family *f)
{
	unsigned int i, w;

	for (i = 0; i < GW_PORTS_MAX; i++) {
		const struct port *port = t->gw->ports[i];
		uint64_t sum = 0;

		if (port == NULL)
			continue;
		for (w = 0; w < t->gw->n_workers; w++)
			sum += load(&port->counters[w], f->field);
		sample(t, f, "port", port->name, sum);
	}
}

static void
worker_counter(struct metrics_text *t, const struct family *f)
{
	unsigned int i;
	char name[16];

	for (i = 0; i < t->gw->n_workers; i++) {
		snprintf(name, sizeof(name), "%u", i);
		sample(t, f, "worker", name, load(&t->gw->workers[i]->stats, f->field));
	}
}

/* ---- connection tracking ---- */

static void
ct_counter(struct metrics_text *t, const struct family *f)
{
	unsigned int i, threads = gw_threads(t->gw);
	struct ct_stats stats;
	char name[16];

	for (i = 0; i < threads; i++) {
		ct_stats(t->gw->ct, i, &stats);
		snprintf(name, sizeof(name), "%u", i);
		sample(t, f, "thread", i + 1 < threads ? name : "control", load(&stats, f->field));
	}
}

static void
ct_gauge_entries(struct metrics_text *t, const struct family *f)
{
	sample_bare(t, f, ct_count(t->gw->ct));
}

static void
ct_gauge_max(struct metrics_text *t, const struct family *f)
{
	sample_bare(t, f, ct_max(t->gw->ct));
}

static void
ct_gauge_buckets(struct metrics_text *t, const struct family *f)
{
	sample_bare(t, f, ct_buckets(t->gw->ct));
}

static void
ct_gauge_memory(struct metrics_text *t, const struct family *f)
{
	struct ct_memory m;

	ct_memory_sizes(t->gw->ct, &m);
	sample(t, f, "part", "entries", m.pool_present);
	sample(t, f, "part", "buckets", m.lines_present);
	sample(t, f, "part", "walk", m.walk_present);
	sample(t, f, "part", "own_tables", m.own_present);
}

/* ---- limits and events ---- */

static void
connlimit_counter(struct metrics_text *t, const struct family *f)
{
	struct connlimit_stats stats;
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < gw_threads(t->gw); i++) {
		connlimit_stats(t->gw->limits, i, &stats);
		sum += load(&stats, f->field);
	}
	sample_bare(t, f, sum);
}

static void
connlimit_keys(struct metrics_text *t, const struct family *f)
{
	struct connlimit_memory m;

	connlimit_memory(t->gw->limits, &m);
	sample_bare(t, f, m.keys);
}

static void
connlimit_bytes(struct metrics_text *t, const struct family *f)
{
	struct connlimit_memory m;

	connlimit_memory(t->gw->limits, &m);
	sample_bare(t, f, m.present);
}

static void
events_counter(struct metrics_text *t, const struct family *f)
{
	struct events_stats stats;
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < gw_threads(t->gw); i++) {
		events_stats(t->gw->events, i, &stats);
		sum += load(&stats, f->field);
	}
	sample_bare(t, f, sum);
}

static void
events_bytes(struct metrics_text *t, const struct family *f)
{
	sample_bare(t, f, events_memory(t->gw->events));
}

/* ---- process ---- */

static void
buffers_free(struct metrics_text *t, const struct family *f)
{
	if (t->gw->pool != NULL)
		sample_bare(t, f, rte_mempool_avail_count(t->gw->pool));
}

static void
fragments_held(struct metrics_text *t, const struct family *f)
{
	struct frag_stats held;

	if (t->gw->frag == NULL)
		return;
	frag_stats(t->gw->frag, &held);
	sample_bare(t, f, load(&held, f->field));
}

static void
build_info(struct metrics_text *t, const struct family *f)
{
	put(t, "%s_info{version=\"%s\"} 1\n", f->name, SLUICE_VERSION);
}

#define NETNS(name, unit, help, member)                                                            \
	{"sluice_netns_" name, "counter", unit, help, .each = netns_counter,                       \
		.field = offsetof(struct netns_counters, member)}
#define NETNS_TCP(name, type, help, member)                                                        \
	{"sluice_netns_" name, type, NULL, help, .each = netns_tcp,                                \
		.field = offsetof(struct tcp_count, member)}
#define PORT(name, unit, help)                                                                     \
	{"sluice_port_" #name, "counter", unit, help, .all = port_counter,                         \
		.field = offsetof(struct port_counters, name)}
#define WORKER(name, help)                                                                         \
	{"sluice_worker_" #name, "counter", NULL, help, .all = worker_counter,                     \
		.field = offsetof(struct worker_stats, name)}
#define LIMIT(name, help)                                                                          \
	{"sluice_connlimit_" #name, "counter", NULL, help, .all = connlimit_counter,               \
		.field = offsetof(struct connlimit_stats, name)}
#define CT(name, help)                                                                             \
	{"sluice_conntrack_" #name, "counter", NULL, help, .all = ct_counter,                      \
		.field = offsetof(struct ct_stats, name)}

#define POOL(name, type, help)                                                                     \
	{"sluice_nat_pool_" #name, type, NULL, help, .each = pool_number,                          \
		.field = offsetof(struct nat_pool_stats, name)}

static const struct family families[] = {
	{"sluice_build", "info", NULL, "The running version.", .all = build_info},
	{"sluice_namespaces", "gauge", NULL, "Namespaces, init included.", .all = namespaces},
	NETNS("packets", NULL, "Packets received on links of the namespace.", packets),
	NETNS("bytes", "bytes", "Bytes received on links of the namespace.", bytes),
	NETNS("new_entries", NULL, "Connections that the namespace began.", created),
	{"sluice_netns_entries", "gauge", NULL, "Connections of the namespace.",
		.each = netns_entries_now},
	{"sluice_netns_drops", "counter", NULL,
		"Packets refused, or tracked as INVALID, by reason.",
		.each = netns_drops_by_reason},
	NETNS_TCP("tcp_half_open", "gauge", "Half-open TCP connections.", half_open),
	NETNS_TCP("tcp_backlog_full", "counter",
		"SYNs that found tcp_max_syn_backlog connections half open.", backlog_full),
	NETNS_TCP("tcp_time_wait", "gauge", "TCP connections in TIME_WAIT.", time_wait),
	NETNS_TCP("tcp_time_wait_full", "counter",
		"Connections forgotten, since tcp_max_tw_buckets were in TIME_WAIT.",
		time_wait_full),
	NETNS_TCP("tcp_proxied", "gauge", "Connections that the SYN proxy translates.", proxied),
	NETNS_TCP("tcp_cookies_sent", "counter", "SYNs answered by a cookie.", cookies_sent),
	NETNS_TCP("tcp_cookies_valid", "counter",
		"ACKs of no connection that brought a cookie back.", cookies_good),
	NETNS_TCP("tcp_cookies_invalid", "counter",
		"ACKs of no connection without a valid cookie.", cookies_bad),
	POOL(used, "gauge", "Blocks or ports of the pool in use."),
	POOL(high, "gauge", "The most blocks or ports of the pool that were in use."),
	POOL(capacity, "gauge", "Blocks or ports of the pool."),
	POOL(connections, "gauge", "Connections that have an address of the pool."),
	POOL(bound, "counter", "Connections that were given an address of the pool."),
	POOL(exhausted, "counter", "Connections that the pool had nothing for."),
	{"sluice_unattributed_drops", "counter", NULL,
		"Drops that no namespace could be charged with, by reason.",
		.all = unattributed_drops},
	PORT(rx_packets, NULL, "Packets received."),
	PORT(rx_bytes, "bytes", "Bytes received."),
	PORT(tx_packets, NULL, "Packets sent."),
	PORT(tx_bytes, "bytes", "Bytes sent."),
	PORT(tx_dropped, NULL, "Packets that the port did not take."),
	WORKER(busy_polls, "Polls of all queues that found packets."),
	WORKER(idle_polls, "Polls of all queues that found none."),
	WORKER(packets, "Packets processed."),
	WORKER(busy_cycles, "TSC cycles spent in busy polls."),
	{"sluice_conntrack_entries", "gauge", NULL, "Connections of all namespaces.",
		.all = ct_gauge_entries},
	{"sluice_conntrack_max", "gauge", NULL, "The most connections of all namespaces.",
		.all = ct_gauge_max},
	{"sluice_conntrack_buckets", "gauge", NULL, "Hash buckets.", .all = ct_gauge_buckets},
	CT(lookups, "Tuples looked up."),
	CT(found, "Look-ups that found a connection."),
	CT(insert, "Connections inserted."),
	CT(insert_failed, "Connections that could not be inserted."),
	CT(race_lost, "Insertions of a flow that another worker had inserted first."),
	CT(expired, "Connections destroyed by their timeout."),
	CT(deleted, "Connections destroyed by command or by their protocol."),
	CT(invalid, "Packets that belong to no connection."),
	CT(early_drop, "Unassured connections destroyed to make room for new ones."),
	CT(chain_too_long, "Insertions refused because a bucket's chain was at its bound."),
	CT(swept, "Entries looked at by the sweep."),
	CT(walked, "Entries looked at for deleted namespaces."),
	{"sluice_conntrack_memory_bytes", "gauge", "bytes", "Memory of the table, by part.",
		.all = ct_gauge_memory},
	LIMIT(weighed, "Connections weighed by a `ct count`."),
	LIMIT(over, "Connections weighed and found to be above their limit."),
	LIMIT(full, "Connections refused because no counter was left."),
	LIMIT(many, "Connections refused because they were charged to three counts."),
	LIMIT(errors, "Charges given back that no counter knew of: a fault."),
	{"sluice_connlimit_keys", "gauge", NULL, "Keys that have live connections.",
		.all = connlimit_keys},
	{"sluice_connlimit_bytes", "gauge", "bytes", "Memory of counters and their table.",
		.all = connlimit_bytes},
	{"sluice_events", "counter", NULL, "Events put into rings of listeners.",
		.all = events_counter, .field = offsetof(struct events_stats, emitted)},
	{"sluice_events_lost", "counter", NULL, "Events that a listener's ring had no room for.",
		.all = events_counter, .field = offsetof(struct events_stats, lost)},
	{"sluice_events_bytes", "gauge", "bytes", "Memory of the rings of listeners.",
		.all = events_bytes},
	{"sluice_fragments", "gauge", NULL, "Fragments that wait for the rest of their datagrams.",
		.all = fragments_held, .field = offsetof(struct frag_stats, fragments)},
	{"sluice_fragment_datagrams", "gauge", NULL, "Datagrams that are not complete.",
		.all = fragments_held, .field = offsetof(struct frag_stats, datagrams)},
	{"sluice_fragment_bytes", "gauge", "bytes", "Memory of the buffers of fragments that wait.",
		.all = fragments_held, .field = offsetof(struct frag_stats, bytes)},
	{"sluice_packet_buffers_free", "gauge", NULL, "Packet buffers that are not in use.",
		.all = buffers_free},
};

struct metrics_text *
metrics_text_begin(struct gateway *gw)
{
	struct metrics_text *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->gw = gw;
	t->room = netns_count(gw->netns) + SLICE_NETNS;
	t->ns = calloc(t->room, sizeof(t->ns[0]));
	if (t->ns == NULL) {
		free(t);
		return NULL;
	}
	return t;
}

void
metrics_text_end(struct metrics_text *t)
{
	free(t->ns);
	free(t);
}

/* Takes the ids of the next namespaces. Those that do not fit came after the beginning. */
static void
list_netns(struct metrics_text *t)
{
	unsigned int i;

	for (i = 0; i < SLICE_NETNS; i++) {
		struct netns *ns = netns_next(t->gw->netns, &t->next_id);

		if (ns == NULL || t->n_ns == t->room) {
			t->listed = true;
			return;
		}
		t->ns[t->n_ns++] = (struct ns_ref){.id = ns->id, .gen = ns->gen};
	}
}

static void
write_head(struct metrics_text *t, const struct family *f)
{
	put(t, "# TYPE %s %s\n", f->name, f->type);
	if (f->unit != NULL)
		put(t, "# UNIT %s %s\n", f->name, f->unit);
	put(t, "# HELP %s %s\n", f->name, f->help);
}

/* The family's samples of the next namespaces. True when it is complete. */
static bool
write_netns(struct metrics_text *t, const struct family *f)
{
	unsigned int end = t->at + RTE_MIN(t->n_ns - t->at, (unsigned int)SLICE_NETNS);

	for (; t->at < end; t->at++) {
		const struct ns_ref *ref = &t->ns[t->at];
		const struct netns *ns = netns_by_id(t->gw->netns, ref->id);

		if (ns != NULL && ns->gen == ref->gen && netns_alive(ns))
			f->each(t, f, ns);
	}
	return t->at == t->n_ns;
}

/* A portion of the family at hand, or all of it. True when the slice should end here. */
static bool
write_some(struct metrics_text *t)
{
	const struct family *f = &families[t->family];

	if (t->at == 0)
		write_head(t, f);
	if (f->all != NULL) {
		f->all(t, f);
		t->family++;
		return false;
	}
	if (!write_netns(t, f))
		return true;
	t->family++;
	t->at = 0;
	return t->n_ns >= SLICE_NETNS;
}

int
metrics_text_slice(struct metrics_text *t, struct evbuffer *out)
{
	size_t before = evbuffer_get_length(out);

	t->out = out;
	if (!t->listed) {
		list_netns(t);
		return 1;
	}
	while (t->family < RTE_DIM(families) && evbuffer_get_length(out) - before < SLICE_BYTES)
		if (write_some(t))
			break;
	if (t->family == RTE_DIM(families))
		put(t, "# EOF\n");
	if (t->failed)
		return -ENOMEM;
	return t->family < RTE_DIM(families);
}
