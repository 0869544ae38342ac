/* SPDX-License-Identifier: BSD-3-Clause */
/* A client, the proxy and a server: each segment as it leaves the proxy, with sound checksums. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_ip.h>
#include <rte_tcp.h>

#include "cookie.h"
#include "csum.h"
#include "frames.h"
#include "parse.h"
#include "synproxy.h"
#include "tcp_option.h"

#define CLIENT_SEQ 0xfffffff0u
#define SERVER_SEQ 77777777u

struct wire {
	bool ip6;
	struct frame frame;
	struct rte_mbuf m, made;
	uint8_t room[2048];
	struct pkt p;
};

struct segment {
	bool reply;
	uint8_t flags;
	uint32_t seq, ack;
	uint16_t win;
	const struct tcp_options *options; /* NULL: none */
	unsigned int data;
};

static const struct synproxy_promise promise = {.mss = 1460, .scale = 7, .sack = true,
	.timestamp = true};
static struct sl_hasher secret;
static struct sl_now now;

static int
setup(void **state)
{
	static struct wire w[2] = {{.ip6 = false}, {.ip6 = true}};

	*state = w;
	now = sl_now_from_ns(5000 * SL_NSEC_PER_SEC);
	return cookie_init(&secret, 3);
}

static void
swap(uint8_t *a, uint8_t *b, size_t n)
{
	uint8_t t[16];

	memcpy(t, a, n);
	memcpy(a, b, n);
	memcpy(b, t, n);
}

/* Makes the segment arrive: it is parsed in a buffer with room behind it. */
static struct pkt *
arrive(struct wire *w, const struct segment *s)
{
	struct frame *f = &w->frame;
	uint8_t options[TCP_OPTION_BYTES];
	unsigned int len = s->options != NULL ? tcp_options_write(options, s->options) : 0;
	struct rte_tcp_hdr *h;

	frame_start(f, NULL);
	if (w->ip6)
		frame_ip6(f);
	else
		frame_ip4(f, 0);
	frame_tcp(f, s->flags, len / 4);
	h = (void *)(f->b + f->l4);
	h->sent_seq = rte_cpu_to_be_32(s->seq);
	h->recv_ack = rte_cpu_to_be_32(s->ack);
	h->rx_win = rte_cpu_to_be_16(s->win);
	memcpy(h + 1, options, len);
	frame_bytes(f, s->data);
	frame_end(f);
	if (s->reply) {
		size_t n = w->ip6 ? 16 : 4, at = f->l3 + (w->ip6 ? 8 : 12);

		swap(f->b, f->b + 6, 6);
		swap(f->b + at, f->b + at + n, n);
		swap(f->b + f->l4, f->b + f->l4 + 2, 2);
	}
	frame_wrap(&w->m, f->b, f->len);
	w->m.buf_len = FRAME_MAX;
	assert_int_equal(parse_frame(&w->p, &w->m), SL_DROP_NONE);
	return &w->p;
}

static struct rte_mbuf *
empty(struct wire *w)
{
	frame_wrap(&w->made, w->room, 0);
	w->made.buf_len = sizeof(w->room);
	return &w->made;
}

/* What the receiver of a frame sees. */
static struct pkt
seen(struct rte_mbuf *m, struct tcp_options *o)
{
	struct pkt p;

	assert_int_equal(parse_frame(&p, m), SL_DROP_NONE);
	assert_true(p.flags & PKT_IP && !(p.flags & PKT_L4_BAD));
	p.flags &= (uint16_t)~PKT_CSUM_GOOD;
	assert_true(csum_l4_good(&p));
	assert_int_equal(p.l3_off + p.l3_len + p.l4_len, m->pkt_len);
	tcp_options_read(p.l4 + 20, p.l4_hdr_len - 20u, o);
	return p;
}

static uint32_t
seq_of(const struct pkt *p)
{
	return rte_be_to_cpu_32(((const struct rte_tcp_hdr *)p->l4)->sent_seq);
}

static uint32_t
ack_of(const struct pkt *p)
{
	return rte_be_to_cpu_32(((const struct rte_tcp_hdr *)p->l4)->recv_ack);
}

static uint16_t
window_of(const struct pkt *p)
{
	return rte_be_to_cpu_16(((const struct rte_tcp_hdr *)p->l4)->rx_win);
}

static uint16_t
scaled(uint32_t window, unsigned int scale)
{
	return (uint16_t)(window << (scale == TCP_SCALE_NONE ? 0 : scale));
}

/* What a client offers and a server answers, and what becomes of windows. */
struct talk {
	struct tcp_options offer, answer;
	uint16_t mss;        /* that the server is offered */
	uint16_t update;     /* the server's window of 60000 in the update for the client */
	uint16_t to_client;  /* 1000 of the server, later */
	uint16_t to_server;  /* 1000 of the client, later */
};

#define NONE TCP_SCALE_NONE

static const struct talk talks[] = {
	{{.mss = 1460, .scale = 3, .sack_ok = true, .timestamp = true, .tsval = 99},
		{.mss = 1460, .scale = 7, .sack_ok = true, .timestamp = true, .tsval = 5},
		1460, 60000 >> 7, 1000, 1000},
	{{.mss = 1400, .scale = 3, .timestamp = true, .tsval = 99},
		{.mss = 1460, .scale = 9, .timestamp = true, .tsval = 0xfffffffe},
		1380, 60000 >> 7, 4000, 1000},
	/* A server that neither scales nor stamps. */
	{{.mss = 1460, .scale = 3, .sack_ok = true, .timestamp = true, .tsval = 99},
		{.mss = 1460, .scale = NONE}, 1460, 60000 >> 7, 1000 >> 7, 8000},
	/* A client that scales but does not stamp: nothing of it can be kept. */
	{{.mss = 1460, .scale = 3, .sack_ok = true}, {.mss = 1460, .scale = NONE}, 1460, 60000,
		1000, 1000},
	{{.scale = NONE}, {.mss = 1460, .scale = NONE}, 0, 60000, 1000, 1000},
};

/* SYN, SYN/ACK with the cookie, ACK. Leaves the ACK arrived. */
static uint32_t
open_client(struct wire *w, const struct talk *t, struct synproxy *s)
{
	struct segment syn = {.flags = PKT_TCP_SYN, .seq = CLIENT_SEQ, .win = 60000,
		.options = &t->offer};
	bool stamps = t->offer.timestamp;
	struct tcp_options o, echo = {.scale = NONE, .timestamp = stamps, .tsval = 100};
	struct segment ack = {.flags = PKT_TCP_ACK, .seq = CLIENT_SEQ + 1, .win = 500,
		.options = &echo};
	struct pkt p;

	assert_true(synproxy_answer(empty(w), arrive(w, &syn), &promise, &secret, now));
	p = seen(&w->made, &o);
	assert_int_equal(p.tcp_flags, PKT_TCP_SYN | PKT_TCP_ACK);
	assert_int_equal(ack_of(&p), CLIENT_SEQ + 1);
	assert_int_equal(window_of(&p), 0);
	assert_int_equal(o.mss, w->ip6 ? promise.mss - 20 : promise.mss);
	assert_int_equal(o.timestamp, stamps);
	assert_int_equal(o.scale, stamps && t->offer.scale != NONE ? promise.scale : NONE);
	assert_int_equal(o.sack_ok, stamps && t->offer.sack_ok);
	if (stamps)
		assert_int_equal(o.tsecr, t->offer.tsval);
	ack.ack = seq_of(&p) + 1;
	echo.tsecr = o.tsval;
	assert_true(synproxy_prove(arrive(w, &ack), &promise, &secret, now, s));
	return seq_of(&p);
}

static void
open_server(struct wire *w, const struct talk *t, struct synproxy *s)
{
	struct tcp_options o, answer = t->answer;
	struct segment synack = {.reply = true, .flags = PKT_TCP_SYN | PKT_TCP_ACK,
		.seq = SERVER_SEQ, .ack = CLIENT_SEQ + 1, .win = 60000, .options = &answer};
	bool stamps = t->offer.timestamp;
	struct pkt p, *at;

	assert_true(synproxy_make_syn(&w->p, s));
	p = seen(&w->m, &o);
	assert_int_equal(p.tcp_flags, PKT_TCP_SYN);
	assert_int_equal(seq_of(&p), CLIENT_SEQ);
	assert_int_equal(o.timestamp, stamps);
	assert_int_equal(o.scale, stamps ? t->offer.scale : NONE);
	assert_int_equal(o.sack_ok, stamps && t->offer.sack_ok);
	assert_int_equal(window_of(&p), scaled(500, s->client_scale));
	assert_int_equal(ack_of(&p), s->cookie + 1);
	synproxy_clean_syn(&w->p);
	p = seen(&w->m, &o);
	assert_int_equal(ack_of(&p), 0);
	if (t->mss != 0)
		assert_int_equal(o.mss, t->mss);
	else
		assert_int_equal(o.mss, w->ip6 ? 1220 : 536);

	answer.tsecr = o.tsval;
	at = arrive(w, &synack);
	assert_true(synproxy_answers(at, s));
	synproxy_meet_server(s, at);
	assert_true(synproxy_answers(at, s));
	assert_true(synproxy_ack_server(empty(w), at, s));
	p = seen(&w->made, &o);
	assert_int_equal(p.tcp_flags, PKT_TCP_ACK);
	assert_int_equal(seq_of(&p), CLIENT_SEQ + 1);
	assert_int_equal(ack_of(&p), SERVER_SEQ + 1);
	assert_int_equal(window_of(&p),
		t->answer.scale != NONE ? 500 : scaled(500, s->client_scale));
	assert_int_equal(o.timestamp, answer.timestamp);
	if (o.timestamp)
		assert_int_equal(o.tsecr, answer.tsval);

	synproxy_make_update(at, s);
	p = seen(&w->m, &o);
	assert_int_equal(p.tcp_flags, PKT_TCP_ACK);
	assert_int_equal(ack_of(&p), CLIENT_SEQ + 1);
	assert_int_equal(seq_of(&p), s->cookie + 1);
	assert_int_equal(window_of(&p), t->update);
}

/* Data both ways, with SACK blocks at every offset that options can have. */
static void
exchange(struct wire *w, const struct talk *t, struct synproxy *s)
{
	struct tcp_options o, stamp = {.scale = NONE, .timestamp = t->answer.timestamp,
		.tsval = t->answer.tsval + 10, .tsecr = 200};
	struct segment data = {.reply = true, .flags = PKT_TCP_ACK | PKT_TCP_PSH,
		.seq = SERVER_SEQ + 1, .ack = CLIENT_SEQ + 1, .win = 1000, .options = &stamp,
		.data = 101};
	struct segment ack = {.flags = PKT_TCP_ACK, .seq = CLIENT_SEQ + 1,
		.ack = s->cookie + 102, .win = 1000, .options = &stamp, .data = 7};
	uint32_t given;
	struct pkt p;

	synproxy_to_client(arrive(w, &data), s);
	p = seen(&w->m, &o);
	assert_int_equal(seq_of(&p), s->cookie + 1);
	assert_int_equal(ack_of(&p), CLIENT_SEQ + 1);
	assert_int_equal(window_of(&p), t->to_client);
	given = o.tsval;
	if (t->answer.timestamp)
		assert_int_equal(given, s->answer_ts + 10);

	stamp.tsval = 300;
	stamp.tsecr = given;
	synproxy_to_server(arrive(w, &ack), s);
	p = seen(&w->m, &o);
	assert_int_equal(seq_of(&p), CLIENT_SEQ + 1);
	assert_int_equal(ack_of(&p), SERVER_SEQ + 102);
	assert_int_equal(window_of(&p), t->to_server);
	if (t->answer.timestamp) {
		assert_int_equal(o.tsval, 300);
		assert_int_equal(o.tsecr, t->answer.tsval + 10);
	}
}

static void
test_conversations(void **state)
{
	struct wire *w = *state;
	struct synproxy s;
	size_t i, family;
	uint32_t cookie;

	for (family = 0; family < 2; family++) {
		for (i = 0; i < RTE_DIM(talks); i++) {
			cookie = open_client(&w[family], &talks[i], &s);
			assert_int_equal(cookie, s.cookie);
			open_server(&w[family], &talks[i], &s);
			exchange(&w[family], &talks[i], &s);
		}
	}
}

static void
sum_again(struct wire *w)
{
	struct rte_tcp_hdr *h = (void *)w->p.l4;

	h->cksum = 0;
	h->cksum = rte_ipv4_udptcp_cksum((void *)w->p.l3, h);
}

/* SACK edges lie at odd and even offsets, after any number of paddings. */
static void
test_sack_blocks(void **state)
{
	struct synproxy s = {.open = true, .seq_delta = 0xdeadbeef, .client_scale = NONE,
		.server_scale = NONE};
	struct wire *w = *state;
	struct tcp_options o, filler = {.mss = 1, .scale = 1, .timestamp = true};
	struct segment ack = {.flags = PKT_TCP_ACK, .seq = 1, .ack = 1, .options = &filler};
	unsigned int nops, i;
	uint8_t *at;
	rte_be32_t edge;

	for (nops = 0; nops < 2; nops++) {
		at = arrive(w, &ack)->l4 + 20;
		memset(at, 1, 20);
		at += nops;
		at[0] = 5;
		at[1] = 18;
		for (i = 0; i < 4; i++) {
			edge = rte_cpu_to_be_32(1000 * i + s.seq_delta);
			memcpy(at + 2 + 4 * i, &edge, sizeof(edge));
		}
		sum_again(w);
		synproxy_to_server(&w->p, &s);
		seen(&w->m, &o);
		assert_int_equal(o.n_sack, 2);
		assert_int_equal(o.at_sack, 2 + nops);
		for (i = 0; i < 4; i++) {
			memcpy(&edge, at + 2 + 4 * i, sizeof(edge));
			assert_int_equal(rte_be_to_cpu_32(edge), 1000 * i);
		}
	}
}

static void
test_rst_before_the_answer(void **state)
{
	struct segment rst = {.reply = true, .flags = PKT_TCP_RST | PKT_TCP_ACK,
		.ack = CLIENT_SEQ + 1};
	struct wire *w = *state;
	struct tcp_options o;
	struct synproxy s;
	struct pkt p;

	open_client(w, &talks[0], &s);
	synproxy_to_client(arrive(w, &rst), &s);
	p = seen(&w->m, &o);
	assert_int_equal(seq_of(&p), s.cookie + 1);
	assert_int_equal(ack_of(&p), CLIENT_SEQ + 1);
}

static void
test_no_cookie_no_proof(void **state)
{
	struct segment ack = {.flags = PKT_TCP_ACK, .seq = CLIENT_SEQ + 1, .ack = 12345};
	struct wire *w = *state;
	struct synproxy s;

	assert_false(synproxy_prove(arrive(w, &ack), &promise, &secret, now, &s));
}

/* By the octet before its first a client asks whether the window is still closed. */
static void
test_window_probe_proves(void **state)
{
	struct segment probe = {.flags = PKT_TCP_ACK, .seq = CLIENT_SEQ};
	struct wire *w = *state;
	struct synproxy s, by_probe;

	probe.ack = open_client(w, &talks[0], &s) + 1;
	assert_true(synproxy_prove(arrive(w, &probe), &promise, &secret, now, &by_probe));
	assert_int_equal(by_probe.client_seq, CLIENT_SEQ);
	assert_int_equal(by_probe.cookie, s.cookie);
	/* data there were data of before the connection */
	probe.data = 1;
	assert_false(synproxy_prove(arrive(w, &probe), &promise, &secret, now, &by_probe));
	probe.data = 0;
	probe.seq--;
	assert_false(synproxy_prove(arrive(w, &probe), &promise, &secret, now, &by_probe));
}

/* What is of the client while the server has not answered. */
static void
test_of_client(void **state)
{
	static const struct {
		uint8_t flags;
		uint32_t ahead, ack;
		bool is;
	} cases[] = {
		{PKT_TCP_ACK, 1, 1, true},
		{PKT_TCP_ACK, 0, 1, true},
		{PKT_TCP_ACK | PKT_TCP_FIN, 65535, 1, true},
		{PKT_TCP_ACK, 65536, 1, false},
		{PKT_TCP_ACK, UINT32_MAX, 1, false},
		{PKT_TCP_ACK, 1, 2, false},
		{PKT_TCP_RST, 1, 99, true},
		{PKT_TCP_SYN, 0, 0, true},
		{PKT_TCP_SYN, 1, 0, false},
		{PKT_TCP_SYN | PKT_TCP_ACK, 0, 1, false},
	};
	struct wire *w = *state;
	struct synproxy s;
	size_t i;

	open_client(w, &talks[0], &s);
	for (i = 0; i < RTE_DIM(cases); i++) {
		struct segment seg = {.flags = cases[i].flags,
			.seq = CLIENT_SEQ + cases[i].ahead,
			.ack = s.cookie + cases[i].ack};

		assert_int_equal(synproxy_of_client(arrive(w, &seg), &s), cases[i].is);
	}
}

static void
test_rst_of_the_client(void **state)
{
	struct segment rst = {.flags = PKT_TCP_RST | PKT_TCP_ACK, .seq = CLIENT_SEQ + 9,
		.win = 4, .options = &talks[0].offer};
	struct wire *w = *state;
	struct tcp_options o;
	struct synproxy s;
	struct pkt p;

	open_client(w, &talks[0], &s);
	assert_true(synproxy_make_rst(arrive(w, &rst), &s));
	p = seen(&w->m, &o);
	assert_int_equal(p.tcp_flags, PKT_TCP_RST);
	assert_int_equal(seq_of(&p), CLIENT_SEQ + 1);
	assert_int_equal(ack_of(&p), 0);
	assert_int_equal(p.l4_len, 20);
}

/* Of a SYN of the client's neither the window nor anything else is translated. */
static void
test_syn_on_an_open_connection(void **state)
{
	struct synproxy s = {.open = true, .seq_delta = 5, .client_scale = 7, .server_scale = NONE};
	struct segment syn = {.flags = PKT_TCP_SYN, .seq = 7, .ack = 8, .win = 9};
	struct wire *w = *state;
	struct tcp_options o;
	struct pkt p;

	synproxy_to_server(arrive(w, &syn), &s);
	p = seen(&w->m, &o);
	assert_int_equal(seq_of(&p), 7);
	assert_int_equal(ack_of(&p), 8);
	assert_int_equal(window_of(&p), 9);
}

static void
test_answer_of_another_connection(void **state)
{
	struct segment synack = {.reply = true, .flags = PKT_TCP_SYN | PKT_TCP_ACK,
		.seq = SERVER_SEQ, .ack = CLIENT_SEQ + 2};
	struct wire *w = *state;
	struct synproxy s;

	open_client(w, &talks[0], &s);
	assert_false(synproxy_answers(arrive(w, &synack), &s));
	synack.ack = CLIENT_SEQ + 1;
	assert_true(synproxy_answers(arrive(w, &synack), &s));
	synproxy_meet_server(&s, &w->p);
	synack.seq++;
	assert_false(synproxy_answers(arrive(w, &synack), &s));
}

/* Data that came with the proof goes, and a full segment still becomes a SYN. */
static void
test_syn_of_a_full_segment(void **state)
{
	struct wire *w = *state;
	struct segment full = {.flags = PKT_TCP_ACK, .seq = CLIENT_SEQ + 1, .data = 1400};
	struct tcp_options o;
	struct synproxy s;
	struct pkt p;

	full.ack = open_client(w, &talks[0], &s) + 1;
	arrive(w, &full);
	assert_true(synproxy_make_syn(&w->p, &s));
	p = seen(&w->m, &o);
	assert_int_equal(p.l4_len, p.l4_hdr_len);
	assert_int_equal(p.ip_bytes, w->p.ip_bytes);
	w->p.train = (void *)w;
	assert_false(synproxy_make_syn(&w->p, &s));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conversations),
		cmocka_unit_test(test_sack_blocks),
		cmocka_unit_test(test_rst_before_the_answer),
		cmocka_unit_test(test_no_cookie_no_proof),
		cmocka_unit_test(test_window_probe_proves),
		cmocka_unit_test(test_of_client),
		cmocka_unit_test(test_rst_of_the_client),
		cmocka_unit_test(test_syn_on_an_open_connection),
		cmocka_unit_test(test_answer_of_another_connection),
		cmocka_unit_test(test_syn_of_a_full_segment),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
