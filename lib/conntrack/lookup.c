/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lookup in stages, so that a packet's cache misses pass while others are worked on: hash and
 * prefetch the bucket line; match tags and prefetch the entry; verify. The caller does its own work
 * on each packet between the stages, which also spreads the prefetches: issued all at once, many
 * are lost when they miss the TLB.
 *
 * A miss here is not final, since a writer can hide an entry from a reader for a moment: whoever
 * would act on it asks again under the stripe (entry.c).
 */
#include "private.h"

#define NO_LOOKUP (PKT_L4_BAD | PKT_UNTRACKED | PKT_DROPPED)

static inline bool
wanted(const struct pkt *p)
{
	return (p->flags & (PKT_IP | NO_LOOKUP)) == PKT_IP;
}

void
ct_lookup_start(struct ct_thread *t, struct pkt *p, unsigned int n)
{
	const struct ct *ct = t->ct;
	struct ct_lines *all = sl_rcu_dereference(&ct->lines);
	struct ct_lines **own = sl_rcu_dereference(&ct->own);
	unsigned int i;

	sl_hash_ends_bulk(&ct->hasher, &p->tuple, sizeof(*p), n, &p->hash, sizeof(*p));
	for (i = 0; i < n; i++) {
		p[i].ct_line = ct_head(ct_lines_among(all, own, &p[i].tuple), p[i].hash);
		rte_prefetch0(p[i].ct_line);
	}
	netns_counter_add(&t->stats.lookups, n);
	t->expected = 0;
}

void
ct_lookup_forget(struct ct_thread *t, unsigned int n)
{
	netns_counter_add(&t->stats.lookups, -(uint64_t)n);
}

static inline void
prefetch_entry(const struct ct *ct, uint32_t ref)
{
	const struct ct_entry *e = &ct->pool[ref >> 1];

	__builtin_prefetch(&e->lock, 1);
	__builtin_prefetch(ref & 1 ? &e->reply : &e->orig, 1);
}

static inline uint32_t
next_of(const struct ct_line *l)
{
	return __atomic_load_n(&l->next, __ATOMIC_ACQUIRE);
}

/* The first slot whose tag matches is the candidate; an empty one is behind all others. */
static inline uint32_t
match_line(const struct ct_line *l, uint64_t hash)
{
	unsigned int mask = ct_line_match(l, ct_tag(hash));

	if (likely(mask != 0))
		return ct_slot_ref(l, (unsigned int)__builtin_ctz(mask), ct_tag(hash));
	return next_of(l) == 0 ? CT_REF_NONE : CT_REF_MORE;
}

/* The hash of the tuple that answers have, and the line that it goes into fetched, if that is
 * another than the tuple's own. False: there is no such tuple. */
static inline bool
expect_reply(const struct ct *ct, struct pkt *p)
{
	struct tuple reply;

	if (likely(p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP)) {
		p->ct_reply_hash = ct_turned_hash(p->hash, &p->tuple);
		return true;
	}
	if (!tuple_invert(&reply, &p->tuple))
		return false;
	p->ct_reply_hash = sl_hash_ends(&ct->hasher, &reply);
	__builtin_prefetch(ct_head(ct_lines_of(ct, &reply), p->ct_reply_hash), 1);
	return true;
}

/* Nobody has the tuple: what an insert is going to touch is fetched meanwhile. */
static __rte_noinline void
expect_new(struct ct_thread *t, struct pkt *p)
{
	const struct ct *ct = t->ct;
	uint32_t id = sl_ids_peek(&t->entry_ids, t->expected++), line;
	const char *e = (const char *)&ct->pool[id];

	if (unlikely(p->flags & PKT_ICMP_ERROR) || !expect_reply(ct, p))
		return;
	for (line = 0; line < sizeof(struct ct_entry); line += RTE_CACHE_LINE_SIZE)
		__builtin_prefetch(e + line, 1);
	__builtin_prefetch(&ct->slot[id], 1);
	__builtin_prefetch(&ct->queued[id], 1);
}

static __rte_always_inline void
match(struct ct_thread *t, const struct ct *ct, const struct ct_line *l, struct pkt *p)
{
	p->ct_ref = match_line(l, p->hash);
	if (likely(ct_ref_any(p->ct_ref)))
		prefetch_entry(ct, p->ct_ref);
	else if (p->ct_ref == CT_REF_NONE)
		expect_new(t, p);
	else
		rte_prefetch0(&ct->overflow[next_of(l)]);
}

unsigned int
ct_lookup_match(struct ct_thread *t, struct pkt *p, unsigned int n)
{
	const struct ct *ct = t->ct;
	const struct ct_line *l;
	unsigned int more = 0;

	for (; n > 0; n--, p++) {
		l = p->ct_line;
		p->ct_ref = CT_REF_NONE;
		p->ct_reply_hash = 0;
		if (unlikely(!wanted(p)))
			continue;
		match(t, ct, l, p);
		more += p->ct_ref == CT_REF_MORE;
	}
	return more;
}

/* One line further in the chain of a packet whose head line had nothing. */
static inline const struct ct_line *
match_next(struct ct_thread *t, struct pkt *p, const struct ct_line *at)
{
	const struct ct *ct = t->ct;
	uint32_t next = next_of(at);

	at = &ct->overflow[next];
	p->ct_ref = next == 0 ? CT_REF_NONE : match_line(at, p->hash);
	if (ct_ref_any(p->ct_ref))
		prefetch_entry(ct, p->ct_ref);
	else if (p->ct_ref == CT_REF_NONE)
		expect_new(t, p);
	else
		rte_prefetch0(&ct->overflow[next_of(at)]);
	return at;
}

void
ct_lookup_chains(struct ct_thread *t, struct pkt *p, unsigned int n)
{
	const struct ct_line *at[CT_LOOKUP_MAX];
	unsigned int i, waiting = 1, round, longest = 0;
	const struct ct_lines *lines;

	for (i = 0; i < n; i++) {
		lines = ct_lines_of(t->ct, &p[i].tuple);
		longest = RTE_MAX(longest, ct_chain_max(lines));
		at[i] = ct_head(lines, p[i].hash);
	}
	for (round = 0; waiting > 0 && round < longest; round++) {
		waiting = 0;
		for (i = 0; i < n; i++) {
			if (p[i].ct_ref != CT_REF_MORE)
				continue;
			at[i] = match_next(t, &p[i], at[i]);
			waiting += p[i].ct_ref == CT_REF_MORE;
		}
	}
}

/* The candidate is another key's, or none was seen where a resize may have moved it from. */
static __rte_noinline void
search_on(struct ct_thread *t, struct pkt *p)
{
	unsigned int dir;

	p->ct = ct_find(t->ct, &p->tuple, p->hash, &p->ct_gen, &dir);
	if (p->ct == NULL)
		return;
	p->ct_dir = (uint8_t)dir;
	netns_counter_add(&t->stats.found, 1);
}

void
ct_lookup_finish(struct ct_thread *t, struct pkt *p)
{
	const struct ct *ct = t->ct;
	uint32_t ref = p->ct_ref;

	if (likely(ct_ref_any(ref) && ct_ref_is(ct, ref, &p->tuple, &p->ct_gen))) {
		p->ct = &ct->pool[ref >> 1];
		p->ct_dir = ref & 1;
		netns_counter_add(&t->stats.found, 1);
		return;
	}
	p->ct = NULL;
	if (unlikely((ref != CT_REF_NONE || ct_resizing(ct)) && wanted(p)))
		search_on(t, p);
}

void
ct_lookup_bulk(struct ct_thread *t, struct pkt *p, unsigned int n)
{
	unsigned int i;

	ct_lookup_start(t, p, n);
	if (ct_lookup_match(t, p, n) > 0)
		ct_lookup_chains(t, p, n);
	for (i = 0; i < n; i++)
		ct_lookup_finish(t, &p[i]);
}

uint64_t
ct_tuple_hash(const struct ct_thread *t, const struct tuple *tuple)
{
	return sl_hash_ends(&t->ct->hasher, tuple);
}

void
ct_tuple_prefetch(const struct ct_thread *t, const struct tuple *tuple, uint64_t hash)
{
	rte_prefetch0(ct_head(ct_lines_of(t->ct, tuple), hash));
}

bool
ct_tuple_taken(const struct ct_thread *t, const struct tuple *tuple, uint64_t hash)
{
	unsigned int dir;
	uint32_t gen;

	return ct_find(t->ct, tuple, hash, &gen, &dir) != NULL;
}
