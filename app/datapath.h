/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet path: datapath_burst() is where a packet goes, top to bottom. Live workers, replay and
 * benchmarks call it alike.
 */
#ifndef DATAPATH_H
#define DATAPATH_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "gateway.h"
#include "pkt.h"

#define DATAPATH_BURST 32

struct nat_ahead;
struct port;
struct rte_mbuf;
struct synproxy;
struct worker;

/* Packets on their way to one port. */
struct tx_buffer {
	struct port *port;
	uint64_t bytes;
	uint16_t n;
	struct rte_mbuf *m[DATAPATH_BURST];
	struct netns *ns[DATAPATH_BURST]; /* whose packet it is */
};

#define DATAPATH_CHAINS 4 /* RULE_CHAINS */

/* What the rules said of a packet that has some, for the trace; the index is enum rule_chain. */
struct datapath_way {
	uint64_t handle[DATAPATH_CHAINS];
	uint8_t verdict[DATAPATH_CHAINS]; /* 0: did not come there; enum rules_verdict, and these */
};

#define DATAPATH_WAY_SEEN   0x80
#define DATAPATH_WAY_POLICY 0x40 /* no rule had a verdict */
#define DATAPATH_WAY_KEPT   0x20 /* that of an earlier packet of the connection */

/* What the SYN proxy had to do with packets of a burst. */
struct datapath_synproxy {
	uint32_t marked;               /* bit set for each of them */
	uint8_t stage[DATAPATH_BURST]; /* of those: enum synproxy_stage */
	struct synproxy *proof;        /* of the packet at hand, if it has become a SYN */
	const struct pkt *own;         /* the gateway's own ACK, while that is tracked */
};

struct datapath {
	struct pkt pkt[DATAPATH_BURST];
	struct limits_ahead *ahead; /* of the limits of each (rule_limits.h); freed with it */
	struct nat_ahead *nat_ahead; /* of the translation of each (nat.h); freed with it */
	struct datapath_way way[DATAPATH_BURST]; /* of those with pkt.rules */
	struct datapath_synproxy synproxy;
	struct rte_mbuf *unreachable; /* of the packet at hand, until a frame of it waits */
	bool served; /* some packet's namespace has rules, or translates */
	bool raw;    /* or rules with a raw chain */
	bool opens;  /* some packet seems to open a connection that is translated */
	bool traced; /* the worker has a trace */
	bool defers; /* packets are translated when the whole burst has been judged */
	uint32_t translate; /* bit set for each that is to be translated when all are judged */
	struct tx_buffer tx[GW_PORTS_MAX]; /* by port.index */
	uint32_t tx_pending;               /* bit set for each buffer that is not empty */
};

/*
 * Takes n <= DATAPATH_BURST packets that came in on `in`, and owns them from now on: each is freed
 * or in a transmit buffer. `now` is one reading of the clock for all.
 */
void datapath_burst(struct worker *w, struct port *in, struct rte_mbuf **m, unsigned int n,
	struct sl_now now);

/* Once per poll: destroys connections and drops what has waited too long, some at a time. */
void datapath_sweep(struct worker *w, bool idle, struct sl_now now);

/* Drops all packets that have waited too long, where time jumps (replay). */
void datapath_sweep_waiting(struct worker *w, struct sl_now now);

/* Sends what is in the transmit buffers; what a port does not take is dropped (SL_DROP_TX_FULL). */
void datapath_flush(struct worker *w);

#endif
