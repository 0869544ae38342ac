/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_floor.h"

#include <rte_common.h>
#include <rte_prefetch.h>

#include "bench.h"
#include "err.h"

#define BURST     32u
#define MIXED_NEW 2u

struct bench_floor_line {
	uint32_t entry;
	uint32_t written;
} __rte_cache_aligned;

struct bench_floor_entry {
	struct {
		uint64_t word;
	} __rte_cache_aligned line[4];
};

static void
get(struct sl_region *r, size_t bytes)
{
	struct sl_err err;

	if (sl_region_reserve(r, bytes, &err) < 0 || sl_region_grow(r, bytes, &err) < 0)
		bench_die("%s", err.msg);
}

void
bench_floor_create(struct bench_floor *f, uint32_t entries, uint32_t lines)
{
	uint64_t random = 1;
	uint32_t i;

	*f = (struct bench_floor){.n_entries = entries, .n_lines = lines};
	get(&f->lines, (size_t)lines * sizeof(*f->line));
	get(&f->entries, (size_t)entries * sizeof(*f->entry));
	f->line = (struct bench_floor_line *)(void *)f->lines.base;
	f->entry = (struct bench_floor_entry *)(void *)f->entries.base;
	for (i = 0; i < lines; i++)
		f->line[i].entry = bench_below(bench_random(&random), entries);
}

void
bench_floor_destroy(struct bench_floor *f)
{
	sl_region_release(&f->lines);
	sl_region_release(&f->entries);
}

static inline struct bench_floor_line *
random_line(struct bench_floor *f, uint64_t *random)
{
	return &f->line[bench_below(bench_random(random), f->n_lines)];
}

/* What the compiler must believe to be used. */
static inline void
use(uint64_t v)
{
	__asm__ volatile("" : : "r"(v));
}

static inline void
find(struct bench_floor *f, unsigned int n, bool write, uint64_t *random)
{
	struct bench_floor_line *line[BURST];
	struct bench_floor_entry *e[BURST];
	uint8_t side[BURST];
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		line[i] = random_line(f, random);
		side[i] = *random & 2;
		rte_prefetch0(line[i]);
	}
	for (i = 0; i < n; i++) {
		e[i] = &f->entry[line[i]->entry];
		rte_prefetch0(&e[i]->line[side[i]]);
		__builtin_prefetch(&e[i]->line[1], 1);
	}
	for (i = 0; i < n; i++) {
		sum += e[i]->line[side[i]].word;
		if (write)
			e[i]->line[1].word++;
		else
			sum += e[i]->line[1].word;
	}
	use(sum);
}

static inline void
miss(struct bench_floor *f, uint64_t *random)
{
	struct bench_floor_line *line[BURST];
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < BURST; i++) {
		line[i] = random_line(f, random);
		rte_prefetch0(line[i]);
	}
	for (i = 0; i < BURST; i++)
		sum += line[i]->entry;
	use(sum);
}

/* Two bucket lines and all of an entry are written. */
static inline void
write_all(
	struct bench_floor *f, struct bench_floor_entry *const *e, unsigned int n, uint64_t *random)
{
	struct bench_floor_line *line[BURST][2];
	unsigned int i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < 2; k++) {
			line[i][k] = random_line(f, random);
			__builtin_prefetch(line[i][k], 1);
		}
		for (k = 0; k < 4; k++)
			__builtin_prefetch(&e[i]->line[k], 1);
	}
	for (i = 0; i < n; i++) {
		for (k = 0; k < 2; k++)
			line[i][k]->written++;
		for (k = 0; k < 4; k++)
			e[i]->line[k].word++;
	}
}

void
bench_floor_insert(struct bench_floor *f, uint32_t first, unsigned int n, uint64_t *random)
{
	struct bench_floor_entry *e[BURST];
	unsigned int i;

	for (i = 0; i < n; i++)
		e[i] = &f->entry[first + i];
	write_all(f, e, n, random);
}

/* As many known ones as the table's burst has; new ones, and as many that are removed. */
static void
mixed(struct bench_floor *f, uint64_t *random)
{
	struct bench_floor_entry *e[2 * MIXED_NEW];
	unsigned int i;

	find(f, BURST - MIXED_NEW, true, random);
	for (i = 0; i < RTE_DIM(e); i++)
		e[i] = &f->entry[bench_below(bench_random(random), f->n_entries)];
	write_all(f, e, RTE_DIM(e), random);
}

void
bench_floor_burst(struct bench_floor *f, enum bench_op op, uint64_t *random)
{
	if (op == BENCH_MISS)
		miss(f, random);
	else if (op == BENCH_MIXED)
		mixed(f, random);
	else
		find(f, BURST, op == BENCH_TRACK, random);
}
