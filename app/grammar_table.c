/* SPDX-License-Identifier: BSD-3-Clause */
/* All commands, in the order in which `help` lists them; those of one first word stand together. */
#include "grammar.h"

#define U32 UINT32_MAX

static const char *const family_words[] = {"ipv4", "ipv6", NULL};
static const char *const chain_words[] = {"raw", "prerouting", "forward", "postrouting", NULL};
static const char *const policy_words[] = {"accept", "drop", NULL};

#define POS(n, m, t, ...)  {.name = (n), .meta = (m), .type = GRAMMAR_##t, \
	.flags = GRAMMAR_POS __VA_ARGS__}
#define KEY(n, m, t, ...)  {.name = (n), .meta = (m), .type = GRAMMAR_##t, .flags = 0 __VA_ARGS__}
#define OPT(n, m, t, ...)  {.name = (n), .meta = (m), .type = GRAMMAR_##t, \
	.flags = GRAMMAR_OPT __VA_ARGS__}
#define NETNS OPT("netns", "NS", NAME)

/* As conntrack(8) names them, without the dashes. */
#define CT_FILTERS                                                                                 \
	NETNS, OPT("family", "ipv4|ipv6", WORD, , .words = family_words),                          \
	OPT("proto", "PROTO", STRING), OPT("src", "ADDR[/LEN]", STRING),                           \
	OPT("dst", "ADDR[/LEN]", STRING), OPT("reply-src", "ADDR[/LEN]", STRING),                  \
	OPT("reply-dst", "ADDR[/LEN]", STRING), OPT("sport", "PORT", UINT, , .max = 65535),        \
	OPT("dport", "PORT", UINT, , .max = 65535),                                                \
	OPT("icmp-type", "N", UINT, , .max = 255), OPT("icmp-code", "N", UINT, , .max = 255),      \
	OPT("icmp-id", "N", UINT, , .max = 65535), OPT("state", "STATE", STRING),                  \
	OPT("status", "ASSURED|SEEN_REPLY|UNREPLIED,...", STRING),                                 \
	OPT("mark", "N[/MASK]", VALUE), OPT("zone", "N", UINT, , .max = 65535)

const struct grammar_command grammar_table[] = {
	{"port add", "attach a port by its DPDK devargs, or a generator (gen,...)", GRAMMAR_CHANGE,
		{POS("name", "NAME", NEW_NAME), KEY("devargs", "DEVARGS", STRING),
			OPT("queues", "N", UINT, , .min = 1, .max = 32)}},
	{"port list", "ports, with their counters", GRAMMAR_ITEMS, {{0}}},
	{"port delete", "detach a port; its links must be gone", GRAMMAR_CHANGE,
		{POS("name", "NAME", NAME)}},

	{"netns add", "create namespaces, as one batch", GRAMMAR_CHANGE,
		{POS("names", "NAME", NEW_NAME, | GRAMMAR_LIST, .forms = 1),
			KEY("prefix", "PREFIX", NEW_NAME, , .forms = 2),
			KEY("count", "N", UINT, , .forms = 2, .min = 1, .max = 65536),
			OPT("from", "PARENT", NAME)}},
	{"netns delete", "delete namespaces with all that is in them, as one batch", GRAMMAR_CHANGE,
		{POS("names", "NAME", NAME, | GRAMMAR_LIST, .forms = 1),
			KEY("prefix", "PREFIX", NAME, , .forms = 2),
			KEY("count", "N", UINT, , .forms = 2, .min = 1, .max = 65536),
			KEY("all", "", FLAG, , .forms = 4)}},
	{"netns list", "namespaces", GRAMMAR_ITEMS, {{0}}},
	{"netns show", "one namespace: links, entries, packets, TCP table", 0,
		{POS("name", "NAME", NAME)}},

	{"link add", "attach a VLAN tag stack of a port to a namespace", GRAMMAR_CHANGE,
		{POS("name", "NAME", NEW_NAME), KEY("port", "PORT", NAME),
			OPT("vlan", "V[.INNER]", VALUE), KEY("netns", "NS", NAME),
			OPT("peer", "LINK", NAME),
			OPT("mtu", "N", UINT, , .min = 68, .max = 65535),
			OPT("mac", "MAC", STRING)}},
	{"link address add", "give a link an address", GRAMMAR_CHANGE,
		{POS("link", "LINK", NAME), POS("address", "ADDR/LEN", STRING), NETNS}},
	{"link address delete", "take an address from a link", GRAMMAR_CHANGE,
		{POS("link", "LINK", NAME), POS("address", "ADDR/LEN", STRING), NETNS}},
	{"link list", "links", GRAMMAR_ITEMS, {NETNS}},
	{"link delete", "detach a link", GRAMMAR_CHANGE,
		{POS("name", "NAME", NAME), NETNS}},

	{"nat pool add", "define a pool of public addresses", GRAMMAR_CHANGE,
		{POS("netns", "NS", NAME), POS("name", "NAME", NEW_NAME),
			POS("addresses", "ADDR[-ADDR]", STRING, | GRAMMAR_LIST),
			OPT("ports", "P-Q", STRING)}},
	{"nat pool list", "pools of public addresses", GRAMMAR_ITEMS, {NETNS}},
	{"nat pool delete", "delete a pool that no rule has", GRAMMAR_CHANGE,
		{POS("netns", "NS", NAME), POS("name", "NAME", NAME)}},
	{"nat lookup", "who had a public address and port", GRAMMAR_ITEMS,
		{POS("netns", "NS", NAME), POS("address", "ADDR", STRING),
			POS("port", "PORT", UINT, , .max = 65535),
			POS("time", "TIME", STRING, | GRAMMAR_OPT)}},
	{"nat list", "use of pools of public addresses", GRAMMAR_ITEMS, {NETNS}},
	{"nat events", "a stream of blocks given and pools running out", GRAMMAR_ITEMS,
		{NETNS, OPT("count", "N", UINT, , .min = 1, .max = U32)}},

	{"sysctl", "read or write a knob", GRAMMAR_CHANGE,
		{NETNS, POS("key", "KEY[=VALUE]", SETTING),
			{.name = "value", .meta = "VALUE", .type = GRAMMAR_VALUE,
				.flags = GRAMMAR_OPT | GRAMMAR_HIDDEN}}},
	{"sysctl list", "all knobs of a namespace", GRAMMAR_ITEMS, {NETNS}},

	{"rule add", "append a rule, nft text, to a chain", GRAMMAR_CHANGE,
		{POS("netns", "NS", NAME), POS("chain", "CHAIN", WORD, , .words = chain_words),
			POS("rule", "RULE", REST)}},
	{"rule list", "rules of a namespace", GRAMMAR_ITEMS, {POS("netns", "NS", NAME)}},
	{"rule delete", "delete one rule", GRAMMAR_CHANGE,
		{POS("netns", "NS", NAME), KEY("handle", "N", UINT, , .max = U32)}},
	{"rule flush", "delete all rules of a namespace or chain", GRAMMAR_CHANGE,
		{POS("netns", "NS", NAME),
			POS("chain", "CHAIN", WORD, | GRAMMAR_OPT, .words = chain_words)}},
	{"rule replace", "replace all rules by those of a file", GRAMMAR_CHANGE,
		{POS("netns", "NS", NAME), POS("file", "FILE", FILE)}},
	{"rule policy", "what a chain does with the rest", GRAMMAR_CHANGE,
		{POS("netns", "NS", NAME), POS("chain", "CHAIN", WORD, , .words = chain_words),
			POS("policy", "accept|drop", WORD, , .words = policy_words)}},
	{"rule export", "rules of a namespace as an nft file", GRAMMAR_ITEMS,
		{POS("netns", "NS", NAME)}},
	{"rule events", "a stream of what rules log", GRAMMAR_ITEMS,
		{NETNS, OPT("count", "N", UINT, , .min = 1, .max = U32)}},

	{"conntrack list", "tracked connections, as conntrack -L", GRAMMAR_ITEMS, {CT_FILTERS}},
	{"conntrack count", "number of tracked connections", 0, {CT_FILTERS}},
	{"conntrack delete", "forget the connections of a filter", 0, {CT_FILTERS}},
	{"conntrack flush", "forget all connections, or those of a filter", 0, {CT_FILTERS}},
	{"conntrack events", "a stream of NEW, UPDATE, DESTROY, as conntrack -E", GRAMMAR_ITEMS,
		{CT_FILTERS, OPT("event-mask", "NEW|UPDATES|DESTROY,...", STRING),
			OPT("count", "N", UINT, , .min = 1, .max = U32)}},
	{"expect list", "expected connections", GRAMMAR_ITEMS | GRAMMAR_MISSING,
		{NETNS}},
	{"connlimit list", "counters of connection limits", GRAMMAR_ITEMS,
		{NETNS, OPT("top", "N", UINT, , .min = 1, .max = 1000)}},

	{"stats", "counters, as conntrack -S; with a namespace its own", GRAMMAR_ITEMS, {NETNS}},
	{"drops", "refused packets by reason", GRAMMAR_ITEMS, {NETNS}},
	{"trace", "the way of packets through the stages", GRAMMAR_ITEMS,
		{NETNS, OPT("link", "LINK", NAME),
			OPT("family", "ipv4|ipv6", WORD, , .words = family_words),
			OPT("proto", "PROTO", STRING), OPT("src", "ADDR[/LEN]", STRING),
			OPT("dst", "ADDR[/LEN]", STRING),
			OPT("sport", "PORT", UINT, , .max = 65535),
			OPT("dport", "PORT", UINT, , .max = 65535),
			OPT("icmp-type", "N", UINT, , .max = 255),
			OPT("icmp-code", "N", UINT, , .max = 255), OPT("dropped", "", FLAG),
			OPT("reason", "REASON", STRING),
			OPT("count", "N", UINT, , .min = 1, .max = 1000000)}},
	{"top", "load and namespaces, once a second", GRAMMAR_ITEMS,
		{OPT("interval", "SECONDS", UINT, , .min = 1, .max = 3600),
			OPT("count", "N", UINT, , .min = 1, .max = U32)}},

	{"show version", "versions of the program and of DPDK", 0, {{0}}},
	{"show workers", "load of each worker", GRAMMAR_ITEMS, {{0}}},
	{"show memory", "memory in use, by part", 0, {{0}}},

	{"help", "this list, or the usage of one command", GRAMMAR_CLIENT,
		{POS("command", "COMMAND", REST, | GRAMMAR_OPT)}},
	{0},
};
