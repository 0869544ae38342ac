/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's environment, made from the few options that users know. Workers get an lcore each, pinned
 * to its core; the control thread is the main lcore and may run on any, so that it never waits
 * behind a polling worker that shares its core. Memory for packet buffers is taken in huge pages,
 * or in normal ones when there are too few.
 */
#ifndef EAL_H
#define EAL_H

#include <stdbool.h>

#include "gateway.h"

struct sl_err;

#define EAL_MEMORY_DEFAULT 256u /* MB */
#define EAL_MEMORY_MIN     32u

struct eal_options {
	const char *workers; /* list of cores, such as "0-1" or "1,3"; NULL: all but the first */
	bool no_huge;
	unsigned int memory; /* MB for packet buffers and ports; 0: EAL_MEMORY_DEFAULT */
	const char *extra;   /* arguments for EAL as they are; NULL: none */
};

/* Starts EAL. *n_workers and lcores[] are set. 0 or -errno with a message that says what to do. */
int eal_start(const struct eal_options *options, unsigned int lcores[GW_WORKERS_MAX],
	unsigned int *n_workers, struct sl_err *err);

/* The number of packet buffers that the memory has room for, with some left for ports; after
 * eal_start(). */
unsigned int eal_buffers(const struct eal_options *options);

/* Parses a list of cores to a sorted set; for tests. The number of cores or -EINVAL. */
int eal_parse_cores(const char *text, unsigned int cores[GW_WORKERS_MAX], struct sl_err *err);

#endif
