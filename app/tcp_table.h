/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP tables of namespaces: a table of its own where `net.ipv4.tcp_child_ehash_entries` of its
 * parent says so, and the bounds that go with the table's size, of half-open connections and of
 * those in TIME_WAIT. In a namespace that shares the table of all they hold only where its knobs
 * were set, as netns.tcp says: NULL where nothing is bounded.
 */
#ifndef TCP_TABLE_H
#define TCP_TABLE_H

#include <netinet/in.h>

#include <rte_branch_prediction.h>

#include "gateway.h"
#include "tcp_limit.h"

struct sl_err;

/* ---- control ---- */

/* Gives namespaces that were just created what their parent's knob asks for. Those for which there
 * is no memory share the table of all, and a warning says so. */
void tcp_table_create(struct gateway *gw, const struct netns *parent, struct netns *const ns[],
	unsigned int n);

/* Of a namespace that no worker sees any more, and whose entries are gone. */
void tcp_table_free(struct gateway *gw, struct netns *ns);

/* net.ipv4.tcp_ehash_entries: buckets of its own table, or the negative number of the one of all,
 * which is init's. */
int64_t tcp_table_entries(const struct gateway *gw, const struct netns *ns);

/* The bounds as they are shown: what was set, or what goes with the size of the table. */
uint32_t tcp_table_time_wait_max(const struct gateway *gw, const struct netns *ns);
uint32_t tcp_table_half_open_max(const struct gateway *gw, const struct netns *ns);

/* What its connections are counted as, and what was refused; zeros where nothing is bounded. */
void tcp_table_totals(const struct netns *ns, struct tcp_count *out);

/* The knobs of the namespace have changed: its bounds follow. 0 or -ENOMEM. */
int tcp_table_follow(struct gateway *gw, struct netns *ns, struct sl_err *err);

/* netns.tcp, made if there is none yet. NULL: no memory. */
struct tcp_netns *tcp_table_counts(struct gateway *gw, struct netns *ns);

/* ---- worker; conntrack's operations ---- */

/* Before the embryo of the packet is inserted. False: too many connections are half open. */
static inline bool
tcp_table_admit(struct ct_thread *t, const struct pkt *p)
{
	struct tcp_netns *tn = sl_rcu_dereference(&p->ns->tcp);

	return likely(tn == NULL) || p->tuple.proto != IPPROTO_TCP ||
	       tcp_limit_open(tn, ct_thread_index(t), p->ct);
}

bool tcp_table_state(void *app, struct ct_thread *t, struct ct_entry *e);
void tcp_table_ended(struct ct_thread *t, struct ct_entry *e);

#endif
