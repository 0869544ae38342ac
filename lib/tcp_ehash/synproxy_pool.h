/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records of connections that a SYN proxy translates: one type-stable array for all namespaces,
 * of which an entry has an index (entry.seqadj). A record is an entry's from synproxy_pool_get() to
 * synproxy_pool_put(), and guarded by its lock.
 *
 * Threads: as conntrack's; control uses the last one.
 */
#ifndef SYNPROXY_POOL_H
#define SYNPROXY_POOL_H

#include <stdint.h>

#include "synproxy.h"

struct sl_err;
struct synproxy_pool;
struct tcp_netns;

#define SYNPROXY_RECORDS_MAX (1u << 25) /* as entries */

/* Takes address space only: memory is made present by synproxy_pool_set_max(). NULL with err
 * filled. */
struct synproxy_pool *synproxy_pool_create(unsigned int threads, struct sl_err *err);
void synproxy_pool_destroy(struct synproxy_pool *pool); /* takes NULL */

/* Control: how many there may be in all namespaces together. What is above stays until it ends.
 * 0, -EINVAL (0, or more than SYNPROXY_RECORDS_MAX), -ENOMEM. */
int synproxy_pool_set_max(struct synproxy_pool *pool, uint32_t max, struct sl_err *err);

/* Whether that was ever called. */
bool synproxy_pool_in_use(const struct synproxy_pool *pool);

/* How many there are. */
uint64_t synproxy_pool_used(const struct synproxy_pool *pool);

/*
 * Worker. A record for a connection of the namespace, which may have `max` of them; 0: it has, or
 * all have together. The counts are taken as tcp_limit.h has it: exact when quiet.
 */
uint32_t synproxy_pool_get(
	struct synproxy_pool *pool, unsigned int thread, struct tcp_netns *tn, uint32_t max);
void synproxy_pool_put(
	struct synproxy_pool *pool, unsigned int thread, struct tcp_netns *tn, uint32_t index);

struct synproxy *synproxy_pool_at(const struct synproxy_pool *pool, uint32_t index);

#endif
