/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of incomplete datagrams.
 *
 * Objects. Datagrams (struct frag_train) and fragments (struct frag) lie in two arrays made at
 * the start, are known by index and type-stable: a stale reference reads an object of the same
 * kind, and finds by `gen` that it is no longer the one that was meant. A fragment keeps its
 * mbuf. The fragments of a datagram form a skip list by offset, so that no order of arrival
 * costs more than some 20 steps.
 *
 * Life of a datagram: free → in the table (gen odd) → taken out (gen even) → free. Whoever takes
 * it out, under its stripe, owns it: either a worker that has the last missing fragment, and
 * goes on with it as a train, or who drops it. What is taken out is freed with no lock held.
 *
 * Locks, none of which is held when frag_add() returns:
 *   stripe    a bucket's chain, and its datagrams with their fragments
 *   account   what one owner holds in one family, and its datagrams in order of age
 *   free      the free lists
 * Account and free lock are leaves, taken alone or under one stripe. Two stripes are never held:
 * room is made before a fragment's own stripe is taken, by remembering the oldest datagram's
 * (gen, hash) under the account lock, and looking under its stripe whether it is still there.
 *
 * A fragment is charged to its account first, gets its place then, and is given back by whoever
 * takes the datagram out. So an account may be charged for a moment for a fragment that is then
 * refused.
 *
 * Time. A datagram's deadline is set by the fragment that makes it, and not moved. The sweep goes
 * through the array; a datagram that is found past its deadline before that is dropped on the spot.
 */
#include "frag.h"

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "frag_private.h"

#define ROOM_TRIES 4u /* datagrams that one fragment may push out */
#define LEVEL_BITS 3u /* one in eight of a level is in the next */

/* ---- datagrams; all under the stripe of their hash ---- */

/* The account's oldest datagram makes room. False when it has none. */
static bool
drop_oldest(struct frag_table *t, struct frag_account *a, enum sl_drop reason,
	const struct frag_sink *sink)
{
	struct frag_spoils spoils = {.reason = reason};
	uint32_t i, gen = 0;
	uint64_t hash = 0;

	sl_lock(&a->lock);
	i = a->oldest;
	if (i != 0) {
		gen = __atomic_load_n(&t->train[i].gen, __ATOMIC_RELAXED);
		hash = __atomic_load_n(&t->train[i].hash, __ATOMIC_RELAXED);
	}
	sl_unlock(&a->lock);
	if (i == 0)
		return false;
	if (frag_drop_seen(t, i, gen, hash, &spoils))
		frag_discard(t, &spoils, sink);
	return true;
}

static enum sl_drop
make_room(struct frag_table *t, struct frag_account *a, uint32_t cost,
	const struct frag_policy *policy, const struct frag_sink *sink)
{
	enum sl_drop r = frag_charge(t, a, cost, policy->high_thresh);
	unsigned int tries;

	for (tries = 0; r != SL_DROP_NONE && tries < ROOM_TRIES; tries++) {
		if (!drop_oldest(t, a, r, sink))
			break;
		r = frag_charge(t, a, cost, policy->high_thresh);
	}
	return r;
}

/* Finds the datagram of a key. One that is over, or of an owner before, is taken out. */
static struct frag_train *
find(struct frag_table *t, struct sl_stripe *s, const struct frag_train *want,
	const struct frag_policy *policy, struct frag_spoils *over) SL_REQUIRES(&s->lock)
{
	uint32_t i = t->bucket[want->hash & t->bucket_mask];

	for (; i != 0; i = t->train[i].chain) {
		struct frag_train *d = &t->train[i];

		if (d->hash != want->hash || !tuple_equal(&d->key, &want->key))
			continue;
		if (d->owner_gen == policy->owner_gen && !sl_ms_passed(d->deadline, policy->now.ms))
			return d;
		frag_take_out(t, s, d);
		*over = frag_spoils_of(d, d->owner_gen == policy->owner_gen ? SL_DROP_FRAG_TIMEOUT
									    : SL_DROP_NETNS_DYING);
		return NULL;
	}
	return NULL;
}

static struct frag_train *
create(struct frag_table *t, struct sl_stripe *s, const struct frag_train *want,
	const struct frag_policy *policy) SL_REQUIRES(&s->lock)
{
	struct frag_train *d = frag_alloc_train(t);
	uint32_t *bucket = &t->bucket[want->hash & t->bucket_mask];

	(void)s;
	if (d == NULL)
		return NULL;
	d->key = want->key;
	__atomic_store_n(&d->hash, want->hash, __ATOMIC_RELAXED);
	d->table = t;
	d->account = want->account;
	d->owner_gen = policy->owner_gen;
	__atomic_store_n(&d->deadline, policy->now.ms + policy->timeout_ms, __ATOMIC_RELAXED);
	memset(d->first, 0, sizeof(d->first));
	d->end = d->have = d->bytes = d->n = 0;
	d->last = d->barred = false;
	d->view = NULL;
	d->chain = *bucket;
	*bucket = (uint32_t)(d - t->train);
	__atomic_store_n(&d->gen, d->gen + 1, __ATOMIC_RELEASE);
	frag_account_enter(t, &t->account[d->account], d);
	return d;
}

/* ---- fragments of a datagram; under its stripe ---- */

static inline uint32_t
end_of(const struct frag *f)
{
	return (uint32_t)f->off + f->len;
}

/* Fills link with the places, by level, where a fragment at `off` would be linked; returns the one
 * before it, 0: none. */
static uint32_t
seek(struct frag_table *t, struct frag_train *d, uint16_t off, uint32_t *link[FRAG_LEVELS])
{
	uint32_t *at = d->first, before = 0;
	unsigned int level = FRAG_LEVELS;

	while (level-- > 0) {
		while (at[level] != 0 && t->frag[at[level]].off < off) {
			before = at[level];
			at = t->frag[before].next;
		}
		link[level] = &at[level];
	}
	return before;
}

/* Whether the fragments from i on, as far as they are one run, cover everything up to `end`. */
static bool
covered(const struct frag_table *t, uint32_t i, uint32_t end)
{
	uint32_t reach = end_of(&t->frag[i]);

	while (reach < end) {
		i = t->frag[i].next[0];
		if (i == 0 || !t->frag[i].joined)
			return false;
		reach = end_of(&t->frag[i]);
	}
	return true;
}

static enum sl_drop
check_overlap(const struct frag_table *t, const struct frag *f, uint32_t before, uint32_t after)
{
	uint32_t from = before;

	if (before == 0 || end_of(&t->frag[before]) <= f->off) {
		if (after == 0 || t->frag[after].off >= end_of(f))
			return SL_DROP_NONE;
		if (t->frag[after].off != f->off)
			return SL_DROP_FRAG_OVERLAP;
		from = after;
	}
	return covered(t, from, end_of(f)) ? SL_DROP_FRAG_DUPLICATE : SL_DROP_FRAG_OVERLAP;
}

static unsigned int
random_height(uint32_t *random)
{
	unsigned int height = 1;
	uint32_t r = *random;

	r ^= r << 13; /* xorshift (Marsaglia 2003) */
	r ^= r >> 17;
	r ^= r << 5;
	*random = r;
	for (; height < FRAG_LEVELS && (r & ((1u << LEVEL_BITS) - 1)) == 0; r >>= LEVEL_BITS)
		height++;
	return height;
}

static enum sl_drop
insert(struct frag_table *t, struct frag_train *d, uint32_t index, bool more)
{
	struct frag *f = &t->frag[index];
	uint32_t *link[FRAG_LEVELS], end = end_of(f), before;
	unsigned int level, height;
	enum sl_drop r;

	if (more ? d->last && end > d->end : end < d->end || (d->last && end != d->end))
		return SL_DROP_FRAG_INVALID;
	before = seek(t, d, f->off, link);
	r = check_overlap(t, f, before, *link[0]);
	if (r != SL_DROP_NONE)
		return r;
	f->joined = *link[0] == 0 && before != 0 && end_of(&t->frag[before]) == f->off;
	height = random_height(&t->stripe[d->hash % FRAG_STRIPES].random);
	for (level = 0; level < FRAG_LEVELS; level++) {
		f->next[level] = level < height ? *link[level] : 0;
		if (level < height)
			*link[level] = index;
	}
	d->end = RTE_MAX(d->end, end);
	d->last |= !more;
	d->have += f->len;
	d->n++;
	return SL_DROP_NONE;
}

/* All that an overlap leaves of a datagram of IPv6: a place that refuses the rest. */
static void
bar(struct frag_table *t, struct frag_train *d, struct frag_spoils *out)
{
	*out = frag_spoils_of(d, SL_DROP_FRAG_OVERLAP);
	out->train = NULL;
	frag_uncharge(t, &t->account[d->account], d->n, d->bytes);
	memset(d->first, 0, sizeof(d->first));
	d->n = d->bytes = 0;
	d->barred = true;
}

/* What a refused fragment does to the others. */
static void
punish(struct frag_table *t, struct sl_stripe *s, struct frag_train *d, enum sl_drop reason,
	struct frag_spoils *out) SL_REQUIRES(&s->lock)
{
	bool ip6 = d->key.family == TUPLE_IPV6;

	if (reason == SL_DROP_FRAG_DUPLICATE || (reason == SL_DROP_FRAG_INVALID && ip6))
		return;
	if (reason == SL_DROP_FRAG_OVERLAP && ip6) {
		bar(t, d, out);
		return;
	}
	frag_take_out(t, s, d);
	*out = frag_spoils_of(d, reason);
}

/* ---- a fragment ---- */

static inline bool
is_unaligned(const struct pkt *p)
{
	return p->frag_more && p->l4_len % RTE_IPV4_HDR_OFFSET_UNITS != 0;
}

/* Of the fragment by itself. IPv6 counts what is behind its header. */
static enum sl_drop
check(const struct pkt *p)
{
	uint32_t before = p->tuple.family == TUPLE_IPV4
				  ? p->l3_len
				  : p->l3_len - (uint32_t)sizeof(struct rte_ipv6_hdr) -
					    RTE_IPV6_FRAG_HDR_SIZE;

	if (p->l4_len == 0 || is_unaligned(p))
		return SL_DROP_FRAG_INVALID;
	if (before + p->frag_off + p->l4_len > UINT16_MAX)
		return SL_DROP_FRAG_INVALID;
	return SL_DROP_NONE;
}

/* Padding behind the packet, when it lies in segments of its own, would be amid the payload. */
static void
trim_segments(const struct pkt *p)
{
	struct rte_mbuf *m = p->mbuf, *seg = m, *rest;
	uint32_t left = p->l3_off + p->ip_bytes;

	if (m->nb_segs == 1)
		return;
	m->pkt_len = left;
	m->nb_segs = 1;
	for (; left > seg->data_len && seg->next != NULL; seg = seg->next) {
		left -= seg->data_len;
		m->nb_segs++;
	}
	seg->data_len = (uint16_t)left;
	rest = seg->next;
	seg->next = NULL;
	for (; rest != NULL; rest = seg) {
		seg = rest->next;
		rte_pktmbuf_free_seg(rest);
	}
}

static uint32_t
cost_of(const struct rte_mbuf *m)
{
	uint32_t sum = sizeof(struct frag);

	for (; m != NULL; m = m->next)
		sum += (uint32_t)sizeof(*m) + m->buf_len;
	return sum;
}

static void
fill(struct frag *f, const struct pkt *p)
{
	f->mbuf = p->mbuf;
	f->off = p->frag_off;
	f->len = p->l4_len;
	f->hdr = (uint16_t)(p->l3_off + p->l3_len);
	f->cut = 0;
	f->tags = (struct frag_tags){.tpid = p->tpid,
		.outer_tci = p->outer_tci,
		.inner_tci = p->inner_tci,
		.n = p->n_tags};
}

/* The key of a fragment's datagram, with its hash and account. */
static struct frag_train
key_of(struct frag_table *t, const struct pkt *p, const struct frag_policy *policy)
{
	struct frag_train want = {.key = p->tuple};
	bool ip6 = p->tuple.family == TUPLE_IPV6;

	if (ip6)
		want.key.proto = 0;
	want.key.sport = rte_cpu_to_be_16((uint16_t)(p->frag_id >> 16));
	want.key.dport = rte_cpu_to_be_16((uint16_t)p->frag_id);
	want.hash = sl_hash(&t->hasher, &want.key);
	want.account = policy->owner * 2 + ip6;
	return want;
}

/* Puts a charged fragment in its place. SL_DROP_NONE: it is held, or *train is complete with it. */
static enum sl_drop
place(struct frag_table *t, const struct pkt *p, uint32_t index, const struct frag_policy *policy,
	struct frag_spoils out[2], struct frag_train **train)
{
	struct frag_train want = key_of(t, p, policy), *d;
	struct sl_stripe *s = frag_stripe_of(t, want.hash);
	enum sl_drop r = SL_DROP_FRAG_MEMORY;

	sl_lock(&s->lock);
	d = find(t, s, &want, policy, &out[0]);
	if (d == NULL)
		d = create(t, s, &want, policy);
	if (d != NULL)
		r = d->barred ? SL_DROP_FRAG_OVERLAP : insert(t, d, index, p->frag_more);
	if (r != SL_DROP_NONE && d != NULL && !d->barred) {
		punish(t, s, d, r, &out[1]);
	} else if (r == SL_DROP_NONE) {
		d->bytes += cost_of(p->mbuf);
		if (d->last && d->have == d->end) {
			frag_take_out(t, s, d);
			*train = d;
		}
	}
	sl_unlock(&s->lock);
	return r;
}

/* A fragment that no datagram can have: an IPv4 one takes the others along. */
static void
drop_others(struct frag_table *t, const struct pkt *p, const struct frag_policy *policy,
	const struct frag_sink *sink)
{
	struct frag_train want = key_of(t, p, policy), *d;
	struct sl_stripe *s = frag_stripe_of(t, want.hash);
	struct frag_spoils out = {0};

	sl_lock(&s->lock);
	d = find(t, s, &want, policy, &out);
	if (d != NULL) {
		frag_take_out(t, s, d);
		out = frag_spoils_of(d, SL_DROP_FRAG_INVALID);
	}
	sl_unlock(&s->lock);
	if (out.train != NULL)
		frag_discard(t, &out, sink);
}

static enum frag_verdict
refuse(struct pkt *p, enum sl_drop reason)
{
	p->reason = (uint8_t)reason;
	return FRAG_REFUSED;
}

enum frag_verdict
frag_add(struct frag_table *t, struct pkt *p, const struct frag_policy *policy,
	const struct frag_sink *sink, struct frag_train **train)
{
	struct frag_account *a = frag_account_of(t, policy->owner, p->tuple.family);
	struct frag_spoils out[2] = {{0}};
	enum sl_drop r = check(p);
	uint32_t index, cost;

	*train = NULL;
	if (r != SL_DROP_NONE) {
		if (p->tuple.family == TUPLE_IPV4 && !is_unaligned(p))
			drop_others(t, p, policy, sink);
		return refuse(p, r);
	}
	trim_segments(p);
	cost = cost_of(p->mbuf);
	r = make_room(t, a, cost, policy, sink);
	if (r != SL_DROP_NONE)
		return refuse(p, r);
	fill(frag_alloc(t, &index), p);
	r = index == 0 ? SL_DROP_FRAG_MEMORY : place(t, p, index, policy, out, train);
	if (r != SL_DROP_NONE) {
		frag_uncharge(t, a, 1, cost);
		if (index != 0) {
			t->frag[index].next[0] = 0;
			frag_free_chain(t, index, 1);
		}
	}
	if (unlikely(out[0].train != NULL))
		frag_discard(t, &out[0], sink);
	if (unlikely(out[1].n != 0 || out[1].train != NULL))
		frag_discard(t, &out[1], sink);
	if (r != SL_DROP_NONE)
		return refuse(p, r);
	return *train != NULL ? FRAG_COMPLETE : FRAG_HELD;
}
