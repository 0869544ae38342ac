/* SPDX-License-Identifier: BSD-3-Clause */
#include "ready.h"

#include <rte_ether.h>

#include "nat_private.h"

static void
store(uint64_t to[2], const struct nat_ready *r)
{
	uint64_t word[2];

	memcpy(word, r, sizeof(word));
	__atomic_store_n(&to[0], word[0], __ATOMIC_RELAXED);
	__atomic_store_n(&to[1], word[1], __ATOMIC_RELAXED);
}

struct end {
	rte_be32_t addr;
	rte_be16_t port;
};

static void
make(struct ct_dir_part *part, struct end old, struct end new, const struct nat_end *station)
{
	uint64_t diff = csum_diff32(old.addr, new.addr);
	struct nat_ready r = {
		.addr = new.addr,
		.port = new.port,
		.ip_diff = csum_fold(diff),
		.l4_diff = csum_fold(diff + csum_diff16(old.port, new.port)),
	};

	memcpy(r.mac, station->mac, sizeof(r.mac));
	store(part->nat_ready, &r);
}

static bool
may_be_ready(const struct ct_entry *e)
{
	const struct tuple *o = &e->orig.tuple;
	unsigned int ends = e->status & (CT_SRC_NAT | CT_DST_NAT);

	return o->family == TUPLE_IPV4 && e->reply.tuple.family == TUPLE_IPV4 &&
	       (o->proto == IPPROTO_TCP || o->proto == IPPROTO_UDP) &&
	       (ends == CT_SRC_NAT || ends == CT_DST_NAT) &&
	       !(e->status & (CT_ACCT | CT_HAIRPIN));
}

void
nat_ready_make(struct ct_entry *e)
{
	const struct nat_slot *slot = nat_slot_const(e);
	const struct tuple *o = &e->orig.tuple, *r = &e->reply.tuple;
	struct end inside, outside;

	e->status &= (uint16_t)~CT_NAT_READY;
	if (!may_be_ready(e))
		return;
	if (e->status & CT_SRC_NAT) {
		inside = (struct end){o->src.w[0], o->sport};
		outside = (struct end){r->dst.w[0], r->dport};
	} else {
		inside = (struct end){o->dst.w[0], o->dport};
		outside = (struct end){r->src.w[0], r->sport};
	}
	make(&e->orig, inside, outside, &slot->end[CT_REPLY]);
	make(&e->reply, outside, inside, &slot->end[CT_ORIGINAL]);
	e->status |= CT_NAT_READY;
	if (!rte_is_zero_ether_addr((const struct rte_ether_addr *)slot->end[CT_REPLY].mac))
		e->status |= CT_NAT_MET;
}

void
nat_end_set(struct ct_entry *e, unsigned int dir, const uint8_t mac[6])
{
	struct nat_end end = nat_slot(e)->end[dir];
	struct ct_dir_part *to = ct_dir_part(e, dir ^ 1u);
	struct nat_ready r;
	uint64_t word;

	memcpy(end.mac, mac, sizeof(end.mac));
	memcpy(&word, &end, sizeof(word));
	__atomic_store_n(&e->nat[dir], word, __ATOMIC_RELAXED);
	if (dir == CT_REPLY)
		e->status |= CT_NAT_MET;
	if (!(e->status & CT_NAT_READY))
		return;
	r = nat_ready_load(e, dir ^ 1u);
	memcpy(r.mac, mac, sizeof(r.mac));
	store(to->nat_ready, &r);
}
