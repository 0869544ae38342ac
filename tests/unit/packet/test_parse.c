/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frames.h"
#include "parse.h"

/* The frame in a buffer of exactly its length, so that a sanitizer sees any byte too far. */
struct parsed {
	struct rte_mbuf m;
	struct pkt p;
	enum sl_drop r;
	uint8_t *data;
};

static void
parse_exact(struct parsed *s, const uint8_t *frame, uint32_t len, uint64_t ol_flags)
{
	const char *broken;

	s->data = malloc(len > 0 ? len : 1);
	assert_non_null(s->data);
	memcpy(s->data, frame, len);
	frame_wrap(&s->m, s->data, len);
	s->m.ol_flags = ol_flags;
	memset(&s->p, 0xee, sizeof(s->p));
	s->r = parse_frame(&s->p, &s->m);
	broken = frame_broken(&s->p, s->r, len);
	if (broken != NULL)
		fail_msg("%s", broken);
	assert_memory_equal(s->data, frame, len);
}

static void
parsed_free(struct parsed *s)
{
	free(s->data);
}

static void
assert_case(const struct frame_case *c, const struct pkt *p)
{
	if (p->flags != c->flags || p->reason != 0 || p->n_tags != c->n_tags ||
		p->l3_len != c->l3_len || p->l4_len != c->l4_len ||
		p->l4_hdr_len != c->l4_hdr_len || p->proto != c->proto ||
		p->tuple.proto != c->tuple_proto || p->tuple.family != c->family ||
		rte_be_to_cpu_16(p->tuple.sport) != c->sport ||
		rte_be_to_cpu_16(p->tuple.dport) != c->dport)
		fail_msg("%s: flags %#x reason %s tags %u l3 %u l4 %u header %u proto %u/%u %u>%u",
			c->name, p->flags, sl_drop_name(p->reason), p->n_tags, p->l3_len, p->l4_len,
			p->l4_hdr_len, p->proto, p->tuple.proto, rte_be_to_cpu_16(p->tuple.sport),
			rte_be_to_cpu_16(p->tuple.dport));
	assert_int_equal(p->ip_bytes, c->l3_len + c->l4_len);
}

/* The addresses as they are in the header that the tuple is of; and nothing behind an IPv4 one. */
static void
assert_addresses(const struct pkt *p)
{
	const uint8_t *ip = p->flags & PKT_ICMP_ERROR ? p->l4 + p->inner_off : p->l3;
	static const uint8_t zeros[12];

	if (p->tuple.family == TUPLE_IPV6) {
		assert_memory_equal(p->tuple.src.b, ip + 8, 16);
		assert_memory_equal(p->tuple.dst.b, ip + 24, 16);
	} else if (p->tuple.family == TUPLE_IPV4) {
		assert_memory_equal(p->tuple.src.b, ip + 12, 4);
		assert_memory_equal(p->tuple.dst.b, ip + 16, 4);
		assert_memory_equal(p->tuple.src.b + 4, zeros, sizeof(zeros));
		assert_memory_equal(p->tuple.dst.b + 4, zeros, sizeof(zeros));
	}
}

static void
test_sound_frames(void **state)
{
	struct frame f;
	struct parsed s;
	unsigned int i;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		frame_cases[i].build(&f);
		parse_exact(&s, f.b, f.len, 0);
		assert_int_equal(s.r, SL_DROP_NONE);
		assert_case(&frame_cases[i], &s.p);
		assert_addresses(&s.p);
		assert_int_equal(s.p.hash, 0);
		assert_null(s.p.ns);
		assert_null(s.p.ct);
		parsed_free(&s);
	}
}

static void
test_tags(void **state)
{
	static const struct {
		uint32_t tag[4];
		enum sl_drop r;
		uint16_t tpid, outer, inner;
		uint8_t n;
	} cases[] = {
		{{0}, SL_DROP_NONE, 0, 0, 0, 0},
		{{0x81000064}, SL_DROP_NONE, 0x8100, 0x0064, 0, 1},
		{{0x8100b064}, SL_DROP_NONE, 0x8100, 0xb064, 0, 1}, /* PCP 5, DEI */
		{{0x8100a000}, SL_DROP_NONE, 0x8100, 0xa000, 0, 1}, /* priority tag */
		{{0x88a8000a, 0x81000064}, SL_DROP_NONE, 0x88a8, 10, 100, 2},
		{{0x88a8000a, 0x8100f0c8}, SL_DROP_NONE, 0x88a8, 10, 0xf0c8, 2},
		{{0x9100000a, 0x81000064}, SL_DROP_NONE, 0x9100, 10, 100, 2},
		{{0x88a8000a, 0x88a80064}, SL_DROP_NONE, 0x88a8, 10, 100, 2},
		{{0x88a8000a, 0x81000064, 0x81000001}, SL_DROP_VLAN_DEPTH, 0x88a8, 10, 100, 2},
	};
	struct frame f;
	struct parsed s;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		frame_start(&f, cases[i].tag);
		frame_ip4(&f, 0);
		frame_tcp(&f, PKT_TCP_SYN, 0);
		frame_end(&f);
		parse_exact(&s, f.b, f.len, 0);
		assert_int_equal(s.r, cases[i].r);
		assert_int_equal(s.p.tpid, cases[i].tpid);
		assert_int_equal(s.p.outer_tci, cases[i].outer);
		assert_int_equal(s.p.inner_tci, cases[i].inner);
		assert_int_equal(s.p.n_tags, cases[i].n);
		if (s.r == SL_DROP_NONE) {
			assert_int_equal(s.p.ethertype, 0x0800);
			assert_int_equal(s.p.l3_off, 14 + 4 * cases[i].n);
		}
		parsed_free(&s);
	}
}

/* Where a patch is counted from. */
enum at { FRAME, L3, L4, IN3, IN4 };

struct patch {
	enum at at;
	uint16_t off;
	uint8_t width; /* 0 ends the list */
	uint32_t value;
};

#define KEEP_SUM 1  /* the header checksum is not made right again */
#define TO_LEN   2  /* the IP length follows the trimming */

struct lie {
	const char *name, *frame;
	struct patch patch[4];
	int trim; /* bytes cut off the end; negative: padding added */
	unsigned int flags;
	enum sl_drop r, bad; /* result, and reason with PKT_L4_BAD */
};

static uint32_t
patch_at(const struct frame *f, const struct patch *p)
{
	uint32_t in3 = f->l4 + 8;

	switch (p->at) {
	case L3:
		return f->l3 + p->off;
	case L4:
		return f->l4 + p->off;
	case IN3:
		return in3 + p->off;
	case IN4:
		return in3 + (f->family == TUPLE_IPV4 ? (f->b[in3] & 15) * 4u : 440) + p->off;
	default:
		return p->off;
	}
}

static void
apply(struct frame *f, const struct lie *lie)
{
	unsigned int i, k;

	if (lie->trim < 0)
		memset(f->b + f->len, 0xaa, (size_t)-lie->trim);
	f->len = (uint32_t)((int)f->len - lie->trim);
	if (lie->flags & TO_LEN && f->family == TUPLE_IPV4)
		frame_put16(f, f->l3 + 2, (uint16_t)(f->len - f->l3));
	else if (lie->flags & TO_LEN)
		frame_put16(f, f->l3 + 4, (uint16_t)(f->len - f->l3 - 40));
	for (i = 0; i < RTE_DIM(lie->patch) && lie->patch[i].width != 0; i++) {
		const struct patch *p = &lie->patch[i];

		for (k = 0; k < p->width; k++)
			f->b[patch_at(f, p) + k] = (uint8_t)(p->value >> 8 * (p->width - 1 - k));
	}
	if (f->family == TUPLE_IPV4 && !(lie->flags & KEEP_SUM) && (f->b[f->l3] & 15) >= 5)
		frame_ip4_sum(f, f->l3);
}

static uint8_t
lie_reason(const struct lie *l)
{
	return l->r == PARSE_FRAGMENT ? 0 : (uint8_t)(l->r | l->bad);
}

static void
run_lies(const struct lie *lies, unsigned int n)
{
	struct frame f;
	struct parsed s;
	unsigned int i;

	for (i = 0; i < n; i++) {
		frame_case(lies[i].frame)->build(&f);
		apply(&f, &lies[i]);
		parse_exact(&s, f.b, f.len, 0);
		if (s.r != lies[i].r || s.p.reason != lie_reason(&lies[i]) ||
			!!(s.p.flags & PKT_L4_BAD) != (lies[i].bad != SL_DROP_NONE))
			fail_msg("%s: %s, reason %s, flags %#x", lies[i].name, sl_drop_name(s.r),
				sl_drop_name(s.p.reason), s.p.flags);
		parsed_free(&s);
	}
}

static const struct lie ip_lies[] = {
	{"sum wrong", "tcp4", {{L3, 10, 2, 0xbeef}}, 0, KEEP_SUM, SL_DROP_IP_CHECKSUM, 0},
	{"sum wrong in the options", "tcp4_options", {{L3, 59, 1, 0xff}}, 0, KEEP_SUM,
		SL_DROP_IP_CHECKSUM, 0},
	{"IHL 4", "tcp4", {{L3, 0, 1, 0x44}}, 0, 0, SL_DROP_IP_HEADER, 0},
	{"IHL 0", "tcp4", {{L3, 0, 1, 0x40}}, 0, 0, SL_DROP_IP_HEADER, 0},
	{"IHL beyond the frame", "tcp4", {{L3, 0, 1, 0x4f}}, 0, 0, SL_DROP_IP_HEADER, 0},
	{"IHL beyond the total", "tcp4", {{L3, 0, 1, 0x4a}, {L3, 2, 2, 39}}, 0, 0,
		SL_DROP_IP_LENGTH, 0},
	{"version 5", "tcp4", {{L3, 0, 1, 0x55}}, 0, 0, SL_DROP_IP_VERSION, 0},
	{"version 6 in IPv4", "tcp4", {{L3, 0, 1, 0x65}}, 0, 0, SL_DROP_IP_VERSION, 0},
	{"version 4 in IPv6", "tcp6", {{L3, 0, 1, 0x45}}, 0, 0, SL_DROP_IP_VERSION, 0},
	{"padding of 20", "tcp4", {{0}}, -20, 0, 0, 0},
	{"padding of 300", "tcp4", {{0}}, -300, 0, 0, 0},
	{"total cuts the transport", "tcp4", {{L3, 2, 2, 39}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"total one more", "tcp4", {{L3, 2, 2, 41}}, 0, 0, SL_DROP_IP_LENGTH, 0},
	{"total 65535", "tcp4", {{L3, 2, 2, 65535}}, 0, 0, SL_DROP_IP_LENGTH, 0},
	{"total 0", "tcp4", {{L3, 2, 2, 0}}, 0, 0, SL_DROP_IP_LENGTH, 0},
	{"total 19", "tcp4", {{L3, 2, 2, 19}}, 0, 0, SL_DROP_IP_LENGTH, 0},
	{"total 20", "tcp4", {{L3, 2, 2, 20}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"total 59 of a header of 60", "tcp4_options", {{L3, 2, 2, 59}}, 0, 0,
		SL_DROP_IP_LENGTH, 0},
	{"more fragments", "tcp4", {{L3, 6, 2, 0x2000}}, 0, 0, PARSE_FRAGMENT, 0},
	{"last fragment", "tcp4", {{L3, 6, 2, 0x0001}}, 0, 0, PARSE_FRAGMENT, 0},
	{"DF and the reserved bit", "tcp4", {{L3, 6, 2, 0xc000}}, 0, 0, 0, 0},
	{"payload 0", "tcp6", {{L3, 4, 2, 0}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"payload 0, by address", "empty6", {{0}}, -46, 0, 0, 0},
	{"payload 0, unknown protocol", "tcp6", {{L3, 4, 3, 253}}, 0, 0, 0, 0},
	{"payload one more", "tcp6", {{L3, 4, 2, 40}}, 0, 0, SL_DROP_IP_LENGTH, 0},
	{"payload 65535", "tcp6", {{L3, 4, 2, 65535}}, 0, 0, SL_DROP_IP_LENGTH, 0},
	{"padding behind IPv6", "tcp6", {{0}}, -9, 0, 0, 0},
	{"jumbogram", "mld6", {{L3, 4, 2, 0}}, 0, 0, SL_DROP_IP_LENGTH, 0},
};

/* Offsets in udp6_exts: hop-by-hop 40, destination 56, routing 64, fragment 88, AH 96, dst 120. */
static const struct lie ext_lies[] = {
	{"hop-by-hop again", "udp6_exts", {{L3, 56, 1, 0}}, 0, 0, SL_DROP_IP6_EXT, 0},
	{"hop-by-hop not first", "udp6_exts", {{L3, 6, 1, 60}, {L3, 40, 1, 0}}, 0, 0,
		SL_DROP_IP6_EXT, 0},
	{"length beyond the packet", "udp6_exts", {{L3, 65, 1, 255}}, 0, 0, SL_DROP_IP6_EXT, 0},
	{"last one cut", "udp6_exts", {{L3, 121, 1, 42}}, 0, 0, SL_DROP_IP6_EXT, 0},
	{"all of the rest", "udp6_exts", {{L3, 121, 1, 41}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"chain ends in a header", "mld6", {{L3, 40, 1, 60}}, 28, TO_LEN, SL_DROP_IP6_EXT, 0},
	{"7 bytes of a header", "mld6", {{L3, 40, 1, 60}}, 21, TO_LEN, SL_DROP_IP6_EXT, 0},
	{"AH shorter than its fields", "udp6_exts", {{L3, 97, 1, 0}}, 0, 0, SL_DROP_IP6_EXT, 0},
	{"first fragment", "udp6_exts", {{L3, 90, 2, 1}}, 0, 0, PARSE_FRAGMENT, 0},
	{"later fragment", "udp6_exts", {{L3, 90, 2, 8}}, 0, 0, PARSE_FRAGMENT, 0},
	{"first fragment, chain cut", "udp6_exts", {{L3, 90, 2, 1}, {L3, 97, 1, 255}}, 0, 0,
		SL_DROP_IP6_EXT, 0},
	{"reserved bits of an atomic one", "udp6_exts", {{L3, 90, 2, 6}}, 0, 0, 0, 0},
	{"fragment header twice", "udp6_exts", {{L3, 96, 2, 44 << 8}}, 0, 0, SL_DROP_IP6_EXT, 0},
	{"mobility is a transport", "udp6_exts", {{L3, 120, 1, 135}}, 0, 0, 0, 0},
	{"no next header amid", "udp6_exts", {{L3, 56, 1, 59}}, 0, 0, 0, SL_DROP_INV_NO_L4},
	{"no next header", "empty6", {{L3, 6, 1, 59}}, 0, 0, 0, SL_DROP_INV_NO_L4},
};

static const struct lie l4_lies[] = {
	{"data offset 0", "tcp4", {{L4, 12, 1, 0x00}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"data offset 4", "tcp4", {{L4, 12, 1, 0x40}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"data offset 5", "tcp4", {{L4, 12, 1, 0x50}}, 0, 0, 0, 0},
	{"data offset 6", "tcp4", {{L4, 12, 1, 0x60}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"data offset 15", "tcp4", {{L4, 12, 1, 0xf0}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"data offset into padding", "tcp4", {{L4, 12, 1, 0xf0}}, -300, 0, 0,
		SL_DROP_INV_L4_TRUNCATED},
	{"TCP of 19", "tcp4", {{0}}, 1, TO_LEN, 0, SL_DROP_INV_L4_TRUNCATED},
	{"TCP of 0", "tcp4", {{0}}, 20, TO_LEN, 0, SL_DROP_INV_L4_TRUNCATED},
	{"UDP length 7", "udp4_qinq", {{L4, 4, 2, 7}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"UDP length 0", "udp4_qinq", {{L4, 4, 2, 0}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"UDP length 8", "udp4_qinq", {{L4, 4, 2, 8}}, 0, 0, 0, 0},
	{"UDP length less", "udp4_qinq", {{L4, 4, 2, 40}}, 0, 0, 0, 0},
	{"UDP length more", "udp4_qinq", {{L4, 4, 2, 42}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"UDP length into padding", "udp4_qinq", {{L4, 4, 2, 42}}, -60, 0, 0,
		SL_DROP_INV_L4_TRUNCATED},
	{"UDP of 7", "udp4_qinq", {{0}}, 34, TO_LEN, 0, SL_DROP_INV_L4_TRUNCATED},
	{"coverage 0", "udplite4", {{L4, 4, 2, 0}}, 0, 0, 0, 0},
	{"coverage 7", "udplite4", {{L4, 4, 2, 7}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"coverage 8", "udplite4", {{L4, 4, 2, 8}}, 0, 0, 0, 0},
	{"coverage all", "udplite4", {{L4, 4, 2, 39}}, 0, 0, 0, 0},
	{"coverage more", "udplite4", {{L4, 4, 2, 40}}, 0, 0, 0, SL_DROP_INV_L4_TRUNCATED},
	{"UDP-Lite of 7", "udplite4", {{0}}, 32, TO_LEN, 0, SL_DROP_INV_L4_TRUNCATED},
	{"SCTP of 11", "sctp4", {{0}}, 46, TO_LEN, 0, SL_DROP_INV_L4_TRUNCATED},
	{"SCTP of 12", "sctp4", {{0}}, 45, TO_LEN, 0, 0},
	{"GRE of 3", "gre4", {{0}}, 21, TO_LEN, 0, SL_DROP_INV_GRE},
	{"GRE version 2", "gre4", {{L4, 0, 2, 2}}, 0, 0, 0, 0},
	{"GRE version 1 of IP", "pptp4", {{L4, 2, 2, 0x0800}}, 0, 0, 0, SL_DROP_INV_GRE},
	{"PPTP of 7", "pptp4", {{0}}, 21, TO_LEN, 0, SL_DROP_INV_GRE},
	{"PPTP of 8", "pptp4", {{0}}, 20, TO_LEN, 0, 0},
	{"ICMP of 3", "echo4", {{0}}, 21, TO_LEN, 0, SL_DROP_INV_L4_TRUNCATED},
	{"ICMP of 7", "echo4", {{0}}, 17, TO_LEN, 0, SL_DROP_INV_L4_TRUNCATED},
	{"ICMP of 8", "echo4", {{0}}, 16, TO_LEN, 0, 0},
	{"router advertisement", "echo4", {{L4, 0, 1, 9}}, 0, 0, 0, SL_DROP_INV_ICMP_TYPE},
	{"ICMP type 255", "echo4", {{L4, 0, 1, 255}}, 0, 0, 0, SL_DROP_INV_ICMP_TYPE},
	{"ICMPv6 of 7", "echo6", {{0}}, 17, TO_LEN, 0, SL_DROP_INV_L4_TRUNCATED},
	{"ICMPv6 type 138", "echo6", {{L4, 0, 1, 138}}, 0, 0, 0, SL_DROP_INV_ICMP_TYPE},
	{"ICMPv6 type 200", "echo6", {{L4, 0, 1, 200}}, 0, 0, 0, SL_DROP_INV_ICMP_TYPE},
	{"ICMP over IPv6", "echo6", {{L3, 6, 1, IPPROTO_ICMP}}, 21, TO_LEN, 0,
		SL_DROP_INV_ICMP_TYPE},
	{"ICMPv6 over IPv4", "echo4", {{L3, 9, 1, IPPROTO_ICMPV6}}, 21, TO_LEN, 0,
		SL_DROP_INV_ICMP_TYPE},
	{"DCCP by address", "esp4", {{L3, 9, 1, IPPROTO_DCCP}}, 17, TO_LEN, 0, 0},
	{"protocol 255", "esp4", {{L3, 9, 1, 255}}, 0, 0, 0, 0},
};

#define INNER SL_DROP_ICMP_INNER

/* The transport header of error6's inner packet is 440 bytes behind its IPv6 header. */
static const struct lie icmp_lies[] = {
	{"nothing inside", "error4_tcp", {{0}}, 28, TO_LEN, INNER, 0},
	{"19 bytes inside", "error4_tcp", {{0}}, 9, TO_LEN, INNER, 0},
	{"no ports inside", "error4_tcp", {{0}}, 8, TO_LEN, INNER, 0},
	{"7 bytes of TCP inside", "error4_tcp", {{0}}, 1, TO_LEN, INNER, 0},
	{"IHL 8 and 8 bytes", "error4_options", {{0}}, 0, 0, 0, 0},
	{"IHL 8 and 7 bytes", "error4_options", {{0}}, 1, TO_LEN, INNER, 0},
	{"IHL 4", "error4_options", {{IN3, 0, 1, 0x44}}, 0, 0, INNER, 0},
	{"IHL 15, packet ends before", "error4_options", {{IN3, 0, 1, 0x4f}}, 0, 0, INNER, 0},
	{"inner version 6", "error4_tcp", {{IN3, 0, 1, 0x65}}, 0, 0, INNER, 0},
	{"inner total 65535", "error4_tcp", {{IN3, 2, 2, 65535}}, 0, 0, 0, 0},
	{"inner total 0", "error4_tcp", {{IN3, 2, 2, 0}}, 0, 0, INNER, 0},
	{"inner total 19", "error4_tcp", {{IN3, 2, 2, 19}}, 0, 0, INNER, 0},
	{"inner total without ports", "error4_tcp", {{IN3, 2, 2, 27}}, 0, 0, INNER, 0},
	{"inner sum is for the knob", "error4_tcp", {{IN3, 10, 2, 0xbeef}}, 0, 0, 0, 0},
	{"inner fragment, first", "error4_tcp", {{IN3, 6, 2, 0x2000}}, 0, 0, 0, 0},
	{"inner fragment, later", "error4_tcp", {{IN3, 6, 2, 0x2001}}, 0, 0, INNER, 0},
	{"error about an error", "error4_echo", {{IN4, 0, 1, 3}}, 0, 0, 0,
		SL_DROP_INV_ICMP_UNRELATED},
	{"error about an advertisement", "error4_echo", {{IN4, 0, 1, 9}}, 0, 0, 0,
		SL_DROP_INV_ICMP_UNRELATED},
	{"7 bytes of echo inside", "error4_echo", {{0}}, 1, TO_LEN, INNER, 0},
	{"inner GRE of another kind", "error4_pptp", {{IN4, 2, 2, 0x0800}}, 0, 0, INNER, 0},
	{"inner PPTP without a call id", "error4_pptp", {{0}}, 1, TO_LEN, INNER, 0},
	{"source quench", "error4_tcp", {{L4, 0, 1, 4}}, 0, 0, 0, 0},
	{"redirect", "error4_tcp", {{L4, 0, 1, 5}}, 0, 0, 0, 0},
	{"parameter problem", "error4_tcp", {{L4, 0, 1, 12}}, 0, 0, 0, 0},
	{"RFC 4884 length of 255 words", "error4_extended", {{L4, 5, 1, 255}}, 0, 0, 0, 0},
	{"v6: unknown error type", "error6", {{L4, 0, 1, 127}}, 0, 0, 0, 0},
	{"v6: type 0 is an error", "error6", {{L4, 0, 1, 0}}, 0, 0, 0, 0},
	{"v6: nothing inside", "error6", {{0}}, 457, TO_LEN, INNER, 0},
	{"v6: 39 bytes inside", "error6", {{0}}, 418, TO_LEN, INNER, 0},
	{"v6: inner version 4", "error6", {{IN3, 0, 1, 0x45}}, 0, 0, INNER, 0},
	{"v6: 8 bytes of UDP", "error6", {{0}}, 9, TO_LEN, 0, 0},
	{"v6: 7 bytes of UDP", "error6", {{0}}, 10, TO_LEN, INNER, 0},
	{"v6: inner payload larger", "error6", {{IN3, 4, 2, 65535}}, 0, 0, 0, 0},
	{"v6: inner payload 0", "error6", {{IN3, 4, 2, 0}}, 0, 0, INNER, 0},
	{"v6: chain cut inside", "error6", {{0}}, 200, TO_LEN, INNER, 0},
	{"v6: inner first fragment", "error6", {{IN3, 90, 2, 1}}, 0, 0, 0, 0},
	{"v6: inner later fragment", "error6", {{IN3, 90, 2, 8}}, 0, 0, INNER, 0},
};

static void
test_ip_lies(void **state)
{
	(void)state;
	run_lies(ip_lies, RTE_DIM(ip_lies));
}

static void
test_extension_header_lies(void **state)
{
	(void)state;
	run_lies(ext_lies, RTE_DIM(ext_lies));
}

static void
test_transport_lies(void **state)
{
	(void)state;
	run_lies(l4_lies, RTE_DIM(l4_lies));
}

static void
test_icmp_error_lies(void **state)
{
	(void)state;
	run_lies(icmp_lies, RTE_DIM(icmp_lies));
}

static void
test_extension_headers_are_bounded(void **state)
{
	struct frame f;
	struct parsed s;
	unsigned int n, i;
	(void)state;

	for (n = PARSE_IP6_EXT_MAX - 1; n <= PARSE_IP6_EXT_MAX + 1; n++) {
		frame_start(&f, NULL);
		frame_ip6(&f);
		for (i = 0; i < n; i++)
			frame_ext(&f, IPPROTO_DSTOPTS, 1);
		frame_udp(&f);
		frame_end(&f);
		parse_exact(&s, f.b, f.len, 0);
		assert_int_equal(s.r, n > PARSE_IP6_EXT_MAX ? SL_DROP_IP6_EXT : SL_DROP_NONE);
		parsed_free(&s);
	}
}

/* All 256 sets of flags: those of RFC 9293's segments, with or without PSH, ECE and CWR. */
static void
test_tcp_flags(void **state)
{
	static const uint8_t valid[] = {PKT_TCP_SYN, PKT_TCP_SYN | PKT_TCP_URG,
		PKT_TCP_SYN | PKT_TCP_ACK, PKT_TCP_RST, PKT_TCP_RST | PKT_TCP_ACK,
		PKT_TCP_FIN | PKT_TCP_ACK, PKT_TCP_FIN | PKT_TCP_ACK | PKT_TCP_URG, PKT_TCP_ACK,
		PKT_TCP_ACK | PKT_TCP_URG};
	struct frame f;
	struct parsed s;
	unsigned int flags, i;
	(void)state;

	for (flags = 0; flags < 256; flags++) {
		bool good = false;

		for (i = 0; i < RTE_DIM(valid); i++)
			good |= (flags & ~(PKT_TCP_PSH | PKT_TCP_ECE | PKT_TCP_CWR)) == valid[i];
		frame_start(&f, NULL);
		frame_ip4(&f, 0);
		frame_tcp(&f, (uint8_t)flags, 0);
		frame_end(&f);
		parse_exact(&s, f.b, f.len, 0);
		assert_int_equal(s.r, SL_DROP_NONE);
		assert_int_equal(s.p.tcp_flags, flags);
		assert_int_equal(s.p.reason, good ? SL_DROP_NONE : SL_DROP_INV_TCP_FLAGS);
		assert_int_equal(!!(s.p.flags & PKT_L4_BAD), !good);
		parsed_free(&s);
	}
}

/* Options are for whoever walks them; the parser vouches only for where they end. */
static void
test_tcp_options_are_left_alone(void **state)
{
	static const uint8_t options[][8] = {{2, 0}, {2, 1}, {2, 3}, {2, 255},
		{1, 1, 1, 1, 1, 1, 1, 2},
		{3, 2, 0}, {5, 11}, {8, 10, 8, 10}};
	struct frame f;
	struct parsed s;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(options); i++) {
		frame_start(&f, NULL);
		frame_ip4(&f, 0);
		frame_tcp(&f, PKT_TCP_SYN, 2);
		memcpy(f.b + f.l4 + 20, options[i], sizeof(options[i]));
		frame_end(&f);
		parse_exact(&s, f.b, f.len, 0);
		assert_int_equal(s.r, SL_DROP_NONE);
		assert_int_equal(s.p.flags, PKT_IP);
		assert_int_equal(s.p.l4_hdr_len, 28);
		parsed_free(&s);
	}
}

/* What the port says of sums: verified, wrong, unknown, or not there but known to be right. */
static void
test_port_checksum_flags(void **state)
{
	static const struct {
		uint64_t ol_flags;
		bool break_sum;
		enum sl_drop r;
		uint16_t flags;
	} cases[] = {
		{0, true, SL_DROP_IP_CHECKSUM, 0},
		{RTE_MBUF_F_RX_IP_CKSUM_GOOD, true, SL_DROP_NONE, PKT_IP},
		{RTE_MBUF_F_RX_IP_CKSUM_NONE, true, SL_DROP_NONE, PKT_IP},
		{RTE_MBUF_F_RX_IP_CKSUM_BAD, false, SL_DROP_IP_CHECKSUM, 0},
		{RTE_MBUF_F_RX_L4_CKSUM_GOOD, false, SL_DROP_NONE, PKT_IP | PKT_CSUM_GOOD},
		{RTE_MBUF_F_RX_L4_CKSUM_NONE, false, SL_DROP_NONE, PKT_IP | PKT_CSUM_GOOD},
		{RTE_MBUF_F_RX_L4_CKSUM_BAD, false, SL_DROP_NONE, PKT_IP | PKT_CSUM_BAD},
	};
	struct frame f;
	struct parsed s;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		frame_case("tcp4")->build(&f);
		f.b[f.l3 + 8] ^= cases[i].break_sum;
		parse_exact(&s, f.b, f.len, cases[i].ol_flags);
		assert_int_equal(s.r, cases[i].r);
		assert_int_equal(s.p.flags, cases[i].flags);
		parsed_free(&s);
	}
}

/* A frame cut anywhere is dropped: no sound packet is left of it. */
static void
test_cut_at_every_length(void **state)
{
	struct frame f;
	struct parsed s;
	unsigned int i;
	uint32_t len;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		frame_cases[i].build(&f);
		for (len = 0; len < f.len; len++) {
			parse_exact(&s, f.b, len, 0);
			if (s.r == SL_DROP_NONE && (frame_cases[i].family != 0 || len < 14))
				fail_msg("%s cut at %u passes", frame_cases[i].name, len);
			parsed_free(&s);
		}
	}
}

/* The same with the IP length made to fit, so that what is behind the IP header is cut. */
static void
test_cut_at_every_ip_length(void **state)
{
	struct frame f;
	struct parsed s;
	unsigned int i;
	uint32_t len, whole;
	(void)state;

	for (i = 0; i < frame_cases_n; i++) {
		if (frame_cases[i].family == 0)
			continue;
		frame_cases[i].build(&f);
		whole = f.len;
		len = f.l3 + (f.family == TUPLE_IPV4 ? (f.b[f.l3] & 15) * 4u : 40);
		for (; len < whole; len++) {
			f.len = len;
			if (f.family == TUPLE_IPV4) {
				frame_put16(&f, f.l3 + 2, (uint16_t)(len - f.l3));
				frame_ip4_sum(&f, f.l3);
			} else {
				frame_put16(&f, f.l3 + 4, (uint16_t)(len - f.l3 - 40));
			}
			parse_exact(&s, f.b, len, 0);
			/* Within the transport header nothing may pass as sound. */
			if (len < f.l4 + frame_cases[i].l4_hdr_len)
				assert_true(s.r != SL_DROP_NONE || s.p.flags & PKT_L4_BAD);
			parsed_free(&s);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound_frames),
		cmocka_unit_test(test_tags),
		cmocka_unit_test(test_ip_lies),
		cmocka_unit_test(test_extension_header_lies),
		cmocka_unit_test(test_transport_lies),
		cmocka_unit_test(test_icmp_error_lies),
		cmocka_unit_test(test_extension_headers_are_bounded),
		cmocka_unit_test(test_tcp_flags),
		cmocka_unit_test(test_tcp_options_are_left_alone),
		cmocka_unit_test(test_port_checksum_flags),
		cmocka_unit_test(test_cut_at_every_length),
		cmocka_unit_test(test_cut_at_every_ip_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
