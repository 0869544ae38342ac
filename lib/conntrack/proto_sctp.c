/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SCTP (RFC 9260). States and timeouts are netfilter's:
 *
 *          INIT          INIT ACK               COOKIE ECHO            COOKIE ACK
 *   none ────────▶ CLOSED ───────▶ COOKIE_WAIT ───────▶ COOKIE_ECHOED ───────▶ ESTABLISHED
 *
 *                    SHUTDOWN                       SHUTDOWN ACK
 *   ESTABLISHED ──────────▶ SHUTDOWN_SENT, _RECD ──────────▶ SHUTDOWN_ACK_SENT
 *                                                                  │ SHUTDOWN COMPLETE
 *               HEARTBEAT              HEARTBEAT ACK               ▼
 *          none ────────▶ HEARTBEAT_SENT ────▶ ESTABLISHED       CLOSED ◀── ABORT ── any
 *
 * Each end chooses the verification tag of the packets it is sent (RFC 9260, 8.5). INIT and INIT
 * ACK offer tags, and anyone can send an INIT; so an offer replaces nothing until the chunk that
 * needs the other end's answer, COOKIE ECHO or COOKIE ACK, carries it. That also decides between
 * the two exchanges of a collision (5.2.1), and lets an association go on when it is not restarted
 * after all.
 */
#include <rte_mbuf.h>

#include "proto.h"

/* What a chunk is to the state machine. */
enum sctp_kind {
	SCTP_OTHER, /* DATA, SACK and all else that changes no state */
	SCTP_INIT,
	SCTP_INIT_ACK,
	SCTP_HEARTBEAT,
	SCTP_HEARTBEAT_ACK,
	SCTP_ABORT,
	SCTP_SHUTDOWN,
	SCTP_SHUTDOWN_ACK,
	SCTP_ERROR,
	SCTP_COOKIE_ECHO,
	SCTP_COOKIE_ACK,
	SCTP_SHUTDOWN_COMPLETE,
	SCTP_KINDS,
};

/* By chunk type (RFC 9260, 3.2). */
static const uint8_t kinds[256] = {
	[1] = SCTP_INIT,
	[2] = SCTP_INIT_ACK,
	[4] = SCTP_HEARTBEAT,
	[5] = SCTP_HEARTBEAT_ACK,
	[6] = SCTP_ABORT,
	[7] = SCTP_SHUTDOWN,
	[8] = SCTP_SHUTDOWN_ACK,
	[9] = SCTP_ERROR,
	[10] = SCTP_COOKIE_ECHO,
	[11] = SCTP_COOKIE_ACK,
	[14] = SCTP_SHUTDOWN_COMPLETE,
};

#define HEADER_LEN       12u
#define CHUNK_HEADER_LEN 4u
#define INIT_LEN         20u
#define CHUNK_REFLECTED  0x01 /* T bit: the tag is the receiver's own, sent back (8.5.1) */

/* ct_sctp.flags */
#define INIT_FROM(dir)    (1u << (dir)) /* an INIT of that side awaits its COOKIE ACK */
#define HEARTBEAT_OF(dir) (4u << (dir)) /* a heartbeat of that side had an unknown tag: its offer */
#define HEARTBEATS        (HEARTBEAT_OF(CT_ORIGINAL) | HEARTBEAT_OF(CT_REPLY))

#define KEEP CT_SCTP_NONE

#define EITHER_SIDE                                                                                \
	[SCTP_ABORT] = {[CT_SCTP_CLOSED ... CT_SCTP_HEARTBEAT_SENT] = CT_SCTP_CLOSED},             \
	[SCTP_INIT_ACK] = {[CT_SCTP_CLOSED] = CT_SCTP_COOKIE_WAIT},                                \
	[SCTP_COOKIE_ECHO] = {[CT_SCTP_COOKIE_WAIT] = CT_SCTP_COOKIE_ECHOED},                      \
	[SCTP_COOKIE_ACK] = {[CT_SCTP_COOKIE_ECHOED] = CT_SCTP_ESTABLISHED},                       \
	[SCTP_SHUTDOWN_COMPLETE] = {[CT_SCTP_SHUTDOWN_ACK_SENT] = CT_SCTP_CLOSED}

/* The next state by direction, kind and state; where none is listed the state stays. */
static const uint8_t next_state[2][SCTP_KINDS][CT_SCTP_STATES] = {
	[CT_ORIGINAL] = {
		EITHER_SIDE,
		[SCTP_INIT] = {
			[CT_SCTP_NONE] = CT_SCTP_CLOSED,
			/* A new association; in others it may be a restart, or forged. */
			[CT_SCTP_SHUTDOWN_SENT ... CT_SCTP_SHUTDOWN_RECD] = CT_SCTP_CLOSED,
			[CT_SCTP_HEARTBEAT_SENT] = CT_SCTP_COOKIE_WAIT,
		},
		/* The path of an association that another entry, or nobody, saw begin. */
		[SCTP_HEARTBEAT] = {[CT_SCTP_NONE] = CT_SCTP_HEARTBEAT_SENT},
		[SCTP_SHUTDOWN] = {[CT_SCTP_ESTABLISHED] = CT_SCTP_SHUTDOWN_SENT},
		[SCTP_SHUTDOWN_ACK] = {
			/* Out of the blue; SHUTDOWN COMPLETE answers it (8.4, rule 5). */
			[CT_SCTP_NONE] = CT_SCTP_SHUTDOWN_ACK_SENT,
			[CT_SCTP_SHUTDOWN_SENT ... CT_SCTP_SHUTDOWN_RECD] =
				CT_SCTP_SHUTDOWN_ACK_SENT,
			[CT_SCTP_HEARTBEAT_SENT] = CT_SCTP_SHUTDOWN_ACK_SENT,
		},
	},
	[CT_REPLY] = {
		EITHER_SIDE,
		[SCTP_HEARTBEAT_ACK] = {[CT_SCTP_HEARTBEAT_SENT] = CT_SCTP_ESTABLISHED},
		[SCTP_SHUTDOWN] = {[CT_SCTP_ESTABLISHED] = CT_SCTP_SHUTDOWN_RECD},
		[SCTP_SHUTDOWN_ACK] = {
			[CT_SCTP_SHUTDOWN_SENT ... CT_SCTP_SHUTDOWN_RECD] =
				CT_SCTP_SHUTDOWN_ACK_SENT,
		},
		/* The cookie was stale. */
		[SCTP_ERROR] = {[CT_SCTP_COOKIE_ECHOED] = CT_SCTP_CLOSED},
	},
};

static const char *const state_names[CT_SCTP_STATES] = {
	[CT_SCTP_NONE] = "NONE",
	[CT_SCTP_CLOSED] = "CLOSED",
	[CT_SCTP_COOKIE_WAIT] = "COOKIE_WAIT",
	[CT_SCTP_COOKIE_ECHOED] = "COOKIE_ECHOED",
	[CT_SCTP_ESTABLISHED] = "ESTABLISHED",
	[CT_SCTP_SHUTDOWN_SENT] = "SHUTDOWN_SENT",
	[CT_SCTP_SHUTDOWN_RECD] = "SHUTDOWN_RECD",
	[CT_SCTP_SHUTDOWN_ACK_SENT] = "SHUTDOWN_ACK_SENT",
	[CT_SCTP_HEARTBEAT_SENT] = "HEARTBEAT_SENT",
};

/* A walk over the chunks; the payload may lie in several segments. */
struct walk {
	const struct pkt *p;
	uint32_t at; /* from the SCTP header */
	/* of the present chunk */
	uint8_t kind;
	uint8_t flags;
	uint16_t len;
	uint32_t init_tag; /* INIT, INIT ACK */
	bool first;
};

static uint32_t
load_be32(const void *p)
{
	rte_be32_t v;

	memcpy(&v, p, sizeof(v));
	return rte_be_to_cpu_32(v);
}

static uint32_t
packet_tag(const struct pkt *p)
{
	return load_be32(p->l4 + 4);
}

static bool
at_end(const struct walk *w)
{
	return w->at >= w->p->l4_len;
}

/* Some chunks must be alone in their packet, or its first (RFC 9260, 3.2 and 5.1). */
static bool
is_in_place(const struct walk *w)
{
	switch (w->kind) {
	case SCTP_INIT:
	case SCTP_INIT_ACK:
	case SCTP_SHUTDOWN_COMPLETE:
		return w->first && at_end(w);
	case SCTP_COOKIE_ECHO:
	case SCTP_COOKIE_ACK:
		return w->first;
	default:
		return true;
	}
}

/* Steps to the next chunk. False: it is malformed or out of place. */
static bool
next_chunk(struct walk *w)
{
	uint32_t left = w->p->l4_len - w->at, offset = w->p->l3_off + w->p->l3_len + w->at;
	const uint8_t *c;
	uint8_t buf[8];

	if (left < CHUNK_HEADER_LEN)
		return false;
	c = rte_pktmbuf_read(w->p->mbuf, offset, RTE_MIN(left, sizeof(buf)), buf);
	if (c == NULL)
		return false;
	w->first = w->at == HEADER_LEN;
	w->kind = kinds[c[0]];
	w->flags = c[1];
	w->len = (uint16_t)(c[2] << 8 | c[3]);
	if (w->len < CHUNK_HEADER_LEN || w->len > left)
		return false;
	if (w->kind == SCTP_INIT || w->kind == SCTP_INIT_ACK) {
		if (w->len < INIT_LEN)
			return false;
		w->init_tag = load_be32(c + 4);
	}
	w->at += RTE_ALIGN_CEIL(w->len, 4u);
	return is_in_place(w);
}

static enum ct_proto_verdict
invalid(struct pkt *p, enum sl_drop reason)
{
	p->reason = (uint8_t)reason;
	return CT_PROTO_INVALID;
}

static uint32_t
expected_tag(const struct ct_sctp *s, unsigned int dir)
{
	return s->vtag[dir] != 0 ? s->vtag[dir] : s->offer[dir];
}

static bool
tag_fits(const struct ct_sctp *s, unsigned int dir, const struct walk *w, uint32_t tag)
{
	switch (w->kind) {
	case SCTP_INIT:
		return tag == 0;
	case SCTP_INIT_ACK:
	case SCTP_COOKIE_ECHO:
	case SCTP_COOKIE_ACK:
		return tag != 0 && (tag == s->offer[dir] || tag == s->vtag[dir]);
	case SCTP_ABORT:
	case SCTP_SHUTDOWN_COMPLETE:
		if (w->flags & CHUNK_REFLECTED)
			return tag != 0 && tag == expected_tag(s, !dir);
		break;
	}
	return tag != 0 && tag == expected_tag(s, dir);
}

static void
take_init(struct ct_sctp *s, unsigned int dir, uint32_t init_tag)
{
	if (s->state == CT_SCTP_CLOSED || s->state == CT_SCTP_SHUTDOWN_SENT ||
		s->state == CT_SCTP_SHUTDOWN_RECD)
		s->vtag[0] = s->vtag[1] = 0; /* of the association that is over */
	/* Both sides had one under way: this begins a new exchange. */
	if ((s->flags & INIT_FROM(dir)) && (s->flags & INIT_FROM(!dir)))
		s->flags &= (uint8_t)~INIT_FROM(!dir);
	s->flags |= (uint8_t)INIT_FROM(dir);
	s->offer[!dir] = init_tag;
}

/*
 * An INIT ACK without an INIT comes late. In a collision each side's INIT has said which tag it
 * wants, and the INIT ACK repeats that (5.2.1); another tag was chosen before that INIT.
 */
static bool
take_init_ack(struct ct_sctp *s, unsigned int dir, uint32_t init_tag)
{
	if (!(s->flags & INIT_FROM(!dir)))
		return init_tag == expected_tag(s, !dir);
	if (s->flags & INIT_FROM(dir))
		return init_tag == s->offer[!dir];
	s->offer[!dir] = init_tag;
	return true;
}

/*
 * Heartbeats also run on paths whose association restarted elsewhere, with new tags. One of an
 * unknown tag is passed without effect, and when the other side answers it, its tags are the ones
 * to expect. False: nothing else in the packet may count.
 */
static bool
take_heartbeat(struct ct_sctp *s, unsigned int dir, const struct walk *w, uint32_t tag)
{
	if (tag == expected_tag(s, dir)) {
		s->flags &= (uint8_t)~HEARTBEATS;
	} else if (expected_tag(s, dir) == 0) {
		s->vtag[dir] = tag;
	} else if (w->kind == SCTP_HEARTBEAT_ACK && (s->flags & HEARTBEAT_OF(!dir))) {
		s->vtag[!dir] = s->offer[!dir];
		s->vtag[dir] = tag;
		s->flags &= (uint8_t)~HEARTBEATS;
	} else {
		s->offer[dir] = tag;
		s->flags = (uint8_t)((s->flags & ~HEARTBEATS) | HEARTBEAT_OF(dir));
		return false;
	}
	return true;
}

/* Takes one chunk into *s. */
static enum sl_drop
take_chunk(struct ct_sctp *s, unsigned int dir, const struct walk *w, uint32_t tag)
{
	uint8_t next;

	if (!tag_fits(s, dir, w, tag))
		return SL_DROP_INV_SCTP_TAG;
	switch (w->kind) {
	case SCTP_INIT:
		if (w->init_tag == 0)
			return SL_DROP_INV_SCTP_CHUNK;
		take_init(s, dir, w->init_tag);
		break;
	case SCTP_INIT_ACK:
		if (w->init_tag == 0)
			return SL_DROP_INV_SCTP_CHUNK;
		if (!take_init_ack(s, dir, w->init_tag))
			return SL_DROP_INV_SCTP_TAG;
		break;
	case SCTP_COOKIE_ACK:
		s->flags &= (uint8_t)~(INIT_FROM(CT_ORIGINAL) | INIT_FROM(CT_REPLY));
		s->vtag[dir] = tag;
		break;
	case SCTP_COOKIE_ECHO:
		s->vtag[dir] = tag;
		break;
	}
	next = next_state[dir][w->kind][s->state];
	if (next != KEEP)
		s->state = next;
	return SL_DROP_NONE;
}

/* Takes all chunks into *s. *counts is cleared when the packet is to be passed without effect. */
static enum sl_drop
take_chunks(struct ct_sctp *s, unsigned int dir, const struct pkt *p, bool *counts)
{
	struct walk w = {.p = p, .at = HEADER_LEN};
	uint32_t tag = packet_tag(p);
	enum sl_drop reason;

	do {
		if (!next_chunk(&w))
			return SL_DROP_INV_SCTP_CHUNK;
		if (w.kind == SCTP_HEARTBEAT || w.kind == SCTP_HEARTBEAT_ACK) {
			if (!take_heartbeat(s, dir, &w, tag)) {
				*counts = false;
				return SL_DROP_NONE;
			}
		}
		/* A repeated INIT does not prolong what nobody has answered. */
		if (w.kind == SCTP_INIT && s->state == CT_SCTP_CLOSED)
			*counts = false;
		reason = take_chunk(s, dir, &w, tag);
		if (reason != SL_DROP_NONE)
			return reason;
	} while (!at_end(&w));
	return SL_DROP_NONE;
}

static enum ct_proto_verdict
sctp_packet(struct ct_entry *e, struct pkt *p, unsigned int dir, const struct ct_proto_ctx *ctx)
{
	struct ct_sctp s = e->proto.sctp;
	uint8_t old = s.state;
	enum sl_drop reason;
	bool counts = true;

	p->ct_state_old = p->ct_state_new = old;
	reason = take_chunks(&s, dir, p, &counts);
	if (reason != SL_DROP_NONE)
		return invalid(p, reason);
	e->proto.sctp = s;
	if (!counts)
		return CT_PROTO_IGNORED;
	p->ct_state_new = s.state;
	if (old != CT_SCTP_ESTABLISHED && s.state == CT_SCTP_ESTABLISHED)
		e->status |= CT_ASSURED;
	ct_refresh(e, ctx->knobs->sctp_timeout[s.state], ctx);
	return CT_PROTO_OK;
}

/*
 * An association begins with an INIT. A HEARTBEAT shows the path of one that began elsewhere, and a
 * SHUTDOWN ACK the end of one that is forgotten; their tags are taken as they come.
 */
static enum ct_proto_verdict
sctp_create(struct ct_entry *e, struct pkt *p, const struct ct_proto_ctx *ctx)
{
	struct ct_sctp *s = &e->proto.sctp;
	struct walk w = {.p = p, .at = HEADER_LEN};
	uint32_t tag = packet_tag(p);
	(void)ctx;

	memset(s, 0, sizeof(*s));
	do {
		if (!next_chunk(&w))
			return invalid(p, SL_DROP_INV_SCTP_CHUNK);
		if (w.first && next_state[CT_ORIGINAL][w.kind][CT_SCTP_NONE] == KEEP)
			return invalid(p, SL_DROP_INV_SCTP_CHUNK);
		if ((w.kind == SCTP_INIT) != (tag == 0))
			return invalid(p, SL_DROP_INV_SCTP_TAG);
	} while (!at_end(&w));
	s->vtag[CT_ORIGINAL] = tag;
	return CT_PROTO_OK;
}

static const char *
sctp_state_name(const struct ct_entry *e)
{
	return state_names[e->proto.sctp.state];
}

const struct ct_proto ct_proto_sctp = {
	.create = sctp_create,
	.packet = sctp_packet,
	.state_name = sctp_state_name,
};
