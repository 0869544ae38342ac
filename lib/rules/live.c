/* SPDX-License-Identifier: BSD-3-Clause */
#include "live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "rules.h"

#define COUNTS_PER_LINE (RTE_CACHE_LINE_SIZE / (unsigned int)sizeof(struct rule_count))

static bool
has_object(const struct rule_item *it)
{
	switch (it->type) {
	case RULE_LIMIT:
	case RULE_CT_COUNT:
	case RULE_NAT:
	case RULE_LOG:
	case RULE_HELPER_SET:
		return true;
	default:
		return false;
	}
}

static void
live_free(const struct rule *r, struct rule_live *live)
{
	uint32_t i;

	for (i = 0; i < r->n; i++)
		if (live->object[i] != NULL)
			live->ops->detach(live->ops->app, &r->item[i], live->object[i]);
	free(live->count);
	free(live);
}

static int
make_counts(const struct rule *r, struct rule_live *live)
{
	size_t size;

	if (r->n_counters == 0)
		return 0;
	live->stride = RTE_ALIGN_CEIL(r->n_counters, COUNTS_PER_LINE);
	size = (size_t)live->stride * live->ops->threads * sizeof(struct rule_count);
	live->count = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	if (live->count == NULL)
		return -ENOMEM;
	memset(live->count, 0, size);
	return 0;
}

static int
attach_objects(const struct rule *r, struct rule_live *live, struct netns *ns, struct sl_err *err)
{
	uint32_t i;
	int ret;

	for (i = 0; i < r->n; i++) {
		if (!has_object(&r->item[i]))
			continue;
		ret = live->ops->attach(
			live->ops->app, ns, r, &r->item[i], &live->object[i], err);
		if (ret != 0)
			return ret;
	}
	return 0;
}

int
rule_live_make(struct rule *r, struct netns *ns, const struct rules_ops *ops, struct sl_err *err)
{
	struct rule_live *live;
	int ret;

	if (r->live != NULL)
		return 0;
	live = calloc(1, sizeof(*live) + r->n * sizeof(void *));
	if (live == NULL)
		return sl_refuse(err, ENOMEM, "no memory for a rule");
	live->ops = ops;
	ret = make_counts(r, live);
	if (ret != 0)
		sl_refuse(err, ENOMEM, "no memory for the counters of a rule");
	else
		ret = attach_objects(r, live, ns, err);
	if (ret != 0) {
		live_free(r, live);
		return ret;
	}
	r->live = live;
	rule_put(r->before);
	r->before = NULL;
	return 0;
}

void *
rule_object_before(const struct rule *r, const struct rule_item *item)
{
	return r->before != NULL ? r->before->live->object[item - r->item] : NULL;
}

void
rule_live_free(struct rule *r)
{
	if (r->live != NULL)
		live_free(r, r->live);
	r->live = NULL;
}

static const struct rule_counter *
find_counter(const struct rule *r, unsigned int index)
{
	uint32_t i;

	for (i = 0; i < r->n; i++)
		if (r->item[i].type == RULE_COUNTER && r->item[i].counter.index == index)
			return &r->item[i].counter;
	return NULL;
}

void
rule_counter_read(const struct rule *r, unsigned int index, uint64_t *packets, uint64_t *bytes)
{
	const struct rule_counter *start = find_counter(r, index);
	const struct rule_live *live = r->live;
	const struct rule_count *c;
	unsigned int t;

	*packets = start == NULL ? 0 : start->packets;
	*bytes = start == NULL ? 0 : start->bytes;
	for (t = 0; live != NULL && t < live->ops->threads; t++) {
		c = &live->count[t * live->stride + index];
		*packets += __atomic_load_n(&c->packets, __ATOMIC_RELAXED);
		*bytes += __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
	}
}
