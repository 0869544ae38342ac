/* SPDX-License-Identifier: BSD-3-Clause */
/* Private to lib/netns: the registry as netns.c and counters.c share it. */
#ifndef NETNS_REGISTRY_H
#define NETNS_REGISTRY_H

#include "lock.h"
#include "netns.h"

/* Drop counters on lines of their own, so that two workers never write the same one. */
struct drop_block {
	struct netns_drops drops;
	struct drop_block *next; /* in the pool */
} __rte_cache_aligned;

struct drop_pool {
	struct sl_lock lock; /* guards `free`; taken by workers at a namespace's first drop */
	struct drop_block *free;
	struct drop_block *blocks;
	struct drop_block *unattributed; /* [threads], each written by its thread alone */
};

struct netns_registry {
	/* constant */
	unsigned int threads;
	/* shared with workers */
	struct drop_pool drops;
	/* control only */
	unsigned int alive;
	unsigned int used;      /* ids in use: alive or dying */
	uint32_t free_hint;     /* every id below is in use */
	uint32_t id_end;        /* no id at or above was ever used */
	struct netns **by_id;   /* [NETNS_MAX]; a slot is a release store of what is complete */
	uint32_t *gens;         /* [NETNS_MAX]: the last generation given out for the id */
	struct netns **names;   /* chained hash table of the ALIVE ones */
	uint32_t names_mask;
};

int drop_pool_init(struct drop_pool *p, unsigned int threads, unsigned int blocks);
void drop_pool_destroy(struct drop_pool *p);

/* Gives the namespace's blocks back; no worker uses it any more. */
void drop_pool_put(struct netns *ns);

#endif
