/* SPDX-License-Identifier: BSD-3-Clause */
/* Any other transport protocol: tracked by addresses alone, one entry for a pair of hosts. */
#include "proto.h"

static enum ct_proto_verdict
generic_create(struct ct_entry *e, struct pkt *p, const struct ct_proto_ctx *ctx)
{
	(void)e;
	(void)p;
	(void)ctx;
	return CT_PROTO_OK;
}

static enum ct_proto_verdict
generic_packet(struct ct_entry *e, struct pkt *p, unsigned int dir, const struct ct_proto_ctx *ctx)
{
	(void)p;
	(void)dir;
	ct_refresh(e, ctx->knobs->generic_timeout, ctx);
	return CT_PROTO_OK;
}

const struct ct_proto ct_proto_generic = {
	.create = generic_create,
	.packet = generic_packet,
};
