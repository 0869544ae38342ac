/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the big arrays (entry pool, bucket lines): address space is reserved once for the
 * largest size the array may ever have, so that elements never move; pages are made present when a
 * limit is raised, on the control side, so that the packet path takes no page fault. Transparent
 * huge pages are asked for; none are required.
 */
#ifndef SL_MEM_H
#define SL_MEM_H

#include <stddef.h>

struct sl_err;

struct sl_region {
	char *base;
	size_t reserved; /* bytes of address space */
	size_t present;  /* bytes from base that are backed by memory */
};

/* Reserves address space; reads as zero once present. 0 or -ENOMEM with err filled. */
int sl_region_reserve(struct sl_region *r, size_t bytes, struct sl_err *err);

/*
 * Makes the first `bytes` present; what already is stays. Refuses with -ENOMEM, and a message that
 * says how much is missing, when the machine (or its memory cgroup) has not that much available;
 * -EINVAL when it is more than was reserved.
 */
int sl_region_grow(struct sl_region *r, size_t bytes, struct sl_err *err);

/* Gives all back. A region of zeros is left alone. */
void sl_region_release(struct sl_region *r);

/* Bytes that can still be had, by the machine's own estimate and the limit of the cgroup. */
size_t sl_memory_available(void);

#endif
