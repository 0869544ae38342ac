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
	return tn;
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

bool
tcp_limit_open(struct tcp_netns *tn, unsigned int thread, struct ct_entry *e, uint32_t max)
{
	if (!is_half_open(e))
		return true;
	if (half_open(tn) >= (int64_t)max) {
		netns_counter_add(&tn->count[thread].backlog_full, 1);
		return false;
	}
	netns_counter_add(&tn->count[thread].half_open, 1);
	e->status |= CT_HALF_OPEN;
	return true;
}

bool
tcp_limit_state(
	struct tcp_netns *tn, unsigned int thread, struct ct_entry *e, uint32_t max_time_wait)
{
	struct tcp_count *c = &tn->count[thread];

	if ((e->status & CT_HALF_OPEN) && !is_half_open(e)) {
		netns_counter_add(&c->half_open, -1);
		e->status &= (uint16_t)~CT_HALF_OPEN;
	}
	if (e->proto.tcp.state != CT_TCP_TIME_WAIT || (e->status & CT_TIME_WAITING))
		return true;
	if (time_wait(tn) >= (int64_t)max_time_wait) {
		netns_counter_add(&c->time_wait_full, 1);
		return false;
	}
	netns_counter_add(&c->time_wait, 1);
	e->status |= CT_TIME_WAITING;
	return true;
}

void
tcp_limit_release(struct tcp_netns *tn, unsigned int thread, struct ct_entry *e)
{
	struct tcp_count *c = &tn->count[thread];

	if (e->status & CT_HALF_OPEN)
		netns_counter_add(&c->half_open, -1);
	if (e->status & CT_TIME_WAITING)
		netns_counter_add(&c->time_wait, -1);
	e->status &= (uint16_t)~(CT_HALF_OPEN | CT_TIME_WAITING);
}
