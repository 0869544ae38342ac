/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace: the way of chosen packets through the stages. After each burst the packet path looks
 * once whether the worker has a trace; only then are the burst's packets matched and what each
 * stage left in struct pkt is copied to the trace's ring, which the control side prints from. The
 * ring is bounded; what does not fit is counted.
 *
 * Up to TRACE_SESSIONS_MAX traces run at once, each with its own filter and rings. The control
 * thread opens, reads and closes them; all workers see the same set.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "datapath.h"
#include "link.h"
#include "netns.h"
#include "pkt.h"
#include "port.h"
#include "prefix.h"

#define TRACE_SESSIONS_MAX 8

struct gateway;
struct sl_err;
struct trace_session;
struct worker;

/*
 * Worker: records the packets of a burst that the traces select; `now` is the burst's. Called when
 * the verdict on every packet is known and while all mbufs still belong to the burst; what a
 * transmit queue refuses later is not in a trace.
 */
void trace_burst(struct worker *w, const struct port *in, const struct pkt *p, unsigned int n,
	struct sl_now now);

/* trace_filter.fields: what is compared besides the prefixes. */
#define TRACE_BY_FAMILY    0x01
#define TRACE_BY_PROTO     0x02
#define TRACE_BY_SPORT     0x04
#define TRACE_BY_DPORT     0x08
#define TRACE_BY_ICMP_TYPE 0x10
#define TRACE_BY_ICMP_CODE 0x20
#define TRACE_BY_REASON    0x40 /* dropped, or INVALID, for this reason */
#define TRACE_DROPPED      0x80 /* dropped, for whatever reason */

/*
 * Which packets: by the headers of the packet itself, whatever its connection is, and by its fate.
 * All zero selects every packet. Ports are those of TCP, UDP, UDP-Lite and SCTP.
 */
struct trace_filter {
	const struct netns *ns; /* NULL: all, and packets of none. Only looked at by trace_open() */
	struct prefix src, dst;
	uint16_t sport, dport; /* host order */
	uint8_t fields;
	uint8_t family; /* TUPLE_… */
	uint8_t proto;
	uint8_t icmp_type, icmp_code;
	uint8_t reason; /* enum sl_drop */
	char link[LINK_NAME_MAX + 1]; /* that it came in on; empty: any */
};

/* One packet, as the stages left it. Holds no reference. */
struct trace_record {
	uint64_t ns;           /* the burst's clock */
	struct tuple_addr src, dst;
	struct tuple inner;    /* PKT_ICMP_ERROR: the packet inside */
	uint32_t seq, ack;     /* TCP */
	uint32_t frame_len;
	uint32_t ip_bytes;
	uint16_t flags;        /* PKT_… */
	uint16_t sport, dport; /* host order; with TRACE_HAS_PORTS */
	uint32_t frag_id;      /* PKT_FRAGMENT */
	uint16_t frag_off;
	uint16_t fragments;    /* that the datagram came in; 0: in none */
	uint16_t icmp_id;
	uint16_t win;
	uint16_t ethertype;
	uint16_t vlan, vlan_inner;         /* ids as received; by n_tags */
	uint16_t out_vlan, out_vlan_inner; /* 0: none */
	uint8_t n_tags;
	uint8_t worker;
	uint8_t family; /* TUPLE_…; 0 where no sound IP header is */
	uint8_t proto;
	uint8_t has;    /* TRACE_HAS_… */
	uint8_t tcp_flags;
	uint8_t icmp_type, icmp_code;
	uint8_t reason;
	uint8_t ct_dir, ct_state_old, ct_state_new;
	bool frag_more;
	uint8_t synproxy; /* enum synproxy_stage */
	uint8_t rule_verdict[DATAPATH_CHAINS]; /* as struct datapath_way */
	uint64_t rule_handle[DATAPATH_CHAINS];
	char netns[NETNS_NAME_MAX + 1]; /* empty: none */
	char in_link[LINK_NAME_MAX + 1], out_link[LINK_NAME_MAX + 1];
	char in_port[PORT_NAME_MAX + 1], out_port[PORT_NAME_MAX + 1];
};

/* trace_record.has */
#define TRACE_HAS_PORTS 0x01
#define TRACE_HAS_TCP   0x02 /* seq, ack, win, tcp_flags */
#define TRACE_HAS_ICMP  0x04 /* icmp_type, icmp_code */
#define TRACE_HAS_ENTRY 0x08 /* an entry of the table, found or made */

/* ---- control ---- */

/*
 * Begins a trace on all workers. Refuses with -EBUSY when TRACE_SESSIONS_MAX run already, -ENOMEM.
 * The session is the caller's until trace_close().
 */
int trace_open(struct gateway *gw, const struct trace_filter *filter, struct trace_session **out,
	struct sl_err *err);

/* Takes up to max records, in order of time as far as they are there; 0: none now. */
unsigned int trace_read(struct trace_session *s, struct trace_record *r, unsigned int max);

/* Selected packets that the rings had no room for, so far. */
uint64_t trace_lost(const struct trace_session *s);

/* Ends the trace; its memory goes after a grace period. */
void trace_close(struct gateway *gw, struct trace_session *s);

/* True when the filter selects the packet of the record; the namespace is not looked at. */
bool trace_match(const struct trace_filter *f, const struct trace_record *r);

#endif
