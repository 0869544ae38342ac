/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SYN cookies (RFC 4987, 3.6): what has to be remembered of a SYN goes into the sequence number of
 * the answer, so that a half-open connection costs no memory. The client's ACK brings it back.
 *
 *   bits 31–27  time, in units of COOKIE_UNIT_S
 *   bits 26–24  which MSS, of a table of eight
 *   bits 23–0   keyed hash of the tuple, the client's sequence number and the above
 *
 * A client that uses timestamps (RFC 7323) gets the rest of its offer, window scale and SACK, in
 * the low bits of the timestamp that it echoes; of one that does not neither can be kept, and so
 * they must not be promised.
 */
#ifndef COOKIE_H
#define COOKIE_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "hash.h"
#include "tuple.h"

#define COOKIE_UNIT_S   64u /* a cookie is good for one to two units */
#define COOKIE_NO_SCALE 15u /* the client offered no window scale */

/* What the client has offered in its SYN, as far as it can be kept. */
struct cookie_offer {
	uint16_t mss;
	uint8_t scale; /* 0–14, or COOKIE_NO_SCALE */
	bool sack;
	bool timestamp;
};

/* 0, or -errno when there is no random key. seed: 0 for a random one. */
int cookie_init(struct sl_hasher *h, uint64_t seed);

/* The sequence number that answers the SYN of sequence `seq`. */
uint32_t cookie_make(const struct sl_hasher *h, const struct tuple *syn, uint32_t seq,
	uint16_t mss, struct sl_now now);

/* The timestamp of that answer: not later than `now`, and later than those a unit before. */
uint32_t cookie_timestamp(const struct cookie_offer *offer, struct sl_now now);

/*
 * Whether `cookie` answered a SYN of that tuple and sequence number lately. Sets offer->mss, which
 * is the greatest of the table that is not above what was offered.
 */
bool cookie_check(const struct sl_hasher *h, const struct tuple *syn, uint32_t seq,
	uint32_t cookie, struct sl_now now, struct cookie_offer *offer);

/* The rest of the offer, of the timestamp that the client echoes. */
void cookie_read_timestamp(uint32_t echoed, struct cookie_offer *offer);

#endif
