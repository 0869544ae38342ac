/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"

#define TYPE_CODE(type, code) ((type) << 8 | (code))
#define SYN PKT_TCP_SYN
#define ACK PKT_TCP_ACK

static void
tcp4(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip4(f, 0);
	frame_tcp(f, ACK, 0);
	frame_end(f);
}

static void
tcp4_vlan(struct frame *f)
{
	frame_start(f, (const uint32_t[]){0x8100u << 16 | 0xb064, 0});
	frame_ip4(f, 0);
	frame_tcp(f, SYN, 5);
	frame_end(f);
}

static void
udp4_qinq(struct frame *f)
{
	frame_start(f, (const uint32_t[]){0x88a8u << 16 | 10, 0x8100u << 16 | 100, 0});
	frame_ip4(f, 0);
	frame_udp(f);
	frame_bytes(f, 33);
	frame_end(f);
}

static void
tcp4_options(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip4(f, 10);
	frame_tcp(f, ACK | PKT_TCP_PSH, 10);
	frame_bytes(f, 300);
	frame_end(f);
}

static void
udplite4(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip4(f, 0);
	frame_udplite(f, 12);
	frame_bytes(f, 31);
	frame_end(f);
}

static void
sctp4(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip4(f, 0);
	frame_sctp(f);
	frame_bytes(f, 45);
	frame_end(f);
}

static void
gre4(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip4(f, 0);
	frame_gre(f, 0, 0x0800, 0);
	frame_bytes(f, 20);
	frame_end(f);
}

static void
pptp4(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip4(f, 0);
	frame_gre(f, 0x3001, 0x880b, FRAME_CALL);
	frame_bytes(f, 20);
	frame_end(f);
}

static void
esp4(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip4(f, 0);
	frame_proto(f, IPPROTO_ESP);
	frame_bytes(f, 20);
	frame_end(f);
}

static void
echo4(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip4(f, 0);
	frame_icmp(f, 8, 0, FRAME_ID);
	frame_bytes(f, 16);
	frame_end(f);
}

/* An ICMP error around the packet of another frame, of which `n` bytes are taken. */
static void
error4(struct frame *f, uint8_t type, uint8_t code, const struct frame *inner, uint32_t n)
{
	frame_start(f, NULL);
	frame_ip4(f, 0);
	frame_icmp(f, type, code, 0);
	frame_append(f, inner->b + inner->l3, n);
	frame_end(f);
}

static void
error4_tcp(struct frame *f)
{
	struct frame inner;

	tcp4_vlan(&inner);
	error4(f, 11, 0, &inner, 28);
}

static void
error4_options(struct frame *f)
{
	struct frame inner;

	frame_start(&inner, NULL);
	frame_ip4(&inner, 3);
	frame_udp(&inner);
	frame_bytes(&inner, 200);
	frame_end(&inner);
	error4(f, 11, 0, &inner, 32 + 8);
}

/* RFC 4884: the original in 128 bytes, then an extension structure with an object. */
static void
error4_extended(struct frame *f)
{
	static const uint8_t extension[] = {0x20, 0, 0, 0, 0, 8, 1, 1, 0, 0, 0x10, 0x40};
	struct frame inner;

	frame_start(&inner, NULL);
	frame_ip4(&inner, 0);
	frame_udp(&inner);
	frame_bytes(&inner, 400);
	frame_end(&inner);
	frame_start(f, NULL);
	frame_ip4(f, 0);
	frame_icmp(f, 3, 4, 32);
	frame_append(f, inner.b + inner.l3, 128);
	frame_append(f, extension, sizeof(extension));
	frame_end(f);
}

static void
error4_echo(struct frame *f)
{
	struct frame inner;

	echo4(&inner);
	error4(f, 3, 1, &inner, 28);
}

static void
error4_esp(struct frame *f)
{
	struct frame inner;

	esp4(&inner);
	error4(f, 3, 2, &inner, 20);
}

static void
error4_pptp(struct frame *f)
{
	struct frame inner;

	pptp4(&inner);
	error4(f, 3, 2, &inner, 28);
}

static void
tcp6(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip6(f);
	frame_tcp(f, ACK, 3);
	frame_bytes(f, 7);
	frame_end(f);
}

static void
udp6_exts(struct frame *f)
{
	frame_start(f, (const uint32_t[]){0x9100u << 16 | 7, 0x8100u << 16 | 8, 0});
	frame_ip6(f);
	frame_ext(f, IPPROTO_HOPOPTS, 2);
	frame_ext(f, IPPROTO_DSTOPTS, 1);
	frame_ext(f, IPPROTO_ROUTING, 3);
	frame_ext(f, IPPROTO_FRAGMENT, 1); /* atomic */
	frame_ext(f, IPPROTO_AH, 3);
	frame_ext(f, IPPROTO_DSTOPTS, 40);
	frame_udp(f);
	frame_bytes(f, 9);
	frame_end(f);
}

static void
echo6(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip6(f);
	frame_icmp(f, 129, 0, FRAME_ID);
	frame_bytes(f, 16);
	frame_end(f);
}

static void
solicit6(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip6(f);
	frame_icmp(f, 135, 0, 0);
	frame_bytes(f, 24);
	frame_end(f);
}

static void
mld6(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip6(f);
	frame_ext(f, IPPROTO_HOPOPTS, 1);
	frame_icmp(f, 143, 0, 0);
	frame_bytes(f, 20);
	frame_end(f);
}

static void
error6(struct frame *f)
{
	struct frame inner;

	udp6_exts(&inner);
	frame_start(f, NULL);
	frame_ip6(f);
	frame_icmp(f, 2, 0, 0);
	frame_append(f, inner.b + inner.l3, inner.len - inner.l3);
	frame_end(f);
}

static void
sctp6(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip6(f);
	frame_sctp(f);
	frame_bytes(f, 20);
	frame_end(f);
}

static void
empty6(struct frame *f)
{
	frame_start(f, NULL);
	frame_ip6(f);
	frame_proto(f, 89);
	frame_end(f);
}

static void
arp(struct frame *f)
{
	frame_start(f, (const uint32_t[]){0x8100u << 16, 0});
	frame_type(f, 0x0806);
	frame_bytes(f, 28);
}

static void
lldp(struct frame *f)
{
	frame_start(f, NULL);
	frame_type(f, 0x88cc);
	frame_bytes(f, 50);
}

#define V4 TUPLE_IPV4
#define V6 TUPLE_IPV6
#define PORTS FRAME_SPORT, FRAME_DPORT
#define IP PKT_IP
#define ERR (PKT_IP | PKT_ICMP_ERROR)

/* name, build, tuple's ports, l3, l4 and l4 header lengths, flags, family, protocols, tags */
const struct frame_case frame_cases[] = {
	{"tcp4", tcp4, PORTS, 20, 20, 20, IP, V4, IPPROTO_TCP, IPPROTO_TCP, 0},
	{"tcp4_vlan", tcp4_vlan, PORTS, 20, 40, 40, IP, V4, IPPROTO_TCP, IPPROTO_TCP, 1},
	{"udp4_qinq", udp4_qinq, PORTS, 20, 41, 8, IP, V4, IPPROTO_UDP, IPPROTO_UDP, 2},
	{"tcp4_options", tcp4_options, PORTS, 60, 360, 60, IP, V4, IPPROTO_TCP, IPPROTO_TCP, 0},
	{"udplite4", udplite4, PORTS, 20, 39, 8, IP, V4, IPPROTO_UDPLITE, IPPROTO_UDPLITE, 0},
	{"sctp4", sctp4, PORTS, 20, 57, 12, IP, V4, IPPROTO_SCTP, IPPROTO_SCTP, 0},
	{"gre4", gre4, 0, 0, 20, 24, 4, IP, V4, IPPROTO_GRE, IPPROTO_GRE, 0},
	{"pptp4", pptp4, 0, FRAME_CALL, 20, 28, 8, IP, V4, IPPROTO_GRE, IPPROTO_GRE, 0},
	{"esp4", esp4, 0, 0, 20, 20, 0, IP, V4, IPPROTO_ESP, IPPROTO_ESP, 0},
	{"echo4", echo4, FRAME_ID, TYPE_CODE(8, 0), 20, 24, 8, IP, V4, IPPROTO_ICMP,
		IPPROTO_ICMP, 0},
	{"error4_tcp", error4_tcp, PORTS, 20, 36, 8, ERR, V4, IPPROTO_ICMP, IPPROTO_TCP, 0},
	{"error4_options", error4_options, PORTS, 20, 48, 8, ERR, V4, IPPROTO_ICMP, IPPROTO_UDP, 0},
	{"error4_extended", error4_extended, PORTS, 20, 148, 8, ERR, V4, IPPROTO_ICMP,
		IPPROTO_UDP, 0},
	{"error4_echo", error4_echo, FRAME_ID, TYPE_CODE(8, 0), 20, 36, 8, ERR, V4, IPPROTO_ICMP,
		IPPROTO_ICMP, 0},
	{"error4_esp", error4_esp, 0, 0, 20, 28, 8, ERR, V4, IPPROTO_ICMP, IPPROTO_ESP, 0},
	{"error4_pptp", error4_pptp, 0, FRAME_CALL, 20, 36, 8, ERR, V4, IPPROTO_ICMP,
		IPPROTO_GRE, 0},
	{"tcp6", tcp6, PORTS, 40, 39, 32, IP, V6, IPPROTO_TCP, IPPROTO_TCP, 0},
	{"udp6_exts", udp6_exts, PORTS, 440, 17, 8, IP, V6, IPPROTO_UDP, IPPROTO_UDP, 2},
	{"echo6", echo6, FRAME_ID, TYPE_CODE(129, 0), 40, 24, 8, IP, V6, IPPROTO_ICMPV6,
		IPPROTO_ICMPV6, 0},
	{"solicit6", solicit6, 0, TYPE_CODE(135, 0), 40, 32, 8, IP | PKT_ND, V6, IPPROTO_ICMPV6,
		IPPROTO_ICMPV6, 0},
	{"mld6", mld6, 0, TYPE_CODE(143, 0), 48, 28, 8, IP | PKT_ND, V6, IPPROTO_ICMPV6,
		IPPROTO_ICMPV6, 0},
	{"error6", error6, PORTS, 40, 465, 8, ERR, V6, IPPROTO_ICMPV6, IPPROTO_UDP, 0},
	{"sctp6", sctp6, PORTS, 40, 32, 12, IP, V6, IPPROTO_SCTP, IPPROTO_SCTP, 0},
	{"empty6", empty6, 0, 0, 40, 0, 0, IP, V6, 89, 89, 0},
	{"arp", arp, 0, 0, 0, 0, 0, PKT_ARP, 0, 0, 0, 1},
	{"lldp", lldp, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
};

const unsigned int frame_cases_n = RTE_DIM(frame_cases);

const struct frame_case *
frame_case(const char *name)
{
	unsigned int i;

	for (i = 0; i < frame_cases_n; i++)
		if (strcmp(frame_cases[i].name, name) == 0)
			return &frame_cases[i];
	fprintf(stderr, "no frame of name %s\n", name);
	abort();
}
