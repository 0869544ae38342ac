/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which blocks there are, where they are, and which are free. Free ones are bits, address by
 * address, with their number for each address, so that a host finds one of its own address, or one
 * of the next address that has any, without looking at blocks that are taken. The lock is held for
 * that; it is taken once for a block, not for a connection.
 */
#include "block_private.h"

#include <errno.h>
#include <stdlib.h>

#include "err.h"

#define PAST_MIN 256u
#define PAST_MAX 65536u

/* ---- deterministic ---- */

static nat_u128
count_hosts(const struct nat_pool_range *hosts, unsigned int n, uint8_t family)
{
	nat_u128 sum = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		sum += nat_addr_count(&hosts[i].lo, &hosts[i].hi, family);
	return sum;
}

int64_t
nat_blocks_of_host(const struct nat_blocks *b, uint8_t family, const struct tuple_addr *host)
{
	nat_u128 before = 0, n = nat_addr_number(host, family);
	const struct nat_pool_range *r;
	uint64_t i;

	if (family != b->host_family)
		return -1;
	for (r = b->host; r < b->host + b->n_ranges; r++) {
		if (memcmp(host, &r->lo, sizeof(*host)) >= 0 &&
			memcmp(host, &r->hi, sizeof(*host)) <= 0) {
			i = (uint64_t)(before + n - nat_addr_number(&r->lo, family));
			return (int64_t)(i / b->hosts_per_addr * b->per_addr +
					 i % b->hosts_per_addr * b->per_host);
		}
		before += nat_addr_count(&r->lo, &r->hi, family);
	}
	return -1;
}

bool
nat_blocks_host_of(const struct nat_blocks *b, uint32_t block, struct tuple_addr *host)
{
	uint32_t in_addr = block % b->per_addr / b->per_host;
	nat_u128 i = (nat_u128)(block / b->per_addr) * b->hosts_per_addr + in_addr, n;
	const struct nat_pool_range *r;

	if (in_addr >= b->hosts_per_addr)
		return false;
	for (r = b->host; r < b->host + b->n_ranges; r++) {
		n = nat_addr_count(&r->lo, &r->hi, b->host_family);
		if (i < n) {
			nat_addr_from_number(host, b->host_family,
				nat_addr_number(&r->lo, b->host_family) + i);
			return true;
		}
		i -= n;
	}
	return false;
}

static int
init_deterministic(struct nat_blocks *b, const struct nat_pool_use *use,
	const struct nat_pool_range *hosts, unsigned int n_hosts, struct sl_err *err)
{
	b->deterministic = true;
	b->host_family = use->pool->config.family;
	b->per_host = use->blocks;
	b->hosts_per_addr = b->per_addr / use->blocks;
	b->host = calloc(n_hosts + 1, sizeof(*hosts));
	if (b->host == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	memcpy(b->host, hosts, n_hosts * sizeof(*hosts));
	b->n_ranges = n_hosts;
	return 0;
}

/* ---- free blocks ---- */

static int
init_free(struct nat_blocks *b, struct sl_err *err)
{
	uint32_t past = RTE_MAX(PAST_MIN, RTE_MIN(rte_align32pow2(2 * b->n), PAST_MAX)), a, i;

	b->words = (b->per_addr + 63) / 64;
	b->head_mask = rte_align32pow2(RTE_MAX(b->n, BLOCK_STRIPES)) - 1;
	b->past_mask = past - 1;
	b->head = calloc((size_t)b->head_mask + 1, sizeof(*b->head));
	b->free_of = calloc(b->n_addrs, sizeof(*b->free_of));
	b->free = calloc((size_t)b->n_addrs * b->words, sizeof(*b->free));
	b->past = calloc(past, sizeof(*b->past));
	if (b->head == NULL || b->free_of == NULL || b->free == NULL || b->past == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	for (a = 0; a < b->n_addrs; a++) {
		b->free_of[a] = b->per_addr;
		for (i = 0; i < b->per_addr; i++)
			b->free[(size_t)a * b->words + i / 64] |= UINT64_C(1) << i % 64;
	}
	b->n_free = b->n;
	return 0;
}

static uint32_t
blocks_per_addr(const struct nat_pool_use *use)
{
	return (use->pool->port_hi - use->pool->port_lo + 1u) / use->block_size;
}

int
nat_blocks_valid(const struct nat_pool_use *use, const struct nat_pool_range *hosts,
	unsigned int n_hosts, struct sl_err *err)
{
	const struct nat_pool *pool = use->pool;
	uint32_t per_addr = blocks_per_addr(use);
	nat_u128 n, room;

	if (per_addr < use->blocks)
		return sl_refuse(err, EINVAL,
			"pool \"%s\": %u blocks of %u ports are more than an address's %u ports",
			pool->name, use->blocks, use->block_size,
			pool->port_hi - pool->port_lo + 1u);
	if (pool->size > NAT_POOL_BLOCKS / per_addr)
		return sl_refuse(err, EINVAL,
			"pool \"%s\" would have more than %u blocks: take larger blocks or fewer "
			"addresses",
			pool->name, NAT_POOL_BLOCKS);
	if (!use->deterministic)
		return 0;
	n = count_hosts(hosts, n_hosts, pool->config.family);
	room = pool->size * (per_addr / use->blocks);
	if (n > room)
		return sl_refuse(err, EINVAL,
			"pool \"%s\" has blocks for %llu hosts, and the rule is for %s%llu",
			pool->name, (unsigned long long)room, n > UINT64_MAX ? "over " : "",
			(unsigned long long)RTE_MIN(n, (nat_u128)UINT64_MAX));
	return 0;
}

int
nat_blocks_init(struct nat_blocks *b, const struct nat_pool_use *use,
	const struct nat_pool_range *hosts, unsigned int n_hosts, struct sl_err *err)
{
	const struct nat_pool *pool = use->pool;
	size_t bytes;
	int ret;

	b->size = use->block_size;
	b->port_lo = pool->port_lo;
	b->per_addr = blocks_per_addr(use);
	b->n_addrs = (uint32_t)pool->size;
	b->n = b->n_addrs * b->per_addr;
	bytes = b->n * sizeof(*b->block);
	ret = sl_region_reserve(&b->block_region, bytes, err);
	if (ret == 0)
		ret = sl_region_grow(&b->block_region, bytes, err);
	if (ret != 0)
		return ret;
	b->block = (struct nat_block *)(void *)b->block_region.base;
	return use->deterministic ? init_deterministic(b, use, hosts, n_hosts, err)
				  : init_free(b, err);
}

/* The first bit that is set of those of an address, at or behind `from` and then from the first on;
 * there is one. */
static uint32_t
first_bit(const uint64_t *word, uint32_t words, uint32_t from)
{
	uint64_t bits = word[from / 64] & (~UINT64_C(0) << from % 64);
	uint32_t w = from / 64;

	while (bits == 0) {
		w = (w + 1) % words;
		bits = word[w];
	}
	return w * 64 + (uint32_t)__builtin_ctzll(bits);
}

int64_t
nat_blocks_pick(struct nat_thread *t, struct nat_blocks *b, uint32_t addr)
{
	uint32_t from = (uint32_t)(nat_random(t) % b->per_addr), at, i;
	int64_t found = -1;

	sl_lock(&b->free_lock);
	for (i = 0; b->n_free > 0 && i < b->n_addrs; i++, addr = (addr + 1) % b->n_addrs) {
		if (b->free_of[addr] == 0)
			continue;
		at = first_bit(&b->free[(size_t)addr * b->words], b->words, from);
		b->free[(size_t)addr * b->words + at / 64] &= ~(UINT64_C(1) << at % 64);
		b->free_of[addr]--;
		b->n_free--;
		found = (int64_t)addr * b->per_addr + at;
		break;
	}
	sl_unlock(&b->free_lock);
	return found;
}

void
nat_blocks_give_back(struct nat_blocks *b, uint32_t block)
{
	uint32_t addr = block / b->per_addr, at = block % b->per_addr;

	sl_lock(&b->free_lock);
	b->free[(size_t)addr * b->words + at / 64] |= UINT64_C(1) << at % 64;
	b->free_of[addr]++;
	b->n_free++;
	sl_unlock(&b->free_lock);
}

/* ---- where they are ---- */

void
nat_blocks_place(const struct nat_pool *pool, uint32_t block, struct nat_block_place *out)
{
	const struct nat_blocks *b = pool->blocks;

	out->block = block;
	nat_pool_address(pool, block / b->per_addr, &out->addr);
	out->lo = (uint16_t)(b->port_lo + block % b->per_addr * b->size);
	out->hi = (uint16_t)(out->lo + b->size - 1);
}
