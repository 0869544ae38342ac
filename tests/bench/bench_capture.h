/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two-way flows for the packet path's benchmark: their frames, one by one, and a capture of both
 * directions in random order. Frames are 64 bytes with one VLAN tag: BENCH_VLAN_CLIENT from the
 * client, BENCH_VLAN_SERVER from the server. All checksums are right.
 *
 * A capture is played again and again, so its segments are repeats: of TCP each side sends six
 * bytes, which the other has not acknowledged yet.
 */
#ifndef BENCH_CAPTURE_H
#define BENCH_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#define BENCH_FRAME_LEN   64u
#define BENCH_FLOWS_MAX   (1u << 22)
#define BENCH_VLAN_CLIENT 1u
#define BENCH_VLAN_SERVER 2u

enum bench_frame {
	BENCH_SYN,
	BENCH_SYN_ACK,
	BENCH_ACK,
	BENCH_CLIENT_DATA,
	BENCH_SERVER_DATA,
};

/* The handshake, from first to last; with UDP all frames are datagrams of the same side. */
#define BENCH_HANDSHAKE 3u

#define BENCH_UDP 0x1u /* else TCP */
#define BENCH_NAT 0x2u /* the server knows clients by their addresses in BENCH_NAT_PREFIX */

/* Room for BENCH_FLOWS_MAX. */
#define BENCH_NAT_PREFIX "100.64.0.0/10"

void bench_frame_write(
	uint8_t frame[BENCH_FRAME_LEN], uint32_t flow, enum bench_frame kind, unsigned int how);

/* Both directions of flows 0 … flows - 1; dies when the file cannot be written. */
void bench_capture_write(const char *path, uint32_t flows, unsigned int how);

#endif
