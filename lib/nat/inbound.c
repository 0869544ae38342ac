/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections from outside to the public end of an exclusive mapping (RFC 4787, 5). The entry has a
 * reference to what has admitted it, so that the mapping lasts as long.
 *
 * A host inside that is not admitted to another's mapping has sent nevertheless, and its own
 * mapping is open for the other now: it gets a connection with CT_REFUSED, which has the permit, or
 * is one.
 */
#include "pool_private.h"

#include "drop.h"
#include "siit.h"

/* Where the sender is, as the source of the mapping may have sent to it: a host of inside, by the
 * end that it has in the same pool itself. */
static struct tuple_addr
sender_of(struct nat_thread *t, const struct tuple *original, uint16_t pool)
{
	struct nat_mapping m;
	struct tuple key;

	nat_source_key_of_pool(&key, original, pool);
	return nat_source_peek(t->nat->sources, &key, &m) ? m.addr : original->src;
}

/* The caller's reference to the mapping becomes one to the permit; 0: there is none. */
static uint32_t
permit_of(struct nat_thread *t, const struct tuple *original, const struct tuple *key,
	uint32_t mapping, uint16_t pool)
{
	struct tuple_addr sender = sender_of(t, original, pool);
	struct nat_mapping unused;
	struct tuple permit;
	uint32_t ref;

	nat_source_key_permit(&permit, key, &sender);
	ref = nat_source_hold(t->nat->sources, &permit, &unused);
	nat_put_source(t, mapping);
	return ref;
}

/* Whether the source of the mapping has sent to the very end of a sender that is inside, too, which
 * did not admit it. */
static bool
has_sent_to(struct nat_thread *t, const struct tuple *original, const struct tuple *key,
	const struct nat_mapping *m)
{
	struct tuple sent = *key, sender_key;
	struct nat_mapping sender;

	if (nat_is_icmp(original->proto))
		return false;
	nat_source_key_of_pool(&sender_key, original, m->pool);
	if (!nat_source_peek(t->nat->sources, &sender_key, &sender))
		return false;
	sent.dst = sender.addr;
	sent.dport = sender.port;
	if (m->prefix_len != 0) {
		sent.dst = m->prefix;
		siit_embed(&sent.dst, m->prefix_len, sender.addr.w[0]);
	}
	return ct_tuple_taken(t->ct, &sent, ct_tuple_hash(t->ct, &sent));
}

/* The reference that the entry is to have, in place of the caller's; 0: the sender is refused. */
static uint32_t
admitted(struct nat_thread *t, const struct tuple *original, const struct tuple *key,
	const struct nat_mapping *m, uint32_t mapping)
{
	if (m->filter == NAT_FILTER_NONE)
		return mapping;
	if (m->filter == NAT_FILTER_ADDRESS)
		return permit_of(t, original, key, mapping, m->pool);
	/* Who has sent to it from that port has an entry, and would not be here, unless both are
	 * inside. */
	if (has_sent_to(t, original, key, m))
		return mapping;
	nat_put_source(t, mapping);
	return 0;
}

bool
nat_admit_sender(struct nat_thread *t, struct pkt *p, const struct tuple *key,
	const struct nat_mapping *m, uint32_t mapping)
{
	struct nat_slot *slot = nat_slot(p->ct);

	slot->source = admitted(t, &p->ct->orig.tuple, key, m, mapping);
	if (slot->source == 0)
		return false;
	slot->end[CT_REPLY].pool = m->pool;
	memcpy(slot->end[CT_REPLY].mac, m->mac, sizeof(m->mac));
	return true;
}

enum ct_verdict
nat_inbound(struct nat_thread *t, struct pkt *p, uint16_t *where)
{
	struct ct_entry *e = p->ct;
	const struct tuple *orig = &e->orig.tuple;
	struct nat_mapping m;
	struct tuple end, key;
	uint32_t ref;

	*where = 0;
	nat_source_end(&end, orig, &orig->dst,
		nat_is_icmp(orig->proto) ? orig->sport : orig->dport);
	ref = nat_source_inside(t->nat->sources, &end, &key, &m);
	if (likely(ref == 0))
		return CT_OK;
	*where = m.where;
	if (!nat_admit_sender(t, p, &key, &m, ref))
		return CT_MISS;
	if (unlikely(key.family != orig->family)) {
		if (!nat64_inbound(p, &key, &m))
			return nat_refuse(t, p, SL_DROP_NAT64_ADDRESS);
	} else {
		e->reply.tuple.src = key.src;
		e->reply.tuple.sport = key.sport;
	}
	e->status |= CT_DST_NAT;
	p->ct_reply_hash = 0;
	netns_counter_add(&p->ns->nat->counters[t->index].bound_dst, 1);
	return CT_OK;
}

/* The mapping of a tracked packet's source, held. 0: there is none, or the connection has gone. */
static uint32_t
hold_own(struct nat_thread *t, const struct pkt *p)
{
	struct nat_mapping unused;
	struct tuple key;
	uint16_t pool;

	if (!ct_hold(p))
		return 0;
	pool = nat_slot_const(p->ct)->end[CT_REPLY].pool;
	ct_release(p);
	nat_source_key_of_pool(&key, &p->tuple, pool);
	return nat_source_hold(t->nat->sources, &key, &unused);
}

bool
nat_admitted(struct nat_thread *t, const struct pkt *p, uint32_t *mapping)
{
	struct tuple far, end, key;
	struct nat_mapping m;
	uint32_t ref;

	if (!ct_far_end(p, &far))
		return false;
	nat_source_end(&end, far.family == p->tuple.family ? &p->tuple : &far, &far.src,
		nat_is_icmp(p->tuple.proto) ? p->tuple.sport : far.sport);
	ref = nat_source_inside(t->nat->sources, &end, &key, &m);
	if (ref != 0)
		ref = admitted(t, &p->tuple, &key, &m, ref);
	if (ref == 0)
		return false;
	nat_put_source(t, ref);
	*mapping = hold_own(t, p);
	return true;
}

void
nat_unhold(struct nat_thread *t, uint32_t mapping)
{
	nat_put_source(t, mapping);
}
