/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lock stripes: an array of locks, one of which guards all lines of a hash table whose number is
 * equal to the stripe's modulo their count. A pair stands for the stripes of the two tuples of a
 * connection. Order: by (address of the table's stripe array, stripe), which is what the address of
 * the lock itself gives; one lock when both are the same. sl_stripes_lock() is the only place where
 * two stripes are taken.
 */
#ifndef SL_STRIPE_H
#define SL_STRIPE_H

#include <rte_common.h>

#include "lock.h"

struct sl_stripe {
	struct sl_lock lock;
} __rte_cache_aligned;

struct SL_CAPABILITY("stripe pair") sl_stripes {
	struct sl_stripe *first;
	struct sl_stripe *second; /* NULL: both tuples share the first */
};

static inline void
sl_stripes_lock(struct sl_stripes *p, struct sl_stripe *a, struct sl_stripe *b)
	SL_ACQUIRE(p) SL_NO_ANALYSIS
{
	p->first = a <= b ? a : b;
	p->second = a == b ? NULL : (a < b ? b : a);
	sl_lock(&p->first->lock);
	if (p->second != NULL)
		sl_lock(&p->second->lock);
}

static inline void
sl_stripes_unlock(struct sl_stripes *p) SL_RELEASE(p) SL_NO_ANALYSIS
{
	if (p->second != NULL)
		sl_unlock(&p->second->lock);
	sl_unlock(&p->first->lock);
}

#endif
