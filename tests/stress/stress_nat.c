/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two workers open connections through a pool of few ports and end them by every path there is,
 * while a third thread flushes (B26): at no time two of them have one port, which the table would
 * refuse, and in the end all ports can be had again.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "nat.h"

#define PORTS   2048u /* enough for a map to be used; few enough to be full all the time */
#define HOSTS   8192u
#define TURNS   30000u

static struct ct *ct;
static struct nat *nat;
static struct netns *ns;
static struct sl_now now;
static int stop;

static void
die(const char *what)
{
	fprintf(stderr, "stress_nat: %s\n", what);
	exit(1);
}

static void
released(void *app, struct ct_thread *t, struct ct_entry *const e[], unsigned int n)
{
	(void)app;
	while (n-- > 0)
		nat_released(nat_thread(nat, ct_thread_index(t)), e[n]);
}

static void
aborted(void *app, struct ct_thread *t, struct ct_entry *e)
{
	(void)app;
	nat_aborted(nat_thread(nat, ct_thread_index(t)), e);
}

static void
packet(struct pkt *p, uint32_t host)
{
	memset(p, 0, sizeof(*p));
	p->flags = PKT_IP;
	p->proto = IPPROTO_UDP;
	p->ip_bytes = 28;
	p->ns = ns;
	p->tuple = (struct tuple){.scope = ns->id, .family = TUPLE_IPV4, .proto = IPPROTO_UDP};
	p->tuple.src.w[0] = rte_cpu_to_be_32(0x0a000000u + host);
	p->tuple.dst.w[0] = RTE_BE32(0xc0000250);
	p->tuple.sport = RTE_BE16(40000);
	p->tuple.dport = RTE_BE16(53);
}

static enum ct_verdict
open_host(struct ct_thread *t, struct nat_thread *n, uint32_t host)
{
	static const struct nat_request r = {.flags = NAT_ADDR | NAT_PORTS, .family = TUPLE_IPV4,
		.port_min = 5000, .port_max = 5000 + PORTS - 1,
		.min = {.w = {RTE_BE32(0xcb007101)}}, .max = {.w = {RTE_BE32(0xcb007101)}}};
	struct pkt p;
	enum ct_verdict v;

	packet(&p, host);
	ct_lookup_bulk(t, &p, 1);
	if (p.ct != NULL) {
		if (host % 3 == 0)
			ct_kill(t, &p);
		else
			ct_track(t, &p, now);
		return CT_LOST;
	}
	if (ct_begin(t, &p, now) != CT_OK)
		return CT_DROP;
	if (host % 101 == 0) {
		nat_abort(n, &p);
		return CT_DROP;
	}
	v = nat_commit(n, &p, &r);
	if (v == CT_DROP && p.reason != SL_DROP_NAT_EXHAUSTED)
		die("refused for another reason than that no port is free");
	return v;
}

static void *
work(void *arg)
{
	unsigned int index = (unsigned int)(uintptr_t)arg, i;
	struct ct_thread *t = ct_thread(ct, index);
	struct nat_thread *n = nat_thread(nat, index);
	uint64_t x = 88172645463325252u + index;

	for (i = 0; i < TURNS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		open_host(t, n, (uint32_t)x % HOSTS);
	}
	return NULL;
}

static void
flush(struct ct_thread *t)
{
	const struct ct_filter all = {.ns = NULL};
	uint64_t n = 0;
	struct ct_walk w;

	ct_walk_start(ct, &w, now);
	while (ct_flush_slice(t, &w, &all, 1024, now, &n))
		;
}

static void *
control(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		flush(ct_thread(ct, 2));
		sched_yield();
	}
	return arg;
}

static void
check_all_ports(void)
{
	struct ct_thread *t = ct_thread(ct, 0);
	unsigned int i, n;

	flush(t);
	if (ct_count(ct) != 0)
		die("entries are left");
	for (i = n = 0; i < 4 * PORTS; i++)
		n += open_host(t, nat_thread(nat, 0), HOSTS + i * 3 + 1) == CT_OK;
	if (n != PORTS)
		die("ports have got lost");
}

int
main(void)
{
	struct ct_config config = {.max_entries = 20000, .buckets = 16384, .threads = 3,
		.hash = SL_HASH_SIPHASH, .ops = {.destroyed = released, .aborted = aborted}};
	struct nat_config nat_config = {.threads = 3, .max_sources = 5000,
		.hash = SL_HASH_SIPHASH};
	pthread_t thread[3];
	struct sl_err err;
	uintptr_t i;

	config.netns = netns_registry_create(3, 16, &err);
	ct = nat_config.ct = ct_create(&config, &err);
	nat = nat_create(&nat_config, &err);
	if (ct == NULL || nat == NULL)
		die(err.msg);
	ns = netns_init_ns(config.netns);
	now = sl_now_from_ns(1000 * SL_NSEC_PER_SEC);
	if (nat_netns_enable(nat, ns, &err) < 0)
		die(err.msg);
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	pthread_create(&thread[2], NULL, control, NULL);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread[2], NULL);
	check_all_ports();
	flush(ct_thread(ct, 0));
	nat_netns_free(ns);
	nat_destroy(nat);
	ct_destroy(ct);
	netns_registry_destroy(config.netns);
	return 0;
}
