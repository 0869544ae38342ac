/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SCTP scenarios between A and B, each packet as its tag and a list of chunks in words:
 * "INIT=11" has the initiate tag 11, "ABORT/T" the T bit set, "COOKIE-ECHO DATA" are two.
 */
#include "segment.h"

struct step {
	char side; /* 'A', 'B'; 'w': wait for `tag` milliseconds */
	uint32_t tag;
	const char *chunks;
	const char *want;
};

#define STEPS(...) (const struct step[]){__VA_ARGS__, {0}}

static const struct {
	const char *name;
	uint8_t type, len;
} chunk_types[] = {
	{"DATA", 0, 17}, {"INIT", 1, 20}, {"INIT-ACK", 2, 24}, {"SACK", 3, 16},
	{"HEARTBEAT", 4, 12},
	{"HEARTBEAT-ACK", 5, 12}, {"ABORT", 6, 4}, {"SHUTDOWN", 7, 8}, {"SHUTDOWN-ACK", 8, 4},
	{"ERROR", 9, 8}, {"COOKIE-ECHO", 10, 9}, {"COOKIE-ACK", 11, 4},
	{"SHUTDOWN-COMPLETE", 14, 4},
};

static const struct step associated[] = {
	{'A', 0, "INIT=11", "CLOSED 10 UNREPLIED"},
	{'B', 11, "INIT-ACK=22", "COOKIE_WAIT 3"},
	{'A', 22, "COOKIE-ECHO DATA", "COOKIE_ECHOED 3"},
	{'B', 11, "COOKIE-ACK SACK", "ESTABLISHED 210 ASSURED"},
	{0},
};

static const struct {
	const char *name;
	const struct step *before;
	const struct step *steps;
} scenarios[] = {
	{"association and shutdown", associated, STEPS(
		{'A', 22, "DATA DATA SACK", "ESTABLISHED 210 ASSURED"},
		{'A', 22, "SHUTDOWN", "SHUTDOWN_SENT 3 ASSURED"},
		{'B', 11, "SHUTDOWN-ACK", "SHUTDOWN_ACK_SENT 3 ASSURED"},
		{'A', 22, "SHUTDOWN-COMPLETE", "CLOSED 10 ASSURED"})},
	{"shutdown by the server", associated, STEPS(
		{'B', 11, "SHUTDOWN", "SHUTDOWN_RECD 3 ASSURED"},
		{'A', 22, "SHUTDOWN-ACK", "SHUTDOWN_ACK_SENT 3 ASSURED"},
		{'B', 22, "SHUTDOWN-COMPLETE/T", "CLOSED 10 ASSURED"})},
	{"a repeated INIT does not prolong", NULL, STEPS(
		{'A', 0, "INIT=11", "CLOSED 10 UNREPLIED"},
		{'w', 3000, NULL, "CLOSED 7 UNREPLIED"},
		{'A', 0, "INIT=11", "CLOSED 7 UNREPLIED"})},
	{"INITs collide", NULL, STEPS(
		{'A', 0, "INIT=1", "CLOSED 10 UNREPLIED"},
		{'B', 0, "INIT=9", "CLOSED 10"},
		{'A', 9, "INIT-ACK=1", "COOKIE_WAIT 3"},
		{'B', 1, "INIT-ACK=9", "COOKIE_WAIT 3"},
		{'A', 9, "COOKIE-ECHO", "COOKIE_ECHOED 3"},
		{'B', 1, "COOKIE-ACK", "ESTABLISHED 210 ASSURED"},
		{'A', 9, "DATA", "ESTABLISHED 210 ASSURED"},
		{'B', 1, "DATA", "ESTABLISHED 210 ASSURED"})},
	{"INITs collide, an INIT ACK of before comes late", NULL, STEPS(
		{'A', 0, "INIT=1328", "CLOSED 10 UNREPLIED"},
		{'B', 0, "INIT=1414", "CLOSED 10"},
		{'A', 1414, "INIT-ACK=1328", "COOKIE_WAIT 3"},
		{'B', 1328, "INIT-ACK=1650", "invalid-sctp-tag: COOKIE_WAIT 3"},
		{'A', 1414, "COOKIE-ECHO", "COOKIE_ECHOED 3"},
		{'B', 1328, "COOKIE-ECHO", "COOKIE_ECHOED 3"},
		{'A', 1414, "COOKIE-ACK", "ESTABLISHED 210 ASSURED"},
		{'B', 1328, "DATA", "ESTABLISHED 210 ASSURED"},
		{'A', 1414, "DATA", "ESTABLISHED 210 ASSURED"})},
	{"INITs collide, an INIT ACK comes after the association", NULL, STEPS(
		{'A', 0, "INIT=392", "CLOSED 10 UNREPLIED"},
		{'B', 0, "INIT=144", "CLOSED 10"},
		{'A', 144, "INIT-ACK=392", "COOKIE_WAIT 3"},
		{'B', 392, "COOKIE-ECHO", "COOKIE_ECHOED 3"},
		{'A', 144, "COOKIE-ACK", "ESTABLISHED 210 ASSURED"},
		{'B', 392, "INIT-ACK=391", "invalid-sctp-tag: ESTABLISHED 210 ASSURED"},
		{'A', 144, "DATA", "ESTABLISHED 210 ASSURED"},
		{'B', 392, "DATA", "ESTABLISHED 210 ASSURED"})},
	{"restart", associated, STEPS(
		{'A', 0, "INIT=33", "ESTABLISHED 210 ASSURED"},
		{'B', 11, "DATA", "ESTABLISHED 210 ASSURED"}, /* under way since before */
		{'B', 33, "INIT-ACK=44", "ESTABLISHED 210 ASSURED"},
		{'A', 44, "COOKIE-ECHO DATA", "ESTABLISHED 210 ASSURED"},
		{'B', 33, "COOKIE-ACK DATA", "ESTABLISHED 210 ASSURED"},
		{'B', 11, "DATA", "invalid-sctp-tag: ESTABLISHED 210 ASSURED"},
		{'A', 22, "DATA", "invalid-sctp-tag: ESTABLISHED 210 ASSURED"},
		{'A', 44, "DATA", "ESTABLISHED 210 ASSURED"})},
	{"a forged INIT does no harm", associated, STEPS(
		{'A', 0, "INIT=666", "ESTABLISHED 210 ASSURED"},
		{'B', 11, "DATA", "ESTABLISHED 210 ASSURED"},
		{'B', 666, "ABORT", "invalid-sctp-tag: ESTABLISHED 210 ASSURED"},
		{'B', 666, "DATA", "invalid-sctp-tag: ESTABLISHED 210 ASSURED"},
		{'A', 22, "DATA", "ESTABLISHED 210 ASSURED"})},
	{"ABORT with a wrong tag", associated, STEPS(
		{'w', 1000, NULL, "ESTABLISHED 209 ASSURED"},
		{'B', 99, "ABORT", "invalid-sctp-tag: ESTABLISHED 209 ASSURED"},
		{'B', 0, "ABORT", "invalid-sctp-tag: ESTABLISHED 209 ASSURED"},
		{'B', 22, "ABORT", "invalid-sctp-tag: ESTABLISHED 209 ASSURED"},
		{'B', 11, "ABORT/T", "invalid-sctp-tag: ESTABLISHED 209 ASSURED"},
		{'A', 22, "DATA", "ESTABLISHED 210 ASSURED"},
		{'B', 22, "ABORT/T", "CLOSED 10 ASSURED"})},
	{"ABORT", associated, STEPS({'A', 22, "ABORT", "CLOSED 10 ASSURED"})},
	{"associated again after an ABORT, with new tags", associated, STEPS(
		{'A', 22, "ABORT", "CLOSED 10 ASSURED"},
		{'A', 0, "INIT=55", "CLOSED 10 ASSURED"},
		{'B', 55, "INIT-ACK=66", "COOKIE_WAIT 3 ASSURED"},
		{'A', 66, "COOKIE-ECHO", "COOKIE_ECHOED 3 ASSURED"},
		{'B', 55, "COOKIE-ACK", "ESTABLISHED 210 ASSURED"})},
	{"refused", NULL, STEPS(
		{'A', 0, "INIT=11", "CLOSED 10 UNREPLIED"},
		{'B', 11, "ABORT", "CLOSED 10"})},
	{"stale cookie", NULL, STEPS(
		{'A', 0, "INIT=11", "CLOSED 10 UNREPLIED"},
		{'B', 11, "INIT-ACK=22", "COOKIE_WAIT 3"},
		{'A', 22, "COOKIE-ECHO", "COOKIE_ECHOED 3"},
		{'B', 11, "ERROR", "CLOSED 10"})},
	{"a path found by heartbeat", NULL, STEPS(
		{'A', 22, "HEARTBEAT", "HEARTBEAT_SENT 30 UNREPLIED"},
		{'B', 11, "DATA", "invalid-sctp-tag: HEARTBEAT_SENT 30 UNREPLIED"},
		{'B', 11, "HEARTBEAT-ACK", "ESTABLISHED 210 ASSURED"},
		{'A', 22, "DATA", "ESTABLISHED 210 ASSURED"},
		{'B', 12, "DATA", "invalid-sctp-tag: ESTABLISHED 210 ASSURED"})},
	{"a path whose association restarted elsewhere", associated, STEPS(
		{'w', 1000, NULL, "ESTABLISHED 209 ASSURED"},
		{'A', 77, "HEARTBEAT", "ESTABLISHED 209 ASSURED"},
		{'A', 77, "DATA", "invalid-sctp-tag: ESTABLISHED 209 ASSURED"},
		{'B', 88, "HEARTBEAT-ACK", "ESTABLISHED 210 ASSURED"},
		{'A', 77, "DATA", "ESTABLISHED 210 ASSURED"},
		{'B', 88, "DATA", "ESTABLISHED 210 ASSURED"})},
	{"a forged heartbeat does no harm", associated, STEPS(
		{'A', 77, "HEARTBEAT", "ESTABLISHED 210 ASSURED"},
		{'A', 22, "DATA", "ESTABLISHED 210 ASSURED"},
		{'B', 11, "HEARTBEAT-ACK", "ESTABLISHED 210 ASSURED"},
		{'B', 88, "HEARTBEAT-ACK", "ESTABLISHED 210 ASSURED"},
		{'B', 11, "DATA", "ESTABLISHED 210 ASSURED"})},
	{"SHUTDOWN ACK out of the blue", NULL, STEPS(
		{'A', 22, "SHUTDOWN-ACK", "SHUTDOWN_ACK_SENT 3 UNREPLIED"},
		{'B', 22, "SHUTDOWN-COMPLETE/T", "CLOSED 10"})},
	{"what starts nothing", NULL, STEPS(
		{'A', 22, "DATA", "invalid-sctp-chunk"},
		{'A', 22, "INIT-ACK=1", "invalid-sctp-chunk"},
		{'A', 22, "ABORT", "invalid-sctp-chunk"},
		{'A', 22, "COOKIE-ECHO", "invalid-sctp-chunk"},
		{'A', 22, "COOKIE-ACK", "invalid-sctp-chunk"},
		{'A', 22, "SHUTDOWN", "invalid-sctp-chunk"},
		{'A', 22, "SHUTDOWN-COMPLETE", "invalid-sctp-chunk"},
		{'A', 22, "ERROR", "invalid-sctp-chunk"},
		{'A', 22, "HEARTBEAT-ACK", "invalid-sctp-chunk"},
		{'A', 22, "INIT=1", "invalid-sctp-tag"},
		{'A', 0, "HEARTBEAT", "invalid-sctp-tag"},
		{'A', 0, "INIT=0", "invalid-sctp-chunk"})},
	{"chunks out of place", associated, STEPS(
		{'A', 0, "INIT=1 DATA", "invalid-sctp-chunk: ESTABLISHED 210 ASSURED"},
		{'A', 22, "DATA COOKIE-ECHO", "invalid-sctp-chunk: ESTABLISHED 210 ASSURED"},
		{'A', 22, "DATA SHUTDOWN-COMPLETE",
			"invalid-sctp-chunk: ESTABLISHED 210 ASSURED"})},
	{"nothing of a packet counts when a part is wrong", associated, STEPS(
		{'A', 22, "SHUTDOWN INIT=1", "invalid-sctp-chunk: ESTABLISHED 210 ASSURED"})},
};

/* Appends the chunk that `word` names; returns its length with padding. */
static unsigned int
put_chunk(uint8_t *at, const char *word)
{
	size_t name_len = strcspn(word, "=/");
	unsigned int i;

	for (i = 0; i < RTE_DIM(chunk_types); i++) {
		if (strlen(chunk_types[i].name) == name_len &&
			strncmp(chunk_types[i].name, word, name_len) == 0)
			break;
	}
	assert_true(i < RTE_DIM(chunk_types));
	at[0] = chunk_types[i].type;
	at[1] = word[name_len] == '/';
	at[3] = chunk_types[i].len;
	if (word[name_len] == '=')
		put32(at + 4, (uint32_t)strtoul(word + name_len + 1, NULL, 10));
	return RTE_ALIGN_CEIL(chunk_types[i].len, 4u);
}

static void
build(struct segment *s, const struct step *st)
{
	uint8_t bytes[256] = {0};
	unsigned int len = 12;
	char words[64], *word, *rest = NULL;

	snprintf(words, sizeof(words), "%s", st->chunks);
	for (word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
		len += put_chunk(bytes + len, word);
	put32(bytes + 4, st->tag);
	segment_init(s, TUPLE_IPV4, IPPROTO_SCTP, len, len);
	memcpy(s->l4, bytes, len);
}

static void
play(struct conn *c, const char *name, const struct step *steps)
{
	enum ct_proto_verdict v;
	struct segment s;
	unsigned int i;

	for (i = 0; steps[i].side != 0; i++) {
		if (steps[i].side == 'w') {
			conn_wait(c, steps[i].tag);
			segment_init(&s, TUPLE_IPV4, IPPROTO_SCTP, 12, 12);
			v = CT_PROTO_OK;
		} else {
			build(&s, &steps[i]);
			v = conn_feed(c, &s, steps[i].side == 'B');
		}
		if (strcmp(conn_show(c, &s, v), steps[i].want) != 0)
			fail_msg("%s, step %u (%c %u %s): is \"%s\", not \"%s\"", name, i,
				steps[i].side, steps[i].tag, steps[i].chunks ? steps[i].chunks : "",
				conn_show(c, &s, v), steps[i].want);
		segment_free(&s);
	}
}

static void
test_scenarios(void **state)
{
	struct conn c;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(scenarios); i++) {
		conn_init(&c, segment_clocks[i % RTE_DIM(segment_clocks)]);
		if (scenarios[i].before != NULL)
			play(&c, scenarios[i].name, scenarios[i].before);
		play(&c, scenarios[i].name, scenarios[i].steps);
	}
}

/* Chunk lists that lie; the buffer ends with the packet, so that a step too far is seen. */
static void
test_hostile_chunks(void **state)
{
	static const struct {
		const char *bytes;
		uint8_t len;
	} lists[] = {
		{"", 0},                          /* no chunk */
		{"\6\0\0", 3},                    /* cut */
		{"\6\0\0\0", 4},                  /* length 0 */
		{"\6\0\0\3", 4},                  /* less than its header */
		{"\6\0\0\5", 4},                  /* beyond the packet */
		{"\6\0\377\377", 4},
		{"\0\0\0\4\6\0\0\0", 8},          /* … in the second */
		{"\0\0\0\5x\0\0\0\6", 9},         /* one byte behind the padding */
		{"\1\0\0\10\0\0\0\1", 8},         /* INIT without its fixed part */
		{"\2\0\0\23\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0", 19},
	};
	struct ct_entry before;
	struct segment s;
	struct conn c;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(lists); i++) {
		conn_init(&c, 1);
		play(&c, "before", associated);
		before = c.e;
		segment_init(&s, TUPLE_IPV4, IPPROTO_SCTP, 12u + lists[i].len, 12u + lists[i].len);
		put32(s.l4 + 4, lists[i].bytes[0] == 1 ? 0 : 22);
		memcpy(s.l4 + 12, lists[i].bytes, lists[i].len);
		assert_int_equal(conn_feed(&c, &s, CT_ORIGINAL), CT_PROTO_INVALID);
		assert_int_equal(s.pkt.reason, SL_DROP_INV_SCTP_CHUNK);
		assert_memory_equal(&c.e, &before, sizeof(before));
		segment_free(&s);
	}
}

/* The last chunk needs no padding, and chunks may lie in a later segment of the buffer. */
static void
test_chunks_over_segments(void **state)
{
	uint8_t tail_bytes[] = {0, 0, 6, 0, 0, 4}; /* the end of a DATA's padding, an ABORT */
	struct rte_mbuf tail;
	struct segment s;
	struct conn c;
	(void)state;

	memset(&tail, 0, sizeof(tail));
	conn_init(&c, 1);
	play(&c, "before", associated);
	segment_init(&s, TUPLE_IPV4, IPPROTO_SCTP, 12 + 18, 12 + 18 + 2 + 4);
	put32(s.l4 + 4, 22);
	s.l4[15] = 18;
	tail.buf_addr = tail_bytes;
	tail.data_len = sizeof(tail_bytes);
	s.mbuf.next = &tail;
	s.mbuf.nb_segs = 2;
	s.mbuf.pkt_len += tail.data_len;
	assert_int_equal(conn_feed(&c, &s, CT_ORIGINAL), CT_PROTO_OK);
	assert_string_equal(conn_show(&c, &s, CT_PROTO_OK), "CLOSED 10 ASSURED");
	segment_free(&s);

	conn_init(&c, 1);
	play(&c, "before", associated);
	segment_init(&s, TUPLE_IPV4, IPPROTO_SCTP, 12 + 17, 12 + 17);
	put32(s.l4 + 4, 22);
	s.l4[15] = 17;
	assert_int_equal(conn_feed(&c, &s, CT_ORIGINAL), CT_PROTO_OK);
	segment_free(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scenarios),
		cmocka_unit_test(test_hostile_chunks),
		cmocka_unit_test(test_chunks_over_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
