/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's end of the control socket. */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "err.h"

struct client {
	const char *path;
	int fd; /* -1: not connected */
	FILE *in;
	char *line;
	size_t room;
};

/* 0 or -errno with a message that says what to do. */
int client_connect(struct client *c, const char *path, struct sl_err *err);
void client_close(struct client *c);

/* Sends one line. -EMSGSIZE: longer than the daemon takes. */
int client_send(struct client *c, const json_t *message, struct sl_err *err);

/* The next line; a new reference, or NULL with err. */
json_t *client_receive(struct client *c, struct sl_err *err);

#endif
