/* SPDX-License-Identifier: BSD-3-Clause */
#include "link_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "prefix.h"

#define ADDRESS_TEXT (INET6_ADDRSTRLEN + 4)

static const char *
address_text(const struct prefix *p, char buf[ADDRESS_TEXT])
{
	char addr[INET6_ADDRSTRLEN];

	inet_ntop(p->family == TUPLE_IPV4 ? AF_INET : AF_INET6, &p->addr, addr, sizeof(addr));
	snprintf(buf, ADDRESS_TEXT, "%s/%u", addr, p->len);
	return buf;
}

/* What the address is, when it can be no host's; else NULL. */
static const char *
no_host4(const struct prefix *p)
{
	uint32_t a = ntohl(p->addr.w[0]), host = p->len < 31 ? UINT32_MAX >> p->len : 0;

	if (a >> 24 == 0)
		return "an address of no host";
	if (a >> 24 == IN_LOOPBACKNET)
		return "a loopback address";
	if (IN_MULTICAST(a))
		return "a multicast address";
	if (a == INADDR_BROADCAST || (p->len > 0 && p->len < 31 && (a & host) == host))
		return "a broadcast address";
	if (p->len > 0 && p->len < 31 && (a & host) == 0)
		return "the address of the network itself";
	return NULL;
}

static const char *
no_host6(const struct prefix *p)
{
	const struct in6_addr *a = (const struct in6_addr *)&p->addr;

	if (IN6_IS_ADDR_UNSPECIFIED(a))
		return "an address of no host";
	if (IN6_IS_ADDR_LOOPBACK(a))
		return "a loopback address";
	if (IN6_IS_ADDR_MULTICAST(a))
		return "a multicast address";
	if (IN6_IS_ADDR_V4MAPPED(a))
		return "an IPv4-mapped address";
	return NULL;
}

static int
check_free(const struct link *l, const struct prefix *p, struct sl_err *err)
{
	const struct link *other;
	const struct link_address *a;
	char text[ADDRESS_TEXT];
	unsigned int n = 0;

	for (other = link_first(l->ns); other != NULL; other = other->next)
		if (link_has_address(other, p->family, &p->addr))
			return sl_refuse(err, EEXIST,
				"address: %s is one of link \"%s\" of namespace \"%s\" already",
				address_text(p, text), other->name, l->ns->name);
	for (a = link_address_first(l); a != NULL; a = link_address_next(a))
		n++;
	if (n >= LINK_ADDRESSES_MAX)
		return sl_refuse(err, ENOSPC, "address: link \"%s\" has %u, the most a link has",
			l->name, n);
	return 0;
}

int
link_address_add(struct link *l, const struct prefix *address, struct sl_err *err)
{
	const char *what = address->family == TUPLE_IPV4 ? no_host4(address) : no_host6(address);
	struct link_address *a, **end;
	char text[ADDRESS_TEXT];
	int ret;

	if (what != NULL)
		return sl_refuse(err, EINVAL, "address: %s is %s: give a host's",
			address_text(address, text), what);
	ret = check_free(l, address, err);
	if (ret != 0)
		return ret;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	a->link = l;
	a->family = address->family;
	a->len = address->len;
	a->addr = address->addr;
	for (end = &l->addresses; *end != NULL;)
		end = &(*end)->next;
	sl_rcu_publish(end, a);
	return 0;
}

void
link_address_delete(struct link_address *a)
{
	struct link_address **at;

	for (at = &a->link->addresses; *at != a;)
		at = &(*at)->next;
	sl_rcu_publish(at, a->next);
	sl_rcu_free(a);
}

struct link_address *
link_address_find(const struct link *l, const struct prefix *address)
{
	struct link_address *a;

	for (a = l->addresses; a != NULL; a = a->next)
		if (a->family == address->family && a->len == address->len &&
			memcmp(&a->addr, &address->addr, sizeof(a->addr)) == 0)
			return a;
	return NULL;
}

void
link_address_free_all(struct link *l)
{
	struct link_address *a;

	while ((a = l->addresses) != NULL) {
		l->addresses = a->next;
		free(a);
	}
}

/* ---- worker, or control ---- */

static bool
on_link(const struct link_address *a, uint8_t family, const struct tuple_addr *addr)
{
	const struct prefix p = {.addr = a->addr, .family = a->family, .len = a->len};

	return prefix_match(&p, family, addr);
}

static bool
link_local(uint8_t family, const struct tuple_addr *addr)
{
	return family == TUPLE_IPV6 && IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)addr);
}

/* Greater is better; 0: not of the family. */
static unsigned int
fitness(const struct link_address *a, uint8_t family, const struct tuple_addr *dst)
{
	if (a->family != family)
		return 0;
	if (dst != NULL && on_link(a, family, dst))
		return 3u + a->len;
	return link_local(family, &a->addr) ? 1 : 2;
}

const struct link_address *
link_address(const struct link *l, uint8_t family, const struct tuple_addr *dst)
{
	const struct link_address *a, *best = NULL;
	unsigned int f, best_f = 0;

	for (a = link_address_first(l); a != NULL; a = link_address_next(a)) {
		f = fitness(a, family, dst);
		if (f > best_f) {
			best = a;
			best_f = f;
		}
	}
	return best;
}

bool
link_has_address(const struct link *l, uint8_t family, const struct tuple_addr *addr)
{
	const struct link_address *a;

	for (a = link_address_first(l); a != NULL; a = link_address_next(a))
		if (a->family == family && memcmp(&a->addr, addr, sizeof(a->addr)) == 0)
			return true;
	return false;
}

int
link_on_link(const struct link *l, uint8_t family, const struct tuple_addr *addr)
{
	const struct link_address *a;
	int longest = -1;

	for (a = link_address_first(l); a != NULL; a = link_address_next(a))
		if (a->len > longest && on_link(a, family, addr))
			longest = a->len;
	return longest;
}
