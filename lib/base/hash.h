/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keyed hash of all shared tables. The key is random per process and never shown, and the
 * function is not linear, so nobody outside can build keys that fall in one bucket (a CRC or
 * Toeplitz hash would let them, under any key).
 *
 * A key to hash is SL_HASH_LEN bytes without padding. Two back ends: rounds of the AES
 * instructions, where the CPU has them, and SipHash-2-4 (Aumasson, Bernstein 2012), elsewhere and
 * in replay, where the key comes from a fixed seed. They give different values; one process uses
 * one.
 */
#ifndef SL_HASH_H
#define SL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define SL_HASH_LEN 44

enum sl_hash_backend { SL_HASH_AUTO, SL_HASH_AES, SL_HASH_SIPHASH };

struct sl_hasher {
	uint8_t key[96] __attribute__((aligned(16)));
	uint64_t (*one)(const struct sl_hasher *h, const void *data);
	void (*bulk)(const struct sl_hasher *h, const void *first, size_t stride, unsigned int n,
		uint64_t *out, size_t out_stride);
	enum sl_hash_backend backend; /* the one in use, never AUTO */
};

/*
 * Chooses the back end and the key: random when seed is 0, else derived from it (replay, tests).
 * Returns 0, -ENOTSUP when SL_HASH_AES is asked for and the CPU lacks it, or -errno of getrandom().
 */
int sl_hasher_init(struct sl_hasher *h, enum sl_hash_backend want, uint64_t seed);

/* The hash of the SL_HASH_LEN bytes at data; no alignment needed. */
static inline uint64_t
sl_hash(const struct sl_hasher *h, const void *data)
{
	return h->one(h, data);
}

/* n keys that lie stride bytes apart; the results are stored out_stride bytes apart. */
static inline void
sl_hash_bulk(const struct sl_hasher *h, const void *first, size_t stride, unsigned int n,
	uint64_t *out, size_t out_stride)
{
	h->bulk(h, first, stride, n, out, out_stride);
}

#endif
