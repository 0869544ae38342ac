/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The knobs of a namespace, as the packet path reads them: one block, immutable once published and
 * shared (with a reference count) by all namespaces that have the same values. A write makes a
 * copy, publishes it and frees the old one after a grace period.
 *
 * knob_list is the one list of sysctls: key, type, field, range, default. Kernel names have the
 * kernel's defaults and units; times are seconds outside and milliseconds in the block.
 */
#ifndef KNOBS_H
#define KNOBS_H

#include <stdbool.h>
#include <stdint.h>

struct sl_err;

/* Protocol states that have a timeout of their own; the state machines index by these. */
enum ct_tcp_state {
	CT_TCP_NONE,
	CT_TCP_SYN_SENT,
	CT_TCP_SYN_RECV,
	CT_TCP_ESTABLISHED,
	CT_TCP_FIN_WAIT,
	CT_TCP_CLOSE_WAIT,
	CT_TCP_LAST_ACK,
	CT_TCP_TIME_WAIT,
	CT_TCP_CLOSE,
	CT_TCP_SYN_SENT2, /* simultaneous open */
	CT_TCP_STATES,
	CT_TCP_RETRANS = CT_TCP_STATES, /* timeouts that are no states */
	CT_TCP_UNACK,
	CT_TCP_TIMEOUTS,
};

enum ct_sctp_state {
	CT_SCTP_NONE,
	CT_SCTP_CLOSED,
	CT_SCTP_COOKIE_WAIT,
	CT_SCTP_COOKIE_ECHOED,
	CT_SCTP_ESTABLISHED,
	CT_SCTP_SHUTDOWN_SENT,
	CT_SCTP_SHUTDOWN_RECD,
	CT_SCTP_SHUTDOWN_ACK_SENT,
	CT_SCTP_HEARTBEAT_SENT,
	CT_SCTP_STATES,
};

enum knob_invalid { KNOB_INVALID_AUTO, KNOB_INVALID_KERNEL, KNOB_INVALID_DROP };

enum knob_syncookies { KNOB_COOKIES_OFF, KNOB_COOKIES_BACKLOG, KNOB_COOKIES_ALWAYS };

struct knobs {
	/* milliseconds */
	uint32_t tcp_timeout[CT_TCP_TIMEOUTS];
	uint32_t sctp_timeout[CT_SCTP_STATES];
	uint32_t udp_timeout;
	uint32_t udp_timeout_stream;
	uint32_t icmp_timeout;
	uint32_t icmpv6_timeout;
	uint32_t gre_timeout;
	uint32_t gre_timeout_stream;
	uint32_t generic_timeout;

	uint32_t frag4_timeout;
	uint32_t frag6_timeout;

	/* bytes of buffers that fragments may wait in */
	uint32_t frag4_high_thresh;
	uint32_t frag6_high_thresh;

	uint32_t ct_max; /* nf_conntrack_max of the namespace; in init's block, the one for all */
	uint32_t connlimit_max; /* keys of `ct count`, likewise */
	uint32_t ratelimit_keys; /* buckets of a `limit rate … by …` made from now on */
	uint32_t reject_rate; /* sluice.reject_rate: answers to rejected packets in a second */
	uint32_t ct_reserve; /* connections for which there is always room; not inherited */
	uint32_t tcp_child_ehash_entries; /* buckets of the TCP table of children; not inherited */
	/* of the namespace's TCP table; KNOB_DERIVED: what goes with its size. Not inherited */
	uint32_t tcp_max_tw_buckets;
	uint32_t tcp_max_syn_backlog;
	uint8_t tcp_max_retrans;
	uint8_t nat_pool_alarm; /* percent of a pool in use that is told; 0: never */
	bool tcp_loose;
	bool tcp_be_liberal;
	bool tcp_ignore_invalid_rst;
	bool checksum; /* verify transport checksums */
	bool acct;
	bool timestamp;
	uint8_t events; /* tell listeners of connections; 1 and 2 are the same */
	bool nat_exhaustion_icmp; /* sluice.nat_exhaustion_icmp: tell whom it leaves no port */
	bool icmp_inner_checksum; /* sluice.icmp_inner_checksum: drop errors with a bad inner sum */
	uint8_t invalid;          /* sluice.invalid: enum knob_invalid */
	uint8_t syncookies;       /* sluice.syncookies: enum knob_syncookies */
	uint8_t synproxy_wscale;  /* what a SYN cookie promises */
	bool synproxy_sack;
	bool synproxy_timestamp;
	uint32_t synproxy_mss;
	uint32_t synproxy_max;    /* connections of the SYN proxy; in init's block, of all */
	bool table_growth;        /* sluice.table_growth; in init's block, for all */
	uint32_t refs;            /* control side only */
};

/* A size is rounded up to 2^n; 0 stays. */
enum knob_type { KNOB_SECONDS, KNOB_BOOL, KNOB_U8, KNOB_U32, KNOB_SIZE, KNOB_INVALID };

/* The value of a field that nobody has written, where another is derived then; printed as "auto".
 * It is not in the range of the knob. */
#define KNOB_DERIVED UINT32_MAX

struct knob {
	const char *key; /* full name, such as net.netfilter.nf_conntrack_udp_timeout */
	enum knob_type type;
	uint16_t offset; /* of the field in struct knobs */
	uint32_t min, max, def; /* in the unit outside */
	const char *help;
	bool init_only; /* one for all: written in init, and read as init's everywhere */
};

/* The list, in the order in which `sysctl list` prints it. */
extern const struct knob knob_list[];
extern const unsigned int knob_count;

/* The knob of that name; the prefix "net.netfilter." may be left out. NULL when there is none. */
const struct knob *knob_find(const char *key);

/* The kernel's defaults. */
void knobs_default(struct knobs *k);

/* Sets one field from text as sysctl takes it (decimal, octal, hexadecimal; blanks around it).
 * 0, or refuses with -EINVAL and the range in the message; the field is then unchanged. */
int knob_parse(struct knobs *k, const struct knob *knob, const char *text, struct sl_err *err);

/* Writes the value as sysctl prints it; buf of at least 16 bytes. */
void knob_format(const struct knobs *k, const struct knob *knob, char *buf, unsigned int len);

/* Whether some values are not inherited; and takes these back to their defaults. */
bool knobs_have_own(const struct knobs *k);
void knobs_drop_own(struct knobs *k);

/* A block of its own with the values of `from` and one reference; NULL when memory is short. */
struct knobs *knobs_dup(const struct knobs *from);

/* Gives a reference back. True when it was the last: the caller frees the block with free(), a
 * grace period after a worker could last find it. */
bool knobs_put(struct knobs *k);

#endif
