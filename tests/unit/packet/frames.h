/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames for the tests of the packet library: built byte by byte, with checksums that are computed
 * by the plainest code there is, so that they are independent of what is tested.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "pkt.h"

#define FRAME_MAX 4096

struct frame {
	uint32_t len;
	uint32_t l3, l4;    /* offsets; 0 when there is none */
	uint32_t type_at;   /* of the EtherType, or of the next header field, still to be set */
	uint8_t family;     /* TUPLE_IPV4, TUPLE_IPV6, or 0 */
	uint8_t proto;
	uint8_t b[FRAME_MAX];
};


/*
 * Building, in this order: start, IP, extension headers, transport, bytes, end. Tags are
 * TPID << 16 | TCI, the outer first; a 0 ends them, NULL is none.
 */
void frame_start(struct frame *f, const uint32_t *tags);
void frame_type(struct frame *f, uint16_t ethertype);
void frame_ip4(struct frame *f, unsigned int option_words);
void frame_ip6(struct frame *f);
void frame_ext(struct frame *f, uint8_t type, unsigned int units);
void frame_tcp(struct frame *f, uint8_t flags, unsigned int option_words);
void frame_udp(struct frame *f);
void frame_udplite(struct frame *f, uint16_t coverage);
void frame_icmp(struct frame *f, uint8_t type, uint8_t code, uint16_t id);
void frame_sctp(struct frame *f);
void frame_gre(struct frame *f, uint16_t flags_version, uint16_t proto, uint16_t call);
void frame_proto(struct frame *f, uint8_t proto); /* any other, no header */
void frame_bytes(struct frame *f, unsigned int n);
void frame_append(struct frame *f, const uint8_t *data, unsigned int n);
void frame_end(struct frame *f); /* lengths and checksums */

void frame_put16(struct frame *f, uint32_t at, uint16_t v);
void frame_ip4_sum(struct frame *f, uint32_t l3);

#define FRAME_SPORT 40000
#define FRAME_DPORT 80
#define FRAME_ID 0x1234
#define FRAME_CALL 0x77aa

/* Sound frames, one of each kind, and what the parser must say of them. */
struct frame_case {
	const char *name;
	void (*build)(struct frame *f);
	uint16_t sport, dport; /* of the tuple, host order */
	uint16_t l3_len, l4_len, l4_hdr_len;
	uint16_t flags;
	uint8_t family, proto; /* of the packet itself; 0: not IP */
	uint8_t tuple_proto;
	uint8_t n_tags;
};

extern const struct frame_case frame_cases[];
extern const unsigned int frame_cases_n;

/* The case of that name; its absence ends the test program. */
const struct frame_case *frame_case(const char *name);

/* An mbuf header around n bytes that belong to somebody else; one segment, of no pool. */
void frame_wrap(struct rte_mbuf *m, uint8_t *data, uint32_t n);

/*
 * What holds for any result of the parser, whatever the frame was. NULL, or what is wrong.
 * `len` is the frame's length.
 */
const char *frame_broken(const struct pkt *p, enum sl_drop r, uint32_t len);

/* Whether two parses of the same bytes, in buffers cut differently, agree. NULL, or the field. */
const char *frame_differ(const struct pkt *a, const struct pkt *b);

/* Whether the short way made of a frame what the general one did. It may have found the checksum
 * good, if it is. NULL, or what is wrong. */
const char *frame_plain_wrong(const struct pkt *plain, const struct pkt *general);

#endif
