/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Token buckets. A bucket is one number, the time at which it will be full again: it holds
 * burst × cost less what is missing until then, and a packet costs unit / rate. That is the token
 * bucket of nft's `limit rate`, in the form of the virtual scheduling algorithm (ITU-T I.371).
 *
 * Without a key the number is changed by compare and exchange, and only by a packet that gets
 * a token: what is above the rate reads it and writes nothing, so workers do not fight for its
 * line under a flood.
 *
 * By key, the buckets lie in sets, with a lock each, that an address is hashed to. A bucket that is
 * full is as good as none, so its place is free. When there is none in the set, the bucket that
 * will be full first gives way: what it is forgiven is the least that can be, and who has been
 * throttled longest stays so, however many others come. The memory is the rate's own, so no tenant
 * can displace another's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "connlimit.h"
#include "connlimit_private.h"
#include "err.h"

#define SET_WAYS 5u

struct rate_key {
	struct tuple_addr addr; /* masked */
	uint64_t full_ns;       /* 0: never used */
};

struct rate_set {
	struct rate_key key[SET_WAYS]; /* guarded by lock */
	struct sl_lock lock;
} __rte_cache_aligned;

_Static_assert(sizeof(struct rate_set) == 2 * RTE_CACHE_LINE_SIZE, "a set is two cache lines");

struct connlimit_rate {
	/* constant */
	uint64_t cost_ns;  /* of a packet */
	uint64_t slack_ns; /* a packet finds a token when no more than this is missing */
	struct connlimit_key by;
	struct tuple_addr mask;
	bool over;
	const struct sl_hasher *hasher;
	uint32_t set_mask;
	struct rate_set *set; /* NULL: one bucket for all */
	unsigned int sharers; /* besides who made it; control only */
	/* changing */
	uint64_t full_ns __rte_cache_aligned;
	uint64_t evicted;
};

/* Whether there is a token in a bucket that is full at *full_ns; takes it. */
static inline bool
take_token(const struct connlimit_rate *r, uint64_t *full_ns, uint64_t now_ns)
{
	uint64_t full = RTE_MAX(*full_ns, now_ns);

	if (full - now_ns > r->slack_ns)
		return false;
	*full_ns = full + r->cost_ns;
	return true;
}

/* A turn is lost only to another worker that takes a token. */
static bool
match_all(struct connlimit_rate *r, uint64_t now_ns)
{
	uint64_t old = __atomic_load_n(&r->full_ns, __ATOMIC_RELAXED), new;

	do {
		new = old;
		if (!take_token(r, &new, now_ns))
			return false;
	} while (!__atomic_compare_exchange_n(&r->full_ns, &old, new, true, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED));
	return true;
}

static struct rate_set *
set_of(const struct connlimit_rate *r, const struct tuple_addr *addr)
{
	uint8_t bytes[SL_HASH_LEN] = {0};

	memcpy(bytes, addr, sizeof(*addr));
	return &r->set[(uint32_t)sl_hash(r->hasher, bytes) & r->set_mask];
}

/* The place of an address in its set: its own, or that of the bucket that is full first. */
static struct rate_key *
find_key(struct connlimit_rate *r, struct rate_set *s, const struct tuple_addr *addr,
	uint64_t now_ns) SL_REQUIRES(&s->lock)
{
	struct rate_key *least = &s->key[0], *k;

	for (k = s->key; k < s->key + SET_WAYS; k++) {
		if (k->full_ns != 0 && memcmp(&k->addr, addr, sizeof(*addr)) == 0)
			return k;
		if (k->full_ns < least->full_ns)
			least = k;
	}
	if (least->full_ns > now_ns)
		__atomic_fetch_add(&r->evicted, 1, __ATOMIC_RELAXED);
	*least = (struct rate_key){.addr = *addr};
	return least;
}

static bool
match_key(struct connlimit_rate *r, const struct tuple *seen, uint64_t now_ns)
{
	struct tuple_addr addr = connlimit_addr(&r->by, &r->mask, seen);
	struct rate_set *s = set_of(r, &addr);
	bool token;

	sl_lock(&s->lock);
	token = take_token(r, &find_key(r, s, &addr, now_ns)->full_ns, now_ns);
	sl_unlock(&s->lock);
	return token;
}

bool
connlimit_rate_match(struct connlimit_rate *r, const struct tuple *seen, struct sl_now now)
{
	bool token;

	if (unlikely(r->by.family != 0 && r->by.family != seen->family))
		return false;
	token = r->set == NULL ? match_all(r, now.ns) : match_key(r, seen, now.ns);
	return token != r->over;
}

uint64_t
connlimit_rate_evicted(const struct connlimit_rate *r)
{
	return __atomic_load_n(&r->evicted, __ATOMIC_RELAXED);
}

static int
check(const struct connlimit_rate_config *config, struct tuple_addr *mask, struct sl_err *err)
{
	uint64_t cost;

	if (config->rate == 0 || config->unit == 0 || config->burst == 0)
		return sl_refuse(err, EINVAL, "a rate and its burst are at least 1");
	cost = config->unit * SL_NSEC_PER_SEC / config->rate;
	/* A bucket's time has to stay far from the end of 64 bits. */
	if (cost > 0 && config->burst > (UINT64_C(1) << 62) / cost)
		return sl_refuse(err, EINVAL, "a burst of %" PRIu32 " takes too long to come back",
			config->burst);
	if (config->by.family != 0 && (config->keys == 0 || config->keys > CONNLIMIT_KEYS_MAX))
		return sl_refuse(err, EINVAL, "%" PRIu32 " keys are out of range (1-%u)",
			config->keys, CONNLIMIT_KEYS_MAX);
	if (!connlimit_mask(&config->by, mask))
		return sl_refuse(err, EINVAL, "a mask of %u bits is too long for the address",
			config->by.prefix);
	return 0;
}

/* Written to the last byte, so that the packet path meets no page that is not there. */
static int
create_sets(struct connlimit_rate *r, uint32_t keys)
{
	uint32_t n = rte_align32pow2((keys + SET_WAYS - 1) / SET_WAYS);
	size_t bytes = (size_t)n * sizeof(struct rate_set);

	r->set = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
	if (r->set == NULL)
		return -ENOMEM;
	memset(r->set, 0, bytes);
	r->set_mask = n - 1;
	return 0;
}

int
connlimit_rate_create(struct connlimit *cl, const struct connlimit_rate_config *config,
	struct connlimit_rate **out, struct sl_err *err)
{
	struct tuple_addr mask;
	struct connlimit_rate *r;
	int ret = check(config, &mask, err);

	if (ret < 0)
		return ret;
	r = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*r));
	if (r == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	memset(r, 0, sizeof(*r));
	r->cost_ns = config->unit * SL_NSEC_PER_SEC / config->rate;
	r->slack_ns = r->cost_ns * (config->burst - 1);
	r->by = config->by;
	r->mask = mask;
	r->over = config->over;
	r->hasher = &cl->hasher;
	if (config->by.family != 0 && create_sets(r, config->keys) < 0) {
		free(r);
		return sl_refuse(err, ENOMEM, "no memory for %" PRIu32 " keys", config->keys);
	}
	*out = r;
	return 0;
}

struct connlimit_rate *
connlimit_rate_share(struct connlimit_rate *r)
{
	r->sharers++;
	return r;
}

void
connlimit_rate_free(struct connlimit_rate *r)
{
	if (r == NULL || r->sharers-- > 0)
		return;
	free(r->set);
	free(r);
}
