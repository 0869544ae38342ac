/* SPDX-License-Identifier: BSD-3-Clause */
#include "prefix.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "grammar.h"
#include "proto.h"

/* A number without sign or space, 0 … max. */
static bool
number(const char *text, unsigned long max, unsigned long *out)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*out = strtoul(text, &end, 10);
	return *end == '\0' && errno == 0 && *out <= max;
}

int
prefix_parse(struct prefix *p, const char *text, const char *what, struct sl_err *err)
{
	size_t n = strcspn(text, "/");
	char addr[INET6_ADDRSTRLEN], q[48];
	unsigned long max, len;

	*p = (struct prefix){.family = memchr(text, ':', n) != NULL ? TUPLE_IPV6 : TUPLE_IPV4};
	max = p->family == TUPLE_IPV6 ? 128 : 32;
	len = max;
	snprintf(addr, sizeof(addr), "%.*s", (int)n, text);
	if (n >= sizeof(addr) ||
		inet_pton(p->family == TUPLE_IPV6 ? AF_INET6 : AF_INET, addr, p->addr.b) != 1)
		return sl_refuse(err, EINVAL, "%s: \"%s\" is no address or prefix", what,
			grammar_quote(text, q, sizeof(q)));
	if (text[n] == '/' && !number(text + n + 1, max, &len))
		return sl_refuse(err, EINVAL, "%s: \"%s\" has no prefix length of 0-%lu", what,
			grammar_quote(text, q, sizeof(q)), max);
	p->len = (uint8_t)len;
	return 0;
}

int
proto_parse(uint8_t *proto, const char *text, const char *what, struct sl_err *err)
{
	unsigned long n;
	char q[48];

	if (number(text, UINT8_MAX, &n)) {
		*proto = (uint8_t)n;
		return 0;
	}
	for (n = 0; n <= UINT8_MAX; n++) {
		if (strcmp(text, "unknown") != 0 && strcmp(ct_proto_name((uint8_t)n), text) == 0) {
			*proto = (uint8_t)n;
			return 0;
		}
	}
	return sl_refuse(err, EINVAL, "%s: \"%s\" is no protocol: tcp, udp, udplite, icmp, icmpv6, "
		"sctp, gre, dccp or 0-255", what, grammar_quote(text, q, sizeof(q)));
}
