/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection entry: four cache lines. A packet of an established connection touches two, the
 * line of its own direction (key, counters or what it is translated to) and the shared one (lock,
 * life, deadline, protocol state). The fourth is for what changes seldom or is only listed.
 *
 *   dir[0]   original tuple, its counters or translation
 *   shared   lock, life, generation, deadline, protocol state
 *   dir[1]   reply tuple, likewise
 *   cold     mark, owner, NAT and limits slots, timestamps
 *
 * Who writes what:
 *   life, gen       transitions below; read by anyone, life with acquire
 *   tuples, owner   by the thread that makes the entry, while EMBRYO; constant while LIVE or DYING
 *   all the rest    under the entry's lock (or while EMBRYO, which belongs to its maker)
 *
 * Life: FREE → EMBRYO → LIVE → DYING → FREE. The store of LIVE, with release, publishes the entry:
 * it is the last step of an insert, after both tuples are in the table. A reader that meets any
 * other life, or a foreign key, goes on scanning. Whoever turns LIVE to DYING, under the entry's
 * lock, owns the destruction. Freeing adds one to gen; an entry can be reused at once, since the
 * memory is type-stable and every use is verified under the lock by (life, gen).
 */
#ifndef CT_ENTRY_H
#define CT_ENTRY_H

#include <stdint.h>

#include <rte_common.h>

#include "lock.h"
#include "tuple.h"

enum ct_life { CT_FREE, CT_EMBRYO, CT_LIVE, CT_DYING };

enum ct_dir { CT_ORIGINAL, CT_REPLY };

/* entry.status */
#define CT_SEEN_REPLY   0x0001
#define CT_ASSURED      0x0002
#define CT_SRC_NAT      0x0004
#define CT_DST_NAT      0x0008
#define CT_UDP_STREAM   0x0010 /* the stream timeout holds */
#define CT_HALF_OPEN    0x0020 /* counted so by lib/tcp_ehash; as the next two, not for listings */
#define CT_TIME_WAITING 0x0040
#define CT_HAIRPIN      0x0080 /* leaves on the link that it came in on */
#define CT_SEQADJ       0x0100 /* TCP: its segments pass through ops.adjust */
#define CT_NAT64        0x0200 /* one tuple is of IPv6, the other of IPv4 */
#define CT_ACCT         0x0400 /* counted, since nf_conntrack_acct was on as it began */
#define CT_NAT_READY    0x0800 /* not with CT_ACCT: nat_ready is lib/nat's */
#define CT_NAT_MET      0x1000 /* the application knows where both ends are */
#define CT_REFUSED      0x2000 /* lib/nat's: its packets are dropped, as its far end refuses them */
#define CT_NEEDS_ROOM   0x8000 /* EMBRYO: another has to go before it can be inserted */

#define CT_STATUS_TOLD (CT_SEEN_REPLY | CT_ASSURED | CT_SRC_NAT | CT_DST_NAT | CT_UDP_STREAM)

struct ct_dir_part {
	struct tuple tuple;
	uint32_t verdict; /* lib/rules': of the last evaluation in this direction, 0: none */
	union {
		struct {
			uint64_t packets, bytes; /* with CT_ACCT */
		};
		uint64_t nat_ready[2]; /* with CT_NAT_READY */
	};
};

/* One direction of the window tracking (van Rooij 2001, "Real stateful TCP packet filtering"). */
struct ct_tcp_peer {
	uint32_t end;     /* highest sequence number + length seen */
	uint32_t max_end; /* highest acknowledged by the other side + its window */
	uint32_t max_win; /* largest window, scaled */
	uint32_t max_ack; /* highest ACK sent; without CT_TCP_PEER_MAXACK its SYN's sequence */
};

/* flags of a peer */
#define CT_TCP_PEER_SCALE   0x01 /* offered window scaling */
#define CT_TCP_PEER_SACK    0x02 /* may send SACK */
#define CT_TCP_PEER_FIN     0x04 /* has sent a FIN */
#define CT_TCP_PEER_LIBERAL 0x08 /* picked up: no window is known */
#define CT_TCP_PEER_UNACKED 0x10 /* data is unacknowledged */
#define CT_TCP_PEER_MAXACK  0x20 /* max_ack is valid */
#define CT_TCP_PEER_LEFT    0x40 /* since the last sound segment: a FIN or RST out of the window */

struct ct_tcp {
	struct ct_tcp_peer peer[2];
	uint32_t last_seq;
	uint32_t last_ack;
	uint32_t last_end;
	uint16_t last_win;
	uint8_t peer_flags[2];
	uint8_t scale[2];   /* 4 bits are used of each; bits 4–7 belong to proto_tcp.c */
	uint8_t retrans;    /* repeats of the last segment in a row */
	uint8_t state : 4;  /* enum ct_tcp_state */
	uint8_t last_kind : 3; /* kind of the last segment */
	uint8_t last_dir : 1;
};

struct ct_udp {
	uint32_t first_ms; /* the stream timeout begins 2 s after this */
};

struct ct_gre {
	uint32_t timeout, stream_timeout; /* ms */
};

struct ct_sctp {
	uint32_t vtag[2];  /* verification tag of packets of each direction; 0: not settled */
	uint32_t offer[2]; /* the same, as an exchange under way would have it */
	uint8_t state;     /* enum ct_sctp_state */
	uint8_t flags;     /* proto_sctp.c */
};

struct ct_entry {
	struct ct_dir_part orig;

	struct sl_lock lock;
	uint8_t life; /* enum ct_life */
	uint16_t status;
	uint32_t gen;
	uint32_t deadline; /* ms; the entry is dead when it has passed */
	union {
		struct ct_tcp tcp;
		struct ct_udp udp;
		struct ct_gre gre;
		struct ct_sctp sctp;
		uint8_t bytes[52];
	} proto;

	struct ct_dir_part reply;

	struct netns *ns; /* the owner; alive as long as the entry is LIVE or DYING */
	uint32_t ns_gen;
	uint32_t mark;
	uint64_t start_ns; /* when it was made */
	uint64_t nat[3];   /* lib/nat's */
	uint32_t limit[3]; /* lib/connlimit's: what the connection is charged to */
	uint32_t seqadj;   /* with CT_SEQADJ: index of its translation, the application's */
} __rte_cache_aligned;

_Static_assert(sizeof(struct ct_dir_part) == RTE_CACHE_LINE_SIZE, "a direction is one line");
_Static_assert(sizeof(struct ct_tcp) <= 52, "protocol state fits the shared line");
_Static_assert(sizeof(struct ct_entry) == 4 * RTE_CACHE_LINE_SIZE, "an entry is four lines");
_Static_assert(offsetof(struct ct_entry, lock) == 64 && offsetof(struct ct_entry, reply) == 128,
	"lines of an entry");

static inline struct ct_dir_part *
ct_dir_part(struct ct_entry *e, unsigned int dir)
{
	return dir == CT_ORIGINAL ? &e->orig : &e->reply;
}

static inline const struct tuple *
ct_tuple(const struct ct_entry *e, unsigned int dir)
{
	return dir == CT_ORIGINAL ? &e->orig.tuple : &e->reply.tuple;
}

#endif
