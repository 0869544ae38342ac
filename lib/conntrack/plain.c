/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that are simply part of an established TCP connection, most of all there are, in a run:
 * looked up and tracked in one loop that holds no more than that takes. It does for each packet
 * what ct_lookup_finish() and ct_track() would do, under the entry's lock as they do, and stops at
 * the first packet of which it is not sure, before anything of that has been changed.
 */
#include "private.h"

#include "proto_tcp_plain.h"

/* Under the lock: of a LIVE entry the tuples are what they are. One that is not LIVE may just be
 * made anew by its owner, without the lock: nothing of it is read. */
static __rte_always_inline bool
take(struct ct_thread *t, struct ct_entry *e, unsigned int dir, struct pkt *p, uint32_t now_ms)
	SL_REQUIRES(&e->lock)
{
	const struct knobs *knobs = netns_knobs(p->ns);
	uint32_t old;

	if (unlikely(ct_life(e) != CT_LIVE || !ct_key_equal(ct_tuple(e, dir), &p->tuple)))
		return false;
	old = e->deadline;
	if (unlikely(sl_ms_passed(old, now_ms) || !ct_tcp_take_plain(e, p, dir, knobs, now_ms)))
		return false;
	p->ct = e;
	p->ct_dir = (uint8_t)dir;
	p->ct_gen = __atomic_load_n(&e->gen, __ATOMIC_RELAXED);
	/* Neither state nor status have changed: there is nothing to tell, and the rules may see
	 * what is as what was. */
	if (unlikely(p->rules != NULL))
		ct_show_kept(e, p);
	ct_account(e, dir, p);
	ct_deadline_moved(t->ct, e, old);
	return true;
}

static __rte_always_inline bool
track(struct ct_thread *t, struct ct_entry *pool, struct pkt *p, uint32_t now_ms)
{
	struct ct_entry *e = &pool[p->ct_ref >> 1];
	bool taken;

	/* An ICMP error may have a tuple of TCP. */
	if (unlikely(!ct_ref_any(p->ct_ref) || p->proto != IPPROTO_TCP || p->zone_set ||
		     !ct_tcp_plain_kind(p)))
		return false;
	sl_lock(&e->lock);
	taken = take(t, e, p->ct_ref & 1, p, now_ms);
	sl_unlock(&e->lock);
	return taken;
}

unsigned int
ct_track_plain(struct ct_thread *t, struct pkt *p, unsigned int n, struct sl_now now)
{
	struct ct_entry *pool = t->ct->pool;
	struct pkt *at = p, *end = p + n;

	while (at < end && track(t, pool, at, now.ms))
		at++;
	n = (unsigned int)(at - p);
	netns_counter_add(&t->stats.found, n);
	return n;
}
