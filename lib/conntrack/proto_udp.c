/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UDP and UDP-Lite: a query and its answers, or a stream.
 *
 *     unreplied ── reply ──▶ replied ── a packet after 2 s ──▶ stream, ASSURED
 *
 * A query may be answered by any number of packets; only what goes on for longer than a query takes
 * is worth the longer timeout, and to be kept when room is needed.
 */
#include "proto.h"

#define STREAM_AFTER_MS 2000u

static enum ct_proto_verdict
udp_create(struct ct_entry *e, struct pkt *p, const struct ct_proto_ctx *ctx)
{
	(void)p;
	e->proto.udp.first_ms = ctx->now.ms;
	return CT_PROTO_OK;
}

/* The clock of 32 bits wraps within the life of a long stream: so what was once found is kept. */
static bool
is_stream(struct ct_entry *e, uint32_t now_ms)
{
	if (!(e->status & CT_UDP_STREAM) && now_ms - e->proto.udp.first_ms > STREAM_AFTER_MS)
		e->status |= CT_UDP_STREAM | CT_ASSURED;
	return e->status & CT_UDP_STREAM;
}

static enum ct_proto_verdict
udp_packet(struct ct_entry *e, struct pkt *p, unsigned int dir, const struct ct_proto_ctx *ctx)
{
	const struct knobs *knobs = ctx->knobs;
	(void)p;
	(void)dir;

	if ((e->status & CT_SEEN_REPLY) && is_stream(e, ctx->now.ms))
		ct_refresh(e, knobs->udp_timeout_stream, ctx);
	else
		ct_refresh(e, knobs->udp_timeout, ctx);
	return CT_PROTO_OK;
}

const struct ct_proto ct_proto_udp = {
	.create = udp_create,
	.packet = udp_packet,
};
