/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of `sluice replay`. */
#ifndef REPLAY_ARGS_H
#define REPLAY_ARGS_H

#include <stdbool.h>
#include <stdint.h>

struct sl_err;

struct replay_bind {
	const char *port;
	const char *path;
};

struct replay_at {
	uint64_t ns; /* after the first packet */
	const char *command;
};

/* Strings are those of argv. */
struct replay_args {
	const char *config;
	struct replay_bind *rx, *tx; /* in the order given */
	struct replay_at *at;        /* by time; in the order given where that is equal */
	unsigned int n_rx, n_tx, n_at;
	bool has_until;
	bool help; /* asked for; the rest is not checked */
	uint64_t until_ns;
};

extern const char replay_usage[];

/* Splits the PORT=FILE arguments in place. 0, or refuses with -EINVAL (usage) or -ENOMEM; *a is to
 * be freed in any case. */
int replay_args_parse(struct replay_args *a, int argc, char **argv, struct sl_err *err);
void replay_args_free(struct replay_args *a);

/* Decimal seconds below 2^32, with at most nine digits behind the point. 0 or -EINVAL. */
int replay_parse_seconds(const char *text, uint64_t *ns);

#endif
