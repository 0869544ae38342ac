/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links: one exact VLAN tag stack of one port, in one namespace. Two links of a namespace may be
 * peers: what comes in on one leaves on the other, retagged.
 *
 * Workers look a link up by (port, tags) in the port's vlan_map, which link.c publishes with RCU; a
 * link is freed a grace period after it was taken out. TCI values are compared by their 12-bit id:
 * priority and DEI do not matter for the lookup, and are kept on forward.
 *
 * Addresses of links: link_address.h.
 */
#ifndef LINK_H
#define LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_ether.h>

#include "gateway.h"
#include "pkt.h"
#include "port.h"

#define LINK_NAME_MAX 15

#define LINK_MTU_MIN     68u /* RFC 791 */
#define LINK_MTU_MAX     65535u
#define LINK_MTU_DEFAULT LINK_MTU_MAX /* a wire takes what its ends send */

#define VLAN_VIDS   4096u
#define VLAN_VID(t) ((t) & 0x0fffu)

struct link_address;
struct sl_err;

/* The links with one outer VLAN and an inner one; freed when it is empty. */
struct vlan_inner {
	struct link *link[VLAN_VIDS]; /* by inner VLAN id */
	unsigned int n;               /* control only */
};

/* The links of a port. Pointers are written by control and read by workers (RCU). */
struct vlan_map {
	struct {
		struct link *link;        /* of this VLAN alone; [0]: untagged */
		struct vlan_inner *inner; /* NULL: no link has an inner VLAN in this one */
	} outer[VLAN_VIDS];
};

struct link {
	/* constant while workers can see the link */
	struct port *port;
	struct netns *ns;
	uint32_t id;    /* of no other link since the start; not 0 */
	uint16_t vlan;  /* outer or only VLAN id; 0: untagged or priority-tagged */
	uint16_t inner; /* inner VLAN id, 0: none */
	uint16_t mtu;   /* bytes of an IP packet */
	struct rte_ether_addr mac; /* of what the gateway sends by itself */
	char name[LINK_NAME_MAX + 1];
	/* written by control, read by workers */
	struct link *peer; /* NULL: none; read with link_peer() */
	struct link_address *addresses; /* link_address.h */
	bool leaving;           /* no worker finds it any more */
	/* written by workers (atomic) */
	uint32_t waiting; /* frames that wait for its neighbours: neighbour_wait.c */
	/* control only */
	struct link *next; /* of the namespace's list */
};

struct link_spec {
	const char *name;
	const char *port;
	const char *netns;
	const char *peer; /* NULL: none */
	uint16_t vlan, inner;
	unsigned int mtu;                 /* 0: LINK_MTU_DEFAULT */
	const struct rte_ether_addr *mac; /* NULL: one of its own */
};

/* Refuses: a name taken in the namespace, too long or of other characters than names have; no such
 * port, namespace or peer; a VLAN out of 0–4094, or an inner one without an outer; a tag stack that
 * another link of the port has; a peer that has a peer; an MTU out of range; a MAC address that is
 * no station's. 0 or -errno. */
int link_add(struct gateway *gw, const struct link_spec *spec, struct sl_err *err);

/* netns NULL: the name must be unique over all namespaces. Frees after a grace period. */
int link_delete(struct gateway *gw, const char *netns, const char *name, struct sl_err *err);

/* Takes all links of n namespaces away from the workers, without waiting for a grace period; the
 * caller waits, then calls link_free_detached(). */
void link_detach_netns(struct gateway *gw, struct netns *const ns[], unsigned int n);

/* The links, and the addresses of the namespaces. */
void link_free_detached(struct netns *const ns[], unsigned int n);

/* Frees the map of a port that has no links; a grace period after workers last saw the port. */
void link_map_free(struct port *port);

/* The namespace's links, in the order in which they were added. */
struct link *link_first(const struct netns *ns);
struct link *link_find(const struct netns *ns, const char *name);

/* ---- worker ---- */

/*
 * The link of a port that has the packet's tag stack (pkt.n_tags, outer_tci, inner_tci), or NULL. A
 * priority tag (VLAN id 0) as the last tag counts as none.
 */
static inline struct link *
link_lookup(const struct port *port, const struct pkt *p)
{
	const struct vlan_map *map = sl_rcu_dereference(&port->links);
	unsigned int vid = p->n_tags == 0 ? 0 : VLAN_VID(p->outer_tci);
	const struct vlan_inner *inner;

	if (unlikely(map == NULL))
		return NULL;
	if (p->n_tags < 2 || VLAN_VID(p->inner_tci) == 0)
		return sl_rcu_dereference(&map->outer[vid].link);
	inner = sl_rcu_dereference(&map->outer[vid].inner);
	return inner == NULL ? NULL : sl_rcu_dereference(&inner->link[VLAN_VID(p->inner_tci)]);
}

/* The same of a packet with one tag, or none, and then an outer_tci of 0. */
static inline struct link *
link_lookup_plain(const struct port *port, const struct pkt *p)
{
	const struct vlan_map *map = sl_rcu_dereference(&port->links);

	if (unlikely(map == NULL))
		return NULL;
	return sl_rcu_dereference(&map->outer[VLAN_VID(p->outer_tci)].link);
}

static inline struct link *
link_peer(const struct link *l)
{
	return __atomic_load_n(&l->peer, __ATOMIC_CONSUME);
}

#endif
