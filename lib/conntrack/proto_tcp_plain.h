/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What most segments are: data and acknowledgements within the windows of an established connection
 * of which both sides are known. For these the machine of proto_tcp.c comes down to a few
 * comparisons; here they are made first, all at once, and what they leave is done without asking
 * again. Whatever any comparison does not settle (options that may be SACKs, a window that grows or
 * closes, a segment like the last) is left to the machine, so this is never more than a short way
 * to what that would do (tests/unit/conntrack/test_tcp_plain.c compares the two).
 */
#ifndef CT_PROTO_TCP_PLAIN_H
#define CT_PROTO_TCP_PLAIN_H

#include "proto_tcp.h"

#define TCP_HDR_LEN 20u

/* True when no sequence number is after the other of its pair: of the pairs the differences, other
 * less it, are or'ed here. */
static inline bool
tcp_in_order(uint32_t differences)
{
	return (int32_t)differences >= 0;
}

/* No options, or those that most stacks have on every segment. */
static inline bool
tcp_plain_options(const struct pkt *p)
{
	return p->l4_hdr_len == TCP_HDR_LEN ||
	       (p->l4_hdr_len == TCP_HDR_LEN + TCP_TIMESTAMPS_ONLY_LEN &&
		       tcp_load32(p->l4 + TCP_HDR_LEN) == TCP_TIMESTAMPS_ONLY_WORD);
}

/* The flags of data and acknowledgements; others do not change anything here. */
static inline bool
ct_tcp_plain_kind(const struct pkt *p)
{
	const unsigned int no_matter = PKT_TCP_PSH | PKT_TCP_ECE | PKT_TCP_CWR;

	return (p->tcp_flags & ~no_matter) == PKT_TCP_ACK;
}

/* The flags of both peers in one word, that of direction 0 lower. */
static inline unsigned int
tcp_flags_load(const struct ct_tcp *tcp)
{
	return tcp->peer_flags[0] | (unsigned int)tcp->peer_flags[1] << 8;
}

static inline void
tcp_flags_store(struct ct_tcp *tcp, unsigned int flags)
{
	tcp->peer_flags[0] = (uint8_t)flags;
	tcp->peer_flags[1] = (uint8_t)(flags >> 8);
}

#define OF(flag, dir)  ((unsigned int)(flag) << 8 * (dir))
#define BOTH(flag)     (OF(flag, 0) | OF(flag, 1))

/* Under the entry's lock, for a segment of that kind. False: nothing was done, ask the machine. */
static __rte_always_inline bool
ct_tcp_take_plain(struct ct_entry *e, struct pkt *p, unsigned int dir, const struct knobs *knobs,
	uint32_t now_ms)
{
	const uint16_t known = CT_SEEN_REPLY | CT_ASSURED;
	const uint16_t asked = known | CT_SEQADJ;
	struct ct_tcp *tcp = &e->proto.tcp;
	struct ct_tcp_peer *s = &tcp->peer[dir], *r = &tcp->peer[dir ^ 1];
	unsigned int flags = tcp_flags_load(tcp), unacked = OF(CT_TCP_PEER_UNACKED, dir);
	uint32_t seq, ack, end, wire_win, win, timeout;

	if (unlikely(tcp->state != CT_TCP_ESTABLISHED || (e->status & asked) != known ||
		     !tcp_plain_options(p)))
		return false;
	seq = tcp_load32(p->l4 + 4);
	ack = tcp_load32(p->l4 + 8);
	end = seq + p->l4_len - p->l4_hdr_len;
	wire_win = tcp_load32(p->l4 + 12) & UINT16_MAX;
	win = wire_win << tcp_scale(tcp, dir);
	/* Open, and not larger than it was; none of both has tried to leave. */
	if (unlikely(win - 1 >= s->max_win || r->max_win == 0 ||
		     (flags & (OF(CT_TCP_PEER_MAXACK, dir) | BOTH(CT_TCP_PEER_LEFT))) !=
			     OF(CT_TCP_PEER_MAXACK, dir) ||
		     knobs->tcp_max_retrans == 0))
		return false;
	/* Within the bounds I to IV, and with all of its data where there was room. */
	if (unlikely(!tcp_in_order((s->max_end - seq) | (s->max_end - end) |
				   (end - (s->end - r->max_win)) | (r->end - ack) |
				   (ack - (r->end - RTE_MAX(s->max_win, TCP_ACK_WINDOW_MIN))))))
		return false;
	/* Like the last, or nearly so: it may be a repeat. */
	if (unlikely(((tcp->last_seq ^ seq) | (tcp->last_ack ^ ack) | (tcp->last_end ^ end)) == 0))
		return false;

	p->ct_state_old = p->ct_state_new = CT_TCP_ESTABLISHED;
	if (tcp_after(end, s->end)) {
		s->end = end;
		flags |= unacked;
	}
	if (tcp_after(ack, s->max_ack))
		s->max_ack = ack;
	if (!tcp_after(r->max_end, ack + win))
		r->max_end = ack + win;
	if (ack == r->end)
		flags &= ~BOTH(CT_TCP_PEER_UNACKED) | unacked;
	tcp_flags_store(tcp, flags);
	tcp->last_seq = seq;
	tcp->last_ack = ack;
	tcp->last_end = end;
	tcp->last_win = (uint16_t)wire_win;
	tcp->retrans = 0;
	/* As it is: the byte is written without being read. */
	tcp->state = CT_TCP_ESTABLISHED;
	tcp->last_kind = TCP_ACK;
	tcp->last_dir = dir & 1;
	timeout = knobs->tcp_timeout[CT_TCP_ESTABLISHED];
	if (flags & BOTH(CT_TCP_PEER_UNACKED))
		timeout = RTE_MIN(timeout, knobs->tcp_timeout[CT_TCP_UNACK]);
	e->deadline = now_ms + timeout;
	return true;
}

#undef OF
#undef BOTH

#endif
