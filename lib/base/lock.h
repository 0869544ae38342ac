/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A one-byte spinlock, small enough to live in a connection entry. Built on compiler atomics rather
 * than rte_spinlock, whose inline assembly hides the happens-before edge from thread sanitizer.
 * Holders are short: no system call, allocation or wait while one is held.
 */
#ifndef SL_LOCK_H
#define SL_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_pause.h>

#include "tsa.h"

struct SL_CAPABILITY("lock") sl_lock {
	uint8_t held;
};

static inline bool
sl_trylock(struct sl_lock *l) SL_TRY_ACQUIRE(true, l) SL_NO_ANALYSIS
{
	return __atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void
sl_lock(struct sl_lock *l) SL_ACQUIRE(l) SL_NO_ANALYSIS
{
	while (__builtin_expect(__atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE), 0)) {
		while (__atomic_load_n(&l->held, __ATOMIC_RELAXED))
			rte_pause();
	}
}

static inline void
sl_unlock(struct sl_lock *l) SL_RELEASE(l) SL_NO_ANALYSIS
{
	__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
}

#endif
