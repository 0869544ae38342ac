/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a frame, parsed and made a frame of the other IP version. The frame ends where its
 * buffer ends, so that address sanitizer sees a read too far. What comes out is parsed again: it
 * must be as sound as what went in, its sums included, and have the tuple that it was to have.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "csum.h"
#include "frames.h"
#include "fuzz.h"
#include "parse.h"
#include "siit.h"

#define LEN_MAX 4096
#define ROOM    RTE_PKTMBUF_HEADROOM

static void
require(bool right, const char *wrong)
{
	if (!right) {
		fprintf(stderr, "fuzz_siit: %s\n", wrong);
		abort();
	}
}

/* The tuple of the other version; of a query with the type and code that answer to its own. */
static struct tuple
other(const struct tuple *t)
{
	static const uint8_t src4[] = {198, 18, 0, 1}, dst4[] = {203, 0, 113, 80};
	static const uint8_t src6[16] = {0x20, 0x01, 0x0d, 0xb8, 9}, dst6[16] = {0xfd, [15] = 1};
	bool to4 = t->family == TUPLE_IPV6;
	struct tuple to = {.family = to4 ? TUPLE_IPV4 : TUPLE_IPV6, .proto = t->proto,
		.sport = RTE_BE16(61000), .dport = RTE_BE16(8080)};
	uint8_t type = (uint8_t)(rte_be_to_cpu_16(t->dport) >> 8);

	memcpy(to.src.b, to4 ? src4 : src6, to4 ? 4 : 16);
	memcpy(to.dst.b, to4 ? dst4 : dst6, to4 ? 4 : 16);
	if (t->proto != IPPROTO_ICMP && t->proto != IPPROTO_ICMPV6)
		return to;
	to.proto = to4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	if (to4)
		type = type == 128 ? 8 : 0;
	else
		type = type == 8 ? 128 : 129;
	to.dport = rte_cpu_to_be_16((uint16_t)(type << 8 | (rte_be_to_cpu_16(t->dport) & 0xff)));
	return to;
}

static bool
all_zero(const uint8_t *d, uint32_t n)
{
	while (n > 0 && d[n - 1] == 0)
		n--;
	return n == 0;
}

static void
translate_packet(struct pkt *p, struct rte_mbuf *m)
{
	struct tuple to = other(&p->tuple);
	bool good = csum_l4_good(p);
	bool zeros = p->proto == IPPROTO_ICMP && all_zero(p->l4, p->l4_len);
	uint32_t length = siit_length(p);
	struct pkt out;
	enum sl_drop r;

	if (length > UINT16_MAX)
		return;
	siit_transport(p, &to);
	require(siit_header(m, p->l3_off, &to, 1) != 0, "no room");
	r = parse_frame(&out, m);
	require(r == SL_DROP_NONE && out.flags & PKT_IP, "a frame that is unsound");
	require(!(out.flags & PKT_L4_BAD), "an unsound transport header");
	require(tuple_equal(&out.tuple, &to), "another tuple");
	require(out.ip_bytes == length, "another length");
	/* Of nothing but zeros zero is the wrong sum, and as right as another in all arithmetic. */
	require(csum_l4_good(&out) == (good || p->proto == IPPROTO_SCTP) || zeros, "another sum");
}

static void
translate_error(const struct pkt *p)
{
	static uint8_t room[2176];
	struct tuple inside = other(&p->tuple);
	struct siit_error e = {.to = inside, .inner = inside, .mtu_in = 1500, .mtu_out = 1400};
	struct rte_mbuf m;
	struct pkt out;
	enum sl_drop r;

	e.to.proto = e.to.family == TUPLE_IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	frame_wrap(&m, room, 0);
	m.buf_len = sizeof(room);
	if (siit_error_write(&m, p, &e) != SL_DROP_NONE)
		return;
	r = parse_frame(&out, &m);
	require(r == SL_DROP_NONE && out.flags & PKT_ICMP_ERROR, "an error that is none");
	require(tuple_equal(&out.tuple, &inside), "another packet inside");
	require(csum_l4_good(&out) && csum_icmp_inner_good(&out), "a wrong sum of an error");
	require(out.ip_bytes <= (e.to.family == TUPLE_IPV4 ? ICMP_ERROR_MAX : ICMP6_ERROR_MAX),
		"an error that is too long");
}

/* Where the packet inside is of a protocol that connections of NAT64 have. */
static bool
inside_known(const struct pkt *p)
{
	switch (p->tuple.proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
		return true;
	case IPPROTO_ICMP:
		return p->tuple.family == TUPLE_IPV4 &&
		       (p->tuple.dport & RTE_BE16(0xf7ff)) == 0;
	case IPPROTO_ICMPV6:
		return p->tuple.family == TUPLE_IPV6 &&
		       (p->tuple.dport & RTE_BE16(0xfeff)) == RTE_BE16(0x8000);
	default:
		return false;
	}
}

static void
translate_fragment(const struct pkt *p, struct rte_mbuf *m)
{
	struct tuple to = other(&p->tuple);
	struct pkt out;

	if (p->l4_len > UINT16_MAX - 48 || siit_header(m, p->l3_off, &to, 1) == 0)
		return;
	require(parse_frame(&out, m) == PARSE_FRAGMENT || p->frag_off == 0, "no fragment any more");
}

static void
one(const uint8_t *data, uint32_t len, uint64_t ol_flags)
{
	uint8_t *exact = malloc(ROOM + len);
	struct icmp_error refused;
	struct rte_mbuf m;
	struct pkt p;
	enum sl_drop r;

	require(exact != NULL, "out of memory");
	memcpy(exact + ROOM, data, len);
	frame_wrap(&m, exact, len);
	m.data_off = ROOM;
	m.buf_len = (uint16_t)(ROOM + len);
	m.ol_flags = ol_flags;
	r = parse_frame(&p, &m);
	if (r == PARSE_FRAGMENT)
		translate_fragment(&p, &m);
	else if (r == SL_DROP_NONE && (p.flags & (PKT_IP | PKT_ND | PKT_L4_BAD)) == PKT_IP &&
		 siit_check(&p, &refused) == SL_DROP_NONE) {
		m.ol_flags = 0;
		if (!(p.flags & PKT_ICMP_ERROR))
			translate_packet(&p, &m);
		else if (inside_known(&p))
			translate_error(&p);
	}
	free(exact);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len > LEN_MAX)
		return 0;
	one(data, (uint32_t)len, 0);
	one(data, (uint32_t)len, RTE_MBUF_F_RX_IP_CKSUM_GOOD);
	return 0;
}
