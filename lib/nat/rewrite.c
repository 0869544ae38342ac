/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rewrite of a packet. What it is to become is the other direction's tuple turned round, which
 * is read without the entry's lock: tuples are constant while an entry is LIVE or DYING, and a new
 * entry in its place has another generation. So the packet is written first and the generation
 * looked at last; when it has changed, what was written is worth nothing and the packet is dropped.
 */
#include "nat_private.h"

#include <rte_ip.h>
#include <rte_sctp.h>

#include "csum.h"
#include "drop.h"
#include "frag.h"

#define TCP_SUM_AT  16u
#define UDP_SUM_AT  6u
#define ICMP_SUM_AT 2u
#define ICMP_ID_AT  4u

/* Reads of an entry that may just be made anew. */
#define UNLOCKED __attribute__((no_sanitize_thread))

/* Write the addresses; return what changed in them. */
UNLOCKED static inline uint64_t
write_ip4(uint8_t *l3, const struct tuple *to)
{
	struct rte_ipv4_hdr *ih = (struct rte_ipv4_hdr *)(void *)l3;
	rte_be32_t src = to->dst.w[0], dst = to->src.w[0];
	uint64_t diff = csum_diff32(ih->src_addr, src) + csum_diff32(ih->dst_addr, dst);

	ih->src_addr = src;
	ih->dst_addr = dst;
	ih->hdr_checksum = csum_adjust(ih->hdr_checksum, diff);
	return diff;
}

UNLOCKED static inline uint64_t
write_ip6(uint8_t *l3, const struct tuple *to)
{
	struct rte_ipv6_hdr *ih = (struct rte_ipv6_hdr *)(void *)l3;
	uint64_t diff = 0;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		rte_be32_t src = to->dst.w[i], dst = to->src.w[i], old[2];

		memcpy(&old[0], ih->src_addr + i * sizeof(src), sizeof(src));
		memcpy(&old[1], ih->dst_addr + i * sizeof(dst), sizeof(dst));
		diff += csum_diff32(old[0], src) + csum_diff32(old[1], dst);
		memcpy(ih->src_addr + i * sizeof(src), &src, sizeof(src));
		memcpy(ih->dst_addr + i * sizeof(dst), &dst, sizeof(dst));
	}
	return diff;
}

static inline uint16_t
load16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static inline void
store16(uint8_t *at, uint16_t v)
{
	memcpy(at, &v, sizeof(v));
}

/* Writes the ports; returns what changed in them. */
UNLOCKED static inline uint64_t
write_ports(uint8_t *l4, const struct tuple *to)
{
	uint64_t diff = csum_diff16(load16(l4), to->dport) + csum_diff16(load16(l4 + 2), to->sport);

	store16(l4, to->dport);
	store16(l4 + 2, to->sport);
	return diff;
}

UNLOCKED static inline void
write_icmp(uint8_t *l4, const struct tuple *to, uint64_t diff)
{
	diff += csum_diff16(load16(l4 + ICMP_ID_AT), to->sport);
	store16(l4 + ICMP_ID_AT, to->sport);
	store16(l4 + ICMP_SUM_AT, csum_adjust(load16(l4 + ICMP_SUM_AT), diff));
}

/* `diff`: of the addresses, which are in the pseudo-header of all but ICMP over IPv4. */
UNLOCKED static void
write_other(struct pkt *p, const struct tuple *to, uint64_t diff)
{
	switch (p->proto) {
	case IPPROTO_UDPLITE:
		diff += write_ports(p->l4, to);
		store16(p->l4 + UDP_SUM_AT, csum_adjust_udp(load16(p->l4 + UDP_SUM_AT), diff));
		break;
	case IPPROTO_SCTP:
		write_ports(p->l4, to);
		((struct rte_sctp_hdr *)(void *)p->l4)->cksum = csum_sctp(p);
		break;
	case IPPROTO_ICMP:
		if (to->family == TUPLE_IPV4)
			write_icmp(p->l4, to, 0);
		break;
	case IPPROTO_ICMPV6:
		if (to->family == TUPLE_IPV6)
			write_icmp(p->l4, to, diff);
		break;
	default:
		break;
	}
}

UNLOCKED static inline void
write_packet(struct pkt *p, const struct tuple *to)
{
	uint64_t diff;
	uint8_t *sum;

	if (likely(p->tuple.family == TUPLE_IPV4))
		diff = write_ip4(p->l3, to);
	else
		diff = write_ip6(p->l3, to);
	if (likely(p->proto == IPPROTO_TCP)) {
		diff += write_ports(p->l4, to);
		sum = p->l4 + TCP_SUM_AT;
		store16(sum, csum_adjust(load16(sum), diff));
	} else if (likely(p->proto == IPPROTO_UDP)) {
		diff += write_ports(p->l4, to);
		sum = p->l4 + UDP_SUM_AT;
		store16(sum, csum_adjust_udp(load16(sum), diff));
	} else {
		write_other(p, to, diff);
	}
}

/*
 * Fragments of several hosts that have the same source now must not have the same identification
 * (RFC 6864), so they are numbered here. Called after the addresses are written.
 */
rte_be16_t
nat_ip_id(struct nat *nat, const struct tuple *t)
{
	struct tuple key = {
		.family = TUPLE_IPV4, .proto = t->proto, .src = t->src, .dst = t->dst};
	uint16_t *counter = &nat->ip_id[sl_hash(&nat->hasher, &key) % NAT_IP_IDS];

	return rte_cpu_to_be_16(__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED));
}

static void
number_datagram(struct nat *nat, struct pkt *p)
{
	struct rte_ipv4_hdr *ih = (struct rte_ipv4_hdr *)(void *)p->l3;
	struct tuple t = {.proto = p->proto};
	rte_be16_t id;

	t.src.w[0] = ih->src_addr;
	t.dst.w[0] = ih->dst_addr;
	id = nat_ip_id(nat, &t);
	ih->hdr_checksum = csum_adjust(ih->hdr_checksum, csum_diff16(ih->packet_id, id));
	ih->packet_id = id;
}

/* Whether packets of that direction get another source. */
static inline bool
source_changes(uint16_t status, unsigned int dir)
{
	return status & (dir == CT_ORIGINAL ? CT_SRC_NAT : CT_DST_NAT);
}

/* An error's source is a router anywhere, and stays unless the side it is on is hidden. */
UNLOCKED static void
write_error(struct pkt *p, const struct ct_entry *e, uint16_t status)
{
	const struct tuple *to = ct_tuple(e, !p->ct_dir);
	struct tuple outer = *to;

	if (!source_changes(status, p->ct_dir)) {
		memset(&outer.dst, 0, sizeof(outer.dst));
		if (to->family == TUPLE_IPV4)
			memcpy(&outer.dst, p->l3 + offsetof(struct rte_ipv4_hdr, src_addr), 4);
		else
			memcpy(&outer.dst, p->l3 + offsetof(struct rte_ipv6_hdr, src_addr), 16);
	}
	if (to->family == TUPLE_IPV4) {
		write_ip4(p->l3, &outer);
		nat_rewrite_inner(p, to, 0);
	} else {
		nat_rewrite_inner(p, to, write_ip6(p->l3, &outer));
	}
}

UNLOCKED bool
nat_rewrite(struct nat_thread *t, struct pkt *p)
{
	struct ct_entry *e = p->ct;
	uint16_t status = __atomic_load_n(&e->status, __ATOMIC_RELAXED);

	if (likely(status & (CT_SRC_NAT | CT_DST_NAT))) {
		if (unlikely(p->flags & PKT_ICMP_ERROR))
			write_error(p, e, status);
		else
			write_packet(p, ct_tuple(e, !p->ct_dir));
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (unlikely(__atomic_load_n(&e->gen, __ATOMIC_RELAXED) != p->ct_gen)) {
		p->reason = SL_DROP_INV_RACE;
		return false;
	}
	if (unlikely(p->train != NULL) && status & (CT_SRC_NAT | CT_DST_NAT)) {
		if (p->tuple.family == TUPLE_IPV4 && source_changes(status, p->ct_dir))
			number_datagram(t->nat, p);
		frag_train_update(p->train);
	}
	return true;
}
