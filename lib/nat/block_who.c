/* SPDX-License-Identifier: BSD-3-Clause */
/* Who had an address and port of a pool that is cut into blocks. */
#include "block_private.h"

/* Whose it is now, as long as it is so. */
static bool
present(struct nat_blocks *b, uint32_t block, struct nat_block *out)
{
	struct nat_block *k = &b->block[block];
	uint64_t hash = __atomic_load_n(&k->hash, __ATOMIC_RELAXED);
	struct sl_stripe *stripe = &b->stripe[hash % BLOCK_STRIPES];

	sl_lock(&stripe->lock);
	*out = *k;
	sl_unlock(&stripe->lock);
	return out->refs > 0 && out->hash == hash;
}

static enum nat_who
past(struct nat_blocks *b, uint32_t block, uint64_t time_ns, struct nat_owner *out)
{
	enum nat_who who = NAT_WHO_NOBODY;
	const struct nat_block_past *k;
	uint64_t i, oldest;

	sl_lock(&b->past_lock);
	oldest = b->n_past > b->past_mask ? b->n_past - b->past_mask - 1 : 0;
	for (i = b->n_past; i > oldest && who == NAT_WHO_NOBODY; i--) {
		k = &b->past[(i - 1) & b->past_mask];
		if (k->block != block || k->from_ns > time_ns || k->to_ns < time_ns)
			continue;
		out->family = k->family;
		out->host = k->host;
		out->from_ns = k->from_ns;
		out->to_ns = k->to_ns;
		who = NAT_WHO_HOST;
	}
	if (who == NAT_WHO_NOBODY && b->forgotten_ns >= time_ns)
		who = NAT_WHO_FORGOTTEN;
	sl_unlock(&b->past_lock);
	return who;
}

enum nat_who
nat_pool_who(const struct nat_pool *pool, const struct tuple_addr *addr, uint16_t port,
	uint64_t time_ns, struct nat_owner *out)
{
	struct nat_blocks *b = pool->blocks;
	struct nat_block_place place;
	struct nat_block now;
	uint32_t block;

	*out = (struct nat_owner){0};
	if (b == NULL)
		return NAT_WHO_CONNECTIONS;
	if (port < b->port_lo || (port - b->port_lo) / b->size >= b->per_addr)
		return NAT_WHO_NOBODY;
	block = (uint32_t)nat_pool_index(pool, addr) * b->per_addr + (port - b->port_lo) / b->size;
	nat_blocks_place(pool, block, &place);
	out->port_lo = place.lo;
	out->port_hi = place.hi;
	if (b->deterministic) {
		out->family = b->host_family;
		return nat_blocks_host_of(b, block, &out->host) ? NAT_WHO_HOST : NAT_WHO_NOBODY;
	}
	if (present(b, block, &now) && (time_ns == 0 || time_ns >= now.since_ns)) {
		out->family = now.family;
		out->host = now.host;
		out->from_ns = now.since_ns;
		return NAT_WHO_HOST;
	}
	return time_ns == 0 ? NAT_WHO_NOBODY : past(b, block, time_ns, out);
}
