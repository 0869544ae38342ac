/* SPDX-License-Identifier: BSD-3-Clause */
#include "parse.h"

#include <netinet/in.h>

#include <rte_branch_prediction.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_sctp.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "csum.h"
#include "parse_private.h"

#define TPID_LEGACY_QINQ 0x9100

/* Enough for the headers of all but odd packets. */
#define PULL_FIRST 256

static inline enum sl_drop
parse_tcp(struct pkt *p, const uint8_t *l4, uint32_t len, uint32_t avail)
{
	const struct rte_tcp_hdr *th = (const struct rte_tcp_hdr *)l4;
	uint32_t hdr_len;

	if (unlikely(avail < sizeof(*th)))
		return parse_short(len, sizeof(*th), SL_DROP_INV_L4_TRUNCATED);
	hdr_len = (th->data_off >> 4) * 4u;
	if (unlikely(hdr_len < sizeof(*th)))
		return SL_DROP_INV_L4_TRUNCATED;
	if (unlikely(avail < hdr_len))
		return parse_short(len, hdr_len, SL_DROP_INV_L4_TRUNCATED);
	p->l4_hdr_len = (uint16_t)hdr_len;
	p->tcp_flags = th->tcp_flags;
	if (unlikely(!parse_tcp_flags_valid(th->tcp_flags)))
		return SL_DROP_INV_TCP_FLAGS;
	p->tuple.sport = th->src_port;
	p->tuple.dport = th->dst_port;
	return SL_DROP_NONE;
}

static inline enum sl_drop
parse_udp(struct pkt *p, const uint8_t *l4, uint32_t len, uint32_t avail)
{
	const struct rte_udp_hdr *uh = (const struct rte_udp_hdr *)l4;
	uint32_t dgram_len;

	if (unlikely(avail < sizeof(*uh)))
		return parse_short(len, sizeof(*uh), SL_DROP_INV_L4_TRUNCATED);
	dgram_len = rte_be_to_cpu_16(uh->dgram_len);
	if (unlikely(dgram_len < sizeof(*uh) || dgram_len > len))
		return SL_DROP_INV_L4_TRUNCATED;
	p->l4_hdr_len = sizeof(*uh);
	p->tuple.sport = uh->src_port;
	p->tuple.dport = uh->dst_port;
	return SL_DROP_NONE;
}

/* The IP header is sound and stored; its transport header is `off` bytes behind it. */
static inline enum sl_drop
parse_l4(struct pkt *p, uint8_t *ip, uint32_t off, uint32_t len, uint32_t avail, uint8_t proto)
{
	uint8_t *l4 = ip + off;

	p->l4 = l4;
	p->l3_len = (uint16_t)off;
	p->l4_len = (uint16_t)(len - off);
	p->proto = proto;
	p->tuple.proto = proto;
	if (likely(proto == IPPROTO_TCP))
		return parse_tcp(p, l4, len - off, avail - off);
	if (likely(proto == IPPROTO_UDP))
		return parse_udp(p, l4, len - off, avail - off);
	return parse_l4_other(p, avail - off);
}

static inline void
found_ip(struct pkt *p, uint8_t *ip, uint8_t family, uint32_t len)
{
	p->flags = PKT_IP | parse_csum_flags(p->mbuf->ol_flags);
	p->l3 = ip;
	p->ip_bytes = len;
	p->tuple.family = family;
}

/* An IPv4 header that is not 20 bytes of version 4. */
static enum sl_drop
check_ip4_first_byte(uint8_t first, uint32_t len, uint32_t avail)
{
	uint32_t hdr_len = (first & 0x0f) * 4u;

	if (first >> 4 != 4)
		return SL_DROP_IP_VERSION;
	if (hdr_len < sizeof(struct rte_ipv4_hdr))
		return SL_DROP_IP_HEADER;
	if (avail < hdr_len)
		return parse_short(len, hdr_len, SL_DROP_IP_HEADER);
	return SL_DROP_NONE;
}

static __rte_noinline enum sl_drop
found_fragment4(struct pkt *p, const struct rte_ipv4_hdr *ih, uint32_t hdr_len, uint32_t total)
{
	uint16_t field = rte_be_to_cpu_16(ih->fragment_offset);

	p->proto = ih->next_proto_id;
	p->tuple.proto = ih->next_proto_id;
	p->l3_len = (uint16_t)hdr_len;
	p->l4_len = (uint16_t)(total - hdr_len);
	p->frag_off = (uint16_t)((field & RTE_IPV4_HDR_OFFSET_MASK) * RTE_IPV4_HDR_OFFSET_UNITS);
	p->frag_more = field & RTE_IPV4_HDR_MF_FLAG;
	p->frag_id = rte_be_to_cpu_16(ih->packet_id);
	return PARSE_FRAGMENT;
}

/* `len` is what the frame has from `ip` on, padding included. */
static inline enum sl_drop
parse_ip4(struct pkt *p, uint8_t *ip, uint32_t len, uint32_t avail)
{
	const struct rte_ipv4_hdr *ih = (const struct rte_ipv4_hdr *)ip;
	uint32_t hdr_len = sizeof(*ih), total;

	if (unlikely(avail < sizeof(*ih)))
		return parse_short(len, sizeof(*ih), SL_DROP_IP_TRUNCATED);
	if (unlikely(ih->version_ihl != RTE_IPV4_VHL_DEF)) {
		enum sl_drop r = check_ip4_first_byte(ih->version_ihl, len, avail);

		if (r != SL_DROP_NONE)
			return r;
		hdr_len = (ih->version_ihl & RTE_IPV4_HDR_IHL_MASK) * 4u;
	}
	if (unlikely(!parse_ip4_sum_good(p->mbuf, ih, hdr_len)))
		return SL_DROP_IP_CHECKSUM;
	total = rte_be_to_cpu_16(ih->total_length);
	if (unlikely(total < hdr_len || total > len))
		return SL_DROP_IP_LENGTH;
	found_ip(p, ip, TUPLE_IPV4, total);
	p->tuple.src.w[0] = ih->src_addr;
	p->tuple.dst.w[0] = ih->dst_addr;
	if (unlikely(ih->fragment_offset &
		     RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK))) {
		return found_fragment4(p, ih, hdr_len, total);
	}
	return parse_l4(p, ip, hdr_len, total, RTE_MIN(total, avail), ih->next_proto_id);
}

/* The least of a transport header that a first fragment of IPv6 has. */
static uint32_t
transport_len_min(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return sizeof(struct rte_tcp_hdr);
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_ICMPV6:
		return sizeof(struct rte_udp_hdr);
	case IPPROTO_SCTP:
		return sizeof(struct rte_sctp_hdr);
	default:
		return 0;
	}
}

/* `r` is what became of the walk; behind a first fragment's header it went on to the transport. */
static enum sl_drop
found_fragment6(struct pkt *p, const struct parse_ip6_end *end, enum sl_drop r, uint32_t total)
{
	const struct rte_ipv6_fragment_ext *h;

	p->proto = end->proto;
	p->tuple.proto = end->proto;
	if (r != SL_DROP_NONE)
		return r;
	h = (const struct rte_ipv6_fragment_ext *)(p->l3 + end->frag_at);
	p->l3_len = (uint16_t)(end->frag_at + sizeof(*h));
	p->l4_len = (uint16_t)(total - p->l3_len);
	p->frag_off = end->frag & RTE_IPV6_EHDR_FO_MASK;
	p->frag_more = end->frag & RTE_IPV6_EHDR_MF_MASK;
	p->frag_id = rte_be_to_cpu_32(h->id);
	if (p->frag_off == 0 && total - end->off < transport_len_min(end->proto))
		return SL_DROP_FRAG_INVALID;
	return PARSE_FRAGMENT;
}

static __rte_noinline enum sl_drop
parse_ip6_exts(struct pkt *p, uint8_t *ip, uint32_t total, uint32_t avail)
{
	struct parse_ip6_end end;
	enum sl_drop r = parse_ip6_walk(&end, ip, total, avail);

	if (end.frag != 0)
		return found_fragment6(p, &end, r, total);
	if (r != SL_DROP_NONE)
		return r;
	return parse_l4(p, ip, end.off, total, avail, end.proto);
}

static inline enum sl_drop
parse_ip6(struct pkt *p, uint8_t *ip, uint32_t len, uint32_t avail)
{
	const struct rte_ipv6_hdr *ih = (const struct rte_ipv6_hdr *)ip;
	uint32_t total;

	if (unlikely(avail < sizeof(*ih)))
		return parse_short(len, sizeof(*ih), SL_DROP_IP_TRUNCATED);
	if (unlikely(ip[0] >> 4 != 6))
		return SL_DROP_IP_VERSION;
	total = sizeof(*ih) + rte_be_to_cpu_16(ih->payload_len);
	/* A jumbogram (RFC 2675), or a hop-by-hop header that is not there. */
	if (unlikely(total == sizeof(*ih) && ih->proto == IPPROTO_HOPOPTS))
		return SL_DROP_IP_LENGTH;
	if (unlikely(total > len))
		return SL_DROP_IP_LENGTH;
	found_ip(p, ip, TUPLE_IPV6, total);
	memcpy(&p->tuple.src, ih->src_addr, sizeof(p->tuple.src));
	memcpy(&p->tuple.dst, ih->dst_addr, sizeof(p->tuple.dst));
	avail = RTE_MIN(total, avail);
	if (likely(ih->proto == IPPROTO_TCP || ih->proto == IPPROTO_UDP))
		return parse_l4(p, ip, sizeof(*ih), total, avail, ih->proto);
	return parse_ip6_exts(p, ip, total, avail);
}

/* Line by line: one memset of all becomes `rep stos`, which takes longer than all the rest. */
static inline void
clear(struct pkt *p)
{
	char *line = (char *)p;

	_Static_assert(sizeof(*p) == 3 * RTE_CACHE_LINE_MIN_SIZE, "a memset for each line");
	memset(line, 0, RTE_CACHE_LINE_MIN_SIZE);
	memset(line + RTE_CACHE_LINE_MIN_SIZE, 0, RTE_CACHE_LINE_MIN_SIZE);
	memset(line + 2 * RTE_CACHE_LINE_MIN_SIZE, 0, RTE_CACHE_LINE_MIN_SIZE);
}

static inline bool
is_tpid(uint16_t type)
{
	return type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ ||
	       type == TPID_LEGACY_QINQ;
}

static __rte_always_inline enum sl_drop
parse_ether(struct pkt *p, struct rte_mbuf *m, uint32_t len)
{
	uint8_t *d = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t avail = m->data_len, off = RTE_ETHER_HDR_LEN;
	unsigned int tags = 0;
	uint16_t type;

	clear(p);
	p->mbuf = m;
	if (unlikely(avail < off))
		return parse_short(len, off, SL_DROP_RUNT);
	type = parse_be16(d + 2 * RTE_ETHER_ADDR_LEN);
	while (is_tpid(type)) {
		if (unlikely(tags == 2))
			return SL_DROP_VLAN_DEPTH;
		if (unlikely(avail < off + RTE_VLAN_HLEN))
			return parse_short(len, off + RTE_VLAN_HLEN, SL_DROP_RUNT);
		if (tags == 0) {
			p->tpid = type;
			p->outer_tci = parse_be16(d + off);
		} else {
			p->inner_tci = parse_be16(d + off);
		}
		p->n_tags = (uint8_t)++tags;
		type = parse_be16(d + off + 2);
		off += RTE_VLAN_HLEN;
	}
	p->ethertype = type;
	p->l3_off = (uint16_t)off;
	if (likely(type == RTE_ETHER_TYPE_IPV4))
		return parse_ip4(p, d + off, len - off, avail - off);
	if (likely(type == RTE_ETHER_TYPE_IPV6))
		return parse_ip6(p, d + off, len - off, avail - off);
	if (type == RTE_ETHER_TYPE_ARP)
		p->flags = PKT_ARP;
	return SL_DROP_NONE;
}

static inline enum sl_drop
finish(struct pkt *p, enum sl_drop r)
{
	if (likely(r == SL_DROP_NONE))
		return r;
	if (r == PARSE_FRAGMENT) {
		p->flags |= PKT_FRAGMENT;
		return r;
	}
	p->reason = (uint8_t)r;
	if (r < SL_DROP_FIRST_INVALID)
		return r;
	p->flags |= PKT_L4_BAD;
	return SL_DROP_NONE;
}

/*
 * Moves bytes from the following segments to the end of the first, until it has n or there is no
 * room, or a segment is shared. What is emptied is freed.
 */
static void
pull(struct rte_mbuf *m, uint32_t n)
{
	struct rte_mbuf *seg;
	uint32_t room, take;

	if (!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1)
		return;
	while (m->data_len < n && (seg = m->next) != NULL) {
		room = rte_pktmbuf_tailroom(m);
		take = RTE_MIN(RTE_MIN(n - m->data_len, room), (uint32_t)seg->data_len);
		if (rte_mbuf_refcnt_read(seg) != 1 || (take == 0 && seg->data_len != 0))
			return;
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, m->data_len),
			rte_pktmbuf_mtod(seg, uint8_t *), take);
		m->data_len = (uint16_t)(m->data_len + take);
		seg->data_off = (uint16_t)(seg->data_off + take);
		seg->data_len = (uint16_t)(seg->data_len - take);
		if (seg->data_len == 0) {
			m->next = seg->next;
			m->nb_segs--;
			rte_pktmbuf_free_seg(seg);
		}
	}
}

static enum sl_drop
restore_tag(struct rte_mbuf *m, uint16_t tpid, uint16_t tci)
{
	rte_be16_t type = rte_cpu_to_be_16(tpid);

	if (m->data_len < RTE_ETHER_HDR_LEN)
		return SL_DROP_RUNT;
	m->vlan_tci = tci;
	if (rte_vlan_insert(&m) != 0)
		return SL_DROP_TX_HEADROOM;
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 2 * RTE_ETHER_ADDR_LEN), &type, sizeof(type));
	return SL_DROP_NONE;
}

/* Puts the tags that the port took out back in, so that there is one place where tags are. */
static enum sl_drop
restore_tags(struct rte_mbuf *m)
{
	uint64_t stripped = m->ol_flags & PARSE_TAGS_STRIPPED;
	enum sl_drop r = SL_DROP_NONE;

	if (stripped & RTE_MBUF_F_RX_VLAN_STRIPPED)
		r = restore_tag(m, RTE_ETHER_TYPE_VLAN, m->vlan_tci);
	if (r == SL_DROP_NONE && stripped & RTE_MBUF_F_RX_QINQ_STRIPPED)
		r = restore_tag(m, RTE_ETHER_TYPE_QINQ, m->vlan_tci_outer);
	m->ol_flags &= ~PARSE_TAGS_STRIPPED;
	return r;
}

/* Not inlined, so that there is but one more copy of the hot path. */
static __rte_noinline enum sl_drop
parse_segments(struct pkt *p, struct rte_mbuf *m)
{
	return parse_ether(p, m, m->pkt_len);
}

/* A chained frame, or one whose tags are not in the data. */
static __rte_noinline enum sl_drop
parse_uncommon(struct pkt *p, struct rte_mbuf *m)
{
	enum sl_drop r = SL_DROP_NONE;

	pull(m, PULL_FIRST);
	if (m->ol_flags & PARSE_TAGS_STRIPPED)
		r = restore_tags(m);
	if (r != SL_DROP_NONE) {
		clear(p);
		p->mbuf = m;
		return finish(p, r);
	}
	r = parse_segments(p, m);
	if (r == PARSE_MORE) {
		pull(m, m->pkt_len);
		r = parse_segments(p, m);
	}
	if (r == PARSE_MORE)
		r = SL_DROP_IP_TRUNCATED;
	return finish(p, r);
}

enum sl_drop
parse_frame(struct pkt *p, struct rte_mbuf *m)
{
	if (unlikely(m->nb_segs != 1 || m->ol_flags & PARSE_TAGS_STRIPPED))
		return parse_uncommon(p, m);
	return finish(p, parse_ether(p, m, m->data_len));
}

enum sl_drop
parse_view(struct pkt *p, struct rte_mbuf *m)
{
	enum sl_drop r = parse_segments(p, m);

	return finish(p, r == PARSE_MORE ? SL_DROP_IP_TRUNCATED : r);
}
