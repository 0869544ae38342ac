/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of links: what the gateway sends from, and what it answers ARP and Neighbour
 * Solicitations for. An address belongs to one link of a namespace.
 *
 * Each link has a list in the order in which they were added. Control alone changes it; workers
 * walk it within their RCU read side. A node is constant while workers can see it, and freed a
 * grace period after it was taken out, so that what a worker got from here stays valid until its
 * next quiescent state.
 */
#ifndef LINK_ADDRESS_H
#define LINK_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "link.h"
#include "tuple.h"

#define LINK_ADDRESSES_MAX 64u /* of one link */

struct prefix;
struct sl_err;

struct link_address {
	struct link_address *next; /* RCU */
	struct link *link;
	struct tuple_addr addr;
	uint8_t family; /* TUPLE_IPV4, TUPLE_IPV6 */
	uint8_t len;    /* bits of the prefix that is on the link */
};

/* ---- control ---- */

/*
 * Gives the link an address, host part included. Refuses one that is no host's (unspecified,
 * loopback, multicast, broadcast), that a link of the namespace has already, and one too many. 0 or
 * -errno.
 */
int link_address_add(struct link *l, const struct prefix *address, struct sl_err *err);

/* Takes an address away from its link. */
void link_address_delete(struct link_address *a);

/* The link's address of exactly this prefix, or NULL. */
struct link_address *link_address_find(const struct link *l, const struct prefix *address);

/* All of a link that workers do not see any more, a grace period ago. */
void link_address_free_all(struct link *l);

/* ---- worker, or control ---- */

static inline const struct link_address *
link_address_first(const struct link *l)
{
	return sl_rcu_dereference(&l->addresses);
}

static inline const struct link_address *
link_address_next(const struct link_address *a)
{
	return sl_rcu_dereference(&a->next);
}

/*
 * What the gateway sends from on this link, as masquerade chooses it: of the family's addresses the
 * one whose prefix has the most of dst in it, else the first; of IPv6 a link-local one only to a
 * link-local destination, or when there is no other. dst may be NULL. NULL when the link has no
 * address of the family.
 */
const struct link_address *link_address(
	const struct link *l, uint8_t family, const struct tuple_addr *dst);

/* Whether it is one of the link's own. */
bool link_has_address(const struct link *l, uint8_t family, const struct tuple_addr *addr);

/* The bits of the link's longest prefix that has addr in it; negative when none has. */
int link_on_link(const struct link *l, uint8_t family, const struct tuple_addr *addr);

#endif
