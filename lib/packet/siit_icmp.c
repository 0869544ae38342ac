/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP errors of one version as errors of the other (RFC 7915 4.2, 4.3, 5.2, 5.3): what they say,
 * the packet inside them, and what else they carry (RFC 4884).
 */
#include "siit_private.h"

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#define ICMP_LEN    8u
#define WORD_AT     4u
#define LENGTH4_AT  5u /* RFC 4884: octets of the packet inside, in units of 4 or 8 */
#define LENGTH6_AT  4u
#define QUOTE_MIN   128u /* what it has at least where an extension follows */
#define INNER_MAX   (sizeof(struct rte_ipv6_hdr) + SIIT_FRAGMENT)

#define TCP_SUM_AT  16u
#define UDP_SUM_AT  6u
#define ICMP_SUM_AT 2u
#define SCTP_SUM_AT 8u
#define SCTP_LEN    12u
#define ICMP_ID_AT  4u

#define IP6_MTU_MIN  1280u
#define IP6_NEXT_AT  6u /* the next header field, for a parameter problem */
#define ECHO_REQUEST 8u
#define ECHO6        128u

/* ---- types and codes ---- */

#define NONE 0xff

static bool
unreachable46(uint8_t *type, uint8_t *code)
{
	static const uint8_t codes[] = {
		0, 0, 0 /* protocol, below */, 4, 0 /* too big, below */, 0, 0, 0, 0, 1, 1, 0, 0, 1,
		NONE /* host precedence */, 1};
	uint8_t from = *code;

	if (from >= RTE_DIM(codes) || codes[from] == NONE)
		return false;
	*type = ICMP6_UNREACHABLE;
	*code = codes[from];
	if (from == ICMP_CODE_FRAG_NEEDED) {
		*type = ICMP6_PACKET_TOO_BIG;
	} else if (from == ICMP_CODE_PROTOCOL) {
		*type = ICMP6_PARAMETER_PROBLEM;
		*code = 1; /* unrecognized next header */
	}
	return true;
}

static bool
type46(uint8_t *type, uint8_t *code)
{
	switch (*type) {
	case ICMP_UNREACHABLE:
		return unreachable46(type, code);
	case ICMP_TIME_EXCEEDED:
		*type = ICMP6_TIME_EXCEEDED;
		return true;
	case ICMP_PARAMETER_PROBLEM:
		if (*code != 0 && *code != 2)
			return false;
		*type = ICMP6_PARAMETER_PROBLEM;
		*code = 0;
		return true;
	default:
		return false;
	}
}

static bool
type64(uint8_t *type, uint8_t *code)
{
	static const uint8_t unreachable[] = {1, 10, 1, 1, 3};

	switch (*type) {
	case ICMP6_UNREACHABLE:
		if (*code >= RTE_DIM(unreachable))
			return false;
		*type = ICMP_UNREACHABLE;
		*code = unreachable[*code];
		return true;
	case ICMP6_PACKET_TOO_BIG:
		*type = ICMP_UNREACHABLE;
		*code = ICMP_CODE_FRAG_NEEDED;
		return true;
	case ICMP6_TIME_EXCEEDED:
		*type = ICMP_TIME_EXCEEDED;
		return true;
	case ICMP6_PARAMETER_PROBLEM:
		if (*code > 1)
			return false;
		*type = *code == 0 ? ICMP_PARAMETER_PROBLEM : ICMP_UNREACHABLE;
		*code = *code == 0 ? 0 : ICMP_CODE_PROTOCOL;
		return true;
	default:
		return false;
	}
}

bool
siit_error_type(uint8_t family, uint8_t *type, uint8_t *code)
{
	return family == TUPLE_IPV4 ? type46(type, code) : type64(type, code);
}

/* ---- the word behind the checksum ---- */

/* An MTU for who does not name one: the next lower of the usual ones (RFC 1191 7.1). */
static uint32_t
plateau(uint32_t total)
{
	static const uint16_t plateaus[] = {
		65535, 32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68};
	unsigned int i;

	for (i = 0; i < RTE_DIM(plateaus) - 1 && plateaus[i] >= total; i++)
		;
	return plateaus[i];
}

static uint32_t
mtu46(const struct siit_error *e, uint32_t mtu, uint32_t inner_total)
{
	if ((mtu & UINT16_MAX) == 0)
		mtu = plateau(inner_total);
	mtu = (mtu & UINT16_MAX) + SIIT_GROWTH;
	mtu = RTE_MIN(mtu, RTE_MIN(e->mtu_out, e->mtu_in + SIIT_GROWTH));
	return RTE_MAX(mtu, IP6_MTU_MIN);
}

/* A fragment header inside takes of the MTU as well. */
static uint32_t
mtu64(const struct siit_error *e, uint32_t mtu, bool fragment)
{
	uint32_t less = SIIT_GROWTH + (fragment ? SIIT_FRAGMENT : 0);

	mtu = RTE_MAX(mtu, IP6_MTU_MIN) - less;
	mtu = RTE_MIN(mtu, RTE_MIN(e->mtu_out, RTE_MAX(e->mtu_in, IP6_MTU_MIN) - SIIT_GROWTH));
	return RTE_MIN(mtu, (uint32_t)UINT16_MAX);
}

/* Where the pointer of a parameter problem points in the other header. False: there is no such
 * field. */
static bool
pointer46(uint32_t *at)
{
	static const uint8_t map[] = {0, 1, 4, 4, NONE, NONE, NONE, NONE, 7, 6, NONE, NONE, 8, 8, 8,
		8, 24, 24, 24, 24};

	if (*at >= RTE_DIM(map) || map[*at] == NONE)
		return false;
	*at = map[*at];
	return true;
}

static bool
pointer64(uint32_t *at)
{
	static const uint8_t map[] = {0, 1, NONE, NONE, 2, 2, 9, 8};

	if (*at >= 40 || (*at < RTE_DIM(map) && map[*at] == NONE))
		return false;
	if (*at < RTE_DIM(map))
		*at = map[*at];
	else
		*at = *at < 24 ? 12 : 16;
	return true;
}

/* ---- what an error is made of ---- */

struct error {
	const struct pkt *p;
	const struct siit_error *e;
	struct siit_header inner; /* of the packet inside */
	uint8_t type, code;
	uint32_t word;    /* host order; without the length of RFC 4884 */
	uint32_t quoted;  /* bytes that are the packet inside, as it came */
	uint32_t extension; /* and bytes behind it that are not */
};

/* The errors that have a length field, by the family of the error. */
static bool
has_length(uint8_t family, uint8_t type)
{
	if (family == TUPLE_IPV6)
		return type == ICMP6_UNREACHABLE || type == ICMP6_TIME_EXCEEDED;
	return type == ICMP_UNREACHABLE || type == ICMP_TIME_EXCEEDED ||
	       type == ICMP_PARAMETER_PROBLEM;
}

/* How much of what the error carries is the packet inside. */
static void
read_length(struct error *x)
{
	const struct pkt *p = x->p;
	bool ip4 = p->tuple.family == TUPLE_IPV4;
	uint32_t all = p->l4_len - (uint32_t)p->inner_off, said;

	x->quoted = all;
	x->extension = 0;
	if (!has_length(p->tuple.family, p->icmp_type))
		return;
	said = ip4 ? p->l4[LENGTH4_AT] * 4u : p->l4[LENGTH6_AT] * 8u;
	if (said < QUOTE_MIN || said >= all)
		return;
	x->quoted = said;
	if (has_length(x->e->to.family, x->type))
		x->extension = all - said;
}

static bool
read_word(struct error *x)
{
	const struct pkt *p = x->p;
	bool ip4 = p->tuple.family == TUPLE_IPV4;
	uint32_t word;

	memcpy(&word, p->l4 + WORD_AT, sizeof(word));
	word = rte_be_to_cpu_32(word);
	if (x->type == ICMP6_PACKET_TOO_BIG && ip4) {
		x->word = mtu46(x->e, word, x->inner.payload + x->inner.len);
	} else if (!ip4 && p->icmp_type == ICMP6_PACKET_TOO_BIG) {
		x->word = mtu64(x->e, word, x->inner.fragment);
	} else if (ip4 && p->icmp_type == ICMP_PARAMETER_PROBLEM) {
		x->word = word >> 24;
		return pointer46(&x->word);
	} else if (ip4 && x->type == ICMP6_PARAMETER_PROBLEM) {
		x->word = IP6_NEXT_AT;
	} else if (x->type == ICMP_PARAMETER_PROBLEM && !ip4) {
		if (!pointer64(&word))
			return false;
		x->word = word << 24;
	}
	return true;
}

/* False: the error has no counterpart. */
static bool
read_error(struct error *x)
{
	const struct pkt *p = x->p;
	const uint8_t *ip = p->l4 + p->inner_off;

	x->type = p->icmp_type;
	x->code = p->icmp_code;
	if (!siit_error_type(p->tuple.family, &x->type, &x->code))
		return false;
	x->inner = (struct siit_header){.to = &x->e->inner};
	if (p->tuple.family == TUPLE_IPV4)
		siit_read_ip4(&x->inner, ip);
	else
		siit_read_ip6(&x->inner, ip, p->l4_len - (uint32_t)p->inner_off);
	read_length(x);
	return read_word(x);
}

/* ---- the packet inside ---- */

/* What changed in the pseudo-header of the packet inside, as csum.h counts it. */
static uint64_t
inner_diff(const struct error *x)
{
	const uint8_t *ip = x->p->l4 + x->p->inner_off;
	const struct tuple *to = x->inner.to;

	if (to->family == TUPLE_IPV6)
		return siit_sum_new(to->src.b, 16) + siit_sum_new(to->dst.b, 16) +
		       siit_sum_old(ip + offsetof(struct rte_ipv4_hdr, src_addr), 8);
	return siit_sum_new(to->src.b, 4) + siit_sum_new(to->dst.b, 4) +
	       siit_sum_old(ip + offsetof(struct rte_ipv6_hdr, src_addr), 32);
}

/* The sum of an echo inside; ICMPv6 alone has a pseudo-header. */
static void
inner_echo(const struct error *x, uint8_t *l4)
{
	const uint8_t *ip = x->p->l4 + x->p->inner_off;
	const struct tuple *to = x->inner.to;
	uint32_t len = rte_cpu_to_be_32(x->inner.payload), proto = RTE_BE32(IPPROTO_ICMPV6);
	uint64_t diff = siit_put16(l4, to->dport) + siit_put16(l4 + ICMP_ID_AT, to->sport);

	if (to->family == TUPLE_IPV6)
		diff += siit_sum_new(to->src.b, 16) + siit_sum_new(to->dst.b, 16) + len + proto;
	else
		diff += siit_sum_old(ip + offsetof(struct rte_ipv6_hdr, src_addr), 32) +
			(uint32_t)~len + (uint32_t)~proto;
	siit_put16(l4 + ICMP_SUM_AT, csum_adjust(siit_get16(l4 + ICMP_SUM_AT), diff));
}

/* Of its transport header there are `len` bytes, at least 8. */
static void
inner_transport(const struct error *x, uint8_t *l4, uint32_t len)
{
	const struct tuple *to = x->inner.to;
	uint64_t diff;

	if (to->proto == IPPROTO_ICMP || to->proto == IPPROTO_ICMPV6) {
		inner_echo(x, l4);
		return;
	}
	diff = inner_diff(x) + siit_put16(l4, to->sport) + siit_put16(l4 + 2, to->dport);
	if (to->proto == IPPROTO_TCP && len >= TCP_SUM_AT + 2)
		siit_put16(l4 + TCP_SUM_AT, csum_adjust(siit_get16(l4 + TCP_SUM_AT), diff));
	else if (to->proto == IPPROTO_UDP || to->proto == IPPROTO_UDPLITE)
		siit_put16(l4 + UDP_SUM_AT, csum_adjust_udp(siit_get16(l4 + UDP_SUM_AT), diff));
	else if (to->proto == IPPROTO_SCTP && len == x->inner.payload && len >= SCTP_LEN) {
		uint32_t crc = csum_sctp_inner(l4, len);

		/* of a packet that is cut it cannot be made right */
		memcpy(l4 + SCTP_SUM_AT, &crc, sizeof(crc));
	}
}

/* ---- writing ---- */

/* What there is room for: lengths of what is written. */
struct plan {
	uint32_t inner;     /* header of the packet inside */
	uint32_t payload;   /* what follows of it */
	uint32_t padding;   /* up to what a length field can say */
	uint32_t extension;
};

static void
make_plan(const struct error *x, struct plan *plan)
{
	bool to4 = x->e->to.family == TUPLE_IPV4;
	uint32_t unit = to4 ? 4 : 8, room, quote;

	room = to4 ? ICMP_ERROR_MAX - (uint32_t)sizeof(struct rte_ipv4_hdr)
		   : ICMP6_ERROR_MAX - (uint32_t)sizeof(struct rte_ipv6_hdr);
	room -= ICMP_LEN;
	*plan = (struct plan){.payload = x->quoted - x->inner.len, .extension = x->extension};
	plan->inner = to4 ? sizeof(struct rte_ipv4_hdr)
			  : sizeof(struct rte_ipv6_hdr) + (x->inner.fragment ? SIIT_FRAGMENT : 0);
	if (plan->extension + QUOTE_MIN > room)
		plan->extension = 0;
	room -= plan->extension;
	if (plan->extension > 0)
		room -= room % unit;
	plan->payload = RTE_MIN(plan->payload, room - plan->inner);
	quote = plan->inner + plan->payload;
	if (plan->extension > 0)
		plan->padding = RTE_MAX(RTE_ALIGN_CEIL(quote, unit), QUOTE_MIN) - quote;
}

/* Copies n bytes of the error, from `off` behind its ICMP header's start. */
static void
copy(uint8_t *to, const struct pkt *p, uint32_t off, uint32_t n)
{
	const void *from = rte_pktmbuf_read(p->mbuf, (uint32_t)p->l3_off + p->l3_len + off, n, to);

	if (from != NULL && from != to)
		memcpy(to, from, n);
}

static void
write_inner(const struct error *x, uint8_t *at, const struct plan *plan)
{
	const struct pkt *p = x->p;
	uint8_t *l4 = at + plan->inner;

	if (x->e->to.family == TUPLE_IPV4)
		siit_write_ip4(at, &x->inner);
	else
		siit_write_ip6(at, &x->inner);
	copy(l4, p, p->inner_l4_off, plan->payload);
	inner_transport(x, l4, RTE_MIN(plan->payload, x->inner.payload));
	memset(l4 + plan->payload, 0, plan->padding);
	copy(l4 + plan->payload + plan->padding, p, p->inner_off + x->quoted, plan->extension);
}

static void
write_icmp(const struct error *x, uint8_t *icmp, const struct plan *plan)
{
	uint32_t quote = plan->inner + plan->payload + plan->padding;
	rte_be32_t word = rte_cpu_to_be_32(x->word);

	icmp[0] = x->type;
	icmp[1] = x->code;
	siit_put16(icmp + ICMP_SUM_AT, 0);
	memcpy(icmp + WORD_AT, &word, sizeof(word));
	if (plan->extension > 0 && x->e->to.family == TUPLE_IPV4)
		icmp[LENGTH4_AT] = (uint8_t)(quote / 4);
	else if (plan->extension > 0)
		icmp[LENGTH6_AT] = (uint8_t)(quote / 8);
	write_inner(x, icmp + ICMP_LEN, plan);
}

/* The IP header of the error itself, and its checksum. */
static void
write_outer(const struct error *x, uint8_t *ip, uint32_t len)
{
	struct siit_header h = {.to = &x->e->to};
	uint8_t *icmp;
	uint16_t sum;

	if (x->e->to.family == TUPLE_IPV4)
		siit_read_ip6(&h, x->p->l3, x->p->l3_len);
	else
		siit_read_ip4(&h, x->p->l3);
	h.payload = len;
	h.hops--;
	h.fragment = h.df = false;
	h.id = x->e->id;
	if (x->e->to.family == TUPLE_IPV4) {
		siit_write_ip4(ip, &h);
		icmp = ip + sizeof(struct rte_ipv4_hdr);
		sum = (uint16_t)~rte_raw_cksum(icmp, len);
	} else {
		icmp = ip + siit_write_ip6(ip, &h);
		sum = rte_ipv6_udptcp_cksum((const void *)ip, icmp);
	}
	siit_put16(icmp + ICMP_SUM_AT, sum);
}

enum sl_drop
siit_error_write(struct rte_mbuf *m, const struct pkt *p, const struct siit_error *e)
{
	bool to4 = e->to.family == TUPLE_IPV4;
	uint16_t type = to4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4) : RTE_BE16(RTE_ETHER_TYPE_IPV6);
	uint32_t ip_len = to4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr), len;
	struct error x = {.p = p, .e = e};
	struct plan plan;
	uint8_t *frame;

	if (!read_error(&x))
		return SL_DROP_NAT64_NONE;
	if (unlikely(x.quoted < x.inner.len + ICMP_LEN))
		return SL_DROP_ICMP_INNER;
	make_plan(&x, &plan);
	len = ICMP_LEN + plan.inner + plan.payload + plan.padding + plan.extension;
	frame = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(p->l3_off + ip_len + len));
	if (unlikely(frame == NULL))
		return SL_DROP_TX_HEADROOM;
	memcpy(frame, rte_pktmbuf_mtod(p->mbuf, const uint8_t *), p->l3_off);
	memcpy(frame + p->l3_off - sizeof(type), &type, sizeof(type));
	write_icmp(&x, frame + p->l3_off + ip_len, &plan);
	write_outer(&x, frame + p->l3_off, len);
	return SL_DROP_NONE;
}
