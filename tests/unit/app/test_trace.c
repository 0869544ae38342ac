/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "err.h"
#include "frames.h"
#include "parse.h"
#include "trace.h"
#include "trace_json.h"
#include "worker.h"

static struct gateway gw;
static struct worker workers[2];
static struct port in_port = {.name = "p0"}, out_port = {.name = "p1", .index = 1};
static struct netns red = {.id = 1, .gen = 3, .name = "red"};
static struct link in_link = {.port = &in_port, .ns = &red, .name = "in"};
static struct link out_link = {
	.port = &out_port, .ns = &red, .name = "out", .vlan = 20, .inner = 7};
static struct ct_entry entry;

static int
setup(void **state)
{
	unsigned int i;
	(void)state;

	gw.n_workers = 2;
	for (i = 0; i < 2; i++) {
		workers[i] = (struct worker){.gw = &gw, .index = i};
		gw.workers[i] = &workers[i];
	}
	return 0;
}

/* A frame of the parser's test cases as the packet path has it at the end of a burst. */
static void
arrive(const char *name, struct frame *f, struct rte_mbuf *m, struct pkt *p)
{
	struct tuple inside;

	frame_case(name)->build(f);
	frame_wrap(m, f->b, f->len);
	p->reason = (uint8_t)parse_frame(p, m);
	inside = p->tuple;
	if (p->flags & PKT_ICMP_ERROR)
		assert_true(tuple_invert(&p->tuple, &inside));
	p->ns = &red;
	p->in = &in_link;
	p->out = &out_link;
}

static struct trace_session *
open_trace(const struct trace_filter *f)
{
	struct trace_session *s = NULL;
	struct sl_err err = {""};

	if (trace_open(&gw, f, &s, &err) != 0)
		fail_msg("%s", err.msg);
	return s;
}

static void
send_at(unsigned int worker, const struct pkt *p, unsigned int n, uint64_t ns)
{
	struct worker *w = &workers[worker];

	assert_true(n <= DATAPATH_BURST);
	memcpy(w->dp.pkt, p, n * sizeof(*p));
	trace_burst(w, &in_port, w->dp.pkt, n, sl_now_from_ns(ns));
}

/* ---- which packets ---- */

#define PREFIX4(text_, len_) .text = (text_), .len = (len_), .family = TUPLE_IPV4
#define PREFIX6(text_, len_) .text = (text_), .len = (len_), .family = TUPLE_IPV6

static const struct filter_case {
	const char *frame;
	const char *text; /* address of the source prefix; NULL: none */
	uint8_t len, family;
	struct trace_filter f;
	bool selected;
} filter_cases[] = {
	{"tcp4", .selected = true},
	{"arp", .selected = true},
	{"tcp4", PREFIX4("198.51.100.10", 32), .selected = true},
	{"tcp4", PREFIX4("198.51.100.11", 31), .selected = true},
	{"tcp4", PREFIX4("198.51.100.12", 31), .selected = false},
	{"tcp4", PREFIX4("198.51.100.11", 32), .selected = false},
	{"tcp4", PREFIX4("198.51.96.0", 20), .selected = true},
	{"tcp4", PREFIX4("10.0.0.0", 0), .selected = true},
	{"tcp6", PREFIX4("10.0.0.0", 0), .selected = false},
	{"tcp6", PREFIX6("2001:db8:1::", 48), .selected = true},
	{"tcp6", PREFIX6("2001:db8:2::", 48), .selected = false},
	{"arp", PREFIX4("0.0.0.0", 0), .selected = false},
	/* The error's own addresses and protocol count, not those of the packet inside. */
	{"error4_tcp", .f = {.fields = TRACE_BY_PROTO, .proto = IPPROTO_ICMP}, .selected = true},
	{"error4_tcp", .f = {.fields = TRACE_BY_PROTO, .proto = IPPROTO_TCP}, .selected = false},
	{"error4_tcp", .f = {.fields = TRACE_BY_DPORT, .dport = FRAME_DPORT}, .selected = false},
	{"error4_tcp", .f = {.fields = TRACE_BY_ICMP_TYPE, .icmp_type = 11}, .selected = true},
	{"tcp4", .f = {.fields = TRACE_BY_ICMP_TYPE, .icmp_type = 0}, .selected = false},
	{"tcp4", .f = {.fields = TRACE_BY_SPORT, .sport = FRAME_SPORT}, .selected = true},
	{"tcp4", .f = {.fields = TRACE_BY_SPORT, .sport = FRAME_DPORT}, .selected = false},
	{"sctp6", .f = {.fields = TRACE_BY_DPORT, .dport = FRAME_DPORT}, .selected = true},
	{"esp4", .f = {.fields = TRACE_BY_DPORT, .dport = 0}, .selected = false},
	{"arp", .f = {.fields = TRACE_BY_PROTO, .proto = 0}, .selected = false},
	{"tcp6", .f = {.fields = TRACE_BY_FAMILY, .family = TUPLE_IPV6}, .selected = true},
	{"tcp4", .f = {.fields = TRACE_BY_FAMILY, .family = TUPLE_IPV6}, .selected = false},
	{"tcp4", .f = {.link = "in"}, .selected = true},
	{"tcp4", .f = {.link = "out"}, .selected = false},
	{"tcp4", .f = {.fields = TRACE_DROPPED}, .selected = false},
	{"tcp4", .f = {.fields = TRACE_BY_REASON, .reason = SL_DROP_NO_PEER}, .selected = false},
};

static void
test_filter(void **state)
{
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(filter_cases); i++) {
		const struct filter_case *c = &filter_cases[i];
		struct trace_filter f = c->f;
		struct trace_session *s;
		struct trace_record r;
		struct rte_mbuf m;
		struct frame frame;
		struct pkt p;

		if (c->text != NULL) {
			f.src.family = c->family;
			f.src.len = c->len;
			assert_int_equal(inet_pton(c->family == TUPLE_IPV6 ? AF_INET6 : AF_INET,
						 c->text, f.src.addr.b), 1);
		}
		arrive(c->frame, &frame, &m, &p);
		s = open_trace(&f);
		send_at(0, &p, 1, 1);
		if (trace_read(s, &r, 1) != c->selected)
			fail_msg("case %u: %s %sselected", i, c->frame, c->selected ? "not " : "");
		trace_close(&gw, s);
	}
}

static void
test_filter_by_fate(void **state)
{
	struct trace_filter dropped = {.fields = TRACE_DROPPED};
	struct trace_filter no_peer = {.fields = TRACE_BY_REASON, .reason = SL_DROP_NO_PEER};
	struct trace_session *a = open_trace(&dropped), *b = open_trace(&no_peer);
	struct trace_record r;
	struct rte_mbuf m;
	struct frame f;
	struct pkt p[3];
	(void)state;

	arrive("udp4_qinq", &f, &m, &p[0]);
	p[1] = p[2] = p[0];
	p[1].flags |= PKT_DROPPED;
	p[1].reason = SL_DROP_NO_PEER;
	p[2].flags |= PKT_DROPPED;
	p[2].reason = SL_DROP_TX_FULL;
	send_at(0, p, 3, 1);
	assert_int_equal(trace_read(a, &r, 1), 1);
	assert_int_equal(r.reason, SL_DROP_NO_PEER);
	assert_int_equal(trace_read(a, &r, 1), 1);
	assert_int_equal(r.reason, SL_DROP_TX_FULL);
	assert_int_equal(trace_read(a, &r, 1), 0);
	assert_int_equal(trace_read(b, &r, 1), 1);
	assert_int_equal(trace_read(b, &r, 1), 0);
	trace_close(&gw, a);
	trace_close(&gw, b);
}

/* A namespace is known by id and generation: its successor is another one. */
static void
test_filter_by_namespace(void **state)
{
	struct netns later = {.id = 1, .gen = 4, .name = "red"};
	struct trace_filter f = {.ns = &red};
	struct trace_session *s = open_trace(&f);
	struct trace_record r;
	struct rte_mbuf m;
	struct frame frame;
	struct pkt p[3];
	(void)state;

	arrive("tcp4", &frame, &m, &p[0]);
	p[1] = p[2] = p[0];
	p[0].ns = NULL;
	p[1].ns = &later;
	send_at(0, p, 2, 1);
	assert_int_equal(trace_read(s, &r, 1), 0);
	send_at(0, p, 3, 1);
	assert_int_equal(trace_read(s, &r, 1), 1);
	assert_string_equal(r.netns, "red");
	trace_close(&gw, s);
}

/* ---- sessions and rings ---- */

static void
test_sessions_are_bounded(void **state)
{
	struct trace_session *s[TRACE_SESSIONS_MAX], *one_more;
	struct trace_filter all = {0};
	struct trace_record r;
	struct sl_err err;
	struct rte_mbuf m;
	struct frame f;
	struct pkt p;
	unsigned int i;
	(void)state;

	arrive("tcp4", &f, &m, &p);
	assert_null(workers[1].trace);
	for (i = 0; i < TRACE_SESSIONS_MAX; i++)
		s[i] = open_trace(&all);
	assert_int_equal(trace_open(&gw, &all, &one_more, &err), -EBUSY);
	assert_non_null(strstr(err.msg, "8 traces"));
	trace_close(&gw, s[2]);
	send_at(1, &p, 1, 1);
	s[2] = open_trace(&all);
	for (i = 0; i < TRACE_SESSIONS_MAX; i++)
		assert_int_equal(trace_read(s[i], &r, 1), i != 2);
	for (i = 0; i < TRACE_SESSIONS_MAX; i++) {
		assert_non_null(workers[1].trace);
		trace_close(&gw, s[i]);
	}
	assert_null(workers[0].trace);
	assert_null(workers[1].trace);
	send_at(0, &p, 1, 1);
}

static void
test_what_does_not_fit_is_counted(void **state)
{
	struct trace_filter all = {0};
	struct trace_session *s = open_trace(&all);
	struct trace_record r[64];
	struct rte_mbuf m;
	struct frame f;
	struct pkt p;
	unsigned int i, n, read = 0;
	(void)state;

	arrive("tcp4", &f, &m, &p);
	for (i = 0; i < 10000; i++)
		send_at(0, &p, 1, i);
	while ((n = trace_read(s, r, RTE_DIM(r))) > 0)
		for (i = 0; i < n; i++)
			assert_int_equal(r[i].ns, read++); /* the first ones, none left out */
	assert_in_range(read, 256, 4096);
	assert_int_equal(trace_lost(s), 10000 - read);
	send_at(0, &p, 1, 77);
	assert_int_equal(trace_read(s, r, 1), 1);
	assert_int_equal(r[0].ns, 77);
	trace_close(&gw, s);
}

static void
test_workers_are_merged_by_time(void **state)
{
	static const struct {
		unsigned int worker;
		uint64_t ns;
	} sent[] = {{0, 10}, {0, 30}, {0, 31}, {1, 5}, {1, 30}, {1, 40}, {0, 41}};
	static const uint64_t expected[] = {5, 10, 30, 30, 31, 40, 41};
	struct trace_filter all = {0};
	struct trace_session *s = open_trace(&all);
	struct trace_record r;
	struct rte_mbuf m;
	struct frame f;
	struct pkt p;
	unsigned int i;
	(void)state;

	arrive("tcp4", &f, &m, &p);
	for (i = 0; i < RTE_DIM(sent); i++)
		send_at(sent[i].worker, &p, 1, sent[i].ns);
	for (i = 0; i < RTE_DIM(expected); i++) {
		assert_int_equal(trace_read(s, &r, 1), 1);
		assert_int_equal(r.ns, expected[i]);
	}
	trace_close(&gw, s);
}

/* Whatever the parser refused: nothing is read beyond the frame, which the sanitizer sees. */
static void
test_cut_frames(void **state)
{
	struct trace_filter all = {0};
	struct trace_session *s = open_trace(&all);
	struct trace_record r;
	unsigned int i;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		struct frame f;
		uint32_t len;

		frame_cases[i].build(&f);
		for (len = 0; len <= f.len; len++) {
			uint8_t *cut = malloc(len);
			struct rte_mbuf m;
			struct pkt p;
			json_t *o;

			assert_true(cut != NULL || len == 0);
			if (len > 0)
				memcpy(cut, f.b, len);
			frame_wrap(&m, cut, len);
			p.reason = (uint8_t)parse_frame(&p, &m);
			if (!(p.flags & PKT_L4_BAD) && p.reason != SL_DROP_NONE)
				p.flags |= PKT_DROPPED;
			send_at(0, &p, 1, 1);
			assert_int_equal(trace_read(s, &r, 1), 1);
			o = trace_json(&r, 1, 0);
			assert_non_null(o);
			json_decref(o);
			free(cut);
		}
	}
	trace_close(&gw, s);
}

/* ---- as JSON ---- */

/* What a packet of the frame is shown as; null stands for what must not be there. */
static void
check_json(const struct pkt *p, const char *expected_text)
{
	struct trace_filter all = {0};
	struct trace_session *s = open_trace(&all);
	json_t *expected, *o, *value;
	struct trace_record r;
	json_error_t error;
	const char *key;

	send_at(1, p, 1, UINT64_C(1500000000));
	assert_int_equal(trace_read(s, &r, 1), 1);
	trace_close(&gw, s);
	o = trace_json(&r, 7, SL_NSEC_PER_SEC);
	expected = json_loads(expected_text, 0, &error);
	if (expected == NULL)
		fail_msg("%s: %s", error.text, expected_text);
	json_object_foreach(expected, key, value) {
		json_t *got = json_object_get(o, key);

		if (json_is_null(value) ? got != NULL && !json_is_null(got)
					: !json_equal(got, value))
			fail_msg("%s: %s", key, json_dumps(o, JSON_SORT_KEYS));
	}
	json_decref(expected);
	json_decref(o);
}

static void
test_json_of_a_new_connection(void **state)
{
	struct rte_mbuf m;
	struct frame f;
	struct pkt p;
	(void)state;

	arrive("tcp4_vlan", &f, &m, &p);
	f.b[f.l4 + 13] = PKT_TCP_SYN | PKT_TCP_ECE;
	frame_put16(&f, f.l4 + 4, 0xffff);
	p.flags |= PKT_CT_NEW;
	p.ct = &entry;
	p.ct_state_new = CT_TCP_SYN_SENT;
	check_json(&p, "{\"trace\": 7, \"time\": 2.5, \"worker\": 1, \"netns\": \"red\","
		"\"verdict\": \"forward\", \"reason\": null, \"about\": null,"
		"\"out\": {\"link\": \"out\", \"port\": \"p1\", \"vlan\": 20, \"inner\": 7},"
		"\"conntrack\": {\"lookup\": \"miss\", \"state\": \"new\","
		" \"direction\": \"original\", \"from\": \"NONE\", \"to\": \"SYN_SENT\"}}");
}

static void
test_json_of_a_reply(void **state)
{
	struct rte_mbuf m;
	struct frame f;
	struct pkt p;
	(void)state;

	arrive("tcp6", &f, &m, &p);
	p.ct = &entry;
	p.ct_dir = CT_REPLY;
	p.ct_state_old = CT_TCP_SYN_SENT;
	p.ct_state_new = CT_TCP_SYN_RECV;
	check_json(&p, "{\"conntrack\": {\"lookup\": \"hit\", \"state\": \"known\","
		" \"direction\": \"reply\","
		" \"from\": \"SYN_SENT\", \"to\": \"SYN_RECV\"}}");
	p.flags |= PKT_RACE_LOST;
	check_json(&p, "{\"conntrack\": {\"lookup\": \"miss\", \"state\": \"known\","
		" \"direction\": \"reply\","
		" \"race_lost\": true, \"from\": \"SYN_SENT\", \"to\": \"SYN_RECV\"}}");
}

static void
test_json_of_a_drop(void **state)
{
	struct rte_mbuf m;
	struct frame f;
	struct pkt p;
	(void)state;

	arrive("udp4_qinq", &f, &m, &p);
	p.flags |= PKT_DROPPED;
	p.reason = SL_DROP_NO_LINK;
	p.ns = NULL;
	p.in = p.out = NULL;
	check_json(&p, "{\"netns\": null, \"conntrack\": null, \"out\": null,"
		"\"verdict\": \"drop\", \"reason\": \"no-link\","
		"\"help\": \"no link has this port and VLAN tag stack\"}");
}

static void
test_json_of_an_invalid_packet(void **state)
{
	struct rte_mbuf m;
	struct frame f;
	struct pkt p;
	(void)state;

	arrive("tcp4", &f, &m, &p);
	p.flags |= PKT_CT_INVALID;
	p.reason = SL_DROP_INV_TCP_WINDOW;
	check_json(&p, "{\"verdict\": \"forward\", \"reason\": null,"
		"\"conntrack\": {\"state\": \"invalid\", \"reason\": \"invalid-tcp-window\"}}");
}

static void
test_json_of_an_icmp_error(void **state)
{
	struct rte_mbuf m;
	struct frame f;
	struct pkt p;
	(void)state;

	arrive("error4_echo", &f, &m, &p);
	p.flags |= PKT_CT_RELATED;
	p.ct = &entry;
	p.ct_dir = CT_REPLY;
	check_json(&p, "{\"conntrack\": {\"lookup\": \"hit\", \"state\": \"related\","
		" \"direction\": \"reply\"},"
		"\"about\": {\"family\": \"ipv4\", \"proto\": \"icmp\", \"protonum\": 1,"
		" \"src\": \"198.51.100.10\", \"dst\": \"192.0.2.80\","
		" \"id\": 4660, \"type\": 8, \"code\": 0}}");
}

static void
test_json_of_other_frames(void **state)
{
	struct rte_mbuf m;
	struct frame f;
	struct pkt p;
	(void)state;

	arrive("arp", &f, &m, &p);
	check_json(&p, "{\"conntrack\": {\"state\": \"untracked\"}}");
	arrive("esp4", &f, &m, &p);
	p.flags |= PKT_CT_NEW;
	p.ct = &entry;
	check_json(&p, "{\"conntrack\": {\"lookup\": \"miss\", \"state\": \"new\","
		" \"direction\": \"original\"},"
		"\"packet\": {\"len\": 54, \"ethertype\": 2048, \"family\": \"ipv4\","
		" \"proto\": \"unknown\", \"protonum\": 50, \"src\": \"198.51.100.10\","
		" \"dst\": \"192.0.2.80\", \"ip_len\": 40}}");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_filter_by_fate),
		cmocka_unit_test(test_filter_by_namespace),
		cmocka_unit_test(test_sessions_are_bounded),
		cmocka_unit_test(test_what_does_not_fit_is_counted),
		cmocka_unit_test(test_workers_are_merged_by_time),
		cmocka_unit_test(test_cut_frames),
		cmocka_unit_test(test_json_of_a_new_connection),
		cmocka_unit_test(test_json_of_a_reply),
		cmocka_unit_test(test_json_of_a_drop),
		cmocka_unit_test(test_json_of_an_invalid_packet),
		cmocka_unit_test(test_json_of_an_icmp_error),
		cmocka_unit_test(test_json_of_other_frames),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
