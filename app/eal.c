/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "err.h"
#include "grammar.h"
#include "log.h"

SL_LOG_REGISTER(eal);

#define ARGS_MAX 64

/* ---- cores ---- */

static int
add_core(unsigned int cores[GW_WORKERS_MAX], int n, unsigned long core, struct sl_err *err)
{
	int i;

	if (core >= CPU_SETSIZE)
		return sl_refuse(err, EINVAL, "--workers: there is no core %lu", core);
	for (i = 0; i < n; i++)
		if (cores[i] == core)
			return sl_refuse(err, EINVAL, "--workers: core %lu is given twice", core);
	if (n == GW_WORKERS_MAX)
		return sl_refuse(err, EINVAL, "--workers: more than %d cores", GW_WORKERS_MAX);
	cores[n] = (unsigned int)core;
	return n + 1;
}

int
eal_parse_cores(const char *text, unsigned int cores[GW_WORKERS_MAX], struct sl_err *err)
{
	const char *s = text;
	unsigned long first, last;
	char *end;
	int n = 0;

	for (;; s = end + 1) {
		first = last = strtoul(s, &end, 10);
		if (s[0] >= '0' && s[0] <= '9' && end[0] == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoul(end + 1, &end, 10);
		if (s[0] < '0' || s[0] > '9' || (*end != ',' && *end != '\0') || last < first)
			return sl_refuse(err, EINVAL,
				"--workers: \"%.40s\" is no list of cores such as 0-1 or "
				"1,3",
				text);
		for (; first <= last; first++) {
			n = add_core(cores, n, first, err);
			if (n < 0)
				return n;
		}
		if (*end == '\0')
			return n;
	}
}

/* All cores that the process may use but the first, which is left for everything else. */
static int
default_cores(const cpu_set_t *allowed, unsigned int cores[GW_WORKERS_MAX])
{
	int keep = CPU_COUNT(allowed) > 1, n = 0;
	unsigned int i;

	for (i = 0; i < CPU_SETSIZE && n < GW_WORKERS_MAX; i++)
		if (CPU_ISSET(i, allowed) && keep-- <= 0)
			cores[n++] = i;
	return n;
}

static int
choose_cores(const char *text, const cpu_set_t *allowed, unsigned int cores[GW_WORKERS_MAX],
	struct sl_err *err)
{
	int n, i;

	if (text == NULL)
		return default_cores(allowed, cores);
	n = eal_parse_cores(text, cores, err);
	for (i = 0; i < n; i++)
		if (!CPU_ISSET(cores[i], allowed))
			return sl_refuse(err, EINVAL,
				"--workers: there is no core %u that this process may use",
				cores[i]);
	return n;
}

/* "0@(0,1),1@1": lcore 0 is control's, on all cores; lcore i + 1 is worker i's. */
static void
format_lcores(const cpu_set_t *allowed, const unsigned int *cores, int n, char *buf, size_t len)
{
	FILE *f = fmemopen(buf, len, "w");
	const char *comma = "";
	int i;

	buf[0] = '\0';
	if (f == NULL)
		return;
	fputs("0@(", f);
	for (i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, allowed))
			continue;
		fprintf(f, "%s%d", comma, i);
		comma = ",";
	}
	fputc(')', f);
	for (i = 0; i < n; i++)
		fprintf(f, ",%d@%u", i + 1, cores[i]);
	fclose(f);
}

/* ---- memory ---- */

static unsigned int
memory_mb(const struct eal_options *o)
{
	return o->memory != 0 ? o->memory : EAL_MEMORY_DEFAULT;
}

unsigned int
eal_buffers(const struct eal_options *o)
{
	size_t one = RTE_MBUF_DEFAULT_BUF_SIZE + sizeof(struct rte_mbuf) + 3 * RTE_CACHE_LINE_SIZE;

	/* A buffer does not cross pages, so that a normal one holds one of them. */
	if (!rte_eal_has_hugepages())
		one = (size_t)sysconf(_SC_PAGESIZE) + RTE_CACHE_LINE_SIZE;
	/* A quarter is for queues and drivers. */
	return (unsigned int)((size_t)memory_mb(o) * 1024 * 1024 / 4 * 3 / one);
}

static unsigned long
read_number(const char *path)
{
	unsigned long v = 0;
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%lu", &v) != 1)
		v = 0;
	fclose(f);
	return v;
}

/* Free huge pages of all sizes, in MB. */
static unsigned long
free_huge_mb(void)
{
	static const char dir[] = "/sys/kernel/mm/hugepages";
	char path[512];
	unsigned long kb, sum = 0;
	struct dirent *e;
	DIR *d = opendir(dir);

	if (d == NULL)
		return 0;
	while ((e = readdir(d)) != NULL) {
		if (sscanf(e->d_name, "hugepages-%lukB", &kb) != 1)
			continue;
		snprintf(path, sizeof(path), "%s/%s/free_hugepages", dir, e->d_name);
		sum += read_number(path) * kb / 1024;
	}
	closedir(d);
	return sum;
}

static unsigned long
available_mb(void)
{
	unsigned long kb = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "MemAvailable: %lu kB", &kb) == 1)
			break;
	fclose(f);
	return kb / 1024;
}

/* Whether to use huge pages. Refuses when neither kind has enough. */
static int
choose_pages(const struct eal_options *o, bool *huge, struct sl_err *err)
{
	unsigned long need = memory_mb(o), have = o->no_huge ? 0 : free_huge_mb();

	if (need < EAL_MEMORY_MIN)
		return sl_refuse(err, EINVAL, "--memory: must be at least %u MB", EAL_MEMORY_MIN);
	*huge = !o->no_huge && have >= need;
	if (*huge)
		return 0;
	if (available_mb() < need)
		return sl_refuse(err, ENOMEM,
			"--memory: %lu MB are asked for and %lu MB available: free "
			"some, or give a smaller --memory",
			need, available_mb());
	if (!o->no_huge)
		SL_LOG(NOTICE,
			"%lu MB of huge pages free, %lu MB needed: using normal pages, which are "
			"slower "
			"(vm.nr_hugepages=%lu gives enough)",
			have, need, (need + 1) / 2);
	return 0;
}

/* ---- start ---- */

struct args {
	int n;
	char *v[ARGS_MAX];
};

static int
add_arg(struct args *a, const char *text, struct sl_err *err)
{
	if (a->n == ARGS_MAX - 1)
		return sl_refuse(err, E2BIG, "--eal: more than %d arguments", ARGS_MAX / 2);
	a->v[a->n] = strdup(text);
	if (a->v[a->n] == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	a->n++;
	return 0;
}

static void
free_args(struct args *a)
{
	while (a->n > 0)
		free(a->v[--a->n]);
}

static int
add_extra(struct args *a, const char *extra, struct sl_err *err)
{
	struct grammar_tokens *tok = NULL;
	unsigned int i;
	int ret = 0;

	if (extra == NULL)
		return 0;
	ret = grammar_split(extra, false, &tok, err);
	for (i = 0; ret == 0 && i < tok->n; i++)
		ret = add_arg(a, tok->t[i].text, err);
	grammar_tokens_free(tok);
	return ret;
}

/*
 * An allow list of PCI devices with none on it: EAL probes none at start, and `port add` may still
 * attach one by its address.
 */
static int
make_args(struct args *a, const struct eal_options *o, const char *lcores, bool huge,
	struct sl_err *err)
{
	char memory[32];
	const char *base[] = {"sluice", "--lcores", lcores, "--main-lcore", "0", "--file-prefix",
		"sluice", "-a", "0000:00:00.0", "--log-level", "*:warning", "--log-level",
		"sluice.*:notice"};
	unsigned int i;
	int ret = 0;

	snprintf(memory, sizeof(memory), "%u", memory_mb(o));
	for (i = 0; ret == 0 && i < RTE_DIM(base); i++)
		ret = add_arg(a, base[i], err);
	if (ret == 0 && huge)
		ret = add_arg(a, "--in-memory", err);
	if (ret == 0 && !huge)
		ret = add_arg(a, "--no-huge", err) != 0 || add_arg(a, "--no-shconf", err) != 0 ||
				      add_arg(a, "-m", err) != 0 || add_arg(a, memory, err) != 0
			      ? -ENOMEM
			      : 0;
	return ret == 0 ? add_extra(a, o->extra, err) : ret;
}

/* Quietly: below errors, what it says is for people who know EAL. */
static int
init(const struct args *a, struct sl_err *err)
{
	uint32_t level = rte_log_get_global_level();
	char *v[ARGS_MAX]; /* EAL moves the pointers about */
	int ret;

	memcpy(v, a->v, sizeof(v));
	rte_log_set_global_level(RTE_LOG_ERR);
	ret = rte_eal_init(a->n, v);
	rte_log_set_global_level(level);
	if (ret < 0)
		return sl_refuse(err, rte_errno != 0 ? rte_errno : EINVAL,
			"DPDK does not start: %s; what it "
			"says is above",
			rte_strerror(rte_errno));
	return 0;
}

int
eal_start(const struct eal_options *o, unsigned int lcores[GW_WORKERS_MAX], unsigned int *n_workers,
	struct sl_err *err)
{
	unsigned int cores[GW_WORKERS_MAX];
	struct args a = {0};
	cpu_set_t allowed;
	char list[4096];
	bool huge;
	int ret, n, i;

	rte_openlog_stream(stderr);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return sl_refuse(
			err, errno, "cannot read the cores of this process: %s", strerror(errno));
	n = choose_cores(o->workers, &allowed, cores, err);
	if (n < 0)
		return n;
	ret = choose_pages(o, &huge, err);
	if (ret != 0)
		return ret;
	format_lcores(&allowed, cores, n, list, sizeof(list));
	ret = make_args(&a, o, list, huge, err);
	if (ret == 0)
		ret = init(&a, err);
	free_args(&a);
	if (ret != 0)
		return ret;
	/* Control may run wherever the process could before EAL placed it. */
	if (sched_setaffinity(0, sizeof(allowed), &allowed) != 0)
		SL_LOG(WARNING, "the control thread stays on its core: %s", strerror(errno));
	for (i = 0; i < n; i++)
		lcores[i] = (unsigned int)i + 1;
	*n_workers = (unsigned int)n;
	return 0;
}
