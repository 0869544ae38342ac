/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of block*.c. */
#ifndef NAT_BLOCK_PRIVATE_H
#define NAT_BLOCK_PRIVATE_H

#include "block.h"
#include "lock.h"
#include "mem.h"
#include "stripe.h"

#define BLOCK_STRIPES 64u

struct nat_block {
	struct tuple_addr host; /* whose it is, while it has references */
	uint64_t hash;          /* of the host */
	uint64_t since_ns;
	uint32_t next; /* of the chain of the host's hash, plus one; 0: the end */
	uint32_t refs; /* atomic */
	uint16_t zone;
	uint8_t family; /* of the host */
};

/* What a block was before. */
struct nat_block_past {
	struct tuple_addr host;
	uint64_t from_ns, to_ns;
	uint32_t block;
	uint8_t family;
};

struct nat_blocks {
	/* constant */
	uint32_t n, n_addrs, per_addr;
	uint32_t size; /* ports of a block */
	uint16_t port_lo;
	uint32_t words; /* of `free` for an address */
	struct nat_block *block; /* [n] */
	struct sl_region block_region;
	/* deterministic: the hosts, in order, and how many blocks each has of one address */
	bool deterministic;
	uint32_t per_host, hosts_per_addr, n_ranges;
	struct nat_pool_range *host;
	uint8_t host_family;
	/* others: who has which; a head by its stripe */
	uint32_t *head; /* [head_mask + 1] block number plus one */
	uint32_t head_mask;
	struct sl_stripe stripe[BLOCK_STRIPES];
	/* and which are free, guarded by free_lock, which is taken under a stripe */
	struct sl_lock free_lock;
	uint32_t n_free;
	uint32_t *free_of; /* [n_addrs]: free blocks of an address */
	uint64_t *free;    /* [n_addrs][words]: bits of them */
	/* what was, the oldest overwritten; guarded by past_lock, a leaf */
	struct sl_lock past_lock;
	uint32_t past_mask;
	uint64_t n_past; /* ever */
	uint64_t forgotten_ns; /* up to here not all is known */
	struct nat_block_past *past;
};

/* ---- block_map.c ---- */

/* Whether a pool that is not cut can be cut so. 0 or -errno. */
int nat_blocks_valid(const struct nat_pool_use *use, const struct nat_pool_range *hosts,
	unsigned int n_hosts, struct sl_err *err);

/* Makes what blocks are taken from, by a use that is valid. 0 or -errno: no memory. */
int nat_blocks_init(struct nat_blocks *b, const struct nat_pool_use *use,
	const struct nat_pool_range *hosts, unsigned int n_hosts, struct sl_err *err);

/* A free block, of that address (number) if it has any; -1: there is none. */
int64_t nat_blocks_pick(struct nat_thread *t, struct nat_blocks *b, uint32_t addr);
void nat_blocks_give_back(struct nat_blocks *b, uint32_t block);

/* The first block of a host, deterministically; -1: it is none of the hosts. */
int64_t nat_blocks_of_host(
	const struct nat_blocks *b, uint8_t family, const struct tuple_addr *host);

/* The other way round. False: the block is nobody's. */
bool nat_blocks_host_of(const struct nat_blocks *b, uint32_t block, struct tuple_addr *host);

/* Where a block is. */
void nat_blocks_place(const struct nat_pool *pool, uint32_t block, struct nat_block_place *out);

#endif
