/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets for the tests of the state machines: transport headers in a buffer of exactly their
 * length, so that a read behind them is found, and a connection that is fed with them as ct_begin()
 * and ct_track() do it.
 */
#ifndef TEST_SEGMENT_H
#define TEST_SEGMENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <rte_mbuf.h>

#include "proto.h"

struct segment {
	struct pkt pkt;
	struct rte_mbuf mbuf;
	uint8_t *l4; /* from malloc() */
};

/* A packet of `proto` with l4_len bytes of transport header and payload, of which the first hdr_len
 * are there to be read (zero now). */
static inline void
segment_init(struct segment *s, uint8_t family, uint8_t proto, unsigned int hdr_len,
	unsigned int l4_len)
{
	memset(s, 0, sizeof(*s));
	s->l4 = calloc(1, hdr_len);
	assert_non_null(s->l4);
	s->mbuf.buf_addr = s->l4;
	s->mbuf.data_len = (uint16_t)hdr_len;
	s->mbuf.pkt_len = hdr_len;
	s->mbuf.nb_segs = 1;
	s->pkt.mbuf = &s->mbuf;
	s->pkt.l4 = s->l4;
	s->pkt.l4_len = (uint16_t)l4_len;
	s->pkt.l4_hdr_len = (uint16_t)hdr_len;
	s->pkt.proto = proto;
	s->pkt.tuple.family = family;
	s->pkt.tuple.proto = proto;
	s->pkt.flags = PKT_IP;
}

static inline void
segment_free(struct segment *s)
{
	free(s->l4);
}

static inline void
put32(uint8_t *p, uint32_t v)
{
	v = rte_cpu_to_be_32(v);
	memcpy(p, &v, sizeof(v));
}

/* A connection and its clock. */
struct conn {
	struct ct_entry e;
	struct knobs knobs;
	struct sl_now now;
	bool begun;
	bool ignored; /* the last packet was passed, but does not count */
};

static inline void
conn_init(struct conn *c, uint32_t start_ms)
{
	memset(c, 0, sizeof(*c));
	knobs_default(&c->knobs);
	c->now.ms = start_ms;
}

static inline void
conn_wait(struct conn *c, uint32_t ms)
{
	c->now.ms += ms;
}

/* Feeds a packet; the first one makes the entry. A packet that does not count is OK too. */
static inline enum ct_proto_verdict
conn_feed(struct conn *c, struct segment *s, unsigned int dir)
{
	const struct ct_proto *proto = ct_proto_of(s->pkt.tuple.family, s->pkt.tuple.proto);
	struct ct_proto_ctx ctx = {.knobs = &c->knobs, .now = c->now};
	enum ct_proto_verdict v;

	if (!c->begun) {
		/* What an entry's last use left behind must not matter. */
		memset(&c->e, 0, sizeof(c->e));
		memset(&c->e.proto, 0xa5, sizeof(c->e.proto));
		v = proto->create(&c->e, &s->pkt, &ctx);
		if (v == CT_PROTO_OK)
			v = proto->packet(&c->e, &s->pkt, CT_ORIGINAL, &ctx);
		c->begun = v == CT_PROTO_OK;
		return v;
	}
	v = proto->packet(&c->e, &s->pkt, dir, &ctx);
	if (v == CT_PROTO_REOPEN) {
		c->begun = false;
		assert_int_equal(conn_feed(c, s, CT_ORIGINAL), CT_PROTO_OK);
	} else if ((v <= CT_PROTO_IGNORED || v == CT_PROTO_KILL) && dir == CT_REPLY) {
		c->e.status |= CT_SEEN_REPLY;
	}
	c->ignored = v == CT_PROTO_IGNORED;
	return c->ignored ? CT_PROTO_OK : v;
}

/*
 * What happened and what a listing shows then, in one line: "ESTABLISHED 432000 ASSURED",
 * "invalid-tcp-window: SYN_RECV 60", "reopen: SYN_SENT 120 UNREPLIED", "kill". UNREPLIED and
 * ASSURED as conntrack -L has them, seconds rounded down.
 */
static inline const char *
conn_show(const struct conn *c, const struct segment *s, enum ct_proto_verdict v)
{
	static const char *const verdicts[] = {
		[CT_PROTO_OK] = "", [CT_PROTO_REOPEN] = "reopen: "};
	const struct ct_proto *proto = ct_proto_of(s->pkt.tuple.family, s->pkt.tuple.proto);
	static char line[160];
	int n;

	if (v == CT_PROTO_KILL)
		return "kill";
	if (v == CT_PROTO_INVALID && !c->begun)
		return sl_drop_name(s->pkt.reason);
	n = v == CT_PROTO_INVALID
		    ? snprintf(line, sizeof(line), "%s: ", sl_drop_name(s->pkt.reason))
		    : snprintf(line, sizeof(line), "%s", verdicts[v]);
	if (proto->state_name != NULL)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "%s ", proto->state_name(&c->e));
	n += snprintf(line + n, sizeof(line) - (size_t)n, "%d",
		sl_ms_left(c->e.deadline, c->now.ms) / 1000);
	if (!(c->e.status & CT_SEEN_REPLY))
		n += snprintf(line + n, sizeof(line) - (size_t)n, " UNREPLIED");
	if (c->e.status & CT_ASSURED)
		snprintf(line + n, sizeof(line) - (size_t)n, " ASSURED");
	return line;
}

/* Clocks to start at: such that the test runs over the signs' change and the wrap too. */
static const uint32_t segment_clocks[] = {1, INT32_MAX - 3000u, UINT32_MAX - 3000u};

#endif
