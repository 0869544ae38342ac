/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4 addresses in IPv6 addresses (RFC 6052). */
#include "siit.h"

#include <errno.h>

#include <rte_common.h>

#include "err.h"

#define U_OCTET 8u /* bits 64 to 71, which no address under a prefix has set */

int
siit_prefix_valid(const struct tuple_addr *prefix, unsigned int len, struct sl_err *err)
{
	unsigned int i;

	if ((len != 96 && (len < 32 || len > 64)) || len % 8 != 0)
		return sl_refuse(err, EINVAL,
			"a NAT64 prefix has 32, 40, 48, 56, 64 or 96 bits (RFC 6052), not %u", len);
	if (prefix->b[0] == 0xff)
		return sl_refuse(err, EINVAL, "a NAT64 prefix is no multicast address");
	for (i = len / 8; i < sizeof(prefix->b); i++)
		if (prefix->b[i] != 0)
			return sl_refuse(err, EINVAL, "the prefix has bits behind its %u", len);
	if (len == 96 && prefix->b[U_OCTET] != 0)
		return sl_refuse(err, EINVAL,
			"bits 64 to 71 of a NAT64 prefix are zero (RFC 6052 2.2)");
	return 0;
}

bool
siit_extract(const struct tuple_addr *addr, unsigned int prefix_len, rte_be32_t *ip4)
{
	unsigned int at = prefix_len / 8, i;
	uint8_t b[4];

	for (i = 0; i < sizeof(b); i++, at++) {
		at += at == U_OCTET;
		b[i] = addr->b[at];
	}
	memcpy(ip4, b, sizeof(*ip4));
	return addr->b[U_OCTET] == 0;
}

void
siit_embed(struct tuple_addr *addr, unsigned int prefix_len, rte_be32_t ip4)
{
	unsigned int at = prefix_len / 8, i;
	uint8_t b[4];

	memcpy(b, &ip4, sizeof(b));
	for (i = 0; i < sizeof(b); i++, at++) {
		at += at == U_OCTET;
		addr->b[at] = b[i];
	}
}

struct block {
	uint32_t addr;
	uint8_t len;
};

static bool
in_block(uint32_t addr, const struct block *b, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if ((addr ^ b[i].addr) >> (32 - b[i].len) == 0)
			return true;
	return false;
}

static bool
is_well_known(const struct tuple_addr *addr, unsigned int len)
{
	static const uint8_t prefix[12] = {0x00, 0x64, 0xff, 0x9b};

	return len == 96 && memcmp(addr->b, prefix, sizeof(prefix)) == 0;
}

bool
siit_host(const struct tuple_addr *addr, unsigned int prefix_len, rte_be32_t ip4)
{
	static const struct block no_host[] = {
		{0x00000000, 8},  /* this network (RFC 1122) */
		{0x7f000000, 8},  /* loopback (RFC 1122) */
		{0xa9fe0000, 16}, /* link local (RFC 3927) */
		{0xe0000000, 3},  /* multicast, reserved, broadcast (RFC 1112) */
	}, not_global[] = {
		/* the IANA registry of special-purpose addresses (RFC 6890) */
		{0x0a000000, 8},  /* private (RFC 1918) */
		{0x64400000, 10}, /* shared (RFC 6598) */
		{0xac100000, 12}, /* private */
		{0xc0000000, 24}, /* protocol assignments */
		{0xc0000200, 24}, /* documentation (RFC 5737) */
		{0xc0a80000, 16}, /* private */
		{0xc6120000, 15}, /* benchmarks (RFC 2544) */
		{0xc6336400, 24}, /* documentation */
		{0xcb007100, 24}, /* documentation */
	};
	uint32_t a = rte_be_to_cpu_32(ip4);

	if (in_block(a, no_host, RTE_DIM(no_host)))
		return false;
	return !is_well_known(addr, prefix_len) ||
	       !in_block(a, not_global, RTE_DIM(not_global));
}
