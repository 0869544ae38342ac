/* SPDX-License-Identifier: BSD-3-Clause */
/* What rules log: from the packet at a `log` statement to the record, and from it to an object. */
#ifndef EVENT_RULE_H
#define EVENT_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "rule.h"
#include "tuple.h"

struct event;
struct rules_packet;

/* The packet as the rule saw it, ports and numbers in host order. */
struct event_rule {
	uint64_t handle; /* of the rule */
	struct tuple_addr src, dst;
	uint32_t mark;   /* meta mark */
	uint32_t bytes;  /* of the IP packet; of the frame, where it is none */
	uint16_t ethertype;
	uint16_t id;     /* IPv4 */
	uint16_t sport, dport;
	uint16_t window; /* TCP */
	uint16_t group;
	uint8_t chain;   /* enum rule_chain */
	uint8_t family;  /* TUPLE_…; 0: not IP */
	uint8_t proto;
	uint8_t tos, ttl; /* of IPv6 the traffic class and the hop limit */
	uint8_t tcp_flags;
	uint8_t icmp_type, icmp_code;
	uint8_t level;
	bool dont_fragment;
	bool has_ports, has_flags, has_type, has_group;
	char in[RULE_NAME_MAX + 1], out[RULE_NAME_MAX + 1];
	char prefix[RULE_PREFIX_MAX + 1];
};

/* For rules_ops.log; app: struct gateway. */
void event_rule_log(void *app, const struct rule *r, const struct rule_log *log,
	const struct rules_packet *k);

/*
 * {"netns","time","chain","handle","prefix","level"|"group","in","out","len","mark"} and of IP
 * {"family","src","dst","tos","ttl","ip-id","df","proto","protonum"}, {"sport","dport"}, {"flags":
 * ["SYN",…],"window"}, {"type","code"}; "ethertype" of other frames. wall_offset_ns: from the
 * gateway's clock to the time of day. NULL: no memory.
 */
json_t *event_rule_json(const struct event *ev, uint64_t wall_offset_ns);

#endif
