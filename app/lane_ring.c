/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_ring.h"

#include <stdlib.h>

#include <rte_ring_elem.h>

struct rte_ring *
lane_ring_new(unsigned int size, unsigned int count)
{
	ssize_t bytes = rte_ring_get_memsize_elem(size, count);
	struct rte_ring *ring;

	if (bytes < 0)
		return NULL;
	ring = aligned_alloc(RTE_CACHE_LINE_SIZE,
		RTE_ALIGN_CEIL((size_t)bytes, (size_t)RTE_CACHE_LINE_SIZE));
	if (ring == NULL)
		return NULL;
	if (rte_ring_init(ring, "lane", count, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0) {
		free(ring);
		return NULL;
	}
	return ring;
}
