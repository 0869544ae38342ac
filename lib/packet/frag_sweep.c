/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams whose time is over, and those of owners that are gone. Locking: frag.c. */
#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "frag_private.h"

#define SWEEP_SLICE   256u
#define SWEEP_PASS_MS 100u

/* Drops the datagram of a slot if its time is over. */
static void
expire(struct frag_table *t, uint32_t i, struct sl_now now, const struct frag_sink *sink)
{
	struct frag_spoils spoils = {.reason = SL_DROP_FRAG_TIMEOUT};
	struct frag_train *d = &t->train[i];
	uint32_t gen = __atomic_load_n(&d->gen, __ATOMIC_ACQUIRE);

	if (!(gen & 1) || !sl_ms_passed(__atomic_load_n(&d->deadline, __ATOMIC_RELAXED), now.ms))
		return;
	/* The gen proves, under the stripe, that deadline and hash were those of one datagram. */
	if (frag_drop_seen(t, i, gen, __atomic_load_n(&d->hash, __ATOMIC_RELAXED), &spoils))
		frag_discard(t, &spoils, sink);
}

static inline bool
is_empty(const struct frag_table *t)
{
	return __atomic_load_n(&t->n_free_train, __ATOMIC_RELAXED) == t->max;
}

void
frag_sweep(struct frag_table *t, struct sl_now now, const struct frag_sink *sink)
{
	uint32_t from, end;

	if (likely(is_empty(t)) || !sl_trylock(&t->sweep_lock))
		return;
	if (t->sweep_at == 0 && now.ms - t->sweep_ms >= SWEEP_PASS_MS) {
		t->sweep_at = 1;
		t->sweep_ms = now.ms;
	}
	from = t->sweep_at;
	end = from == 0 ? 0 : RTE_MIN(from + SWEEP_SLICE, t->max + 1);
	t->sweep_at = end > t->max ? 0 : end;
	sl_unlock(&t->sweep_lock);
	for (; from < end; from++)
		expire(t, from, now, sink);
}

void
frag_sweep_all(struct frag_table *t, struct sl_now now, const struct frag_sink *sink)
{
	uint32_t i;

	for (i = 1; i <= t->max && !is_empty(t); i++)
		expire(t, i, now, sink);
}

/* (gen, hash) say which datagram it was; who its owner is can be told under its stripe only. */
static void
purge_one(struct frag_table *t, struct frag_train *d,
	bool (*alive)(void *arg, uint32_t owner, uint32_t owner_gen), const struct frag_sink *sink)
{
	uint32_t gen = __atomic_load_n(&d->gen, __ATOMIC_ACQUIRE);
	struct sl_stripe *s = frag_stripe_of(t, __atomic_load_n(&d->hash, __ATOMIC_RELAXED));
	struct frag_spoils spoils = {0};

	if (!(gen & 1))
		return;
	sl_lock(&s->lock);
	if (__atomic_load_n(&d->gen, __ATOMIC_RELAXED) == gen &&
		!alive(sink->arg, d->account / 2, d->owner_gen)) {
		frag_take_out(t, s, d);
		spoils = frag_spoils_of(d, SL_DROP_NETNS_DYING);
	}
	sl_unlock(&s->lock);
	if (spoils.train != NULL)
		frag_discard(t, &spoils, sink);
}

bool
frag_purge_slice(struct frag_table *t, uint32_t *cursor, unsigned int budget,
	bool (*alive)(void *arg, uint32_t owner, uint32_t owner_gen), const struct frag_sink *sink)
{
	if (is_empty(t))
		return false;
	for (; budget > 0 && *cursor < t->max; budget--)
		purge_one(t, &t->train[++*cursor], alive, sink);
	return *cursor < t->max;
}
