/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Complete datagrams. A view is one mbuf of the pool, with the headers and the beginning of the
 * payload copied, and behind it the fragments themselves as further segments, each with its
 * headers cut off for as long as the view lives. Nothing is copied but that beginning, whatever
 * the datagram's size.
 */
#include <netinet/in.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "csum.h"
#include "frag_private.h"

/* Bytes of payload that are copied: transport headers, and what an ICMP error quotes of them. */
#define VIEW_PAYLOAD 512u

unsigned int
frag_train_len(const struct frag_train *train)
{
	return train->n;
}

static inline uint32_t
l3_off(const struct frag *f)
{
	return RTE_ETHER_HDR_LEN + f->tags.n * (uint32_t)RTE_VLAN_HLEN;
}

uint32_t
frag_train_longest(const struct frag_train *d, uint32_t *first)
{
	const struct frag_table *t = d->table;
	uint32_t i, len, longest = 0;

	*first = 0;
	for (i = d->first[0]; i != 0; i = t->frag[i].next[0]) {
		const struct frag *f = &t->frag[i];

		len = f->hdr - l3_off(f) + f->len;
		if (i == d->first[0])
			*first = len;
		longest = RTE_MAX(longest, len);
	}
	return longest;
}

/* Gives the fragments their headers back. */
static void
end_view(struct frag_train *d)
{
	struct frag_table *t = d->table;
	uint32_t i;

	if (d->view == NULL)
		return;
	for (i = d->first[0]; i != 0; i = t->frag[i].next[0]) {
		struct frag *f = &t->frag[i];
		struct rte_mbuf *m = f->mbuf;

		if (f->cut == 0)
			continue;
		m->data_off = (uint16_t)(m->data_off - f->cut);
		m->data_len = (uint16_t)(m->nb_segs == 1 ? m->pkt_len : m->data_len + f->cut);
		f->cut = 0;
		for (unsigned int segs = m->nb_segs; segs > 1; segs--)
			m = m->next;
		m->next = NULL;
	}
	d->view->next = NULL;
	d->view->nb_segs = 1;
	rte_pktmbuf_free(d->view);
	d->view = NULL;
}

/* Appends a fragment but for the first n bytes of its payload. Padding of a single segment is cut
 * off behind it; of more segments it was when the fragment came. */
static struct rte_mbuf *
link_fragment(struct rte_mbuf *view, struct rte_mbuf *tail, struct frag *f, uint32_t n)
{
	struct rte_mbuf *m = f->mbuf;

	f->cut = (uint16_t)(f->hdr + n);
	m->data_off = (uint16_t)(m->data_off + f->cut);
	m->data_len = (uint16_t)(m->nb_segs == 1 ? f->len - n : m->data_len - (uint32_t)f->cut);
	view->nb_segs = (uint16_t)(view->nb_segs + m->nb_segs);
	tail->next = m;
	return rte_pktmbuf_lastseg(m);
}

/* The first n bytes of payload, or less when a fragment's first segment has not all of its own, are
 * copied behind the headers; the rest is linked. */
static void
add_payload(struct frag_train *d, struct rte_mbuf *view, uint32_t n)
{
	struct frag_table *t = d->table;
	struct rte_mbuf *tail = view;
	uint32_t i, take;

	view->pkt_len = view->data_len + d->end;
	for (i = d->first[0]; i != 0; i = t->frag[i].next[0]) {
		struct frag *f = &t->frag[i];

		take = RTE_MIN(
			RTE_MIN(n, (uint32_t)f->len), (uint32_t)(f->mbuf->data_len - f->hdr));
		rte_memcpy(rte_pktmbuf_mtod_offset(view, char *, view->data_len),
			rte_pktmbuf_mtod_offset(f->mbuf, char *, f->hdr), take);
		view->data_len = (uint16_t)(view->data_len + take);
		f->copied = (uint16_t)take;
		n = take < f->len ? 0 : n - take;
		if (take < f->len)
			tail = link_fragment(view, tail, f, take);
	}
}

static void
whole_ip4(struct rte_ipv4_hdr *ih, uint32_t hdr_len, uint32_t payload)
{
	ih->total_length = rte_cpu_to_be_16((uint16_t)(hdr_len + payload));
	ih->fragment_offset &= ~RTE_BE16(RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK);
	ih->hdr_checksum = 0;
	ih->hdr_checksum = (rte_be16_t)~rte_raw_cksum(ih, hdr_len);
}

/* `hdr_len`: up to the fragment header, whose own next header is `next`. The walk ends there: the
 * parser has walked the same headers. */
static void
whole_ip6(struct rte_ipv6_hdr *ih, uint32_t hdr_len, uint32_t payload, uint8_t next)
{
	uint8_t *type = &ih->proto, *h = (uint8_t *)(ih + 1);

	while (h < (uint8_t *)ih + hdr_len) {
		uint32_t len = *type == IPPROTO_AH ? (h[1] + 2u) * 4 : (h[1] + 1u) * 8;

		type = h;
		h += len;
	}
	*type = next;
	ih->payload_len = rte_cpu_to_be_16((uint16_t)(hdr_len - sizeof(*ih) + payload));
}

struct rte_mbuf *
frag_train_view(struct frag_train *d, struct rte_mempool *pool, enum sl_drop *reason)
{
	const struct frag *f = &d->table->frag[d->first[0]];
	bool ip6 = d->key.family == TUPLE_IPV6;
	uint32_t len = f->hdr - (ip6 ? RTE_IPV6_FRAG_HDR_SIZE : 0u), l3 = l3_off(f);
	const uint8_t *frame = rte_pktmbuf_mtod(f->mbuf, const uint8_t *);
	struct rte_mbuf *view;
	char *ip;

	/* The first fragment may have more options than the others, by which each was checked. */
	*reason = SL_DROP_FRAG_INVALID;
	if (len - l3 - (ip6 ? sizeof(struct rte_ipv6_hdr) : 0u) + d->end > UINT16_MAX)
		return NULL;
	*reason = SL_DROP_FRAG_MEMORY;
	view = rte_pktmbuf_alloc(pool);
	if (view == NULL)
		return NULL;
	if (len + VIEW_PAYLOAD > rte_pktmbuf_tailroom(view)) {
		rte_pktmbuf_free(view);
		*reason = SL_DROP_IP_TRUNCATED;
		return NULL;
	}
	rte_memcpy(rte_pktmbuf_mtod(view, char *), frame, len);
	view->data_len = (uint16_t)len;
	ip = rte_pktmbuf_mtod_offset(view, char *, l3);
	if (ip6)
		whole_ip6((struct rte_ipv6_hdr *)(void *)ip, len - l3, d->end, frame[len]);
	else
		whole_ip4((struct rte_ipv4_hdr *)(void *)ip, len - l3, d->end);
	d->view = view;
	add_payload(d, view, VIEW_PAYLOAD);
	return view;
}

/* A fragment's IP header as it is in its frame, from which a view may have cut it off. */
static uint8_t *
fragment_l3(const struct frag *f)
{
	return rte_pktmbuf_mtod(f->mbuf, uint8_t *) - f->cut + l3_off(f);
}

static void
update_ip4(struct rte_ipv4_hdr *ih, const struct rte_ipv4_hdr *view)
{
	uint64_t diff = csum_diff32(ih->src_addr, view->src_addr) +
			csum_diff32(ih->dst_addr, view->dst_addr) +
			csum_diff16(ih->packet_id, view->packet_id);

	ih->src_addr = view->src_addr;
	ih->dst_addr = view->dst_addr;
	ih->packet_id = view->packet_id;
	ih->hdr_checksum = csum_adjust(ih->hdr_checksum, diff);
}

static void
update_ip6(struct rte_ipv6_hdr *ih, const struct rte_ipv6_hdr *view)
{
	memcpy(ih->src_addr, view->src_addr, sizeof(ih->src_addr));
	memcpy(ih->dst_addr, view->dst_addr, sizeof(ih->dst_addr));
}

void
frag_train_update(struct frag_train *d)
{
	struct frag *f = &d->table->frag[d->first[0]];
	const uint8_t *macs = rte_pktmbuf_mtod(d->view, const uint8_t *);
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(d->view, const uint8_t *, l3_off(f));
	const uint8_t *payload = rte_pktmbuf_mtod_offset(d->view, const uint8_t *,
		f->hdr - (d->key.family == TUPLE_IPV6 ? RTE_IPV6_FRAG_HDR_SIZE : 0u));
	uint32_t i;

	for (i = d->first[0]; i != 0; i = f->next[0]) {
		uint8_t *ip;

		f = &d->table->frag[i];
		ip = fragment_l3(f);
		memcpy(ip - l3_off(f), macs, 2 * RTE_ETHER_ADDR_LEN);
		if (d->key.family == TUPLE_IPV4)
			update_ip4((struct rte_ipv4_hdr *)(void *)ip, (const void *)l3);
		else
			update_ip6((struct rte_ipv6_hdr *)(void *)ip, (const void *)l3);
		memcpy(ip - l3_off(f) + f->hdr, payload, f->copied);
		payload += f->copied;
	}
}

struct rte_mbuf *
frag_train_next(struct frag_train *d, struct frag_tags *tags)
{
	uint32_t i = d->first[0];
	struct frag *f = &d->table->frag[i];
	struct rte_mbuf *m;

	end_view(d);
	if (i == 0)
		return NULL;
	m = f->mbuf;
	d->first[0] = f->next[0];
	d->n--;
	f->next[0] = 0;
	*tags = f->tags;
	frag_free_chain(d->table, i, 1);
	return m;
}

void
frag_train_free(struct frag_train *d)
{
	struct frag_table *t = d->table;
	uint32_t i;

	end_view(d);
	for (i = d->first[0]; i != 0; i = t->frag[i].next[0])
		rte_pktmbuf_free(t->frag[i].mbuf);
	frag_free_chain(t, d->first[0], d->n);
	frag_free_train(t, d);
}
