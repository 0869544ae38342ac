/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_path_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_capture.h"

const char *const bench_path_test[TESTS] = {
	[ESTABLISHED] = "established",
	[TRANSLATED] = "translated",
	[NEW] = "new",
	[LISTING] = "listing"};

static const char usage[] =
	"usage: bench_path [options]\n"
	"  --tests TEST[,TEST…]   established,translated,new,listing\n"
	"  --flows N[,N…]         connections of established, 64k,1M (k and M: powers of two)\n"
	"  --list-entries N       entries of listing, 1M\n"
	"  --rounds N             of base and measured in turn, whose median counts, 5\n"
	"  --ms N                 time of a round, 1000\n"
	"  --seconds N            time of new, 20\n"
	"  --max N                nf_conntrack_max of new, 8M\n"
	"  --buckets-per-entry N  nf_conntrack_buckets for each entry, 4\n"
	"  --rules N              in forward, of which only the last matches, 0\n"
	"  --limit                a rule that counts connections of each source\n"
	"  --nat KIND             all is translated: prefix; new also pool, independent, blocks\n"
	"  --events               a listener to connections, who reads along\n"
	"  --sources PREFIX       of new, 10.0.0.0/8\n"
	"  --udp                  established and listing have UDP, not TCP\n"
	"  --worker-core N        1\n"
	"  --control-core N       0\n"
	"  --no-huge              no huge pages, even if there are enough\n"
	"  --quick                64k, 2 rounds of 200 ms, 4 s of new, 128k entries listed\n"
	"  --json                 one JSON object instead of the table\n"
	"Huge pages of 2 MB are used when enough are free: sysctl vm.nr_hugepages=N before.\n";

static unsigned int
parse_tests(const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;
	unsigned int tests = 0, i;

	while (copy != NULL && (word = strsep(&rest, ",")) != NULL) {
		for (i = 0; i < TESTS && strcmp(word, bench_path_test[i]) != 0; i++)
			;
		if (i == TESTS)
			bench_die("--tests %s: established, translated, new or listing", word);
		tests |= 1u << i;
	}
	free(copy);
	return tests;
}

static void
set_flows(struct options *o, const char *text)
{
	unsigned int i;

	o->n_flows = bench_sizes("flows", text, o->flows, SIZES_MAX);
	for (i = 0; i < o->n_flows; i++)
		if (o->flows[i] > BENCH_FLOWS_MAX)
			bench_die("--flows: at most %u", BENCH_FLOWS_MAX);
}

static void
set_quick(struct options *o)
{
	set_flows(o, "64k");
	o->rounds = 2;
	o->ms = 200;
	o->seconds = 4;
	o->list_entries = 128 * 1024;
}

static bool
set_flag(struct options *o, int c)
{
	if (c == 'q')
		set_quick(o);
	else if (c == 'u')
		o->udp = true;
	else if (c == 'i')
		o->limit = true;
	else if (c == 'v')
		o->events = true;
	else if (c == 'n')
		o->no_huge = true;
	else if (c == 'j')
		o->json = true;
	else
		return false;
	return true;
}

static bool
set_number(struct options *o, int c, const char *text)
{
	if (c == 'r')
		o->rounds = (unsigned int)bench_number("rounds", text, 1, ROUNDS_MAX);
	else if (c == 'm')
		o->ms = (unsigned int)bench_number("ms", text, 10, 60000);
	else if (c == 's')
		o->seconds = (unsigned int)bench_number("seconds", text, 2, 3600);
	else if (c == 'b')
		o->buckets_per_entry = (unsigned int)bench_number("buckets-per-entry", text, 1, 16);
	else if (c == 'e')
		o->rules = (uint32_t)bench_number("rules", text, 0, 65535);
	else if (c == 'w')
		o->worker_core = (unsigned int)bench_number("worker-core", text, 0, 1023);
	else if (c == 'c')
		o->control_core = (unsigned int)bench_number("control-core", text, 0, 1023);
	else
		return false;
	return true;
}

static bool
set_size(struct options *o, int c, const char *text)
{
	if (c == 'f')
		set_flows(o, text);
	else if (c == 'l')
		bench_sizes("list-entries", text, &o->list_entries, 1);
	else if (c == 'x')
		bench_sizes("max", text, &o->max_entries, 1);
	else if (c == 't')
		o->tests = parse_tests(text);
	else if (c == 'a')
		o->nat = text;
	else if (c == 'p')
		o->sources = text;
	else
		return false;
	return true;
}

void
bench_path_options(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"tests", required_argument, NULL, 't'},
		{"flows", required_argument, NULL, 'f'},
		{"list-entries", required_argument, NULL, 'l'},
		{"rounds", required_argument, NULL, 'r'}, {"ms", required_argument, NULL, 'm'},
		{"seconds", required_argument, NULL, 's'}, {"max", required_argument, NULL, 'x'},
		{"buckets-per-entry", required_argument, NULL, 'b'},
		{"worker-core", required_argument, NULL, 'w'},
		{"control-core", required_argument, NULL, 'c'}, {"udp", no_argument, NULL, 'u'},
		{"nat", required_argument, NULL, 'a'}, {"rules", required_argument, NULL, 'e'},
		{"limit", no_argument, NULL, 'i'}, {"events", no_argument, NULL, 'v'},
		{"sources", required_argument, NULL, 'p'}, {"no-huge", no_argument, NULL, 'n'},
		{"quick", no_argument, NULL, 'q'}, {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c;

	*o = (struct options){.list_entries = 1024 * 1024,
		.tests = (1u << TESTS) - 1,
		.ms = 1000,
		.rounds = 5,
		.seconds = 20,
		.buckets_per_entry = 4,
		.sources = "10.0.0.0/8",
		.worker_core = 1,
		.max_entries = 8 * 1024 * 1024};
	set_flows(o, "64k,1M");
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'h')
			exit(fputs(usage, stdout) < 0);
		if (!set_flag(o, c) && !set_number(o, c, optarg) && !set_size(o, c, optarg)) {
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (optind != argc)
		bench_die("\"%s\" is no option", argv[optind]);
	if (o->list_entries > BENCH_FLOWS_MAX)
		bench_die("--list-entries: at most %u", BENCH_FLOWS_MAX);
	if (o->worker_core == o->control_core)
		bench_die("--worker-core and --control-core must be two cores");
}
