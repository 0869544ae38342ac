/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of translation, what a namespace has of it, and the end of an entry's. */
#include "nat_private.h"

#include <errno.h>
#include <stdlib.h>

#include "err.h"
#include "block.h"

uint64_t
nat_random(struct nat_thread *t)
{
	_Static_assert(sizeof(t->random) >= SL_HASH_LEN, "the hash reads all of it");
	t->random[0]++;
	return sl_hash(&t->nat->hasher, t->random);
}

static int
init(struct nat *nat, const struct nat_config *config, struct sl_err *err)
{
	int ret = sl_hasher_init(&nat->hasher, config->hash, config->seed);
	unsigned int i;

	if (ret < 0)
		return sl_refuse(err, -ret, "no key for random choices");
	nat->ops = config->ops;
	nat->ct = config->ct;
	nat->n_threads = config->threads;
	/* Pages of it are there from the first pool whose number is in them. */
	nat->pool = calloc(NAT_POOLS_MAX + 1, sizeof(struct nat_pool *));
	if (nat->pool == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	nat->thread = aligned_alloc(RTE_CACHE_LINE_SIZE, config->threads * sizeof(*nat->thread));
	if (nat->thread == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	memset(nat->thread, 0, config->threads * sizeof(*nat->thread));
	for (i = 0; i < config->threads; i++) {
		nat->thread[i].nat = nat;
		nat->thread[i].ct = ct_thread(config->ct, i);
		nat->thread[i].index = i;
		nat->thread[i].random[1] = i;
		nat->thread[i].ip_id = (uint16_t)i;
	}
	for (i = 0; i < NAT_IP_IDS; i++)
		nat->ip_id[i] = (uint16_t)nat_random(&nat->thread[0]);
	nat->sources = nat_sources_create(config->max_sources, config->hash, config->seed, err);
	if (nat->sources == NULL)
		return -ENOMEM;
	nat->crowds = nat_crowds_create(config->hash, config->seed, err);
	return nat->crowds != NULL ? 0 : -ENOMEM;
}

struct nat *
nat_create(const struct nat_config *config, struct sl_err *err)
{
	struct nat *nat = aligned_alloc(RTE_CACHE_LINE_SIZE,
		RTE_ALIGN(sizeof(*nat), RTE_CACHE_LINE_SIZE));

	if (nat == NULL) {
		sl_refuse(err, ENOMEM, "out of memory");
		return NULL;
	}
	memset(nat, 0, sizeof(*nat));
	if (init(nat, config, err) < 0) {
		nat_destroy(nat);
		return NULL;
	}
	return nat;
}

void
nat_destroy(struct nat *nat)
{
	unsigned int i;

	if (nat == NULL)
		return;
	for (i = 0; nat->pool != NULL && i <= NAT_POOLS_MAX; i++)
		if (nat->pool[i] != NULL)
			nat_pool_free(nat->pool[i]);
	free(nat->pool);
	nat_crowds_destroy(nat->crowds);
	nat_sources_destroy(nat->sources);
	free(nat->thread);
	free(nat);
}

struct nat_thread *
nat_thread(struct nat *nat, unsigned int index)
{
	return &nat->thread[index];
}

int
nat_set_max(struct nat *nat, uint32_t max, struct sl_err *err)
{
	return nat->exclusive ? nat_sources_grow(nat->sources, max, err) : 0;
}

/* ---- namespaces ---- */

int
nat_netns_enable(struct nat *nat, struct netns *ns, struct sl_err *err)
{
	struct nat_netns *n;

	if (ns->nat != NULL)
		return 0;
	n = calloc(1, sizeof(*n) + nat->n_threads * sizeof(n->counters[0]));
	if (n == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	n->nat = nat;
	n->threads = nat->n_threads;
	sl_rcu_publish(&ns->nat, n);
	return 0;
}

void
nat_netns_free(struct netns *ns)
{
	struct nat_pool *pool;

	while ((pool = ns->pools) != NULL) {
		ns->pools = pool->next;
		nat_pool_free(pool);
	}
	free(ns->nat);
	ns->nat = NULL;
}

void
nat_netns_totals(const struct netns *ns, struct nat_counters *out)
{
	const struct nat_netns *n = ns->nat;
	uint64_t *sum = (uint64_t *)(void *)out;
	unsigned int t, i;

	memset(out, 0, sizeof(*out));
	for (t = 0; n != NULL && t < n->threads; t++) {
		const uint64_t *c = (const uint64_t *)(const void *)&n->counters[t];

		for (i = 0; i < sizeof(*out) / sizeof(*sum); i++)
			sum[i] += __atomic_load_n(&c[i], __ATOMIC_RELAXED);
	}
}

/* ---- requests ---- */

static int
addresses_valid(const struct nat_request *r, struct sl_err *err)
{
	unsigned int len = r->family == TUPLE_IPV4 ? 4 : 16;

	if (r->family != TUPLE_IPV4 && r->family != TUPLE_IPV6)
		return sl_refuse(err, EINVAL, "an address is neither IPv4 nor IPv6");
	if (r->flags & NAT_PREFIX) {
		if (r->prefix_len > len * 8)
			return sl_refuse(err, EINVAL, "a prefix has at most %u bits", len * 8);
		return 0;
	}
	if (memcmp(&r->min, &r->max, len) > 0)
		return sl_refuse(err, EINVAL, "the first address of a range is above the last");
	return 0;
}

int
nat_request_valid(const struct nat_request *r, struct sl_err *err)
{
	if (r->flags & NAT_PREFIX && !(r->flags & NAT_ADDR))
		return sl_refuse(err, EINVAL, "a prefix to translate to is missing");
	if (r->flags & NAT_PREFIX && r->flags & NAT_PORTS)
		return sl_refuse(err, EINVAL, "a prefix goes without ports");
	if (r->flags & NAT_PORTS && r->port_min == 0)
		return sl_refuse(err, EINVAL, "port 0 is none");
	if (r->flags & NAT_PORTS && r->port_min > r->port_max)
		return sl_refuse(err, EINVAL, "the first port of a range is above the last");
	return r->flags & NAT_ADDR ? addresses_valid(r, err) : 0;
}

/* ---- the end of an entry ---- */

/* The port of an exclusive mapping. */
static void
free_end(struct nat *nat, const struct tuple *end)
{
	struct tuple key = *end;

	key.dport = 0;
	nat_crowd_free_port(nat->crowds, &key, rte_be_to_cpu_16(end->dport));
}

static void
free_port(struct nat *nat, const struct tuple *t)
{
	bool by_id = nat_is_icmp(t->proto);
	struct tuple key = *t;
	rte_be16_t *port = nat_reply_port(&key, by_id);
	uint16_t was = rte_be_to_cpu_16(*port);

	*port = 0;
	nat_crowd_free_port(nat->crowds, &key, was);
}

void
nat_put_source(struct nat_thread *t, uint32_t ref)
{
	struct nat *nat = t->nat;
	struct nat_source_gone gone;
	struct nat_pool *pool;

	while (ref != 0 && nat_source_put(nat->sources, ref, &gone)) {
		ref = gone.mapping;
		if (!gone.exclusive)
			continue;
		pool = nat_pool_of(nat, gone.pool);
		if (unlikely(nat_crowds_any(nat->crowds)))
			free_end(nat, &gone.end);
		if (gone.block != 0)
			nat_block_put(t, pool, gone.block - 1);
		else
			nat_pool_count(t, pool, nat_class(gone.end.proto), -1);
	}
}

/* What the embryo or entry has references to. */
static void
give_back(struct nat_thread *t, const struct nat_slot *slot)
{
	if (slot->source != 0)
		nat_put_source(t, slot->source);
	if (slot->end[CT_ORIGINAL].flags & NAT_SLOT_ADMITTED)
		nat_put_source(t, slot->block);
	else if (slot->block != 0)
		nat_block_put(t, nat_pool_of(t->nat, slot->end[CT_REPLY].pool), slot->block - 1);
}

/* A port may be taken by connections that are not translated, too, in either direction. */
static void
release(struct nat_thread *t, const struct ct_entry *e)
{
	const struct nat_slot *slot = nat_slot_const(e);
	struct nat_pool *pool;

	if (unlikely(nat_crowds_any(t->nat->crowds))) {
		free_port(t->nat, &e->reply.tuple);
		free_port(t->nat, &e->orig.tuple);
	}
	give_back(t, slot);
	if (slot->end[CT_REPLY].pool == 0)
		return;
	pool = nat_pool_of(t->nat, slot->end[CT_REPLY].pool);
	netns_counter_add(&pool->counters[t->index].connections, -1);
	if (slot->end[CT_ORIGINAL].flags & NAT_SLOT_PORT)
		nat_pool_count(t, pool, nat_class(e->orig.tuple.proto), -1);
}

void
nat_released(struct nat_thread *t, struct ct_entry *const e[], unsigned int n)
{
	const struct nat_sources *s = t->nat->sources;
	uint32_t ref[CT_DESTROY_MAX];
	unsigned int i, refs = 0;

	for (i = 0; i < n; i++) {
		ref[refs] = nat_slot_const(e[i])->source;
		if (ref[refs] != 0)
			nat_source_put_prefetch(s, ref[refs++]);
	}
	for (i = 0; i < refs; i++)
		nat_source_put_prefetch_heads(s, ref[i]);
	for (i = 0; i < n; i++)
		release(t, e[i]);
}

void
nat_aborted(struct nat_thread *t, struct ct_entry *e)
{
	give_back(t, nat_slot(e));
}

bool
nat_masqueraded(const struct ct_view *v, const void *arg)
{
	const struct nat_address *a = arg;
	const struct tuple *reply = &v->entry.reply.tuple;

	return v->entry.ns->id == a->ns_id && v->entry.ns_gen == a->ns_gen &&
	       v->entry.status & CT_SRC_NAT &&
	       nat_slot_const(&v->entry)->end[CT_ORIGINAL].flags & NAT_SLOT_MASQUERADE &&
	       reply->family == a->family && memcmp(&reply->dst, &a->addr, sizeof(a->addr)) == 0;
}
