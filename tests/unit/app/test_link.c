/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "link.h"
#include "link_address.h"
#include "neighbour.h"
#include "prefix.h"

static struct port ports[2] = {{.name = "p0"}, {.name = "p1", .index = 1}};

/* Links only need ports to have names: no device is opened here. */
struct port *
port_find(const struct gateway *gw, const char *name)
{
	unsigned int i;
	(void)gw;

	for (i = 0; i < RTE_DIM(ports); i++) {
		if (strcmp(ports[i].name, name) == 0)
			return &ports[i];
	}
	return NULL;
}

void
neighbours_link_gone(struct neighbours *n, struct link *l)
{
	(void)n;
	(void)l;
}

static int
setup(void **state)
{
	static const char *const names[] = {"red", "blue"};
	struct gateway *gw = calloc(1, sizeof(*gw));

	assert_non_null(gw);
	gw->netns = netns_registry_create(1, 0, NULL);
	assert_int_equal(
		netns_create_batch(gw->netns, names, 2, netns_init_ns(gw->netns), NULL, NULL), 0);
	*state = gw;
	return 0;
}

static int
teardown(void **state)
{
	struct gateway *gw = *state;
	struct netns *ns;
	uint32_t id = 0;
	unsigned int i;

	while ((ns = netns_next(gw->netns, &id)) != NULL) {
		link_detach_netns(gw, &ns, 1);
		link_free_detached(&ns, 1);
		assert_int_equal(ns->n_links, 0);
	}
	for (i = 0; i < RTE_DIM(ports); i++) {
		assert_int_equal(ports[i].n_links, 0);
		link_map_free(&ports[i]);
	}
	netns_registry_destroy(gw->netns);
	free(gw);
	return 0;
}

static int
add(struct gateway *gw, const char *netns, const char *name, uint16_t vlan, uint16_t inner)
{
	struct link_spec spec = {
		.name = name, .port = "p0", .netns = netns, .vlan = vlan, .inner = inner};

	return link_add(gw, &spec, NULL);
}

static const char *
lookup(unsigned int port, uint8_t n_tags, uint16_t outer, uint16_t inner)
{
	struct pkt p = {.n_tags = n_tags, .outer_tci = outer, .inner_tci = inner};
	struct link *l = link_lookup(&ports[port], &p);

	return l == NULL ? "none" : l->name;
}

static void
test_lookup_is_exact(void **state)
{
	struct gateway *gw = *state;

	assert_string_equal(lookup(0, 0, 0, 0), "none");
	assert_string_equal(lookup(0, 2, 1, 1), "none");
	assert_int_equal(add(gw, "red", "plain", 0, 0), 0);
	assert_int_equal(add(gw, "red", "v100", 100, 0), 0);
	assert_int_equal(add(gw, "blue", "q100-5", 100, 5), 0);
	assert_int_equal(add(gw, "red", "q100-6", 100, 6), 0);
	assert_int_equal(add(gw, "red", "q5-100", 5, 100), 0);
	assert_int_equal(add(gw, "red", "top", 4094, 4094), 0);

	assert_string_equal(lookup(0, 0, 0, 0), "plain");
	assert_string_equal(lookup(0, 1, 0, 0), "plain");
	assert_string_equal(lookup(0, 1, 0xa000, 0), "plain"); /* priority tag */
	assert_string_equal(lookup(0, 1, 100, 0), "v100");
	assert_string_equal(lookup(0, 1, 0xb000 | 100, 0), "v100"); /* PCP 5, DEI */
	assert_string_equal(lookup(0, 1, 100, 5), "v100"); /* inner is stale with one tag */
	assert_string_equal(lookup(0, 2, 100, 5), "q100-5");
	assert_string_equal(lookup(0, 2, 0xf000 | 100, 0xf000 | 5), "q100-5");
	assert_string_equal(lookup(0, 2, 100, 6), "q100-6");
	assert_string_equal(lookup(0, 2, 100, 0x6000), "v100"); /* priority tag inside */
	assert_string_equal(lookup(0, 2, 5, 100), "q5-100");
	assert_string_equal(lookup(0, 2, 4094, 4094), "top");
	assert_string_equal(lookup(0, 2, 0xfffe, 0xfffe), "top");
	assert_string_equal(lookup(0, 2, 0xffff, 0xffff), "none");
	assert_string_equal(lookup(0, 2, 100, 7), "none");
	assert_string_equal(lookup(0, 2, 0, 100), "none");
	assert_string_equal(lookup(0, 1, 5, 0), "none");
	assert_string_equal(lookup(0, 1, 101, 0), "none");
	assert_string_equal(lookup(1, 1, 100, 0), "none");
}

static void
test_refusals(void **state)
{
	static const struct {
		struct link_spec spec;
		int ret;
		const char *msg;
	} cases[] = {
		{{"", "p0", "red", NULL, 9, 0}, -EINVAL, "is no link name"},
		{{"1234567890123456", "p0", "red", NULL, 9, 0}, -EINVAL, "1 to 15 characters"},
		{{"a b", "p0", "red", NULL, 9, 0}, -EINVAL, "is no link name"},
		{{"l", "p9", "red", NULL, 9, 0}, -ENOENT, "no port p9: add it first"},
		{{"l", "p0", "grey\n", NULL, 9, 0}, -ENOENT, "no namespace grey?: add it first"},
		{{"a", "p0", "red", NULL, 9, 0}, -EEXIST, "namespace red has a link a already"},
		{{"l", "p0", "red", NULL, 4095, 0}, -EINVAL,
			"VLAN 4095 is out of range: 1 to 4094"},
		{{"l", "p0", "red", NULL, 9, 4095}, -EINVAL,
			"VLAN 4095 is out of range: 1 to 4094"},
		{{"l", "p0", "red", NULL, 65535, 0}, -EINVAL, "VLAN 65535 is out of range"},
		{{"l", "p0", "red", NULL, 0, 7}, -EINVAL, "inner VLAN 7 needs an outer VLAN"},
		{{"l", "p0", "blue", NULL, 1, 0}, -EEXIST,
			"port p0, vlan 1 is link a of namespace red already"},
		{{"l", "p0", "blue", NULL, 2, 3}, -EEXIST, "port p0, vlan 2.3 is link b"},
		{{"l", "p0", "blue", NULL, 0, 0}, -EEXIST, "port p0, untagged is link c"},
		{{"l", "p0", "red", "x", 9, 0}, -ENOENT,
			"no link x in namespace red to be the peer"},
		{{"l", "p0", "red", "l", 9, 0}, -ENOENT,
			"no link l in namespace red to be the peer"},
		{{"l", "p0", "blue", "c", 9, 0}, -ENOENT, "no link c in namespace blue"},
		{{"l", "p0", "red", "a", 9, 0}, -EBUSY,
			"link a of namespace red has the peer b already"},
	};
	struct gateway *gw = *state;
	struct link_spec b = {"b", "p0", "red", "a", 2, 3};
	unsigned int i;

	assert_int_equal(add(gw, "red", "a", 1, 0), 0);
	assert_int_equal(link_add(gw, &b, NULL), 0);
	assert_int_equal(add(gw, "red", "c", 0, 0), 0);
	for (i = 0; i < RTE_DIM(cases); i++) {
		struct sl_err err = {""};

		assert_int_equal(link_add(gw, &cases[i].spec, &err), cases[i].ret);
		assert_non_null(strstr(err.msg, cases[i].msg));
		assert_null(strchr(err.msg, '\n'));
		assert_int_equal(ports[0].n_links, 3);
		assert_int_equal(netns_find(gw->netns, "red")->n_links, 3);
		assert_string_equal(lookup(0, 1, 9, 0), "none");
	}
	/* The same name is free in another namespace, the same stack on another port. */
	b = (struct link_spec){"a", "p1", "blue", NULL, 1, 0};
	assert_int_equal(link_add(gw, &b, NULL), 0);
}

static void
test_peers(void **state)
{
	struct gateway *gw = *state;
	struct link_spec spec = {"b", "p1", "red", "a", 2, 0};
	struct link *a, *b;

	assert_int_equal(add(gw, "red", "a", 1, 0), 0);
	assert_int_equal(link_add(gw, &spec, NULL), 0);
	a = link_first(netns_find(gw->netns, "red"));
	b = a->next;
	assert_ptr_equal(link_peer(a), b);
	assert_ptr_equal(link_peer(b), a);
	assert_int_equal(link_delete(gw, "red", "a", NULL), 0);
	assert_null(link_peer(b));
	assert_string_equal(lookup(0, 1, 1, 0), "none");
	assert_ptr_equal(link_first(netns_find(gw->netns, "red")), b);

	/* The wire can be made again. */
	spec = (struct link_spec){"a", "p0", "red", "b", 1, 0};
	assert_int_equal(link_add(gw, &spec, NULL), 0);
	assert_ptr_equal(link_peer(b), b->next);
}

static void
test_delete(void **state)
{
	struct gateway *gw = *state;
	struct sl_err err;
	struct netns *red = netns_find(gw->netns, "red");

	assert_int_equal(add(gw, "red", "a", 1, 1), 0);
	assert_int_equal(add(gw, "red", "b", 1, 2), 0);
	assert_int_equal(add(gw, "red", "c", 1, 0), 0);
	assert_int_equal(add(gw, "blue", "a", 3, 0), 0);
	assert_int_equal(link_delete(gw, NULL, "x", &err), -ENOENT);
	assert_string_equal(err.msg, "no link x");
	assert_int_equal(link_delete(gw, "grey", "a", &err), -ENOENT);
	assert_string_equal(err.msg, "no namespace grey");
	assert_int_equal(link_delete(gw, "blue", "b", &err), -ENOENT);
	assert_int_equal(link_delete(gw, NULL, "a", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "say which with netns"));

	assert_int_equal(link_delete(gw, NULL, "b", NULL), 0);
	assert_string_equal(link_first(red)->name, "a");
	assert_string_equal(link_first(red)->next->name, "c");
	assert_non_null(ports[0].links->outer[1].inner);
	assert_int_equal(link_delete(gw, "red", "a", NULL), 0);
	assert_null(ports[0].links->outer[1].inner); /* went with its last link */
	assert_string_equal(lookup(0, 2, 1, 1), "none");
	assert_string_equal(lookup(0, 1, 1, 0), "c");
	assert_int_equal(ports[0].n_links, 2);
	assert_int_equal(add(gw, "blue", "z", 1, 1), 0);
	assert_string_equal(lookup(0, 2, 1, 1), "z");
}

static void
test_detach_batch(void **state)
{
	struct gateway *gw = *state;
	struct netns *ns[] = {netns_find(gw->netns, "red"), netns_find(gw->netns, "blue")};
	struct link_spec peer = {"b", "p1", "red", "a", 1, 0};

	assert_int_equal(add(gw, "red", "a", 1, 0), 0);
	assert_int_equal(link_add(gw, &peer, NULL), 0);
	assert_int_equal(add(gw, "blue", "a", 2, 2), 0);
	assert_int_equal(add(gw, "init", "i", 2, 3), 0);
	link_detach_netns(gw, ns, 2);
	assert_string_equal(lookup(0, 1, 1, 0), "none");
	assert_string_equal(lookup(1, 1, 1, 0), "none");
	assert_string_equal(lookup(0, 2, 2, 2), "none");
	assert_string_equal(lookup(0, 2, 2, 3), "i");
	assert_int_equal(ports[0].n_links, 1);
	assert_int_equal(ports[1].n_links, 0);
	link_free_detached(ns, 2);
	assert_null(link_first(ns[0]));
	assert_int_equal(ns[0]->n_links, 0);
}

static void
test_mac_and_mtu(void **state)
{
	static const struct rte_ether_addr given = {{0x02, 0, 0, 0, 0, 1}}, zero,
					   group = {{0x03, 0, 0, 0, 0, 1}};
	struct gateway *gw = *state;
	struct link_spec spec = {"b", "p0", "red", NULL, 2, 0, .mtu = 68, .mac = &given};
	struct link *a, *b, *other;
	struct sl_err err;

	assert_int_equal(add(gw, "red", "a", 1, 0), 0);
	assert_int_equal(link_add(gw, &spec, NULL), 0);
	assert_int_equal(add(gw, "blue", "a", 3, 0), 0);
	a = link_first(netns_find(gw->netns, "red"));
	b = a->next;
	other = link_first(netns_find(gw->netns, "blue"));
	assert_int_equal(a->mtu, 65535);
	assert_int_equal(b->mtu, 68);
	assert_true(rte_is_same_ether_addr(&b->mac, &given));
	assert_true(rte_is_local_admin_ether_addr(&a->mac));
	assert_true(rte_is_unicast_ether_addr(&a->mac));
	assert_false(rte_is_same_ether_addr(&a->mac, &other->mac));

	spec = (struct link_spec){"c", "p0", "red", NULL, 4, 0, .mac = &zero};
	assert_int_equal(link_add(gw, &spec, &err), -EINVAL);
	spec.mac = &group;
	assert_int_equal(link_add(gw, &spec, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "MAC address"));
	spec = (struct link_spec){"c", "p0", "red", NULL, 4, 0, .mtu = 67};
	assert_int_equal(link_add(gw, &spec, &err), -EINVAL);
	assert_string_equal(err.msg, "MTU 67 is out of range: 68 to 65535");
	spec.mtu = 65536;
	assert_int_equal(link_add(gw, &spec, &err), -EINVAL);
}

static struct prefix
prefix(const char *text)
{
	struct prefix p;

	assert_int_equal(prefix_parse(&p, text, "test", NULL), 0);
	return p;
}

static int
address_add(struct link *l, const char *text, struct sl_err *err)
{
	struct prefix p = prefix(text);

	return link_address_add(l, &p, err);
}

static void
test_address_refusals(void **state)
{
	static const struct {
		const char *address;
		int ret;
		const char *msg;
	} cases[] = {
		{"0.0.0.0/0", -EINVAL, "0.0.0.0/0 is an address of no host"},
		{"0.1.2.3/24", -EINVAL, "of no host"},
		{"127.0.0.1/8", -EINVAL, "loopback"},
		{"224.0.0.1/24", -EINVAL, "multicast"},
		{"255.255.255.255/32", -EINVAL, "broadcast"},
		{"10.0.0.255/24", -EINVAL, "broadcast"},
		{"10.0.0.0/24", -EINVAL, "the network itself"},
		{"::/64", -EINVAL, "of no host"},
		{"::1/128", -EINVAL, "loopback"},
		{"ff02::1/64", -EINVAL, "multicast"},
		{"::ffff:10.0.0.1/128", -EINVAL, "IPv4-mapped"},
		{"192.0.2.1/24", -EEXIST, "link \"a\" of namespace \"red\" already"},
		{"192.0.2.1/32", -EEXIST, "already"},
		{"192.0.2.0/31", 0, NULL},
		{"192.0.2.255/32", 0, NULL},
		{"2001:db8::/64", 0, NULL},
	};
	struct gateway *gw = *state;
	struct netns *red = netns_find(gw->netns, "red");
	struct link *a, *b;
	struct sl_err err;
	unsigned int i;
	char text[32];

	assert_int_equal(add(gw, "red", "a", 1, 0), 0);
	assert_int_equal(add(gw, "red", "b", 2, 0), 0);
	assert_int_equal(add(gw, "blue", "a", 3, 0), 0);
	a = link_first(red);
	b = a->next;
	assert_int_equal(address_add(a, "192.0.2.1/24", NULL), 0);
	for (i = 0; i < RTE_DIM(cases); i++) {
		assert_int_equal(address_add(b, cases[i].address, &err), cases[i].ret);
		if (cases[i].ret != 0)
			assert_non_null(strstr(err.msg, cases[i].msg));
	}
	/* Another namespace is another world. */
	assert_int_equal(
		address_add(link_first(netns_find(gw->netns, "blue")), "192.0.2.1/24", NULL), 0);
	for (i = 1; i < LINK_ADDRESSES_MAX; i++) {
		snprintf(text, sizeof(text), "10.0.%u.1/24", i);
		assert_int_equal(address_add(a, text, NULL), 0);
	}
	assert_int_equal(address_add(a, "10.1.0.1/24", &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "has 64, the most"));
}

static const char *
chosen(const struct link *l, uint8_t family, const char *dst)
{
	struct prefix to = prefix(dst != NULL ? dst : "::");
	const struct link_address *a = link_address(l, family, dst != NULL ? &to.addr : NULL);
	static const char *const names[] = {"10.0.0.1/8", "10.1.0.1/16", "192.0.2.1/24",
		"fe80::1/64", "2001:db8::1/64"};
	struct prefix p;
	unsigned int i;

	for (i = 0; a != NULL && i < RTE_DIM(names); i++) {
		p = prefix(names[i]);
		if (link_address_find(l, &p) == a)
			return names[i];
	}
	return "none";
}

static void
test_address_choice(void **state)
{
	struct gateway *gw = *state;
	struct prefix p = prefix("10.0.0.1/8"), on = prefix("10.1.2.3"), off = prefix("1.2.3.4");
	struct link *a;

	assert_int_equal(add(gw, "red", "a", 1, 0), 0);
	a = link_first(netns_find(gw->netns, "red"));
	assert_string_equal(chosen(a, TUPLE_IPV4, NULL), "none");
	assert_int_equal(address_add(a, "10.0.0.1/8", NULL), 0);
	assert_int_equal(address_add(a, "fe80::1/64", NULL), 0);
	assert_int_equal(address_add(a, "192.0.2.1/24", NULL), 0);
	assert_int_equal(address_add(a, "10.1.0.1/16", NULL), 0);
	assert_string_equal(chosen(a, TUPLE_IPV4, NULL), "10.0.0.1/8");
	assert_string_equal(chosen(a, TUPLE_IPV4, "8.8.8.8"), "10.0.0.1/8");
	assert_string_equal(chosen(a, TUPLE_IPV4, "192.0.2.9"), "192.0.2.1/24");
	assert_string_equal(chosen(a, TUPLE_IPV4, "10.1.2.3"), "10.1.0.1/16");
	assert_string_equal(chosen(a, TUPLE_IPV6, "2001:db8::9"), "fe80::1/64");
	assert_int_equal(address_add(a, "2001:db8::1/64", NULL), 0);
	assert_string_equal(chosen(a, TUPLE_IPV6, NULL), "2001:db8::1/64");
	assert_string_equal(chosen(a, TUPLE_IPV6, "fe80::7"), "fe80::1/64");

	assert_true(link_has_address(a, TUPLE_IPV4, &p.addr));
	assert_int_equal(link_on_link(a, TUPLE_IPV4, &on.addr), 16);
	assert_int_equal(link_on_link(a, TUPLE_IPV4, &off.addr), -1);
	link_address_delete(link_address_find(a, &p));
	assert_false(link_has_address(a, TUPLE_IPV4, &p.addr));
	assert_string_equal(chosen(a, TUPLE_IPV4, NULL), "192.0.2.1/24");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lookup_is_exact, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_peers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_delete, setup, teardown),
		cmocka_unit_test_setup_teardown(test_detach_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mac_and_mtu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_address_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_address_choice, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
