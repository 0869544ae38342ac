/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "classify.h"
#include "ruleset.h"

#define BUCKETS 1024u

/* All programs, by hash. The mutex guards the chains and the counts. */
static struct {
	pthread_mutex_t mutex;
	struct rules_program *bucket[BUCKETS];
	unsigned int n;
	uint64_t bytes;
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- encoding ---- */

struct sizes {
	uint32_t rules, ops, words;
};

static struct sizes
measure(const struct rule_list *l)
{
	struct sizes s = {0};
	const struct rule *r;
	uint32_t i, k;
	int c;

	for (c = 0; c < RULE_CHAINS; c++) {
		for (i = 0; i < l->chain[c].n; i++) {
			r = l->chain[c].rule[i];
			s.rules++;
			s.ops += r->n;
			for (k = 0; k < r->n; k++)
				if (r->item[k].type == RULE_MATCH)
					s.words += 2 * r->item[k].match.n *
						   rules_words(r->item[k].match.field);
		}
	}
	return s;
}

static bool
is_ip4_address(uint8_t field)
{
	return field == RULE_IP_SADDR || field == RULE_IP_DADDR;
}

static uint32_t *
put_value(uint32_t *w, uint8_t field, const union rule_value *v)
{
	unsigned int i;

	if (!rules_field_wide(field)) {
		*w = is_ip4_address(field) ? rte_be_to_cpu_32(v->addr.w[0]) : v->n;
		return w + 1;
	}
	for (i = 0; i < RULES_WIDE; i++)
		w[i] = rte_be_to_cpu_32(v->addr.w[i]);
	return w + RULES_WIDE;
}

/* Not constant over the packets of one direction of a connection. The type of an ICMP query is: it
 * is part of the tuple, and verdicts on errors are not kept. */
static bool
varies(const struct rule_item *it)
{
	switch (it->type) {
	case RULE_MATCH:
		return it->match.field == RULE_TCP_FLAGS || it->match.field == RULE_CT_STATE ||
		       it->match.field == RULE_CT_MARK || it->match.field == RULE_META_MARK;
	case RULE_LIMIT:
		return it->limit.by.family == 0;
	case RULE_CT_MARK_SET:
		return it->mark_set.from_meta;
	default:
		return false;
	}
}

/* Where the next op and word go. */
struct cursor {
	struct rules_op *op;
	uint32_t *word, *words;
};

static void
put_item(struct cursor *c, const struct rule_item *it, uint32_t number)
{
	const struct rule_match *m = &it->match;
	uint32_t i;

	*c->op = (struct rules_op){.type = it->type, .at = number};
	if (it->type == RULE_MATCH) {
		c->op->field = m->field;
		c->op->negate = m->negate;
		c->op->mask = m->mask;
		c->op->n = m->n;
		c->op->at = (uint32_t)(c->word - c->words);
		for (i = 0; i < m->n; i++) {
			c->word = put_value(c->word, m->field, &m->range[i].lo);
			c->word = put_value(c->word, m->field, &m->range[i].hi);
		}
	}
	c->op++;
}

static void
encode(struct rules_program *p, uint32_t *start, struct cursor c, const struct rule_list *l)
{
	const struct rules_op *first = c.op;
	const struct rule *r;
	uint32_t i, k, n = 0;
	int chain;

	for (chain = 0; chain < RULE_CHAINS; chain++) {
		p->chain[chain].first = n;
		p->chain[chain].n = l->chain[chain].n;
		p->chain[chain].drop = l->chain[chain].drop;
		for (i = 0; i < l->chain[chain].n; i++) {
			r = l->chain[chain].rule[i];
			start[n++] = (uint32_t)(c.op - first);
			for (k = 0; k < r->n; k++) {
				put_item(&c, &r->item[k], k);
				p->chain[chain].varies |= varies(&r->item[k]);
			}
		}
	}
	start[n] = (uint32_t)(c.op - first);
}

struct rules_program *
rules_program_new(const struct rule_list *l)
{
	struct sizes s = measure(l);
	size_t starts = RTE_ALIGN_CEIL((s.rules + 1) * sizeof(uint32_t), sizeof(uint64_t));
	size_t size = starts + s.ops * sizeof(struct rules_op) + s.words * sizeof(uint32_t);
	struct rules_program *p;
	struct cursor c;

	size = RTE_ALIGN_CEIL(size, sizeof(uint64_t));
	p = calloc(1, sizeof(*p) + size);
	if (p == NULL)
		return NULL;
	p->size = size;
	p->bytes = sizeof(*p) + size;
	p->start = (const uint32_t *)p->image;
	c.op = (struct rules_op *)((char *)p->image + starts);
	c.word = c.words = (uint32_t *)(c.op + s.ops);
	p->op = c.op;
	p->word = c.words;
	encode(p, (uint32_t *)p->image, c, l);
	return p;
}

void
rules_program_free(struct rules_program *p)
{
	int c;

	if (p == NULL)
		return;
	for (c = 0; c < RULE_CHAINS; c++)
		rules_classifier_free(p->classifier[c]);
	free(p);
}

/* ---- sharing ---- */

static bool
same(const struct rules_program *a, const struct rules_program *b)
{
	return a->hash == b->hash && a->size == b->size &&
	       memcmp(a->chain, b->chain, sizeof(a->chain)) == 0 &&
	       memcmp(a->image, b->image, a->size) == 0;
}

/* FNV-1a by words: what is the same is compared in full, and the texts are the tenants' own. */
static uint64_t
hash_of(const struct rules_program *p)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	size_t i;

	for (i = 0; i < p->size / sizeof(uint64_t); i++)
		h = (h ^ p->image[i]) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}

/* Under the mutex. */
static struct rules_program *
find_same(const struct rules_program *p)
{
	struct rules_program *q = registry.bucket[p->hash % BUCKETS];

	while (q != NULL && !same(p, q))
		q = q->next;
	return q;
}

/* The same with a reference. */
static struct rules_program *
take_same(const struct rules_program *p)
{
	struct rules_program *q = find_same(p);

	if (q != NULL)
		q->refs++;
	return q;
}

bool
rules_program_known(struct rules_program *p)
{
	bool known;

	p->hash = hash_of(p);
	pthread_mutex_lock(&registry.mutex);
	known = find_same(p) != NULL;
	pthread_mutex_unlock(&registry.mutex);
	return known;
}

static struct rules_program *
insert(struct rules_program *p)
{
	struct rules_program *q;

	pthread_mutex_lock(&registry.mutex);
	q = take_same(p);
	if (q == NULL) {
		p->refs = 1;
		p->next = registry.bucket[p->hash % BUCKETS];
		registry.bucket[p->hash % BUCKETS] = p;
		registry.n++;
		registry.bytes += p->bytes;
	}
	pthread_mutex_unlock(&registry.mutex);
	if (q == NULL)
		return p;
	rules_program_free(p);
	return q;
}

struct rules_program *
rules_program_share(struct rules_program *p)
{
	struct rules_program *q;
	int c;

	p->hash = hash_of(p);
	pthread_mutex_lock(&registry.mutex);
	q = take_same(p);
	pthread_mutex_unlock(&registry.mutex);
	if (q != NULL) {
		rules_program_free(p);
		return q;
	}
	for (c = 0; c < RULE_CHAINS; c++) {
		if (rules_classifier_build(p, (enum rule_chain)c, &p->classifier[c]) != 0) {
			rules_program_free(p);
			return NULL;
		}
		p->bytes += rules_classifier_bytes(p->classifier[c]);
	}
	return insert(p);
}

void
rules_program_put(const struct rules_program *p)
{
	struct rules_program **at, *gone = NULL;

	if (p == NULL)
		return;
	pthread_mutex_lock(&registry.mutex);
	for (at = &registry.bucket[p->hash % BUCKETS]; *at != p; at = &(*at)->next)
		;
	if (--(*at)->refs == 0) {
		gone = *at;
		*at = gone->next;
		registry.n--;
		registry.bytes -= gone->bytes;
	}
	pthread_mutex_unlock(&registry.mutex);
	rules_program_free(gone);
}

void
ruleset_memory(unsigned int *programs, uint64_t *bytes)
{
	pthread_mutex_lock(&registry.mutex);
	*programs = registry.n;
	*bytes = registry.bytes;
	pthread_mutex_unlock(&registry.mutex);
}
