/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP window tracking after G. van Rooij, "Real Stateful TCP Packet Filtering in IP Filter" (2001).
 *
 * A gateway between the ends sees what each has sent and acknowledged, not what arrived. From it
 * follow four bounds for a segment of `s` to `r`; M is the largest window, W at least M and 66,000:
 *
 *   data   I    seq  <= s.max_end            no further than r has made room for
 *          II   end  >= s.end - r.max_win    no older than what r may still wait for
 *   ack    III  sack <= r.end                nothing is acknowledged that was not sent
 *          IV   sack >= r.end - W            no older than what may be under way
 */
#include "proto_tcp.h"

#define OPT_END        0
#define OPT_NOP        1
#define OPT_SCALE      3
#define OPT_SACK_OK    4
#define OPT_SACK       5

/*
 * Steps through the options: the next option's kind with its body, or OPT_END. A list that lies on
 * a length ends there.
 */
static unsigned int
next_option(const uint8_t **at, const uint8_t *end, const uint8_t **body, unsigned int *body_len)
{
	const uint8_t *p = *at;

	while (p < end && *p == OPT_NOP)
		p++;
	if (end - p < 2 || p[0] == OPT_END || p[1] < 2 || p[1] > end - p)
		return OPT_END;
	*body = p + 2;
	*body_len = p[1] - 2u;
	*at = p + p[1];
	return p[0];
}

/* Peer flags for what a SYN offers. */
static uint8_t
syn_options(const struct tcp_seg *syn, unsigned int *scale)
{
	const uint8_t *at = syn->options, *end = at + syn->options_len, *body = NULL;
	unsigned int kind, len = 0;
	uint8_t flags = 0;

	*scale = 0;
	while ((kind = next_option(&at, end, &body, &len)) != OPT_END) {
		if (kind == OPT_SACK_OK && len == 0) {
			flags |= CT_TCP_PEER_SACK;
		} else if (kind == OPT_SCALE && len == 1) {
			flags |= CT_TCP_PEER_SCALE;
			*scale = RTE_MIN(body[0], TCP_SCALE_MAX);
		}
	}
	return flags;
}

/* The highest right edge of the SACK blocks, or the acknowledgement when none is higher. */
static uint32_t
highest_sack(const struct tcp_seg *seg)
{
	const uint8_t *at = seg->options, *end = at + seg->options_len, *body = NULL;
	unsigned int kind, len = 0, i;
	uint32_t high = seg->ack;

	while ((kind = next_option(&at, end, &body, &len)) != OPT_END) {
		if (kind != OPT_SACK || len % 8 != 0)
			continue;
		for (i = 4; i < len; i += 8) {
			uint32_t edge = tcp_load32(body + i);

			if (tcp_after(edge, high))
				high = edge;
		}
	}
	return high;
}

/* A SYN or SYN/ACK tells all of its sender: sequence, window (never scaled), options. One without
 * any takes nothing back of what is known. */
static void
open_side(struct ct_tcp *tcp, unsigned int dir, const struct tcp_seg *seg)
{
	uint32_t max_ack = seg->seq; /* until it has acknowledged anything, where it starts */
	unsigned int scale;

	if (seg->options_len != 0) {
		tcp->peer_flags[dir] &= CT_TCP_PEER_LIBERAL;
		tcp->peer_flags[dir] |= syn_options(seg, &scale);
		tcp_set_scale(tcp, dir, scale);
	}
	if (tcp->peer_flags[dir] & CT_TCP_PEER_MAXACK)
		max_ack = tcp->peer[dir].max_ack;
	tcp->peer[dir] = (struct ct_tcp_peer){
		.end = seg->end,
		.max_end = seg->end,
		.max_win = RTE_MAX(seg->win, 1),
		.max_ack = max_ack,
	};
}

void
tcp_window_open(struct ct_tcp *tcp, const struct tcp_seg *syn)
{
	open_side(tcp, CT_ORIGINAL, syn);
}

void
tcp_window_pick_up(struct ct_tcp *tcp, const struct tcp_seg *seg)
{
	uint32_t win = RTE_MAX(seg->win, 1);

	tcp->peer_flags[CT_ORIGINAL] = CT_TCP_PEER_SACK | CT_TCP_PEER_LIBERAL;
	tcp->peer_flags[CT_REPLY] = CT_TCP_PEER_SACK | CT_TCP_PEER_LIBERAL;
	tcp->peer[CT_ORIGINAL] = (struct ct_tcp_peer){
		.end = seg->end,
		.max_end = seg->end + win,
		.max_win = win,
	};
	/* Nothing was seen of the other side; until it is, no acknowledgement is of any use. */
	tcp->peer[CT_REPLY] = (struct ct_tcp_peer){0};
}

void
tcp_window_note_syn(struct ct_tcp *tcp, const struct tcp_seg *syn)
{
	unsigned int scale, notes = 0;
	uint8_t flags = syn_options(syn, &scale);

	if (flags & CT_TCP_PEER_SCALE)
		notes |= TCP_NOTE_SCALE;
	if (flags & CT_TCP_PEER_SACK)
		notes |= TCP_NOTE_SACK;
	if (tcp->state == CT_TCP_LAST_ACK)
		notes |= TCP_NOTE_CHALLENGE;
	tcp->scale[CT_ORIGINAL] = (uint8_t)(tcp_scale(tcp, CT_ORIGINAL) | scale << 4);
	tcp->scale[CT_REPLY] = (uint8_t)(tcp_scale(tcp, CT_REPLY) | notes);
}

void
tcp_window_restart(struct ct_tcp *tcp)
{
	uint8_t flags = 0;

	if (tcp_noted(tcp, TCP_NOTE_SCALE))
		flags |= CT_TCP_PEER_SCALE;
	if (tcp_noted(tcp, TCP_NOTE_SACK))
		flags |= CT_TCP_PEER_SACK;
	tcp->peer[CT_ORIGINAL] = (struct ct_tcp_peer){
		.end = tcp->last_end,
		.max_end = tcp->last_end,
		.max_win = RTE_MAX(tcp->last_win, 1),
		.max_ack = tcp->last_seq,
	};
	tcp->peer_flags[CT_ORIGINAL] = flags;
	tcp->scale[CT_ORIGINAL] >>= 4;
	tcp->peer[CT_REPLY] = (struct ct_tcp_peer){0};
	tcp->peer_flags[CT_REPLY] &= CT_TCP_PEER_LIBERAL;
	tcp->scale[CT_REPLY] = 0;
}

bool
tcp_window_answers_syn(const struct ct_tcp *tcp, unsigned int dir, const struct tcp_seg *seg)
{
	const struct ct_tcp_peer *r = &tcp->peer[!dir];

	return tcp_after(seg->ack, r->max_ack) && !tcp_after(seg->ack, r->end);
}

/*
 * A SYN of a side already known is a repetition, unless its sequence is new while the connection is
 * being opened: then its sender has started anew.
 */
static bool
starts_anew(const struct ct_tcp *tcp, unsigned int dir, const struct tcp_seg *seg)
{
	if (tcp->state == CT_TCP_SYN_SENT && dir == CT_ORIGINAL)
		return seg->seq != tcp->peer[dir].max_ack ||
		       tcp_after(seg->end, tcp->peer[dir].end);
	return (tcp->state == CT_TCP_SYN_SENT || tcp->state == CT_TCP_SYN_RECV) &&
	       tcp_after(seg->end, tcp->peer[dir].end);
}

/* True when the segment tells of its sender anew. */
static bool
meet_syn(struct ct_tcp *tcp, unsigned int dir, const struct tcp_seg *seg)
{
	if (tcp->peer[dir].max_win != 0 && !starts_anew(tcp, dir, seg))
		return false;
	open_side(tcp, dir, seg);
	/* Scaling is in force when both have offered it (RFC 7323, 2.2). */
	if (dir == CT_REPLY &&
		!(tcp->peer_flags[0] & tcp->peer_flags[1] & CT_TCP_PEER_SCALE)) {
		tcp_set_scale(tcp, CT_ORIGINAL, 0);
		tcp_set_scale(tcp, CT_REPLY, 0);
	}
	return true;
}

/* The first segment of a side whose SYN was not seen. */
static void
meet_amid(struct ct_tcp *tcp, unsigned int dir, const struct tcp_seg *seg)
{
	struct ct_tcp_peer *s = &tcp->peer[dir], *r = &tcp->peer[!dir];
	uint32_t win = (uint32_t)seg->win << tcp_scale(tcp, dir);

	s->end = seg->end;
	s->max_win = RTE_MAX(win, 1u);
	s->max_end = seg->end + s->max_win;
	/* A keepalive's answer acknowledges the octet that only the keepalive sent. */
	if (seg->has_ack && seg->sack == r->end + 1)
		r->end++;
}

/*
 * Sound peers can be outside too: data or an acknowledgement that was long under way, or what is
 * beyond an offer by less than a window. The latter is the last that was sent, else its
 * acknowledgement were outside; a RST is not acknowledged, and must not move anything but where it
 * closes. Windows that are a good part of the sequence space can make one segment both too old and
 * too new.
 */
static enum tcp_fit
outside(struct ct_tcp *tcp, unsigned int dir, struct tcp_seg *seg, bool ack_low)
{
	struct ct_tcp_peer *s = &tcp->peer[dir], *r = &tcp->peer[!dir];

	if (!tcp_after(seg->seq, s->max_end))
		return TCP_STALE;
	if (ack_low || seg->end - s->max_end >= r->max_win ||
		tcp_after(s->end - r->max_win, seg->end))
		return TCP_OUTSIDE;
	seg->beyond = true;
	if (seg->kind != TCP_RST)
		tcp_window_take_beyond(tcp, dir, seg);
	return TCP_STALE;
}

/* No acknowledgement, or none to speak of: some stacks set ACK in a RST and leave it zero. */
static inline void
complete_ack(const struct ct_tcp *tcp, unsigned int dir, struct tcp_seg *seg)
{
	if (unlikely(!seg->has_ack || (seg->kind == TCP_RST && seg->ack == 0)))
		seg->ack = seg->sack = tcp->peer[!dir].end;
}

enum tcp_fit
tcp_window(struct ct_tcp *tcp, unsigned int dir, struct tcp_seg *seg, bool liberal)
{
	struct ct_tcp_peer *s = &tcp->peer[dir], *r = &tcp->peer[!dir];
	bool data_fits, ack_low, ack_high;
	enum tcp_fit fit;

	if (seg->has_ack && tcp_window_may_sack(tcp, dir, seg))
		seg->sack = highest_sack(seg);
	if (unlikely(seg->kind == TCP_SYN || seg->kind == TCP_SYNACK)) {
		/* Opened by both: this SYN acknowledges nothing that its window could begin at. */
		if (meet_syn(tcp, dir, seg) && seg->kind == TCP_SYN && dir == CT_REPLY &&
			tcp->state == CT_TCP_SYN_SENT)
			return TCP_FITS;
	} else if (unlikely(s->max_win == 0)) {
		meet_amid(tcp, dir, seg);
	}
	complete_ack(tcp, dir, seg);
	/* The RST of a host that knows of no connection has no sequence (RFC 9293, 3.10.7.1). */
	if (unlikely(seg->kind == TCP_RST && seg->seq == 0 && tcp->state == CT_TCP_SYN_SENT))
		seg->seq = seg->end = s->end;

	data_fits = tcp_window_data_fits(s, r, seg);
	ack_low = tcp_window_ack_low(s, r, seg);
	ack_high = tcp_after(seg->sack, r->end);
	if (data_fits && !ack_low && !ack_high) {
		if (seg->kind != TCP_RST)
			tcp_window_take(tcp, dir, seg);
		return TCP_FITS;
	}
	fit = ack_high ? TCP_OUTSIDE : outside(tcp, dir, seg, ack_low);
	if (liberal || (tcp->peer_flags[dir] & CT_TCP_PEER_LIBERAL))
		return TCP_LAX;
	return fit;
}
