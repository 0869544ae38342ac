/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP and ICMPv6 queries: identifier and type make the tuple, so what arrives at an entry is its
 * query or its reply, and each keeps it alive. A reply nobody asked for starts nothing, nor does
 * any other type. Errors do not come here (see ct_track_error()).
 */
#include "proto.h"

#define ICMP_ECHO_REQUEST      8  /* RFC 792 */
#define ICMP_TIMESTAMP_REQUEST 13 /* RFC 792 */
#define ICMP_INFO_REQUEST      15 /* RFC 792 */
#define ICMP_MASK_REQUEST      17 /* RFC 950 */
#define ICMP6_ECHO             128 /* RFC 4443 */
#define ICMP6_NODE_INFO        139 /* RFC 4620 */

static bool
is_query(const struct pkt *p)
{
	if (p->tuple.family == TUPLE_IPV6)
		return p->icmp_type == ICMP6_ECHO || p->icmp_type == ICMP6_NODE_INFO;
	return p->icmp_type == ICMP_ECHO_REQUEST || p->icmp_type == ICMP_TIMESTAMP_REQUEST ||
	       p->icmp_type == ICMP_INFO_REQUEST || p->icmp_type == ICMP_MASK_REQUEST;
}

static enum ct_proto_verdict
icmp_create(struct ct_entry *e, struct pkt *p, const struct ct_proto_ctx *ctx)
{
	(void)e;
	(void)ctx;
	if (is_query(p))
		return CT_PROTO_OK;
	p->reason = SL_DROP_INV_ICMP_TYPE;
	return CT_PROTO_INVALID;
}

static enum ct_proto_verdict
icmp_packet(struct ct_entry *e, struct pkt *p, unsigned int dir, const struct ct_proto_ctx *ctx)
{
	const struct knobs *knobs = ctx->knobs;
	(void)dir;

	ct_refresh(e, p->tuple.family == TUPLE_IPV6 ? knobs->icmpv6_timeout : knobs->icmp_timeout,
		ctx);
	return CT_PROTO_OK;
}

const struct ct_proto ct_proto_icmp = {
	.create = icmp_create,
	.packet = icmp_packet,
};
