/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hash table: lines of eight tagged references, overflow lines chained behind them. Where the
 * answers of a connection have its tuple with the ends changed, as most have that are not
 * translated, it is in one slot of one line for both directions; else in two slots, of two lines.
 *
 * Writers change a chain only under the stripe of its head line. A chain is kept dense: what is
 * taken out is replaced by the chain's last reference, and an overflow line that falls empty goes
 * back to its type-stable pool. Readers take no lock. They can therefore meet a reference that was
 * just taken out or a line that went over to another chain, and both are harmless: a hit is
 * verified in the entry, and the number of lines a reader follows is bounded. What they must not do
 * is miss an entry that stays, so a miss is valid only when the head's version, which is odd while
 * a writer is at it, was even before and is the same after the scan; else the scan is repeated, and
 * after some tries left to those who hold the stripe.
 */
#include "private.h"

#include <errno.h>
#include <stdlib.h>

#include "err.h"

#define FIND_TRIES 4

/* Four times what an even spread of a full pool gives, and room for chance in small tables. */
void
ct_lines_bound(struct ct_lines *l, uint32_t max)
{
	uint64_t slots = ((uint64_t)l->mask + 1) * CT_SLOTS;

	__atomic_store_n(&l->chain_max, 16 + (uint32_t)((uint64_t)max * 2 * 4 / slots),
		__ATOMIC_RELAXED);
}

/* Below this size a region, which is of huge pages, would mostly be waste. */
#define REGION_MIN ((size_t)512 << 10)

static int
allocate(struct ct_lines *l, size_t bytes, struct sl_err *err)
{
	int ret;

	if (bytes < REGION_MIN) {
		l->line = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
		if (l->line == NULL)
			return sl_refuse(err, ENOMEM, "out of memory");
		memset(l->line, 0, bytes);
		l->present = bytes;
		return 0;
	}
	ret = sl_region_reserve(&l->region, bytes, err);
	if (ret == 0)
		ret = sl_region_grow(&l->region, bytes, err);
	l->line = (struct ct_line *)(void *)l->region.base;
	l->present = l->region.present;
	return ret;
}

int
ct_lines_create(struct ct_lines **out, uint32_t buckets, uint32_t max, struct sl_err *err)
{
	uint32_t n = buckets / CT_SLOTS;
	struct ct_lines *l = calloc(1, sizeof(*l));
	int ret;

	if (l == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	ret = allocate(l, (size_t)n * sizeof(struct ct_line), err);
	if (ret < 0) {
		ct_lines_destroy(l);
		return ret;
	}
	l->mask = n - 1;
	l->stripe_mask = RTE_MIN(n, CT_STRIPES) - 1;
	ct_lines_bound(l, max);
	*out = l;
	return 0;
}

void
ct_lines_destroy(struct ct_lines *l)
{
	if (l == NULL)
		return;
	if (l->region.base == NULL)
		free(l->line);
	sl_region_release(&l->region);
	free(l);
}

static inline struct ct_line *
line_next(const struct ct *ct, const struct ct_line *l)
{
	uint32_t next = __atomic_load_n(&l->next, __ATOMIC_ACQUIRE);

	return next == 0 ? NULL : &ct->overflow[next];
}

struct ct_entry *
ct_find_in_line(const struct ct *ct, const struct ct_line *l, const struct tuple *key, uint16_t tag,
	uint32_t *gen, unsigned int *dir)
{
	unsigned int mask = ct_line_match(l, tag);

	for (; mask != 0; mask &= mask - 1) {
		unsigned int slot = (unsigned int)__builtin_ctz(mask);
		uint32_t ref = ct_slot_ref(l, slot, tag);

		if (ref == 0)
			continue;
		if (ct_ref_is(ct, ref, key, gen)) {
			*dir = ref & 1;
			return &ct->pool[ref >> 1];
		}
	}
	return NULL;
}

static struct ct_entry *
find_in_chain(const struct ct *ct, const struct ct_lines *l, const struct tuple *key, uint64_t hash,
	uint32_t *gen, unsigned int *dir)
{
	const struct ct_line *head = ct_head(l, hash), *line;
	unsigned int try, hops;
	struct ct_entry *e;
	uint32_t before;

	for (try = 0; try < FIND_TRIES; try++) {
		before = __atomic_load_n(&head->version, __ATOMIC_ACQUIRE);
		hops = ct_chain_max(l);
		for (line = head; line != NULL && hops > 0; line = line_next(ct, line), hops--) {
			e = ct_find_in_line(ct, line, key, ct_tag(hash), gen, dir);
			if (e != NULL)
				return e;
		}
		if (before % 2 == 0 && __atomic_load_n(&head->version, __ATOMIC_RELAXED) == before)
			break;
		rte_pause();
	}
	return NULL;
}

struct ct_entry *
ct_find(const struct ct *ct, const struct tuple *key, uint64_t hash, uint32_t *gen,
	unsigned int *dir)
{
	const struct ct_lines *l;
	struct ct_entry *e = NULL;

	for (l = ct_lines_of(ct, key); l != NULL && e == NULL;
		l = __atomic_load_n(&l->next, __ATOMIC_ACQUIRE))
		e = find_in_chain(ct, l, key, hash, gen, dir);
	return e;
}

/* ---- writers: all below under the stripe of the chain ---- */

/* Where the chain of a hash is now, of a table whose lines may just be moving. */
static const struct ct_lines *
lines_now(const struct ct_lines *l, uint64_t hash)
{
	const struct ct_lines *next = __atomic_load_n(&l->next, __ATOMIC_ACQUIRE);

	return next != NULL && l->moved[(uint32_t)hash & l->stripe_mask] ? next : l;
}

/* The slots that are in use, as bits. */
static inline unsigned int
slots_taken(const struct ct_line *l)
{
#if defined(__SSE2__) && !defined(SL_TSAN)
	const __m128i *ref = (const __m128i *)(const void *)l->ref;
	__m128i low = _mm_cmpeq_epi32(_mm_load_si128(ref), _mm_setzero_si128());
	__m128i high = _mm_cmpeq_epi32(_mm_load_si128(ref + 1), _mm_setzero_si128());

	return 0xffu ^ (unsigned int)(_mm_movemask_ps(_mm_castsi128_ps(low)) |
				      _mm_movemask_ps(_mm_castsi128_ps(high)) << 4);
#else
	unsigned int i, taken = 0;

	for (i = 0; i < CT_SLOTS; i++)
		taken |= (unsigned int)(l->ref[i] != 0) << i;
	return taken;
#endif
}

static inline void
chain_begin(struct ct_line *head)
{
	__atomic_store_n(&head->version, head->version + 1, __ATOMIC_RELAXED);
}

static inline void
chain_end(struct ct_line *head)
{
	__atomic_store_n(&head->version, head->version + 1, __ATOMIC_RELEASE);
}

static inline void
slot_set(struct ct_line *l, unsigned int slot, uint16_t tag, uint32_t ref)
{
	__atomic_store_n(&l->tag[slot], tag, __ATOMIC_RELEASE);
	__atomic_store_n(&l->ref[slot], ref, __ATOMIC_RELEASE);
}

/* Chains are dense, so the first empty slot is behind the last used one. */
static inline unsigned int
slots_used(const struct ct_line *l)
{
	return 31 - (unsigned int)__builtin_clz(slots_taken(l) << 1 | 1);
}

static int
chain_add(struct ct_thread *t, const struct ct_lines *l, uint64_t hash, uint32_t ref,
	uint32_t chain_max)
{
	struct ct *ct = t->ct;
	struct ct_line *head = ct_head(l, hash), *line = head;
	unsigned int hops = 1, used;
	uint32_t id;

	while (line->next != 0) {
		line = &ct->overflow[line->next];
		hops++;
	}
	used = slots_used(line);
	if (used == CT_SLOTS) {
		id = hops < chain_max ? sl_ids_get(&ct->line_ids, &t->line_ids) : 0;
		if (id == 0)
			return -ENOSPC;
		chain_begin(head);
		slot_set(&ct->overflow[id], 0, ct_tag(hash), ref);
		__atomic_store_n(&line->next, id, __ATOMIC_RELEASE);
	} else {
		chain_begin(head);
		slot_set(line, used, ct_tag(hash), ref);
	}
	chain_end(head);
	return 0;
}

/* Where a reference is in its chain, and the chain's last line. */
struct place {
	struct ct_line *line, *last, *before_last;
	unsigned int slot;
};

static bool
chain_locate(
	const struct ct *ct, struct ct_line *head, uint16_t tag, uint32_t ref, struct place *at)
{
	struct ct_line *line = head, *before = NULL;
	unsigned int mask;

	at->line = NULL;
	for (;;) {
		mask = at->line == NULL ? ct_line_match(line, tag) : 0;
		for (; mask != 0; mask &= mask - 1) {
			unsigned int slot = (unsigned int)__builtin_ctz(mask);

			if (line->ref[slot] == ref) {
				at->line = line;
				at->slot = slot;
			}
		}
		if (line->next == 0)
			break;
		before = line;
		line = &ct->overflow[line->next];
	}
	at->last = line;
	at->before_last = before;
	return at->line != NULL;
}

static void
chain_remove(struct ct_thread *t, const struct ct_lines *l, uint64_t hash, uint32_t ref)
{
	struct ct_line *head = ct_head(l, hash);
	struct place at;
	unsigned int last;

	if (!chain_locate(t->ct, head, ct_tag(hash), ref, &at))
		return;
	last = slots_used(at.last) - 1;
	chain_begin(head);
	if (at.line != at.last || at.slot != last)
		slot_set(at.line, at.slot, at.last->tag[last], at.last->ref[last]);
	slot_set(at.last, last, 0, 0);
	if (last == 0 && at.before_last != NULL) {
		uint32_t id = at.before_last->next;

		__atomic_store_n(&at.before_last->next, 0, __ATOMIC_RELEASE);
		sl_ids_put(&t->ct->line_ids, &t->line_ids, id);
	}
	chain_end(head);
}

static inline bool
lacks(const struct ct_line *head, uint64_t hash)
{
	return head->next == 0 &&
	       (ct_line_match(head, ct_tag(hash)) & slots_taken(head)) == 0;
}

bool
ct_unknown(const struct ct_lines *l, const uint64_t hash[2])
{
	return __atomic_load_n(&l->next, __ATOMIC_ACQUIRE) == NULL &&
	       lacks(ct_head(l, hash[CT_ORIGINAL]), hash[CT_ORIGINAL]) &&
	       (ct_one_slot(hash) || lacks(ct_head(l, hash[CT_REPLY]), hash[CT_REPLY]));
}

int
ct_link(struct ct_thread *t, struct ct_entry *e, const uint64_t hash[2])
{
	const struct ct_lines *l = ct_lines_of(t->ct, &e->orig.tuple);
	const struct ct_lines *l0 = lines_now(l, hash[0]), *l1 = lines_now(l, hash[1]);
	uint32_t ref = ct_index(t->ct, e) << 1;
	int ret;

	ret = chain_add(t, l0, hash[0], ref, ct_chain_max(l0));
	if (ret < 0 || ct_one_slot(hash))
		return ret;
	ret = chain_add(t, l1, hash[1], ref | CT_REPLY, ct_chain_max(l1));
	if (ret < 0)
		chain_remove(t, l0, hash[0], ref);
	return ret;
}

void
ct_unlink(struct ct_thread *t, struct ct_entry *e, const uint64_t hash[2])
{
	struct ct *ct = t->ct;
	const struct ct_lines *l = ct_lines_of(ct, &e->orig.tuple);
	uint32_t ref = ct_index(ct, e) << 1;
	struct sl_stripes s;

	sl_stripes_lock(&s, ct_stripe(ct, l, hash[0]), ct_stripe(ct, l, hash[1]));
	chain_remove(t, lines_now(l, hash[0]), hash[0], ref);
	if (unlikely(!ct_one_slot(hash)))
		chain_remove(t, lines_now(l, hash[1]), hash[1], ref | CT_REPLY);
	sl_stripes_unlock(&s);
}

/*
 * Copies a chain. The old lines keep their references, which readers may still follow: they are
 * verified in the entries. The bound of chains is for new connections, not for those that are here;
 * and overflow lines do not run out, since dense chains of both tables need no more than there are
 * (pool.c).
 */
static void
move_chain(struct ct_thread *t, const struct ct_lines *to, const struct ct_line *line)
{
	struct ct *ct = t->ct;
	unsigned int i, used;

	for (; line != NULL; line = line_next(ct, line)) {
		used = slots_used(line);
		for (i = 0; i < used; i++) {
			uint32_t ref = line->ref[i];
			uint64_t hash = sl_hash_ends(
				&ct->hasher, ct_tuple(&ct->pool[ref >> 1], ref & 1));

			chain_add(t, to, hash, ref, UINT32_MAX);
		}
	}
}

void
ct_move_stripe(struct ct_thread *t, struct ct_lines *l, uint32_t stripe)
{
	struct ct *ct = t->ct;
	uint32_t i;

	sl_lock(&ct->stripe[stripe].lock);
	for (i = stripe; i <= l->mask; i += CT_STRIPES)
		move_chain(t, l->next, &l->line[i]);
	l->moved[stripe] = true;
	sl_unlock(&ct->stripe[stripe].lock);
}

bool
ct_lines_free_overflow(struct ct_thread *t, struct ct_lines *l, uint32_t *line, uint32_t lines)
{
	struct ct *ct = t->ct;
	uint32_t id, next;

	for (; lines > 0 && *line <= l->mask; lines--, ++*line) {
		for (id = l->line[*line].next; id != 0; id = next) {
			struct ct_line *o = &ct->overflow[id];
			unsigned int s;

			next = o->next;
			for (s = 0; s < CT_SLOTS; s++)
				slot_set(o, s, 0, 0);
			__atomic_store_n(&o->next, 0, __ATOMIC_RELEASE);
			sl_ids_put(&ct->line_ids, &t->line_ids, id);
		}
	}
	return *line <= l->mask;
}
