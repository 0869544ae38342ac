/* SPDX-License-Identifier: BSD-3-Clause */
#include "filter_sense.h"

#include <errno.h>
#include <netinet/in.h>

#include "err.h"
#include "proto.h"
#include "tuple.h"

bool
proto_has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_UDPLITE ||
	       proto == IPPROTO_SCTP;
}

bool
proto_is_icmp(uint8_t proto)
{
	return proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6;
}

/* The one family that is asked for, 0: any; negative: two. */
static int
one_family(const uint8_t *family, unsigned int n)
{
	int one = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (family[i] == 0)
			continue;
		if (one != 0 && family[i] != one)
			return -1;
		one = family[i];
	}
	return one;
}

static int
check_families(const struct filter_sense *s, struct sl_err *err)
{
	int orig = one_family(s->family, FILTER_FAMILIES);
	int reply = one_family(s->reply_family, 2);

	if (orig < 0 || reply < 0)
		return sl_refuse(err, EINVAL, "family: nothing is both of IPv4 and of IPv6");
	return 0;
}

static int
check_proto(const struct filter_sense *s, struct sl_err *err)
{
	if (s->by_port && !proto_has_ports(s->proto))
		return sl_refuse(err, EINVAL, "proto: there are no ports in %s",
			ct_proto_name(s->proto));
	if (s->by_icmp && !proto_is_icmp(s->proto))
		return sl_refuse(err, EINVAL, "proto: there are no ICMP types and ids in %s",
			ct_proto_name(s->proto));
	if (s->by_state && s->proto != IPPROTO_TCP && s->proto != IPPROTO_SCTP)
		return sl_refuse(err, EINVAL, "proto: there are no states in %s",
			ct_proto_name(s->proto));
	return 0;
}

int
filter_sense_check(const struct filter_sense *s, struct sl_err *err)
{
	int ret;

	if (s->by_icmp && (s->by_port || s->by_state))
		return sl_refuse(err, EINVAL, "icmp: it has neither ports nor states");
	ret = s->by_proto ? check_proto(s, err) : 0;
	return ret == 0 ? check_families(s, err) : ret;
}
