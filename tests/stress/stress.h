/* SPDX-License-Identifier: BSD-3-Clause */
/* What the stress programs have in common. */
#ifndef STRESS_H
#define STRESS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Unlike assert(), never left out. */
#define REQUIRE(cond)                                                                              \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #cond);   \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* xorshift64 (Marsaglia 2003): random() takes a lock and would hide races. */
static inline uint64_t
next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

#endif
