/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuple.h"

#include <netinet/in.h>

/* Query and reply types that answer each other. */
static const struct {
	uint8_t family, query, reply;
} icmp_pairs[] = {
	{TUPLE_IPV4, 8, 0},      /* echo (RFC 792) */
	{TUPLE_IPV4, 13, 14},    /* timestamp (RFC 792) */
	{TUPLE_IPV4, 15, 16},    /* information (RFC 792) */
	{TUPLE_IPV4, 17, 18},    /* address mask (RFC 950) */
	{TUPLE_IPV6, 128, 129},  /* echo (RFC 4443) */
	{TUPLE_IPV6, 139, 140},  /* node information (RFC 4620) */
};

static bool
icmp_answer(uint8_t family, uint8_t type, uint8_t *answer)
{
	unsigned int i;

	for (i = 0; i < sizeof(icmp_pairs) / sizeof(icmp_pairs[0]); i++) {
		if (icmp_pairs[i].family != family)
			continue;
		if (icmp_pairs[i].query == type || icmp_pairs[i].reply == type) {
			*answer = icmp_pairs[i].query == type ? icmp_pairs[i].reply
							      : icmp_pairs[i].query;
			return true;
		}
	}
	return false;
}

bool
tuple_invert(struct tuple *inv, const struct tuple *t)
{
	bool icmp = (t->family == TUPLE_IPV4 && t->proto == IPPROTO_ICMP) ||
		    (t->family == TUPLE_IPV6 && t->proto == IPPROTO_ICMPV6);
	uint8_t answer = 0;

	if (icmp && !icmp_answer(t->family, (uint8_t)(rte_be_to_cpu_16(t->dport) >> 8), &answer))
		return false;
	*inv = *t;
	inv->src = t->dst;
	inv->dst = t->src;
	if (icmp) {
		uint16_t code = rte_be_to_cpu_16(t->dport) & 0xff;

		inv->dport = rte_cpu_to_be_16((uint16_t)(answer << 8 | code));
	} else {
		inv->sport = t->dport;
		inv->dport = t->sport;
	}
	return true;
}
