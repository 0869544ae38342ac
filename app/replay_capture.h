/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capture files of replay, through libpcap: pcap and pcapng are read, Ethernet only, and pcap with
 * nanoseconds is written.
 *
 * Times: from 1970 to 2106, what a pcap file can hold. One that goes back within a file is taken as
 * that of the packet before it, so that the file's order is kept and the clock never goes back. A
 * packet that the capture cut short (snaplen) is a frame of the bytes in the file. The user is told
 * of either.
 */
#ifndef REPLAY_CAPTURE_H
#define REPLAY_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include <pcap/pcap.h>

struct rte_mbuf;
struct rte_mempool;
struct sl_err;

struct capture_note {
	uint64_t count;
	uint64_t first; /* number of the first such packet */
};

struct capture_in {
	const char *path; /* the caller's */
	pcap_t *pcap;
	bool ready; /* a packet is at hand: the fields below */
	uint64_t number; /* from 1 */
	uint64_t time_ns;
	const uint8_t *data; /* libpcap's, until the next read */
	uint32_t len;
	struct capture_note cut, backwards;
};

/* "-" is standard input. 0, or refuses: not there, not a capture, not Ethernet. */
int capture_in_open(struct capture_in *in, const char *path, struct sl_err *err);

/* Has a packet at hand, unless the file is at its end: then in->ready stays false. 0, or -EIO with
 * the packet's number in the message when the file is broken there. */
int capture_in_peek(struct capture_in *in, struct sl_err *err);

/* The packet at hand as a frame in buffers of the pool; NULL when the pool is empty. */
struct rte_mbuf *capture_in_frame(const struct capture_in *in, struct rte_mempool *pool);

/* Prints on standard error what the user should know of the packets read so far. */
void capture_in_report(const struct capture_in *in);

void capture_in_close(struct capture_in *in);

struct capture_out {
	const char *path; /* the caller's */
	pcap_t *pcap;
	pcap_dumper_t *dump;
};

/* Truncates what is at path. 0 or -errno. */
int capture_out_open(struct capture_out *out, const char *path, struct sl_err *err);

/* The frame stays the caller's. Failures show when the file is closed. */
void capture_out_write(struct capture_out *out, uint64_t time_ns, const struct rte_mbuf *m);

/* 0, or -EIO when not all could be written; closed in any case. One of zeros is left alone. */
int capture_out_close(struct capture_out *out, struct sl_err *err);

#endif
