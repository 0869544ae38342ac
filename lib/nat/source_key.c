/* SPDX-License-Identifier: BSD-3-Clause */
/* What mappings are found by. */
#include "source.h"

void
nat_source_key(struct tuple *key, const struct tuple *original)
{
	*key = *original;
	memset(&key->dst, 0, sizeof(key->dst));
	key->dport = 0;
}

/* No key of a remembered mapping has a destination port. */
void
nat_source_key_of_pool(struct tuple *key, const struct tuple *original, uint16_t pool)
{
	nat_source_key(key, original);
	key->dport = pool;
}

void
nat_source_key_permit(
	struct tuple *permit, const struct tuple *key, const struct tuple_addr *remote)
{
	*permit = *key;
	permit->dst = *remote;
}

void
nat_source_host(struct tuple *key, const struct tuple *original)
{
	nat_source_key(key, original);
	key->proto = 0;
	key->sport = 0;
}

void
nat_source_end(struct tuple *end, const struct tuple *of, const struct tuple_addr *addr,
	rte_be16_t port)
{
	*end = (struct tuple){.scope = of->scope,
		.zone = of->zone,
		.family = of->family,
		.proto = of->proto,
		.dst = *addr,
		.dport = port};
}
