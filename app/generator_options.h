/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of the generator, as written in a port's devargs.
 *
 *   rate=PPS          packets a second, over all queues; 0 (default): as fast as it is polled
 *   size=BYTES        length of frames with data, tag counted, CRC not; default 64 (IPv6: 84);
 *                     synflood's SYNs have data where it is more than that, those of mix never
 *   vlans=A[-B]       VLANs of the clients' links, each a tenant; default 0: untagged
 *   peer-vlans=C[-D]  VLANs of the servers' links, in the same order; flows and mix
 *   flood-vlans=A[-B] VLANs that the flood comes on; mix; default: vlans
 *   seed=N            default 1
 *   flows=N           two-way flows, spread over the tenants; default 1000
 *   prefix=ADDR/LEN   sources of the flood, and the clients; default 10.0.0.0/8 or 2001:db8:1::/64,
 *                     of connlimit-probe 198.18.1.0/28 or 2001:db8:1::/124;
 *                     of an IPv6 address at most the last 32 bits vary
 *   dst=ADDR          the server; default 192.0.2.1 or 2001:db8::1
 *   dport=PORT        its port; default 80
 *   udp=0|1           UDP instead of TCP
 *   ratio=PERCENT     share of the flood in a mix; default 50
 *   csum=0|1          1 (default): packets are marked as a NIC marks those with right checksums
 */
#ifndef GENERATOR_OPTIONS_H
#define GENERATOR_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tuple.h"

#define GEN_SIZE_MIN  64u /* also what shorter segments are padded to */
#define GEN_SIZE_MIN6 84u
#define GEN_SIZE_MAX  1518u
#define GEN_FLOWS_MAX (1u << 22)

/* Client ports of the flows have this bit set, those of the flood have not: they never meet. */
#define GEN_FLOW_PORT 0x8000u

enum gen_kind { GEN_SYNFLOOD, GEN_FLOWS, GEN_MIX, GEN_PROBE };

struct gen_vlans {
	uint16_t first, last;
};

struct gen_options {
	enum gen_kind kind;
	uint8_t family; /* TUPLE_IPV4 or TUPLE_IPV6 */
	uint64_t rate, size, seed, flows, dport, udp, ratio, csum;
	struct gen_vlans vlans, peer_vlans, flood_vlans;
	bool has_flood_vlans, has_prefix, has_dst;
	struct tuple_addr prefix, dst;
	uint32_t prefix_len;
	uint32_t host_mask; /* bits of the last 32 of an address that vary */
};

struct sl_err;

/* 0 or -EINVAL, with what was wrong and what would do. */
int gen_options_parse(struct gen_options *o, const char *devargs, struct sl_err *err);

/* Whether all packets open connections. */
static inline bool
gen_only_opens(const struct gen_options *o)
{
	return o->kind == GEN_SYNFLOOD || o->kind == GEN_PROBE;
}

/* Client addresses that a prefix has for flows: network and broadcast address left out. */
static inline uint64_t
gen_hosts(const struct gen_options *o)
{
	return o->host_mask > 1 ? (uint64_t)o->host_mask - 1 : (uint64_t)o->host_mask + 1;
}

/* Last 32 bits of the prefix, and of its first address for flows, in host order. */
static inline uint32_t
gen_prefix_low(const struct gen_options *o)
{
	return rte_be_to_cpu_32(o->prefix.w[o->family == TUPLE_IPV4 ? 0 : 3]);
}

static inline uint32_t
gen_first_host(const struct gen_options *o)
{
	return gen_prefix_low(o) + (o->host_mask > 1);
}

static inline uint32_t
gen_size_min(const struct gen_options *o)
{
	return o->family == TUPLE_IPV4 ? GEN_SIZE_MIN : GEN_SIZE_MIN6;
}

static inline uint32_t
gen_vlan_count(const struct gen_vlans *v)
{
	return v->last - v->first + 1u;
}

#endif
