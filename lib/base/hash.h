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
 *
 * Of keys that name two ends there is a hash that both orders of the ends share but for one bit: so
 * both directions of a connection fall into one line of a table, and are told apart there.
 */
#ifndef SL_HASH_H
#define SL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define SL_HASH_LEN 44

/* Where the ends are: an address and a port of each. What is before them is of both. */
#define SL_HASH_ADDR_LEN 16
#define SL_HASH_ADDR(end) (8 + SL_HASH_ADDR_LEN * (end))
#define SL_HASH_PORT_LEN 2
#define SL_HASH_PORT(end) (40 + SL_HASH_PORT_LEN * (end))

/* The bit by which the hashes of both orders differ. */
#define SL_HASH_TURNED (UINT64_C(1) << 48)

enum sl_hash_backend { SL_HASH_AUTO, SL_HASH_AES, SL_HASH_SIPHASH };

struct sl_hasher {
	uint8_t key[96] __attribute__((aligned(16)));
	uint64_t (*word)(const struct sl_hasher *h, uint64_t w);
	uint64_t (*one)(const struct sl_hasher *h, const void *data);
	uint64_t (*ends)(const struct sl_hasher *h, const void *data);
	void (*ends_bulk)(const struct sl_hasher *h, const void *first, size_t stride,
		unsigned int n, uint64_t *out, size_t out_stride);
	enum sl_hash_backend backend; /* the one in use, never AUTO */
};

/*
 * Chooses the back end and the key: random when seed is 0, else derived from it (replay, tests).
 * Returns 0, -ENOTSUP when SL_HASH_AES is asked for and the CPU lacks it, or -errno of getrandom().
 */
int sl_hasher_init(struct sl_hasher *h, enum sl_hash_backend want, uint64_t seed);

/* The hash of 8 bytes; it has nothing to do with that of as many bytes among others. */
static inline uint64_t
sl_hash_word(const struct sl_hasher *h, uint64_t w)
{
	return h->word(h, w);
}

/* The hash of the SL_HASH_LEN bytes at data; no alignment needed. */
static inline uint64_t
sl_hash(const struct sl_hasher *h, const void *data)
{
	return h->one(h, data);
}

/*
 * Likewise; with both ends changed for each other it is the same but for SL_HASH_TURNED. (Of two
 * ends that are equal it is the same.)
 */
static inline uint64_t
sl_hash_ends(const struct sl_hasher *h, const void *data)
{
	return h->ends(h, data);
}

/* sl_hash_ends() of n keys that lie stride bytes apart; the results are stored out_stride bytes
 * apart. */
static inline void
sl_hash_ends_bulk(const struct sl_hasher *h, const void *first, size_t stride, unsigned int n,
	uint64_t *out, size_t out_stride)
{
	h->ends_bulk(h, first, stride, n, out, out_stride);
}

#endif
