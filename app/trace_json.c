/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace_json.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <rte_byteorder.h>

#include "datapath_synproxy.h"
#include "proto.h"
#include "rules.h"

static const struct {
	uint8_t bit;
	const char *name;
} tcp_flag_names[] = {
	{PKT_TCP_SYN, "SYN"}, {PKT_TCP_FIN, "FIN"}, {PKT_TCP_RST, "RST"}, {PKT_TCP_PSH, "PSH"},
	{PKT_TCP_ACK, "ACK"}, {PKT_TCP_URG, "URG"}, {PKT_TCP_ECE, "ECE"}, {PKT_TCP_CWR, "CWR"},
};

static json_t *
address(uint8_t family, const struct tuple_addr *a)
{
	char buf[INET6_ADDRSTRLEN];

	inet_ntop(family == TUPLE_IPV6 ? AF_INET6 : AF_INET, a->b, buf, sizeof(buf));
	return json_string(buf);
}

static void
put_int(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static json_t *
tcp_flags(uint8_t flags)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < RTE_DIM(tcp_flag_names); i++)
		if (flags & tcp_flag_names[i].bit)
			json_array_append_new(list, json_string(tcp_flag_names[i].name));
	return list;
}

static void
put_proto(json_t *o, uint8_t family, uint8_t proto)
{
	json_object_set_new(o, "family", json_string(family == TUPLE_IPV6 ? "ipv6" : "ipv4"));
	json_object_set_new(o, "proto", json_string(ct_proto_name(proto)));
	put_int(o, "protonum", proto);
}

static json_t *
packet(const struct trace_record *r)
{
	json_t *o = json_object();

	put_int(o, "len", r->frame_len);
	put_int(o, "ethertype", r->ethertype);
	if (r->family == 0)
		return o;
	put_proto(o, r->family, r->proto);
	json_object_set_new(o, "src", address(r->family, &r->src));
	json_object_set_new(o, "dst", address(r->family, &r->dst));
	put_int(o, "ip_len", r->ip_bytes);
	if (r->flags & PKT_FRAGMENT) {
		put_int(o, "frag_id", r->frag_id);
		put_int(o, "frag_offset", r->frag_off);
		json_object_set_new(o, "frag_more", json_boolean(r->frag_more));
	} else if (r->fragments > 0) {
		put_int(o, "fragments", r->fragments);
	}
	if (r->has & TRACE_HAS_PORTS) {
		put_int(o, "sport", r->sport);
		put_int(o, "dport", r->dport);
	}
	if (r->has & TRACE_HAS_TCP) {
		json_object_set_new(o, "flags", tcp_flags(r->tcp_flags));
		put_int(o, "seq", r->seq);
		put_int(o, "ack", r->ack);
		put_int(o, "win", r->win);
	}
	if (r->has & TRACE_HAS_ICMP) {
		put_int(o, "type", r->icmp_type);
		put_int(o, "code", r->icmp_code);
		put_int(o, "id", r->icmp_id);
	}
	return o;
}

/* The packet that an ICMP error is about. */
static json_t *
inner_packet(const struct tuple *t)
{
	bool icmp = t->proto == (t->family == TUPLE_IPV6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
	uint16_t sport = rte_be_to_cpu_16(t->sport), dport = rte_be_to_cpu_16(t->dport);
	json_t *o = json_object();

	put_proto(o, t->family, t->proto);
	json_object_set_new(o, "src", address(t->family, &t->src));
	json_object_set_new(o, "dst", address(t->family, &t->dst));
	put_int(o, icmp ? "id" : "sport", sport);
	put_int(o, icmp ? "type" : "dport", icmp ? dport >> 8 : dport);
	if (icmp)
		put_int(o, "code", dport & 0xff);
	return o;
}

static json_t *
way(const char *link, const char *port, unsigned int vlan, unsigned int inner)
{
	json_t *o = json_object();

	json_object_set_new(o, "link", link[0] != '\0' ? json_string(link) : json_null());
	json_object_set_new(o, "port", json_string(port));
	if (vlan != 0)
		put_int(o, "vlan", vlan);
	if (inner != 0)
		put_int(o, "inner", inner);
	return o;
}

/* The machines name the state of an entry, so one is made that has it. */
static json_t *
state_name(const struct trace_record *r, uint8_t state)
{
	const struct ct_proto *proto = ct_proto_of(r->family, r->proto);
	struct ct_entry e = {.orig.tuple = {.family = r->family, .proto = r->proto}};
	const char *name;

	if (proto->state_name == NULL)
		return NULL;
	if (r->proto == IPPROTO_TCP)
		e.proto.tcp.state = state & 0xf;
	else if (r->proto == IPPROTO_SCTP)
		e.proto.sctp.state = state;
	else
		return NULL;
	name = proto->state_name(&e);
	return name != NULL ? json_string(name) : NULL;
}

static const char *
ct_class(const struct trace_record *r)
{
	if (r->flags & PKT_CT_NEW)
		return "new";
	if (r->flags & PKT_CT_RELATED)
		return "related";
	if (r->flags & (PKT_CT_INVALID | PKT_L4_BAD))
		return "invalid";
	if (r->has & TRACE_HAS_ENTRY)
		return "known";
	return r->flags & (PKT_DROPPED | PKT_FRAGMENT) ? NULL : "untracked";
}

/* NULL when the packet was dropped before it was tracked, or is a fragment. */
static json_t *
conntrack(const struct trace_record *r)
{
	const char *class = ct_class(r);
	bool machine = class != NULL && (r->has & TRACE_HAS_ENTRY) &&
		       !(r->flags & (PKT_ICMP_ERROR | PKT_CT_INVALID));
	json_t *o;

	if (class == NULL)
		return NULL;
	o = json_object();
	if (r->has & TRACE_HAS_ENTRY)
		json_object_set_new(o, "lookup",
			json_string(r->flags & (PKT_CT_NEW | PKT_RACE_LOST) ? "miss" : "hit"));
	json_object_set_new(o, "state", json_string(class));
	if (r->flags & PKT_RACE_LOST)
		json_object_set_new(o, "race_lost", json_true());
	if (r->has & TRACE_HAS_ENTRY)
		json_object_set_new(o, "direction",
			json_string(r->ct_dir == CT_ORIGINAL ? "original" : "reply"));
	if (machine) {
		json_object_set_new(o, "from", state_name(r, r->ct_state_old));
		json_object_set_new(o, "to", state_name(r, r->ct_state_new));
	}
	if (r->flags & (PKT_CT_INVALID | PKT_L4_BAD))
		json_object_set_new(o, "reason", json_string(sl_drop_name(r->reason)));
	return o;
}

/* A fragment that is not dropped waits for the rest; the datagram has a record of its own. */
/* The chains that the packet came to, in their order. */
static void
put_rules(json_t *o, const struct trace_record *r)
{
	static const char *const verdicts[] = {"accept", "drop", "reject", "nat"};
	json_t *list = json_array(), *one;
	unsigned int i;
	uint8_t v;

	for (i = 0; i < RULE_CHAINS; i++) {
		v = r->rule_verdict[i];
		if (!(v & DATAPATH_WAY_SEEN))
			continue;
		one = json_pack("{s:s, s:s}", "chain", rule_chain_name((enum rule_chain)i),
			"verdict", verdicts[v & 3]);
		if (v & DATAPATH_WAY_POLICY)
			json_object_set_new(one, "policy", json_true());
		else if (v & DATAPATH_WAY_KEPT)
			json_object_set_new(one, "kept", json_true());
		else
			put_int(one, "handle", r->rule_handle[i]);
		json_array_append_new(list, one);
	}
	if (json_array_size(list) > 0)
		json_object_set_new(o, "rules", list);
	else
		json_decref(list);
}

static const char *const synproxy_stages[] = {
	[SYNPROXY_ANSWERED] = "answered",
	[SYNPROXY_PROVED] = "proved",
	[SYNPROXY_REPEATED] = "repeated",
	[SYNPROXY_OPENED] = "opened",
	[SYNPROXY_CHALLENGED] = "challenged",
	[SYNPROXY_TRANSLATED] = "translated",
};

static const char *
verdict(const struct trace_record *r)
{
	if (r->flags & PKT_DROPPED)
		return r->reason == SL_DROP_NONE ? "local" : "drop";
	return r->flags & PKT_FRAGMENT ? "fragment" : "forward";
}

json_t *
trace_json(const struct trace_record *r, uint64_t id, uint64_t wall_offset_ns)
{
	bool tagged = r->n_tags > 0;
	bool dropped = (r->flags & PKT_DROPPED) && r->reason != SL_DROP_NONE;
	json_t *o = json_object();

	put_int(o, "trace", id);
	json_object_set_new(o, "time",
		json_real((double)((r->ns + wall_offset_ns) / 1000) / 1000000));
	put_int(o, "worker", r->worker);
	json_object_set_new(o, "netns", r->netns[0] != '\0' ? json_string(r->netns) : json_null());
	json_object_set_new(o, "in", way(r->in_link, r->in_port, tagged ? r->vlan : 0,
					     r->n_tags > 1 ? r->vlan_inner : 0));
	json_object_set_new(o, "packet", packet(r));
	if (r->flags & PKT_ICMP_ERROR)
		json_object_set_new(o, "about", inner_packet(&r->inner));
	json_object_set_new(o, "conntrack", conntrack(r));
	put_rules(o, r);
	if (r->synproxy != SYNPROXY_NONE)
		json_object_set_new(o, "synproxy", json_string(synproxy_stages[r->synproxy]));
	json_object_set_new(o, "verdict", json_string(verdict(r)));
	if (dropped) {
		json_object_set_new(o, "reason", json_string(sl_drop_name(r->reason)));
		json_object_set_new(o, "help", json_string(sl_drop_help(r->reason)));
	} else if (r->out_port[0] != '\0') {
		json_object_set_new(o, "out", way(r->out_link, r->out_port, r->out_vlan,
						      r->out_vlan_inner));
	}
	return o;
}
