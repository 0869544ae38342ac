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

static int64_t
half_open(const struct tcp_netns *tn)
{
	int64_t sum = 0;
	unsigned int i;

	for (i = 0; i < tn->threads; i++)
		sum += __atomic_load_n(&tn->count[i].half_open, __ATOMIC_RELAXED);
	return sum;
}

static int64_t
time_wait(const struct tcp_netns *tn)
{
	int64_t sum = 0;
	unsigned int i;

	for (i = 0; i < tn->threads; i++)
		sum += __atomic_load_n(&tn->count[i].time_wait, __ATOMIC_RELAXED);
	return sum;
}

static uint64_t
load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

void
tcp_netns_totals(const struct tcp_netns *tn, struct tcp_count *out)
{
	unsigned int i;

	*out = (struct tcp_count){.half_open = half_open(tn), .time_wait = time_wait(tn)};
	for (i = 0; i < tn->threads; i++) {
		out->backlog_full += load(&tn->count[i].backlog_full);
		out->time_wait_full += load(&tn->count[i].time_wait_full);
		out->proxied += __atomic_load_n(&tn->count[i].proxied, __ATOMIC_RELAXED);
		out->cookies_sent += load(&tn->count[i].cookies_sent);
		out->cookies_good += load(&tn->count[i].cookies_good);
		out->cookies_bad += load(&tn->count[i].cookies_bad);
	}
}

static bool
is_half_open(const struct ct_entry *e)
{
	return e->proto.tcp.state == CT_TCP_SYN_SENT || e->proto.tcp.state == CT_TCP_SYN_RECV ||
	       e->proto.tcp.state == CT_TCP_SYN_SENT2;
}

static uint32_t
limit(const uint32_t *max)
{
	return __atomic_load_n(max, __ATOMIC_RELAXED);
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
	if (half_open(tn) >= (int64_t)limit(&tn->max_half_open)) {
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
		time_wait(tn) >= (int64_t)limit(&tn->max_time_wait)) {
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
