/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protocol state machines. Each protocol has two functions, called with a parsed packet that is not
 * PKT_L4_BAD and whose checksum is right. They touch nothing but the entry's protocol state, status
 * and deadline, and pkt.reason, ct_state_old and ct_state_new.
 *
 *   create   the first packet of a connection, on an EMBRYO that belongs to the caller. Decides
 *            whether the packet may start one, and sets the state before the packet is processed.
 *            CT_PROTO_OK or CT_PROTO_INVALID (pkt.reason set).
 *   packet   every packet, the first included, in direction `dir`, under the entry's lock (or
 *            EMBRYO). Sets the deadline with ct_refresh(). CT_SEEN_REPLY is the caller's to set,
 *            after the first packet of the reply direction that passes, so here it is of earlier
 *            packets.
 *
 * Behaviour and names of states are netfilter's; where an RFC is the source the code says so.
 */
#ifndef CT_PROTO_H
#define CT_PROTO_H

#include "clock.h"
#include "entry.h"
#include "knobs.h"
#include "pkt.h"

enum ct_proto_verdict {
	CT_PROTO_OK,
	CT_PROTO_IGNORED, /* passed without effect: neither counted nor a sign of life */
	CT_PROTO_INVALID, /* not part of the connection; pkt.reason says why; state as before */
	CT_PROTO_REOPEN,  /* the old connection is over and this packet opens a new one: the caller
			     destroys the entry and admits the packet again */
	CT_PROTO_KILL,    /* accepted, and the connection is over at once: the caller destroys it */
	CT_PROTO_DROP,    /* of no machine: the application refuses it, for pkt.reason */
};

struct ct_proto_ctx {
	const struct knobs *knobs;
	struct sl_now now;
};

struct ct_proto {
	enum ct_proto_verdict (*create)(struct ct_entry *e, struct pkt *p,
		const struct ct_proto_ctx *ctx);
	enum ct_proto_verdict (*packet)(struct ct_entry *e, struct pkt *p, unsigned int dir,
		const struct ct_proto_ctx *ctx);
	/* Name of the protocol's present state for listings; NULL for protocols without states. */
	const char *(*state_name)(const struct ct_entry *e);
};

/* The machine of a transport protocol; never NULL (unknown ones are tracked by address). */
const struct ct_proto *ct_proto_of(uint8_t family, uint8_t proto);

/* Name of a protocol as conntrack prints it ("tcp", "udplite", "icmpv6", "unknown"). */
const char *ct_proto_name(uint8_t proto);

/* The entry lives for timeout_ms from now. */
static inline void
ct_refresh(struct ct_entry *e, uint32_t timeout_ms, const struct ct_proto_ctx *ctx)
{
	e->deadline = ctx->now.ms + timeout_ms;
}

extern const struct ct_proto ct_proto_tcp, ct_proto_udp, ct_proto_icmp, ct_proto_sctp,
	ct_proto_gre, ct_proto_generic;

#endif
