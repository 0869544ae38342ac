/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of a source counted in the ways that the kernel's connlimit had before and after it
 * was made to scale, as the announcement of that work describes them. A record of each connection
 * is kept by the key's hash, in 256 places; which of the records still are connections is found out
 * at each count by looking them up in conntrack.
 *
 *   CONNCOUNT_ONE_LOCK   a list in each place, one lock for all
 *   CONNCOUNT_LISTS      a list in each place, a lock each
 *   CONNCOUNT_TREES      a tree of keys in each place, a list in each key, a lock for each place
 */
#ifndef BENCH_CONNCOUNT_H
#define BENCH_CONNCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "conntrack.h"

enum conncount_kind { CONNCOUNT_ONE_LOCK, CONNCOUNT_LISTS, CONNCOUNT_TREES };

struct conncount;

struct conncount *conncount_create(enum conncount_kind kind);
void conncount_destroy(struct conncount *c);

/* Records a connection by the source of its tuple. */
void conncount_record(struct conncount *c, const struct pkt *p);

/* The same, and how many connections of its source are live with it. */
uint32_t conncount_weigh(struct conncount *c, struct ct_thread *t, const struct pkt *p);

#endif
