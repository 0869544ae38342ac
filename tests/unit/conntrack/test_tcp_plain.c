/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short way of TCP against the machine: random connections and segments, close to each other
 * and to every bound. Where the short way takes a segment, the machine takes it too and leaves the
 * same entry; where it does not, it has changed nothing.
 */
#include "proto_tcp_plain.h"
#include "segment.h"

static uint64_t seed = 1;

static uint32_t
any(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(seed >> 33) % below;
}

/* One of n in a hundred. */
static bool
now_and_then(unsigned int percent)
{
	return any(100) < percent;
}

/* A number near `at`, sometimes just half of all numbers away. */
static uint32_t
near(uint32_t at)
{
	static const uint32_t far[] = {0x7fffffff, 0x80000000, 0x80000001, 66000, 65999, 66001};

	if (now_and_then(4))
		return at + far[any(RTE_DIM(far))];
	return now_and_then(40) ? at : at + any(8) - 4;
}

static uint32_t
window(void)
{
	return now_and_then(5) ? any(3) : 1u << any(18);
}

static void
any_connection(struct conn *c)
{
	struct ct_tcp *tcp = &c->e.proto.tcp;
	unsigned int dir;

	conn_init(c, any(UINT32_MAX));
	c->e.status = CT_SEEN_REPLY | CT_ASSURED;
	if (now_and_then(5))
		c->e.status = any(2) ? CT_SEEN_REPLY : 0;
	c->e.deadline = c->now.ms + any(1000000);
	c->knobs.tcp_max_retrans = now_and_then(90) ? 3 : (uint8_t)any(2);
	c->knobs.tcp_be_liberal = now_and_then(10);
	if (now_and_then(10))
		c->knobs.tcp_timeout[CT_TCP_UNACK] = 2 * c->knobs.tcp_timeout[CT_TCP_ESTABLISHED];
	tcp->state = now_and_then(95) ? CT_TCP_ESTABLISHED : any(CT_TCP_STATES) & 15;
	for (dir = 0; dir < 2; dir++) {
		uint32_t end = any(2) ? any(16) - 8 : any(UINT32_MAX);

		tcp->peer[dir] = (struct ct_tcp_peer){end, near(end + window()), window(), end};
		tcp->peer_flags[dir] = CT_TCP_PEER_MAXACK | (any(2) ? CT_TCP_PEER_UNACKED : 0) |
				       (any(2) ? CT_TCP_PEER_SACK : 0);
		if (now_and_then(5))
			tcp->peer_flags[dir] = (uint8_t)any(128);
		tcp->scale[dir] = (uint8_t)(now_and_then(70) ? any(4) : any(15) | any(16) << 4);
	}
	for (dir = 0; dir < 2; dir++)
		tcp->peer[dir].max_ack = near(tcp->peer[!dir].end);
	tcp->retrans = (uint8_t)any(5);
	tcp->last_kind = any(TCP_KINDS) & 7;
	tcp->last_dir = any(2) & 1;
	tcp->last_win = (uint16_t)window();
}

static void
any_segment(struct segment *s, struct ct_tcp *tcp, unsigned int dir)
{
	unsigned int options = now_and_then(60) ? 0 : 12 * any(2) + 4 * any(4);
	unsigned int hdr = 20 + options, payload = any(2) ? 0 : any(8);
	uint32_t seq = near(now_and_then(20) ? tcp->peer[dir].max_end : tcp->peer[dir].end);
	uint32_t ack = near(tcp->peer[!dir].end);

	segment_init(s, TUPLE_IPV4, IPPROTO_TCP, hdr, hdr + payload);
	put32(s->l4 + 4, seq);
	put32(s->l4 + 8, ack);
	put32(s->l4 + 12, hdr / 4 << 28 | PKT_TCP_ACK << 16 | (uint16_t)window());
	if (options == 12 && any(2))
		put32(s->l4 + 20, TCP_TIMESTAMPS_ONLY_WORD);
	else if (options >= 12)
		put32(s->l4 + 20, 0x0101050a); /* a SACK */
	if (options >= 12)
		put32(s->l4 + 28, ack + any(100));
	s->pkt.tcp_flags = PKT_TCP_ACK | (any(2) ? PKT_TCP_PSH : 0);
	if (now_and_then(5))
		s->pkt.tcp_flags = (uint8_t)any(256);
	if (now_and_then(20)) {
		tcp->last_seq = seq;
		tcp->last_ack = ack;
		tcp->last_end = near(seq + payload);
	}
}

static void
test_same_as_the_machine(void **state)
{
	unsigned int i, dir, taken = 0, left = 0;
	(void)state;

	for (i = 0; i < 1000000; i++) {
		struct conn c, before, machine;
		struct segment s;
		struct ct_proto_ctx ctx;
		bool plain;

		any_connection(&c);
		dir = any(2);
		any_segment(&s, &c.e.proto.tcp, dir);
		before = machine = c;
		plain = ct_tcp_plain_kind(&s.pkt) &&
			ct_tcp_take_plain(&c.e, &s.pkt, dir, &c.knobs, c.now.ms);
		if (!plain) {
			left++;
			assert_memory_equal(&c.e, &before.e, sizeof(c.e));
		} else {
			taken++;
			assert_int_equal(s.pkt.ct_state_old, CT_TCP_ESTABLISHED);
			assert_int_equal(s.pkt.ct_state_new, CT_TCP_ESTABLISHED);
			ctx = (struct ct_proto_ctx){.knobs = &machine.knobs, .now = machine.now};
			assert_int_equal(ct_proto_tcp.packet(&machine.e, &s.pkt, dir, &ctx),
				CT_PROTO_OK);
			assert_int_equal(s.pkt.ct_state_new, CT_TCP_ESTABLISHED);
			assert_memory_equal(&c.e, &machine.e, sizeof(c.e));
		}
		segment_free(&s);
	}
	assert_true(taken > 100000 && left > 100000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
