/* SPDX-License-Identifier: BSD-3-Clause */
#include "ct_filter.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "err.h"
#include "filter_sense.h"
#include "grammar.h"
#include "proto.h"

#define BY_FAMILY    0x0001
#define BY_PROTO     0x0002
#define BY_ADDRESS   0x0004
#define BY_SPORT     0x0008
#define BY_DPORT     0x0010
#define BY_ICMP_TYPE 0x0020
#define BY_ICMP_CODE 0x0040
#define BY_ICMP_ID   0x0080
#define BY_STATE     0x0100
#define BY_STATUS    0x0200
#define BY_MARK      0x0400
#define BY_ZONE      0x0800

/* ---- parsing ---- */

static int
parse_prefixes(struct ct_match *m, const json_t *params, struct sl_err *err)
{
	const struct {
		const char *name;
		struct prefix *p;
	} all[] = {{"src", &m->src}, {"dst", &m->dst}, {"reply-src", &m->reply_src},
		{"reply-dst", &m->reply_dst}};
	const char *text;
	unsigned int i;
	int ret;

	for (i = 0; i < RTE_DIM(all); i++) {
		text = json_string_value(json_object_get(params, all[i].name));
		if (text == NULL)
			continue;
		ret = prefix_parse(all[i].p, text, all[i].name, err);
		if (ret != 0)
			return ret;
		m->fields |= BY_ADDRESS;
	}
	return 0;
}

/* N[/MASK], decimal or with 0x. */
static int
parse_mark(struct ct_match *m, const json_t *v, struct sl_err *err)
{
	unsigned long long n, mask = UINT32_MAX;
	const char *text = json_string_value(v);
	char number[32], q[48], *end;

	if (text == NULL) {
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		text = number;
	}
	errno = 0;
	n = strtoull(text, &end, 0);
	if (end != text && *end == '/' && isdigit((unsigned char)end[1]))
		mask = strtoull(end + 1, &end, 0);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || n > UINT32_MAX ||
		mask > UINT32_MAX)
		return sl_refuse(err, EINVAL, "mark: \"%s\" is no N or N/MASK of 32 bits",
			grammar_quote(text, q, sizeof(q)));
	m->mark = (uint32_t)n;
	m->mark_mask = (uint32_t)mask;
	m->fields |= BY_MARK;
	return 0;
}

static int
parse_status(struct ct_match *m, const char *text, struct sl_err *err)
{
	static const struct {
		const char *name;
		uint16_t set, clear;
	} names[] = {
		{"ASSURED", CT_ASSURED, 0},
		{"SEEN_REPLY", CT_SEEN_REPLY, 0},
		{"UNREPLIED", 0, CT_SEEN_REPLY},
		{"UNSET", 0, CT_SEEN_REPLY},
		{"SRC_NAT", CT_SRC_NAT, 0},
		{"DST_NAT", CT_DST_NAT, 0},
	};
	char q[48];
	unsigned int i;
	size_t len;

	for (;; text += len + 1) {
		len = strcspn(text, ",");
		for (i = 0; i < RTE_DIM(names); i++)
			if (strlen(names[i].name) == len &&
				strncasecmp(names[i].name, text, len) == 0)
				break;
		if (i == RTE_DIM(names))
			return sl_refuse(err, EINVAL,
				"status: \"%s\" is not of ASSURED, SEEN_REPLY, UNREPLIED, "
				"SRC_NAT, DST_NAT",
				grammar_quote(text, q, sizeof(q)));
		m->status_set |= names[i].set;
		m->status_clear |= names[i].clear;
		m->fields |= BY_STATUS;
		if (text[len] == '\0')
			return 0;
	}
}

static int
parse_state(struct ct_match *m, const char *text, struct sl_err *err)
{
	static const char *const names[] = {"NONE", "SYN_SENT", "SYN_RECV", "ESTABLISHED",
		"FIN_WAIT", "CLOSE_WAIT", "LAST_ACK", "TIME_WAIT", "CLOSE", "SYN_SENT2", "CLOSED",
		"COOKIE_WAIT", "COOKIE_ECHOED", "SHUTDOWN_SENT", "SHUTDOWN_RECD",
		"SHUTDOWN_ACK_SENT", "HEARTBEAT_SENT"};
	char q[48];
	unsigned int i;

	for (i = 0; i < RTE_DIM(names); i++)
		if (strcasecmp(names[i], text) == 0)
			break;
	if (i == RTE_DIM(names))
		return sl_refuse(err, EINVAL, "state: there is no \"%s\" of TCP or SCTP",
			grammar_quote(text, q, sizeof(q)));
	snprintf(m->state, sizeof(m->state), "%s", names[i]);
	m->fields |= BY_STATE;
	return 0;
}

/* A number whose range the grammar has checked. */
static uint16_t
take_number(struct ct_match *m, const json_t *params, const char *name, uint16_t field)
{
	const json_t *v = json_object_get(params, name);

	if (v != NULL)
		m->fields |= field;
	return (uint16_t)json_integer_value(v);
}

static void
take_numbers(struct ct_match *m, const json_t *params)
{
	m->sport = take_number(m, params, "sport", BY_SPORT);
	m->dport = take_number(m, params, "dport", BY_DPORT);
	m->icmp_type = (uint8_t)take_number(m, params, "icmp-type", BY_ICMP_TYPE);
	m->icmp_code = (uint8_t)take_number(m, params, "icmp-code", BY_ICMP_CODE);
	m->icmp_id = take_number(m, params, "icmp-id", BY_ICMP_ID);
	m->zone = take_number(m, params, "zone", BY_ZONE);
}

static int
check_sense(const struct ct_match *m, struct sl_err *err)
{
	const struct filter_sense sense = {
		.family = {m->family, m->src.family, m->dst.family},
		.reply_family = {m->reply_src.family, m->reply_dst.family},
		.proto = m->proto,
		.by_proto = (m->fields & BY_PROTO) != 0,
		.by_port = (m->fields & (BY_SPORT | BY_DPORT)) != 0,
		.by_icmp = (m->fields & (BY_ICMP_TYPE | BY_ICMP_CODE | BY_ICMP_ID)) != 0,
		.by_state = (m->fields & BY_STATE) != 0,
	};

	if ((m->status_set & m->status_clear) != 0)
		return sl_refuse(
			err, EINVAL, "status: SEEN_REPLY and UNREPLIED exclude each other");
	if ((m->fields & BY_MARK) != 0 && (m->mark & ~m->mark_mask) != 0)
		return sl_refuse(err, EINVAL, "mark: 0x%x has bits that its mask 0x%x has not",
			m->mark, m->mark_mask);
	return filter_sense_check(&sense, err);
}

int
ct_match_parse(struct ct_match *m, const json_t *params, struct sl_err *err)
{
	const char *family = json_string_value(json_object_get(params, "family"));
	const char *proto = json_string_value(json_object_get(params, "proto"));
	const char *state = json_string_value(json_object_get(params, "state"));
	const char *status = json_string_value(json_object_get(params, "status"));
	const json_t *mark = json_object_get(params, "mark");
	int ret;

	*m = (struct ct_match){0};
	take_numbers(m, params);
	if (family != NULL) {
		m->family = strcmp(family, "ipv6") == 0 ? TUPLE_IPV6 : TUPLE_IPV4;
		m->fields |= BY_FAMILY;
	}
	ret = parse_prefixes(m, params, err);
	if (ret == 0 && proto != NULL) {
		ret = proto_parse(&m->proto, proto, "proto", err);
		m->fields |= BY_PROTO;
	}
	if (ret == 0 && state != NULL)
		ret = parse_state(m, state, err);
	if (ret == 0 && status != NULL)
		ret = parse_status(m, status, err);
	if (ret == 0 && mark != NULL)
		ret = parse_mark(m, mark, err);
	return ret == 0 ? check_sense(m, err) : ret;
}

/* ---- matching ---- */

bool
ct_match_any(const struct ct_match *m)
{
	return m->fields == 0;
}

static bool
match_ports(const struct ct_match *m, const struct tuple *t)
{
	if ((m->fields & (BY_SPORT | BY_DPORT)) == 0)
		return true;
	return proto_has_ports(t->proto) &&
	       ((m->fields & BY_SPORT) == 0 || ntohs(t->sport) == m->sport) &&
	       ((m->fields & BY_DPORT) == 0 || ntohs(t->dport) == m->dport);
}

static bool
match_icmp(const struct ct_match *m, const struct tuple *t)
{
	uint16_t type_code = ntohs(t->dport);

	if ((m->fields & (BY_ICMP_TYPE | BY_ICMP_CODE | BY_ICMP_ID)) == 0)
		return true;
	return proto_is_icmp(t->proto) &&
	       ((m->fields & BY_ICMP_TYPE) == 0 || type_code >> 8 == m->icmp_type) &&
	       ((m->fields & BY_ICMP_CODE) == 0 || (type_code & 0xff) == m->icmp_code) &&
	       ((m->fields & BY_ICMP_ID) == 0 || ntohs(t->sport) == m->icmp_id);
}

static bool
match_addresses(const struct ct_match *m, const struct ct_entry *e)
{
	const struct tuple *o = &e->orig.tuple, *r = &e->reply.tuple;

	if ((m->fields & BY_ADDRESS) == 0)
		return true;
	return prefix_match(&m->src, o->family, &o->src) &&
	       prefix_match(&m->dst, o->family, &o->dst) &&
	       prefix_match(&m->reply_src, r->family, &r->src) &&
	       prefix_match(&m->reply_dst, r->family, &r->dst);
}

static bool
match_state(const struct ct_match *m, const struct ct_entry *e)
{
	const struct ct_proto *p = ct_proto_of(e->orig.tuple.family, e->orig.tuple.proto);
	const char *name;

	if ((m->fields & BY_STATE) == 0)
		return true;
	name = p->state_name != NULL ? p->state_name(e) : NULL;
	return name != NULL && strcmp(name, m->state) == 0;
}

bool
ct_match(const struct ct_view *v, const void *arg)
{
	const struct ct_match *m = arg;
	const struct ct_entry *e = &v->entry;
	const struct tuple *t = &e->orig.tuple;

	return ((m->fields & BY_FAMILY) == 0 || t->family == m->family) &&
	       ((m->fields & BY_PROTO) == 0 || t->proto == m->proto) &&
	       ((m->fields & BY_ZONE) == 0 || t->zone == m->zone) &&
	       ((m->fields & BY_MARK) == 0 || (e->mark & m->mark_mask) == m->mark) &&
	       ((m->fields & BY_STATUS) == 0 || ((e->status & m->status_set) == m->status_set &&
							(e->status & m->status_clear) == 0)) &&
	       match_ports(m, t) && match_icmp(m, t) && match_addresses(m, e) && match_state(m, e);
}
