/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time as the packet path knows it: read once per burst by whoever drives the path (a worker from
 * the monotonic clock, replay from the capture) and passed down. Nothing in lib/ reads a clock.
 */
#ifndef SL_CLOCK_H
#define SL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define SL_NSEC_PER_SEC  UINT64_C(1000000000)
#define SL_NSEC_PER_MSEC UINT64_C(1000000)
#define SL_MSEC_PER_SEC  1000u

/* The longest timeout, in seconds: a deadline must stay less than half the range of ms ahead. */
#define SL_TIMEOUT_MAX 2147000u

struct sl_now {
	uint64_t ns; /* monotonic, any origin */
	uint32_t ms; /* the same in milliseconds; wraps, compare with sl_ms_passed() only */
};

static inline struct sl_now
sl_now_from_ns(uint64_t ns)
{
	return (struct sl_now){.ns = ns, .ms = (uint32_t)(ns / SL_NSEC_PER_MSEC)};
}

static inline struct sl_now
sl_now_monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return sl_now_from_ns((uint64_t)ts.tv_sec * SL_NSEC_PER_SEC + (uint64_t)ts.tv_nsec);
}

/* Milliseconds until `deadline`; zero or negative once it has passed. */
static inline int32_t
sl_ms_left(uint32_t deadline, uint32_t now_ms)
{
	return (int32_t)(deadline - now_ms);
}

static inline bool
sl_ms_passed(uint32_t deadline, uint32_t now_ms)
{
	return sl_ms_left(deadline, now_ms) <= 0;
}

#endif
