/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_table.h"

#include <errno.h>

#include "err.h"
#include "log.h"
#include "mem.h"
#include "synproxy_pool.h"

SL_LOG_REGISTER(tcp_table);

#define BUCKET_BYTES     (RTE_CACHE_LINE_SIZE / 8)
#define TIME_WAIT_SHARE  2u   /* of the buckets, as the kernel has it */
#define HALF_OPEN_SHARE  128u
#define HALF_OPEN_LEAST  128u

static uint32_t
buckets_of(const struct gateway *gw, const struct netns *ns)
{
	uint32_t own = ct_own_buckets(gw->ct, ns->id);

	return own != 0 ? own : ct_buckets(gw->ct);
}

int64_t
tcp_table_entries(const struct gateway *gw, const struct netns *ns)
{
	int64_t buckets = buckets_of(gw, ns);

	return ns->id == NETNS_INIT_ID || ct_own_buckets(gw->ct, ns->id) != 0 ? buckets : -buckets;
}

uint32_t
tcp_table_time_wait_max(const struct gateway *gw, const struct netns *ns)
{
	uint32_t set = netns_knobs(ns)->tcp_max_tw_buckets;

	return set != KNOB_DERIVED ? set : buckets_of(gw, ns) / TIME_WAIT_SHARE;
}

uint32_t
tcp_table_half_open_max(const struct gateway *gw, const struct netns *ns)
{
	uint32_t set = netns_knobs(ns)->tcp_max_syn_backlog;

	return set != KNOB_DERIVED
		       ? set
		       : RTE_MAX(buckets_of(gw, ns) / HALF_OPEN_SHARE, HALF_OPEN_LEAST);
}

struct tcp_netns *
tcp_table_counts(struct gateway *gw, struct netns *ns)
{
	struct tcp_netns *tn = ns->tcp;

	if (tn == NULL) {
		tn = tcp_netns_new(gw_threads(gw));
		if (tn != NULL)
			sl_rcu_publish(&ns->tcp, tn);
	}
	return tn;
}

void
tcp_table_totals(const struct netns *ns, struct tcp_count *out)
{
	*out = (struct tcp_count){0};
	if (ns->tcp != NULL)
		tcp_netns_totals(ns->tcp, out);
}

/* Memory for the records is taken when the first namespace may need some. */
static int
follow_synproxy(struct gateway *gw, const struct netns *ns, struct sl_err *err)
{
	const struct knobs *init = netns_knobs(netns_init_ns(gw->netns));
	bool in_use = ns->id == NETNS_INIT_ID && synproxy_pool_in_use(gw->synproxy);

	if (netns_knobs(ns)->syncookies == KNOB_COOKIES_OFF && !in_use)
		return 0;
	return synproxy_pool_set_max(gw->synproxy, init->synproxy_max, err);
}

int
tcp_table_follow(struct gateway *gw, struct netns *ns, struct sl_err *err)
{
	bool own = ct_own_buckets(gw->ct, ns->id) != 0;
	const struct knobs *k = netns_knobs(ns);
	uint32_t half_open = TCP_NO_LIMIT, time_wait = TCP_NO_LIMIT;
	struct tcp_netns *tn = ns->tcp;

	if (own || k->tcp_max_syn_backlog != KNOB_DERIVED)
		half_open = tcp_table_half_open_max(gw, ns);
	if (own || k->tcp_max_tw_buckets != KNOB_DERIVED)
		time_wait = tcp_table_time_wait_max(gw, ns);
	if (follow_synproxy(gw, ns, err) != 0)
		return -ENOMEM;
	if (tn == NULL && half_open == TCP_NO_LIMIT && time_wait == TCP_NO_LIMIT &&
		k->syncookies == KNOB_COOKIES_OFF)
		return 0;
	tn = tcp_table_counts(gw, ns);
	if (tn == NULL)
		return sl_refuse(err, ENOMEM, "no memory for the counters of namespace %s",
			ns->name);
	tcp_limit_set(tn, half_open, time_wait);
	return 0;
}

static int
give_table(struct gateway *gw, struct netns *ns, uint32_t buckets, struct sl_err *err)
{
	int ret = ct_own_create(gw->ct, ns->id, buckets, err);

	if (ret != 0)
		return ret;
	ret = tcp_table_follow(gw, ns, err);
	/* It has no links yet, so that nobody can have looked into the table. */
	if (ret != 0)
		ct_own_destroy(gw->ct_control, ns->id);
	return ret;
}

static void
give_tables(struct gateway *gw, uint32_t buckets, struct netns *const ns[], unsigned int n)
{
	struct sl_err err = {"too little memory is available"};
	unsigned int i, room;

	/* Each of many small tables finds memory, but not all of them. */
	room = (unsigned int)RTE_MIN(
		sl_memory_available() / ((size_t)buckets * BUCKET_BYTES), (size_t)n);
	for (i = 0; i < room; i++)
		if (give_table(gw, ns[i], buckets, &err) != 0)
			break;
	if (i < n)
		SL_LOG(WARNING,
			"%u of %u new namespaces, such as %s, share the TCP table of all, since "
			"none of %u buckets can be had for them: %s",
			n - i, n, ns[i]->name, buckets, err.msg);
}

/* They have inherited sluice.syncookies. */
static void
give_cookies(struct gateway *gw, struct netns *const ns[], unsigned int n)
{
	struct sl_err err;
	unsigned int i;

	for (i = 0; i < n; i++)
		if (tcp_table_follow(gw, ns[i], &err) != 0)
			break;
	if (i < n)
		SL_LOG(WARNING,
			"%u of %u new namespaces, such as %s, answer no SYN by a cookie: %s",
			n - i, n, ns[i]->name, err.msg);
}

void
tcp_table_create(struct gateway *gw, const struct netns *parent, struct netns *const ns[],
	unsigned int n)
{
	const struct knobs *k = netns_knobs(parent);

	if (k->tcp_child_ehash_entries != 0)
		give_tables(gw, k->tcp_child_ehash_entries, ns, n);
	if (k->syncookies != KNOB_COOKIES_OFF)
		give_cookies(gw, ns, n);
}

void
tcp_table_free(struct gateway *gw, struct netns *ns)
{
	if (gw->ct_control != NULL) /* else the gateway came to nothing */
		ct_own_destroy(gw->ct_control, ns->id);
	tcp_netns_free(ns->tcp);
	ns->tcp = NULL;
}

bool
tcp_table_state(void *app, struct ct_thread *t, struct ct_entry *e)
{
	struct tcp_netns *tn = sl_rcu_dereference(&e->ns->tcp);
	(void)app;

	return tn == NULL || tcp_limit_state(tn, ct_thread_index(t), e);
}

void
tcp_table_ended(struct ct_thread *t, struct ct_entry *e)
{
	if (unlikely(e->status & (CT_HALF_OPEN | CT_TIME_WAITING)))
		tcp_limit_release(e->ns->tcp, ct_thread_index(t), e);
}
