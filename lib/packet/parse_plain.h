/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parse of what most frames are: untagged or with one 802.1Q tag, IPv4 without options or IPv6
 * without extension headers, TCP or UDP, no fragment, in one segment and sound. The result is that
 * of parse_frame() to the last byte (tests/unit/packet/test_plain.c compares them), but that the
 * transport checksum of a short packet is already found good; what is gained is that *p is written
 * once and in words, not cleared first and then filled field by field, and that the packet path,
 * which has this in its loop, need not ask what is known of a plain frame. A frame of which
 * anything is otherwise, a wrong length or sum of the IP header included, is left to
 * parse_frame(), which finds out what it is.
 */
#ifndef PARSE_PLAIN_H
#define PARSE_PLAIN_H

#include <netinet/in.h>
#include <stddef.h>

#include <rte_ether.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "parse_private.h"

/* Up to where headers are read before their lengths are known. */
#define PLAIN_MIN (RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + sizeof(struct rte_ipv4_hdr))

/* What was found of a frame, until it is known to be plain. */
struct plain {
	struct rte_mbuf *m;
	uint8_t *ip;
	uint64_t tags; /* a word of *p: see plain_word() */
	uint32_t l3_off, l3_len, l4_len, l4_hdr_len;
	uint32_t sum_len; /* of l4_len what the checksum is over */
	uint8_t proto, tcp_flags;
};

/* Four fields of 16 bits as they lie behind one another in *p; stored as one word. */
static inline uint64_t
plain_word(uint16_t a, uint16_t b, uint32_t c, uint32_t d)
{
	_Static_assert(RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN, "the first field is the lowest");
	return a | (uint32_t)b << 16 | (uint64_t)c << 32 | (uint64_t)d << 48;
}

#define PLAIN_PUT(p, field, word)                                                                  \
	do {                                                                                       \
		uint64_t word_ = (word);                                                           \
		_Static_assert(offsetof(struct pkt, field) % sizeof(word_) == 0, "a word");        \
		memcpy((uint8_t *)(p) + offsetof(struct pkt, field), &word_, sizeof(word_));       \
	} while (0)

/*
 * What is known of the transport checksum: short packets are summed here, where their headers are
 * at hand. Of others, and when a sum is wrong or left out, it is for csum_l4_good() to tell.
 */
static __rte_always_inline uint16_t
plain_sum(const struct plain *f, uint64_t addresses)
{
	uint64_t sum;

	if (unlikely(f->m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK))
		return parse_csum_flags(f->m->ol_flags);
	if (f->sum_len >= CSUM_SHORT)
		return 0;
	sum = csum_add(addresses, csum_pseudo(f->sum_len, f->proto));
	sum = csum_add(sum, csum_words(f->ip + f->l3_len, f->sum_len));
	return likely(sum % UINT16_MAX == 0) ? PKT_CSUM_GOOD : 0;
}

static __rte_always_inline void
plain_store(struct pkt *p, const struct plain *f, uint8_t family, uint16_t ethertype,
	uint16_t sum_flags)
{
	uint8_t *l4 = f->ip + f->l3_len;
	uint32_t ports;

	_Static_assert(offsetof(struct pkt, ethertype) == offsetof(struct pkt, l3_len) + 6, "");
	_Static_assert(offsetof(struct pkt, proto) == offsetof(struct pkt, tpid) + 7, "");
	_Static_assert(offsetof(struct pkt, l3_off) == offsetof(struct pkt, tcp_flags) + 6, "");
	_Static_assert(offsetof(struct pkt, ns) == offsetof(struct pkt, inner_off) + 8, "");
	memcpy(&ports, l4, sizeof(ports));
	PLAIN_PUT(p, tuple, (uint64_t)(family | f->proto << 8) << 48);
	PLAIN_PUT(p, tuple.sport, ports); /* and ct_gen */
	p->hash = 0;
	p->mbuf = f->m;
	p->l3 = f->ip;
	p->l4 = l4;
	PLAIN_PUT(p, l3_len, plain_word(f->l3_len, f->l4_len, f->l4_hdr_len, ethertype));
	PLAIN_PUT(p, tpid, f->tags | (uint64_t)f->proto << 56);
	PLAIN_PUT(p, tcp_flags, plain_word(f->tcp_flags, 0, PKT_IP | sum_flags, f->l3_off));
	PLAIN_PUT(p, inner_off, (uint64_t)(f->l3_len + f->l4_len) << 32);
	memset(&p->ns, 0, sizeof(*p) - offsetof(struct pkt, ns));
}

/* Reads the transport header, whose l4_len bytes are all there. False: not plain. */
static __rte_always_inline bool
plain_l4(struct plain *f)
{
	const uint8_t *l4 = f->ip + f->l3_len;

	if (likely(f->proto == IPPROTO_TCP)) {
		if (unlikely(f->l4_len < sizeof(struct rte_tcp_hdr)))
			return false;
		f->l4_hdr_len = (l4[offsetof(struct rte_tcp_hdr, data_off)] >> 4) * 4u;
		f->tcp_flags = l4[offsetof(struct rte_tcp_hdr, tcp_flags)];
		f->sum_len = f->l4_len;
		return f->l4_hdr_len >= sizeof(struct rte_tcp_hdr) && f->l4_hdr_len <= f->l4_len &&
		       parse_tcp_flags_valid(f->tcp_flags);
	}
	if (unlikely(f->proto != IPPROTO_UDP || f->l4_len < sizeof(struct rte_udp_hdr)))
		return false;
	f->sum_len = parse_be16(l4 + offsetof(struct rte_udp_hdr, dgram_len));
	f->l4_hdr_len = sizeof(struct rte_udp_hdr);
	f->tcp_flags = 0;
	return f->sum_len >= sizeof(struct rte_udp_hdr) && f->sum_len <= f->l4_len;
}

/* `room`: bytes of the frame from the IP header on, at least an IPv4 header. */
static __rte_always_inline bool
plain_ip4(struct pkt *p, struct plain *f, uint32_t room)
{
	const struct rte_ipv4_hdr *ih = (const struct rte_ipv4_hdr *)f->ip;
	const rte_be16_t fragment = RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK);
	uint32_t total = rte_be_to_cpu_16(ih->total_length);

	if (unlikely(ih->version_ihl != RTE_IPV4_VHL_DEF || ih->fragment_offset & fragment ||
		     total < sizeof(*ih) || total > room))
		return false;
	f->l3_len = sizeof(*ih);
	f->l4_len = total - (uint32_t)sizeof(*ih);
	f->proto = ih->next_proto_id;
	if (unlikely(!plain_l4(f) || !parse_ip4_sum_good(f->m, ih, sizeof(*ih))))
		return false;
	plain_store(p, f, TUPLE_IPV4, RTE_ETHER_TYPE_IPV4,
		plain_sum(f, csum_load64(&ih->src_addr)));
	PLAIN_PUT(p, tuple.src.w[0], ih->src_addr);
	PLAIN_PUT(p, tuple.src.w[2], 0);
	PLAIN_PUT(p, tuple.dst.w[0], ih->dst_addr);
	PLAIN_PUT(p, tuple.dst.w[2], 0);
	return true;
}

static __rte_always_inline bool
plain_ip6(struct pkt *p, struct plain *f, uint32_t room)
{
	const struct rte_ipv6_hdr *ih = (const struct rte_ipv6_hdr *)f->ip;

	if (unlikely(room < sizeof(*ih) || f->ip[0] >> 4 != 6))
		return false;
	f->l3_len = sizeof(*ih);
	f->l4_len = rte_be_to_cpu_16(ih->payload_len);
	f->proto = ih->proto;
	if (unlikely(f->l4_len > room - sizeof(*ih) || !plain_l4(f)))
		return false;
	plain_store(p, f, TUPLE_IPV6, RTE_ETHER_TYPE_IPV6,
		plain_sum(f, csum_words(ih->src_addr, 2 * sizeof(p->tuple.src))));
	memcpy(&p->tuple.src, ih->src_addr, sizeof(p->tuple.src));
	memcpy(&p->tuple.dst, ih->dst_addr, sizeof(p->tuple.dst));
	return true;
}

/* True: *p is what parse_frame() makes of it, which returns SL_DROP_NONE: PKT_IP, of TCP or UDP, no
 * reason, one tag at most; short ones with PKT_CSUM_GOOD if csum_l4_good(). False: it is not plain,
 * and *p is as it was. */
static __rte_always_inline bool
parse_plain(struct pkt *p, struct rte_mbuf *m)
{
	uint8_t *d = rte_pktmbuf_mtod(m, uint8_t *);
	struct plain f = {.m = m, .l3_off = RTE_ETHER_HDR_LEN};
	uint32_t len = m->data_len;
	uint16_t type;

	if (unlikely(m->nb_segs != 1 || m->ol_flags & PARSE_TAGS_STRIPPED || len < PLAIN_MIN))
		return false;
	type = parse_be16(d + 2 * RTE_ETHER_ADDR_LEN);
	if (type == RTE_ETHER_TYPE_VLAN) {
		f.tags = plain_word(type, parse_be16(d + RTE_ETHER_HDR_LEN), 0, 1);
		type = parse_be16(d + RTE_ETHER_HDR_LEN + 2);
		f.l3_off += RTE_VLAN_HLEN;
	}
	f.ip = d + f.l3_off;
	if (likely(type == RTE_ETHER_TYPE_IPV4))
		return plain_ip4(p, &f, len - f.l3_off);
	return type == RTE_ETHER_TYPE_IPV6 && plain_ip6(p, &f, len - f.l3_off);
}

#endif
