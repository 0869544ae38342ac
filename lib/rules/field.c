/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule_field.h"

#include <netinet/in.h>
#include <string.h>

#define V4 TUPLE_IPV4
#define V6 TUPLE_IPV6

const struct rule_field_info rule_field_info[RULE_FIELDS] = {
	[RULE_IP_SADDR] = {"ip", "saddr", KIND_ADDR, V4, 0, 0},
	[RULE_IP_DADDR] = {"ip", "daddr", KIND_ADDR, V4, 0, 0},
	[RULE_IP6_SADDR] = {"ip6", "saddr", KIND_ADDR, V6, 0, 0},
	[RULE_IP6_DADDR] = {"ip6", "daddr", KIND_ADDR, V6, 0, 0},
	[RULE_NFPROTO] = {"meta", "nfproto", KIND_NFPROTO, 0, 0, UINT8_MAX},
	[RULE_L4PROTO] = {"meta", "l4proto", KIND_PROTO, 0, 0, UINT8_MAX},
	[RULE_TCP_SPORT] = {"tcp", "sport", KIND_PORT, 0, IPPROTO_TCP, UINT16_MAX},
	[RULE_TCP_DPORT] = {"tcp", "dport", KIND_PORT, 0, IPPROTO_TCP, UINT16_MAX},
	[RULE_UDP_SPORT] = {"udp", "sport", KIND_PORT, 0, IPPROTO_UDP, UINT16_MAX},
	[RULE_UDP_DPORT] = {"udp", "dport", KIND_PORT, 0, IPPROTO_UDP, UINT16_MAX},
	[RULE_SCTP_SPORT] = {"sctp", "sport", KIND_PORT, 0, IPPROTO_SCTP, UINT16_MAX},
	[RULE_SCTP_DPORT] = {"sctp", "dport", KIND_PORT, 0, IPPROTO_SCTP, UINT16_MAX},
	[RULE_TCP_FLAGS] = {"tcp", "flags", KIND_FLAGS, 0, IPPROTO_TCP, UINT8_MAX},
	[RULE_ICMP_TYPE] = {"icmp", "type", KIND_ICMP, V4, IPPROTO_ICMP, UINT8_MAX},
	[RULE_ICMPV6_TYPE] = {"icmpv6", "type", KIND_ICMPV6, V6, IPPROTO_ICMPV6, UINT8_MAX},
	[RULE_CT_STATE] = {"ct", "state", KIND_STATE, 0, 0, UINT32_MAX},
	[RULE_CT_MARK] = {"ct", "mark", KIND_MARK, 0, 0, UINT32_MAX},
	[RULE_CT_ZONE] = {"ct", "zone", KIND_ZONE, 0, 0, UINT16_MAX},
	[RULE_META_MARK] = {"meta", "mark", KIND_MARK, 0, 0, UINT32_MAX},
	[RULE_IIFNAME] = {"iifname", NULL, KIND_NAME, 0, 0, 0},
	[RULE_OIFNAME] = {"oifname", NULL, KIND_NAME, 0, 0, 0},
};

bool
field_is_number(enum rule_field field)
{
	return rule_field_info[field].kind != KIND_ADDR && rule_field_info[field].kind != KIND_NAME;
}

int
field_compare(enum rule_field field, const union rule_value *a, const union rule_value *b)
{
	if (field_is_number(field))
		return a->n < b->n ? -1 : a->n > b->n;
	return memcmp(a->addr.b, b->addr.b, sizeof(a->addr.b));
}
