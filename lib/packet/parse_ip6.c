/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>

#include <rte_ip.h>

#include "parse_private.h"

#define EXT_UNIT 8    /* the least an extension header has, and what its length counts */
#define AH_LEN_MIN 12 /* RFC 4302, without an integrity value */
#define FRAG_MORE 0x0001
#define FRAG_OFFSET 0xfff8

/* The length of the extension header `type` at h; 0 when it is a transport header. */
static uint32_t
ext_len(uint8_t type, const uint8_t *h)
{
	switch (type) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
		return (h[1] + 1u) * EXT_UNIT;
	case IPPROTO_FRAGMENT:
		return EXT_UNIT;
	case IPPROTO_AH:
		return (h[1] + 2u) * 4;
	default:
		return 0;
	}
}

static bool
is_ext(uint8_t type)
{
	return type == IPPROTO_HOPOPTS || type == IPPROTO_ROUTING || type == IPPROTO_DSTOPTS ||
	       type == IPPROTO_FRAGMENT || type == IPPROTO_AH;
}

enum sl_drop
parse_ip6_walk(struct parse_ip6_end *end, const uint8_t *ip, uint32_t len, uint32_t avail)
{
	bool fragment_seen = false;
	unsigned int n;

	*end = (struct parse_ip6_end){.off = sizeof(struct rte_ipv6_hdr),
		.proto = ((const struct rte_ipv6_hdr *)ip)->proto};
	for (n = 0; is_ext(end->proto); n++) {
		const uint8_t *h = ip + end->off;
		uint8_t type = end->proto;
		uint32_t hdr_len;

		if (n == PARSE_IP6_EXT_MAX || (type == IPPROTO_HOPOPTS && n > 0))
			return SL_DROP_IP6_EXT;
		if (avail < end->off + EXT_UNIT)
			return parse_short(len, end->off + EXT_UNIT, SL_DROP_IP6_EXT);
		hdr_len = ext_len(type, h);
		if (type == IPPROTO_AH && hdr_len < AH_LEN_MIN)
			return SL_DROP_IP6_EXT;
		if (avail < end->off + hdr_len)
			return parse_short(len, end->off + hdr_len, SL_DROP_IP6_EXT);
		end->proto = h[0];
		end->off += hdr_len;
		if (type != IPPROTO_FRAGMENT)
			continue;
		if (fragment_seen)
			return SL_DROP_IP6_EXT;
		fragment_seen = true;
		end->frag = parse_be16(h + 2) & (FRAG_OFFSET | FRAG_MORE);
		end->frag_at = end->off - hdr_len;
		if (end->frag & FRAG_OFFSET)
			return SL_DROP_NONE;
	}
	return SL_DROP_NONE;
}
