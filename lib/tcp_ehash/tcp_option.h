/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP options that a SYN proxy must understand (RFC 9293, RFC 7323, RFC 2018). */
#ifndef TCP_OPTION_H
#define TCP_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#define TCP_OPTION_BYTES 40 /* a header has room for that many */
#define TCP_MSS_DEFAULT4 536
#define TCP_MSS_DEFAULT6 1220
#define TCP_SCALE_NONE   15

struct tcp_options {
	uint16_t mss; /* 0: not given */
	uint8_t scale; /* 0–14, or TCP_SCALE_NONE */
	bool sack_ok;
	bool timestamp;
	uint32_t tsval, tsecr;
	/* where the values lie, from the options' start; 0: not there, since kind and length come
	 * first */
	uint8_t at_timestamp;
	uint8_t at_sack, n_sack; /* the first edge; blocks of two edges */
};

/* Reads `len` bytes of options; a list that lies on a length ends there. The first of a kind
 * counts. */
void tcp_options_read(const uint8_t *at, unsigned int len, struct tcp_options *o);

/* Writes what is set of mss, scale, sack_ok and timestamp, padded to four bytes; out has room for
 * TCP_OPTION_BYTES. Returns the length. */
unsigned int tcp_options_write(uint8_t *out, const struct tcp_options *o);

#endif
