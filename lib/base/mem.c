/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "err.h"

#define HUGE_PAGE ((size_t)2 << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static size_t
round_up(size_t n)
{
	return (n + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

int
sl_region_reserve(struct sl_region *r, size_t bytes, struct sl_err *err)
{
	size_t len = round_up(bytes) + HUGE_PAGE;
	char *p, *base;

	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		0);
	if (p == MAP_FAILED)
		return sl_refuse(err, ENOMEM, "cannot reserve %zu MB of address space: %s",
			len >> 20, strerror(errno));
	/* Align to a huge page and give the rest back. */
	base = p + ((HUGE_PAGE - ((uintptr_t)p & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1));
	if (base > p)
		munmap(p, (size_t)(base - p));
	len = round_up(bytes);
	munmap(base + len, HUGE_PAGE - (size_t)(base - p));
	madvise(base, len, MADV_HUGEPAGE);
	madvise(base, len, MADV_DONTDUMP);
	*r = (struct sl_region){.base = base, .reserved = len};
	return 0;
}

static size_t
read_number(const char *path, const char *format)
{
	char line[128];
	unsigned long long v;
	size_t found = SIZE_MAX;
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return SIZE_MAX;
	while (found == SIZE_MAX && fgets(line, sizeof(line), f) != NULL) {
		const char *digits = line;
		size_t prefix = strlen(format);

		if (strncmp(line, format, prefix) != 0)
			continue;
		digits += prefix;
		if (sscanf(digits, "%llu", &v) == 1)
			found = (size_t)v;
	}
	fclose(f);
	return found;
}

/* The cgroup's of version 2. */
size_t
sl_memory_available(void)
{
	size_t kb = read_number("/proc/meminfo", "MemAvailable:");
	size_t limit = read_number("/sys/fs/cgroup/memory.max", "");
	size_t used = read_number("/sys/fs/cgroup/memory.current", "");
	size_t avail = kb == SIZE_MAX ? SIZE_MAX : kb << 10;

	if (limit != SIZE_MAX && used != SIZE_MAX && limit - used < avail)
		avail = limit > used ? limit - used : 0;
	return avail;
}

int
sl_region_grow(struct sl_region *r, size_t bytes, struct sl_err *err)
{
	size_t want = round_up(bytes), missing, avail;

	if (want <= r->present)
		return 0;
	if (want > r->reserved)
		return sl_refuse(err, EINVAL, "%zu MB are more than the %zu MB reserved",
			want >> 20, r->reserved >> 20);
	missing = want - r->present;
	avail = sl_memory_available();
	if (missing > avail)
		return sl_refuse(err, ENOMEM, "%zu MB of memory are needed, %zu MB are available",
			missing >> 20, avail >> 20);
	if (madvise(r->base + r->present, missing, MADV_POPULATE_WRITE) < 0) {
		if (errno != EINVAL)
			return sl_refuse(err, ENOMEM, "cannot get %zu MB of memory: %s",
				missing >> 20, strerror(errno));
		memset(r->base + r->present, 0, missing); /* a kernel before 5.14 */
	}
	r->present = want;
	return 0;
}

void
sl_region_release(struct sl_region *r)
{
	if (r->base != NULL)
		munmap(r->base, r->reserved);
	*r = (struct sl_region){0};
}
