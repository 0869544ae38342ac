/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GRE: a tunnel, known by its ends (and the call id in version 1). The timeouts are those that held
 * when it was first seen, so that changed knobs do not cut a tunnel in use.
 */
#include "proto.h"

static enum ct_proto_verdict
gre_create(struct ct_entry *e, struct pkt *p, const struct ct_proto_ctx *ctx)
{
	(void)p;
	e->proto.gre.timeout = ctx->knobs->gre_timeout;
	e->proto.gre.stream_timeout = ctx->knobs->gre_timeout_stream;
	return CT_PROTO_OK;
}

static enum ct_proto_verdict
gre_packet(struct ct_entry *e, struct pkt *p, unsigned int dir, const struct ct_proto_ctx *ctx)
{
	(void)p;
	(void)dir;
	if (e->status & CT_SEEN_REPLY) {
		e->status |= CT_ASSURED;
		ct_refresh(e, e->proto.gre.stream_timeout, ctx);
	} else {
		ct_refresh(e, e->proto.gre.timeout, ctx);
	}
	return CT_PROTO_OK;
}

const struct ct_proto ct_proto_gre = {
	.create = gre_create,
	.packet = gre_packet,
};
