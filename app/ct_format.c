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

/* What is told of an entry beside the entry. */
struct format {
	const char *netns;
	bool acct, timestamp; /* counters and times, where the entry has them */
	uint64_t now_ns;
};

static const char *const dir_names[] = {"orig", "reply"};

/* Of NAT64 each direction says which it is of. */
static void
add_families(json_t *o, const struct ct_entry *e)
{
	unsigned int d;

	for (d = 0; d < 2; d++)
		json_object_set_new(json_object_get(o, dir_names[d]), "family",
			json_string(ct_tuple(e, d)->family == TUPLE_IPV6 ? "ipv6" : "ipv4"));
}

/* As conntrack(8): one that both directions have is the entry's, any other its direction's. */
static void
add_zones(json_t *o, const struct ct_entry *e)
{
	unsigned int d;

	for (d = 0; d < 2; d++)
		if (ct_tuple(e, d)->zone != 0)
			json_object_set_new(json_object_get(o, dir_names[d]), "zone",
				json_integer(ct_tuple(e, d)->zone));
}

static json_t *
format_entry(const struct ct_view *v, const struct format *f)
{
	const struct ct_entry *e = &v->entry;
	const struct tuple *t = &e->orig.tuple;
	const struct ct_proto *proto = ct_proto_of(t->family, t->proto);
	bool one_zone = t->zone == e->reply.tuple.zone;
	bool acct = f->acct && e->status & CT_ACCT;
	json_t *o;

	o = json_pack("{s:s, s:s, s:s, s:i, s:s?, s:I, s:o, s:I, s:i, s:n, s:o, s:o}", "netns",
		f->netns, "family", t->family == TUPLE_IPV6 ? "ipv6" : "ipv4", "proto",
		ct_proto_name(t->proto), "protonum", t->proto, "state",
		proto->state_name != NULL ? proto->state_name(e) : NULL, "timeout",
		(json_int_t)(v->left_ms / (int)SL_MSEC_PER_SEC), "status", status_list(e->status),
		"mark", (json_int_t)e->mark, "zone", one_zone ? t->zone : 0, "helper", "orig",
		direction(&e->orig, acct), "reply", direction(&e->reply, acct));
	if (o != NULL && e->orig.tuple.family != e->reply.tuple.family)
		add_families(o, e);
	if (o != NULL && !one_zone)
		add_zones(o, e);
	if (o != NULL && f->timestamp && f->now_ns >= e->start_ns)
		add(o, "delta-time", (f->now_ns - e->start_ns) / SL_NSEC_PER_SEC);
	return o;
}

json_t *
ct_format_json(const struct ct_view *v, struct sl_now now)
{
	const struct netns *ns = v->entry.ns;
	const struct format f = {ns->name, true, netns_knobs(ns)->timestamp, now.ns};

	return format_entry(v, &f);
}

static json_t *
changed_list(uint8_t changed)
{
	json_t *list = json_array();

	if (changed & CT_CHANGED_STATE)
		json_array_append_new(list, json_string("STATE"));
	if (changed & CT_CHANGED_STATUS)
		json_array_append_new(list, json_string("STATUS"));
	if (changed & CT_CHANGED_MARK)
		json_array_append_new(list, json_string("MARK"));
	return list;
}

json_t *
ct_format_event(const struct event *ev, const struct ct_view *v, uint64_t wall_offset_ns)
{
	static const char *const names[] = {
		[EVENT_CT_NEW] = "NEW",
		[EVENT_CT_UPDATE] = "UPDATE",
		[EVENT_CT_DESTROY] = "DESTROY",
	};
	bool end = ev->type == EVENT_CT_DESTROY;
	const struct format f = {ev->netns, end, end && ev->ct.timestamp, ev->ns};
	json_t *o = json_pack("{s:s, s:f}", "event", names[ev->type], "time",
		(double)((ev->ns + wall_offset_ns) / 1000) / 1000000);
	json_t *entry = format_entry(v, &f);

	if (o == NULL || json_object_update(o, entry) != 0) {
		json_decref(o);
		json_decref(entry);
		return NULL;
	}
	json_decref(entry);
	if (end && v->left_ms < (int)SL_MSEC_PER_SEC)
		json_object_set_new(o, "timeout", json_null());
	if (ev->type == EVENT_CT_UPDATE)
		json_object_set_new(o, "changed", changed_list(ev->ct.changed));
	return o;
}
