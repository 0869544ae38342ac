/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registry: who exists, by id and by name. Only the control thread reads or writes it; workers
 * reach a namespace through their links and entries.
 *
 * A batch is built with nothing visible outside but its names, which are in the name table as
 * NETNS_DEAD so that a name that comes twice is found as fast as one that is taken; undoing a batch
 * is taking these out and freeing. A namespace and its counters are one allocation.
 */
#include "netns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "name.h"
#include "registry.h"

#define NAMES_MIN 64u

/* FNV-1a: names are chosen by the operator, who attacks nobody but himself. */
static struct netns **
name_slot(const struct netns_registry *r, const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name != '\0'; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return &r->names[h & r->names_mask];
}

static struct netns *
name_find(const struct netns_registry *r, const char *name)
{
	struct netns *ns;

	for (ns = *name_slot(r, name); ns != NULL; ns = ns->next) {
		if (strcmp(ns->name, name) == 0)
			return ns;
	}
	return NULL;
}

static void
name_insert(struct netns_registry *r, struct netns *ns)
{
	struct netns **slot = name_slot(r, ns->name);

	ns->next = *slot;
	*slot = ns;
}

static void
name_remove(struct netns_registry *r, struct netns *ns)
{
	struct netns **pp = name_slot(r, ns->name);

	while (*pp != ns)
		pp = &(*pp)->next;
	*pp = ns->next;
	ns->next = NULL;
}

/* Makes the name table large enough for `want` names; chains stay at about one. */
static int
names_reserve(struct netns_registry *r, uint32_t want)
{
	uint32_t size = rte_align32pow2(RTE_MAX(want, NAMES_MIN));
	struct netns **old = r->names, *ns, *next;
	uint32_t i, old_size = old == NULL ? 0 : r->names_mask + 1;

	if (size <= old_size)
		return 0;
	r->names = calloc(size, sizeof(struct netns *));
	if (r->names == NULL) {
		r->names = old;
		return -ENOMEM;
	}
	r->names_mask = size - 1;
	for (i = 0; i < old_size; i++) {
		for (ns = old[i]; ns != NULL; ns = next) {
			next = ns->next;
			name_insert(r, ns);
		}
	}
	free(old);
	return 0;
}

int
netns_name_valid(const char *name, struct sl_err *err)
{
	return sl_name_valid("namespace", name, NETNS_NAME_MAX, err);
}

static struct netns *
netns_alloc(struct netns_registry *r, const char *name)
{
	size_t counters = r->threads * sizeof(struct netns_counters);
	size_t head = RTE_ALIGN_CEIL(sizeof(struct netns), RTE_CACHE_LINE_SIZE);
	char *mem = aligned_alloc(RTE_CACHE_LINE_SIZE, head + counters);
	struct netns *ns = (struct netns *)(void *)mem;

	if (ns == NULL)
		return NULL;
	memset(mem, 0, head + counters);
	ns->registry = r;
	ns->counters = (struct netns_counters *)(void *)(mem + head);
	ns->state = NETNS_DEAD;
	strcpy(ns->name, name);
	return ns;
}

static uint32_t
take_id(struct netns_registry *r)
{
	uint32_t id = r->free_hint;

	while (r->by_id[id] != NULL)
		id++;
	r->free_hint = id + 1;
	r->id_end = RTE_MAX(r->id_end, id + 1);
	return id;
}

/* Gives it an id and shows it; it cannot fail. `knobs` has a reference taken for it. */
static void
publish(struct netns_registry *r, struct netns *ns, struct knobs *knobs)
{
	ns->id = take_id(r);
	ns->gen = ++r->gens[ns->id];
	ns->knobs = knobs;
	__atomic_store_n(&ns->state, NETNS_ALIVE, __ATOMIC_RELEASE);
	sl_rcu_publish(&r->by_id[ns->id], ns);
	r->alive++;
	r->used++;
}

/* One more of a batch, with its name in the table. */
static int
build(struct netns_registry *r, const char *name, struct netns **out, struct sl_err *err)
{
	struct netns *ns;
	int ret = netns_name_valid(name, err);

	if (ret != 0)
		return ret;
	ns = name_find(r, name);
	if (ns != NULL && ns->state == NETNS_DEAD)
		return sl_refuse(err, EEXIST, "namespace %s is named twice in one batch", name);
	if (ns != NULL)
		return sl_refuse(err, EEXIST, "namespace %s exists already", name);
	ns = netns_alloc(r, name);
	if (ns == NULL)
		return sl_refuse(err, ENOMEM, "no memory for namespace %s", name);
	name_insert(r, ns);
	*out = ns;
	return 0;
}

static int
build_batch(struct netns_registry *r, const char *const names[], unsigned int n,
	struct netns **batch, struct sl_err *err)
{
	unsigned int i;
	int ret;

	for (i = 0; i < n; i++) {
		ret = build(r, names[i], &batch[i], err);
		if (ret != 0)
			goto undo;
	}
	return 0;
undo:
	while (i-- > 0) {
		name_remove(r, batch[i]);
		free(batch[i]);
	}
	return ret;
}

/* What a batch has of its parent: its block, or one that lacks only what is not inherited. */
static struct knobs *
inherited(const struct netns *parent)
{
	struct knobs *k;

	if (!knobs_have_own(parent->knobs))
		return parent->knobs;
	k = knobs_dup(parent->knobs);
	if (k != NULL) {
		knobs_drop_own(k);
		k->refs = 0;
	}
	return k;
}

int
netns_create_batch(struct netns_registry *r, const char *const names[], unsigned int n,
	const struct netns *parent, struct netns **out, struct sl_err *err)
{
	struct netns **batch;
	struct knobs *knobs;
	unsigned int i;
	int ret;

	if (n == 0)
		return 0;
	if (n > NETNS_MAX - r->used)
		return sl_refuse(err, ENOSPC, "%u namespaces are too many: %u of %u are in use", n,
			r->used, NETNS_MAX);
	batch = malloc(n * sizeof(struct netns *));
	knobs = inherited(parent);
	if (batch == NULL || knobs == NULL || names_reserve(r, r->alive + n) != 0)
		ret = sl_refuse(err, ENOMEM, "no memory for %u namespaces", n);
	else
		ret = build_batch(r, names, n, batch, err);
	if (ret == 0) {
		for (i = 0; i < n; i++)
			publish(r, batch[i], knobs);
		knobs->refs += n;
		if (out != NULL)
			memcpy(out, batch, n * sizeof(struct netns *));
	} else if (knobs != parent->knobs) {
		free(knobs);
	}
	free(batch);
	return ret;
}

void
netns_kill_batch(struct netns_registry *r, struct netns *const ns[], unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		__atomic_store_n(&ns[i]->state, NETNS_DYING, __ATOMIC_RELEASE);
		name_remove(r, ns[i]);
	}
	r->alive -= n;
}

static void
netns_free(struct netns_registry *r, struct netns *ns)
{
	drop_pool_put(ns);
	if (knobs_put(ns->knobs))
		free(ns->knobs);
	sl_rcu_publish(&r->by_id[ns->id], NULL);
	r->free_hint = RTE_MIN(r->free_hint, ns->id);
	r->used--;
	free(ns);
}

void
netns_free_batch(struct netns_registry *r, struct netns *const ns[], unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		netns_free(r, ns[i]);
}

int
netns_set_knobs(struct netns *ns, const struct knobs *changed, struct sl_err *err)
{
	struct knobs *fresh = knobs_dup(changed), *old = ns->knobs;

	if (fresh == NULL)
		return sl_refuse(err, ENOMEM, "no memory for the knobs of namespace %s", ns->name);
	sl_rcu_publish(&ns->knobs, fresh);
	if (knobs_put(old))
		sl_rcu_free(old);
	return 0;
}

static int
create_init(struct netns_registry *r)
{
	struct knobs defaults, *knobs;
	struct netns *ns;

	knobs_default(&defaults);
	knobs = knobs_dup(&defaults);
	if (knobs == NULL || build(r, "init", &ns, NULL) != 0) {
		free(knobs);
		return -ENOMEM;
	}
	publish(r, ns, knobs);
	return 0;
}

struct netns_registry *
netns_registry_create(unsigned int threads, unsigned int drop_blocks, struct sl_err *err)
{
	struct netns_registry *r = calloc(1, sizeof(*r));

	if (r == NULL)
		goto no_registry;
	r->threads = threads;
	if (drop_pool_init(&r->drops, threads, drop_blocks) != 0)
		goto no_pool;
	r->by_id = calloc(NETNS_MAX, sizeof(struct netns *));
	r->gens = calloc(NETNS_MAX, sizeof(r->gens[0]));
	if (r->by_id == NULL || r->gens == NULL || names_reserve(r, 1) != 0 || create_init(r) != 0)
		goto no_tables;
	return r;

no_tables:
	free(r->by_id);
	free(r->gens);
	free(r->names);
	drop_pool_destroy(&r->drops);
no_pool:
	free(r);
no_registry:
	sl_refuse(err, ENOMEM, "no memory for the registry of namespaces");
	return NULL;
}

void
netns_registry_destroy(struct netns_registry *r)
{
	uint32_t id;

	if (r == NULL)
		return;
	for (id = 0; id < r->id_end; id++) {
		if (r->by_id[id] != NULL)
			netns_free(r, r->by_id[id]);
	}
	free(r->by_id);
	free(r->gens);
	free(r->names);
	drop_pool_destroy(&r->drops);
	free(r);
}

unsigned int
netns_registry_threads(const struct netns_registry *r)
{
	return r->threads;
}

struct netns *
netns_init_ns(struct netns_registry *r)
{
	return r->by_id[NETNS_INIT_ID];
}

struct netns *
netns_find(struct netns_registry *r, const char *name)
{
	return name_find(r, name);
}

struct netns *
netns_by_id(struct netns_registry *r, uint32_t id)
{
	return id < NETNS_MAX ? sl_rcu_dereference(&r->by_id[id]) : NULL;
}

unsigned int
netns_count(const struct netns_registry *r)
{
	return r->alive;
}

struct netns *
netns_next(struct netns_registry *r, uint32_t *id)
{
	while (*id < r->id_end) {
		struct netns *ns = r->by_id[(*id)++];

		if (ns != NULL && ns->state == NETNS_ALIVE)
			return ns;
	}
	return NULL;
}
