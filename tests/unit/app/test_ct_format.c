/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tracked connections as listings and events show them. The expected lines are what conntrack
 * 1.4.7 -L and -E print for the same entries of a kernel, with "netns=" in front.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>

#include "ct_filter.h"
#include "ct_format.h"
#include "err.h"
#include "sluicectl/render.h"

static struct knobs knobs;
static struct netns ns = {.id = 3, .name = "t1", .knobs = &knobs};

struct sample {
	uint8_t family, proto, state;
	const char *src, *dst;
	uint16_t a, b, ra, rb; /* sport and dport of both directions, host order */
	int32_t left_ms;
	uint16_t status;
	uint32_t mark;
	uint16_t zone;
	const char *line;
};

#define V4(p) TUPLE_IPV4, IPPROTO_##p
#define V6(p) TUPLE_IPV6, IPPROTO_##p

static const struct sample samples[] = {
	{V4(GRE), 0, "198.51.100.10", "192.0.2.80", 0, 7, 7, 0, 29999, 0, 0, 0,
		"gre      47 29 src=198.51.100.10 dst=192.0.2.80 srckey=0x0 dstkey=0x7 packets=0 "
		"bytes=0 [UNREPLIED] src=192.0.2.80 dst=198.51.100.10 srckey=0x7 dstkey=0x0 "
		"packets=0 bytes=0 mark=0 delta-time=0 use=1"},
	{V6(ICMPV6), 0, "2001:db8::1", "2001:db8::2", 77, 128 << 8, 77, 129 << 8, 29001, 0, 0, 0,
		"icmpv6   58 29 src=2001:db8::1 dst=2001:db8::2 type=128 code=0 id=77 packets=0 "
		"bytes=0 [UNREPLIED] src=2001:db8::2 dst=2001:db8::1 type=129 code=0 id=77 "
		"packets=0 bytes=0 mark=0 delta-time=0 use=1"},
	{V6(TCP), CT_TCP_ESTABLISHED, "2001:db8::1", "2001:db8::2", 1000, 80, 80, 1000, 431999000,
		CT_SEEN_REPLY | CT_ASSURED, 0, 0,
		"tcp      6 431999 ESTABLISHED src=2001:db8::1 dst=2001:db8::2 sport=1000 dport=80 "
		"packets=0 bytes=0 src=2001:db8::2 dst=2001:db8::1 sport=80 dport=1000 packets=0 "
		"bytes=0 [ASSURED] mark=0 delta-time=0 use=1"},
	{V4(UDP), 0, "198.51.100.10", "192.0.2.80", 1001, 53, 53, 1001, 29000, 0, 0, 0,
		"udp      17 29 src=198.51.100.10 dst=192.0.2.80 sport=1001 dport=53 packets=0 "
		"bytes=0 [UNREPLIED] src=192.0.2.80 dst=198.51.100.10 sport=53 dport=1001 "
		"packets=0 bytes=0 mark=0 delta-time=0 use=1"},
	{V4(UDPLITE), 0, "198.51.100.10", "192.0.2.80", 1001, 53, 53, 1001, 29000, 0, 0, 0,
		"udplite  136 29 src=198.51.100.10 dst=192.0.2.80 sport=1001 dport=53 packets=0 "
		"bytes=0 [UNREPLIED] src=192.0.2.80 dst=198.51.100.10 sport=53 dport=1001 "
		"packets=0 bytes=0 mark=0 delta-time=0 use=1"},
	{V4(SCTP), CT_SCTP_COOKIE_WAIT, "198.51.100.10", "192.0.2.80", 1001, 53, 53, 1001, 29000, 0,
		0, 0,
		"sctp     132 29 COOKIE_WAIT src=198.51.100.10 dst=192.0.2.80 sport=1001 dport=53 "
		"packets=0 bytes=0 [UNREPLIED] src=192.0.2.80 dst=198.51.100.10 sport=53 "
		"dport=1001 packets=0 bytes=0 mark=0 delta-time=0 use=1"},
	{TUPLE_IPV4, 89, 0, "198.51.100.10", "192.0.2.80", 0, 0, 0, 0, 29000, 0, 0, 0,
		"unknown  89 29 src=198.51.100.10 dst=192.0.2.80 packets=0 bytes=0 [UNREPLIED] "
		"src=192.0.2.80 dst=198.51.100.10 packets=0 bytes=0 mark=0 delta-time=0 use=1"},
	{V4(ICMP), 0, "198.51.100.10", "192.0.2.80", 77, 8 << 8, 77, 0, 29000, 0, 0, 0,
		"icmp     1 29 src=198.51.100.10 dst=192.0.2.80 type=8 code=0 id=77 packets=0 "
		"bytes=0 [UNREPLIED] src=192.0.2.80 dst=198.51.100.10 type=0 code=0 id=77 "
		"packets=0 bytes=0 mark=0 delta-time=0 use=1"},
	{V4(TCP), CT_TCP_SYN_SENT, "198.51.100.10", "192.0.2.80", 1001, 80, 80, 1001, 119000, 0, 5,
		7,
		"tcp      6 119 SYN_SENT src=198.51.100.10 dst=192.0.2.80 sport=1001 dport=80 "
		"packets=0 bytes=0 [UNREPLIED] src=192.0.2.80 dst=198.51.100.10 sport=80 "
		"dport=1001 packets=0 bytes=0 mark=5 zone=7 delta-time=0 use=1"},
};

static void
make_tuple(struct tuple *t, const struct sample *s, bool reply)
{
	int af = s->family == TUPLE_IPV6 ? AF_INET6 : AF_INET;

	*t = (struct tuple){.scope = 3, .zone = s->zone, .family = s->family, .proto = s->proto};
	inet_pton(af, reply ? s->dst : s->src, t->src.b);
	inet_pton(af, reply ? s->src : s->dst, t->dst.b);
	t->sport = htons(reply ? s->ra : s->a);
	t->dport = htons(reply ? s->rb : s->b);
}

static void
make_view(struct ct_view *v, const struct sample *s)
{
	*v = (struct ct_view){.left_ms = s->left_ms};
	make_tuple(&v->entry.orig.tuple, s, false);
	make_tuple(&v->entry.reply.tuple, s, true);
	v->entry.ns = &ns;
	v->entry.status = s->status;
	v->entry.mark = s->mark;
	if (s->proto == IPPROTO_TCP)
		v->entry.proto.tcp.state = s->state & 0xf;
	if (s->proto == IPPROTO_SCTP)
		v->entry.proto.sctp.state = s->state;
}

/* The line that sluicectl makes of the daemon's object. */
static char *
line_of(const struct ct_view *v, struct sl_now now)
{
	json_t *o = ct_format_json(v, now);
	char *line = NULL;
	size_t len;
	FILE *f = open_memstream(&line, &len);

	assert_non_null(o);
	render_entry(o, f);
	fclose(f);
	json_decref(o);
	return line;
}

static void
test_lines(void **state)
{
	struct ct_view v;
	char expected[512], *line;
	size_t i;

	(void)state;
	knobs = (struct knobs){.timestamp = true};
	for (i = 0; i < RTE_DIM(samples); i++) {
		make_view(&v, &samples[i]);
		v.entry.status |= CT_ACCT;
		line = line_of(&v, sl_now_from_ns(0));
		snprintf(expected, sizeof(expected), "netns=t1 %s\n", samples[i].line);
		assert_string_equal(line, expected);
		free(line);
	}
}

/* A zone of one direction is told with it. */
static void
test_zone_of_a_direction(void **state)
{
	const struct sample *in_zone_7 = &samples[RTE_DIM(samples) - 1];
	struct ct_view v;
	char *line;

	(void)state;
	knobs = (struct knobs){0};
	make_view(&v, in_zone_7);
	v.entry.status |= CT_ACCT;
	v.entry.reply.tuple.zone = 0;
	line = line_of(&v, sl_now_from_ns(0));
	assert_non_null(strstr(line, " dport=80 zone-orig=7 packets=0 bytes=0 [UNREPLIED] "));
	assert_null(strstr(line, " zone="));
	free(line);
	make_view(&v, in_zone_7);
	v.entry.status |= CT_ACCT;
	v.entry.orig.tuple.zone = 0;
	line = line_of(&v, sl_now_from_ns(0));
	assert_non_null(strstr(line, " dport=1001 zone-reply=7 packets=0 bytes=0 mark=5 use=1"));
	free(line);
}

/* Fields of what is not counted, and of times that are not kept, are not there. */
static void
test_options(void **state)
{
	struct ct_view v;
	char *line;

	(void)state;
	make_view(&v, &samples[3]);
	v.entry.orig.packets = 3;
	v.entry.orig.bytes = UINT64_C(5000000000);
	v.entry.start_ns = 7 * SL_NSEC_PER_SEC;
	knobs = (struct knobs){0};
	line = line_of(&v, sl_now_from_ns(20 * SL_NSEC_PER_SEC));
	assert_string_equal(line,
		"netns=t1 udp      17 29 src=198.51.100.10 dst=192.0.2.80 sport=1001 dport=53 "
		"[UNREPLIED] src=192.0.2.80 dst=198.51.100.10 sport=53 dport=1001 mark=0 use=1\n");
	free(line);
	knobs = (struct knobs){.timestamp = true};
	v.entry.status |= CT_ACCT;
	line = line_of(&v, sl_now_from_ns(20 * SL_NSEC_PER_SEC));
	assert_non_null(strstr(line, "dport=53 packets=3 bytes=5000000000 [UNREPLIED]"));
	assert_non_null(strstr(line, "mark=0 delta-time=13 use=1\n"));
	free(line);
}

static void
test_json(void **state)
{
	struct ct_view v;
	json_t *o;
	char *text;

	(void)state;
	knobs = (struct knobs){0};
	make_view(&v, &samples[2]);
	v.entry.status |= CT_ACCT;
	o = ct_format_json(&v, sl_now_from_ns(0));
	text = json_dumps(o, JSON_COMPACT);
	assert_string_equal(text,
		"{\"netns\":\"t1\",\"family\":\"ipv6\",\"proto\":\"tcp\",\"protonum\":6,"
		"\"state\":\"ESTABLISHED\",\"timeout\":431999,\"status\":[\"SEEN_REPLY\","
		"\"ASSURED\"],"
		"\"mark\":0,\"zone\":0,\"helper\":null,"
		"\"orig\":{\"src\":\"2001:db8::1\",\"dst\":\"2001:db8::2\",\"sport\":1000,"
		"\"dport\":80,\"packets\":0,\"bytes\":0},"
		"\"reply\":{\"src\":\"2001:db8::2\",\"dst\":\"2001:db8::1\",\"sport\":80,"
		"\"dport\":1000,\"packets\":0,\"bytes\":0}}");
	free(text);
	json_decref(o);
}

static const struct happening {
	enum event_type type;
	uint8_t family, proto, state;
	uint16_t a, b, ra, rb; /* sport and dport of both directions, host order */
	int32_t left_ms;
	uint16_t status;
	uint8_t changed;
	uint32_t mark;
	uint64_t packets[2], bytes[2];
	bool acct, timestamp;
	const char *line;
} happenings[] = {
	{EVENT_CT_NEW, V4(TCP), CT_TCP_SYN_SENT, 47504, 8080, 8080, 47504, 120000, 0, 0, 0,
		{1, 0}, {60, 0}, true, true,
		"    [NEW] tcp      6 120 SYN_SENT src=127.0.0.1 dst=127.0.0.1 sport=47504 "
		"dport=8080 [UNREPLIED] src=127.0.0.1 dst=127.0.0.1 sport=8080 dport=47504"},
	{EVENT_CT_UPDATE, V4(TCP), CT_TCP_ESTABLISHED, 47504, 8080, 8080, 47504, 432000000,
		CT_SEEN_REPLY | CT_ASSURED, CT_CHANGED_STATE | CT_CHANGED_STATUS, 0,
		{2, 1}, {112, 60}, true, true,
		" [UPDATE] tcp      6 432000 ESTABLISHED src=127.0.0.1 dst=127.0.0.1 sport=47504 "
		"dport=8080 src=127.0.0.1 dst=127.0.0.1 sport=8080 dport=47504 [ASSURED]"},
	/* What has not changed is not told, but for the mark. */
	{EVENT_CT_UPDATE, V4(TCP), CT_TCP_SYN_SENT, 47516, 8080, 8080, 47516, 120000, 0,
		CT_CHANGED_MARK, 7, {0}, {0}, false, false,
		" [UPDATE] tcp      6 120 src=127.0.0.1 dst=127.0.0.1 sport=47516 dport=8080 "
		"[UNREPLIED] src=127.0.0.1 dst=127.0.0.1 sport=8080 dport=47516 mark=7"},
	{EVENT_CT_UPDATE, V4(UDP), 0, 58227, 53, 53, 58227, 120000, CT_SEEN_REPLY | CT_ASSURED,
		CT_CHANGED_STATUS, 0, {0}, {0}, true, true,
		" [UPDATE] udp      17 120 src=127.0.0.1 dst=127.0.0.1 sport=58227 dport=53 "
		"src=127.0.0.1 dst=127.0.0.1 sport=53 dport=58227 [ASSURED]"},
	{EVENT_CT_DESTROY, V4(TCP), CT_TCP_TIME_WAIT, 47504, 8080, 8080, 47504, 117900,
		CT_SEEN_REPLY | CT_ASSURED, 0, 0, {6, 4}, {330, 236}, true, true,
		"[DESTROY] tcp      6 117 TIME_WAIT src=127.0.0.1 dst=127.0.0.1 sport=47504 "
		"dport=8080 packets=6 bytes=330 src=127.0.0.1 dst=127.0.0.1 sport=8080 "
		"dport=47504 packets=4 bytes=236 [ASSURED] delta-time=2"},
	/* Expired: no time is left to tell. */
	{EVENT_CT_DESTROY, V4(TCP), CT_TCP_TIME_WAIT, 47516, 8080, 8080, 47516, -3,
		CT_SEEN_REPLY | CT_ASSURED, 0, 7, {0}, {0}, false, false,
		"[DESTROY] tcp      6 TIME_WAIT src=127.0.0.1 dst=127.0.0.1 sport=47516 dport=8080 "
		"src=127.0.0.1 dst=127.0.0.1 sport=8080 dport=47516 [ASSURED] mark=7"},
	{EVENT_CT_DESTROY, V4(ICMP), 0, 1, 8 << 8, 1, 0, 29500, CT_SEEN_REPLY, 0, 0,
		{1, 1}, {28, 28}, true, true,
		"[DESTROY] icmp     1 29 src=127.0.0.1 dst=127.0.0.1 type=8 code=0 id=1 packets=1 "
		"bytes=28 src=127.0.0.1 dst=127.0.0.1 type=0 code=0 id=1 packets=1 bytes=28 "
		"delta-time=2"},
	{EVENT_CT_DESTROY, V6(UDP), 0, 48330, 54, 54, 48330, 0, 0, 0, 0, {0}, {0}, false, false,
		"[DESTROY] udp      17 src=::1 dst=::1 sport=48330 dport=54 [UNREPLIED] src=::1 "
		"dst=::1 sport=54 dport=48330"},
};

static void
make_event(struct event *ev, const struct happening *h)
{
	bool v6 = h->family == TUPLE_IPV6;
	const struct sample s = {h->family, h->proto, h->state, v6 ? "::1" : "127.0.0.1",
		v6 ? "::1" : "127.0.0.1", h->a, h->b, h->ra, h->rb, 0, 0, 0, 0, NULL};

	memset(ev, 0, sizeof(*ev));
	event_init(ev, h->type, sizeof(ev->ct));
	strcpy(ev->netns, "t1");
	ev->ns = 1002 * SL_NSEC_PER_SEC;
	ev->ct = (struct event_ct){.start_ns = 1000 * SL_NSEC_PER_SEC, .left_ms = h->left_ms,
		.mark = h->mark, .status = h->status, .state = h->state, .changed = h->changed,
		.packets = {h->packets[0], h->packets[1]}, .bytes = {h->bytes[0], h->bytes[1]},
		.timestamp = h->timestamp};
	if (h->acct)
		ev->ct.status |= CT_ACCT;
	make_tuple(&ev->ct.orig, &s, false);
	make_tuple(&ev->ct.reply, &s, true);
}

static void
test_event_lines(void **state)
{
	char expected[512], *line;
	struct event ev;
	struct ct_view v;
	size_t i, len;
	json_t *o;
	FILE *f;

	(void)state;
	for (i = 0; i < RTE_DIM(happenings); i++) {
		make_event(&ev, &happenings[i]);
		event_ct_view(&ev, &v);
		o = ct_format_event(&ev, &v, 0);
		f = open_memstream(&line, &len);
		render_event(o, f);
		fclose(f);
		json_decref(o);
		snprintf(expected, sizeof(expected), "netns=t1 %s\n", happenings[i].line);
		assert_string_equal(line, expected);
		free(line);
	}
}

static void
test_event_json(void **state)
{
	struct event ev;
	struct ct_view v;
	json_t *o;
	char *text;

	(void)state;
	make_event(&ev, &happenings[2]);
	event_ct_view(&ev, &v);
	o = ct_format_event(&ev, &v, 5 * SL_NSEC_PER_MSEC);
	text = json_dumps(o, JSON_COMPACT);
	assert_string_equal(text,
		"{\"event\":\"UPDATE\",\"time\":1002.005,\"netns\":\"t1\",\"family\":\"ipv4\","
		"\"proto\":\"tcp\",\"protonum\":6,\"state\":\"SYN_SENT\",\"timeout\":120,"
		"\"status\":[],\"mark\":7,\"zone\":0,\"helper\":null,"
		"\"orig\":{\"src\":\"127.0.0.1\",\"dst\":\"127.0.0.1\",\"sport\":47516,"
		"\"dport\":8080},\"reply\":{\"src\":\"127.0.0.1\",\"dst\":\"127.0.0.1\","
		"\"sport\":8080,\"dport\":47516},\"changed\":[\"MARK\"]}");
	free(text);
	json_decref(o);
}

/* Which samples, by their index, a filter selects. */
static void
test_filters(void **state)
{
	static const struct {
		const char *params;
		unsigned int selects; /* bits */
	} cases[] = {
		{"{}", 0x1ff},
		{"{\"family\":\"ipv6\"}", 0x006},
		{"{\"proto\":\"tcp\"}", 0x104},
		{"{\"proto\":\"89\"}", 0x040},
		{"{\"src\":\"198.51.100.0/24\"}", 0x1f9},
		{"{\"src\":\"198.51.100.11\"}", 0},
		{"{\"dst\":\"2001:db8::/32\"}", 0x006},
		{"{\"reply-src\":\"192.0.2.80\"}", 0x1f9},
		{"{\"reply-dst\":\"192.0.2.80\"}", 0},
		{"{\"dport\":53}", 0x038},
		{"{\"sport\":1000}", 0x004},
		{"{\"dport\":0}", 0},
		{"{\"dport\":7}", 0},
		{"{\"icmp-type\":8}", 0x080},
		{"{\"icmp-id\":77}", 0x082},
		{"{\"icmp-code\":1}", 0},
		{"{\"state\":\"established\"}", 0x004},
		{"{\"state\":\"COOKIE_WAIT\"}", 0x020},
		{"{\"status\":\"ASSURED\"}", 0x004},
		{"{\"status\":\"UNREPLIED\"}", 0x1fb},
		{"{\"status\":\"ASSURED,UNREPLIED\"}", 0},
		{"{\"mark\":5}", 0x100},
		{"{\"mark\":\"0x1/0x1\"}", 0x100},
		{"{\"mark\":\"0/0x2\"}", 0x1ff},
		{"{\"zone\":7}", 0x100},
		{"{\"proto\":\"tcp\",\"dport\":80,\"family\":\"ipv4\"}", 0x100},
	};
	struct ct_match m;
	struct ct_view v;
	struct sl_err err;
	json_t *params;
	unsigned int got;
	size_t i, k;

	(void)state;
	for (i = 0; i < RTE_DIM(cases); i++) {
		params = json_loads(cases[i].params, 0, NULL);
		assert_int_equal(ct_match_parse(&m, params, &err), 0);
		assert_int_equal(ct_match_any(&m), json_object_size(params) == 0);
		json_decref(params);
		for (k = 0, got = 0; k < RTE_DIM(samples); k++) {
			make_view(&v, &samples[k]);
			got |= (unsigned int)ct_match(&v, &m) << k;
		}
		if (got != cases[i].selects)
			fail_msg("%s selects 0x%x, not 0x%x", cases[i].params, got,
				cases[i].selects);
	}
}

/* What could never match is refused. */
static void
test_senseless_filters(void **state)
{
	static const char *const cases[] = {
		"{\"proto\":\"udp\",\"state\":\"ESTABLISHED\"}",
		"{\"proto\":\"tcp\",\"icmp-type\":8}",
		"{\"proto\":\"icmp\",\"dport\":8}",
		"{\"icmp-id\":8,\"sport\":8}",
		"{\"icmp-code\":1,\"state\":\"CLOSE\"}",
		"{\"src\":\"10.0.0.1\",\"family\":\"ipv6\"}",
		"{\"reply-src\":\"10.0.0.1\",\"reply-dst\":\"2001:db8::/32\"}",
		"{\"status\":\"SEEN_REPLY,UNREPLIED\"}",
		"{\"mark\":\"5/2\"}",
	};
	struct ct_match m;
	struct sl_err err;
	json_t *params;
	size_t i;

	(void)state;
	for (i = 0; i < RTE_DIM(cases); i++) {
		params = json_loads(cases[i], 0, NULL);
		if (ct_match_parse(&m, params, &err) != -EINVAL)
			fail_msg("%s is accepted", cases[i]);
		json_decref(params);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_zone_of_a_direction),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_event_lines),
		cmocka_unit_test(test_event_json),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_senseless_filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
