/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: options, and which of its two sides to run. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "err.h"
#include "replay.h"
#include "rpc_socket.h"

#define EXIT_REFUSED 1
#define EXIT_USAGE   2

static const char usage_text[] =
	"usage: sluice -c FILE [options]    run the gateway in the foreground\n"
	"       sluice replay ...           the same packet path over capture files; see sluice "
	"replay --help\n"
	"\n"
	"  -c, --config FILE       commands, one a line, applied as one unit at start\n"
	"  -s, --socket PATH       control socket (" RPC_SOCKET_PATH ")\n"
	"      --group GROUP       may use the socket besides root and the daemon's user\n"
	"      --workers CORES     one worker on each, such as 0-1 or 1,3 (all but the first)\n"
	"      --memory MB         for packet buffers and ports (256)\n"
	"      --no-huge           normal pages, even if there are huge ones\n"
	"      --metrics ADDR:PORT OpenMetrics over HTTP\n"
	"      --eal 'ARGS'        more arguments for DPDK's EAL\n"
	"      --version           print the version\n"
	"  -h, --help              print this\n"
	"\n"
	"The program ends by SIGTERM or SIGINT. Exit status: 0 done, 1 refused, 2 usage.\n";

static int
usage_error(const char *what, const char *value)
{
	fprintf(stderr, "sluice: %s%s; see sluice --help\n", what, value);
	return EXIT_USAGE;
}

static int
parse_memory(const char *text, unsigned int *mb)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v == 0 ||
		v > 1024 * 1024)
		return -EINVAL;
	*mb = (unsigned int)v;
	return 0;
}

enum { OPT_GROUP = 256, OPT_WORKERS, OPT_MEMORY, OPT_NO_HUGE, OPT_METRICS, OPT_EAL, OPT_VERSION };

static const struct option options[] = {
	{"config", required_argument, NULL, 'c'},
	{"socket", required_argument, NULL, 's'},
	{"group", required_argument, NULL, OPT_GROUP},
	{"workers", required_argument, NULL, OPT_WORKERS},
	{"memory", required_argument, NULL, OPT_MEMORY},
	{"no-huge", no_argument, NULL, OPT_NO_HUGE},
	{"metrics", required_argument, NULL, OPT_METRICS},
	{"eal", required_argument, NULL, OPT_EAL},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* -1: go on; else the exit status. */
static int
take_option(int opt, struct control_options *o)
{
	switch (opt) {
	case 'c':
		o->config = optarg;
		return -1;
	case 's':
		o->socket = optarg;
		return -1;
	case OPT_GROUP:
		o->group = optarg;
		return -1;
	case OPT_WORKERS:
		o->eal.workers = optarg;
		return -1;
	case OPT_MEMORY:
		return parse_memory(optarg, &o->eal.memory) == 0
			       ? -1
			       : usage_error("--memory: not a number of MB from 1 to 1048576: ",
				       optarg);
	case OPT_NO_HUGE:
		o->eal.no_huge = true;
		return -1;
	case OPT_METRICS:
		o->metrics = optarg;
		return -1;
	case OPT_EAL:
		o->eal.extra = optarg;
		return -1;
	case OPT_VERSION:
		puts("sluice " SLUICE_VERSION);
		return EXIT_SUCCESS;
	case 'h':
		fputs(usage_text, stdout);
		return EXIT_SUCCESS;
	default:
		fputs("see sluice --help\n", stderr);
		return EXIT_USAGE;
	}
}

int
main(int argc, char **argv)
{
	struct control_options o = {.socket = RPC_SOCKET_PATH};
	struct sl_err err = {{0}};
	int opt, status;

	if (argc > 1 && strcmp(argv[1], "replay") == 0)
		return replay_main(argc - 1, argv + 1);
	while ((opt = getopt_long(argc, argv, "c:s:h", options, NULL)) != -1) {
		status = take_option(opt, &o);
		if (status >= 0)
			return status;
	}
	if (optind < argc)
		return usage_error("unexpected argument: ", argv[optind]);
	if (o.config == NULL)
		return usage_error("-c FILE is missing", "");
	if (control_run(&o, &err) != 0) {
		fprintf(stderr, "sluice: %s\n", err.msg);
		return EXIT_REFUSED;
	}
	return EXIT_SUCCESS;
}
