/* SPDX-License-Identifier: BSD-3-Clause */
#include "generator_options.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "err.h"

#define VLAN_MAX 4094u
#define FLOOD    (1u << GEN_SYNFLOOD)
#define TWO_WAY  (1u << GEN_FLOWS)
#define MIXED    (1u << GEN_MIX)
#define PROBING  (1u << GEN_PROBE)
#define ANY_KIND (FLOOD | TWO_WAY | MIXED | PROBING)

struct option {
	const char *name;
	unsigned int kinds; /* those that it has a meaning for */
	int (*set)(struct gen_options *o, const struct option *opt, const char *value,
		struct sl_err *err);
	size_t offset;
	uint64_t min, max;
};

static const char *const kind_name[] = {
	[GEN_SYNFLOOD] = "synflood", [GEN_FLOWS] = "flows", [GEN_MIX] = "mix",
	[GEN_PROBE] = "connlimit-probe"};

static bool
parse_number(const char *text, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return *end == '\0' && errno == 0;
}

static int
set_number(struct gen_options *o, const struct option *opt, const char *value, struct sl_err *err)
{
	uint64_t v;

	if (!parse_number(value, &v) || v < opt->min || v > opt->max)
		return sl_refuse(err, EINVAL,
			"generator: %s=%.40s: a number from %" PRIu64 " to %" PRIu64, opt->name,
			value, opt->min, opt->max);
	*(uint64_t *)RTE_PTR_ADD(o, opt->offset) = v;
	return 0;
}

static int
set_vlans(struct gen_options *o, const struct option *opt, const char *value, struct sl_err *err)
{
	struct gen_vlans *v = RTE_PTR_ADD(o, opt->offset);
	uint64_t first, last;
	char text[16];
	char *dash;

	if (strlen(value) >= sizeof(text))
		goto bad;
	strcpy(text, value);
	dash = strchr(text, '-');
	if (dash != NULL)
		*dash = '\0';
	if (!parse_number(text, &first) || !parse_number(dash == NULL ? text : dash + 1, &last))
		goto bad;
	if (first > last || last > VLAN_MAX || (first == 0 && last != 0))
		goto bad;
	*v = (struct gen_vlans){(uint16_t)first, (uint16_t)last};
	o->has_flood_vlans |= v == &o->flood_vlans;
	return 0;
bad:
	return sl_refuse(err, EINVAL,
		"generator: %s=%.40s: a VLAN or range of VLANs from 1 to %u, or 0 for untagged",
		opt->name, value, VLAN_MAX);
}

/* The family, or 0 when it is no address. */
static uint8_t
parse_addr(const char *text, struct tuple_addr *out)
{
	*out = (struct tuple_addr){0};
	if (inet_pton(AF_INET, text, out->b) == 1)
		return TUPLE_IPV4;
	return inet_pton(AF_INET6, text, out->b) == 1 ? TUPLE_IPV6 : 0;
}

/* Two options with addresses have to agree on the family. */
static int
set_family(struct gen_options *o, uint8_t family, struct sl_err *err)
{
	if (o->family != 0 && o->family != family)
		return sl_refuse(
			err, EINVAL, "generator: prefix and dst must both be IPv4 or both IPv6");
	o->family = family;
	return 0;
}

static int
set_dst(struct gen_options *o, const struct option *opt, const char *value, struct sl_err *err)
{
	uint8_t family = parse_addr(value, &o->dst);

	if (family == 0)
		return sl_refuse(err, EINVAL, "generator: %s=%.40s: an IPv4 or IPv6 address",
			opt->name, value);
	o->has_dst = true;
	return set_family(o, family, err);
}

static int
set_prefix(struct gen_options *o, const struct option *opt, const char *value, struct sl_err *err)
{
	char text[INET6_ADDRSTRLEN + 4];
	uint64_t len;
	uint8_t family;
	char *slash;

	if (strlen(value) >= sizeof(text))
		goto bad;
	strcpy(text, value);
	slash = strchr(text, '/');
	if (slash == NULL)
		goto bad;
	*slash = '\0';
	family = parse_addr(text, &o->prefix);
	if (family == 0 || !parse_number(slash + 1, &len) ||
		len > (family == TUPLE_IPV4 ? 32 : 128))
		goto bad;
	o->prefix_len = (uint32_t)len;
	o->has_prefix = true;
	return set_family(o, family, err);
bad:
	return sl_refuse(err, EINVAL,
		"generator: %s=%.60s: an address and a length, as 10.0.0.0/8 or 2001:db8::/64",
		opt->name, value);
}

#define FIELD(f) offsetof(struct gen_options, f)

static const struct option options[] = {
	{"rate", ANY_KIND, set_number, FIELD(rate), 0, 1000000000},
	{"size", ANY_KIND, set_number, FIELD(size), GEN_SIZE_MIN, GEN_SIZE_MAX},
	{"vlans", ANY_KIND, set_vlans, FIELD(vlans), 0, 0},
	{"peer-vlans", TWO_WAY | MIXED, set_vlans, FIELD(peer_vlans), 0, 0},
	{"flood-vlans", MIXED, set_vlans, FIELD(flood_vlans), 0, 0},
	{"seed", ANY_KIND, set_number, FIELD(seed), 0, UINT64_MAX},
	{"flows", TWO_WAY | MIXED, set_number, FIELD(flows), 1, GEN_FLOWS_MAX},
	{"prefix", ANY_KIND, set_prefix, FIELD(prefix), 0, 0},
	{"dst", ANY_KIND, set_dst, FIELD(dst), 0, 0},
	{"dport", ANY_KIND, set_number, FIELD(dport), 1, UINT16_MAX},
	{"udp", ANY_KIND, set_number, FIELD(udp), 0, 1},
	{"ratio", MIXED, set_number, FIELD(ratio), 1, 99},
	{"csum", ANY_KIND, set_number, FIELD(csum), 0, 1},
};

#define OPTIONS RTE_DIM(options)

static int
refuse_unknown(const char *name, struct sl_err *err)
{
	char list[128] = "";
	size_t i;

	for (i = 0; i < OPTIONS; i++) {
		strcat(list, i == 0 ? "" : ", ");
		strcat(list, options[i].name);
	}
	return sl_refuse(
		err, EINVAL, "generator: unknown option \"%.40s\": there are %s", name, list);
}

/* One word NAME=VALUE. *seen: bits of the options that there were. */
static int
set_option(struct gen_options *o, char *word, uint32_t *seen, struct sl_err *err)
{
	char *value = strchr(word, '=');
	size_t i;

	if (value != NULL)
		*value++ = '\0';
	for (i = 0; i < OPTIONS && strcmp(options[i].name, word) != 0; i++)
		;
	if (i == OPTIONS)
		return refuse_unknown(word, err);
	if (value == NULL || *value == '\0')
		return sl_refuse(
			err, EINVAL, "generator: %s has no value: write %s=VALUE", word, word);
	if (*seen & 1u << i)
		return sl_refuse(err, EINVAL, "generator: %s is given twice", word);
	if (!(options[i].kinds & 1u << o->kind))
		return sl_refuse(err, EINVAL, "generator: %s has no meaning for %s", word,
			kind_name[o->kind]);
	*seen |= 1u << i;
	return options[i].set(o, &options[i], value, err);
}

static int
set_kind(struct gen_options *o, const char *word, struct sl_err *err)
{
	unsigned int i;

	for (i = 0; word != NULL && i < RTE_DIM(kind_name); i++) {
		if (strcmp(word, kind_name[i]) == 0) {
			o->kind = (enum gen_kind)i;
			return 0;
		}
	}
	return sl_refuse(err, EINVAL,
		"generator: kind \"%.40s\": synflood, flows, mix or connlimit-probe (gen,KIND,…)",
		word == NULL ? "" : word);
}

/* Whether the generator could make dst a source. */
static bool
dst_in_prefix(const struct gen_options *o)
{
	unsigned int low = o->family == TUPLE_IPV4 ? 0 : 3;

	return memcmp(&o->prefix, &o->dst, low * sizeof(o->dst.w[0])) == 0 &&
	       (rte_be_to_cpu_32(o->dst.w[low]) & ~o->host_mask) == gen_prefix_low(o);
}

/* What depends on the family, and bits of the prefix behind its length. */
static int
complete_addresses(struct gen_options *o, struct sl_err *err)
{
	bool v6 = o->family == TUPLE_IPV6;
	unsigned int i, host_bits;

	if (o->family == 0)
		o->family = TUPLE_IPV4;
	if (!o->has_dst)
		parse_addr(v6 ? "2001:db8::1" : "192.0.2.1", &o->dst);
	if (!o->has_prefix) {
		const char *v4 = o->kind == GEN_PROBE ? "198.18.1.0" : "10.0.0.0";

		parse_addr(v6 ? "2001:db8:1::" : v4, &o->prefix);
		o->prefix_len = v6 ? 64 : 8;
		if (o->kind == GEN_PROBE)
			o->prefix_len = v6 ? 124 : 28;
	}
	host_bits = (v6 ? 128u : 32u) - o->prefix_len;
	for (i = 0; i < host_bits; i++)
		o->prefix.b[(v6 ? 15 : 3) - i / 8] &= (uint8_t) ~(1u << i % 8);
	o->host_mask = host_bits >= 32 ? UINT32_MAX : (1u << host_bits) - 1;
	if (dst_in_prefix(o))
		return sl_refuse(err, EINVAL,
			"generator: dst lies within prefix: give a prefix= or dst= that is apart");
	return 0;
}

/* Client and server have to be on different links, in pairs. */
static int
check_vlans(struct gen_options *o, struct sl_err *err)
{
	if (!o->has_flood_vlans)
		o->flood_vlans = o->vlans;
	if (gen_only_opens(o))
		return 0;
	if (o->vlans.first <= o->peer_vlans.last && o->peer_vlans.first <= o->vlans.last)
		return sl_refuse(err, EINVAL,
			"generator: vlans and peer-vlans overlap: %s needs a VLAN for each side of "
			"a wire",
			kind_name[o->kind]);
	if (gen_vlan_count(&o->vlans) != gen_vlan_count(&o->peer_vlans))
		return sl_refuse(err, EINVAL,
			"generator: %u vlans but %u peer-vlans: there must be as many",
			gen_vlan_count(&o->vlans), gen_vlan_count(&o->peer_vlans));
	return 0;
}

static int
check_size_and_flows(struct gen_options *o, struct sl_err *err)
{
	uint64_t least = gen_size_min(o);
	uint64_t most = gen_hosts(o) * GEN_FLOW_PORT * gen_vlan_count(&o->vlans);

	if (o->size == 0)
		o->size = least;
	if (o->size < least)
		return sl_refuse(err, EINVAL,
			"generator: size=%" PRIu64 ": with IPv6 from %u to %u", o->size,
			GEN_SIZE_MIN6, GEN_SIZE_MAX);
	if (!gen_only_opens(o) && o->flows > most)
		return sl_refuse(err, EINVAL,
			"generator: flows=%" PRIu64 ": the prefix has addresses for %" PRIu64,
			o->flows, most);
	return 0;
}

int
gen_options_parse(struct gen_options *o, const char *devargs, struct sl_err *err)
{
	char *text = strdup(devargs), *rest = text, *word;
	uint32_t seen = 0;
	int ret;

	if (text == NULL)
		return sl_refuse(err, ENOMEM, "generator: no memory");
	*o = (struct gen_options){.seed = 1, .flows = 1000, .dport = 80, .ratio = 50, .csum = 1};
	strsep(&rest, ","); /* the driver's name */
	ret = set_kind(o, strsep(&rest, ","), err);
	while (ret == 0 && (word = strsep(&rest, ",")) != NULL)
		ret = set_option(o, word, &seen, err);
	free(text);
	if (ret < 0)
		return ret;
	ret = complete_addresses(o, err);
	if (ret < 0)
		return ret;
	ret = check_vlans(o, err);
	return ret < 0 ? ret : check_size_and_flows(o, err);
}
