/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private to proto_tcp.c (states) and proto_tcp_window.c (windows).
 *
 * What the two keep in the spare bits of struct ct_tcp, because a segment that fits no open
 * connection may still be the truth: an original SYN that met a connection in progress is passed
 * and remembered, and the SYN/ACK that answers it takes the connection over.
 *
 *   scale[CT_ORIGINAL] >> 4   window scale that the remembered SYN offered
 *   scale[CT_REPLY] >> 4      TCP_NOTE_…
 */
#ifndef CT_PROTO_TCP_H
#define CT_PROTO_TCP_H

#include <rte_branch_prediction.h>
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
	bool beyond; /* outside of the window, but by less than another one */
	const uint8_t *options;
	unsigned int options_len;
};

enum tcp_fit {
	TCP_FITS,    /* in the window, which is updated */
	TCP_LAX,     /* outside, passed as good: no window is known or all are let be */
	TCP_STALE,   /* outside in a way that happens to sound peers: passed, changes nothing */
	TCP_OUTSIDE, /* in no window this connection can have */
};

/* Serial number arithmetic (RFC 9293, 3.4): a is behind b. At just half of the range each is behind
 * the other, so that such a segment is in no window. */
static inline bool
tcp_after(uint32_t a, uint32_t b)
{
	return (int32_t)(b - a) < 0;
}

static inline uint32_t
tcp_load32(const uint8_t *p)
{
	rte_be32_t v;

	memcpy(&v, p, sizeof(v));
	return rte_be_to_cpu_32(v);
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

/* Options as most stacks lay them out on every segment: NOP, NOP, timestamps. Read as one word. */
#define TCP_TIMESTAMPS_ONLY_LEN  12
#define TCP_TIMESTAMPS_ONLY_WORD 0x0101080au

/* True when the options must be read for a SACK. */
static inline bool
tcp_window_may_sack(const struct ct_tcp *tcp, unsigned int dir, const struct tcp_seg *seg)
{
	return seg->options_len != 0 && (tcp->peer_flags[!dir] & CT_TCP_PEER_SACK) &&
	       !(seg->options_len == TCP_TIMESTAMPS_ONLY_LEN &&
		       tcp_load32(seg->options) == TCP_TIMESTAMPS_ONLY_WORD);
}

/* The bounds I and II, and IV broken; proto_tcp_window.c tells what they are. */
static inline bool
tcp_window_data_fits(const struct ct_tcp_peer *s, const struct ct_tcp_peer *r,
	const struct tcp_seg *seg)
{
	return !tcp_after(seg->seq, s->max_end) &&
	       (r->max_win == 0 || !tcp_after(s->end - r->max_win, seg->end));
}

/* The largest window without scaling and some more. */
#define TCP_ACK_WINDOW_MIN 66000u

static inline bool
tcp_window_ack_low(const struct ct_tcp_peer *s, const struct ct_tcp_peer *r,
	const struct tcp_seg *seg)
{
	return tcp_after(r->end - RTE_MAX(s->max_win, TCP_ACK_WINDOW_MIN), seg->sack);
}

/* Repeats of one segment by a side that gets no answer. */
static inline void
tcp_window_repeats(struct ct_tcp *tcp, unsigned int dir, const struct tcp_seg *seg)
{
	uint32_t differs = (tcp->last_seq ^ seg->seq) | (tcp->last_ack ^ seg->ack) |
			   (tcp->last_end ^ seg->end) | (uint32_t)(tcp->last_win ^ seg->win) |
			   (tcp->last_dir ^ dir);

	if (likely(differs)) {
		tcp->last_seq = seg->seq;
		tcp->last_ack = seg->ack;
		tcp->last_end = seg->end;
		tcp->last_win = seg->win;
		tcp->retrans = 0;
	} else if (tcp->retrans < UINT8_MAX) {
		tcp->retrans++;
	}
}

/* The segment is the last of its sender, though beyond what was offered. */
static inline void
tcp_window_take_beyond(struct ct_tcp *tcp, unsigned int dir, const struct tcp_seg *seg)
{
	tcp->peer[dir].end = seg->end;
	tcp->peer_flags[dir] |= CT_TCP_PEER_UNACKED;
}

/* Updates both sides with a segment that is in the window. */
static inline void
tcp_window_take(struct ct_tcp *tcp, unsigned int dir, const struct tcp_seg *seg)
{
	struct ct_tcp_peer *s = &tcp->peer[dir], *r = &tcp->peer[!dir];
	bool syn = seg->kind == TCP_SYN || seg->kind == TCP_SYNACK;
	uint32_t win = (uint32_t)seg->win << (syn ? 0 : tcp_scale(tcp, dir));
	/* The window begins at the acknowledgement, but what is beyond a SACK is known to fit
	 * too. */
	uint32_t reach = seg->sack + win;

	if (s->max_win < reach - seg->ack)
		s->max_win = reach - seg->ack;
	if (tcp_after(seg->end, s->end)) {
		s->end = seg->end;
		tcp->peer_flags[dir] |= CT_TCP_PEER_UNACKED;
	}
	if (likely(seg->has_ack) && (!(tcp->peer_flags[dir] & CT_TCP_PEER_MAXACK) ||
					    tcp_after(seg->ack, s->max_ack))) {
		s->max_ack = seg->ack;
		tcp->peer_flags[dir] |= CT_TCP_PEER_MAXACK;
	}
	if (r->max_win != 0 && tcp_after(seg->end, s->max_end))
		r->max_win += seg->end - s->max_end;
	/* A closed window admits a probe of one octet (RFC 9293, 3.8.6.1). */
	if (!tcp_after(r->max_end, reach))
		r->max_end = reach + (win == 0);
	if (seg->ack == r->end)
		tcp->peer_flags[!dir] &= (uint8_t)~CT_TCP_PEER_UNACKED;
	if (seg->kind == TCP_ACK)
		tcp_window_repeats(tcp, dir, seg);
}

/*
 * Checks a segment against the windows and, when it is no RST, updates these. Completes seg->ack
 * and seg->sack, sets seg->beyond. `liberal`: nothing is outside (tcp_be_liberal).
 */
enum tcp_fit tcp_window(struct ct_tcp *tcp, unsigned int dir, struct tcp_seg *seg, bool liberal);

/* Starts the tracking: with a SYN, or with any segment of a connection under way, of which then
 * neither side's window scale is known. */
void tcp_window_open(struct ct_tcp *tcp, const struct tcp_seg *syn);
void tcp_window_pick_up(struct ct_tcp *tcp, const struct tcp_seg *seg);

/* Remembers an original SYN that is passed without effect; and makes the remembered one the start
 * of the connection, the reply side's window being unknown again. */
void tcp_window_note_syn(struct ct_tcp *tcp, const struct tcp_seg *syn);
void tcp_window_restart(struct ct_tcp *tcp);

/* True when the SYN/ACK acknowledges the other side's SYN, or a part of the data that came with it
 * (RFC 9293, 3.10.7.3; RFC 7413). Only before any acknowledgement of that side. */
bool tcp_window_answers_syn(const struct ct_tcp *tcp, unsigned int dir, const struct tcp_seg *seg);

#endif
