/* SPDX-License-Identifier: BSD-3-Clause */
#include "synproxy.h"

#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>

#include "answer.h"
#include "cookie.h"
#include "csum.h"
#include "icmp_error.h"
#include "tcp_option.h"

#define WINDOW_MAX  65535u
#define IP6_MORE    20u /* bytes that its header is longer than IPv4's */
#define TCP_SEQ_AT  4u
#define TCP_SUM_AT  16u
#define ICMP_SUM_AT 2u

static inline struct rte_tcp_hdr *
header(const struct pkt *p)
{
	return (struct rte_tcp_hdr *)p->l4;
}

static void
read_options(const struct pkt *p, struct tcp_options *o)
{
	tcp_options_read(p->l4 + sizeof(struct rte_tcp_hdr),
		p->l4_hdr_len - (unsigned int)sizeof(struct rte_tcp_hdr), o);
}

static uint16_t
checksum(const struct pkt *p, const void *ip, const void *tcp)
{
	return p->tuple.family == TUPLE_IPV4 ? rte_ipv4_udptcp_cksum(ip, tcp)
					     : rte_ipv6_udptcp_cksum(ip, tcp);
}

/* ---- segments of the gateway ---- */

/* Writes a segment without data, from the packet's destination to its source. */
static bool
write_segment(struct rte_mbuf *m, const struct pkt *p, struct rte_tcp_hdr h,
	const struct tcp_options *o)
{
	struct tuple_addr src = answer_dst(p);
	uint8_t options[TCP_OPTION_BYTES], *ip, *tcp;
	uint16_t len = (uint16_t)tcp_options_write(options, o), l4_len = sizeof(h) + len;

	ip = answer_begin(m, p, (uint16_t)(answer_ip_len(p) + l4_len));
	if (ip == NULL)
		return false;
	tcp = ip + answer_ip_header(ip, p, &src, IPPROTO_TCP, l4_len);
	h.src_port = header(p)->dst_port;
	h.dst_port = header(p)->src_port;
	h.data_off = (uint8_t)(l4_len / 4 << 4);
	memcpy(tcp, &h, sizeof(h));
	memcpy(tcp + sizeof(h), options, len);
	h.cksum = checksum(p, ip, tcp);
	memcpy(tcp, &h, sizeof(h));
	return true;
}

/* What of the client's offer is taken up: without timestamps the rest of it could not be kept. */
static struct tcp_options
promised(const struct synproxy_promise *k, uint16_t mss, const struct tcp_options *offer,
	struct sl_now now)
{
	struct cookie_offer kept = {.scale = offer->scale, .sack = offer->sack_ok && k->sack};
	struct tcp_options o = {.mss = mss, .scale = TCP_SCALE_NONE};

	if (!k->timestamp || !offer->timestamp)
		return o;
	o.timestamp = true;
	o.tsval = cookie_timestamp(&kept, now);
	o.tsecr = offer->tsval;
	o.sack_ok = kept.sack;
	if (offer->scale != TCP_SCALE_NONE)
		o.scale = k->scale;
	return o;
}

static uint16_t
default_mss(const struct pkt *p)
{
	return p->tuple.family == TUPLE_IPV4 ? TCP_MSS_DEFAULT4 : TCP_MSS_DEFAULT6;
}

/* sluice.synproxy_mss is IPv4's. */
static uint16_t
promised_mss(const struct pkt *p, const struct synproxy_promise *k)
{
	return p->tuple.family == TUPLE_IPV4 ? k->mss : (uint16_t)(k->mss - IP6_MORE);
}

bool
synproxy_answer(struct rte_mbuf *m, const struct pkt *syn, const struct synproxy_promise *k,
	const struct sl_hasher *secret, struct sl_now now)
{
	uint32_t seq = rte_be_to_cpu_32(header(syn)->sent_seq);
	struct rte_tcp_hdr h = {.tcp_flags = PKT_TCP_SYN | PKT_TCP_ACK};
	struct tcp_options offer, o;

	read_options(syn, &offer);
	o = promised(k, promised_mss(syn, k), &offer, now);
	if (offer.mss == 0)
		offer.mss = default_mss(syn);
	h.sent_seq = rte_cpu_to_be_32(cookie_make(secret, &syn->tuple, seq, offer.mss, now));
	h.recv_ack = rte_cpu_to_be_32(seq + 1);
	/* Window 0: the client is not to send before the server can take it. */
	return write_segment(m, syn, h, &o);
}

/*
 * The number that the client's SYN had: the one before its first octet, which is the one that a
 * client asks with, when its window stays closed, whether that is still so.
 */
static bool
find_cookie(const struct pkt *ack, const struct sl_hasher *secret, struct sl_now now,
	struct synproxy *s, struct cookie_offer *offer)
{
	uint32_t seq = rte_be_to_cpu_32(header(ack)->sent_seq);
	bool empty = ack->l4_len == ack->l4_hdr_len;

	s->cookie = rte_be_to_cpu_32(header(ack)->recv_ack) - 1;
	s->client_seq = seq - 1;
	if (cookie_check(secret, &ack->tuple, s->client_seq, s->cookie, now, offer))
		return true;
	s->client_seq = seq;
	return empty && cookie_check(secret, &ack->tuple, seq, s->cookie, now, offer);
}

bool
synproxy_prove(const struct pkt *ack, const struct synproxy_promise *k,
	const struct sl_hasher *secret, struct sl_now now, struct synproxy *s)
{
	struct synproxy found = {.promised_scale = k->scale, .server_scale = TCP_SCALE_NONE};
	struct cookie_offer offer;
	struct tcp_options o;

	if (!find_cookie(ack, secret, now, &found, &offer))
		return false;
	read_options(ack, &o);
	if (o.timestamp && k->timestamp)
		cookie_read_timestamp(o.tsecr, &offer);
	found.answer_ts = o.tsecr;
	found.mss = offer.mss;
	found.client_scale = offer.scale;
	found.sack = offer.sack && k->sack;
	found.timestamp = offer.timestamp;
	*s = found;
	return true;
}

/* A window in the units of one side as one in those of the other. Never more than there is. */
static uint16_t
rescaled(uint32_t window, uint8_t from, uint8_t to)
{
	uint32_t w = window << (from == TCP_SCALE_NONE ? 0 : from);

	return (uint16_t)RTE_MIN(w >> (to == TCP_SCALE_NONE ? 0 : to), WINDOW_MAX);
}

/* The server takes the client's windows in units of client_scale if it scales at all. */
static uint16_t
window_to_server(const struct synproxy *s, uint16_t window)
{
	return s->server_scale == TCP_SCALE_NONE ? rescaled(window, s->client_scale, 0) : window;
}

bool
synproxy_ack_server(struct rte_mbuf *m, const struct pkt *synack, const struct synproxy *s)
{
	const struct rte_tcp_hdr *h = header(synack);
	struct tcp_options of, o = {.scale = TCP_SCALE_NONE};
	struct rte_tcp_hdr ack = {
		.sent_seq = h->recv_ack,
		.recv_ack = rte_cpu_to_be_32(rte_be_to_cpu_32(h->sent_seq) + 1),
		.tcp_flags = PKT_TCP_ACK,
		.rx_win = rte_cpu_to_be_16(window_to_server(s, s->window)),
	};

	read_options(synack, &of);
	if (of.timestamp) {
		o.timestamp = true;
		o.tsval = of.tsecr;
		o.tsecr = of.tsval;
	}
	return write_segment(m, synack, ack, &o);
}

/* ---- segments that become others ---- */

/* Gives the packet a TCP header with other options, and no data. Cuts the frame behind it. */
static bool
reshape(struct pkt *p, const struct tcp_options *o)
{
	uint8_t options[TCP_OPTION_BYTES];
	uint16_t len = (uint16_t)tcp_options_write(options, o);
	uint16_t l4_len = (uint16_t)(sizeof(struct rte_tcp_hdr) + len);
	uint16_t frame = (uint16_t)(p->l3_off + p->l3_len + l4_len);
	struct rte_mbuf *m = p->mbuf;

	if (p->train != NULL || frame > (uint32_t)m->data_len + rte_pktmbuf_tailroom(m))
		return false;
	rte_pktmbuf_free(m->next);
	m->next = NULL;
	m->nb_segs = 1;
	m->data_len = frame;
	m->pkt_len = frame;
	memcpy(p->l4 + sizeof(struct rte_tcp_hdr), options, len);
	header(p)->data_off = (uint8_t)(l4_len / 4 << 4);
	p->l4_len = p->l4_hdr_len = l4_len;
	p->ip_bytes = (uint32_t)p->l3_len + l4_len;
	return true;
}

/* Lengths and checksums after such a change. */
static void
finish(struct pkt *p)
{
	struct rte_tcp_hdr *h = header(p);
	uint16_t len = (uint16_t)(p->l3_len + p->l4_len);

	p->tcp_flags = h->tcp_flags;
	h->cksum = 0;
	if (p->tuple.family == TUPLE_IPV4) {
		struct rte_ipv4_hdr *ih = (struct rte_ipv4_hdr *)p->l3;

		ih->total_length = rte_cpu_to_be_16(len);
		ih->hdr_checksum = 0;
		ih->hdr_checksum = rte_ipv4_cksum(ih);
		h->cksum = rte_ipv4_udptcp_cksum(ih, h);
	} else {
		struct rte_ipv6_hdr *ih = (struct rte_ipv6_hdr *)p->l3;
		struct rte_ipv6_hdr plain = *ih;

		ih->payload_len = rte_cpu_to_be_16((uint16_t)(len - sizeof(*ih)));
		/* The sum knows no extension headers. */
		plain.payload_len = rte_cpu_to_be_16(p->l4_len);
		plain.proto = IPPROTO_TCP;
		h->cksum = rte_ipv6_udptcp_cksum(&plain, h);
	}
	p->flags |= PKT_CSUM_GOOD;
}

bool
synproxy_make_syn(struct pkt *p, struct synproxy *s)
{
	struct tcp_options now, o = {.mss = s->mss, .scale = s->client_scale,
		.sack_ok = s->sack, .timestamp = s->timestamp};
	struct rte_tcp_hdr *h = header(p);

	read_options(p, &now);
	o.tsval = now.tsval;
	if (!reshape(p, &o))
		return false;
	/* The window of a SYN is never scaled (RFC 7323, 2.2); nor is that of one repeated. */
	if (!(h->tcp_flags & PKT_TCP_SYN))
		s->window = rte_be_to_cpu_16(h->rx_win);
	h->rx_win = rte_cpu_to_be_16(rescaled(s->window, s->client_scale, 0));
	h->sent_seq = rte_cpu_to_be_32(s->client_seq);
	h->tcp_flags = PKT_TCP_SYN;
	h->tcp_urp = 0;
	finish(p);
	return true;
}

bool
synproxy_of_client(const struct pkt *p, const struct synproxy *s)
{
	const struct rte_tcp_hdr *h = header(p);
	uint32_t ahead = rte_be_to_cpu_32(h->sent_seq) - s->client_seq;

	if (h->tcp_flags & PKT_TCP_SYN)
		return ahead == 0 && !(h->tcp_flags & PKT_TCP_ACK);
	/* Before the server has answered it has no more than its first window to send into. */
	if (ahead > WINDOW_MAX)
		return false;
	return !(h->tcp_flags & PKT_TCP_ACK) ||
	       rte_be_to_cpu_32(h->recv_ack) == s->cookie + 1;
}

bool
synproxy_make_rst(struct pkt *p, const struct synproxy *s)
{
	const struct tcp_options none = {.scale = TCP_SCALE_NONE};
	struct rte_tcp_hdr *h = header(p);

	if (!reshape(p, &none))
		return false;
	h->sent_seq = rte_cpu_to_be_32(s->client_seq + 1);
	h->recv_ack = 0;
	h->tcp_flags = PKT_TCP_RST;
	h->tcp_urp = 0;
	finish(p);
	return true;
}

/* ---- the server's answer ---- */

bool
synproxy_answers(const struct pkt *synack, const struct synproxy *s)
{
	const struct rte_tcp_hdr *h = header(synack);

	if (rte_be_to_cpu_32(h->recv_ack) != s->client_seq + 1 || synack->train != NULL)
		return false;
	return !s->open || rte_be_to_cpu_32(h->sent_seq) + s->seq_delta == s->cookie;
}

void
synproxy_meet_server(struct synproxy *s, const struct pkt *synack)
{
	struct tcp_options o;

	read_options(synack, &o);
	s->seq_delta = s->cookie - rte_be_to_cpu_32(header(synack)->sent_seq);
	s->server_scale = o.scale;
	if (o.timestamp)
		s->ts_delta = s->answer_ts - o.tsval;
	s->open = true;
}

void
synproxy_renew(struct synproxy *s)
{
	s->client_scale = s->promised_scale = s->server_scale = 0;
}

static uint8_t
scale_to_client(const struct synproxy *s)
{
	return s->client_scale == TCP_SCALE_NONE ? TCP_SCALE_NONE : s->promised_scale;
}

void
synproxy_make_update(struct pkt *synack, const struct synproxy *s)
{
	struct tcp_options of, o = {.scale = TCP_SCALE_NONE};
	struct rte_tcp_hdr *h = header(synack);
	/* The window of a SYN/ACK is never scaled (RFC 7323, 2.2). */
	uint16_t window = rescaled(rte_be_to_cpu_16(h->rx_win), 0, scale_to_client(s));

	read_options(synack, &of);
	if (s->timestamp && of.timestamp) {
		o.timestamp = true;
		o.tsval = of.tsval + s->ts_delta;
		o.tsecr = of.tsecr;
	}
	/* It has fewer options than it came with: there is room. */
	reshape(synack, &o);
	h->sent_seq = rte_cpu_to_be_32(rte_be_to_cpu_32(h->sent_seq) + 1 + s->seq_delta);
	h->tcp_flags = PKT_TCP_ACK;
	h->rx_win = rte_cpu_to_be_16(window);
	finish(synack);
}

/* ---- translation ---- */

/* Sum of the 16-bit words that `len` bytes at offset `at` of the header lie in. */
static uint32_t
sum_around(const uint8_t *tcp, unsigned int at, unsigned int len)
{
	unsigned int i = at & ~1u, end = at + len;
	uint32_t sum = 0;
	uint16_t word;

	for (; i < end; i += sizeof(word)) {
		memcpy(&word, tcp + i, sizeof(word));
		sum += word;
	}
	return sum;
}

/* Replaces bytes of the header, with its checksum (RFC 1624, equation 3). */
static void
replace(struct pkt *p, unsigned int at, const void *with, unsigned int len)
{
	struct rte_tcp_hdr *h = header(p);
	uint32_t before = sum_around(p->l4, at, len), sum;

	memcpy(p->l4 + at, with, len);
	sum = (uint16_t)~h->cksum + sum_around(p->l4, at, len);
	/* Of a sum of words the complement, in as many. */
	before = (before & 0xffff) + (before >> 16);
	before = (before & 0xffff) + (before >> 16);
	sum += (uint16_t)~before;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	h->cksum = (uint16_t)~sum;
}

static void
add32(struct pkt *p, unsigned int at, uint32_t delta)
{
	rte_be32_t v;

	memcpy(&v, p->l4 + at, sizeof(v));
	v = rte_cpu_to_be_32(rte_be_to_cpu_32(v) + delta);
	replace(p, at, &v, sizeof(v));
}

static void
set_window(struct pkt *p, uint16_t window)
{
	rte_be16_t v = rte_cpu_to_be_16(window);

	if (header(p)->rx_win != v)
		replace(p, offsetof(struct rte_tcp_hdr, rx_win), &v, sizeof(v));
}

void
synproxy_clean_syn(struct pkt *p)
{
	const rte_be32_t none = 0;

	replace(p, offsetof(struct rte_tcp_hdr, recv_ack), &none, sizeof(none));
}

void
synproxy_to_server(struct pkt *p, const struct synproxy *s)
{
	const struct rte_tcp_hdr *h = header(p);
	unsigned int options = sizeof(*h), edge;
	struct tcp_options o;

	/* A SYN acknowledges nothing, and its window is as it stands. */
	if (!s->open || (h->tcp_flags & PKT_TCP_SYN))
		return;
	read_options(p, &o);
	if (h->tcp_flags & PKT_TCP_ACK)
		add32(p, offsetof(struct rte_tcp_hdr, recv_ack), 0u - s->seq_delta);
	for (edge = 0; edge < 2u * o.n_sack; edge++)
		add32(p, options + o.at_sack + edge * (unsigned int)sizeof(uint32_t),
			0u - s->seq_delta);
	if (o.timestamp && (h->tcp_flags & PKT_TCP_ACK))
		add32(p, options + o.at_timestamp + (unsigned int)sizeof(uint32_t),
			0u - s->ts_delta);
	set_window(p, window_to_server(s, rte_be_to_cpu_16(h->rx_win)));
}

void
synproxy_to_client(struct pkt *p, const struct synproxy *s)
{
	const struct rte_tcp_hdr *h = header(p);
	struct tcp_options o;
	uint32_t seq = rte_be_to_cpu_32(h->sent_seq);

	if (!s->open) {
		if (h->tcp_flags & PKT_TCP_RST)
			add32(p, offsetof(struct rte_tcp_hdr, sent_seq), s->cookie + 1 - seq);
		return;
	}
	add32(p, offsetof(struct rte_tcp_hdr, sent_seq), s->seq_delta);
	read_options(p, &o);
	if (o.timestamp)
		add32(p, sizeof(*h) + o.at_timestamp, s->ts_delta);
	/* The window of a SYN/ACK is never scaled (RFC 7323, 2.2). */
	if (h->tcp_flags & PKT_TCP_SYN)
		return;
	set_window(p, rescaled(rte_be_to_cpu_16(h->rx_win), s->server_scale, scale_to_client(s)));
}

void
synproxy_error_to_server(struct pkt *p, const struct synproxy *s)
{
	uint8_t *tcp = p->l4 + p->inner_l4_off;
	unsigned int whole, len = icmp_error_inner(p, &whole);
	uint64_t changed;
	rte_be32_t was, is;
	uint16_t sum;

	if (!s->open || len < TCP_SEQ_AT + sizeof(was))
		return;
	memcpy(&was, tcp + TCP_SEQ_AT, sizeof(was));
	is = rte_cpu_to_be_32(rte_be_to_cpu_32(was) - s->seq_delta);
	memcpy(tcp + TCP_SEQ_AT, &is, sizeof(is));
	changed = csum_diff32(was, is);
	/* With the sum of the packet inside all of it adds up to what it did. */
	if (len >= TCP_SUM_AT + sizeof(sum)) {
		uint16_t old;

		memcpy(&old, tcp + TCP_SUM_AT, sizeof(old));
		sum = csum_adjust(old, changed);
		memcpy(tcp + TCP_SUM_AT, &sum, sizeof(sum));
		changed += csum_diff16(old, sum);
	}
	memcpy(&sum, p->l4 + ICMP_SUM_AT, sizeof(sum));
	sum = csum_adjust(sum, changed);
	memcpy(p->l4 + ICMP_SUM_AT, &sum, sizeof(sum));
}
