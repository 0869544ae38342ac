/* SPDX-License-Identifier: BSD-3-Clause */
#include "cookie.h"

#include <string.h>

#include <rte_common.h>

#define MAC_MASK  UINT32_C(0x00ffffff)
#define MSS_SHIFT 24
#define MSS_MASK  7u
#define TIME_SHIFT 27
#define TIME_MASK 31u

/* Those in use on paths of Ethernet with either version of IP, with tunnels and with jumbo frames,
 * and the least that a host must take (RFC 9293, 3.7.1). */
static const uint16_t mss_table[MSS_MASK + 1] = {216, 536, 1220, 1380, 1420, 1440, 1460, 8940};

/* The low bits of a timestamp: window scale, SACK. */
#define TS_BITS  UINT32_C(0x3f)
#define TS_SCALE UINT32_C(0x0f)
#define TS_SACK  UINT32_C(0x10)

int
cookie_init(struct sl_hasher *h, uint64_t seed)
{
	return sl_hasher_init(h, seed == 0 ? SL_HASH_AUTO : SL_HASH_SIPHASH, seed);
}

static unsigned int
mss_index(uint16_t mss)
{
	unsigned int i = MSS_MASK;

	while (i > 0 && mss_table[i] > mss)
		i--;
	return i;
}

static uint32_t
time_of(struct sl_now now)
{
	return (uint32_t)(now.ns / (COOKIE_UNIT_S * SL_NSEC_PER_SEC));
}

/* A hash takes as much as a tuple: so one of the tuple, then one of the result and the rest. */
static uint32_t
mac(const struct sl_hasher *h, const struct tuple *syn, uint32_t seq, uint32_t time,
	unsigned int index)
{
	struct {
		uint64_t tuple;
		uint32_t seq, time, index;
		uint32_t zero[6];
	} rest = {.tuple = sl_hash(h, syn), .seq = seq, .time = time, .index = index};

	_Static_assert(sizeof(rest) >= SL_HASH_LEN, "the hash takes SL_HASH_LEN bytes");
	return (uint32_t)sl_hash(h, &rest) & MAC_MASK;
}

uint32_t
cookie_make(const struct sl_hasher *h, const struct tuple *syn, uint32_t seq, uint16_t mss,
	struct sl_now now)
{
	unsigned int index = mss_index(mss);
	uint32_t time = time_of(now);

	return (time & TIME_MASK) << TIME_SHIFT | index << MSS_SHIFT |
	       mac(h, syn, seq, time, index);
}

uint32_t
cookie_timestamp(const struct cookie_offer *offer, struct sl_now now)
{
	uint32_t bits = offer->scale | (offer->sack ? TS_SACK : 0);
	uint32_t ts = (now.ms & ~TS_BITS) | bits;

	return ts > now.ms ? ts - (TS_BITS + 1) : ts;
}

bool
cookie_check(const struct sl_hasher *h, const struct tuple *syn, uint32_t seq, uint32_t cookie,
	struct sl_now now, struct cookie_offer *offer)
{
	unsigned int index = cookie >> MSS_SHIFT & MSS_MASK;
	uint32_t time = time_of(now), age = (time - (cookie >> TIME_SHIFT)) & TIME_MASK;

	if (age > 1 || (cookie & MAC_MASK) != mac(h, syn, seq, time - age, index))
		return false;
	*offer = (struct cookie_offer){.mss = mss_table[index], .scale = COOKIE_NO_SCALE};
	return true;
}

void
cookie_read_timestamp(uint32_t echoed, struct cookie_offer *offer)
{
	offer->timestamp = true;
	offer->scale = echoed & TS_SCALE;
	offer->sack = (echoed & TS_SACK) != 0;
}
