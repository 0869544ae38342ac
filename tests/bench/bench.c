/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void
bench_die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("bench: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static uint64_t
read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t
bench_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t
bench_cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static int
compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

double
bench_median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), compare_doubles);
	return n % 2 != 0 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

void
bench_pin(unsigned int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		bench_die("core %u: %s", core, strerror(errno));
}

uint64_t
bench_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (end == text || *end != '\0' || *text == '-' || errno != 0 || v < min || v > max)
		bench_die("--%s %s: a number from %llu to %llu", option, text,
			(unsigned long long)min, (unsigned long long)max);
	return v;
}

unsigned int
bench_sizes(const char *option, const char *text, uint32_t *out, unsigned int max)
{
	char *copy = strdup(text), *rest = copy, *word;
	unsigned int n = 0;

	while (copy != NULL && (word = strsep(&rest, ",")) != NULL) {
		size_t len = strlen(word);
		uint64_t unit = 1;

		if (len > 0 && (word[len - 1] == 'k' || word[len - 1] == 'M')) {
			unit = word[len - 1] == 'k' ? 1024 : 1024 * 1024;
			word[len - 1] = '\0';
		}
		if (n == max)
			bench_die("--%s: at most %u sizes", option, max);
		out[n++] = (uint32_t)(bench_number(option, word, 1, (1u << 26) / unit) * unit);
	}
	free(copy);
	return n;
}

/* What follows "key : " in the first such line of a file of /proc; "" when there is none. */
static void
read_proc(const char *path, const char *key, char *out, size_t len)
{
	FILE *f = fopen(path, "re");
	char line[256];

	out[0] = '\0';
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char *colon = strchr(line, ':');

		if (colon == NULL || strncmp(line, key, strlen(key)) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(out, len, "%s", colon + 1 + strspn(colon + 1, " \t"));
		break;
	}
	if (f != NULL)
		fclose(f);
}

void
bench_begin(struct bench *b, const char *name, const struct bench_column *columns,
	unsigned int n_columns, bool json)
{
	char cpu[128], huge[64];

	*b = (struct bench){.name = name,
		.columns = columns,
		.n_columns = n_columns,
		.json = json,
		.rows = json_array(),
		.notes = json_object()};
	read_proc("/proc/cpuinfo", "model name", cpu, sizeof(cpu));
	read_proc("/proc/meminfo", "HugePages_Total", huge, sizeof(huge));
	bench_note(b, "cpu", json_string(cpu));
	bench_note(b, "cores", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	bench_note(b, "hugepages_2m", json_integer(atoi(huge)));
}

void
bench_note(struct bench *b, const char *key, json_t *value)
{
	if (value == NULL || json_object_set_new(b->notes, key, value) < 0)
		bench_die("out of memory");
	if (!b->json) {
		char *text = json_dumps(json_object_get(b->notes, key), JSON_ENCODE_ANY);

		printf("# %s: %s\n", key, text == NULL ? "" : text);
		free(text);
		fflush(stdout);
	}
}

static void
print_header(struct bench *b)
{
	unsigned int i;

	for (i = 0; i < b->n_columns; i++)
		printf("%s%*s", i == 0 ? "" : "  ", b->columns[i].width, b->columns[i].head);
	putchar('\n');
	b->header_printed = true;
}

static void
print_value(const struct bench_column *c, const json_t *v)
{
	if (json_is_string(v))
		printf("%*s", c->width, json_string_value(v));
	else if (json_is_number(v))
		printf("%*.*f", abs(c->width), c->decimals, json_number_value(v));
	else
		printf("%*s", c->width, "-");
}

void
bench_row(struct bench *b, json_t *row)
{
	unsigned int i;

	if (row == NULL || json_array_append_new(b->rows, row) < 0)
		bench_die("out of memory");
	if (b->json)
		return;
	if (!b->header_printed)
		print_header(b);
	for (i = 0; i < b->n_columns; i++) {
		fputs(i == 0 ? "" : "  ", stdout);
		print_value(&b->columns[i], json_object_get(row, b->columns[i].key));
	}
	putchar('\n');
	fflush(stdout);
}

void
bench_end(struct bench *b)
{
	json_t *all;

	if (b->json) {
		all = json_pack("{s:s, s:O, s:O}", "bench", b->name, "machine", b->notes, "results",
			b->rows);
		if (all == NULL ||
			json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) < 0)
			bench_die("cannot write the results");
		putchar('\n');
		json_decref(all);
	}
	json_decref(b->rows);
	json_decref(b->notes);
}

unsigned int
bench_huge_megabytes(void)
{
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "re");
	unsigned int pages = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%u", &pages) != 1)
		pages = 0;
	fclose(f);
	return 2 * pages;
}
