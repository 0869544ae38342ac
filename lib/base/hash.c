/* SPDX-License-Identifier: BSD-3-Clause */
#include "hash.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

#include <rte_cpuflags.h>

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline void
sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = ROTL(s->v1, 13) ^ s->v0;
	s->v0 = ROTL(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = ROTL(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = ROTL(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = ROTL(s->v1, 17) ^ s->v2;
	s->v2 = ROTL(s->v2, 32);
}

static inline void
sip_absorb(struct sip *s, uint64_t m)
{
	s->v3 ^= m;
	sip_round(s);
	sip_round(s);
	s->v0 ^= m;
}

static inline struct sip
sip_start(const struct sl_hasher *h)
{
	uint64_t k[2];

	memcpy(k, h->key, sizeof(k));
	return (struct sip){k[0] ^ UINT64_C(0x736f6d6570736575),
		k[1] ^ UINT64_C(0x646f72616e646f6d), k[0] ^ UINT64_C(0x6c7967656e657261),
		k[1] ^ UINT64_C(0x7465646279746573)};
}

static inline uint64_t
sip_end(struct sip *s, uint64_t last)
{
	unsigned int i;

	sip_absorb(s, last);
	s->v2 ^= 0xff;
	for (i = 0; i < 4; i++)
		sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static uint64_t
siphash(const struct sl_hasher *h, const void *data)
{
	struct sip s = sip_start(h);
	const uint8_t *p = data;
	uint64_t m;
	uint32_t tail;
	unsigned int i;

	for (i = 0; i + sizeof(m) <= SL_HASH_LEN; i += sizeof(m)) {
		memcpy(&m, p + i, sizeof(m));
		sip_absorb(&s, m);
	}
	memcpy(&tail, p + i, sizeof(tail));
	return sip_end(&s, (uint64_t)SL_HASH_LEN << 56 | tail);
}

static uint64_t
siphash_word(const struct sl_hasher *h, uint64_t w)
{
	struct sip s = sip_start(h);

	sip_absorb(&s, w);
	return sip_end(&s, (uint64_t)sizeof(w) << 56);
}

/* In the order of the ends that comes first. */
static uint64_t
siphash_ends(const struct sl_hasher *h, const void *data)
{
	const uint8_t *p = data;
	uint8_t turned[SL_HASH_LEN];
	unsigned int end;
	int order = memcmp(p + SL_HASH_ADDR(0), p + SL_HASH_ADDR(1), SL_HASH_ADDR_LEN);

	if (order == 0)
		order = memcmp(p + SL_HASH_PORT(0), p + SL_HASH_PORT(1), SL_HASH_PORT_LEN);
	if (order <= 0)
		return siphash(h, p);
	memcpy(turned, p, SL_HASH_ADDR(0));
	for (end = 0; end < 2; end++) {
		memcpy(turned + SL_HASH_ADDR(end), p + SL_HASH_ADDR(1 - end), SL_HASH_ADDR_LEN);
		memcpy(turned + SL_HASH_PORT(end), p + SL_HASH_PORT(1 - end), SL_HASH_PORT_LEN);
	}
	return siphash(h, turned) ^ SL_HASH_TURNED;
}

static void
siphash_ends_bulk(const struct sl_hasher *h, const void *first, size_t stride, unsigned int n,
	uint64_t *out, size_t out_stride)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		*out = siphash_ends(h, first);
		first = (const uint8_t *)first + stride;
		out = (uint64_t *)((uintptr_t)out + out_stride);
	}
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AES_TARGET __attribute__((target("aes,sse4.1")))

AES_TARGET static inline __m128i
aes_load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i_u *)(const void *)p);
}

/*
 * Three lanes with a key of their own each (the last overlaps the second, since 44 bytes are not a
 * multiple of 16), two AES rounds a lane: a chosen difference in one lane cannot be cancelled by
 * another but with the probability of a two-round differential, about 2^-28 at best. Their sum goes
 * through two more rounds. Six round keys of 16 bytes.
 */
AES_TARGET static inline uint64_t
aes_hash(const struct sl_hasher *h, const uint8_t *p)
{
	const __m128i *k = (const __m128i *)(const void *)h->key;
	__m128i a = _mm_xor_si128(aes_load(p), k[0]);
	__m128i b = _mm_xor_si128(aes_load(p + 16), k[1]);
	__m128i c = _mm_xor_si128(aes_load(p + SL_HASH_LEN - 16), k[2]);

	a = _mm_aesenc_si128(_mm_aesenc_si128(a, k[3]), k[4]);
	b = _mm_aesenc_si128(_mm_aesenc_si128(b, k[4]), k[5]);
	c = _mm_aesenc_si128(_mm_aesenc_si128(c, k[5]), k[3]);
	a = _mm_xor_si128(_mm_xor_si128(a, b), c);
	a = _mm_aesenc_si128(_mm_aesenc_si128(a, k[0]), k[5]);
	return (uint64_t)_mm_cvtsi128_si64(a);
}

AES_TARGET static uint64_t
aes_one(const struct sl_hasher *h, const void *data)
{
	return aes_hash(h, data);
}

/* Three rounds: each bit of the word has then gone into all of the state. */
AES_TARGET static uint64_t
aes_word(const struct sl_hasher *h, uint64_t w)
{
	const __m128i *k = (const __m128i *)(const void *)h->key;
	__m128i a = _mm_xor_si128(_mm_cvtsi64_si128((long long)w), k[0]);

	a = _mm_aesenc_si128(_mm_aesenc_si128(a, k[1]), k[2]);
	return (uint64_t)_mm_cvtsi128_si64(_mm_aesenc_si128(a, k[3]));
}

/*
 * A lane for each end, both with the same keys: a round over the address, then the port, and two
 * more rounds, so that what differs in the one is not cancelled by the other. Their sum is that of
 * both orders; with what belongs to both ends it goes through two more rounds. Which lane is the
 * larger tells the orders apart.
 */
AES_TARGET static inline uint64_t
aes_hash_ends(const struct sl_hasher *h, const uint8_t *p)
{
	const __m128i *k = (const __m128i *)(const void *)h->key;
	__m128i a = _mm_xor_si128(aes_load(p + SL_HASH_ADDR(0)), k[0]);
	__m128i b = _mm_xor_si128(aes_load(p + SL_HASH_ADDR(1)), k[0]);
	uint64_t both;
	__m128i sum;
	uint16_t port[2];
	bool turned;

	memcpy(&both, p, sizeof(both));
	memcpy(port, p + SL_HASH_PORT(0), sizeof(port));
	a = _mm_aesenc_si128(a, _mm_xor_si128(k[1], _mm_cvtsi32_si128(port[0])));
	b = _mm_aesenc_si128(b, _mm_xor_si128(k[1], _mm_cvtsi32_si128(port[1])));
	a = _mm_aesenc_si128(_mm_aesenc_si128(a, k[2]), k[3]);
	b = _mm_aesenc_si128(_mm_aesenc_si128(b, k[2]), k[3]);
	sum = _mm_xor_si128(_mm_add_epi64(a, b),
		_mm_xor_si128(k[4], _mm_cvtsi64_si128((long long)both)));
	sum = _mm_aesenc_si128(_mm_aesenc_si128(sum, k[5]), k[0]);
	turned = (uint64_t)_mm_cvtsi128_si64(a) > (uint64_t)_mm_cvtsi128_si64(b);
	return (uint64_t)_mm_cvtsi128_si64(sum) ^ (turned ? SL_HASH_TURNED : 0);
}

AES_TARGET static uint64_t
aes_ends(const struct sl_hasher *h, const void *data)
{
	return aes_hash_ends(h, data);
}

AES_TARGET static void
aes_ends_bulk(const struct sl_hasher *h, const void *first, size_t stride, unsigned int n,
	uint64_t *out, size_t out_stride)
{
	const uint8_t *p = first;
	unsigned int i;

	for (i = 0; i < n; i++, p += stride) {
		*out = aes_hash_ends(h, p);
		out = (uint64_t *)((uintptr_t)out + out_stride);
	}
}

static int
use_aes(struct sl_hasher *h)
{
	if (rte_cpu_get_flag_enabled(RTE_CPUFLAG_AES) <= 0)
		return -ENOTSUP;
	h->word = aes_word;
	h->one = aes_one;
	h->ends = aes_ends;
	h->ends_bulk = aes_ends_bulk;
	h->backend = SL_HASH_AES;
	return 0;
}
#else
static int
use_aes(struct sl_hasher *h)
{
	(void)h;
	return -ENOTSUP;
}
#endif

/* splitmix64 (Steele, Lea, Flood 2014): spreads a seed over the key. */
static uint64_t
seed_next(uint64_t *s)
{
	uint64_t z = (*s += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static int
make_key(struct sl_hasher *h, uint64_t seed)
{
	unsigned int i;

	if (seed == 0)
		return getrandom(h->key, sizeof(h->key), 0) == (ssize_t)sizeof(h->key) ? 0 : -errno;
	for (i = 0; i < sizeof(h->key) / sizeof(uint64_t); i++) {
		uint64_t word = seed_next(&seed);

		memcpy(h->key + i * sizeof(word), &word, sizeof(word));
	}
	return 0;
}

int
sl_hasher_init(struct sl_hasher *h, enum sl_hash_backend want, uint64_t seed)
{
	int ret = make_key(h, seed);

	if (ret < 0)
		return ret;
	if (want != SL_HASH_SIPHASH) {
		ret = use_aes(h);
		if (ret == 0 || want == SL_HASH_AES)
			return ret;
	}
	h->word = siphash_word;
	h->one = siphash;
	h->ends = siphash_ends;
	h->ends_bulk = siphash_ends_bulk;
	h->backend = SL_HASH_SIPHASH;
	return 0;
}
