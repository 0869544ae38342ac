/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ends of a connection are written while it is an embryo, or under its lock, each as one word.
 * Packets read them without the lock, before the rewrite looks whether the entry is still theirs.
 */
#include "station.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "datapath_rules.h"
#include "link_address.h"
#include "nat.h"
#include "neighbour.h"
#include "ready.h"
#include "worker.h"

#define UNLOCKED __attribute__((no_sanitize_thread))

static struct rte_ether_hdr *
frame_of(const struct pkt *p)
{
	return rte_pktmbuf_mtod(p->mbuf, struct rte_ether_hdr *);
}

/* False: it is not known. */
UNLOCKED static bool
read_end(const struct ct_entry *e, unsigned int dir, struct rte_ether_addr *mac)
{
	uint64_t word = __atomic_load_n(&e->nat[dir], __ATOMIC_RELAXED);
	struct nat_end end;

	memcpy(&end, &word, sizeof(end));
	memcpy(mac, end.mac, sizeof(*mac));
	return !rte_is_zero_ether_addr(mac);
}

/* The gateway's own, by which the sender does not say whose station it means. */
static bool
to_gateway(const struct pkt *p)
{
	return rte_is_same_ether_addr(&frame_of(p)->dst_addr, &p->in->mac);
}

static enum neighbour_state
find(struct worker *w, struct link *out, const struct tuple *to, struct rte_ether_addr *mac)
{
	return out != NULL ? neighbour_find(w, out, to->family, &to->src, mac) : NEIGHBOUR_NONE;
}

static bool
unknown(struct pkt *p)
{
	p->reason = SL_DROP_NEIGHBOUR_UNKNOWN;
	return false;
}

static bool
no_network(struct worker *w, struct pkt *p)
{
	datapath_no_route(w, p);
	return unknown(p);
}

/* ---- admission ---- */

/* Both links have the destination in the same prefix: asks on both, and goes by who answers. */
static bool
is_neighbour(struct worker *w, struct pkt *p, struct link *peer, const struct tuple *to)
{
	struct rte_ether_addr mac;
	bool here = find(w, p->in, to, &mac) == NEIGHBOUR_KNOWN;

	return here && find(w, peer, to, &mac) != NEIGHBOUR_KNOWN;
}

static bool
turns_back(struct worker *w, struct pkt *p, struct link *peer)
{
	const struct tuple *to = &p->ct->reply.tuple;
	int here = link_on_link(p->in, to->family, &to->src), there = -1;

	if (here < 0 || link_has_address(p->in, to->family, &to->src))
		return false;
	if (peer != NULL)
		there = link_on_link(peer, to->family, &to->src);
	return here != there ? here > there : is_neighbour(w, p, peer, to);
}

struct link *
station_egress(struct worker *w, struct pkt *p)
{
	struct link *peer = link_peer(p->in);

	if (unlikely(p->ct->status & CT_HAIRPIN))
		return p->in;
	if (likely(!(p->ct->status & CT_DST_NAT)) || p->ct->status & CT_REFUSED ||
		!turns_back(w, p, peer))
		return peer;
	p->ct->status |= CT_HAIRPIN;
	return p->in;
}

/* Either link may have the destination, and nobody has answered: what is committed now could not
 * turn round later. */
static bool
undecided(const struct pkt *p)
{
	const struct tuple *to = &p->ct->reply.tuple;
	const struct link *peer = link_peer(p->in);
	int here = link_on_link(p->in, to->family, &to->src);

	return p->ct->status & CT_DST_NAT && !(p->ct->status & CT_HAIRPIN) && peer != NULL &&
	       here >= 0 && here == link_on_link(peer, to->family, &to->src);
}

bool
station_admit(struct worker *w, struct pkt *p)
{
	enum neighbour_state state;
	struct rte_ether_addr mac;

	nat_end_set(p->ct, CT_ORIGINAL, frame_of(p)->src_addr.addr_bytes);
	if (likely(!(p->ct->status & CT_HAIRPIN) && !to_gateway(p)) || p->ct->status & CT_REFUSED)
		return true;
	if (read_end(p->ct, CT_REPLY, &mac))
		return true;
	state = find(w, station_out(p), &p->ct->reply.tuple, &mac);
	if (state == NEIGHBOUR_KNOWN)
		nat_end_set(p->ct, CT_REPLY, mac.addr_bytes);
	else if (state == NEIGHBOUR_NONE)
		return no_network(w, p);
	else if (undecided(p))
		return unknown(p);
	return true;
}

/* ---- every packet ---- */

/* The connection keeps where one of its ends is. */
static void
keep(struct pkt *p, unsigned int dir, const struct rte_ether_addr *mac)
{
	struct ct_entry *e = p->ct;

	sl_lock(&e->lock);
	if (__atomic_load_n(&e->life, __ATOMIC_RELAXED) == CT_LIVE &&
		__atomic_load_n(&e->gen, __ATOMIC_RELAXED) == p->ct_gen)
		nat_end_set(e, dir, mac->addr_bytes);
	sl_unlock(&e->lock);
}

/* The first answer says where the responder is. */
static void
learn(struct pkt *p)
{
	const struct rte_ether_addr *from = &frame_of(p)->src_addr;
	struct rte_ether_addr known;

	if (likely(read_end(p->ct, CT_REPLY, &known)) || p->flags & PKT_ICMP_ERROR ||
		!rte_is_unicast_ether_addr(from))
		return;
	keep(p, CT_REPLY, from);
}

/* The end that the packet goes to is not known to the connection. */
static __rte_noinline bool
write_found(struct worker *w, struct pkt *p)
{
	struct tuple to = *ct_tuple(p->ct, p->ct_dir ^ 1u);
	struct rte_ether_addr mac;

	switch (find(w, p->out, &to, &mac)) {
	case NEIGHBOUR_KNOWN:
		keep(p, p->ct_dir ^ 1u, &mac);
		frame_of(p)->dst_addr = mac;
		return true;
	case NEIGHBOUR_ASKED:
		p->late |= PKT_LATE_STATION;
		p->unreachable = datapath_unreachable(w, p);
		return true;
	default:
		return no_network(w, p);
	}
}

void
station_cancel(struct pkt *p)
{
	if (!(p->late & PKT_LATE_STATION))
		return;
	rte_pktmbuf_free(p->unreachable);
	p->unreachable = NULL;
	p->late &= (uint8_t)~PKT_LATE_STATION;
}

UNLOCKED bool
station_write(struct worker *w, struct pkt *p)
{
	uint16_t status = __atomic_load_n(&p->ct->status, __ATOMIC_RELAXED);
	bool answer = p->ct_dir == CT_REPLY && status & (CT_SRC_NAT | CT_DST_NAT);
	bool must = status & CT_HAIRPIN || to_gateway(p);
	struct rte_ether_addr mac;

	if (answer)
		learn(p);
	if (!must && !answer)
		return true;
	if (likely(read_end(p->ct, p->ct_dir ^ 1u, &mac)))
		frame_of(p)->dst_addr = mac;
	else if (must && !write_found(w, p))
		return false;
	if (status & CT_HAIRPIN)
		frame_of(p)->src_addr = p->in->mac;
	return true;
}

void
station_wait(struct worker *w, struct pkt *p)
{
	const uint8_t *frame = rte_pktmbuf_mtod(p->mbuf, const uint8_t *);
	uint32_t at = 2 * RTE_ETHER_ADDR_LEN;
	struct neighbour_frame waits = {p->mbuf, w->dp.unreachable, p->in};
	struct tuple_addr to = {.w = {0}};
	rte_be16_t type;

	for (;; at += RTE_VLAN_HLEN) {
		memcpy(&type, frame + at, sizeof(type));
		if (type != RTE_BE16(RTE_ETHER_TYPE_VLAN) && type != RTE_BE16(RTE_ETHER_TYPE_QINQ))
			break;
	}
	at += (uint32_t)sizeof(type);
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		memcpy(&to, frame + at + offsetof(struct rte_ipv4_hdr, dst_addr), 4);
	else
		memcpy(&to, frame + at + offsetof(struct rte_ipv6_hdr, dst_addr), sizeof(to));
	neighbour_wait(w, p->out, type == RTE_BE16(RTE_ETHER_TYPE_IPV4) ? TUPLE_IPV4 : TUPLE_IPV6,
		&to, &waits);
	w->dp.unreachable = NULL;
}
