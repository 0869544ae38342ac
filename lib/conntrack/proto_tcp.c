/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP: the states of a connection as a gateway sees them.
 *
 *            SYN           SYN/ACK (reply)        ACK
 *     none ───────▶ SYN_SENT ───────▶ SYN_RECV ───────▶ ESTABLISHED ◀── ACK ── none (picked up)
 *                     │ SYN (reply)      ▲                  │
 *                     ▼                  │ SYN/ACK          │ FIN
 *                  SYN_SENT2 ────────────┘                  ▼
 *                              ACK                       FIN_WAIT
 *                CLOSE_WAIT ◀────────────────────────────┘  │
 *                     │ FIN                                 │ FIN
 *                     ▼                                     ▼
 *                  LAST_ACK ◀───────────────────────────────┘
 *                     │ ACK
 *                     ▼                         RST
 *                 TIME_WAIT      any state ───────────▶ CLOSE
 *
 * A gateway can be wrong: an end may have restarted, or a segment may be forged. So what does not
 * fit, but could make sense to its receiver, is passed without effect, and the receiver's answer
 * decides (RFC 5961). States and timeouts are netfilter's.
 */
#include "proto_tcp.h"

#define INVALID CT_TCP_NONE
#define IGNORED CT_TCP_STATES

/* Kinds by flags, FIN to URG; PSH matters nowhere. All else is no TCP that any end would send. */
#define WITH_PSH(flags, kind) [(flags)] = (kind), [(flags) | PKT_TCP_PSH] = (kind)
#define FLAGS_MASK 0x3f
static const uint8_t kinds[FLAGS_MASK + 1] = {
	WITH_PSH(PKT_TCP_SYN, TCP_SYN),
	WITH_PSH(PKT_TCP_SYN | PKT_TCP_URG, TCP_SYN),
	WITH_PSH(PKT_TCP_SYN | PKT_TCP_ACK, TCP_SYNACK),
	WITH_PSH(PKT_TCP_FIN | PKT_TCP_ACK, TCP_FIN),
	WITH_PSH(PKT_TCP_FIN | PKT_TCP_ACK | PKT_TCP_URG, TCP_FIN),
	WITH_PSH(PKT_TCP_ACK, TCP_ACK),
	WITH_PSH(PKT_TCP_ACK | PKT_TCP_URG, TCP_ACK),
	WITH_PSH(PKT_TCP_RST, TCP_RST),
	WITH_PSH(PKT_TCP_RST | PKT_TCP_ACK, TCP_RST),
};

/* Closing is the same from both sides: what counts is the number of FINs and that they are
 * ACKed. */
#define CLOSING_BY_FIN                                                                             \
	[CT_TCP_SYN_RECV ... CT_TCP_ESTABLISHED] = CT_TCP_FIN_WAIT, /* the first */                \
	[CT_TCP_FIN_WAIT ... CT_TCP_LAST_ACK] = CT_TCP_LAST_ACK,    /* the second, or a repeat */  \
	[CT_TCP_TIME_WAIT] = CT_TCP_TIME_WAIT,                      /* its ACK was lost */         \
	[CT_TCP_CLOSE] = CT_TCP_CLOSE
#define CLOSING_BY_ACK                                                                             \
	[CT_TCP_FIN_WAIT ... CT_TCP_CLOSE_WAIT] = CT_TCP_CLOSE_WAIT, /* half closed: data on */ \
	[CT_TCP_LAST_ACK ... CT_TCP_TIME_WAIT] = CT_TCP_TIME_WAIT,                                 \
	[CT_TCP_CLOSE] = CT_TCP_CLOSE

/* The next state by direction, kind and state; what is not listed is INVALID. */
static const uint8_t next_state[2][TCP_KINDS][CT_TCP_STATES] = {
	[CT_ORIGINAL] = {
		[TCP_SYN] = {
			[CT_TCP_NONE] = CT_TCP_SYN_SENT,
			[CT_TCP_SYN_SENT] = CT_TCP_SYN_SENT, /* repeated */
			/* The client has restarted, or it is forged: the server's answer tells. */
			[CT_TCP_SYN_RECV ... CT_TCP_LAST_ACK] = IGNORED,
			/* The ports are used again, see reopens(). */
			[CT_TCP_TIME_WAIT ... CT_TCP_CLOSE] = CT_TCP_SYN_SENT,
			[CT_TCP_SYN_SENT2] = CT_TCP_SYN_SENT2,
		},
		[TCP_SYNACK] = {
			/* Simultaneous open (RFC 9293, 3.5, figure 8): each answers the other's
			 * SYN. */
			[CT_TCP_SYN_SENT2] = CT_TCP_SYN_RECV,
			[CT_TCP_SYN_RECV] = CT_TCP_SYN_RECV,
		},
		[TCP_FIN] = {CLOSING_BY_FIN},
		[TCP_ACK] = {
			[CT_TCP_NONE] = CT_TCP_ESTABLISHED, /* amid a connection, with tcp_loose */
			[CT_TCP_SYN_RECV ... CT_TCP_ESTABLISHED] = CT_TCP_ESTABLISHED,
			CLOSING_BY_ACK,
		},
		[TCP_RST] = {[CT_TCP_SYN_SENT ... CT_TCP_SYN_SENT2] = CT_TCP_CLOSE},
	},
	[CT_REPLY] = {
		[TCP_SYN] = {
			[CT_TCP_SYN_SENT] = CT_TCP_SYN_SENT2, /* simultaneous open */
			[CT_TCP_SYN_SENT2] = CT_TCP_SYN_SENT2,
			[CT_TCP_TIME_WAIT] = CT_TCP_SYN_SENT, /* opened anew from the other side */
		},
		[TCP_SYNACK] = {
			[CT_TCP_SYN_SENT] = CT_TCP_SYN_RECV,
			/* Repeated, old, or the answer to a SYN that was passed. */
			[CT_TCP_SYN_RECV ... CT_TCP_CLOSE] = IGNORED,
			[CT_TCP_SYN_SENT2] = CT_TCP_SYN_RECV,
		},
		[TCP_FIN] = {CLOSING_BY_FIN},
		[TCP_ACK] = {
			/* A challenge of a server that has the connection of before. */
			[CT_TCP_SYN_SENT] = IGNORED,
			[CT_TCP_SYN_SENT2] = IGNORED,
			[CT_TCP_SYN_RECV] = CT_TCP_SYN_RECV, /* not the client's */
			[CT_TCP_ESTABLISHED] = CT_TCP_ESTABLISHED,
			CLOSING_BY_ACK,
		},
		[TCP_RST] = {[CT_TCP_SYN_SENT ... CT_TCP_SYN_SENT2] = CT_TCP_CLOSE},
	},
};

static const char *const state_names[CT_TCP_STATES] = {
	[CT_TCP_NONE] = "NONE",
	[CT_TCP_SYN_SENT] = "SYN_SENT",
	[CT_TCP_SYN_RECV] = "SYN_RECV",
	[CT_TCP_ESTABLISHED] = "ESTABLISHED",
	[CT_TCP_FIN_WAIT] = "FIN_WAIT",
	[CT_TCP_CLOSE_WAIT] = "CLOSE_WAIT",
	[CT_TCP_LAST_ACK] = "LAST_ACK",
	[CT_TCP_TIME_WAIT] = "TIME_WAIT",
	[CT_TCP_CLOSE] = "CLOSE",
	[CT_TCP_SYN_SENT2] = "SYN_SENT2",
};

/* One packet on its way through the machine. */
struct step {
	struct ct_entry *e;
	struct pkt *p;
	const struct ct_proto_ctx *ctx;
	struct tcp_seg seg;
	unsigned int dir;
	uint8_t next;
};

static inline void
seg_read(struct tcp_seg *seg, const struct pkt *p, unsigned int flags)
{
	const uint8_t *h = p->l4;

	seg->kind = kinds[flags & FLAGS_MASK];
	seg->has_ack = flags & PKT_TCP_ACK;
	seg->beyond = false;
	seg->seq = tcp_load32(h + 4);
	seg->ack = seg->sack = tcp_load32(h + 8);
	seg->win = (uint16_t)(h[14] << 8 | h[15]);
	seg->end = seg->seq + p->l4_len - p->l4_hdr_len + (flags & PKT_TCP_FIN ? 1 : 0) +
		   (flags & PKT_TCP_SYN ? 1 : 0);
	seg->options = h + 20;
	seg->options_len = p->l4_hdr_len - 20u;
}

static enum ct_proto_verdict
invalid(struct pkt *p, enum sl_drop reason)
{
	p->reason = (uint8_t)reason;
	return CT_PROTO_INVALID;
}

/* The entry lives no longer than timeout_ms from now. */
static void
shorten(struct ct_entry *e, uint32_t timeout_ms, const struct ct_proto_ctx *ctx)
{
	if (sl_ms_left(e->deadline, ctx->now.ms) > (int32_t)timeout_ms)
		ct_refresh(e, timeout_ms, ctx);
}

/*
 * A FIN or RST outside of the window may be forged, or the windows known here may be wrong. When
 * both sides send one, or one of them another that is sound, the connection is over either way, and
 * need not be kept for days: unless stays() was called in between, for a segment that shows it
 * alive.
 */
static inline void
stays(struct ct_tcp *tcp)
{
	if (unlikely((tcp->peer_flags[0] | tcp->peer_flags[1]) & CT_TCP_PEER_LEFT)) {
		tcp->peer_flags[0] &= (uint8_t)~CT_TCP_PEER_LEFT;
		tcp->peer_flags[1] &= (uint8_t)~CT_TCP_PEER_LEFT;
	}
}

/* Whether the last of a side, sound or not, was one of these. */
static bool
left(const struct ct_tcp *tcp, unsigned int dir)
{
	return tcp->peer_flags[dir] & CT_TCP_PEER_LEFT ||
	       (tcp->last_dir == dir && (tcp->last_kind == TCP_FIN || tcp->last_kind == TCP_RST));
}

/* What has less than two minutes is left alone, as by the kernel, whose clock is coarser. */
#define OVER_SOON_MS (2 * 60 * 1000 - 100)

/* Whether it may be kept for long: what is not assured is not. */
static bool
lasts(const struct step *st)
{
	return st->e->status & CT_ASSURED &&
	       sl_ms_left(st->e->deadline, st->ctx->now.ms) >= OVER_SOON_MS;
}

static enum ct_proto_verdict
refuse_outside(struct step *st)
{
	struct ct_tcp *tcp = &st->e->proto.tcp;
	bool rst = st->seg.kind == TCP_RST;

	if (rst || st->seg.kind == TCP_FIN) {
		tcp->peer_flags[st->dir] |= CT_TCP_PEER_LEFT;
		if (left(tcp, !st->dir) && lasts(st))
			shorten(st->e, st->ctx->knobs->tcp_timeout[CT_TCP_UNACK], st->ctx);
	}
	return invalid(st->p, rst ? SL_DROP_INV_TCP_RST : SL_DROP_INV_TCP_WINDOW);
}

/* A SYN opens a closed connection anew when it was closed in order, or by the SYN's own sender.
 * Else the server may know of no close, and its answer decides. */
static bool
reopens(const struct ct_tcp *tcp, unsigned int dir)
{
	return ((tcp->peer_flags[0] | tcp->peer_flags[1]) & CT_TCP_PEER_FIN) ||
	       (tcp->last_kind == TCP_RST && tcp->last_dir == dir);
}

static bool
answers_passed_syn(const struct ct_tcp *tcp, const struct step *st)
{
	return tcp->last_kind == TCP_SYN && tcp->last_dir != st->dir && st->seg.has_ack &&
	       st->seg.ack == tcp->last_end && tcp->state != CT_TCP_SYN_SENT;
}

/* Before its receiver has acknowledged anything a RST is told by what it acknowledges: the last
 * segment, with which the other side has challenged it. */
static bool
answers_challenge(const struct ct_tcp *tcp, const struct step *st)
{
	return tcp->last_kind == TCP_ACK && st->seg.has_ack && st->seg.ack == tcp->last_end &&
	       !(st->e->status & CT_ASSURED) &&
	       !(tcp->peer_flags[!st->dir] & CT_TCP_PEER_MAXACK);
}

/* Passed without effect, but remembered: an answer may tell that it was right. */
static enum ct_proto_verdict
ignore(struct step *st)
{
	struct ct_tcp *tcp = &st->e->proto.tcp;

	tcp->last_kind = st->seg.kind & 7;
	tcp->last_dir = st->dir & 1;
	tcp->last_seq = st->seg.seq;
	tcp->last_ack = st->seg.ack;
	tcp->last_end = st->seg.end;
	tcp->last_win = st->seg.win;
	stays(tcp);
	if (st->seg.kind == TCP_SYN && st->dir == CT_ORIGINAL)
		tcp_window_note_syn(tcp, &st->seg);
	return CT_PROTO_IGNORED;
}

/* An end repeats itself in vain: how long that may go on comes before all else. */
static inline bool
in_vain(const struct ct_tcp *tcp, const struct knobs *knobs)
{
	return unlikely(tcp->retrans >= knobs->tcp_max_retrans) &&
	       knobs->tcp_timeout[CT_TCP_RETRANS] < knobs->tcp_timeout[tcp->state];
}

/* The first that is less than the state's. What a RST has closed waits for nothing. */
static uint32_t
timeout_of(const struct ct_tcp *tcp, const struct knobs *knobs)
{
	uint32_t timeout = knobs->tcp_timeout[tcp->state];
	uint32_t retrans = knobs->tcp_timeout[CT_TCP_RETRANS];

	if (in_vain(tcp, knobs))
		return retrans;
	if (unlikely(tcp->last_kind == TCP_RST))
		return timeout;
	if (((tcp->peer_flags[0] | tcp->peer_flags[1]) & CT_TCP_PEER_UNACKED) &&
		knobs->tcp_timeout[CT_TCP_UNACK] < timeout)
		return knobs->tcp_timeout[CT_TCP_UNACK];
	if (unlikely(tcp->last_win == 0))
		return RTE_MIN(timeout, retrans);
	return timeout;
}

/* What goes for a connection of which only one side was heard. */
static enum ct_proto_verdict
accept_unreplied(struct step *st, unsigned int old, uint32_t timeout)
{
	const struct knobs *knobs = st->ctx->knobs;

	/* The only answer to a SYN was a RST, or its sender gave it up. */
	if (st->seg.kind == TCP_RST)
		return CT_PROTO_KILL;
	/* Repeated SYNs do not prolong it: what was decided at the first would hold for ever. */
	if (st->seg.kind == TCP_SYN && old == CT_TCP_SYN_SENT)
		return CT_PROTO_IGNORED;
	if (st->next == CT_TCP_ESTABLISHED)
		timeout = RTE_MIN(timeout, knobs->tcp_timeout[CT_TCP_UNACK]);
	ct_refresh(st->e, timeout, st->ctx);
	return CT_PROTO_OK;
}

static enum ct_proto_verdict
accept_segment(struct step *st, unsigned int old)
{
	struct ct_entry *e = st->e;
	struct ct_tcp *tcp = &e->proto.tcp;
	uint32_t timeout;

	tcp->last_kind = st->seg.kind & 7;
	tcp->last_dir = st->dir & 1;
	tcp->state = st->next & 15;
	stays(tcp);
	if (unlikely(st->next == CT_TCP_FIN_WAIT) && old != CT_TCP_FIN_WAIT)
		tcp->peer_flags[st->dir] |= CT_TCP_PEER_FIN;
	st->p->ct_state_new = st->next;

	timeout = timeout_of(tcp, st->ctx->knobs);
	if (unlikely(!(e->status & CT_SEEN_REPLY)))
		return accept_unreplied(st, old, timeout);
	if (unlikely(!(e->status & CT_ASSURED)) && st->next == CT_TCP_ESTABLISHED &&
		(old == CT_TCP_SYN_RECV || old == CT_TCP_ESTABLISHED))
		e->status |= CT_ASSURED;
	ct_refresh(e, timeout, st->ctx);
	return CT_PROTO_OK;
}

/* The server answered the SYN as one of another connection, which this RST ends (RFC 9293, 3.5). */
static bool
resets_challenger(const struct step *st, unsigned int old)
{
	const struct ct_tcp *tcp = &st->e->proto.tcp;

	return old == CT_TCP_SYN_SENT && tcp->last_dir == CT_REPLY &&
	       st->seg.seq == tcp->last_ack;
}

static enum ct_proto_verdict
check_window(struct step *st, unsigned int old)
{
	struct ct_tcp *tcp = &st->e->proto.tcp;
	bool rst = st->seg.kind == TCP_RST;

	/* What a RST that closes says of the windows still holds for what is under way. */
	switch (tcp_window(tcp, st->dir, &st->seg, st->ctx->knobs->tcp_be_liberal)) {
	case TCP_FITS:
		if (rst)
			tcp_window_take(tcp, st->dir, &st->seg);
		return accept_segment(st, old);
	case TCP_LAX:
		if (rst && st->seg.beyond)
			tcp_window_take_beyond(tcp, st->dir, &st->seg);
		return accept_segment(st, old);
	case TCP_STALE:
		return CT_PROTO_IGNORED;
	case TCP_OUTSIDE:
		break;
	}
	return refuse_outside(st);
}

/* The RST has exactly the sequence that its receiver waits for, as far as that is known, or follows
 * its sender's last segment. */
static bool
rst_is_exact(const struct ct_tcp *tcp, const struct step *st)
{
	if (!(tcp->peer_flags[!st->dir] & CT_TCP_PEER_MAXACK) ||
		st->seg.seq == tcp->peer[!st->dir].max_ack)
		return true;
	return tcp->last_kind == TCP_ACK && tcp->last_dir == st->dir &&
	       st->seg.seq == tcp->last_end;
}

/* No RST of a live peer is behind what its receiver has acknowledged; but one that answers a SYN
 * may have no sequence. */
static bool
rst_is_old(const struct ct_tcp *tcp, const struct step *st)
{
	bool established = tcp->state == CT_TCP_ESTABLISHED && (st->e->status & CT_ASSURED);

	if (!(tcp->peer_flags[!st->dir] & CT_TCP_PEER_MAXACK) || (st->seg.seq == 0 && !established))
		return false;
	return tcp_after(tcp->peer[!st->dir].max_ack, st->seg.seq);
}

/*
 * Who can send packets but not see any must not be able to close a connection (RFC 5961, 3.2): in
 * an established one only an exact RST does. One that is merely in the window is passed; its
 * receiver will challenge it, and if the sender meant it, it answers exactly. Until then the
 * connection has the lifetime of one whose data is not acknowledged, or goes on repeating in vain.
 */
static enum ct_proto_verdict
take_rst(struct step *st, unsigned int old)
{
	const struct knobs *knobs = st->ctx->knobs;
	struct ct_tcp *tcp = &st->e->proto.tcp;
	enum tcp_fit fit;

	/* What was known may be out of date when closing, and there is nothing left to protect. */
	if (old >= CT_TCP_FIN_WAIT && old <= CT_TCP_CLOSE)
		return accept_segment(st, old);
	if (resets_challenger(st, old))
		return accept_segment(st, old);
	if (answers_passed_syn(tcp, st) || answers_challenge(tcp, st))
		return accept_segment(st, old);
	if (rst_is_old(tcp, st) && !knobs->tcp_ignore_invalid_rst)
		return invalid(st->p, SL_DROP_INV_TCP_RST);
	if (old != CT_TCP_ESTABLISHED || !(st->e->status & CT_ASSURED) || rst_is_exact(tcp, st))
		return check_window(st, old);
	fit = tcp_window(tcp, st->dir, &st->seg, knobs->tcp_be_liberal);
	if (fit == TCP_STALE)
		return CT_PROTO_IGNORED;
	if (fit == TCP_OUTSIDE)
		return refuse_outside(st);
	if (in_vain(tcp, knobs))
		ct_refresh(st->e, knobs->tcp_timeout[CT_TCP_RETRANS], st->ctx);
	else
		shorten(st->e, knobs->tcp_timeout[CT_TCP_UNACK], st->ctx);
	return CT_PROTO_OK;
}

static enum ct_proto_verdict
take_other(struct step *st, unsigned int old)
{
	struct ct_tcp *tcp = &st->e->proto.tcp;

	switch (st->next) {
	case INVALID:
		return invalid(st->p, SL_DROP_INV_TCP_STATE);
	case CT_TCP_SYN_SENT:
		if (old < CT_TCP_TIME_WAIT)
			break;
		if (reopens(tcp, st->dir))
			return CT_PROTO_REOPEN;
		st->p->flags |= PKT_CT_AGAIN;
		return ignore(st);
	case IGNORED:
		if (st->seg.kind != TCP_SYNACK || !answers_passed_syn(tcp, st))
			return ignore(st);
		/* The SYN that was passed was right: this is a new connection. */
		tcp_window_restart(tcp);
		tcp->state = old = CT_TCP_SYN_SENT;
		st->next = CT_TCP_SYN_RECV;
		break;
	case CT_TCP_TIME_WAIT:
		/* Not the ACK of the last FIN, but a challenge to the SYN just passed: once. */
		if (old != CT_TCP_LAST_ACK || !tcp_noted(tcp, TCP_NOTE_CHALLENGE) ||
			st->seg.kind != TCP_ACK || tcp->last_kind != TCP_SYN ||
			tcp->last_dir == st->dir)
			break;
		tcp->scale[CT_REPLY] &= (uint8_t)~TCP_NOTE_CHALLENGE;
		return CT_PROTO_IGNORED;
	case CT_TCP_SYN_SENT2:
		tcp->scale[CT_REPLY] |= TCP_NOTE_SIMOPEN;
		break;
	case CT_TCP_SYN_RECV:
		if (st->dir == CT_REPLY && st->seg.kind == TCP_ACK &&
			tcp_noted(tcp, TCP_NOTE_SIMOPEN))
			st->next = CT_TCP_ESTABLISHED;
		/* One from before (RFC 9293, 3.10.7.3): it must not say what the window is. */
		if (old == CT_TCP_SYN_SENT && st->seg.kind == TCP_SYNACK &&
			tcp_after(tcp->peer[!st->dir].end, st->seg.ack) &&
			!tcp_window_answers_syn(tcp, st->dir, &st->seg))
			return ignore(st);
		break;
	case CT_TCP_CLOSE:
		if (st->seg.kind == TCP_RST)
			return take_rst(st, old);
		break;
	}
	return check_window(st, old);
}

static enum ct_proto_verdict
tcp_packet(struct ct_entry *e, struct pkt *p, unsigned int dir, const struct ct_proto_ctx *ctx)
{
	struct step st = {.e = e, .p = p, .ctx = ctx, .dir = dir};
	unsigned int old = e->proto.tcp.state;

	p->ct_state_old = p->ct_state_new = (uint8_t)old;
	seg_read(&st.seg, p, p->tcp_flags);
	if (st.seg.kind == TCP_BAD)
		return invalid(p, SL_DROP_INV_TCP_FLAGS);
	st.next = next_state[dir][st.seg.kind][old];
	return take_other(&st, old);
}

static enum ct_proto_verdict
tcp_create(struct ct_entry *e, struct pkt *p, const struct ct_proto_ctx *ctx)
{
	struct ct_tcp *tcp = &e->proto.tcp;
	struct tcp_seg seg;

	seg_read(&seg, p, p->tcp_flags);
	if (seg.kind == TCP_BAD)
		return invalid(p, SL_DROP_INV_TCP_FLAGS);
	memset(tcp, 0, sizeof(*tcp));
	switch (next_state[CT_ORIGINAL][seg.kind][CT_TCP_NONE]) {
	case CT_TCP_SYN_SENT:
		tcp_window_open(tcp, &seg);
		break;
	case CT_TCP_ESTABLISHED:
		if (!ctx->knobs->tcp_loose)
			return invalid(p, SL_DROP_INV_TCP_STATE);
		tcp_window_pick_up(tcp, &seg);
		break;
	default:
		return invalid(p, SL_DROP_INV_TCP_STATE);
	}
	return CT_PROTO_OK;
}

static const char *
tcp_state_name(const struct ct_entry *e)
{
	return state_names[e->proto.tcp.state];
}

const struct ct_proto ct_proto_tcp = {
	.create = tcp_create,
	.packet = tcp_packet,
	.state_name = tcp_state_name,
};
