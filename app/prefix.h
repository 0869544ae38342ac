/* SPDX-License-Identifier: BSD-3-Clause */
/* What filters of commands are made of: address prefixes and protocols, as text and to compare. */
#ifndef PREFIX_H
#define PREFIX_H

#include <stdbool.h>
#include <stdint.h>

#include "tuple.h"

struct sl_err;

struct prefix {
	struct tuple_addr addr;
	uint8_t family; /* TUPLE_IPV4, TUPLE_IPV6, or 0: matches everything */
	uint8_t len;    /* bits */
};

/* ADDR or ADDR/LEN. Refuses with -EINVAL; the message begins with `what`. */
int prefix_parse(struct prefix *p, const char *text, const char *what, struct sl_err *err);

bool prefix_match(const struct prefix *p, uint8_t family, const struct tuple_addr *addr);

/* A protocol by its name, as listings print it, or its number. Refuses with -EINVAL. */
int proto_parse(uint8_t *proto, const char *text, const char *what, struct sl_err *err);

#endif
