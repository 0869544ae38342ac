/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SYN proxy: the gateway answers a SYN by itself, with a cookie, and opens the server's side when
 * the client's ACK has proved that it is there. Nothing is kept of a SYN.
 *
 *   client                     gateway                      server
 *     SYN seq=c ─────────────────▶
 *     ◀──────── SYN/ACK seq=cookie, window 0                           synproxy_answer()
 *     ACK seq=c+1 ack=cookie+1 ──▶                                     synproxy_prove()
 *                                  SYN seq=c ─────────────────▶        synproxy_make_syn()
 *                                  ◀──────────── SYN/ACK seq=s         synproxy_meet_server()
 *                                  ACK ack=s+1 ───────────────▶        synproxy_ack_server()
 *     ◀──────── ACK seq=cookie+1, the server's window                  synproxy_make_update()
 *
 * From then on the server's sequence numbers and timestamps are translated, and windows are
 * rescaled where what the client was promised is not what the server does: synproxy_to_server(),
 * before conntrack sees the packet, and synproxy_to_client(), after it has. So the entry is in the
 * server's numbers.
 *
 * A struct synproxy belongs to one entry and is guarded by its lock. Packets here are parsed TCP
 * without PKT_L4_BAD, in one segment up to the end of their TCP header.
 */
#ifndef SYNPROXY_H
#define SYNPROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "hash.h"
#include "pkt.h"

struct rte_mbuf;

/* What clients are promised, since the server is not asked (sluice.synproxy_…). */
struct synproxy_promise {
	uint16_t mss;
	uint8_t scale;
	bool sack, timestamp;
};

struct synproxy {
	uint32_t client_seq;    /* of the client's SYN */
	uint32_t cookie;        /* the server's first sequence number as the client has it */
	uint32_t seq_delta;     /* what is added to the server's numbers for the client */
	uint32_t ts_delta;      /* likewise, timestamps */
	uint32_t answer_ts;     /* the timestamp that the client was last given: it echoes this */
	uint32_t syn_ms;        /* when the SYN for the server was sent last: the caller's */
	uint16_t mss;           /* what the client has offered */
	uint16_t window;        /* the client's last before `open`, as on the wire */
	uint8_t client_scale;   /* as offered; TCP_SCALE_NONE: no scaling with the client */
	uint8_t promised_scale; /* of the windows that the client is given */
	uint8_t server_scale;   /* TCP_SCALE_NONE: no scaling with the server */
	bool sack : 1, timestamp : 1; /* in force with the client */
	bool open : 1;          /* the server has answered: the deltas are valid */
};

_Static_assert(sizeof(struct synproxy) == 32, "two to a cache line");

/* Writes the SYN/ACK that answers a SYN into m, an empty buffer; it leaves on the link of the SYN.
 * False when m has not the room. The caller has asked answer_allowed(). */
bool synproxy_answer(struct rte_mbuf *m, const struct pkt *syn, const struct synproxy_promise *k,
	const struct sl_hasher *secret, struct sl_now now);

/* Whether a segment without entry, with ACK but not SYN or RST, brings a cookie back. Sets *s. */
bool synproxy_prove(const struct pkt *ack, const struct synproxy_promise *k,
	const struct sl_hasher *secret, struct sl_now now, struct synproxy *s);

/* Turns such a segment, or a later one of the client while the server has not answered, into the
 * SYN for the server; data in it is left out, and the client sends it again. The header keeps what
 * the client has acknowledged, for who answers it by a RST (tcp_reset.h), until it is clean. False
 * when the buffer has not the room or the packet came in fragments. */
bool synproxy_make_syn(struct pkt *p, struct synproxy *s);
void synproxy_clean_syn(struct pkt *p);

/* Whether a segment of the client while the server has not answered is of this connection; one that
 * is not may be of anybody. */
bool synproxy_of_client(const struct pkt *p, const struct synproxy *s);

/* Turns a RST of the client while the server has not answered into one that the server takes. False
 * when it came in fragments. */
bool synproxy_make_rst(struct pkt *p, const struct synproxy *s);

/* Whether a SYN/ACK of the server answers the SYN that was made; and, on a connection that is open,
 * whether it is the one that has opened it. Not one in fragments. */
bool synproxy_answers(const struct pkt *synack, const struct synproxy *s);

/* The server's SYN/ACK: settles what is translated how. Does not change the packet. */
void synproxy_meet_server(struct synproxy *s, const struct pkt *synack);

/* Writes the ACK for the server that answers its SYN/ACK; it leaves on the link of the latter. */
bool synproxy_ack_server(struct rte_mbuf *m, const struct pkt *synack, const struct synproxy *s);

/* Turns the server's SYN/ACK into the window update for the client. */
void synproxy_make_update(struct pkt *synack, const struct synproxy *s);

/* The two have opened a new connection in place of this one, by a SYN and an answer that passed:
 * windows are as they have agreed. Numbers go on being translated as before, since the client may
 * have taken an answer that passed before the one that was believed. */
void synproxy_renew(struct synproxy *s);

/* A packet of the client, and of the server, on a connection that is open. A RST of the server
 * before it has answered is given the number that the client expects. */
void synproxy_to_server(struct pkt *p, const struct synproxy *s);
void synproxy_to_client(struct pkt *p, const struct synproxy *s);

/* An ICMP error for the server: the number in the packet inside becomes what the server has sent,
 * else it would not know it for its own. Those for the client are right as they are. */
void synproxy_error_to_server(struct pkt *p, const struct synproxy *s);

#endif
