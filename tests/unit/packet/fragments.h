/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragments for the tests of reassembly, of datagrams whose every byte follows from owner, id and
 * offset, so that what comes out can be checked wherever it was cut.
 */
#ifndef FRAGMENTS_H
#define FRAGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

struct fragment_spec {
	uint8_t family; /* TUPLE_… */
	uint32_t owner; /* the payload's pattern; the caller sets the scope */
	uint32_t id;
	uint16_t off, len;
	bool more;
	uint16_t padding; /* bytes behind the packet */
};

/*
 * EAL without root, and a pool whose lock thread sanitizer understands. Ends the program when it
 * cannot be had.
 */
struct rte_mempool *fragments_pool(const char *program, unsigned int buffers);

/* A frame of the pool, or NULL; it is parsed and its scope set by fragments_parse(). */
struct rte_mbuf *fragment_new(struct rte_mempool *pool, const struct fragment_spec *s);

struct pkt;
enum sl_drop fragment_parse(struct pkt *p, struct rte_mbuf *m, uint32_t owner);

/* Whether n bytes are the pattern's, from `off` of the datagram on. */
bool fragment_payload_good(
	const uint8_t *data, uint32_t n, uint32_t off, const struct fragment_spec *s);

#endif
