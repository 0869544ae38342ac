/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every (direction, kind, state) of the TCP machine against what conntrack is known to do, all 64
 * combinations of flags, and option lists that lie.
 */
#include "segment.h"

/*
 * One row for a direction and kind of segment, one column for a state. A state's name: goes there;
 * "=" stays and the lifetime is not renewed, "!" is invalid, "new" begins a connection anew.
 */
static const struct {
	unsigned int dir;
	const char *kind;
	uint8_t flags;
	const char *to[CT_TCP_STATES - 1]; /* from SYN_SENT on */
} expected[] = {
	/*                            SS     SR     ES     FW     CW     LA     TW     CL     S2 */
	{0, "SYN", PKT_TCP_SYN,     {"SS",  "=",   "=",   "=",   "=",   "=",   "new", "new", "S2"}},
	{0, "SYN/ACK", PKT_TCP_SYN | PKT_TCP_ACK,
				    {"!",   "SR",  "!",   "!",   "!",   "!",   "!",   "!",   "SR"}},
	{0, "FIN", PKT_TCP_FIN | PKT_TCP_ACK,
				    {"!",   "FW",  "FW",  "LA",  "LA",  "LA",  "TW",  "CL",  "!"}},
	{0, "ACK", PKT_TCP_ACK,     {"!",   "ES",  "ES",  "CW",  "CW",  "TW",  "TW",  "CL",  "!"}},
	{0, "RST", PKT_TCP_RST,     {"CL",  "CL",  "CL",  "CL",  "CL",  "CL",  "CL",  "CL",  "CL"}},
	{1, "SYN", PKT_TCP_SYN,     {"S2",  "!",   "!",   "!",   "!",   "!",   "new", "!",   "S2"}},
	{1, "SYN/ACK", PKT_TCP_SYN | PKT_TCP_ACK,
				    {"SR",  "=",   "=",   "=",   "=",   "=",   "=",   "=",   "SR"}},
	{1, "FIN", PKT_TCP_FIN | PKT_TCP_ACK,
				    {"!",   "FW",  "FW",  "LA",  "LA",  "LA",  "TW",  "CL",  "!"}},
	{1, "ACK", PKT_TCP_ACK,     {"=",   "SR",  "ES",  "CW",  "CW",  "TW",  "TW",  "CL",  "="}},
	{1, "RST", PKT_TCP_RST,     {"CL",  "CL",  "CL",  "CL",  "CL",  "CL",  "CL",  "CL",  "CL"}},
};

static const char *const short_names[CT_TCP_STATES] = {
	"NO", "SS", "SR", "ES", "FW", "CW", "LA", "TW", "CL", "S2"};

#define SEQ 1000u

/* A segment that is in every window of a connection made by stand(). */
static void
make(struct segment *s, uint8_t flags)
{
	segment_init(s, TUPLE_IPV4, IPPROTO_TCP, 20, 20);
	s->pkt.tcp_flags = flags;
	put32(s->l4 + 4, SEQ);
	if (flags & PKT_TCP_ACK)
		put32(s->l4 + 8, SEQ + 1);
	s->l4[14] = 0xff;
}

/* A connection that has come to `state`: of both sides the window is known, nothing is under
 * way. */
static void
stand(struct conn *c, unsigned int state)
{
	struct ct_tcp *tcp = &c->e.proto.tcp;
	unsigned int dir;

	conn_init(c, 1);
	c->begun = true;
	for (dir = 0; dir < 2; dir++) {
		tcp->peer[dir] = (struct ct_tcp_peer){
			.end = SEQ + 1, .max_end = SEQ + 60000, .max_win = 60000, .max_ack = SEQ};
	}
	tcp->last_win = 1;
	tcp->state = state & 15;
	if (state == CT_TCP_TIME_WAIT || state == CT_TCP_CLOSE)
		tcp->peer_flags[0] = CT_TCP_PEER_FIN;
	c->e.status = CT_SEEN_REPLY;
	c->e.deadline = c->now.ms + 5000;
}

static const char *
outcome(const struct conn *c, enum ct_proto_verdict v)
{
	uint32_t left = c->e.deadline - c->now.ms;
	unsigned int state = c->e.proto.tcp.state;

	if (v == CT_PROTO_INVALID)
		return left == 5000 ? "!" : "invalid but renewed";
	if (v == CT_PROTO_REOPEN)
		return "new";
	if (left == 5000)
		return c->ignored ? "=" : "counts, but is not renewed";
	if (c->ignored)
		return "renewed, but does not count";
	return left == c->knobs.tcp_timeout[state] ? short_names[state] : "wrong timeout";
}

static void
test_every_transition(void **state)
{
	struct segment s;
	struct conn c;
	unsigned int i, from;
	(void)state;

	for (i = 0; i < RTE_DIM(expected); i++) {
		for (from = CT_TCP_SYN_SENT; from < CT_TCP_STATES; from++) {
			const char *want = expected[i].to[from - 1], *is;

			stand(&c, from);
			make(&s, expected[i].flags);
			is = outcome(&c, conn_feed(&c, &s, expected[i].dir));
			if (strcmp(is, want) != 0)
				fail_msg("%s of %s in %s: %s, not %s", expected[i].kind,
					expected[i].dir ? "reply" : "original", short_names[from],
					is, want);
			if (strcmp(want, "!") == 0) {
				assert_int_equal(s.pkt.reason, SL_DROP_INV_TCP_STATE);
				assert_int_equal(c.e.proto.tcp.state, from);
			}
			if (strcmp(want, "new") != 0) {
				assert_int_equal(s.pkt.ct_state_old, from);
				assert_int_equal(s.pkt.ct_state_new, c.e.proto.tcp.state);
			}
			segment_free(&s);
		}
	}
}

/* A SYN of either side on a connection that one RST closed: only its own sender may open anew. */
static void
test_syn_after_reset(void **state)
{
	static const struct {
		unsigned int rst_dir;
		const char *want;
	} cases[] = {{CT_ORIGINAL, "new"}, {CT_REPLY, "="}};
	struct segment s;
	struct conn c;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		stand(&c, CT_TCP_CLOSE);
		c.e.proto.tcp.peer_flags[0] = 0;
		make(&s, PKT_TCP_RST);
		assert_int_equal(conn_feed(&c, &s, cases[i].rst_dir), CT_PROTO_OK);
		segment_free(&s);
		c.e.deadline = c.now.ms + 5000;
		make(&s, PKT_TCP_SYN);
		assert_string_equal(outcome(&c, conn_feed(&c, &s, CT_ORIGINAL)), cases[i].want);
		segment_free(&s);
	}
}

static bool
flags_are_sound(unsigned int flags)
{
	static const uint8_t sound[] = {PKT_TCP_SYN, PKT_TCP_SYN | PKT_TCP_URG,
		PKT_TCP_SYN | PKT_TCP_ACK, PKT_TCP_RST, PKT_TCP_RST | PKT_TCP_ACK,
		PKT_TCP_FIN | PKT_TCP_ACK, PKT_TCP_FIN | PKT_TCP_ACK | PKT_TCP_URG, PKT_TCP_ACK,
		PKT_TCP_ACK | PKT_TCP_URG};
	unsigned int i;

	flags &= ~(unsigned int)(PKT_TCP_PSH | PKT_TCP_ECE | PKT_TCP_CWR);
	for (i = 0; i < RTE_DIM(sound); i++) {
		if (flags == sound[i])
			return true;
	}
	return false;
}

static void
test_every_combination_of_flags(void **state)
{
	enum ct_proto_verdict v;
	struct segment s;
	struct conn c;
	unsigned int flags, dir;
	(void)state;

	for (flags = 0; flags < 256; flags++) {
		for (dir = 0; dir < 2; dir++) {
			struct ct_entry before;

			stand(&c, CT_TCP_ESTABLISHED);
			before = c.e;
			make(&s, (uint8_t)flags);
			v = conn_feed(&c, &s, dir);
			assert_true(
				(v == CT_PROTO_INVALID && s.pkt.reason == SL_DROP_INV_TCP_FLAGS) ==
				!flags_are_sound(flags));
			if (!flags_are_sound(flags))
				assert_memory_equal(&c.e, &before, sizeof(before));
			segment_free(&s);
		}
	}
}

/* Lists that end early or lie on a length, on a SYN; what is sound before the lie counts. */
static void
test_hostile_options(void **state)
{
	static const struct {
		const char *name, *bytes;
		uint8_t len; /* a multiple of 4, as the data offset makes it */
		uint8_t scale;
		bool sack;
	} lists[] = {
		{"none", "", 0, 0, false},
		{"forty of NOP",
			"\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"
				 "\1\1\1\1\1\1", 40, 0, false},
		{"MSS of length 0", "\2\0\3\3\7\0\0\0", 8, 0, false},
		{"MSS of length 1", "\2\1\3\3\7\0\0\0", 8, 0, false},
		{"MSS of length 3", "\2\3\5\3\3\7\0\0", 8, 7, false},
		{"MSS of length 255", "\2\377\3\3\7\0\0\0", 8, 0, false},
		{"kind without length at the end", "\3\3\7\2", 4, 7, false},
		{"scale cut", "\1\1\3\3", 4, 0, false},
		{"scale of length 2", "\3\2\4\2", 4, 0, true},
		{"scale of length 4", "\3\4\7\7\4\2\0\0", 8, 0, true},
		{"scale too large", "\3\3\377\0", 4, 14, false},
		{"behind the end of the list", "\0\3\3\7", 4, 0, false},
		{"SACK permitted of length 3", "\4\3\0\0", 4, 0, false},
		{"timestamps twice", "\10\12abcdefgh\10\12abcdefgh\4\2\3\3\7\0\0", 28, 7, true},
		{"unknown kind stepped over", "\375\4xx\3\3\7\0", 8, 7, false},
	};
	struct segment s;
	struct conn c;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(lists); i++) {
		const struct ct_tcp *tcp = &c.e.proto.tcp;

		conn_init(&c, 1);
		segment_init(&s, TUPLE_IPV4, IPPROTO_TCP, 20u + lists[i].len, 20u + lists[i].len);
		s.pkt.tcp_flags = PKT_TCP_SYN;
		memcpy(s.l4 + 20, lists[i].bytes, lists[i].len);
		assert_int_equal(conn_feed(&c, &s, CT_ORIGINAL), CT_PROTO_OK);
		if ((tcp->scale[0] & 15) != lists[i].scale ||
			!(tcp->peer_flags[0] & CT_TCP_PEER_SACK) != !lists[i].sack)
			fail_msg("%s: scale %u, flags %x", lists[i].name, tcp->scale[0] & 15,
				tcp->peer_flags[0]);
		segment_free(&s);
	}
}

/* SACK options that are no list of blocks: the acknowledgement counts as it is. */
static void
test_hostile_sack(void **state)
{
	static const struct {
		const char *bytes;
		uint8_t len;
		bool fits;
	} lists[] = {
		{"\5\12\0\0\3\350\0\0\3\351\0\0", 12, true},  /* 1000–1001: what was sent */
		{"\5\12\0\0\3\350\0\0\3\352\0\0", 12, false}, /* 1000–1002: not sent */
		{"\5\13\0\0\3\350\0\0\3\352\0\0", 12, true},  /* length 11 */
		{"\5\12\0\0\3\350\0\0", 8, true},             /* cut */
		{"\5\2\0\0", 4, true},
		{"\5\6\0\0\3\352\0\0", 8, true},
		{"\1\1\10\12aaaabbbb", 12, true},
		{"\1\1\10\12aaaabbbb\5\12\0\0\3\350\0\0\3\352\0\0", 24, false},
	};
	struct segment s;
	struct conn c;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(lists); i++) {
		stand(&c, CT_TCP_ESTABLISHED);
		c.e.proto.tcp.peer_flags[CT_ORIGINAL] |= CT_TCP_PEER_SACK;
		segment_init(&s, TUPLE_IPV4, IPPROTO_TCP, 20u + lists[i].len, 20u + lists[i].len);
		s.pkt.tcp_flags = PKT_TCP_ACK;
		put32(s.l4 + 4, SEQ + 1);
		put32(s.l4 + 8, SEQ + 1);
		memcpy(s.l4 + 20, lists[i].bytes, lists[i].len);
		assert_int_equal(conn_feed(&c, &s, CT_REPLY),
			lists[i].fits ? CT_PROTO_OK : CT_PROTO_INVALID);
		segment_free(&s);
	}
}

/* The deadline is the last packet and the timeout of the state, at any timeout and any clock. */
static void
test_timeouts_at_every_clock(void **state)
{
	static const uint32_t seconds[] = {1, 524, 525, 7440, 432000, SL_TIMEOUT_MAX};
	struct segment s;
	struct conn c;
	unsigned int i, k, n;
	(void)state;

	for (i = 0; i < RTE_DIM(seconds); i++) {
		for (k = 0; k < RTE_DIM(segment_clocks); k++) {
			stand(&c, CT_TCP_ESTABLISHED);
			c.now.ms = segment_clocks[k];
			c.knobs.tcp_timeout[CT_TCP_ESTABLISHED] = seconds[i] * SL_MSEC_PER_SEC;
			c.knobs.tcp_timeout[CT_TCP_RETRANS] = SL_TIMEOUT_MAX * SL_MSEC_PER_SEC;
			for (n = 0; n < 1000; n++) {
				conn_wait(&c, 17);
				make(&s, PKT_TCP_ACK);
				assert_int_equal(conn_feed(&c, &s, n & 1), CT_PROTO_OK);
				segment_free(&s);
			}
			assert_int_equal(sl_ms_left(c.e.deadline, c.now.ms), seconds[i] * 1000);
			assert_false(sl_ms_passed(c.e.deadline, c.now.ms + seconds[i] * 1000 - 1));
			assert_true(sl_ms_passed(c.e.deadline, c.now.ms + seconds[i] * 1000));
		}
	}
}

/* One segment over and over: after tcp_max_retrans repeats the shorter timeout, and it stays. */
static void
test_repeats(void **state)
{
	struct segment s;
	struct conn c;
	unsigned int i;
	(void)state;

	stand(&c, CT_TCP_ESTABLISHED);
	c.knobs.tcp_max_retrans = 5;
	for (i = 0; i < 300; i++) {
		make(&s, PKT_TCP_ACK);
		assert_int_equal(conn_feed(&c, &s, CT_ORIGINAL), CT_PROTO_OK);
		segment_free(&s);
		assert_int_equal(c.e.deadline - c.now.ms, i < 5 ? 432000000 : 300000);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_transition),
		cmocka_unit_test(test_syn_after_reset),
		cmocka_unit_test(test_every_combination_of_flags),
		cmocka_unit_test(test_hostile_options),
		cmocka_unit_test(test_hostile_sack),
		cmocka_unit_test(test_timeouts_at_every_clock),
		cmocka_unit_test(test_repeats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
