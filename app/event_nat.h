/* SPDX-License-Identifier: BSD-3-Clause */
/* What pools of addresses tell: from lib/nat's report to the record, and from it to an object. */
#ifndef EVENT_NAT_H
#define EVENT_NAT_H

#include <stdint.h>

#include <jansson.h>

#include "pool.h"

struct event;

struct event_nat {
	uint64_t used, capacity; /* of a pool */
	struct tuple_addr host, addr; /* of a block */
	uint16_t port_lo, port_hi;
	uint8_t type; /* enum nat_report_type */
	uint8_t host_family, family;
	char pool[NAT_POOL_NAME_MAX + 1];
};

/* For nat_ops; app: struct gateway. */
uint64_t event_nat_clock(void *app, unsigned int thread);
void event_nat_report(void *app, unsigned int thread, const struct nat_report *r);

/*
 * {"netns","time","event","pool"} and of a block {"host","address","ports":"P-Q"}, of a pool
 * {"used","capacity"}. wall_offset_ns: from the gateway's clock to the time of day. NULL: no
 * memory.
 */
json_t *event_nat_json(const struct event *ev, uint64_t wall_offset_ns);

#endif
