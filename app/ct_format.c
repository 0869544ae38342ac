/* SPDX-License-Identifier: BSD-3-Clause */
#include "ct_format.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "proto.h"

static int
add(json_t *object, const char *name, uint64_t value)
{
	return json_object_set_new(object, name, json_integer((json_int_t)value));
}

/* What tells connections between two addresses apart, by protocol. */
static int
add_ports(json_t *d, const struct tuple *t)
{
	uint16_t s = ntohs(t->sport), p = ntohs(t->dport);

	switch (t->proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_SCTP:
		return add(d, "sport", s) | add(d, "dport", p);
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return add(d, "type", p >> 8) | add(d, "code", p & 0xff) | add(d, "id", s);
	case IPPROTO_GRE:
		return add(d, "srckey", s) | add(d, "dstkey", p);
	default:
		return 0;
	}
}

static json_t *
direction(const struct ct_dir_part *part, bool acct)
{
	const struct tuple *t = &part->tuple;
	int af = t->family == TUPLE_IPV6 ? AF_INET6 : AF_INET, bad;
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
	json_t *d;

	inet_ntop(af, t->src.b, src, sizeof(src));
	inet_ntop(af, t->dst.b, dst, sizeof(dst));
	d = json_pack("{s:s, s:s}", "src", src, "dst", dst);
	if (d == NULL)
		return NULL;
	bad = add_ports(d, t);
	if (acct)
		bad |= add(d, "packets", part->packets) | add(d, "bytes", part->bytes);
	if (bad != 0) {
		json_decref(d);
		return NULL;
	}
	return d;
}

static json_t *
status_list(uint16_t status)
{
	static const struct {
		uint16_t bit;
		const char *name;
	} names[] = {
		{CT_SEEN_REPLY, "SEEN_REPLY"},
		{CT_ASSURED, "ASSURED"},
		{CT_SRC_NAT, "SRC_NAT"},
		{CT_DST_NAT, "DST_NAT"},
	};
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < RTE_DIM(names); i++)
		if ((status & names[i].bit) != 0)
			json_array_append_new(list, json_string(names[i].name));
	return list;
}

json_t *
ct_format_json(const struct ct_view *v, struct sl_now now)
{
	const struct ct_entry *e = &v->entry;
	const struct tuple *t = &e->orig.tuple;
	const struct ct_proto *proto = ct_proto_of(t->family, t->proto);
	const struct knobs *knobs = netns_knobs(e->ns);
	json_t *o;

	o = json_pack("{s:s, s:s, s:s, s:i, s:s?, s:I, s:o, s:I, s:i, s:n, s:o, s:o}", "netns",
		e->ns->name, "family", t->family == TUPLE_IPV6 ? "ipv6" : "ipv4", "proto",
		ct_proto_name(t->proto), "protonum", t->proto, "state",
		proto->state_name != NULL ? proto->state_name(e) : NULL, "timeout",
		(json_int_t)(v->left_ms / (int)SL_MSEC_PER_SEC), "status", status_list(e->status),
		"mark", (json_int_t)e->mark, "zone", t->zone, "helper", "orig",
		direction(&e->orig, knobs->acct), "reply", direction(&e->reply, knobs->acct));
	if (o != NULL && knobs->timestamp && now.ns >= e->start_ns)
		add(o, "delta-time", (now.ns - e->start_ns) / SL_NSEC_PER_SEC);
	return o;
}
