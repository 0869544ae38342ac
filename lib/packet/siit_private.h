/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of the translation between IP versions. */
#ifndef SIIT_PRIVATE_H
#define SIIT_PRIVATE_H

#include <netinet/in.h>
#include <string.h>

#include "csum.h"
#include "siit.h"

/* codes and types that only translation needs */
#define ICMP_CODE_PROTOCOL      2
#define ICMP_CODE_SOURCE_ROUTE  5
#define ICMP_PARAMETER_PROBLEM  12
#define ICMP6_CODE_PORT         4
#define ICMP6_PARAMETER_PROBLEM 4

/* What an IP header says, extension headers with it, in terms that both versions have. */
struct siit_header {
	const struct tuple *to; /* addresses and family it is written with */
	uint32_t payload; /* bytes behind it */
	uint16_t len;     /* of the header that was read */
	uint16_t frag;    /* as in a fragment header: offset in bytes, and 1: more follow */
	rte_be16_t id;
	uint8_t traffic_class, hops, proto;
	bool fragment, df;
};

/* Protocol of the other version. */
uint8_t siit_proto(uint8_t proto);

/* Read a header that the parser found sound; `avail`: bytes that are there. */
void siit_read_ip4(struct siit_header *h, const void *ip);
void siit_read_ip6(struct siit_header *h, const void *ip, uint32_t avail);

/* Write one; that of IPv6 returns its length. */
void siit_write_ip4(void *at, const struct siit_header *h);
uint16_t siit_write_ip6(void *at, const struct siit_header *h);

static inline uint16_t
siit_get16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* Writes 16 bits; returns what changed, as csum.h counts it. */
static inline uint64_t
siit_put16(uint8_t *at, uint16_t new)
{
	uint16_t old = siit_get16(at);

	memcpy(at, &new, sizeof(new));
	return csum_diff16(old, new);
}

/* What comes into a sum with n bytes, and what goes with them. */
static inline uint64_t
siit_sum_new(const uint8_t *d, unsigned int n)
{
	uint64_t sum = 0;
	uint32_t word;

	for (; n > 0; n -= (unsigned int)sizeof(word), d += sizeof(word)) {
		memcpy(&word, d, sizeof(word));
		sum += word;
	}
	return sum;
}

static inline uint64_t
siit_sum_old(const uint8_t *d, unsigned int n)
{
	uint64_t sum = 0;
	uint32_t word;

	for (; n > 0; n -= (unsigned int)sizeof(word), d += sizeof(word)) {
		memcpy(&word, d, sizeof(word));
		sum += (uint32_t)~word;
	}
	return sum;
}

#endif
