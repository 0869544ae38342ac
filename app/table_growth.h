/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of all grows by itself (sluice.table_growth): when there are more connections than
 * three eighths of its buckets, and chains are as long as that makes them, a resize as
 * nf_conntrack_buckets makes it takes it to the next power of two. A running gateway looks by the
 * clock, replay after each packet.
 */
#ifndef TABLE_GROWTH_H
#define TABLE_GROWTH_H

#include "gateway.h"

struct sl_err;

int table_growth_create(struct gateway *gw, struct sl_err *err);
void table_growth_free(struct gateway *gw);

/* From now on looks a few times a second, on the event loop. */
void table_growth_start(struct gateway *gw);
void table_growth_stop(struct gateway *gw);

/* Whether there are too many connections for the buckets, which is all that is cheap to know. */
bool table_growth_due(struct gateway *gw);

/* Begins to grow if there is need. Without an event loop it is done on return; the caller is no
 * RCU reader then. */
void table_growth_check(struct gateway *gw);

#endif
