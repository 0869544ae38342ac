/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses as numbers. */
#ifndef NAT_ADDR_H
#define NAT_ADDR_H

#include "tuple.h"

typedef unsigned __int128 nat_u128;

static inline nat_u128
nat_addr_number(const struct tuple_addr *a, uint8_t family)
{
	unsigned int i, len = family == TUPLE_IPV4 ? 4 : 16;
	nat_u128 n = 0;

	for (i = 0; i < len; i++)
		n = n << 8 | a->b[i];
	return n;
}

static inline void
nat_addr_from_number(struct tuple_addr *a, uint8_t family, nat_u128 n)
{
	unsigned int i, len = family == TUPLE_IPV4 ? 4 : 16;

	memset(a, 0, sizeof(*a));
	for (i = len; i > 0; i--, n >>= 8)
		a->b[i - 1] = (uint8_t)n;
}

/* Of a range both of whose ends are in it; saturates at all ones. */
static inline nat_u128
nat_addr_count(const struct tuple_addr *lo, const struct tuple_addr *hi, uint8_t family)
{
	nat_u128 last = nat_addr_number(hi, family) - nat_addr_number(lo, family);

	return last + 1 != 0 ? last + 1 : last;
}

#endif
