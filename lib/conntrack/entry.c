/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of an entry.
 *
 *   ct_begin()   FREE → EMBRYO   the entry belongs to the caller alone
 *   ct_commit()  EMBRYO → LIVE   under the stripes of both tuples: if neither is taken, both are
 *                                linked and then LIVE is stored, with release. If the original
 *                                tuple is taken, another worker was first: its entry is the
 *                                connection.
 *   (anyone)     LIVE → DYING    under the entry's lock; who does it owns the destruction and holds
 *                                nothing when it goes on to
 *   ct_reap()    DYING → FREE    unlink under the stripes, tell the application, add one to the
 *                                generation, give the index back
 *
 * While the stripes of a tuple are held no entry that has it can be unlinked, so what ct_find()
 * gives there stays what it is; it may only turn DYING, and then it does not count.
 */
#include "private.h"

#include <netinet/in.h>

#include <rte_ip.h>

#include "err.h"

static void
slot_publish(struct ct *ct, const struct ct_entry *e)
{
	struct ct_slot *s = &ct->slot[ct_index(ct, e)];

	__atomic_store_n(&s->deadline, e->deadline, __ATOMIC_RELAXED);
	__atomic_store_n(&s->ns_low, (uint16_t)e->ns->id, __ATOMIC_RELAXED);
	__atomic_store_n(&s->life, (uint8_t)(CT_LIVE | (e->ns->id >> 9 & CT_SLOT_NS_HIGH)),
		__ATOMIC_RELAXED);
}

/* The entry is the caller's alone, in no chain. */
static void
entry_free(struct ct_thread *t, struct ct_entry *e)
{
	__atomic_store_n(&e->gen, e->gen + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&e->life, CT_FREE, __ATOMIC_RELEASE);
	sl_ids_put(&t->ct->entry_ids, &t->entry_ids, ct_index(t->ct, e));
}

/* An embryo that came to nothing: what it holds of others goes back. */
static void
embryo_free(struct ct_thread *t, struct ct_entry *e)
{
	const struct ct_ops *ops = &t->ct->ops;

	if (ops->aborted != NULL)
		ops->aborted(ops->app, t, e);
	entry_free(t, e);
}

static enum ct_verdict
invalid(struct ct_thread *t, struct pkt *p, uint8_t reason)
{
	p->reason = reason;
	p->flags |= PKT_CT_INVALID;
	p->ct = NULL;
	netns_counter_add(&t->stats.invalid, 1);
	return CT_INVALID;
}

enum ct_verdict
ct_track_bad(struct ct_thread *t, struct pkt *p)
{
	return invalid(t, p, p->reason);
}

/* Whether a packet with its tuple's zone can be of that direction of an entry: answers have a zone
 * of their own. */
static inline bool
zone_fits(const struct pkt *p, unsigned int dir)
{
	return likely(!p->zone_set) || dir == CT_ORIGINAL || p->tuple.zone == p->zone_reply;
}

/* A miss of the lookup is not final: what would be judged by it has to ask again under the stripe.
 * An insert does so anyway. */
static struct ct_entry *
find_locked(struct ct_thread *t, struct pkt *p)
{
	struct sl_stripe *s = ct_stripe(t->ct, ct_lines_of(t->ct, &p->tuple), p->hash);
	struct ct_entry *e;
	unsigned int dir;

	sl_lock(&s->lock);
	e = ct_find(t->ct, &p->tuple, p->hash, &p->ct_gen, &dir);
	sl_unlock(&s->lock);
	if (e == NULL || !zone_fits(p, dir))
		return NULL;
	p->ct_dir = (uint8_t)dir;
	return e;
}

static void
embryo_init(struct ct_entry *e, const struct pkt *p, struct sl_now now)
{
	__atomic_store_n(&e->life, CT_EMBRYO, __ATOMIC_RELAXED);
	/* Who still reads the entry that was here finds the generation changed, if anything. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	e->orig.tuple = p->tuple;
	e->orig.packets = e->orig.bytes = 0;
	e->reply.packets = e->reply.bytes = 0;
	e->orig.verdict = e->reply.verdict = 0;
	e->status = netns_knobs(p->ns)->acct ? CT_ACCT : 0;
	e->deadline = now.ms;
	memset(&e->proto, 0, sizeof(e->proto));
	e->ns = p->ns;
	e->ns_gen = p->ns->gen;
	e->mark = 0;
	__atomic_store_n(&e->start_ns, now.ns, __ATOMIC_RELAXED);
	memset(e->nat, 0, sizeof(e->nat));
	memset(e->limit, 0, sizeof(e->limit));
	e->seqadj = 0;
}

enum ct_verdict
ct_begin(struct ct_thread *t, struct pkt *p, struct sl_now now)
{
	const struct ct_proto *proto = ct_proto_of(p->tuple.family, p->tuple.proto);
	struct ct_proto_ctx ctx = {.knobs = netns_knobs(p->ns), .now = now};
	enum ct_proto_verdict v;
	struct ct_entry *e;
	enum sl_drop full;
	uint32_t id;

	full = ct_full(t, p->ns);
	if (unlikely(full != SL_DROP_NONE) && !ct_may_make_room(t, p->ns)) {
		p->reason = (uint8_t)full;
		return CT_DROP;
	}
	id = sl_ids_get(&t->ct->entry_ids, &t->entry_ids);
	t->expected -= t->expected > 0;
	if (unlikely(id == 0)) {
		p->reason = SL_DROP_CT_TABLE_FULL;
		return CT_DROP;
	}
	e = &t->ct->pool[id];
	if (!tuple_invert(&e->reply.tuple, &p->tuple)) {
		sl_ids_put(&t->ct->entry_ids, &t->entry_ids, id);
		return invalid(t, p, SL_DROP_INV_ICMP_TYPE);
	}
	embryo_init(e, p, now);
	if (unlikely(p->zone_set)) {
		e->reply.tuple.zone = p->zone_reply;
		p->ct_reply_hash = 0;
	}
	v = proto->create(e, p, &ctx);
	if (v == CT_PROTO_OK)
		v = proto->packet(e, p, CT_ORIGINAL, &ctx);
	if (unlikely(v != CT_PROTO_OK)) {
		entry_free(t, e);
		p->ct = find_locked(t, p);
		if (p->ct == NULL)
			return invalid(t, p, p->reason);
		p->reason = SL_DROP_NONE;
		return CT_LOST;
	}
	ct_account(e, CT_ORIGINAL, p);
	if (unlikely(full != SL_DROP_NONE))
		e->status |= CT_NEEDS_ROOM;
	p->ct = e;
	p->ct_gen = e->gen;
	p->ct_dir = CT_ORIGINAL;
	return CT_OK;
}

void
ct_abort(struct ct_thread *t, struct pkt *p)
{
	embryo_free(t, p->ct);
	p->ct = NULL;
}

/* Under the stripes: whether either tuple is taken, as insert() says it. */
static __rte_noinline int
taken(struct ct_thread *t, struct pkt *p, const uint64_t hash[2])
{
	struct ct_entry *e = p->ct, *other;
	unsigned int dir;
	uint32_t gen;

	other = ct_find(t->ct, &e->orig.tuple, hash[0], &gen, &dir);
	if (unlikely(other != NULL)) {
		if (!zone_fits(p, dir))
			return -SL_DROP_CT_CLASH;
		p->ct = other;
		p->ct_gen = gen;
		p->ct_dir = (uint8_t)dir;
		return 1;
	}
	if (unlikely(ct_find(t->ct, &e->reply.tuple, hash[1], &gen, &dir) != NULL))
		return -SL_DROP_CT_CLASH;
	return 0;
}

/* Under the stripes: 0 when both tuples are linked and the entry is LIVE; 1 when the original tuple
 * is taken by an entry that the packet goes with (p is set to it); a drop reason, negative, else.
 */
static int
insert(struct ct_thread *t, struct pkt *p, const struct ct_lines *l, const uint64_t hash[2])
{
	struct ct_entry *e = p->ct;
	int ret;

	if (unlikely(!ct_unknown(l, hash))) {
		ret = taken(t, p, hash);
		if (ret != 0)
			return ret;
	}
	if (unlikely(ct_link(t, e, hash) < 0))
		return -SL_DROP_CT_CHAIN_LONG;
	slot_publish(t->ct, e);
	if (unlikely(ct_listened(t->ct)))
		ct_tell(t, e, CT_EVENT_NEW, 0);
	__atomic_store_n(&e->life, CT_LIVE, __ATOMIC_RELEASE);
	return 0;
}

/* Only now that the connection is wanted another has to go for it. */
static bool
make_room(struct ct_thread *t, struct pkt *p)
{
	struct ct_entry *e = p->ct;

	e->status &= (uint16_t)~CT_NEEDS_ROOM;
	p->reason = (uint8_t)ct_make_room(t, p->ns);
	if (likely(p->reason == SL_DROP_NONE))
		return true;
	embryo_free(t, e);
	p->ct = NULL;
	return false;
}

enum ct_verdict
ct_try_commit(struct ct_thread *t, struct pkt *p)
{
	struct ct *ct = t->ct;
	struct ct_entry *e = p->ct;
	const struct ct_lines *l = ct_lines_of(ct, &e->orig.tuple);
	uint64_t hash[2] = {p->hash, p->ct_reply_hash};
	struct sl_stripes s;
	int ret;

	if (hash[1] == 0)
		hash[1] = ct_reply_hash(ct, e, hash[0]);
	if (unlikely(e->status & CT_NEEDS_ROOM) && !make_room(t, p))
		return CT_DROP;
	ct_charge(t, p->ns, 1);
	ct_queue_add(t, e);
	sl_stripes_lock(&s, ct_stripe(ct, l, hash[0]), ct_stripe(ct, l, hash[1]));
	ret = insert(t, p, l, hash);
	sl_stripes_unlock(&s);
	if (likely(ret == 0)) {
		p->flags |= PKT_CT_NEW;
		t->sweep_credit += CT_SWEEP_PER_INSERT;
		netns_counter_add(&t->stats.insert, 1);
		netns_counter_add(&p->ns->counters[t->index].created, 1);
		return CT_OK;
	}
	ct_queue_remove(ct, e);
	ct_charge(t, p->ns, -1);
	if (ret == -SL_DROP_CT_CLASH)
		return CT_CLASH;
	embryo_free(t, e);
	if (ret > 0) {
		p->flags |= PKT_RACE_LOST;
		netns_counter_add(&t->stats.race_lost, 1);
		return CT_LOST;
	}
	p->ct = NULL;
	p->reason = (uint8_t)-ret;
	netns_counter_add(&t->stats.insert_failed, 1);
	if (p->reason == SL_DROP_CT_CHAIN_LONG)
		netns_counter_add(&t->stats.chain_too_long, 1);
	return CT_DROP;
}

enum ct_verdict
ct_commit(struct ct_thread *t, struct pkt *p)
{
	enum ct_verdict v = ct_try_commit(t, p);

	if (likely(v != CT_CLASH))
		return v;
	ct_abort(t, p);
	p->reason = SL_DROP_CT_CLASH;
	netns_counter_add(&t->stats.insert_failed, 1);
	return CT_DROP;
}

/* Fetches what taking the entries out will touch, with nothing else between, so that as many misses
 * of the TLB as can be are under way at once. */
static inline void
fetch_lines(const struct ct *ct, struct ct_entry *const e[], uint64_t (*hash)[2], unsigned int n)
{
	const struct ct_line *line[CT_SWEEP_BATCH][2];
	const struct ct_lines *l;
	unsigned int i;

	for (i = 0; i < n; i++) {
		l = ct_lines_of(ct, &e[i]->orig.tuple);
		ct_hashes(ct, e[i], hash[i]);
		line[i][CT_ORIGINAL] = ct_head(l, hash[i][CT_ORIGINAL]);
		line[i][CT_REPLY] = ct_head(l, hash[i][CT_REPLY]);
	}
	for (i = 0; i < n; i++) {
		__builtin_prefetch(line[i][CT_ORIGINAL], 1);
		if (unlikely(line[i][CT_REPLY] != line[i][CT_ORIGINAL]))
			__builtin_prefetch(line[i][CT_REPLY], 1);
	}
	for (i = 0; i < n; i++)
		ct_queue_prefetch(ct, e[i]);
}

void
ct_reap(struct ct_thread *t, struct ct_entry *const e[], unsigned int n)
{
	uint64_t hash[CT_SWEEP_BATCH][2];
	struct ct *ct = t->ct;
	unsigned int i;

	fetch_lines(ct, e, hash, n);
	for (i = 0; i < n; i++) {
		ct_unlink(t, e[i], hash[i]);
		if (unlikely(ct_listened(ct)))
			ct_tell(t, e[i], CT_EVENT_DESTROY, 0);
	}
	if (ct->ops.destroyed != NULL && n > 0)
		ct->ops.destroyed(ct->ops.app, t, e, n);
	for (i = 0; i < n; i++) {
		__atomic_store_n(&ct->slot[ct_index(ct, e[i])].life, CT_FREE, __ATOMIC_RELAXED);
		ct_queue_remove(ct, e[i]);
		ct_charge(t, e[i]->ns, -1);
		entry_free(t, e[i]);
	}
}

/* The connection is over, or makes way for a new one: destroys it if it is still the one that was
 * found. */
void
ct_kill(struct ct_thread *t, const struct pkt *p)
{
	struct ct_entry *e = p->ct;

	if (!ct_lock_live(e, p->ct_gen))
		return;
	ct_mark_dying(e);
	sl_unlock(&e->lock);
	netns_counter_add(&t->stats.deleted, 1);
	ct_reap(t, &e, 1);
}

/* Destroys an entry whose deadline has passed; the caller has its lock, which is released. */
static __rte_noinline void
expire_locked(struct ct_thread *t, struct ct_entry *e) SL_RELEASE(&e->lock)
{
	ct_mark_dying(e);
	sl_unlock(&e->lock);
	netns_counter_add(&t->stats.expired, 1);
	ct_reap(t, &e, 1);
}

/* The state machine does not take the packet as part of the living connection. */
static __rte_noinline enum ct_verdict
refused(struct ct_thread *t, struct pkt *p, enum ct_proto_verdict v)
{
	if (v == CT_PROTO_INVALID)
		return invalid(t, p, p->reason);
	if (v == CT_PROTO_DROP)
		return CT_DROP;
	ct_kill(t, p);
	return v == CT_PROTO_KILL ? CT_OK : CT_MISS;
}

void
ct_changed(struct ct_thread *t, const struct ct_entry *e, unsigned int changed)
{
	if (unlikely(ct_listened(t->ct)) && ct_life(e) == CT_LIVE)
		ct_tell(t, e, CT_EVENT_UPDATE, changed);
}

/* A packet has passed the machine: whether that is worth telling. */
static void
tell_tracked(struct ct_thread *t, const struct ct_entry *e, const struct pkt *p,
	uint16_t old_status) SL_REQUIRES(&e->lock)
{
	const struct ct_proto *proto = ct_proto_of(e->orig.tuple.family, e->orig.tuple.proto);
	unsigned int changed =
		(e->status ^ old_status) & CT_STATUS_TOLD ? CT_CHANGED_STATUS : 0;

	if (proto->state_name != NULL && p->ct_state_old != p->ct_state_new)
		changed |= CT_CHANGED_STATE;
	if (changed != 0)
		ct_tell(t, e, CT_EVENT_UPDATE, changed);
}

/* A packet that took effect on a TCP connection has left it in TIME_WAIT or CLOSE, whatever it was
 * in before. */
static inline bool
tcp_closed(const struct ct_entry *e, const struct pkt *p)
{
	return p->tuple.proto == IPPROTO_TCP && (e->proto.tcp.state == CT_TCP_TIME_WAIT ||
							e->proto.tcp.state == CT_TCP_CLOSE);
}

static inline bool
tcp_moved(const struct pkt *p)
{
	return p->tuple.proto == IPPROTO_TCP && p->ct_state_old != p->ct_state_new;
}

static bool
state_welcome(struct ct_thread *t, struct ct_entry *e) SL_REQUIRES(&e->lock)
{
	const struct ct_ops *ops = &t->ct->ops;

	return ops->tcp_state == NULL || ops->tcp_state(ops->app, t, e);
}

/* What the application makes of a packet whose numbers it translates, in a machine's terms. */
static enum ct_proto_verdict
adjust(struct ct_thread *t, struct ct_entry *e, struct pkt *p, enum ct_adjust when)
	SL_REQUIRES(&e->lock)
{
	const struct ct_ops *ops = &t->ct->ops;

	if (likely(!(e->status & CT_SEQADJ)))
		return CT_PROTO_OK;
	switch (ops->adjust(ops->app, t, e, p, when)) {
	case CT_OK:
		return CT_PROTO_OK;
	case CT_DROP:
		return CT_PROTO_DROP;
	default:
		return CT_PROTO_REOPEN;
	}
}

/* The packet through its protocol's machine, and what follows from that. */
static enum ct_proto_verdict
run_machine(struct ct_thread *t, struct ct_entry *e, struct pkt *p, const struct knobs *knobs,
	struct sl_now now) SL_REQUIRES(&e->lock)
{
	const struct ct_proto *proto = ct_proto_of(p->tuple.family, p->tuple.proto);
	const struct ct_proto_ctx ctx = {.knobs = knobs, .now = now};
	uint16_t old_status = e->status;
	enum ct_proto_verdict v = proto->packet(e, p, p->ct_dir, &ctx);

	if (unlikely(e->status & ~old_status & CT_ASSURED))
		ct_queue_remove(t->ct, e);
	if (likely(v <= CT_PROTO_IGNORED)) {
		if (p->ct_dir == CT_REPLY && !(e->status & CT_SEEN_REPLY))
			e->status |= CT_SEEN_REPLY;
		if (v == CT_PROTO_OK)
			ct_account(e, p->ct_dir, p);
		if (unlikely(tcp_closed(e, p)) && v == CT_PROTO_OK && t->ct->ops.closed != NULL)
			t->ct->ops.closed(t->ct->ops.app, t, e);
		if (unlikely(tcp_moved(p)) && !state_welcome(t, e))
			v = CT_PROTO_KILL;
	} else if (v == CT_PROTO_KILL) {
		ct_account(e, p->ct_dir, p);
	}
	/* The packet that ends a connection is itself translated by its entry, and judged by rules
	 * that may ask for its mark: then it is left to expire. */
	if (unlikely(v == CT_PROTO_KILL) &&
		(e->status & (CT_SRC_NAT | CT_DST_NAT) || p->rules != NULL)) {
		e->deadline = now.ms;
		v = CT_PROTO_IGNORED;
	}
	if (unlikely(ct_listened(t->ct)) && v <= CT_PROTO_IGNORED)
		tell_tracked(t, e, p, old_status);
	return v;
}

static __rte_noinline enum ct_proto_verdict
take(struct ct_thread *t, struct ct_entry *e, struct pkt *p, const struct knobs *knobs,
	struct sl_now now) SL_REQUIRES(&e->lock)
{
	enum ct_proto_verdict v = adjust(t, e, p, CT_ADJUST_BEFORE);

	if (unlikely(v != CT_PROTO_OK))
		return v;
	v = run_machine(t, e, p, knobs, now);
	if (likely(v != CT_PROTO_REOPEN))
		adjust(t, e, p, v == CT_PROTO_INVALID ? CT_ADJUST_INVALID : CT_ADJUST_AFTER);
	return v;
}

enum ct_verdict
ct_track(struct ct_thread *t, struct pkt *p, struct sl_now now)
{
	struct ct_entry *e = p->ct;
	const struct knobs *knobs = netns_knobs(p->ns);
	enum ct_proto_verdict v;
	uint32_t old;

	if (unlikely(!ct_lock_live(e, p->ct_gen)))
		return CT_MISS;
	old = e->deadline;
	if (unlikely(sl_ms_passed(old, now.ms))) {
		expire_locked(t, e);
		return CT_MISS;
	}
	if (unlikely(p->rules != NULL))
		ct_show_kept(e, p);
	v = take(t, e, p, knobs, now);
	ct_deadline_moved(t->ct, e, old);
	sl_unlock(&e->lock);
	return likely(v <= CT_PROTO_IGNORED) ? CT_OK : refused(t, p, v);
}

/* An error is for the sender of the packet inside it. */
static bool
goes_to_sender(const struct pkt *p)
{
	const struct tuple_addr *sender = &p->tuple.dst;

	if (p->tuple.family == TUPLE_IPV4)
		return memcmp(p->l3 + offsetof(struct rte_ipv4_hdr, dst_addr), sender, 4) == 0;
	return memcmp(p->l3 + offsetof(struct rte_ipv6_hdr, dst_addr), sender, 16) == 0;
}

enum ct_verdict
ct_track_error(struct ct_thread *t, struct pkt *p, struct sl_now now)
{
	struct ct_entry *e = p->ct != NULL ? p->ct : find_locked(t, p);

	if (e == NULL || !goes_to_sender(p) || !ct_lock_live(e, p->ct_gen))
		return invalid(t, p, SL_DROP_INV_ICMP_UNRELATED);
	p->ct = e;
	if (sl_ms_passed(e->deadline, now.ms)) {
		expire_locked(t, e);
		return invalid(t, p, SL_DROP_INV_ICMP_UNRELATED);
	}
	/* It goes the way of an answer to the packet inside it. */
	p->flags |= PKT_CT_RELATED;
	if (unlikely(p->rules != NULL))
		ct_show_kept(e, p);
	adjust(t, e, p, CT_ADJUST_ERROR);
	sl_unlock(&e->lock);
	return CT_OK;
}
