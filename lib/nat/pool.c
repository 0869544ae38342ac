/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pools: what they are made of, and what is counted of them.
 *
 * A pool is constant but for its counts, and lives as pool.h says. Counts that come and go with
 * connections are each thread's own; of what is in use each thread keeps some to itself, and adds
 * it to the pool's when it is more than a small part of the capacity, which is when the highest use
 * and the alarm are looked at. In small pools that part is nothing, and both are exact.
 */
#include "block.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "err.h"
#include "knobs.h"

#define PORT_LO 1024u /* where nothing is said: those that anyone may have */
#define PORT_HI 65535u

#define BATCH_SHARE  4096u /* of the capacity a thread may keep to itself */
#define BATCH_MAX    64u
#define HYSTERESIS   5u /* percent of the capacity */
#define EXHAUSTED_NS SL_NSEC_PER_SEC

/* ---- what it is made of ---- */

static bool
overlap(const struct nat_pool_range *a, const struct nat_pool_range *b)
{
	return memcmp(&a->lo, &b->hi, sizeof(a->lo)) <= 0 &&
	       memcmp(&b->lo, &a->hi, sizeof(a->lo)) <= 0;
}

static int
refuse_overlap(const struct nat_pool_config *c, unsigned int nth, const char *other,
	struct sl_err *err)
{
	if (other == NULL)
		return sl_refuse(err, EINVAL,
			"pool \"%s\": range %u has addresses of one before it", c->name, nth + 1);
	return sl_refuse(err, EEXIST, "pool \"%s\": range %u has addresses of pool \"%s\"", c->name,
		nth + 1, other);
}

static int
ranges_free(const struct netns *ns, const struct nat_pool_config *c, struct sl_err *err)
{
	const struct nat_pool *p;
	unsigned int i, k;

	for (i = 0; i < c->n; i++) {
		for (k = 0; k < i; k++)
			if (overlap(&c->range[i], &c->range[k]))
				return refuse_overlap(c, i, NULL, err);
		for (p = ns->pools; p != NULL; p = p->next)
			for (k = 0; p->config.family == c->family && k < p->config.n; k++)
				if (overlap(&c->range[i], &p->config.range[k]))
					return refuse_overlap(c, i, p->name, err);
	}
	return 0;
}

static int
config_valid(const struct netns *ns, const struct nat_pool_config *c, struct sl_err *err)
{
	unsigned int i;

	if (nat_pool_find(ns, c->name) != NULL)
		return sl_refuse(err, EEXIST, "pool \"%s\" exists in namespace \"%s\"", c->name,
			ns->name);
	if (c->n == 0)
		return sl_refuse(err, EINVAL, "pool \"%s\" has no address", c->name);
	for (i = 0; i < c->n; i++)
		if (memcmp(&c->range[i].lo, &c->range[i].hi, sizeof(c->range[i].lo)) > 0)
			return sl_refuse(err, EINVAL, "pool \"%s\": range %u ends before it begins",
				c->name, i + 1);
	if (c->port_lo > c->port_hi)
		return sl_refuse(err, EINVAL, "pool \"%s\": the ports end before they begin",
			c->name);
	if (c->port_hi != 0 && c->port_lo == 0)
		return sl_refuse(err, EINVAL, "pool \"%s\": port 0 is none", c->name);
	return ranges_free(ns, c, err);
}

static void
set_parts(struct nat_pool *p, const struct nat_pool_config *c)
{
	struct nat_pool_range *range = (struct nat_pool_range *)(void *)(p->part + c->n);
	nat_u128 n;
	unsigned int i;

	memcpy(range, c->range, c->n * sizeof(*range));
	p->config.range = range;
	for (i = 0; i < c->n; i++) {
		p->part[i] = (struct nat_pool_part){.range = c->range[i], .before = p->size};
		n = nat_addr_count(&c->range[i].lo, &c->range[i].hi, c->family);
		p->size = p->size + n < n ? ~(nat_u128)0 : p->size + n;
	}
}

static uint64_t
saturate(nat_u128 n)
{
	return n > UINT64_MAX ? UINT64_MAX : (uint64_t)n;
}

static void
set_capacity(struct nat_pool *p, nat_u128 capacity)
{
	__atomic_store_n(&p->capacity, saturate(capacity), __ATOMIC_RELAXED);
	__atomic_store_n(&p->batch, (uint32_t)RTE_MIN(saturate(capacity) / BATCH_SHARE, BATCH_MAX),
		__ATOMIC_RELAXED);
}

static struct nat_pool *
pool_new(struct nat *nat, const struct nat_pool_config *c)
{
	size_t size = sizeof(struct nat_pool) + nat->n_threads * sizeof(struct nat_pool_counters);
	struct nat_pool *p = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	unsigned int ports;

	if (p == NULL)
		return NULL;
	memset(p, 0, size);
	p->part = calloc(c->n, sizeof(*p->part) + sizeof(struct nat_pool_range));
	if (p->part == NULL) {
		free(p);
		return NULL;
	}
	p->nat = nat;
	snprintf(p->name, sizeof(p->name), "%s", c->name);
	p->config = *c;
	p->config.name = p->name;
	set_parts(p, c);
	p->port_lo = c->port_hi != 0 ? c->port_lo : PORT_LO;
	p->port_hi = c->port_hi != 0 ? c->port_hi : PORT_HI;
	ports = p->port_hi - p->port_lo + 1u;
	set_capacity(p, p->size > UINT64_MAX / ports ? ~(nat_u128)0 : p->size * ports);
	return p;
}

/* The number of a new pool; 0: there are too many. */
static uint16_t
free_id(struct nat *nat)
{
	unsigned int i;

	for (i = 0; i < NAT_POOLS_MAX; i++) {
		nat->last_pool = nat->last_pool % NAT_POOLS_MAX + 1;
		if (nat->pool[nat->last_pool] == NULL)
			return (uint16_t)nat->last_pool;
	}
	return 0;
}

int
nat_pool_add(struct nat *nat, struct netns *ns, const struct nat_pool_config *config,
	struct nat_pool **out, struct sl_err *err)
{
	int ret = config_valid(ns, config, err);
	struct nat_pool *p, **at;
	uint16_t id;

	if (ret != 0)
		return ret;
	id = free_id(nat);
	if (id == 0)
		return sl_refuse(err, ENOSPC, "pool \"%s\": there are %u, the most there can be",
			config->name, NAT_POOLS_MAX);
	p = pool_new(nat, config);
	if (p == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	p->id = id;
	p->ns = ns;
	for (at = &ns->pools; *at != NULL;)
		at = &(*at)->next;
	*at = p;
	__atomic_store_n(&nat->pool[id], p, __ATOMIC_RELEASE);
	*out = p;
	return 0;
}

void
nat_pool_remove(struct nat_pool *pool)
{
	struct nat_pool **at;

	for (at = &pool->ns->pools; *at != pool;)
		at = &(*at)->next;
	*at = pool->next;
	pool->next = NULL;
}

void
nat_pool_free(struct nat_pool *pool)
{
	__atomic_store_n(&pool->nat->pool[pool->id], NULL, __ATOMIC_RELAXED);
	nat_blocks_free(pool->blocks);
	free(pool->part);
	free(pool);
}

struct nat_pool *
nat_pool_find(const struct netns *ns, const char *name)
{
	struct nat_pool *p = ns->pools;

	while (p != NULL && strcmp(p->name, name) != 0)
		p = p->next;
	return p;
}

struct nat_pool *
nat_pool_next(const struct netns *ns, const struct nat_pool *before)
{
	return before == NULL ? ns->pools : before->next;
}

const struct nat_pool_config *
nat_pool_config(const struct nat_pool *pool)
{
	return &pool->config;
}

struct netns *
nat_pool_netns(const struct nat_pool *pool)
{
	return pool->ns;
}

bool
nat_pool_has_entry(const struct ct_view *v, const void *arg)
{
	const struct nat_pool *pool = arg;

	return nat_slot_const(&v->entry)->end[CT_REPLY].pool == pool->id;
}

/* ---- its addresses ---- */

void
nat_pool_address(const struct nat_pool *pool, nat_u128 n, struct tuple_addr *out)
{
	const struct nat_pool_part *part = pool->part;
	uint8_t family = pool->config.family;

	while (part + 1 < pool->part + pool->config.n && n >= part[1].before)
		part++;
	nat_addr_from_number(
		out, family, nat_addr_number(&part->range.lo, family) + (n - part->before));
}

bool
nat_pool_has(const struct nat_pool *pool, uint8_t family, const struct tuple_addr *addr)
{
	const struct nat_pool_range *r = pool->config.range, *end = r + pool->config.n;

	if (family != pool->config.family)
		return false;
	for (; r < end; r++)
		if (memcmp(&r->lo, addr, sizeof(*addr)) <= 0 &&
			memcmp(addr, &r->hi, sizeof(*addr)) <= 0)
			return true;
	return false;
}

nat_u128
nat_pool_index(const struct nat_pool *pool, const struct tuple_addr *addr)
{
	uint8_t family = pool->config.family;
	const struct nat_pool_part *part = pool->part;

	while (memcmp(&part->range.lo, addr, sizeof(*addr)) > 0 ||
		memcmp(addr, &part->range.hi, sizeof(*addr)) > 0)
		part++;
	return part->before + nat_addr_number(addr, family) -
	       nat_addr_number(&part->range.lo, family);
}

void
nat_pool_set_blocks(struct nat_pool *pool, struct nat_blocks *blocks, uint32_t n)
{
	set_capacity(pool, n);
	sl_rcu_publish(&pool->blocks, blocks);
}

void
nat_pool_request(struct nat_request *r, const struct nat_pool_use *use)
{
	const struct nat_pool_config *c = &use->pool->config;

	*r = (struct nat_request){
		.flags = (uint8_t)(NAT_ADDR | (c->port_hi != 0 ? NAT_PORTS : 0)),
		.family = c->family,
		.port_min = c->port_lo,
		.port_max = c->port_hi,
		.use = use,
	};
}

/* ---- what is counted ---- */

static void
report(struct nat_thread *t, const struct nat_pool *pool, enum nat_report_type type, int64_t used)
{
	const struct nat_report r = {
		.type = type,
		.pool = pool,
		.used = (uint64_t)RTE_MAX(used, 0),
		.capacity = __atomic_load_n(&pool->capacity, __ATOMIC_RELAXED),
	};

	nat_report(t, &r);
}

static int64_t
most_used(const struct nat_pool *pool)
{
	int64_t most = 0;
	unsigned int i;

	for (i = 0; i < NAT_CLASSES; i++)
		most = RTE_MAX(most, __atomic_load_n(&pool->used[i], __ATOMIC_RELAXED));
	return most;
}

/* Tells when the use passes the percentage, one way or the other. */
static void
watch(struct nat_thread *t, struct nat_pool *pool)
{
	uint64_t capacity = __atomic_load_n(&pool->capacity, __ATOMIC_RELAXED);
	nat_u128 limit = (nat_u128)capacity * netns_knobs(pool->ns)->nat_pool_alarm;
	int64_t used = most_used(pool);
	bool was = __atomic_load_n(&pool->alarm, __ATOMIC_RELAXED), is = was;

	if (was)
		is = limit != 0 && (nat_u128)used * 100 + (nat_u128)capacity * HYSTERESIS >= limit;
	else
		is = limit != 0 && (nat_u128)used * 100 >= limit;
	if (is != was && __atomic_compare_exchange_n(&pool->alarm, &was, is, false,
				 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		report(t, pool, is ? NAT_POOL_ALARM : NAT_POOL_CLEAR, used);
}

void
nat_pool_count(struct nat_thread *t, struct nat_pool *pool, enum nat_class class, int n)
{
	int32_t *pending = &pool->counters[t->index].pending[class], sum = *pending + n;
	int64_t used, high;

	if (likely((uint32_t)abs(sum) <= __atomic_load_n(&pool->batch, __ATOMIC_RELAXED))) {
		__atomic_store_n(pending, sum, __ATOMIC_RELAXED);
		return;
	}
	__atomic_store_n(pending, 0, __ATOMIC_RELAXED);
	used = __atomic_add_fetch(&pool->used[class], sum, __ATOMIC_RELAXED);
	high = __atomic_load_n(&pool->high, __ATOMIC_RELAXED);
	while (used > high && !__atomic_compare_exchange_n(&pool->high, &high, used, true,
				      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	watch(t, pool);
}

void
nat_pool_exhausted(struct nat_thread *t, struct nat_pool *pool)
{
	uint64_t now = nat_clock(t), told = __atomic_load_n(&pool->exhausted_ns, __ATOMIC_RELAXED);

	netns_counter_add(&pool->counters[t->index].exhausted, 1);
	if (told != 0 && now - told < EXHAUSTED_NS)
		return;
	if (__atomic_compare_exchange_n(&pool->exhausted_ns, &told, RTE_MAX(now, UINT64_C(1)),
		    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		report(t, pool, NAT_POOL_EXHAUSTED, most_used(pool));
}

void
nat_pool_stats(const struct nat_pool *pool, struct nat_pool_stats *out)
{
	int64_t used[NAT_CLASSES], most = 0, connections = 0;
	unsigned int t, i;

	*out = (struct nat_pool_stats){
		.addresses = saturate(pool->size),
		.alarm = __atomic_load_n(&pool->alarm, __ATOMIC_RELAXED),
		.capacity = __atomic_load_n(&pool->capacity, __ATOMIC_RELAXED),
	};
	if (pool->blocks != NULL) {
		out->block_size = nat_blocks_size(pool->blocks);
		out->deterministic = nat_blocks_deterministic(pool->blocks);
	}
	for (i = 0; i < NAT_CLASSES; i++)
		used[i] = __atomic_load_n(&pool->used[i], __ATOMIC_RELAXED);
	for (t = 0; t < pool->nat->n_threads; t++) {
		const struct nat_pool_counters *c = &pool->counters[t];

		connections += __atomic_load_n(&c->connections, __ATOMIC_RELAXED);
		out->bound += __atomic_load_n(&c->bound, __ATOMIC_RELAXED);
		out->exhausted += __atomic_load_n(&c->exhausted, __ATOMIC_RELAXED);
		for (i = 0; i < NAT_CLASSES; i++)
			used[i] += __atomic_load_n(&c->pending[i], __ATOMIC_RELAXED);
	}
	for (i = 0; i < NAT_CLASSES; i++)
		most = RTE_MAX(most, used[i]);
	out->used = (uint64_t)most;
	out->high = (uint64_t)RTE_MAX(most, __atomic_load_n(&pool->high, __ATOMIC_RELAXED));
	out->connections = (uint64_t)RTE_MAX(connections, 0);
}
