/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto.h"

#include <netinet/in.h>

const struct ct_proto *
ct_proto_of(uint8_t family, uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return &ct_proto_tcp;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		return &ct_proto_udp;
	case IPPROTO_ICMP:
		return family == TUPLE_IPV4 ? &ct_proto_icmp : &ct_proto_generic;
	case IPPROTO_ICMPV6:
		return family == TUPLE_IPV6 ? &ct_proto_icmp : &ct_proto_generic;
	case IPPROTO_SCTP:
		return &ct_proto_sctp;
	case IPPROTO_GRE:
		return &ct_proto_gre;
	default:
		return &ct_proto_generic;
	}
}

const char *
ct_proto_name(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_UDPLITE:
		return "udplite";
	case IPPROTO_ICMP:
		return "icmp";
	case IPPROTO_ICMPV6:
		return "icmpv6";
	case IPPROTO_SCTP:
		return "sctp";
	case IPPROTO_GRE:
		return "gre";
	case IPPROTO_DCCP:
		return "dccp";
	default:
		return "unknown";
	}
}
