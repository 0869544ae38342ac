/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private to proto_tcp.c (states) and proto_tcp_window.c (windows).
 *
 * What the two keep in the spare bits of struct ct_tcp, because a segment that fits no open
 * connection may still be the truth: an original SYN that met a connection in progress is passed and
 * remembered, and the SYN/ACK that answers it takes the connection over.
 *
 *   scale[CT_ORIGINAL] >> 4   window scale that the remembered SYN offered
 *   scale[CT_REPLY] >> 4      TCP_NOTE_…
 */
#ifndef CT_PROTO_TCP_H
#define CT_PROTO_TCP_H

#include <rte_byteorder.h>

#include "proto.h"

/* What a segment is to the state machine; the index of its table and ct_tcp.last_kind. */
enum tcp_kind { TCP_BAD, TCP_SYN, TCP_SYNACK, TCP_FIN, TCP_ACK, TCP_RST, TCP_KINDS };

#define TCP_SCALE_MASK 0x0f
#define TCP_SCALE_MAX  14 /* RFC 7323, 2.3 */

#define TCP_NOTE_SCALE     0x10 /* the remembered SYN offered window scaling */
#define TCP_NOTE_SACK      0x20 /* … and SACK */
#define TCP_NOTE_CHALLENGE 0x40 /* it came in LAST_ACK: the next ACK may be a challenge to it */
#define TCP_NOTE_SIMOPEN   0x80 /* the connection was opened from both sides at once */

struct tcp_seg {
	uint32_t seq;
	uint32_t end; /* seq + payload, SYN and FIN counted */
	uint32_t ack;
	uint32_t sack; /* highest right edge selectively acknowledged, at least ack */
	uint16_t win;  /* as on the wire */
	uint8_t kind;
	bool has_ack;
	const uint8_t *options;
	unsigned int options_len;
};

enum tcp_fit {
	TCP_FITS,    /* in the window, which is updated */
	TCP_LAX,     /* outside, passed as good: no window is known or all are let be */
	TCP_STALE,   /* outside in a way that happens to sound peers: passed, changes nothing */
	TCP_OUTSIDE, /* in no window this connection can have */
};

/* Serial number arithmetic (RFC 9293, 3.4): a is behind b. */
static inline bool
tcp_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static inline unsigned int
tcp_scale(const struct ct_tcp *tcp, unsigned int dir)
{
	return tcp->scale[dir] & TCP_SCALE_MASK;
}

static inline void
tcp_set_scale(struct ct_tcp *tcp, unsigned int dir, unsigned int scale)
{
	tcp->scale[dir] = (uint8_t)((tcp->scale[dir] & ~TCP_SCALE_MASK) | scale);
}

static inline bool
tcp_noted(const struct ct_tcp *tcp, unsigned int note)
{
	return tcp->scale[CT_REPLY] & note;
}

/*
 * Checks a segment against the windows and, when it is in them and no RST, updates these. Completes
 * seg->ack and seg->sack. `liberal`: nothing is outside (tcp_be_liberal).
 */
enum tcp_fit tcp_window(struct ct_tcp *tcp, unsigned int dir, struct tcp_seg *seg, bool liberal);

/* Starts the tracking: with a SYN, or with any segment of a connection under way, of which then
 * neither side's window scale is known. */
void tcp_window_open(struct ct_tcp *tcp, const struct tcp_seg *syn);
void tcp_window_pick_up(struct ct_tcp *tcp, const struct tcp_seg *seg);

/* Remembers an original SYN that is passed without effect; and makes the remembered one the start of
 * the connection, the reply side's window being unknown again. */
void tcp_window_note_syn(struct ct_tcp *tcp, const struct tcp_seg *syn);
void tcp_window_restart(struct ct_tcp *tcp);

/* True when the SYN/ACK acknowledges the other side's SYN, or a part of the data that came with it
 * (RFC 9293, 3.10.7.3; RFC 7413). Only before any acknowledgement of that side. */
bool tcp_window_answers_syn(const struct ct_tcp *tcp, unsigned int dir, const struct tcp_seg *seg);

#endif
