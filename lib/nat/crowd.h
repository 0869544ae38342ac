/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Crowds: where most ports of a public address are taken toward one remote end, a map of them makes
 * the search short, and its being full ends it at once. A map is opened when a search has met taken
 * ports only, and learns from then on. There are few of them, as each stands for tens of thousands
 * of connections; the least used makes room.
 *
 * A map is a hint. A bit that is not set says nothing; one that is set says that the port was taken
 * by a connection that has not ended since. That holds as a bit is set before the port is looked
 * at, and cleared after its connection was unlinked.
 */
#ifndef NAT_CROWD_H
#define NAT_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#include "hash.h"
#include "tuple.h"

struct nat_crowds;
struct sl_err;

struct nat_crowds *nat_crowds_create(
	enum sl_hash_backend hash, uint64_t seed, struct sl_err *err);
void nat_crowds_destroy(struct nat_crowds *c);

/* True while there is any; one load. */
bool nat_crowds_any(const struct nat_crowds *c);

/* The key is a reply tuple whose port is 0. Opens a map if there is none. */
void nat_crowd_open(struct nat_crowds *c, const struct tuple *key);

struct nat_port_range {
	uint16_t lo, hi; /* both included */
	uint16_t start;  /* where to begin; behind hi it goes on at lo */
};

/*
 * Claims up to n ports of a range that the map has not as taken, and sets their bits. Returns how
 * many; -1 when there is no such map.
 */
int nat_crowd_claim(struct nat_crowds *c, const struct tuple *key, const struct nat_port_range *r,
	uint16_t *port, unsigned int n);

/* The port is free: its connection was unlinked, or it was claimed and not used. */
void nat_crowd_free_port(struct nat_crowds *c, const struct tuple *key, uint16_t port);

#endif
