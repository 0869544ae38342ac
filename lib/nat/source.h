/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The by-source table: which public address and port a source has. One for all namespaces; the key
 * has the namespace. A mapping lives as long as something refers to it.
 *
 * Not every source is in it. The address that a source gets of a range is a function of the source
 * and its port is kept where it is free, so most mappings need not be remembered: in the table are
 * those that are otherwise.
 *
 * Each function locks the key's stripe and holds it only inside. Leaf locks: they may be called
 * under an entry's lock.
 */
#ifndef NAT_SOURCE_H
#define NAT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "hash.h"
#include "tuple.h"

struct nat_sources;
struct sl_err;

/* Where a source is. Of an IPv4 address the last twelve bytes are zero. */
struct nat_mapping {
	struct tuple_addr addr;
	rte_be16_t port; /* or id; 0 when only the address is kept */
	uint8_t family;  /* of addr: another than the source's with NAT64 */
};

struct nat_sources *nat_sources_create(
	uint32_t max, enum sl_hash_backend hash, uint64_t seed, struct sl_err *err);
void nat_sources_destroy(struct nat_sources *s);

/* The key of a connection's source: its original tuple without the destination. For the address
 * alone, whatever the protocol and port: nat_source_host(). */
void nat_source_key(struct tuple *key, const struct tuple *original);
void nat_source_host(struct tuple *key, const struct tuple *original);

/* Copies the mapping of a source. False: it has none. Costs one load while the table is empty. */
bool nat_source_peek(struct nat_sources *s, const struct tuple *key, struct nat_mapping *m);

/*
 * Takes a reference to the source's mapping, which is made from *m if there is none; *m is then
 * what the source has. 0: the table is full.
 */
uint32_t nat_source_get(struct nat_sources *s, const struct tuple *key, struct nat_mapping *m);

/* Gives a reference back; with the last one the mapping goes. 0 is left alone. */
void nat_source_put(struct nat_sources *s, uint32_t ref);

uint32_t nat_sources_used(const struct nat_sources *s);

#endif
