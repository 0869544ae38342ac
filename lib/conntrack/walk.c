/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walks over the entry pool by index, which neither resize nor insertion moves. What a walk tests
 * first lies in the compact array beside the pool; only entries that pass are locked and copied or
 * destroyed. An entry made after the walk began is passed over, so that a connection which ends and
 * begins anew meanwhile is not listed twice.
 */
#include "private.h"

void
ct_walk_start(const struct ct *ct, struct ct_walk *w, struct sl_now now)
{
	w->next = 1;
	w->end = __atomic_load_n(&ct->entry_ids.high_water, __ATOMIC_ACQUIRE);
	w->start_ns = now.ns;
}

/* Whether the slot is worth a look: LIVE, and of the namespace (NULL: any). */
static inline bool
slot_matches(const struct ct_slot *s, const struct netns *ns)
{
	return ct_slot_live(s) && (ns == NULL || ct_slot_ns(s) == ns->id);
}

/* Copies what the lock guards and what is constant; the lock itself is not part of a copy. */
static void
copy_entry(struct ct_entry *to, const struct ct_entry *from) SL_REQUIRES(&from->lock)
{
	to->orig = from->orig;
	to->reply = from->reply;
	to->lock = (struct sl_lock){0};
	to->life = CT_LIVE;
	to->status = from->status;
	to->gen = from->gen;
	to->deadline = from->deadline;
	to->proto = from->proto;
	to->ns = from->ns;
	to->ns_gen = from->ns_gen;
	to->mark = from->mark;
	to->start_ns = from->start_ns;
	memcpy(to->nat, from->nat, sizeof(to->nat));
	memcpy(to->limit, from->limit, sizeof(to->limit));
	to->seqadj = from->seqadj;
}

/* A view of entry i when the walk selects it. */
static bool
view(struct ct *ct, uint32_t i, const struct ct_walk *w, const struct ct_filter *f,
	struct sl_now now, struct ct_view *v)
{
	struct ct_entry *e = &ct->pool[i];
	bool ok;

	sl_lock(&e->lock);
	ok = ct_life(e) == CT_LIVE && e->start_ns <= w->start_ns &&
	     (f->ns == NULL || (e->ns == f->ns && e->ns_gen == f->ns->gen)) &&
	     !sl_ms_passed(e->deadline, now.ms);
	if (ok)
		copy_entry(&v->entry, e);
	sl_unlock(&e->lock);
	if (!ok)
		return false;
	v->index = i;
	v->left_ms = sl_ms_left(v->entry.deadline, now.ms);
	return f->match == NULL || f->match(v, f->match_arg);
}

bool
ct_walk_slice(struct ct_thread *t, struct ct_walk *w, const struct ct_filter *f,
	unsigned int budget, struct sl_now now, const struct ct_visitor *visitor)
{
	struct ct_view v;

	for (; w->next < w->end && budget > 0; budget--) {
		uint32_t i = w->next++;

		if (slot_matches(&t->ct->slot[i], f->ns) && view(t->ct, i, w, f, now, &v) &&
			!visitor->visit(&v, visitor->arg))
			break;
	}
	return w->next < w->end;
}

/* Turns entry i to DYING if it is still the one of that generation. */
static bool
kill_index(struct ct_thread *t, uint32_t i, uint32_t gen)
{
	struct ct_entry *e = &t->ct->pool[i];

	if (!ct_lock_live(e, gen))
		return false;
	ct_mark_dying(e);
	sl_unlock(&e->lock);
	ct_reap(t, &e, 1);
	netns_counter_add(&t->stats.deleted, 1);
	return true;
}

bool
ct_flush_slice(struct ct_thread *t, struct ct_walk *w, const struct ct_filter *f,
	unsigned int budget, struct sl_now now, uint64_t *destroyed)
{
	struct ct_view v;

	for (; w->next < w->end && budget > 0; budget--) {
		uint32_t i = w->next++;

		if (slot_matches(&t->ct->slot[i], f->ns) && view(t->ct, i, w, f, now, &v))
			*destroyed += kill_index(t, i, v.entry.gen);
	}
	return w->next < w->end;
}

/* Whether the owner in the slot is a namespace that lives. An id has no other owner before the
 * entries of the last are gone. */
static bool
owner_alive(const struct ct *ct, const struct ct_slot *s)
{
	const struct netns *ns = netns_by_id(ct->netns, ct_slot_ns(s));

	return ns != NULL && netns_alive(ns);
}

/* The slots were read without a lock: who owns an entry now is decided under it. */
unsigned int
ct_purge_batch(struct ct_thread *t, const uint32_t index[], unsigned int n)
{
	struct ct_entry *dead[CT_SWEEP_BATCH], *e;
	unsigned int i, n_dead = 0;

	for (i = 0; i < n; i++)
		ct_prefetch_entry(&t->ct->pool[index[i]]);
	for (i = 0; i < n; i++) {
		e = &t->ct->pool[index[i]];
		sl_lock(&e->lock);
		if (ct_life(e) == CT_LIVE && !netns_alive(e->ns)) {
			ct_mark_dying(e);
			dead[n_dead++] = e;
		}
		sl_unlock(&e->lock);
	}
	ct_reap(t, dead, n_dead);
	netns_counter_add(&t->stats.deleted, n_dead);
	return n_dead;
}

bool
ct_purge_slice(struct ct_thread *t, struct ct_walk *w, unsigned int budget, uint64_t *destroyed)
{
	uint32_t index[CT_SWEEP_BATCH], first = w->next;
	unsigned int n = 0;

	for (; w->next < w->end && budget > 0; budget--) {
		uint32_t i = w->next++;

		if (slot_matches(&t->ct->slot[i], NULL) && !owner_alive(t->ct, &t->ct->slot[i]))
			index[n++] = i;
		if (n == CT_SWEEP_BATCH) {
			*destroyed += ct_purge_batch(t, index, n);
			n = 0;
		}
	}
	*destroyed += ct_purge_batch(t, index, n);
	netns_counter_add(&t->stats.walked, w->next - first);
	return w->next < w->end;
}
