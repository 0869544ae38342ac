/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expiry of entries that no packet touches any more: all threads go through the walk's array
 * together, each taking the next part in turn. An idle thread sweeps as it polls, but a pass over
 * the pool takes at least SWEEP_PASS_MS; a busy one sweeps in proportion to what it inserted, and a
 * little anyway.
 */
#include "private.h"

#define SWEEP_PART      4096u
#define SWEEP_PASS_MS   100u
#define SWEEP_IDLE      512u
#define SWEEP_BUSY_MIN  8u
#define SWEEP_BUSY_MAX  1024u

/* Takes the next part of the pool. False when an idle thread shall wait for the next pass, or
 * another thread is just taking one. */
static bool
take_part(struct ct_thread *t, bool idle, struct sl_now now)
{
	struct ct *ct = t->ct;
	uint32_t end = __atomic_load_n(&ct->entry_ids.high_water, __ATOMIC_ACQUIRE);
	bool taken = false;

	if (!sl_trylock(&ct->sweep_lock))
		return false;
	if (ct->sweep_cursor >= end)
		ct->sweep_cursor = 0;
	if (ct->sweep_cursor > 0 || !idle || now.ms - ct->sweep_pass_ms >= SWEEP_PASS_MS) {
		if (ct->sweep_cursor == 0)
			ct->sweep_pass_ms = now.ms;
		t->sweep_next = ct->sweep_cursor;
		t->sweep_end = RTE_MIN(ct->sweep_cursor + SWEEP_PART, end);
		ct->sweep_cursor = t->sweep_end;
		taken = true;
	}
	sl_unlock(&ct->sweep_lock);
	return taken;
}

/* Looks at up to `budget` slots of the thread's part; fills batch with those that look expired. */
static unsigned int
collect(struct ct_thread *t, unsigned int *budget, struct ct_entry **batch, struct sl_now now)
{
	struct ct *ct = t->ct;
	unsigned int n = 0;

	for (; *budget > 0 && t->sweep_next < t->sweep_end && n < CT_SWEEP_BATCH; (*budget)--) {
		uint32_t i = t->sweep_next++;
		const struct ct_slot *s = &ct->slot[i];

		if (!ct_slot_live(s) ||
			!sl_ms_passed(__atomic_load_n(&s->deadline, __ATOMIC_RELAXED), now.ms))
			continue;
		batch[n] = &ct->pool[i];
		__builtin_prefetch(&ct->queued[i], 1);
		ct_prefetch_entry(batch[n++]);
	}
	return n;
}

/* Destroys what has expired of the batch; for the others the walk's deadline is brought up to
 * date. */
static unsigned int
expire_batch(struct ct_thread *t, struct ct_entry **batch, unsigned int n, struct sl_now now)
{
	struct ct *ct = t->ct;
	unsigned int i, dead = 0;

	for (i = 0; i < n; i++) {
		struct ct_entry *e = batch[i];

		sl_lock(&e->lock);
		if (ct_life(e) == CT_LIVE) {
			if (sl_ms_passed(e->deadline, now.ms)) {
				ct_mark_dying(e);
				batch[dead++] = e;
			} else {
				__atomic_store_n(&ct->slot[ct_index(ct, e)].deadline, e->deadline,
					__ATOMIC_RELAXED);
			}
		}
		sl_unlock(&e->lock);
	}
	ct_reap(t, batch, dead);
	netns_counter_add(&t->stats.expired, dead);
	return dead;
}

/*
 * What a busy thread looks at in a turn is a line, and with millions of connections that is in no
 * cache: the next turn would wait for it, however few of them have to do with its packets. Of the
 * line that the turn begins in all was read in this one, or fetched.
 */
static inline void
fetch_next(const struct ct_thread *t)
{
	uint32_t last = t->sweep_next + SWEEP_BUSY_MIN - 1;

	if (last < t->sweep_end)
		rte_prefetch0(&t->ct->slot[last]);
}

unsigned int
ct_sweep(struct ct_thread *t, bool idle, struct sl_now now)
{
	struct ct_entry *batch[CT_SWEEP_BATCH];
	unsigned int owed = RTE_MIN(t->sweep_credit, SWEEP_BUSY_MAX);
	unsigned int budget = idle ? SWEEP_IDLE : owed + SWEEP_BUSY_MIN, left = budget;
	unsigned int n, dead = 0;

	t->sweep_credit -= owed;
	while (left > 0) {
		if (t->sweep_next >= t->sweep_end && !take_part(t, idle, now))
			break;
		n = collect(t, &left, batch, now);
		if (n > 0)
			dead += expire_batch(t, batch, n, now);
	}
	fetch_next(t);
	netns_counter_add(&t->stats.swept, budget - left);
	return dead;
}
