/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring between one worker and the control thread: of the trace and of events. */
#ifndef LANE_RING_H
#define LANE_RING_H

struct rte_ring;

/*
 * One producer, one consumer, `count` elements (2^n) of `size` bytes (a multiple of 4). It is to be
 * given back with free(). NULL: no memory, or no such ring.
 */
struct rte_ring *lane_ring_new(unsigned int size, unsigned int count);

#endif
