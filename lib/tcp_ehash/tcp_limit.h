/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many connections of a namespace may be half open, and how many in TIME_WAIT: the SYN backlog
 * and the TIME_WAIT buckets that the kernel has for its own listeners, here for forwarded flows.
 *
 * Each thread counts for itself, and the sum is the number. So it is exact when quiet; while
 * several threads admit at once it can be exceeded by as many as there are threads but one. That a
 * connection was counted is a flag in its entry, so what was not is never given back.
 */
#ifndef TCP_LIMIT_H
#define TCP_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry.h"

/* Written by one thread, read by all. */
struct tcp_count {
	int64_t half_open, time_wait; /* counted less given back by this thread */
	uint64_t backlog_full;        /* SYNs that found the backlog full */
	uint64_t time_wait_full;      /* connections forgotten, for want of buckets */
	/* SYN proxy: connections that have a record (synproxy_pool.h); SYNs answered, and ACKs of
	 * no connection that brought a cookie back, or none that is valid */
	int64_t proxied;
	uint64_t cookies_sent, cookies_good, cookies_bad;
} __rte_cache_aligned;

#define TCP_NO_LIMIT UINT32_MAX

/* Of a namespace: netns.tcp, made when it is first needed and kept as long as the namespace. */
struct tcp_netns {
	unsigned int threads;
	uint32_t max_half_open, max_time_wait; /* written by control, read by workers */
	struct tcp_count count[];
};

/* Without limits. NULL: no memory. */
struct tcp_netns *tcp_netns_new(unsigned int threads);
void tcp_netns_free(struct tcp_netns *tn); /* NULL is left alone */

/* TCP_NO_LIMIT: any number. What is above a new limit already stays until it ends. */
void tcp_limit_set(struct tcp_netns *tn, uint32_t max_half_open, uint32_t max_time_wait);

/* The sums of all threads; of the counter at that offset of struct tcp_count. */
int64_t tcp_netns_sum(const struct tcp_netns *tn, size_t counter);
void tcp_netns_totals(const struct tcp_netns *tn, struct tcp_count *out);

/* ---- worker ---- */

/* A TCP connection that begins, an embryo. False: as many as may be are half open already. */
bool tcp_limit_open(struct tcp_netns *tn, unsigned int thread, struct ct_entry *e);

/*
 * The state of a connection has changed; under its lock. False: it is in TIME_WAIT, of which there
 * are as many as may be already, so it is to be forgotten.
 */
bool tcp_limit_state(struct tcp_netns *tn, unsigned int thread, struct ct_entry *e);

/* The connection is over: gives back what it was counted for. */
void tcp_limit_release(struct tcp_netns *tn, unsigned int thread, struct ct_entry *e);

#endif
