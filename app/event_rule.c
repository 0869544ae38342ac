/* SPDX-License-Identifier: BSD-3-Clause */
#include "event_rule.h"

#include <arpa/inet.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_tcp.h>

#include "events.h"
#include "gateway.h"
#include "pkt.h"
#include "proto.h"
#include "rules.h"
#include "ruleset.h"
#include "siit.h"

/* ---- from the packet ---- */

static uint16_t
load16(const uint8_t *b)
{
	return (uint16_t)(b[0] << 8 | b[1]);
}

static void
fill_ip(struct event_rule *l, const struct rules_packet *k)
{
	const uint8_t *ip = k->pkt->l3;

	l->src = k->src;
	l->dst = k->dst;
	/* as it came, which with NAT64 is not as the rules see it */
	if (k->pkt->tuple.family == TUPLE_IPV4) {
		l->tos = ip[1];
		l->id = load16(ip + 4);
		l->dont_fragment = ip[6] & 0x40;
		l->ttl = ip[8];
	} else {
		l->tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
		l->ttl = ip[7];
	}
}

/* With NAT64 the rules see another type than came, and this is the code to it. */
static uint8_t
icmp_code(const struct rules_packet *k)
{
	uint8_t type = k->pkt->icmp_type, code = k->pkt->icmp_code;

	if (k->pkt->flags & PKT_ICMP_ERROR && k->family != k->pkt->tuple.family)
		(void)siit_error_type(k->pkt->tuple.family, &type, &code);
	return code;
}

static void
fill_transport(struct event_rule *l, const struct rules_packet *k)
{
	const struct pkt *p = k->pkt;

	l->has_ports = k->has_ports;
	if (k->has_ports) {
		l->sport = k->sport;
		l->dport = k->dport;
	}
	l->has_flags = k->has_flags;
	if (k->has_flags) {
		l->tcp_flags = k->tcp_flags;
		l->window = load16(p->l4 + offsetof(struct rte_tcp_hdr, rx_win));
	}
	l->has_type = k->has_type;
	if (k->has_type) {
		l->icmp_type = k->icmp_type;
		l->icmp_code = icmp_code(k);
	}
}

static void
fill(struct event_rule *l, const struct rule *r, const struct rule_log *log,
	const struct rules_packet *k)
{
	const struct pkt *p = k->pkt;

	*l = (struct event_rule){
		.handle = r->handle,
		.mark = p->mark,
		.bytes = k->family != 0 ? p->ip_bytes : rte_pktmbuf_pkt_len(p->mbuf),
		.ethertype = p->ethertype,
		.group = log->group,
		.chain = r->chain,
		.family = k->family,
		.proto = k->proto,
		.level = log->level,
		.has_group = log->has_group,
	};
	memcpy(l->prefix, log->prefix, sizeof(l->prefix));
	if (k->in_name != NULL)
		memcpy(l->in, k->in_name, sizeof(l->in));
	if (k->out_name != NULL)
		memcpy(l->out, k->out_name, sizeof(l->out));
	if (k->family == 0)
		return;
	fill_ip(l, k);
	fill_transport(l, k);
}

void
event_rule_log(void *app, const struct rule *r, const struct rule_log *log,
	const struct rules_packet *k)
{
	struct gateway *gw = app;
	struct event ev;

	if (!events_wanted(gw->events, EVENT_RULE_LOG))
		return;
	event_init(&ev, EVENT_RULE_LOG, sizeof(ev.rule));
	fill(&ev.rule, r, log, k);
	events_emit(gw->events, k->thread, k->pkt->ns, k->now, &ev);
}

/* ---- to the object ---- */

static void
add(json_t *o, const char *name, uint64_t value)
{
	json_object_set_new(o, name, json_integer((json_int_t)value));
}

static void
add_address(json_t *o, const char *name, uint8_t family, const struct tuple_addr *a)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(family == TUPLE_IPV4 ? AF_INET : AF_INET6, a, text, sizeof(text));
	json_object_set_new(o, name, json_string(text));
}

static json_t *
flag_list(uint8_t flags)
{
	/* In the order in which the kernel's log has them. */
	static const struct {
		uint8_t bit;
		const char *name;
	} names[] = {
		{PKT_TCP_CWR, "CWR"}, {PKT_TCP_ECE, "ECE"}, {PKT_TCP_URG, "URG"},
		{PKT_TCP_ACK, "ACK"}, {PKT_TCP_PSH, "PSH"}, {PKT_TCP_RST, "RST"},
		{PKT_TCP_SYN, "SYN"}, {PKT_TCP_FIN, "FIN"},
	};
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < RTE_DIM(names); i++)
		if (flags & names[i].bit)
			json_array_append_new(list, json_string(names[i].name));
	return list;
}

static void
add_transport(json_t *o, const struct event_rule *l)
{
	if (l->has_ports) {
		add(o, "sport", l->sport);
		add(o, "dport", l->dport);
	}
	if (l->has_flags) {
		json_object_set_new(o, "flags", flag_list(l->tcp_flags));
		add(o, "window", l->window);
	}
	if (l->has_type) {
		add(o, "type", l->icmp_type);
		add(o, "code", l->icmp_code);
	}
}

static void
add_ip(json_t *o, const struct event_rule *l)
{
	bool v4 = l->family == TUPLE_IPV4;

	json_object_set_new(o, "family", json_string(v4 ? "ipv4" : "ipv6"));
	add_address(o, "src", l->family, &l->src);
	add_address(o, "dst", l->family, &l->dst);
	add(o, "tos", l->tos);
	add(o, "ttl", l->ttl);
	if (v4) {
		add(o, "ip-id", l->id);
		json_object_set_new(o, "df", json_boolean(l->dont_fragment));
	}
	json_object_set_new(o, "proto", json_string(ct_proto_name(l->proto)));
	add(o, "protonum", l->proto);
	add_transport(o, l);
}

json_t *
event_rule_json(const struct event *ev, uint64_t wall_offset_ns)
{
	const struct event_rule *l = &ev->rule;
	json_t *o = json_pack("{s:s, s:f, s:s, s:I, s:s}", "netns", ev->netns, "time",
		(double)((ev->ns + wall_offset_ns) / 1000) / 1000000, "chain",
		rule_chain_name((enum rule_chain)l->chain), "handle", (json_int_t)l->handle,
		"prefix", l->prefix);

	if (o == NULL)
		return NULL;
	if (l->has_group)
		add(o, "group", l->group);
	else
		json_object_set_new(o, "level", json_string(rule_log_level_name(l->level)));
	json_object_set_new(o, "in", json_string(l->in));
	json_object_set_new(o, "out", json_string(l->out));
	add(o, "len", l->bytes);
	add(o, "mark", l->mark);
	if (l->family != 0)
		add_ip(o, l);
	else
		add(o, "ethertype", l->ethertype);
	return o;
}
