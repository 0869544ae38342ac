/* SPDX-License-Identifier: BSD-3-Clause */
/* A second, small reader of packets, independent of lib/packet, for what the gateway makes. */
#ifndef PACKET_READ_H
#define PACKET_READ_H

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;

struct seen {
	uint16_t vlan;
	bool tagged, v4;
	uint8_t proto, flags;
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
	uint32_t seq, ack;
	uint16_t payload;
};

/* Reads TCP or UDP over IP, with at most one tag, and fails the test when any length or checksum is
 * wrong. The packet stays the caller's. */
struct seen packet_read(struct rte_mbuf *m);

#endif
