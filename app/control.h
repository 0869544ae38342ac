/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon: builds the gateway from its options and serves until it is told to stop. */
#ifndef CONTROL_H
#define CONTROL_H

#include "eal.h"

struct control_options {
	struct eal_options eal;
	const char *config; /* file */
	const char *socket;
	const char *group;   /* of the socket; NULL: the daemon's own */
	const char *metrics; /* ADDR:PORT; NULL: no endpoint */
};

/* Returns when stopped by SIGTERM or SIGINT: 0; or -errno with the reason it did not start. */
int control_run(const struct control_options *options, struct sl_err *err);

#endif
