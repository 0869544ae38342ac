/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Translations that are ready: what a packet of one direction becomes, in the line of the entry
 * that the packet has touched anyway, so that a translated connection costs no more memory than
 * another. Made for TCP and UDP over IPv4 where one end is translated and nothing is counted, since
 * it lies where the counters would; what has none goes by nat_rewrite(), which does all.
 *
 * Written while the entry is an embryo, but for the station, under its lock; each half is one word.
 * Read without the lock: whoever does looks at the entry's generation last (nat_rewrite()).
 */
#ifndef NAT_READY_H
#define NAT_READY_H

#include <netinet/in.h>

#include "csum.h"
#include "nat.h"

struct nat_ready {
	rte_be32_t addr; /* in place of the source, or of the destination */
	rte_be16_t port;
	uint16_t l4_diff; /* of address and port, for csum_adjust16() */
	uint8_t mac[6];  /* of the station that it goes to; zero: not known */
	uint16_t ip_diff; /* of the address */
};

_Static_assert(sizeof(struct nat_ready) == sizeof(((struct ct_dir_part *)0)->nat_ready),
	"as entry.h has it");

/* The embryo has its reply tuple: makes it ready, or not. */
void nat_ready_make(struct ct_entry *e);

/* Where an end of the connection is, of an embryo or under the entry's lock. */
void nat_end_set(struct ct_entry *e, unsigned int dir, const uint8_t mac[6]);

__attribute__((no_sanitize_thread)) static inline struct nat_ready
nat_ready_load(const struct ct_entry *e, unsigned int dir)
{
	const uint64_t *from = dir == CT_ORIGINAL ? e->orig.nat_ready : e->reply.nat_ready;
	uint64_t word[2] = {__atomic_load_n(&from[0], __ATOMIC_RELAXED),
		__atomic_load_n(&from[1], __ATOMIC_RELAXED)};
	struct nat_ready r;

	memcpy(&r, word, sizeof(r));
	return r;
}

static inline void
nat_adjust16(uint8_t *at, uint16_t diff)
{
	uint16_t sum;

	memcpy(&sum, at, sizeof(sum));
	sum = csum_adjust16(sum, diff);
	memcpy(at, &sum, sizeof(sum));
}

/* For a packet itself, in one piece, of an entry with that status. */
static inline void
nat_ready_write(struct pkt *p, const struct nat_ready *r, uint16_t status)
{
	/* Which end changes: the one of who sends in the direction that SRC or DST is meant for. */
	unsigned int source = (status / CT_SRC_NAT ^ p->ct_dir) & 1;
	uint16_t sum;

	memcpy(p->l3 + 16 - 4 * source, &r->addr, sizeof(r->addr));
	nat_adjust16(p->l3 + 10, r->ip_diff);
	memcpy(p->l4 + 2 - 2 * source, &r->port, sizeof(r->port));
	if (__builtin_expect(p->proto == IPPROTO_TCP, 1)) {
		nat_adjust16(p->l4 + 16, r->l4_diff);
		return;
	}
	memcpy(&sum, p->l4 + 6, sizeof(sum));
	if (sum == 0) /* there is none (RFC 768) */
		return;
	sum = csum_adjust16(sum, r->l4_diff);
	sum = sum == 0 ? UINT16_MAX : sum;
	memcpy(p->l4 + 6, &sum, sizeof(sum));
}

#endif
