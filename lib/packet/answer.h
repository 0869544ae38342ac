/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that the gateway makes itself, in answer to one that it refuses: what ICMP errors and TCP
 * resets have in common. The frame goes back the way the packet came: MACs exchanged, with the tags
 * that it came with, so it can leave on the link of its ingress.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "pkt.h"

#define ANSWER_TTL 64

/*
 * Whether a packet may be answered at all, by an error or a reset: it is unicast IP from one host
 * to another, in its frame too, and no fragment but a first one or a whole datagram (RFC 1122
 * 3.2.2, RFC 1812 4.3.2.7, RFC 4443 2.4). `p` is a parsed packet with PKT_IP.
 */
bool answer_allowed(const struct pkt *p);

/* Whether the packet's transport header is whole and its checksum right: one that is damaged may
 * not be from whom it says. TCP flags that no segment should have are no damage. */
bool answer_intact(const struct pkt *p);

/*
 * Begins the frame in `m`, an empty buffer with room for it: the Ethernet header and tags of the
 * packet with its MACs exchanged, and behind them `len` bytes, to which it returns a pointer. NULL
 * when there is not that much room; m is as it was then.
 */
uint8_t *answer_begin(struct rte_mbuf *m, const struct pkt *p, uint16_t len);

/*
 * Writes an IP header of the packet's family for payload_len bytes of `proto` behind it, from `src`
 * to the packet's source. Returns its length.
 */
uint16_t answer_ip_header(uint8_t *ip, const struct pkt *p, const struct tuple_addr *src,
	uint8_t proto, uint16_t payload_len);

/* Length of that header. */
uint16_t answer_ip_len(const struct pkt *p);

/* The packet's source, which the answer is for, and its destination, which a reset is from. */
struct tuple_addr answer_src(const struct pkt *p);
struct tuple_addr answer_dst(const struct pkt *p);

#endif
