/* SPDX-License-Identifier: BSD-3-Clause */
/* What filters of commands are made of: address prefixes and protocols, as text and to compare. */
#ifndef PREFIX_H
#define PREFIX_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tuple.h"

struct sl_err;

struct prefix {
	struct tuple_addr addr;
	uint8_t family; /* TUPLE_IPV4, TUPLE_IPV6, or 0: matches everything */
	uint8_t len;    /* bits */
};

/* ADDR or ADDR/LEN. Refuses with -EINVAL; the message begins with `what`. */
int prefix_parse(struct prefix *p, const char *text, const char *what, struct sl_err *err);

static inline bool
prefix_match(const struct prefix *p, uint8_t family, const struct tuple_addr *addr)
{
	unsigned int whole = p->len / 8, rest = p->len % 8;

	if (p->family == 0)
		return true;
	if (p->family != family || memcmp(p->addr.b, addr->b, whole) != 0)
		return false;
	return rest == 0 || (uint8_t)((p->addr.b[whole] ^ addr->b[whole]) >> (8 - rest)) == 0;
}

/* A protocol by its name, as listings print it, or its number. Refuses with -EINVAL. */
int proto_parse(uint8_t *proto, const char *text, const char *what, struct sl_err *err);

#endif
