/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor of the table's benchmark: arrays as large as the table's, and loops that touch as many
 * random cache lines of them, where an entry's address depends on what is in the bucket line, a
 * burst at a time with the same prefetches. No hash, no comparison, no lock.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <stdint.h>

#include "mem.h"

enum bench_op { BENCH_HIT, BENCH_TRACK, BENCH_MISS, BENCH_INSERT, BENCH_MIXED, BENCH_OPS };

struct bench_floor {
	uint32_t n_entries, n_lines;
	struct bench_floor_line *line;
	struct bench_floor_entry *entry;
	struct sl_region lines, entries;
};

/* Dies when memory is not to be had. */
void bench_floor_create(struct bench_floor *f, uint32_t entries, uint32_t lines);
void bench_floor_destroy(struct bench_floor *f);

/* 32 operations; any but BENCH_INSERT. */
void bench_floor_burst(struct bench_floor *f, enum bench_op op, uint64_t *random);

/* n <= 32 operations that take the entries from `first` on. */
void bench_floor_insert(struct bench_floor *f, uint32_t first, unsigned int n, uint64_t *random);

#endif
