/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay_args.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "err.h"

const char replay_usage[] =
	"usage: sluice replay -c FILE [--rx PORT=CAPTURE]... [--tx PORT=CAPTURE]...\n"
	"                     [--at SEC 'COMMAND']... [--until SEC]\n";

int
replay_parse_seconds(const char *text, uint64_t *ns)
{
	uint64_t sec = 0, frac = 0, unit = SL_NSEC_PER_SEC / 10;
	const char *c = text;

	if (*c < '0' || *c > '9')
		return -EINVAL;
	for (; *c >= '0' && *c <= '9'; c++) {
		sec = sec * 10 + (uint64_t)(*c - '0');
		if (sec > UINT32_MAX)
			return -EINVAL;
	}
	if (*c == '.') {
		for (c++; *c >= '0' && *c <= '9' && unit != 0; c++, unit /= 10)
			frac += (uint64_t)(*c - '0') * unit;
	}
	if (*c != '\0')
		return -EINVAL;
	*ns = sec * SL_NSEC_PER_SEC + frac;
	return 0;
}

static int
parse_time(const char *option, const char *text, uint64_t *ns, struct sl_err *err)
{
	if (replay_parse_seconds(text, ns) < 0)
		return sl_refuse(err, EINVAL,
			"%s %s: give seconds after the first packet, such as 2 or 0.5", option,
			text);
	return 0;
}

static int
parse_bind(struct replay_bind *b, const char *option, char *text, struct sl_err *err)
{
	char *eq = strchr(text, '=');

	if (eq == NULL || eq == text || eq[1] == '\0')
		return sl_refuse(err, EINVAL, "%s %s: give PORT=CAPTURE", option, text);
	*eq = '\0';
	*b = (struct replay_bind){.port = text, .path = eq + 1};
	return 0;
}

static int
parse_at(struct replay_args *a, int argc, char **argv, struct sl_err *err)
{
	struct replay_at at;
	unsigned int i;

	if (optind >= argc)
		return sl_refuse(err, EINVAL, "--at %s: the command is missing: --at SEC 'COMMAND'",
			optarg);
	if (parse_time("--at", optarg, &at.ns, err) < 0)
		return -EINVAL;
	at.command = argv[optind++];
	for (i = a->n_at; i > 0 && a->at[i - 1].ns > at.ns; i--)
		a->at[i] = a->at[i - 1];
	a->at[i] = at;
	a->n_at++;
	return 0;
}

static int
parse_tx(struct replay_args *a, char *text, struct sl_err *err)
{
	struct replay_bind *b = &a->tx[a->n_tx];
	unsigned int i;

	if (parse_bind(b, "--tx", text, err) < 0)
		return -EINVAL;
	for (i = 0; i < a->n_tx; i++) {
		if (strcmp(a->tx[i].port, b->port) == 0)
			return sl_refuse(err, EINVAL, "--tx: port %s is given twice", b->port);
	}
	a->n_tx++;
	return 0;
}

static int
parse_rx(struct replay_args *a, char *text, struct sl_err *err)
{
	struct replay_bind *b = &a->rx[a->n_rx];
	unsigned int i;

	if (parse_bind(b, "--rx", text, err) < 0)
		return -EINVAL;
	for (i = 0; i < a->n_rx; i++) {
		if (strcmp(b->path, "-") == 0 && strcmp(a->rx[i].path, "-") == 0)
			return sl_refuse(err, EINVAL, "--rx: standard input is given twice");
	}
	a->n_rx++;
	return 0;
}

static int
parse_option(struct replay_args *a, int opt, int argc, char **argv, struct sl_err *err)
{
	switch (opt) {
	case 'c':
		a->config = optarg;
		return 0;
	case 'r':
		return parse_rx(a, optarg, err);
	case 't':
		return parse_tx(a, optarg, err);
	case 'a':
		return parse_at(a, argc, argv, err);
	case 'u':
		a->has_until = true;
		return parse_time("--until", optarg, &a->until_ns, err);
	case 'h':
		a->help = true;
		return 0;
	case ':':
		return sl_refuse(err, EINVAL, "%s needs a value", argv[optind - 1]);
	default:
		return sl_refuse(err, EINVAL, "%s: no such option", argv[optind - 1]);
	}
}

static int
check(const struct replay_args *a, int argc, char **argv, struct sl_err *err)
{
	if (optind < argc)
		return sl_refuse(err, EINVAL, "%s: not expected here", argv[optind]);
	if (a->config == NULL)
		return sl_refuse(err, EINVAL, "-c FILE is missing");
	if (a->has_until && a->n_at > 0 && a->at[a->n_at - 1].ns > a->until_ns)
		return sl_refuse(err, EINVAL, "--at '%s' lies after --until and would never run",
			a->at[a->n_at - 1].command);
	return 0;
}

int
replay_args_parse(struct replay_args *a, int argc, char **argv, struct sl_err *err)
{
	static const struct option options[] = {
		{"rx", required_argument, NULL, 'r'},
		{"tx", required_argument, NULL, 't'},
		{"at", required_argument, NULL, 'a'},
		{"until", required_argument, NULL, 'u'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	size_t most = (size_t)argc;
	int opt;

	*a = (struct replay_args){
		.rx = calloc(most, sizeof(*a->rx)),
		.tx = calloc(most, sizeof(*a->tx)),
		.at = calloc(most, sizeof(*a->at)),
	};
	if (a->rx == NULL || a->tx == NULL || a->at == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	optind = 0;
	while ((opt = getopt_long(argc, argv, "+:c:h", options, NULL)) != -1) {
		if (parse_option(a, opt, argc, argv, err) < 0)
			return -EINVAL;
		if (a->help)
			return 0;
	}
	return check(a, argc, argv, err);
}

void
replay_args_free(struct replay_args *a)
{
	free(a->rx);
	free(a->tx);
	free(a->at);
}
