/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rule as data: what the text of docs/rules.md says, in the order in which it is evaluated.
 *
 * A rule is a list of items, matches and statements, evaluated from left to right as nft does. A
 * match that fails ends the rule, a statement acts and goes on, and a verdict ends it. A verdict
 * is the last item, and there is at most one. What a match needs (`tcp dport` that the packet is
 * TCP, `ip saddr` that it is IPv4) is part of the match: a packet that lacks the field does not
 * match, whether the match is negated or not. So it is with statements that are for one family
 * or protocol (`reject with icmp …`, `reject with tcp reset`, `snat ip to`, `… by ip saddr`): other
 * packets do not match the rule, and go on to the next.
 *
 * Rules are made by rule_parse() and not changed after it, but for `handle`, `live` and `before`.
 * They are shared by reference count between the editable list of a namespace (rule_list.h) and
 * what is compiled of it; the last rule_put() frees, what is live too.
 */
#ifndef RULE_H
#define RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "tuple.h"

#define RULE_NAME_MAX   15u /* link and helper names */
#define RULE_POOL_MAX   63u
#define RULE_PREFIX_MAX 127u /* bytes of a log prefix */

enum rule_chain { RULE_RAW, RULE_PREROUTING, RULE_FORWARD, RULE_POSTROUTING, RULE_CHAINS };

/* What a match looks at. The type of its values is in brackets. */
enum rule_field {
	RULE_IP_SADDR,    /* [addr] */
	RULE_IP_DADDR,    /* [addr] */
	RULE_IP6_SADDR,   /* [addr] */
	RULE_IP6_DADDR,   /* [addr] */
	RULE_NFPROTO,     /* [n] TUPLE_IPV4 or TUPLE_IPV6; ARP has neither */
	RULE_L4PROTO,     /* [n] IPPROTO_… of the packet, behind IPv6 extension headers */
	RULE_TCP_SPORT,   /* [n] ports in host order */
	RULE_TCP_DPORT,
	RULE_UDP_SPORT,
	RULE_UDP_DPORT,
	RULE_SCTP_SPORT,
	RULE_SCTP_DPORT,
	RULE_TCP_FLAGS,   /* [n] PKT_TCP_… (pkt.h) */
	RULE_ICMP_TYPE,   /* [n] of an ICMP packet over IPv4 */
	RULE_ICMPV6_TYPE, /* [n] of an ICMPv6 packet over IPv6 */
	RULE_CT_STATE,    /* [n] one of RULE_STATE_… */
	RULE_CT_MARK,     /* [n]; no connection: no match */
	RULE_CT_ZONE,     /* [n]; no connection and no zone set: no match */
	RULE_META_MARK,   /* [n] */
	RULE_IIFNAME,     /* [name] */
	RULE_OIFNAME,     /* [name]; no output link yet: no match */
	RULE_FIELDS
};

/* The values of RULE_CT_STATE; one bit each, so that `ct state a,b` is a test of bits. */
#define RULE_STATE_INVALID     0x01u
#define RULE_STATE_ESTABLISHED 0x02u
#define RULE_STATE_RELATED     0x04u
#define RULE_STATE_NEW         0x08u
#define RULE_STATE_UNTRACKED   0x40u

/*
 * A value is 16 bytes, zero behind what is used. Addresses are in network order (IPv4 in the first
 * four bytes); names compare as the bytes of `name`, so "lan*" is the range from "lan" to "lan"
 * followed by 0xff.
 */
union rule_value {
	uint32_t n;
	struct tuple_addr addr;
	char name[RULE_NAME_MAX + 1];
};

struct rule_range {
	union rule_value lo, hi; /* both included */
};

/* How the values were written; for the text alone. */
enum rule_form {
	RULE_FORM_VALUE,    /* one value, a prefix or a wildcard: `ip saddr 10.0.0.0/8` */
	RULE_FORM_RANGE,    /* `10.0.0.1-10.0.0.9` */
	RULE_FORM_SET,      /* `{ … }` */
	RULE_FORM_BITS,     /* any of these bits: `ct state new,related`, `tcp flags syn,ack` */
	RULE_FORM_NO_BITS,  /* none of these bits: `tcp flags ! syn` */
	RULE_FORM_MASKED,   /* `tcp flags syn / fin,syn`, `ct mark and 0xff == 1` */
	RULE_FORM_EXACT,    /* all bits as given: `tcp flags == syn`, `ct state == new` */
};

/*
 * True when ((the field & mask) lies in one of the ranges) != negate. Every form is brought to
 * this: bits are "(field & bits) is not 0".
 */
struct rule_match {
	uint8_t field; /* enum rule_field */
	uint8_t form;  /* enum rule_form */
	bool negate;
	uint32_t mask; /* of fields with numbers; all ones where there is none */
	uint32_t n;    /* ranges, 1 or more */
	struct rule_range *range; /* ascending (n, or the bytes), without overlap */
};

enum rule_item_type {
	RULE_MATCH,
	/* statements that go on */
	RULE_COUNTER,
	RULE_LOG,
	RULE_LIMIT,         /* a match by nature: goes on when within (or over) the rate */
	RULE_CT_COUNT,      /* a match by nature, too */
	RULE_CT_MARK_SET,
	RULE_META_MARK_SET,
	RULE_ZONE_SET,
	RULE_HELPER_SET,
	RULE_NOTRACK,
	/* verdicts: the last item */
	RULE_ACCEPT,
	RULE_DROP,
	RULE_REJECT,
	RULE_NAT,
};

struct rule_counter {
	uint32_t index;          /* number of this counter within the rule, from 0 */
	uint64_t packets, bytes; /* what the rule's text starts it with */
};

struct rule_log {
	bool has_level, has_group; /* at most one of both */
	uint8_t level;             /* 0 emerg … 7 debug (syslog), 8 audit */
	uint16_t group;
	char prefix[RULE_PREFIX_MAX + 1]; /* empty: none */
};

/* `by ip saddr and 255.255.255.0`: what connections or packets are counted by. */
struct rule_key {
	uint8_t family; /* TUPLE_IPV4 or TUPLE_IPV6; 0: all that match the rule together. Packets
			 * of the other family do not match */
	bool daddr;
	uint8_t prefix; /* bits of the address that count */
};

struct rule_limit {
	struct rule_key by;
	bool over;
	uint64_t rate;  /* packets per unit, not 0 */
	uint32_t unit;  /* seconds: 1, 60, 3600, 86400, 604800 */
	uint32_t burst; /* packets; 5 where the text has none, as nft */
};

struct rule_ct_count {
	struct rule_key by;
	bool over;
	uint32_t count;
};

/* ct mark set, meta mark set */
struct rule_mark_set {
	bool from_meta; /* ct mark set meta mark; else value */
	uint32_t value;
};

enum rule_zone_dir { RULE_ZONE_BOTH, RULE_ZONE_ORIGINAL, RULE_ZONE_REPLY };

struct rule_zone_set {
	uint8_t dir; /* enum rule_zone_dir */
	uint16_t zone;
};

enum rule_reject_type {
	RULE_REJECT_TCP_RESET, /* TCP only */
	RULE_REJECT_ICMP,   /* code: of ICMP destination unreachable; IPv4 only */
	RULE_REJECT_ICMPV6, /* code: of ICMPv6 destination unreachable; IPv6 only */
	RULE_REJECT_ICMPX,  /* code: enum rule_icmpx, for the family of the packet */
};

enum rule_icmpx {
	RULE_ICMPX_NO_ROUTE,          /* ICMP net-unreachable (0), ICMPv6 no-route (0) */
	RULE_ICMPX_PORT_UNREACHABLE,  /* ICMP 3, ICMPv6 4 */
	RULE_ICMPX_HOST_UNREACHABLE,  /* ICMP host-unreachable (1), ICMPv6 addr-unreachable (3) */
	RULE_ICMPX_ADMIN_PROHIBITED,  /* ICMP admin-prohibited (13), ICMPv6 admin-prohibited (1) */
};

struct rule_reject {
	uint8_t type; /* enum rule_reject_type */
	uint8_t code;
};

enum rule_nat_type {
	RULE_SNAT,
	RULE_DNAT,
	RULE_MASQUERADE,
	RULE_REDIRECT,
	RULE_SNAT_PREFIX, /* netmap: address lo … hi is all of a prefix, hosts keep their bits */
	RULE_DNAT_PREFIX,
	RULE_SNAT_POOL,   /* ours: snat to pool NAME … */
	RULE_NAT64,       /* ours: nat64 prefix PREFIX to pool NAME */
};

/* rule_nat.flags */
#define RULE_NAT_RANDOM       0x01
#define RULE_NAT_FULLY_RANDOM 0x02
#define RULE_NAT_PERSISTENT   0x04

enum rule_nat_filter {
	RULE_FILTER_DEFAULT, /* as mapped: address-and-port-dependent, as netfilter */
	RULE_FILTER_ENDPOINT_INDEPENDENT,
	RULE_FILTER_ADDRESS_DEPENDENT,
	RULE_FILTER_ADDRESS_PORT_DEPENDENT,
};

struct rule_nat {
	uint8_t type;     /* enum rule_nat_type */
	uint8_t family;   /* of lo and hi, or the packets it is for; 0: both (masquerade, redirect,
			   * pool), whatever the packet is */
	uint8_t flags;
	bool has_addr, has_port;
	bool addr_range, port_range; /* written as a range */
	uint16_t port_lo, port_hi;   /* host order */
	struct tuple_addr lo, hi;    /* has_addr, and the prefix of a netmap or of NAT64 */
	uint8_t prefix;              /* netmap, NAT64: its length */
	/* ours */
	char pool[RULE_POOL_MAX + 1];
	uint32_t block_size; /* ports; 0: no blocks */
	uint32_t blocks;     /* at most for a source; 0: not said */
	bool deterministic, endpoint_independent;
	uint8_t filter;      /* enum rule_nat_filter */
};

struct rule_item {
	uint8_t type; /* enum rule_item_type; says which of the union it is */
	union {
		struct rule_match match;
		struct rule_counter counter;
		struct rule_log *log; /* owned by the rule */
		struct rule_limit limit;
		struct rule_ct_count ct_count;
		struct rule_mark_set mark_set;
		struct rule_zone_set zone_set;
		char helper[RULE_NAME_MAX + 1];
		struct rule_reject reject;
		struct rule_nat *nat; /* owned by the rule */
	};
};

struct rule_live; /* counters, and the objects of its items: live.h */

struct rule {
	uint32_t refs;   /* atomic; rule_get(), rule_put() */
	uint64_t handle; /* 0 until it is in a list; unique in the namespace, never used again */
	uint8_t chain;   /* enum rule_chain */
	uint32_t line;   /* of the file it was read from; 0: it came alone */
	uint32_t n_counters;
	uint32_t n;      /* items */
	struct rule_item *item;
	struct rule_live *live; /* NULL until the rule is first compiled */
	struct rule *before;    /* whose counts it goes on with, until it is live; a reference */
};

struct rule *rule_get(struct rule *r); /* one more reference; returns r */
void rule_put(struct rule *r);         /* NULL is allowed */

#endif
