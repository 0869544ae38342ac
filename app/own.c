/* SPDX-License-Identifier: BSD-3-Clause */
#include "own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "link_address.h"
#include "netns.h"

struct held_range {
	struct own_range range;
	struct tuple_addr furthest; /* greatest hi of the family up to here */
	enum own_holder holder;
};

struct own_set {
	unsigned int n;
	struct held_range range[]; /* by family and lo */
};

static int
compare_addr(const struct tuple_addr *a, const struct tuple_addr *b)
{
	return memcmp(a->b, b->b, sizeof(a->b));
}

/* ---- control ---- */

static int
compare_range(const void *a, const void *b)
{
	const struct held_range *x = a, *y = b;

	if (x->range.family != y->range.family)
		return x->range.family < y->range.family ? -1 : 1;
	return compare_addr(&x->range.lo, &y->range.lo);
}

/* What a search goes by. */
static void
index_set(struct own_set *s)
{
	struct held_range *r;
	unsigned int i;

	qsort(s->range, s->n, sizeof(s->range[0]), compare_range);
	for (i = 0; i < s->n; i++) {
		r = &s->range[i];
		r->furthest = r->range.hi;
		if (i > 0 && r[-1].range.family == r->range.family &&
			compare_addr(&r[-1].furthest, &r->furthest) > 0)
			r->furthest = r[-1].furthest;
	}
}

int
own_replace(struct netns *ns, enum own_holder holder, const struct own_range *r, unsigned int n,
	struct sl_err *err)
{
	struct own_set *old = ns->own, *s = NULL;
	unsigned int i, kept = 0;

	for (i = 0; old != NULL && i < old->n; i++)
		kept += old->range[i].holder != holder;
	if (kept + n > 0) {
		s = calloc(1, sizeof(*s) + (kept + n) * sizeof(s->range[0]));
		if (s == NULL)
			return sl_refuse(err, ENOMEM, "out of memory");
		for (i = 0; old != NULL && i < old->n; i++)
			if (old->range[i].holder != holder)
				s->range[s->n++] = old->range[i];
		for (i = 0; i < n; i++)
			s->range[s->n++] = (struct held_range){.range = r[i], .holder = holder};
		index_set(s);
	}
	sl_rcu_publish(&ns->own, s);
	if (old != NULL)
		sl_rcu_free(old);
	return 0;
}

void
own_free(struct netns *ns)
{
	free(ns->own);
	ns->own = NULL;
}

/* ---- worker ---- */

/* How many ranges begin at or below the address; those of IPv4 stand first. */
static unsigned int
ranges_below(const struct own_set *s, uint8_t family, const struct tuple_addr *addr)
{
	unsigned int lo = 0, hi = s->n, mid;

	while (lo < hi) {
		const struct own_range *r = &s->range[mid = (lo + hi) / 2].range;

		if (r->family < family ||
			(r->family == family && compare_addr(&r->lo, addr) <= 0))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The next range that has the address, going down from *i; NULL at the end. */
static const struct own_range *
next_range(const struct own_set *s, unsigned int *i, uint8_t family, const struct tuple_addr *addr)
{
	const struct held_range *r;

	while (*i > 0) {
		r = &s->range[--*i];
		if (r->range.family != family || compare_addr(&r->furthest, addr) < 0)
			break;
		if (compare_addr(&r->range.hi, addr) >= 0)
			return &r->range;
	}
	return NULL;
}

static bool
nat_has(const struct netns *ns, uint8_t family, const struct tuple_addr *addr)
{
	const struct own_set *s = sl_rcu_dereference(&ns->own);
	unsigned int i;

	if (s == NULL)
		return false;
	i = ranges_below(s, family, addr);
	return next_range(s, &i, family, addr) != NULL;
}

static bool
nat_answers(const struct link *l, uint8_t family, const struct tuple_addr *addr)
{
	const struct own_set *s = sl_rcu_dereference(&l->ns->own);
	const struct link *peer = link_peer(l);
	const struct own_range *r;
	unsigned int i;

	if (s == NULL)
		return false;
	for (i = ranges_below(s, family, addr); (r = next_range(s, &i, family, addr)) != NULL;) {
		if (r->link[0] != '\0' && strcmp(r->link, l->name) != 0)
			continue;
		if (r->link[0] != '\0' || peer == NULL ||
			link_on_link(l, family, addr) >= link_on_link(peer, family, addr))
			return true;
	}
	return false;
}

bool
own_answers(const struct link *l, uint8_t family, const struct tuple_addr *addr)
{
	return link_has_address(l, family, addr) || nat_answers(l, family, addr);
}

bool
own_address(const struct link *l, uint8_t family, const struct tuple_addr *addr)
{
	const struct link *peer = link_peer(l);

	return link_has_address(l, family, addr) ||
	       (peer != NULL && link_has_address(peer, family, addr)) ||
	       nat_has(l->ns, family, addr);
}
