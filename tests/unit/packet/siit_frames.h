/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames to translate, with room before them, for the tests of siit.h. */
#ifndef SIIT_FRAMES_H
#define SIIT_FRAMES_H

#include <string.h>

#include "frames.h"
#include "siit.h"

#define SIIT_ROOM 128u

struct siit_buf {
	uint8_t b[SIIT_ROOM + FRAME_MAX];
	struct rte_mbuf m;
};

/* The frame, as it would come from a port. */
static inline void
siit_load(struct siit_buf *s, const struct frame *f)
{
	memset(s->b, 0xee, sizeof(s->b));
	memcpy(s->b + SIIT_ROOM, f->b, f->len);
	frame_wrap(&s->m, s->b, f->len);
	s->m.data_off = SIIT_ROOM;
	s->m.buf_len = sizeof(s->b);
}

static inline const uint8_t *
siit_data(const struct siit_buf *s)
{
	return s->b + s->m.data_off;
}

/* The tuples that translated packets get: of IPv4 198.18.0.1 to 203.0.113.80. */
static inline struct tuple
siit_to(uint8_t family, uint8_t proto, uint16_t sport, uint16_t dport)
{
	static const uint8_t src6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0x64, [12] = 203, 0, 113, 80};
	static const uint8_t dst6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 9, [15] = 0x42};
	static const uint8_t src4[4] = {198, 18, 0, 1}, dst4[4] = {203, 0, 113, 80};
	struct tuple to = {.family = family, .proto = proto, .sport = rte_cpu_to_be_16(sport),
		.dport = rte_cpu_to_be_16(dport)};

	memcpy(to.src.b, family == TUPLE_IPV4 ? src4 : src6, family == TUPLE_IPV4 ? 4 : 16);
	memcpy(to.dst.b, family == TUPLE_IPV4 ? dst4 : dst6, family == TUPLE_IPV4 ? 4 : 16);
	return to;
}

#endif
