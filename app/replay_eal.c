/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_eal.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "err.h"

/* The EAL pins its main thread, so several replays at once would share one CPU: the one lcore is
 * given all CPUs of the process, "0@(0,1,…)". */
static void
lcore_set(char *buf, size_t len)
{
	size_t used = (size_t)snprintf(buf, len, "0@(");
	const char *comma = "";
	cpu_set_t cpus;
	int cpu;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		CPU_ZERO(&cpus);
	if (CPU_COUNT(&cpus) == 0)
		CPU_SET(0, &cpus);
	for (cpu = 0; cpu < CPU_SETSIZE && used + 8 < len; cpu++) {
		if (!CPU_ISSET((unsigned int)cpu, &cpus))
			continue;
		used += (size_t)snprintf(buf + used, len - used, "%s%d", comma, cpu);
		comma = ",";
	}
	snprintf(buf + used, len - used, ")");
}

int
replay_eal_init(struct sl_err *err)
{
	static char lcores[CPU_SETSIZE * 5 + 8];
	static char words[][24] = {"sluice", "--no-huge", "--no-shconf", "--no-pci",
		"--no-telemetry", "-m", "64", "--log-level=lib.*:error", "--lcores"};
	char *argv[RTE_DIM(words) + 2];
	unsigned int n;

	lcore_set(lcores, sizeof(lcores));
	for (n = 0; n < RTE_DIM(words); n++)
		argv[n] = words[n];
	argv[n++] = lcores;
	argv[n] = NULL;
	if (rte_eal_init((int)n, argv) < 0)
		return sl_refuse(err, rte_errno, "DPDK does not start: %s",
			rte_strerror(rte_errno));
	return 0;
}
