/* SPDX-License-Identifier: BSD-3-Clause */
/* The RST that answers a TCP segment of no connection (RFC 9293 3.10.7.1). */
#ifndef TCP_RESET_H
#define TCP_RESET_H

#include <stdbool.h>

#include "pkt.h"

/* Whether a packet may be answered so: a TCP segment that is no RST, answer_intact() and
 * answer_allowed(). */
bool tcp_reset_allowed(const struct pkt *p);

/*
 * Writes the RST into `m`, an empty buffer: a whole frame from the packet's destination to its
 * source, to leave on the link on which it came. False when m has not the room. The caller has
 * asked tcp_reset_allowed().
 */
bool tcp_reset_write(struct rte_mbuf *m, const struct pkt *p);

#endif
