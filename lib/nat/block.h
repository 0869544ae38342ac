/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of ports of a pool: inside of lib/nat. */
#ifndef NAT_BLOCK_H
#define NAT_BLOCK_H

#include "pool_private.h"

/* A block and the ports of its address that are in it. */
struct nat_block_place {
	uint32_t block; /* its number */
	struct tuple_addr addr;
	uint16_t lo, hi; /* host order, both included */
};

enum nat_block_take {
	NAT_BLOCK_TAKEN,
	NAT_BLOCK_NONE,   /* none of the pool is free */
	NAT_BLOCK_LIMIT,  /* the host has as many as it may have */
	NAT_BLOCK_FOREIGN /* deterministic: the host is none of those that the pool is for */
};

/*
 * A reference to the nth block of the host whose connection it is, which gets one when it has
 * fewer: of the address of its others, or of the one that a host prefers, while there are any. With
 * nothing held.
 */
enum nat_block_take nat_block_take(struct nat_thread *t, const struct nat_pool_use *use,
	const struct tuple *original, uint32_t nth, struct nat_block_place *out);

/* One more reference, for who has one. */
void nat_block_hold(struct nat_pool *pool, uint32_t block);

/* Gives a reference back; with the last one the block is free. With nothing held. */
void nat_block_put(struct nat_thread *t, struct nat_pool *pool, uint32_t block);

void nat_blocks_free(struct nat_blocks *b); /* takes NULL */

uint32_t nat_blocks_size(const struct nat_blocks *b); /* ports of each */
bool nat_blocks_deterministic(const struct nat_blocks *b);

#endif
