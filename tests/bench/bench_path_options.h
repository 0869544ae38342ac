/* SPDX-License-Identifier: BSD-3-Clause */
/* What bench_path is told on its command line. */
#ifndef BENCH_PATH_OPTIONS_H
#define BENCH_PATH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define SIZES_MAX  8u
#define ROUNDS_MAX 15u

enum test { ESTABLISHED, TRANSLATED, NEW, LISTING, TESTS };

extern const char *const bench_path_test[TESTS];

struct options {
	uint32_t flows[SIZES_MAX], list_entries;
	unsigned int n_flows, tests, ms, rounds, seconds, buckets_per_entry;
	unsigned int worker_core, control_core;
	uint32_t max_entries; /* of `new` */
	uint32_t rules;
	const char *nat, *sources; /* of new: its prefix */
	bool udp, limit, events, json, no_huge;
};

/* Exits with a word of why when they are wrong, and with --help. */
void bench_path_options(struct options *o, int argc, char **argv);

#endif
