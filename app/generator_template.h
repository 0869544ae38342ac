/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Templates of the generator's packets: whole frames in which the fields that differ from packet to
 * packet are zero, with the unfolded sums of all the rest.
 */
#ifndef GENERATOR_TEMPLATE_H
#define GENERATOR_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "generator_options.h"

struct gen_template {
	uint32_t ip_sum; /* of the IPv4 header but the client's address */
	uint32_t l4_sum; /* of pseudo-header, transport header and payload but the fields set */
	uint16_t len;
	uint16_t l4_off;
	uint16_t addr_off; /* of the last 32 bits of the client's address */
	uint16_t port_off; /* of the client's port */
	uint16_t csum_off;
	uint16_t ip_csum_off; /* 0: IPv6 */
	bool tagged;
	uint8_t frame[GEN_SIZE_MAX + 2] __rte_cache_aligned;
};

enum gen_side { GEN_CLIENT, GEN_SERVER };

struct gen_segment {
	uint8_t flags; /* TCP's */
	enum gen_side from;
	bool payload;
	uint8_t next; /* step of the flow behind it */
};

/*
 * Fills a zeroed template; `tagged`: with room for one 802.1Q tag behind the MAC addresses. Left
 * zero are the tag, the last 32 bits of the client's address, its port, TCP's sequence and
 * acknowledgement numbers, and checksums. Returns the bytes of payload.
 */
uint16_t gen_template_build(struct gen_template *t, const struct gen_options *o,
	const struct gen_segment *s, bool tagged);

#endif
