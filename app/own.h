/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of the gateway: those of links (link_address.h), and those that a namespace's NAT
 * translates to. For all of them it answers ARP and Neighbour Solicitations, and a packet to one of
 * them that no translation takes elsewhere ends here.
 *
 * NAT's are ranges in one sorted array, which control replaces as a whole; workers read it within
 * their RCU read side.
 */
#ifndef OWN_H
#define OWN_H

#include <stdbool.h>
#include <stdint.h>

#include "link.h"
#include "tuple.h"

struct netns;
struct sl_err;

/* Who has ranges in a namespace. */
enum own_holder { OWN_RULES, OWN_POOLS };

struct own_range {
	struct tuple_addr lo, hi; /* lo <= hi, bytewise */
	uint8_t family;
	char link[LINK_NAME_MAX + 1]; /* where they are asked for; "": see own_answers() */
};

/* ---- control ---- */

/* Replaces a holder's ranges; n may be 0. 0 or -ENOMEM, with nothing changed. */
int own_replace(struct netns *ns, enum own_holder holder, const struct own_range *r, unsigned int n,
	struct sl_err *err);

/* Of a namespace that no worker sees any more. */
void own_free(struct netns *ns);

/* ---- worker ---- */

/*
 * Whether the gateway answers for an address on this link: it is one of the link's own, or one of
 * NAT's that belongs there. One that is bound to no link belongs to the one of the pair whose
 * addresses' prefixes reach closer to it; to both, when none is closer.
 */
bool own_answers(const struct link *l, uint8_t family, const struct tuple_addr *addr);

/* Whether an address is the gateway's in the link's namespace, here or on the other end. */
bool own_address(const struct link *l, uint8_t family, const struct tuple_addr *addr);

/* Whether there are any, so that plain wires need not look further. */
static inline bool
own_any(const struct link *l)
{
	const struct link *peer = link_peer(l);

	return sl_rcu_dereference(&l->addresses) != NULL ||
	       sl_rcu_dereference(&l->ns->own) != NULL ||
	       (peer != NULL && sl_rcu_dereference(&peer->addresses) != NULL);
}

#endif
