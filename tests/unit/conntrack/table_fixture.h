/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of two workers, and UDP flows to put into it. */
#ifndef TABLE_FIXTURE_H
#define TABLE_FIXTURE_H

#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ip.h>

#include "err.h"
#include "private.h"

#define THREADS 3u
#define MAX     20000u

struct fixture {
	struct netns_registry *registry;
	struct ct *ct;
	struct ct_thread *a, *b; /* two workers */
	struct sl_now now;
};

static inline int
setup_sized(void **state, uint32_t max, uint32_t buckets)
{
	struct ct_config config = {.max_entries = max, .buckets = buckets, .threads = THREADS,
		.hash = SL_HASH_SIPHASH, .hash_seed = 1};
	struct fixture *f = calloc(1, sizeof(*f));
	struct sl_err err;

	if (f == NULL)
		return -1;
	f->registry = netns_registry_create(THREADS, 16, &err);
	config.netns = f->registry;
	f->ct = ct_create(&config, &err);
	if (f->ct == NULL)
		return -1;
	f->a = ct_thread(f->ct, 0);
	f->b = ct_thread(f->ct, 1);
	f->now = sl_now_from_ns(1000 * SL_NSEC_PER_SEC);
	*state = f;
	return 0;
}

static inline int
setup(void **state)
{
	return setup_sized(state, MAX, CT_BUCKETS_MIN);
}

static inline int
setup_small(void **state)
{
	return setup_sized(state, 4, CT_BUCKETS_MIN);
}

static inline int
teardown(void **state)
{
	struct fixture *f = *state;

	ct_destroy(f->ct);
	netns_registry_destroy(f->registry);
	free(f);
	return 0;
}

static inline void
later(struct fixture *f, unsigned int ms)
{
	f->now = sl_now_from_ns(f->now.ns + ms * SL_NSEC_PER_MSEC);
}

static inline struct pkt
packet(struct netns *ns, uint32_t flow, bool reply)
{
	struct tuple there = {.scope = ns->id, .family = TUPLE_IPV4, .proto = IPPROTO_UDP};
	struct pkt p = {.flags = PKT_IP, .proto = IPPROTO_UDP, .ip_bytes = 28, .ns = ns};

	there.src.w[0] = rte_cpu_to_be_32(0x0a000000u + flow);
	there.dst.w[0] = rte_cpu_to_be_32(0xc0000201u);
	there.sport = rte_cpu_to_be_16(1000);
	there.dport = rte_cpu_to_be_16(53);
	if (reply)
		assert_true(tuple_invert(&p.tuple, &there));
	else
		p.tuple = there;
	return p;
}

static inline struct pkt
flow_packet(struct fixture *f, uint32_t flow, bool reply)
{
	return packet(netns_init_ns(f->registry), flow, reply);
}

static inline void
insert(struct fixture *f, struct ct_thread *t, struct pkt *p)
{
	ct_lookup_bulk(t, p, 1);
	assert_null(p->ct);
	assert_int_equal(ct_begin(t, p, f->now), CT_OK);
	assert_int_equal(ct_commit(t, p), CT_OK);
}

/* The flows first … first + n - 1 are replied to and go on, by packets on thread t. */
static inline void
assure(struct fixture *f, struct ct_thread *t, struct netns *ns, uint32_t first, uint32_t n)
{
	struct pkt p;
	uint32_t i, step;

	for (step = 0; step < 2; step++) {
		for (i = first; i < first + n; i++) {
			p = packet(ns, i, step == 0);
			ct_lookup_bulk(t, &p, 1);
			assert_non_null(p.ct);
			assert_int_equal(ct_track(t, &p, f->now), CT_OK);
			assert_int_equal(!!(p.ct->status & CT_ASSURED), step);
		}
		later(f, 2500);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
