/* SPDX-License-Identifier: BSD-3-Clause */
#include "knobs.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "clock.h"
#include "err.h"

#define PREFIX "net.netfilter."

/* Connections that the entry pool may ever hold (CT_ENTRIES_MAX of conntrack). */
#define CT_MAX_LIMIT (1u << 25)

/* Buckets that a namespace's TCP table may have (CT_OWN_BUCKETS_MAX of conntrack). */
#define TCP_EHASH_LIMIT (1u << 24)

#define TCP_SCALE_LIMIT 14 /* RFC 7323, 2.3 */

#define FIELD(f)                  offsetof(struct knobs, f)
#define SECONDS(name, f, d, h)    {PREFIX name, KNOB_SECONDS, FIELD(f), 0, SL_TIMEOUT_MAX, d, h}
#define BOOL(key, f, d, h)        {key, KNOB_BOOL, FIELD(f), 0, 1, d, h}
#define TCP(name, st, d, h)       SECONDS("nf_conntrack_tcp_timeout_" name, tcp_timeout[st], d, h)
#define SCTP(name, st, d, h)      SECONDS("nf_conntrack_sctp_timeout_" name, sctp_timeout[st], d, h)

/* The kernel's defaults and units; its ipfrag_high_thresh is a long. */
#define FRAG_BYTES_MAX     (1u << 30)
#define FRAG_BYTES_DEFAULT (4u << 20)
#define FRAG_BYTES(key, f, h)                                                                      \
	{key, KNOB_U32, FIELD(f), 0, FRAG_BYTES_MAX, FRAG_BYTES_DEFAULT, h}

/* In the kernel these are ints. */
#define TCP_BOUND(key, f, h)                                                                       \
	{"net.ipv4." key, KNOB_U32, FIELD(f), 0, INT32_MAX, KNOB_DERIVED, h}

const struct knob knob_list[] = {
	FRAG_BYTES("net.ipv4.ipfrag_high_thresh", frag4_high_thresh,
		"bytes of buffers in which IPv4 fragments wait"),
	{"net.ipv4.ipfrag_time", KNOB_SECONDS, FIELD(frag4_timeout), 0, SL_TIMEOUT_MAX, 30,
		"IPv4 fragments wait for the rest"},
	{"net.ipv4.tcp_child_ehash_entries", KNOB_SIZE, FIELD(tcp_child_ehash_entries), 0,
		TCP_EHASH_LIMIT, 0,
		"buckets of the TCP table of namespaces created from this one; 0: they share"},
	TCP_BOUND("tcp_max_syn_backlog", tcp_max_syn_backlog,
		"half-open TCP connections; not set: entries / 128, at least 128"),
	TCP_BOUND("tcp_max_tw_buckets", tcp_max_tw_buckets,
		"TCP connections in TIME_WAIT; not set: entries / 2"),
	BOOL(PREFIX "nf_conntrack_acct", acct, 0, "count packets and bytes of each connection"),
	BOOL(PREFIX "nf_conntrack_checksum", checksum, 1,
		"a wrong checksum makes a packet INVALID"),
	{PREFIX "nf_conntrack_events", KNOB_U8, FIELD(events), 0, 2, 2,
		"tell listeners of connections; 2, which the kernel has, is 1 here"},
	FRAG_BYTES(PREFIX "nf_conntrack_frag6_high_thresh", frag6_high_thresh,
		"bytes of buffers in which IPv6 fragments wait"),
	SECONDS("nf_conntrack_frag6_timeout", frag6_timeout, 60,
		"IPv6 fragments wait for the rest"),
	SECONDS("nf_conntrack_generic_timeout", generic_timeout, 600, "protocols of no other knob"),
	SECONDS("nf_conntrack_gre_timeout", gre_timeout, 30, "GRE, seen in one direction"),
	SECONDS("nf_conntrack_gre_timeout_stream", gre_timeout_stream, 180, "GRE, seen in both"),
	SECONDS("nf_conntrack_icmp_timeout", icmp_timeout, 30, "ICMP queries"),
	SECONDS("nf_conntrack_icmpv6_timeout", icmpv6_timeout, 30, "ICMPv6 queries"),
	{PREFIX "nf_conntrack_max", KNOB_U32, FIELD(ct_max), 1, CT_MAX_LIMIT, 262144,
		"connections of the namespace; init's is the maximum of all together"},
	SCTP("closed", CT_SCTP_CLOSED, 10, "SCTP, no association"),
	SCTP("cookie_echoed", CT_SCTP_COOKIE_ECHOED, 3, "SCTP, COOKIE ECHO seen"),
	SCTP("cookie_wait", CT_SCTP_COOKIE_WAIT, 3, "SCTP, INIT seen"),
	SCTP("established", CT_SCTP_ESTABLISHED, 210, "SCTP, association is up"),
	SCTP("heartbeat_sent", CT_SCTP_HEARTBEAT_SENT, 30, "SCTP, HEARTBEAT on a new path"),
	SCTP("shutdown_ack_sent", CT_SCTP_SHUTDOWN_ACK_SENT, 3, "SCTP, SHUTDOWN ACK seen"),
	SCTP("shutdown_recd", CT_SCTP_SHUTDOWN_RECD, 3, "SCTP, SHUTDOWN from the responder"),
	SCTP("shutdown_sent", CT_SCTP_SHUTDOWN_SENT, 3, "SCTP, SHUTDOWN from the initiator"),
	BOOL(PREFIX "nf_conntrack_tcp_be_liberal", tcp_be_liberal, 0,
		"only a RST outside of the window is INVALID"),
	BOOL(PREFIX "nf_conntrack_tcp_ignore_invalid_rst", tcp_ignore_invalid_rst, 0,
		"a RST outside of the window is not INVALID"),
	BOOL(PREFIX "nf_conntrack_tcp_loose", tcp_loose, 1, "pick up connections in the middle"),
	{PREFIX "nf_conntrack_tcp_max_retrans", KNOB_U8, FIELD(tcp_max_retrans), 0, UINT8_MAX, 3,
		"retransmissions after which tcp_timeout_max_retrans applies"},
	TCP("close", CT_TCP_CLOSE, 10, "TCP, RST seen"),
	TCP("close_wait", CT_TCP_CLOSE_WAIT, 60, "TCP, FIN from the server side seen"),
	TCP("established", CT_TCP_ESTABLISHED, 432000, "TCP, connection is up"),
	TCP("fin_wait", CT_TCP_FIN_WAIT, 120, "TCP, FIN seen"),
	TCP("last_ack", CT_TCP_LAST_ACK, 30, "TCP, both FINs seen, last ACK missing"),
	TCP("max_retrans", CT_TCP_RETRANS, 300, "TCP, after tcp_max_retrans retransmissions"),
	TCP("syn_recv", CT_TCP_SYN_RECV, 60, "TCP, SYN and SYN-ACK seen"),
	TCP("syn_sent", CT_TCP_SYN_SENT, 120, "TCP, SYN seen"),
	TCP("time_wait", CT_TCP_TIME_WAIT, 120, "TCP, closed by both sides"),
	TCP("unacknowledged", CT_TCP_UNACK, 300, "TCP, data is not acknowledged"),
	BOOL(PREFIX "nf_conntrack_timestamp", timestamp, 0, "keep the start time of connections"),
	SECONDS("nf_conntrack_udp_timeout", udp_timeout, 30, "UDP, until it is a stream"),
	SECONDS("nf_conntrack_udp_timeout_stream", udp_timeout_stream, 120, "UDP, seen both ways"),
	{"sluice.connlimit_max", KNOB_U32, FIELD(connlimit_max), 1, CT_MAX_LIMIT, 262144,
		"keys that `ct count` counts by; init's is the maximum of all together"},
	{"sluice.conntrack_reserve", KNOB_U32, FIELD(ct_reserve), 0, CT_MAX_LIMIT, 0,
		"connections of the namespace that others always leave room for"},
	BOOL("sluice.icmp_inner_checksum", icmp_inner_checksum, 1,
		"drop an ICMP error whose inner IP header has a wrong checksum"),
	{"sluice.invalid", KNOB_INVALID, FIELD(invalid), KNOB_INVALID_AUTO, KNOB_INVALID_DROP,
		KNOB_INVALID_AUTO, "INVALID packets: auto, kernel (the rules decide) or drop"},
	BOOL("sluice.nat_exhaustion_icmp", nat_exhaustion_icmp, 1,
		"tell senders that translation has no address, port or room for them"),
	{"sluice.nat_pool_alarm", KNOB_U8, FIELD(nat_pool_alarm), 0, 100, 80,
		"percent of a NAT pool in use from which on it is told; 0: never"},
	{"sluice.ratelimit_keys", KNOB_U32, FIELD(ratelimit_keys), 1, CT_MAX_LIMIT, 4096,
		"keys that a `limit rate … by …` keeps, when its rule is added"},
	{"sluice.reject_rate", KNOB_U32, FIELD(reject_rate), 0, 1000000, 1000,
		"answers to rejected and too big packets in a second, on each worker; 0: none"},
	{"sluice.syncookies", KNOB_U8, FIELD(syncookies), KNOB_COOKIES_OFF, KNOB_COOKIES_ALWAYS,
		KNOB_COOKIES_OFF,
		"answer SYNs by cookies: 0 never, 1 beyond tcp_max_syn_backlog, 2 always"},
	{"sluice.synproxy_max", KNOB_U32, FIELD(synproxy_max), 1, CT_MAX_LIMIT, 262144,
		"connections that came by a cookie; init's is the maximum of all together"},
	{"sluice.synproxy_mss", KNOB_U32, FIELD(synproxy_mss), 64, UINT16_MAX, 1460,
		"a cookie promises this MSS, over IPv6 20 less"},
	BOOL("sluice.synproxy_sack", synproxy_sack, 1,
		"a cookie promises SACK, to who has timestamps"),
	BOOL("sluice.synproxy_timestamp", synproxy_timestamp, 1, "a cookie promises timestamps"),
	{"sluice.synproxy_wscale", KNOB_U8, FIELD(synproxy_wscale), 0, TCP_SCALE_LIMIT, 7,
		"a cookie promises this window scale, to who has timestamps"},
	{"sluice.table_growth", KNOB_BOOL, FIELD(table_growth), 0, 1, 1,
		"double nf_conntrack_buckets when connections are more than 3/8 of them",
		.init_only = true},
};

const unsigned int knob_count = RTE_DIM(knob_list);

static const char *const invalid_names[] = {
	[KNOB_INVALID_AUTO] = "auto",
	[KNOB_INVALID_KERNEL] = "kernel",
	[KNOB_INVALID_DROP] = "drop",
};

const struct knob *
knob_find(const char *key)
{
	unsigned int i;

	for (i = 0; i < knob_count; i++) {
		const char *full = knob_list[i].key;

		if (strcmp(full, key) == 0)
			return &knob_list[i];
		if (strncmp(full, PREFIX, strlen(PREFIX)) == 0 &&
			strcmp(full + strlen(PREFIX), key) == 0)
			return &knob_list[i];
	}
	return NULL;
}

static void
knob_set(struct knobs *k, const struct knob *knob, uint32_t value)
{
	char *field = (char *)k + knob->offset;

	switch (knob->type) {
	case KNOB_SECONDS:
		value *= SL_MSEC_PER_SEC;
		memcpy(field, &value, sizeof(value));
		break;
	case KNOB_SIZE:
		if (value != 0)
			value = rte_align32pow2(value);
		memcpy(field, &value, sizeof(value));
		break;
	case KNOB_U32:
		memcpy(field, &value, sizeof(value));
		break;
	case KNOB_BOOL:
	case KNOB_U8:
	case KNOB_INVALID:
		*field = (char)(uint8_t)value;
		break;
	}
}

static uint32_t
knob_get(const struct knobs *k, const struct knob *knob)
{
	const char *field = (const char *)k + knob->offset;
	uint32_t value;

	switch (knob->type) {
	case KNOB_SECONDS:
		memcpy(&value, field, sizeof(value));
		return value / SL_MSEC_PER_SEC;
	case KNOB_U32:
	case KNOB_SIZE:
		memcpy(&value, field, sizeof(value));
		return value;
	default:
		return (uint8_t)*field;
	}
}

void
knobs_default(struct knobs *k)
{
	unsigned int i;

	memset(k, 0, sizeof(*k));
	for (i = 0; i < knob_count; i++)
		knob_set(k, &knob_list[i], knob_list[i].def);
	/* The kernel has this state, but no sysctl for it. */
	k->tcp_timeout[CT_TCP_SYN_SENT2] = 120 * SL_MSEC_PER_SEC;
}

/* strtoull() alone takes a sign, wraps negative numbers and is content with an empty text. */
static bool
parse_number(const char *text, uint64_t *value)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	while (isspace((unsigned char)*end))
		end++;
	return errno == 0 && *end == '\0';
}

static int
parse_invalid(struct knobs *k, const struct knob *knob, const char *text, struct sl_err *err)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(invalid_names); i++) {
		if (strcmp(text, invalid_names[i]) == 0) {
			knob_set(k, knob, i);
			return 0;
		}
	}
	return sl_refuse(err, EINVAL, "%s takes auto, kernel or drop", knob->key);
}

int
knob_parse(struct knobs *k, const struct knob *knob, const char *text, struct sl_err *err)
{
	uint64_t value;

	if (knob->type == KNOB_INVALID)
		return parse_invalid(k, knob, text, err);
	if (!parse_number(text, &value) || value < knob->min || value > knob->max)
		return sl_refuse(err, EINVAL, "%s takes a number %sfrom %" PRIu32 " to %" PRIu32,
			knob->key, knob->type == KNOB_SECONDS ? "of seconds " : "", knob->min,
			knob->max);
	knob_set(k, knob, (uint32_t)value);
	return 0;
}

void
knob_format(const struct knobs *k, const struct knob *knob, char *buf, unsigned int len)
{
	uint32_t value = knob_get(k, knob);

	if (knob->type == KNOB_INVALID)
		snprintf(buf, len, "%s", invalid_names[value]);
	else if (value == KNOB_DERIVED)
		snprintf(buf, len, "auto");
	else
		snprintf(buf, len, "%" PRIu32, value);
}

bool
knobs_have_own(const struct knobs *k)
{
	return k->ct_reserve != 0 || k->tcp_child_ehash_entries != 0 ||
	       k->tcp_max_tw_buckets != KNOB_DERIVED || k->tcp_max_syn_backlog != KNOB_DERIVED;
}

void
knobs_drop_own(struct knobs *k)
{
	k->ct_reserve = 0;
	k->tcp_child_ehash_entries = 0;
	k->tcp_max_tw_buckets = k->tcp_max_syn_backlog = KNOB_DERIVED;
}

struct knobs *
knobs_dup(const struct knobs *from)
{
	struct knobs *k = malloc(sizeof(*k));

	if (k != NULL) {
		*k = *from;
		k->refs = 1;
	}
	return k;
}

bool
knobs_put(struct knobs *k)
{
	return --k->refs == 0;
}
