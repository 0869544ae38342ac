/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parser: the one place where lengths are checked. Frames are hostile: cut anywhere, longer
 * than their packet (padding), lying about every length.
 */
#ifndef PARSE_H
#define PARSE_H

#include <stdint.h>

#include "pkt.h"

/* At most this many IPv6 extension headers, and each of hop-by-hop and fragment once. */
#define PARSE_IP6_EXT_MAX 8

/* What parse_frame() returns for a fragment; no drop reason. */
#define PARSE_FRAGMENT ((enum sl_drop)(SL_DROP_COUNT + 1))

/*
 * Parses the frame in `m` into *p and sets every field of the parser's part; the others are zeroed.
 * tuple.scope and tuple.zone are left zero.
 *
 * Headers split over segments are handled: they are pulled into the first segment, which must then
 * be writable and have the room (else SL_DROP_IP_TRUNCATED). Payload may stay in later segments.
 * Tags that the port stripped are put back, so that the frame is as it was on the wire.
 *
 * Returns SL_DROP_NONE, or the reason for which the frame must be dropped. With SL_DROP_NONE:
 *   not IP, or ARP        PKT_IP clear, l3 NULL
 *   a sound IP packet     PKT_IP, tuple set; with PKT_ICMP_ERROR it is the tuple of the packet
 *                         inside the error, as that packet's sender sent it
 *   its L4 is unsound     PKT_IP | PKT_L4_BAD, reason one of SL_DROP_INV_…; conntrack does not look
 *                         it up (netfilter: INVALID)
 * In the last case, when a fragment is returned, and when a packet is dropped for what is behind
 * its IP header, the addresses and the protocol of the tuple are still set, for whoever tells of
 * it; pkt.reason is set unless it is a fragment.
 *
 * PARSE_FRAGMENT: a sound fragment, whose payload is l4_len bytes, l3_len behind l3. An IPv6
 * fragment header with neither offset nor M bit makes none (RFC 6946). The first fragment of
 * IPv6 has all headers, the transport header included (RFC 7112), else it is dropped.
 *
 * Transport checksums are not verified here: see csum.h.
 */
enum sl_drop parse_frame(struct pkt *p, struct rte_mbuf *m);

/* The same for a view of a whole datagram (frag.h), whose segments stay as they are. */
enum sl_drop parse_view(struct pkt *p, struct rte_mbuf *m);

#endif
