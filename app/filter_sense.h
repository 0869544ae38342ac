/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters whose parts exclude one another select nothing, and are refused instead. */
#ifndef FILTER_SENSE_H
#define FILTER_SENSE_H

#include <stdbool.h>
#include <stdint.h>

struct sl_err;

#define FILTER_FAMILIES 3

struct filter_sense {
	uint8_t family[FILTER_FAMILIES]; /* that some part asks for; 0: any */
	uint8_t reply_family[2]; /* of the answers: with NAT64 another */
	uint8_t proto;                   /* when by_proto */
	bool by_proto, by_port, by_icmp, by_state;
};

/* 0, or -EINVAL with the part that contradicts another. */
int filter_sense_check(const struct filter_sense *s, struct sl_err *err);

bool proto_has_ports(uint8_t proto);
bool proto_is_icmp(uint8_t proto);

#endif
