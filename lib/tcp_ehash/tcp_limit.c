/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flags in an entry are changed under its lock, or while it is an embryo or DYING, when one
 * thread alone has it. A counter may be counted up by one thread and down by another: only the sum
 * has a meaning.
 */
#include "tcp_limit.h"

#include <stdlib.h>
#include <string.h>

#include "knobs.h"
#include "netns.h"

struct tcp_netns *
tcp_netns_new(unsigned int threads)
{
	size_t size = sizeof(struct tcp_netns) + threads * sizeof(struct tcp_count);
	struct tcp_netns *tn = aligned_alloc(RTE_CACHE_LINE_SIZE, size);

	if (tn == NULL)
		return NULL;
	memset(tn, 0, size);
	tn->threads = threads;
	tcp_limit_set(tn, TCP_NO_LIMIT, TCP_NO_LIMIT);
	return tn;
}

void
tcp_limit_set(struct tcp_netns *tn, uint32_t max_half_open, uint32_t max_time_wait)
{
	__atomic_store_n(&tn->max_half_open, max_half_open, __ATOMIC_RELAXED);
	__atomic_store_n(&tn->max_time_wait, max_time_wait, __ATOMIC_RELAXED);
}

void
tcp_netns_free(struct tcp_netns *tn)
{
	free(tn);
}

int64_t
tcp_netns_sum(const struct tcp_netns *tn, size_t counter)
{
	const char *at = (const char *)tn->count + counter;
	int64_t sum = 0;
	unsigned int i;

	for (i = 0; i < tn->threads; i++, at += sizeof(tn->count[0]))
		sum += __atomic_load_n((const int64_t *)(const void *)at, __ATOMIC_RELAXED);
	return sum;
}

#define SUM(tn, counter) tcp_netns_sum(tn, offsetof(struct tcp_count, counter))

void
tcp_netns_totals(const struct tcp_netns *tn, struct tcp_count *out)
{
	*out = (struct tcp_count){
		.half_open = SUM(tn, half_open),
		.time_wait = SUM(tn, time_wait),
		.proxied = SUM(tn, proxied),
		.backlog_full = (uint64_t)SUM(tn, backlog_full),
		.time_wait_full = (uint64_t)SUM(tn, time_wait_full),
		.cookies_sent = (uint64_t)SUM(tn, cookies_sent),
		.cookies_good = (uint64_t)SUM(tn, cookies_good),
		.cookies_bad = (uint64_t)SUM(tn, cookies_bad),
	};
}

static bool
is_half_open(const struct ct_entry *e)
{
	return e->proto.tcp.state == CT_TCP_SYN_SENT || e->proto.tcp.state == CT_TCP_SYN_RECV ||
	       e->proto.tcp.state == CT_TCP_SYN_SENT2;
}

/* Counters of other threads are read only where there is a limit. */
static bool
reached(const struct tcp_netns *tn, const uint32_t *limit, size_t counter)
{
	uint32_t max = __atomic_load_n(limit, __ATOMIC_RELAXED);

	return max != TCP_NO_LIMIT && tcp_netns_sum(tn, counter) >= (int64_t)max;
}

/* Counts the connection in or out, as it is not yet. */
static void
count(struct ct_entry *e, uint16_t flag, int64_t *counter, bool in)
{
	if (((e->status & flag) != 0) == in)
		return;
	netns_counter_add(counter, in ? 1 : -1);
	e->status ^= flag;
}

bool
tcp_limit_open(struct tcp_netns *tn, unsigned int thread, struct ct_entry *e)
{
	struct tcp_count *c = &tn->count[thread];

	if (!is_half_open(e))
		return true;
	if (reached(tn, &tn->max_half_open, offsetof(struct tcp_count, half_open))) {
		netns_counter_add(&c->backlog_full, 1);
		return false;
	}
	count(e, CT_HALF_OPEN, &c->half_open, true);
	return true;
}

bool
tcp_limit_state(struct tcp_netns *tn, unsigned int thread, struct ct_entry *e)
{
	struct tcp_count *c = &tn->count[thread];
	bool waits = e->proto.tcp.state == CT_TCP_TIME_WAIT;

	count(e, CT_HALF_OPEN, &c->half_open, is_half_open(e));
	if (waits && !(e->status & CT_TIME_WAITING) &&
		reached(tn, &tn->max_time_wait, offsetof(struct tcp_count, time_wait))) {
		netns_counter_add(&c->time_wait_full, 1);
		return false;
	}
	count(e, CT_TIME_WAITING, &c->time_wait, waits);
	return true;
}

void
tcp_limit_release(struct tcp_netns *tn, unsigned int thread, struct ct_entry *e)
{
	count(e, CT_HALF_OPEN, &tn->count[thread].half_open, false);
	count(e, CT_TIME_WAITING, &tn->count[thread].time_wait, false);
}
