/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets longer than the MTU of the link they leave on. Of IPv4 without DF they are fragmented, as
 * they leave; all others are dropped, and their sender is told (RFC 1191, RFC 8201) in an error
 * that quotes the packet as he sent it: this comes before it is translated.
 */
#include "datapath_rules.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_ip_frag.h>
#include <rte_mbuf.h>

#include "frag.h"
#include "icmp_error.h"
#include "link.h"
#include "nat64.h"

#define IP6_MTU_MIN 1280u /* RFC 8200 5: no link has less */

/* What one packet may be cut into: a jumbo frame at the smallest MTU. */
#define PIECES_MAX 256u

static uint32_t
mtu_of(const struct pkt *p)
{
	uint32_t mtu = p->out->mtu;

	return p->tuple.family == TUPLE_IPV6 ? RTE_MAX(mtu, IP6_MTU_MIN) : mtu;
}

static bool
may_fragment(const struct pkt *p)
{
	const struct rte_ipv4_hdr *ih = (const struct rte_ipv4_hdr *)p->l3;

	return p->tuple.family == TUPLE_IPV4 &&
	       !(ih->fragment_offset & RTE_BE16(RTE_IPV4_HDR_DF_FLAG));
}

/* The longest of what leaves: the packet, or its longest fragment. */
static uint32_t
longest(const struct pkt *p, uint32_t *first)
{
	if (p->train != NULL)
		return frag_train_longest(p->train, first);
	*first = p->ip_bytes;
	return p->ip_bytes;
}

void
datapath_too_big(struct worker *w, struct pkt *p)
{
	bool ip6 = p->tuple.family == TUPLE_IPV6;
	struct icmp_error e = {.type = ip6 ? ICMP6_PACKET_TOO_BIG : ICMP_UNREACHABLE,
		.code = ip6 ? 0 : ICMP_CODE_FRAG_NEEDED};
	uint32_t mtu = mtu_of(p), first;

	/* With NAT64 it changes its length first. */
	if (p->ct != NULL && nat64_translated(p->ct))
		return;
	if (longest(p, &first) <= mtu || may_fragment(p))
		return;
	e.word = mtu;
	/* Of fragments only the first may be told of (RFC 1122 3.2.2). */
	if (first > mtu)
		datapath_icmp_error(w, p, &e);
	datapath_drop(w, p, SL_DROP_TOO_BIG);
}

/* Puts the frame's header before a piece that begins with its IP header. False: no room. */
static bool
finish_piece(struct rte_mbuf *m, const uint8_t *l2, uint16_t l2_len)
{
	struct rte_ipv4_hdr *ih = rte_pktmbuf_mtod(m, struct rte_ipv4_hdr *);
	char *frame;

	ih->hdr_checksum = 0;
	ih->hdr_checksum = (rte_be16_t)~rte_raw_cksum(
		ih, (ih->version_ihl & RTE_IPV4_HDR_IHL_MASK) * 4u);
	/* One segment where it fits, since not every port takes more. */
	if (m->pkt_len - m->data_len <= rte_pktmbuf_tailroom(m) && rte_pktmbuf_linearize(m) != 0)
		return false;
	frame = rte_pktmbuf_prepend(m, l2_len);
	if (frame == NULL)
		return false;
	memcpy(frame, l2, l2_len);
	return true;
}

/* Takes header and padding off the frame. False: it is not as long as its IP header says. */
static bool
strip_frame(struct rte_mbuf *m, uint16_t l2_len)
{
	const struct rte_ipv4_hdr *ih;
	uint16_t total;

	if (rte_pktmbuf_adj(m, l2_len) == NULL)
		return false;
	ih = rte_pktmbuf_mtod(m, const struct rte_ipv4_hdr *);
	total = rte_be_to_cpu_16(ih->total_length);
	return m->pkt_len >= total && rte_pktmbuf_trim(m, (uint16_t)(m->pkt_len - total)) == 0;
}

void
datapath_fragment(struct worker *w, struct pkt *p)
{
	uint16_t l2_len = (uint16_t)(RTE_ETHER_HDR_LEN + p->n_tags * RTE_VLAN_HLEN);
	struct rte_mbuf *piece[PIECES_MAX], *m = p->mbuf;
	uint8_t l2[RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN];
	bool late = p->late & PKT_LATE_HEADER;
	uint32_t mtu = late ? datapath_nat64_piece() : p->out->mtu;
	struct pkt part = *p;
	int n = -1, i;

	memcpy(l2, rte_pktmbuf_mtod(m, const uint8_t *), l2_len);
	if (strip_frame(m, l2_len))
		n = rte_ipv4_fragment_packet(m, piece, PIECES_MAX, (uint16_t)mtu, w->gw->pool,
			w->gw->pool);
	rte_pktmbuf_free(m);
	if (n < 0)
		datapath_drop(w, p, SL_DROP_TOO_BIG);
	for (i = 0; i < n; i++) {
		part.mbuf = piece[i];
		if (finish_piece(piece[i], l2, l2_len) &&
			(!late || datapath_nat64_header(&part, l2_len))) {
			datapath_emit_frame(w, &part);
		} else {
			datapath_drop(w, &part, SL_DROP_TX_HEADROOM);
			rte_pktmbuf_free(piece[i]);
		}
	}
}
