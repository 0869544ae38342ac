/* SPDX-License-Identifier: BSD-3-Clause */
#include "rule_words.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "rule.h"

#define NAME_MAX_LEN 63

/* RFC 792, RFC 950, RFC 1256. */
const struct rule_word words_icmp_type[] = {
	{"echo-reply", 0}, {"destination-unreachable", 3}, {"source-quench", 4}, {"redirect", 5},
	{"echo-request", 8}, {"router-advertisement", 9}, {"router-solicitation", 10},
	{"time-exceeded", 11}, {"parameter-problem", 12}, {"timestamp-request", 13},
	{"timestamp-reply", 14}, {"info-request", 15}, {"info-reply", 16},
	{"address-mask-request", 17}, {"address-mask-reply", 18}, {NULL, 0},
};

/* RFC 4443, RFC 2710, RFC 4861, RFC 2894, RFC 3122, RFC 3810. */
const struct rule_word words_icmpv6_type[] = {
	{"destination-unreachable", 1}, {"packet-too-big", 2}, {"time-exceeded", 3},
	{"parameter-problem", 4}, {"echo-request", 128}, {"echo-reply", 129},
	{"mld-listener-query", 130}, {"mld-listener-report", 131}, {"mld-listener-done", 132},
	{"mld-listener-reduction", 132}, {"nd-router-solicit", 133}, {"nd-router-advert", 134},
	{"nd-neighbor-solicit", 135}, {"nd-neighbor-advert", 136}, {"nd-redirect", 137},
	{"router-renumbering", 138}, {"ind-neighbor-solicit", 141}, {"ind-neighbor-advert", 142},
	{"mld2-listener-report", 143}, {NULL, 0},
};

const struct rule_word words_tcp_flag[] = {
	{"fin", 0x01}, {"syn", 0x02}, {"rst", 0x04}, {"psh", 0x08}, {"ack", 0x10}, {"urg", 0x20},
	{"ecn", 0x40}, {"cwr", 0x80}, {NULL, 0},
};

const struct rule_word words_ct_state[] = {
	{"invalid", RULE_STATE_INVALID}, {"established", RULE_STATE_ESTABLISHED},
	{"related", RULE_STATE_RELATED}, {"new", RULE_STATE_NEW},
	{"untracked", RULE_STATE_UNTRACKED}, {NULL, 0},
};

const struct rule_word words_nfproto[] = {{"ipv4", TUPLE_IPV4}, {"ipv6", TUPLE_IPV6}, {NULL, 0}};

const struct rule_word words_reject_icmp[] = {
	{"net-unreachable", 0}, {"host-unreachable", 1}, {"prot-unreachable", 2},
	{"port-unreachable", 3}, {"net-prohibited", 9}, {"host-prohibited", 10},
	{"admin-prohibited", 13}, {NULL, 0},
};

const struct rule_word words_reject_icmpv6[] = {
	{"no-route", 0}, {"admin-prohibited", 1}, {"addr-unreachable", 3}, {"port-unreachable", 4},
	{"policy-fail", 5}, {"reject-route", 6}, {NULL, 0},
};

const struct rule_word words_reject_icmpx[] = {
	{"no-route", RULE_ICMPX_NO_ROUTE}, {"port-unreachable", RULE_ICMPX_PORT_UNREACHABLE},
	{"host-unreachable", RULE_ICMPX_HOST_UNREACHABLE},
	{"admin-prohibited", RULE_ICMPX_ADMIN_PROHIBITED}, {NULL, 0},
};

const struct rule_word words_log_level[] = {
	{"emerg", 0}, {"alert", 1}, {"crit", 2}, {"err", 3}, {"warn", 4}, {"notice", 5},
	{"info", 6}, {"debug", 7}, {"audit", 8}, {NULL, 0},
};

const struct rule_word words_unit[] = {
	{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}, {"week", 604800}, {NULL, 0},
};

const struct rule_word words_nat_flag[] = {
	{"random", RULE_NAT_RANDOM}, {"fully-random", RULE_NAT_FULLY_RANDOM},
	{"persistent", RULE_NAT_PERSISTENT}, {NULL, 0},
};

const struct rule_word words_nat_filter[] = {
	{"endpoint-independent", RULE_FILTER_ENDPOINT_INDEPENDENT},
	{"address-dependent", RULE_FILTER_ADDRESS_DEPENDENT},
	{"address-and-port-dependent", RULE_FILTER_ADDRESS_PORT_DEPENDENT}, {NULL, 0},
};

/* Helpers, with the protocol that each is for. */
const struct rule_word words_helper[] = {
	{"ftp", IPPROTO_TCP}, {"tftp", IPPROTO_UDP}, {"sip", IPPROTO_UDP}, {"pptp", IPPROTO_TCP},
	{"irc", IPPROTO_TCP}, {"amanda", IPPROTO_UDP}, {NULL, 0},
};

bool
word_value(const struct rule_word *words, const char *name, size_t len, uint32_t *value)
{
	for (; words->name != NULL; words++) {
		if (strlen(words->name) == len && memcmp(words->name, name, len) == 0) {
			*value = words->value;
			return true;
		}
	}
	return false;
}

const char *
word_name(const struct rule_word *words, uint32_t value)
{
	for (; words->name != NULL; words++)
		if (words->value == value)
			return words->name;
	return NULL;
}

/* Known without the machine's databases, which small images lack. */
static const struct rule_word protocols[] = {
	{"icmp", IPPROTO_ICMP}, {"tcp", IPPROTO_TCP}, {"udp", IPPROTO_UDP}, {"gre", IPPROTO_GRE},
	{"esp", IPPROTO_ESP}, {"ah", IPPROTO_AH}, {"ipv6-icmp", IPPROTO_ICMPV6},
	{"icmpv6", IPPROTO_ICMPV6}, {"ipcomp", IPPROTO_COMP}, {"comp", IPPROTO_COMP},
	{"sctp", IPPROTO_SCTP}, {"dccp", IPPROTO_DCCP}, {"udplite", IPPROTO_UDPLITE}, {NULL, 0},
};

static bool
as_string(const char *name, size_t len, char out[NAME_MAX_LEN + 1])
{
	if (len > NAME_MAX_LEN)
		return false;
	memcpy(out, name, len);
	out[len] = '\0';
	return true;
}

bool
word_protocol(const char *name, size_t len, uint32_t *value)
{
	char text[NAME_MAX_LEN + 1], buf[1024];
	struct protoent entry, *found = NULL;

	if (word_value(protocols, name, len, value))
		return true;
	if (!as_string(name, len, text) ||
		getprotobyname_r(text, &entry, buf, sizeof(buf), &found) != 0 || found == NULL ||
		found->p_proto < 0 || found->p_proto > UINT8_MAX)
		return false;
	*value = (uint32_t)found->p_proto;
	return true;
}

const char *
word_protocol_name(uint32_t value, char *buf, size_t len)
{
	const char *known = word_name(protocols, value);
	struct protoent entry, *found = NULL;
	char store[1024];

	if (known != NULL)
		return known;
	if (getprotobynumber_r((int)value, &entry, store, sizeof(store), &found) != 0 ||
		found == NULL)
		return NULL;
	snprintf(buf, len, "%s", found->p_name);
	return buf;
}

bool
word_service(const char *name, size_t len, uint32_t *port)
{
	static const char *const protos[] = {"tcp", "udp", "sctp"};
	char text[NAME_MAX_LEN + 1], buf[1024];
	struct servent entry, *found = NULL;
	unsigned int i;

	if (!as_string(name, len, text))
		return false;
	for (i = 0; i < sizeof(protos) / sizeof(protos[0]); i++) {
		if (getservbyname_r(text, protos[i], &entry, buf, sizeof(buf), &found) == 0 &&
			found != NULL) {
			*port = ntohs((uint16_t)found->s_port);
			return true;
		}
	}
	return false;
}
