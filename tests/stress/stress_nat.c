/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two workers open connections through pools of few ports and end them by every path there is
 * (B26): abort, lost races, expiry, RST, delete, flush, the end of the namespace with its pool. At
 * no time two of them have one port, which the table would refuse, and in the end nothing is in use
 * and all ports can be had again. Namespaces follow one another, with ports, exclusive mappings and
 * blocks in turn.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "nat.h"
#include "pool.h"
#include "source.h"
#include "stress.h"

#define PORTS   2048u /* enough for a map to be used; few enough to be full all the time */
#define BLOCK   64u
#define HOSTS   8192u
#define TURNS   30000u
#define TURN_NS (4 * SL_NSEC_PER_MSEC) /* so that what is not used expires within the run */

/* A namespace and its pool. Workers have it between two quiescent states. */
struct tenant {
	struct netns *ns;
	struct nat_pool_use use;
	struct nat_request request;
};

static struct ct *ct;
static struct nat *nat;
static struct netns_registry *registry;
static struct tenant *tenant; /* RCU */
static uint64_t clock_ns = 1000 * SL_NSEC_PER_SEC;
static unsigned int workers = 2;

static struct sl_now
get_now(void)
{
	return sl_now_from_ns(__atomic_load_n(&clock_ns, __ATOMIC_RELAXED));
}

static void
released(void *app, struct ct_thread *t, struct ct_entry *const e[], unsigned int n)
{
	(void)app;
	nat_released(nat_thread(nat, ct_thread_index(t)), e, n);
}

static void
aborted(void *app, struct ct_thread *t, struct ct_entry *e)
{
	(void)app;
	nat_aborted(nat_thread(nat, ct_thread_index(t)), e);
}

/* Odd hosts speak TCP. */
static void
packet(struct pkt *p, struct netns *ns, uint32_t host, uint8_t flags)
{
	static uint8_t header[20] = {[7] = 1, [12] = 0x50};
	uint8_t proto = host % 2 == 0 ? IPPROTO_UDP : IPPROTO_TCP;

	memset(p, 0, sizeof(*p));
	p->flags = PKT_IP;
	p->proto = proto;
	p->ip_bytes = 40;
	p->ns = ns;
	p->l4 = header;
	p->l4_len = p->l4_hdr_len = sizeof(header);
	p->tcp_flags = flags;
	p->tuple = (struct tuple){.scope = ns->id, .family = TUPLE_IPV4, .proto = proto};
	p->tuple.src.w[0] = rte_cpu_to_be_32(0x0a000000u + host / 4);
	p->tuple.dst.w[0] = RTE_BE32(0xc0000250);
	p->tuple.sport = rte_cpu_to_be_16((uint16_t)(40000 + host % 4));
	p->tuple.dport = RTE_BE16(53);
}

/* A packet of a connection that is there: it goes on, is reset, or deleted. */
static void
go_on(struct ct_thread *t, struct pkt *p, uint32_t host)
{
	if (host % 3 == 0) {
		ct_kill(t, p);
		return;
	}
	if (host % 5 == 0)
		p->tcp_flags = PKT_TCP_RST;
	ct_track(t, p, get_now());
}

static bool
fair(const struct pkt *p)
{
	return p->reason == SL_DROP_NAT_EXHAUSTED || p->reason == SL_DROP_NAT_HOST_LIMIT;
}

static enum ct_verdict
open_host(struct ct_thread *t, struct nat_thread *n, const struct tenant *of, uint32_t host)
{
	struct pkt p;
	enum ct_verdict v;

	packet(&p, of->ns, host, PKT_TCP_SYN);
	ct_lookup_bulk(t, &p, 1);
	if (p.ct != NULL) {
		go_on(t, &p, host);
		return CT_LOST;
	}
	if (!netns_alive(of->ns) || ct_begin(t, &p, get_now()) != CT_OK)
		return CT_DROP;
	if (host % 101 == 0) {
		ct_abort(t, &p);
		return CT_DROP;
	}
	v = nat_commit(n, &p, &of->request);
	REQUIRE(v != CT_DROP || fair(&p));
	return v;
}

/* From outside, to a port that somebody may have. */
static void
come_in(struct ct_thread *t, struct nat_thread *n, const struct tenant *of, uint32_t random)
{
	uint16_t port = (uint16_t)(5000 + random % PORTS);
	struct pkt p;

	packet(&p, of->ns, 2 * (random >> 16 & 0xff), 0);
	p.tuple.src.w[0] = RTE_BE32(0xc0000250);
	p.tuple.dst.w[0] = RTE_BE32(0xcb007101);
	p.tuple.sport = rte_cpu_to_be_16((uint16_t)(1000 + (random >> 16 & 0xff)));
	p.tuple.dport = rte_cpu_to_be_16(port);
	ct_lookup_bulk(t, &p, 1);
	if (p.ct != NULL || ct_begin(t, &p, get_now()) != CT_OK)
		return;
	if (nat_inbound(n, &p, &(uint16_t){0}) != CT_MISS && p.ct->status & CT_DST_NAT)
		nat_commit(n, &p, NULL);
	else
		ct_abort(t, &p);
}

static void *
work(void *arg)
{
	unsigned int index = (unsigned int)(uintptr_t)arg, i;
	struct ct_thread *t = ct_thread(ct, index);
	struct nat_thread *n = nat_thread(nat, index);
	uint64_t x = 88172645463325252u + index;

	sl_rcu_register_thread();
	for (i = 0; i < TURNS; i++) {
		const struct tenant *of = sl_rcu_dereference(&tenant);

		open_host(t, n, of, (uint32_t)next_random(&x) % HOSTS);
		if (i % 8 == 0)
			come_in(t, n, of, (uint32_t)(next_random(&x) >> 32));
		if (i % 16 == 0)
			ct_sweep(t, false, get_now());
		__atomic_add_fetch(&clock_ns, TURN_NS, __ATOMIC_RELAXED);
		sl_rcu_quiescent();
	}
	sl_rcu_unregister_thread();
	__atomic_sub_fetch(&workers, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- control ---- */

static struct tenant *
tenant_new(unsigned int nth)
{
	struct nat_pool_range range = {
		.lo.w[0] = RTE_BE32(0xcb007101), .hi.w[0] = RTE_BE32(0xcb007101)};
	const struct nat_pool_config config = {.name = "p", .family = TUPLE_IPV4, .range = &range,
		.n = 1, .port_lo = 5000, .port_hi = 5000 + PORTS - 1};
	struct tenant *of = calloc(1, sizeof(*of));
	struct sl_err err;
	char text[16];
	const char *name = text;

	REQUIRE(of != NULL);
	snprintf(text, sizeof(text), "t%u", nth);
	REQUIRE(netns_create_batch(registry, &name, 1, netns_init_ns(registry), &of->ns, &err) ==
		0);
	REQUIRE(nat_netns_enable(nat, of->ns, &err) == 0);
	REQUIRE(nat_pool_add(nat, of->ns, &config, &of->use.pool, &err) == 0);
	of->use.endpoint_independent = nth % 4 % 2 == 1;
	of->use.filter = NAT_FILTER_PORT;
	if (of->use.endpoint_independent)
		of->use.filter = nth % 4 == 1 ? NAT_FILTER_ADDRESS : NAT_FILTER_NONE;
	of->use.block_size = nth % 4 >= 2 ? BLOCK : 0;
	of->use.blocks = nth % 4 >= 2 ? 2 : 0;
	REQUIRE(nat_pool_prepare(nat, &of->use, NULL, 0, &err) == 0);
	nat_pool_request(&of->request, &of->use);
	return of;
}

/* Workers do not find it any more. */
static void
tenant_end(struct tenant *of)
{
	struct nat_pool_stats s;
	uint64_t destroyed = 0;
	struct ct_walk w;

	netns_kill_batch(registry, &of->ns, 1);
	sl_rcu_synchronize();
	ct_walk_start(ct, &w, get_now());
	while (ct_purge_slice(ct_thread(ct, 2), &w, 1024, &destroyed))
		;
	sl_rcu_synchronize();
	nat_pool_stats(of->use.pool, &s);
	REQUIRE(s.connections == 0);
	REQUIRE(s.used == 0);
	REQUIRE(s.high <= s.capacity + 3); /* one that goes and one that comes, for each thread */
	nat_netns_free(of->ns);
	netns_free_batch(registry, &of->ns, 1);
	free(of);
}

static void
flush(struct ct_thread *t)
{
	const struct ct_filter all = {.ns = NULL};
	uint64_t n = 0;
	struct ct_walk w;

	ct_walk_start(ct, &w, get_now());
	while (ct_flush_slice(t, &w, &all, 1024, get_now(), &n))
		;
}

static unsigned int
control(void)
{
	struct tenant *next, *old;
	unsigned int nth = 0, i;

	do {
		for (i = 0; i < 4; i++) {
			flush(ct_thread(ct, 2));
			sched_yield();
		}
		old = tenant;
		next = tenant_new(++nth);
		sl_rcu_publish(&tenant, next);
		tenant_end(old);
	} while (__atomic_load_n(&workers, __ATOMIC_ACQUIRE) > 0);
	return nth;
}

/* All ports of a pool that was used up can be had; or all blocks, each by one host. */
static void
check_all_ports(unsigned int nth)
{
	struct tenant *of = tenant_new(nth);
	unsigned int i, n = 0;

	for (i = 0; i < 4 * PORTS; i++)
		n += open_host(ct_thread(ct, 0), nat_thread(nat, 0), of, 2 * (i * 3 + 1)) == CT_OK;
	REQUIRE(n == (of->use.block_size != 0 ? PORTS / BLOCK : PORTS));
	tenant_end(of);
}

int
main(void)
{
	struct ct_config config = {.max_entries = 20000, .buckets = 16384, .threads = 3,
		.hash = SL_HASH_SIPHASH, .ops = {.destroyed = released, .aborted = aborted}};
	struct nat_config nat_config = {.threads = 3, .max_sources = 20000,
		.hash = SL_HASH_SIPHASH};
	pthread_t thread[2];
	unsigned int nth;
	struct sl_err err;
	uintptr_t i;

	registry = config.netns = netns_registry_create(3, 16, &err);
	ct = nat_config.ct = ct_create(&config, &err);
	nat = nat_create(&nat_config, &err);
	REQUIRE(ct != NULL && nat != NULL);
	REQUIRE(sl_rcu_start(NULL, NULL) == 0);
	tenant = tenant_new(0);
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	nth = control();
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	tenant_end(tenant);
	REQUIRE(ct_count(ct) == 0);
	for (i = 1; i <= 4; i++)
		check_all_ports(nth + (unsigned int)i);
	sl_rcu_stop();
	nat_destroy(nat);
	ct_destroy(ct);
	netns_registry_destroy(registry);
	return 0;
}
