/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the benchmarks share: time, medians, random numbers, and results as a text table or as one
 * JSON object. A result is a row; columns are given once. Text goes out row by row, as they come.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct bench_column {
	const char *key;  /* in JSON; the text table takes the value of this key from the row */
	const char *head; /* in text */
	int width;
	int decimals; /* of numbers */
};

struct bench {
	const char *name;
	const struct bench_column *columns;
	unsigned int n_columns;
	bool json;
	bool header_printed;
	json_t *rows;
	json_t *notes; /* object: what holds for all rows */
};

/* Notes the CPU, cores and huge pages of the machine. */
void bench_begin(struct bench *b, const char *name, const struct bench_column *columns,
	unsigned int n_columns, bool json);

/* Takes the row; NULL is out of memory, and fatal. */
void bench_row(struct bench *b, json_t *row);

/* A fact that is no row; printed as one line in text. */
void bench_note(struct bench *b, const char *key, json_t *value);

void bench_end(struct bench *b);

/* Prints to stderr and exits with 1: a benchmark that cannot do its work says so and stops. */
void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

uint64_t bench_ns(void);     /* monotonic clock */
uint64_t bench_cpu_ns(void); /* processor time of the calling thread */

/* Sorts v. */
double bench_median(double *v, unsigned int n);

/* The calling thread runs on that core alone from now on. */
void bench_pin(unsigned int core);

/* A number from text, within the range; dies with the option's name if not. */
uint64_t bench_number(const char *option, const char *text, uint64_t min, uint64_t max);

/* A list of numbers, comma-separated, with suffixes k and M (1024 and 1024²). Returns how many. */
unsigned int bench_sizes(const char *option, const char *text, uint32_t *out, unsigned int max);

/* xorshift64* (Marsaglia 2003, Vigna 2016): `s` must not be zero. */
static inline uint64_t
bench_random(uint64_t *s)
{
	uint64_t x = *s;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*s = x;
	return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* Uniform below n, from the upper half of a random number. */
static inline uint32_t
bench_below(uint64_t random, uint32_t n)
{
	return (uint32_t)((random >> 32) * n >> 32);
}

/* Megabytes in free huge pages of 2 MB. */
unsigned int bench_huge_megabytes(void);

#endif
