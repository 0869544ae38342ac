/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What rules read and keep in an entry. The entry is a packet's own: either an embryo, which nobody
 * else can see, or one that is found by (life, generation) under its lock.
 */
#include "private.h"

/* An embryo of the packet's generation is the caller's: nobody else makes one of that. */
static bool
is_own_embryo(const struct pkt *p)
{
	return ct_life(p->ct) == CT_EMBRYO &&
	       __atomic_load_n(&p->ct->gen, __ATOMIC_RELAXED) == p->ct_gen;
}

bool
ct_hold(const struct pkt *p) SL_NO_ANALYSIS
{
	return is_own_embryo(p) || ct_lock_live(p->ct, p->ct_gen);
}

void
ct_release(const struct pkt *p) SL_NO_ANALYSIS
{
	if (ct_life(p->ct) != CT_EMBRYO)
		sl_unlock(&p->ct->lock);
}

/* Under the lock of the entry, if it needs one. */
static void
tell_mark(struct ct_thread *t, const struct ct_entry *e) SL_NO_ANALYSIS
{
	ct_changed(t, e, CT_CHANGED_MARK);
}

bool
ct_mark_get(const struct pkt *p, uint32_t *mark)
{
	if (!ct_hold(p))
		return false;
	*mark = p->ct->mark;
	ct_release(p);
	return true;
}

bool
ct_mark_set(struct ct_thread *t, const struct pkt *p, uint32_t mark)
{
	struct ct_entry *e = p->ct;

	if (!ct_hold(p))
		return false;
	if (e->mark != mark) {
		e->mark = mark;
		tell_mark(t, e);
	}
	ct_release(p);
	return true;
}

bool
ct_zone_get(const struct pkt *p, uint32_t *zone)
{
	if (!ct_hold(p))
		return false;
	*zone = p->ct->orig.tuple.zone != 0 ? p->ct->orig.tuple.zone : p->ct->reply.tuple.zone;
	ct_release(p);
	return true;
}

bool
ct_far_end(const struct pkt *p, struct tuple *far)
{
	if (!ct_hold(p))
		return false;
	*far = *ct_tuple(p->ct, p->ct_dir ^ 1u);
	ct_release(p);
	return true;
}

bool
ct_verdict_set(const struct pkt *p, bool both, uint32_t verdict)
{
	struct ct_entry *e = p->ct;

	if (!ct_hold(p))
		return false;
	ct_dir_part(e, p->ct_dir)->verdict = verdict;
	if (both)
		ct_dir_part(e, p->ct_dir ^ 1u)->verdict = verdict;
	ct_release(p);
	return true;
}
