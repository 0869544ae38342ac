/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_jhash.h>

#include "err.h"
#include "link_address.h"
#include "name.h"
#include "neighbour.h"
#include "own.h"

#define VLAN_MAX 4094u

#define STACK_TEXT 24

static const char *
stack_text(uint16_t vlan, uint16_t inner, char buf[STACK_TEXT])
{
	if (vlan == 0)
		snprintf(buf, STACK_TEXT, "untagged");
	else if (inner == 0)
		snprintf(buf, STACK_TEXT, "vlan %u", vlan);
	else
		snprintf(buf, STACK_TEXT, "vlan %u.%u", vlan, inner);
	return buf;
}

static uint32_t last_id;

struct link *
link_first(const struct netns *ns)
{
	return ns->app;
}

struct link *
link_find(const struct netns *ns, const char *name)
{
	struct link *l;

	for (l = link_first(ns); l != NULL; l = l->next) {
		if (strcmp(l->name, name) == 0)
			return l;
	}
	return NULL;
}

/* The link with exactly this tag stack, as the control side sees it. */
static struct link *
link_at(const struct port *port, uint16_t vlan, uint16_t inner)
{
	const struct vlan_map *map = port->links;

	if (map == NULL)
		return NULL;
	if (inner == 0)
		return map->outer[vlan].link;
	return map->outer[vlan].inner == NULL ? NULL : map->outer[vlan].inner->link[inner];
}

static int
check_stack(const struct port *port, const struct link_spec *spec, struct sl_err *err)
{
	char text[STACK_TEXT];
	struct link *other;

	if (spec->vlan > VLAN_MAX || spec->inner > VLAN_MAX)
		return sl_refuse(err, EINVAL, "VLAN %u is out of range: 1 to %u, or 0 for untagged",
			spec->vlan > VLAN_MAX ? spec->vlan : spec->inner, VLAN_MAX);
	if (spec->vlan == 0 && spec->inner != 0)
		return sl_refuse(err, EINVAL, "inner VLAN %u needs an outer VLAN of 1 to %u",
			spec->inner, VLAN_MAX);
	other = link_at(port, spec->vlan, spec->inner);
	if (other != NULL)
		return sl_refuse(err, EEXIST, "port %s, %s is link %s of namespace %s already",
			port->name, stack_text(spec->vlan, spec->inner, text), other->name,
			other->ns->name);
	return 0;
}

static int
find_peer(const struct netns *ns, const char *name, struct link **peer, struct sl_err *err)
{
	char shown[SL_SHOWN_MAX];

	*peer = NULL;
	if (name == NULL)
		return 0;
	*peer = link_find(ns, name);
	if (*peer == NULL)
		return sl_refuse(err, ENOENT, "no link %s in namespace %s to be the peer",
			sl_shown(name, shown), ns->name);
	if ((*peer)->peer != NULL)
		return sl_refuse(err, EBUSY, "link %s of namespace %s has the peer %s already",
			(*peer)->name, ns->name, (*peer)->peer->name);
	return 0;
}

/* DPDK's hash reads words, wherever they lie. */
static void
mix(const void *data, size_t len, uint32_t *hi, uint32_t *lo)
{
	uint32_t words[16] = {0};

	_Static_assert(NETNS_NAME_MAX < sizeof(words) && PORT_NAME_MAX < sizeof(words), "room");
	memcpy(words, data, len);
	rte_jhash_2hashes(words, (uint32_t)len, hi, lo);
}

/*
 * The MAC address that a link has for itself: locally administered, the same after a restart, and
 * another for every link and device.
 */
static void
derive_mac(struct link *l)
{
	uint32_t hi = 0, lo = 0;

	mix(l->port->mac.addr_bytes, sizeof(l->port->mac), &hi, &lo);
	mix(l->port->name, strlen(l->port->name), &hi, &lo);
	mix(l->ns->name, strlen(l->ns->name), &hi, &lo);
	mix(l->name, strlen(l->name), &hi, &lo);
	memcpy(l->mac.addr_bytes, &hi, sizeof(hi));
	memcpy(l->mac.addr_bytes + sizeof(hi), &lo, sizeof(l->mac) - sizeof(hi));
	l->mac.addr_bytes[0] &= (uint8_t)~RTE_ETHER_GROUP_ADDR;
	l->mac.addr_bytes[0] |= RTE_ETHER_LOCAL_ADMIN_ADDR;
}

/* The names, port and namespace are there already. */
static int
set_ether(struct link *l, const struct link_spec *spec, struct sl_err *err)
{
	if (spec->mtu != 0 && (spec->mtu < LINK_MTU_MIN || spec->mtu > LINK_MTU_MAX))
		return sl_refuse(err, EINVAL, "MTU %u is out of range: %u to %u", spec->mtu,
			LINK_MTU_MIN, LINK_MTU_MAX);
	l->mtu = (uint16_t)(spec->mtu != 0 ? spec->mtu : LINK_MTU_DEFAULT);
	if (spec->mac == NULL) {
		derive_mac(l);
		return 0;
	}
	if (!rte_is_valid_assigned_ether_addr(spec->mac))
		return sl_refuse(err, EINVAL,
			"a link's MAC address is one station's: no group's, and not zero");
	l->mac = *spec->mac;
	return 0;
}

/* Finds what the spec names and refuses what is wrong with it; *l is filled in. */
static int
link_resolve(struct gateway *gw, const struct link_spec *spec, struct link *l, struct sl_err *err)
{
	char shown[SL_SHOWN_MAX];
	int ret = sl_name_valid("link", spec->name, LINK_NAME_MAX, err);

	if (ret != 0)
		return ret;
	l->port = port_find(gw, spec->port);
	if (l->port == NULL)
		return sl_refuse(
			err, ENOENT, "no port %s: add it first", sl_shown(spec->port, shown));
	l->ns = netns_find(gw->netns, spec->netns);
	if (l->ns == NULL)
		return sl_refuse(
			err, ENOENT, "no namespace %s: add it first", sl_shown(spec->netns, shown));
	if (link_find(l->ns, spec->name) != NULL)
		return sl_refuse(err, EEXIST, "namespace %s has a link %s already", l->ns->name,
			spec->name);
	ret = check_stack(l->port, spec, err);
	if (ret != 0)
		return ret;
	l->id = ++last_id;
	l->vlan = spec->vlan;
	l->inner = spec->inner;
	strcpy(l->name, spec->name);
	ret = set_ether(l, spec, err);
	return ret == 0 ? find_peer(l->ns, spec->peer, &l->peer, err) : ret;
}

/* Shows the link to the workers, with tables made as needed; the last step of adding it. */
static int
map_insert(struct link *l)
{
	struct vlan_map *map = l->port->links;
	struct vlan_inner *inner;

	if (map == NULL) {
		map = calloc(1, sizeof(*map));
		if (map == NULL)
			return -ENOMEM;
		sl_rcu_publish(&l->port->links, map);
	}
	if (l->inner == 0) {
		sl_rcu_publish(&map->outer[l->vlan].link, l);
		return 0;
	}
	inner = map->outer[l->vlan].inner;
	if (inner == NULL) {
		inner = calloc(1, sizeof(*inner));
		if (inner == NULL)
			return -ENOMEM;
		sl_rcu_publish(&map->outer[l->vlan].inner, inner);
	}
	inner->n++;
	sl_rcu_publish(&inner->link[l->inner], l);
	return 0;
}

static void
map_remove(struct link *l)
{
	struct vlan_map *map = l->port->links;
	struct vlan_inner *inner;

	if (l->inner == 0) {
		sl_rcu_publish(&map->outer[l->vlan].link, NULL);
		return;
	}
	inner = map->outer[l->vlan].inner;
	sl_rcu_publish(&inner->link[l->inner], NULL);
	if (--inner->n == 0) {
		sl_rcu_publish(&map->outer[l->vlan].inner, NULL);
		sl_rcu_free(inner);
	}
}

static void
list_append(struct link *l)
{
	struct link *last = link_first(l->ns);

	if (last == NULL) {
		l->ns->app = l;
	} else {
		while (last->next != NULL)
			last = last->next;
		last->next = l;
	}
	l->ns->n_links++;
	l->port->n_links++;
}

int
link_add(struct gateway *gw, const struct link_spec *spec, struct sl_err *err)
{
	struct link *l = calloc(1, sizeof(*l));
	int ret;

	if (l == NULL)
		return sl_refuse(err, ENOMEM, "no memory for a link");
	ret = link_resolve(gw, spec, l, err);
	if (ret != 0)
		goto fail;
	ret = map_insert(l);
	if (ret != 0) {
		sl_refuse(err, ENOMEM, "no memory for the VLANs of port %s", l->port->name);
		goto fail;
	}
	if (l->peer != NULL)
		sl_rcu_publish(&l->peer->peer, l);
	list_append(l);
	return 0;
fail:
	free(l);
	return ret;
}

/* Workers do not find the link any more; it stays in its namespace's list. */
static void
link_detach(struct gateway *gw, struct link *l)
{
	map_remove(l);
	neighbours_link_gone(gw->neighbours, l);
	if (l->peer != NULL)
		sl_rcu_publish(&l->peer->peer, NULL);
	l->port->n_links--;
	l->ns->n_links--;
}

static int
find_unique(struct gateway *gw, const char *name, struct link **out, struct sl_err *err)
{
	struct netns *ns;
	struct link *l;
	uint32_t id = 0;

	while ((ns = netns_next(gw->netns, &id)) != NULL) {
		l = link_find(ns, name);
		if (l == NULL)
			continue;
		if (*out != NULL)
			return sl_refuse(err, EINVAL,
				"namespaces %s and %s have a link %s: say which with netns",
				(*out)->ns->name, ns->name, name);
		*out = l;
	}
	return 0;
}

int
link_delete(struct gateway *gw, const char *netns, const char *name, struct sl_err *err)
{
	char shown[SL_SHOWN_MAX];
	struct link *l = NULL, *prev;
	struct netns *ns;
	int ret;

	if (netns == NULL) {
		ret = find_unique(gw, name, &l, err);
		if (ret != 0)
			return ret;
	} else {
		ns = netns_find(gw->netns, netns);
		if (ns == NULL)
			return sl_refuse(err, ENOENT, "no namespace %s", sl_shown(netns, shown));
		l = link_find(ns, name);
	}
	if (l == NULL)
		return sl_refuse(err, ENOENT, "no link %s", sl_shown(name, shown));
	link_detach(gw, l);
	if (link_first(l->ns) == l) {
		l->ns->app = l->next;
	} else {
		for (prev = link_first(l->ns); prev->next != l;)
			prev = prev->next;
		prev->next = l->next;
	}
	while (l->addresses != NULL)
		link_address_delete(l->addresses);
	sl_rcu_free(l);
	return 0;
}

void
link_detach_netns(struct gateway *gw, struct netns *const ns[], unsigned int n)
{
	struct link *l;
	unsigned int i;

	for (i = 0; i < n; i++) {
		for (l = link_first(ns[i]); l != NULL; l = l->next)
			link_detach(gw, l);
	}
}

void
link_free_detached(struct netns *const ns[], unsigned int n)
{
	struct link *l, *next;
	unsigned int i;

	for (i = 0; i < n; i++) {
		for (l = link_first(ns[i]); l != NULL; l = next) {
			next = l->next;
			link_address_free_all(l);
			free(l);
		}
		ns[i]->app = NULL;
		own_free(ns[i]);
	}
}

void
link_map_free(struct port *port)
{
	free(port->links);
	port->links = NULL;
}
