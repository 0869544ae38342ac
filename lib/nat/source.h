/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The by-source table: which public address and port a source has. One for all namespaces; the key
 * has the namespace. A mapping lives as long as something refers to it.
 *
 *   remembered  the address of a range is a function of the source and its port is kept where it is
 *               free, so most mappings need not be in the table: these are those that are
 *               otherwise. Several sources may have one public end, toward different remote ends
 *   exclusive   endpoint-independent ones: the public end is one source's alone, by which it is
 *               found, too
 *   permits     of an exclusive mapping: a remote address that its source has sent to
 *
 * Each function locks what it needs and holds it only inside. Leaf locks: they may be called under
 * an entry's lock.
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
	/* of exclusive ones */
	uint8_t filter;  /* enum nat_filter */
	uint16_t pool;   /* its number */
	uint32_t block;  /* the mapping's reference to a block of the pool, plus one; 0: none */
	uint8_t mac[6];  /* where the source is: nat_end.mac */
	uint16_t where;  /* and on what: nat_request.where */
	uint8_t prefix_len; /* with NAT64: of the prefix by which it knows others; else 0 */
	struct tuple_addr prefix;
};

struct nat_sources *nat_sources_create(
	uint32_t max, enum sl_hash_backend hash, uint64_t seed, struct sl_err *err);
void nat_sources_destroy(struct nat_sources *s);

/* Control: room for so many mappings from now on; never less than there was. 0 or -ENOMEM. */
int nat_sources_grow(struct nat_sources *s, uint32_t max, struct sl_err *err);

uint32_t nat_sources_used(const struct nat_sources *s);
bool nat_sources_exclusive(const struct nat_sources *s); /* whether there are exclusive ones */

/* The key of a connection's source: its original tuple without the destination. */
void nat_source_key(struct tuple *key, const struct tuple *original);

/* Of an exclusive mapping; and of a permit to send to it. */
void nat_source_key_of_pool(struct tuple *key, const struct tuple *original, uint16_t pool);
void nat_source_key_permit(
	struct tuple *permit, const struct tuple *key, const struct tuple_addr *remote);

/* Of a host alone, whatever the protocol and port. */
void nat_source_host(struct tuple *key, const struct tuple *original);

/* The key of a public end. */
void nat_source_end(struct tuple *end, const struct tuple *of, const struct tuple_addr *addr,
	rte_be16_t port);

/* Copies the mapping of a source. False: it has none. Costs one load while the table is empty. */
bool nat_source_peek(struct nat_sources *s, const struct tuple *key, struct nat_mapping *m);

/*
 * Takes a reference to the source's mapping, which is made from *m if there is none; *m is then
 * what the source has. 0: the table is full.
 */
uint32_t nat_source_get(struct nat_sources *s, const struct tuple *key, struct nat_mapping *m);

/* Takes a reference to what there is of that key, and copies it. 0: nothing. */
uint32_t nat_source_hold(struct nat_sources *s, const struct tuple *key, struct nat_mapping *m);

enum nat_claim {
	NAT_CLAIM_MADE,  /* *ref: the source has the end now */
	NAT_CLAIM_HAD,   /* *ref: the source has another already, which *m is */
	NAT_CLAIM_TAKEN, /* another source has the end */
	NAT_CLAIM_FULL,  /* the table is */
};

/* An exclusive mapping of a source to the end *m; `like` has the scope, zone and protocol of the
 * answers. With MADE the mapping has the caller's reference to the block. */
enum nat_claim nat_source_claim(struct nat_sources *s, const struct tuple *key,
	const struct tuple *like, struct nat_mapping *m, uint32_t *ref);

/* The hash of a key or of a public end, and what is fetched ahead by it: where a key's or an end's
 * chain begins; then the first mapping of a key's chain. */
uint32_t nat_source_hash(const struct nat_sources *s, const struct tuple *key);
void nat_source_prefetch(const struct nat_sources *s, uint32_t hash);
void nat_source_end_prefetch(const struct nat_sources *s, uint32_t hash);
void nat_source_prefetch_first(const struct nat_sources *s, uint32_t hash);

/* A hint whether a claim of that end would succeed; prefetch before it. */
bool nat_source_end_taken(struct nat_sources *s, const struct tuple *end, uint32_t hash);

/* Whose end it is: takes a reference, and sets the source's key and the mapping. 0: nobody's. Costs
 * one load while there are no exclusive mappings. */
uint32_t nat_source_inside(struct nat_sources *s, const struct tuple *end, struct tuple *key,
	struct nat_mapping *m);

/* Takes a reference to the permit, which takes the caller's reference to the mapping. 0: the table
 * is full, and the mapping's reference is still the caller's. */
uint32_t nat_source_permit(struct nat_sources *s, const struct tuple *permit, uint32_t mapping);

/* What goes with the last reference. */
struct nat_source_gone {
	bool exclusive;
	struct tuple end; /* exclusive: as nat_source_end() */
	uint16_t pool;
	uint32_t block;   /* a reference to be given back, plus one; 0: none */
	uint32_t mapping; /* likewise, to a mapping; 0: none */
};

/* Gives a reference back; true with the last one: what it was is gone, and *gone is set. 0 is left
 * alone. */
bool nat_source_put(struct nat_sources *s, uint32_t ref, struct nat_source_gone *gone);

/* What that will touch, of a reference that is not 0: the mapping, then where its chains begin. */
void nat_source_put_prefetch(const struct nat_sources *s, uint32_t ref);
void nat_source_put_prefetch_heads(const struct nat_sources *s, uint32_t ref);

#endif
