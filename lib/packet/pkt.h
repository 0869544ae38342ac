/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the packet path knows of one packet. The parser fills the first part, and after it nothing
 * reads a header without having its length from here; each later stage adds its own result, so that
 * at the end of a burst the whole way of a packet can be told (the trace does).
 *
 * A worker owns an array of these for its burst; they hold no reference past the burst.
 */
#ifndef PKT_H
#define PKT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "drop.h"
#include "tuple.h"

struct rte_mbuf;
struct netns;
struct link;
struct ct_entry;
struct ct_line;
struct frag_train;
struct ruleset;

/* pkt.flags */
#define PKT_IP          0x0001 /* IPv4 or IPv6, tuple.family set; else passes untracked */
#define PKT_ARP         0x0002 /* ARP: untracked */
#define PKT_ND          0x0004 /* ICMPv6 133–137 or MLD: untracked on a wire */
#define PKT_ICMP_ERROR  0x0008 /* tuple: of the packet inside; behind classification, its inverse */
#define PKT_L4_BAD      0x0010 /* INVALID for the reason in pkt.reason; no tuple */
#define PKT_CSUM_GOOD   0x0020 /* the transport checksum is right, by the port or the parser */
#define PKT_CSUM_BAD    0x0040 /* the port found the transport checksum wrong */
#define PKT_UNTRACKED   0x0080
#define PKT_CT_NEW      0x0100 /* this packet made its entry */
#define PKT_CT_RELATED  0x0200
#define PKT_CT_INVALID  0x0400 /* the reason is in pkt.reason */
#define PKT_DROPPED     0x0800 /* the reason is in pkt.reason; none: it was for the gateway */
#define PKT_RACE_LOST   0x1000 /* another worker inserted the same flow first */
#define PKT_FRAGMENT    0x2000 /* one fragment: l3_len and l4_len are of it, l4 is NULL */
#define PKT_DATAGRAM    0x4000 /* whole, of fragments: see train */
#define PKT_CT_AGAIN    0x8000 /* a SYN on a closed connection, which its answer would open anew */

struct pkt {
	struct tuple tuple; /* scope and zone are set by classification, the rest by the parser */
	uint32_t ct_gen;    /* generation of `ct` when it was found */
	uint64_t hash;      /* of the tuple */

	/* parser; pointers are into the first segment, which holds all headers */
	struct rte_mbuf *mbuf;
	uint8_t *l3;          /* IP header; NULL when not IP */
	uint8_t *l4;          /* transport header */
	uint16_t l3_len;      /* bytes from l3 to l4, extension headers and options included */
	uint16_t l4_len;      /* transport header and payload by the IP length: no padding */
	uint16_t l4_hdr_len;  /* TCP: data offset in bytes, options inside; others: fixed header */
	uint16_t ethertype;   /* host order, behind the tags */
	uint16_t tpid;        /* outer tag's TPID as it came, 0 when untagged; host order */
	uint16_t outer_tci;   /* host order; PCP and DEI included */
	uint16_t inner_tci;
	uint8_t n_tags;       /* 0–2; a priority tag counts */
	uint8_t proto;        /* protocol of the packet itself (tuple.proto: of the lookup) */
	uint8_t tcp_flags;    /* FIN … CWR as on the wire */
	uint8_t icmp_type, icmp_code;
	uint8_t reason;       /* enum sl_drop */
	uint16_t flags;       /* PKT_… */
	uint16_t l3_off;      /* offset of l3 from the frame's start: 14, 18 or 22 */
	uint16_t inner_off;   /* ICMP error: offset of the inner IP header from l4 */
	uint16_t inner_l4_off; /* ICMP error: offset of the inner transport header from l4 */
	uint32_t ip_bytes;    /* counted for it: IP header to its end, as netfilter's acct */

	/* classification */
	struct netns *ns;
	struct link *in;
	struct link *out;

	/* conntrack */
	struct ct_entry *ct;
	uint8_t ct_dir;       /* 0 original, 1 reply: direction of the packet itself */
	uint8_t ct_state_old; /* protocol state before and after, for the trace */
	uint8_t ct_state_new;
	union {
		bool frag_more; /* PKT_FRAGMENT: the M bit */
		uint8_t late;   /* behind translation, with PKT_DATAGRAM: PKT_LATE_… */
	};
	uint32_t ct_ref;      /* conntrack's own, between the stages of a lookup */
	uint16_t frag_off;    /* PKT_FRAGMENT: in bytes */
	uint16_t ct_status;   /* with rules: entry.status when it was tracked */
	union {
		uint32_t frag_id; /* PKT_FRAGMENT: host order; late: in network order */
		struct {          /* no PKT_FRAGMENT */
			uint8_t zone_set;    /* 0, or PKT_ZONE_…: raw chose tuple.zone and: */
			uint16_t zone_reply; /* zone of the answers' tuple */
		};
	};

	/* Of a whole datagram the fragments, which leave in place of mbuf, a view; else NULL. */
	struct frag_train *train;
	union {
		const struct ct_line *ct_line; /* conntrack's own, from the start of a lookup */
		uint64_t ct_reply_hash; /* of the inverted tuple, where an insert is likely, or 0 */
		/* PKT_LATE_STATION: what the sender is told if nobody answers, or NULL */
		struct rte_mbuf *unreachable;
	};

	/* rules */
	struct ruleset *rules; /* of the namespace, NULL: none; the same for all of its way */
	uint32_t mark;         /* nft's meta mark */
	uint32_t ct_verdict;   /* with rules: what the entry kept when it was tracked, or CT_OLD */
} __rte_cache_aligned;

/* pkt.zone_set */
#define PKT_ZONE_SET    1
#define PKT_ZONE_ANSWER 2 /* found as an answer: tuple.zone and zone_reply have changed places */

/* pkt.late: what a frame gets as it leaves */
#define PKT_LATE_HEADER  0x01 /* a header of the other IP version, that of the tuple */
#define PKT_LATE_STATION 0x02 /* its destination, when the neighbour has answered */

#define PKT_TCP_FIN 0x01
#define PKT_TCP_SYN 0x02
#define PKT_TCP_RST 0x04
#define PKT_TCP_PSH 0x08
#define PKT_TCP_ACK 0x10
#define PKT_TCP_URG 0x20
#define PKT_TCP_ECE 0x40
#define PKT_TCP_CWR 0x80

#endif
