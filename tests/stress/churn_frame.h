/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of stress_churn: UDP and TCP of few flows, tagged, that tell where they came in. */
#ifndef CHURN_FRAME_H
#define CHURN_FRAME_H

#include <stdint.h>

#define CHURN_VLANS 256u /* more than tenants: some packets are nobody's */
#define CHURN_MAGIC 0x5ca1ab1eu

struct rte_mbuf;

struct churn_origin {
	uint32_t magic;
	uint16_t port, vlan;
};

/* A random frame that comes in on port 0 or 1. */
void churn_frame_fill(struct rte_mbuf *m, unsigned int port, uint64_t random);

/* The VLAN that it carries now. */
unsigned int churn_frame_read(const struct rte_mbuf *m, struct churn_origin *from);

#endif
