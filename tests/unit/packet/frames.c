/* SPDX-License-Identifier: BSD-3-Clause */
#include "frames.h"

#include <netinet/in.h>
#include <string.h>

#include "csum.h"
#include "parse.h"

static const uint8_t addr_a[4] = {198, 51, 100, 10}, addr_s[4] = {192, 0, 2, 80};
static const uint8_t addr_a6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 1, [15] = 0x10};
static const uint8_t addr_s6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 2, [15] = 0x80};

void
frame_put16(struct frame *f, uint32_t at, uint16_t v)
{
	f->b[at] = (uint8_t)(v >> 8);
	f->b[at + 1] = (uint8_t)v;
}

void
frame_append(struct frame *f, const uint8_t *data, unsigned int n)
{
	memcpy(f->b + f->len, data, n);
	f->len += n;
}

static uint32_t
append_zeros(struct frame *f, unsigned int n)
{
	uint32_t at = f->len;

	memset(f->b + at, 0, n);
	f->len += n;
	return at;
}

void
frame_bytes(struct frame *f, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		f->b[f->len++] = (uint8_t)(i * 37 + 11);
}

void
frame_start(struct frame *f, const uint32_t *tags)
{
	memset(f, 0, sizeof(*f));
	memset(f->b, 0x02, 12);
	f->len = 12;
	for (; tags != NULL && *tags != 0; tags++) {
		frame_put16(f, f->len, (uint16_t)(*tags >> 16));
		frame_put16(f, f->len + 2, (uint16_t)*tags);
		f->len += 4;
	}
}

void
frame_type(struct frame *f, uint16_t ethertype)
{
	frame_put16(f, f->len, ethertype);
	f->len += 2;
}

void
frame_ip4(struct frame *f, unsigned int option_words)
{
	frame_type(f, 0x0800);
	f->family = TUPLE_IPV4;
	f->l3 = append_zeros(f, 20 + option_words * 4);
	f->b[f->l3] = (uint8_t)(0x45 + option_words);
	f->b[f->l3 + 8] = 64;
	memcpy(f->b + f->l3 + 12, addr_a, sizeof(addr_a));
	memcpy(f->b + f->l3 + 16, addr_s, sizeof(addr_s));
	memset(f->b + f->l3 + 20, 1, option_words * 4); /* no operation */
	f->type_at = f->l3 + 9;
	f->l4 = f->len;
}

void
frame_ip6(struct frame *f)
{
	frame_type(f, 0x86dd);
	f->family = TUPLE_IPV6;
	f->l3 = append_zeros(f, 40);
	f->b[f->l3] = 0x60;
	f->b[f->l3 + 7] = 64;
	memcpy(f->b + f->l3 + 8, addr_a6, sizeof(addr_a6));
	memcpy(f->b + f->l3 + 24, addr_s6, sizeof(addr_s6));
	f->type_at = f->l3 + 6;
	f->l4 = f->len;
}

/* An extension header of `units` times eight bytes. */
void
frame_ext(struct frame *f, uint8_t type, unsigned int units)
{
	uint32_t at = append_zeros(f, units * 8);

	f->b[f->type_at] = type;
	if (type == IPPROTO_AH)
		f->b[at + 1] = (uint8_t)(units * 2 - 2);
	else if (type != IPPROTO_FRAGMENT)
		f->b[at + 1] = (uint8_t)(units - 1);
	f->type_at = at;
	f->l4 = f->len;
}

void
frame_proto(struct frame *f, uint8_t proto)
{
	f->b[f->type_at] = proto;
	f->proto = proto;
	f->l4 = f->len;
}

static uint32_t
transport(struct frame *f, uint8_t proto, unsigned int hdr_len)
{
	frame_proto(f, proto);
	append_zeros(f, hdr_len);
	if (proto != IPPROTO_GRE) {
		frame_put16(f, f->l4, FRAME_SPORT);
		frame_put16(f, f->l4 + 2, FRAME_DPORT);
	}
	return f->l4;
}

void
frame_tcp(struct frame *f, uint8_t flags, unsigned int option_words)
{
	uint32_t at = transport(f, IPPROTO_TCP, 20 + option_words * 4);

	f->b[at + 12] = (uint8_t)((5 + option_words) << 4);
	f->b[at + 13] = flags;
	memset(f->b + at + 20, 1, option_words * 4);
}

void
frame_udp(struct frame *f)
{
	transport(f, IPPROTO_UDP, 8);
}

void
frame_udplite(struct frame *f, uint16_t coverage)
{
	frame_put16(f, transport(f, IPPROTO_UDPLITE, 8) + 4, coverage);
}

void
frame_icmp(struct frame *f, uint8_t type, uint8_t code, uint16_t id)
{
	uint32_t at = transport(f, f->family == TUPLE_IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, 8);

	f->b[at] = type;
	f->b[at + 1] = code;
	frame_put16(f, at + 2, 0);
	frame_put16(f, at + 4, id);
}

void
frame_sctp(struct frame *f)
{
	transport(f, IPPROTO_SCTP, 12);
}

void
frame_gre(struct frame *f, uint16_t flags_version, uint16_t proto, uint16_t call)
{
	uint32_t at = transport(f, IPPROTO_GRE, (flags_version & 7) == 1 ? 8 : 4);

	frame_put16(f, at, flags_version);
	frame_put16(f, at + 2, proto);
	if ((flags_version & 7) == 1)
		frame_put16(f, at + 6, call);
}

static uint32_t
sum_bytes(const uint8_t *d, uint32_t n)
{
	uint32_t sum = 0, i;

	for (i = 0; i < n; i++)
		sum += i % 2 ? d[i] : (uint32_t)d[i] << 8;
	return sum;
}

static uint16_t
fold(uint32_t sum)
{
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

void
frame_ip4_sum(struct frame *f, uint32_t l3)
{
	frame_put16(f, l3 + 10, 0);
	frame_put16(f, l3 + 10, fold(sum_bytes(f->b + l3, (f->b[l3] & 15) * 4u)));
}

static void
transport_sum(struct frame *f, uint32_t field, uint32_t covered, bool pseudo)
{
	uint32_t len = f->len - f->l4, sum;
	uint16_t folded;

	frame_put16(f, f->l4 + field, 0);
	sum = sum_bytes(f->b + f->l4, covered);
	if (pseudo && f->family == TUPLE_IPV4)
		sum += sum_bytes(f->b + f->l3 + 12, 8) + f->proto + len;
	else if (pseudo)
		sum += sum_bytes(f->b + f->l3 + 8, 32) + f->proto + len;
	folded = fold(sum);
	if (folded == 0 && (f->proto == IPPROTO_UDP || f->proto == IPPROTO_UDPLITE))
		folded = 0xffff;
	frame_put16(f, f->l4 + field, folded);
}

/* CRC32c bit by bit, reflected (RFC 9260 appendix A). */
static void
sctp_sum(struct frame *f)
{
	uint32_t crc = UINT32_MAX, i, k;

	memset(f->b + f->l4 + 8, 0, 4);
	for (i = f->l4; i < f->len; i++) {
		crc ^= f->b[i];
		for (k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	for (i = 0; i < 4; i++)
		f->b[f->l4 + 8 + i] = (uint8_t)(~crc >> 8 * i);
}

void
frame_end(struct frame *f)
{
	uint32_t l4_len = f->len - f->l4, coverage;

	if (f->family == TUPLE_IPV4) {
		frame_put16(f, f->l3 + 2, (uint16_t)(f->len - f->l3));
		frame_ip4_sum(f, f->l3);
	} else if (f->family == TUPLE_IPV6) {
		frame_put16(f, f->l3 + 4, (uint16_t)(f->len - f->l3 - 40));
	}
	switch (f->proto) {
	case IPPROTO_TCP:
		transport_sum(f, 16, l4_len, true);
		break;
	case IPPROTO_UDP:
		frame_put16(f, f->l4 + 4, (uint16_t)l4_len);
		transport_sum(f, 6, l4_len, true);
		break;
	case IPPROTO_UDPLITE:
		coverage = (uint32_t)f->b[f->l4 + 4] << 8 | f->b[f->l4 + 5];
		transport_sum(f, 6, coverage == 0 ? l4_len : coverage, true);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		transport_sum(f, 2, l4_len, f->family == TUPLE_IPV6);
		break;
	case IPPROTO_SCTP:
		sctp_sum(f);
		break;
	}
}

void
frame_wrap(struct rte_mbuf *m, uint8_t *data, uint32_t n)
{
	memset(m, 0, sizeof(*m));
	m->buf_addr = data;
	m->buf_len = (uint16_t)n;
	m->data_len = (uint16_t)n;
	m->pkt_len = n;
	m->nb_segs = 1;
	rte_mbuf_refcnt_set(m, 1);
}

static const char *
broken_l4(const struct pkt *p, uint32_t len)
{
	uint32_t l4 = (uint32_t)(p->l4 - rte_pktmbuf_mtod(p->mbuf, uint8_t *));

	if (p->l4 - p->l3 != p->l3_len || l4 + p->l4_len > len)
		return "the transport header is not in the frame";
	if ((uint32_t)p->l3_len + p->l4_len != p->ip_bytes)
		return "lengths do not add up";
	if (!(p->flags & PKT_L4_BAD) && p->l4_hdr_len > p->l4_len)
		return "transport header longer than its packet";
	if (!(p->flags & PKT_L4_BAD) && l4 + p->l4_hdr_len > p->mbuf->data_len)
		return "transport header not in the first segment";
	if (p->flags & PKT_ICMP_ERROR &&
		(p->inner_off < 8 || p->inner_l4_off < p->inner_off + 20 ||
			p->inner_l4_off > p->l4_len || l4 + p->inner_l4_off > p->mbuf->data_len))
		return "the packet inside the error is not in the frame";
	return NULL;
}

static const char *
broken_fragment(const struct pkt *p, uint32_t len)
{
	if (!(p->flags & PKT_FRAGMENT) || p->reason != SL_DROP_NONE || p->l4 != NULL)
		return "a fragment that says it is none";
	if ((uint32_t)p->l3_off + p->l3_len + p->l4_len > len ||
		p->l3_len + p->l4_len != (int)p->ip_bytes)
		return "lengths of the fragment do not add up";
	if (p->l3_off + p->l3_len > p->mbuf->data_len)
		return "headers of the fragment are not in the first segment";
	if (p->frag_off % 8 != 0 || (p->frag_off == 0 && !p->frag_more))
		return "no fragment has this offset";
	return NULL;
}

const char *
frame_broken(const struct pkt *p, enum sl_drop r, uint32_t len)
{
	if (r == PARSE_FRAGMENT)
		return broken_fragment(p, len);
	if (r >= SL_DROP_FIRST_INVALID || r != (p->flags & PKT_L4_BAD ? 0 : p->reason))
		return "reason and result differ";
	if (r != SL_DROP_NONE)
		return NULL;
	if (!(p->flags & PKT_IP))
		return p->l3 == NULL && p->l4 == NULL && p->tuple.family == 0 ? NULL
									    : "not IP, but set";
	if (p->l3_off != 14 + 4 * p->n_tags ||
		p->l3 - rte_pktmbuf_mtod(p->mbuf, uint8_t *) != p->l3_off)
		return "IP header is not behind the tags";
	if (p->tuple.family != (p->l3[0] >> 4 == 4 ? TUPLE_IPV4 : TUPLE_IPV6))
		return "family of the tuple";
	if (p->ip_bytes > len - p->l3_off)
		return "counts bytes that are not there";
	if ((p->flags & PKT_L4_BAD) != 0 && p->reason < SL_DROP_FIRST_INVALID)
		return "unsound for no reason";
	if (p->tuple.scope != 0 || p->tuple.zone != 0)
		return "scope is for the classification to set";
	return broken_l4(p, len);
}

#define SAME(field)                                                                                \
	if (a->field != b->field)                                                                  \
	return #field

const char *
frame_differ(const struct pkt *a, const struct pkt *b)
{
	if (!tuple_equal(&a->tuple, &b->tuple))
		return "tuple";
	SAME(l3_len);
	SAME(l4_len);
	SAME(l4_hdr_len);
	SAME(ethertype);
	SAME(tpid);
	SAME(outer_tci);
	SAME(inner_tci);
	SAME(n_tags);
	SAME(proto);
	SAME(tcp_flags);
	SAME(icmp_type);
	SAME(icmp_code);
	SAME(reason);
	SAME(flags);
	SAME(l3_off);
	SAME(inner_off);
	SAME(inner_l4_off);
	SAME(ip_bytes);
	SAME(frag_off);
	SAME(frag_more);
	SAME(frag_id);
	return NULL;
}

const char *
frame_plain_wrong(const struct pkt *plain, const struct pkt *general)
{
	const uint16_t known = PKT_CSUM_GOOD | PKT_CSUM_BAD;
	struct pkt p = *plain;

	if ((p.flags & known) == PKT_CSUM_GOOD && (general->flags & known) == 0) {
		if (!csum_l4_good(general))
			return "a wrong checksum is taken for good";
		p.flags &= (uint16_t)~PKT_CSUM_GOOD;
	}
	return memcmp(&p, general, sizeof(p)) == 0 ? NULL : "a plain frame is none";
}
