/* SPDX-License-Identifier: BSD-3-Clause */
/* nat list, nat lookup. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "filter_sense.h"
#include "nat64.h"
#include "nat_pool_list.h"
#include "pool.h"
#include "prefix.h"
#include "proto.h"

#define WALK_SLICE 16384u /* pool slots */

/* ---- list ---- */

static json_t *
pool_object(const struct netns *ns, const struct nat_pool *pool)
{
	struct nat_pool_stats s;
	json_t *o;

	nat_pool_stats(pool, &s);
	o = json_pack("{s:s, s:s, s:I, s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:b}", "netns",
		ns->name, "pool", nat_pool_config(pool)->name, "addresses",
		(json_int_t)RTE_MIN(s.addresses, (uint64_t)INT64_MAX), "unit",
		s.block_size != 0 ? "block" : "port", "used", (json_int_t)s.used, "capacity",
		(json_int_t)RTE_MIN(s.capacity, (uint64_t)INT64_MAX), "percent",
		100.0 * (double)s.used / (double)s.capacity, "high", (json_int_t)s.high,
		"connections", (json_int_t)s.connections, "bound", (json_int_t)s.bound,
		"exhausted", (json_int_t)s.exhausted, "alarm", s.alarm);
	if (o != NULL && s.block_size != 0) {
		json_object_set_new(o, "block_size", json_integer(s.block_size));
		json_object_set_new(o, "deterministic", json_boolean(s.deterministic));
	}
	return o;
}

static enum task_step
list_step(struct call *c)
{
	return nat_pool_list_step(c, pool_object);
}

/* ---- lookup ---- */

struct lookup {
	struct call *call;
	uint32_t id, gen; /* of the namespace */
	struct prefix address;
	rte_be16_t port;
	struct ct_walk walk; /* over connections; none, when a block has said it */
	bool said;
};

/* Seconds of the time of day, or YYYY-MM-DDTHH:MM:SS[Z] of UTC, as nanoseconds of the clock. */
static int
parse_time(struct call *c, const char *text, uint64_t *ns)
{
	uint64_t offset = gateway_wall_offset(c->gw), wall;
	struct tm tm = {0};
	const char *end;
	char *number_end;
	double seconds;
	char q[48];

	end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	if (end != NULL && (*end == '\0' || strcmp(end, "Z") == 0)) {
		wall = (uint64_t)timegm(&tm) * SL_NSEC_PER_SEC;
	} else {
		seconds = strtod(text, &number_end);
		if (*number_end != '\0' || strspn(text, "0123456789.") != strlen(text) ||
			seconds > 1e10)
			return sl_refuse(&c->err, EINVAL,
				"time: \"%s\" is neither seconds nor YYYY-MM-DDTHH:MM:SS of UTC",
				grammar_quote(text, q, sizeof(q)));
		wall = (uint64_t)(seconds * 1e6) * 1000;
	}
	*ns = wall > offset ? wall - offset : 1;
	return 0;
}

static json_t *
time_value(uint64_t ns, uint64_t offset)
{
	return json_real((double)((ns + offset) / 1000) / 1000000);
}

/* What a block says. */
static void
owner_item(struct call *c, const struct lookup *l, const struct nat_pool *pool,
	const struct nat_owner *owner)
{
	uint64_t offset = gateway_wall_offset(c->gw);
	char host[INET6_ADDRSTRLEN];
	bool computed = owner->from_ns == 0 && owner->to_ns == 0;
	json_t *o;

	inet_ntop(owner->family == TUPLE_IPV4 ? AF_INET : AF_INET6, &owner->host, host,
		sizeof(host));
	o = json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:o}", "netns", nat_pool_netns(pool)->name,
		"pool", nat_pool_config(pool)->name, "by", computed ? "computed" : "block",
		"address", call_string(c, "address"), "port", rte_be_to_cpu_16(l->port), "host",
		host, "ports", json_sprintf("%u-%u", owner->port_lo, owner->port_hi));
	if (o != NULL && !computed) {
		json_object_set_new(o, "from", time_value(owner->from_ns, offset));
		json_object_set_new(o, "to",
			owner->to_ns != 0 ? time_value(owner->to_ns, offset) : json_null());
	}
	call_item(c, o);
}

static bool
is_asked_for(const struct lookup *l, uint8_t family, const struct tuple_addr *addr, rte_be16_t port)
{
	return family == l->address.family && memcmp(addr, &l->address.addr, sizeof(*addr)) == 0 &&
	       port == l->port;
}

/* Who opened the connection has the end. */
static bool
is_source(const struct lookup *l, const struct ct_entry *e)
{
	const struct tuple *r = &e->reply.tuple;
	rte_be16_t port = proto_is_icmp(r->proto) ? r->sport : r->dport;
	struct tuple_addr outside;

	if (!(e->status & CT_SRC_NAT))
		return false;
	if (nat64_hairpin_end(e, &outside))
		return is_asked_for(l, TUPLE_IPV4, &outside, port);
	return is_asked_for(l, r->family, &r->dst, port);
}

/* Who was reached by it. */
static bool
is_destination(const struct lookup *l, const struct ct_entry *e)
{
	const struct tuple *o = &e->orig.tuple;

	return e->status & CT_DST_NAT &&
	       is_asked_for(l, o->family, &o->dst, proto_is_icmp(o->proto) ? o->sport : o->dport);
}

static bool
has_end(const struct ct_view *v, const void *arg)
{
	return is_source(arg, &v->entry) || is_destination(arg, &v->entry);
}

static void
address_text(const struct tuple *t, const struct tuple_addr *addr, char text[INET6_ADDRSTRLEN])
{
	inet_ntop(t->family == TUPLE_IPV4 ? AF_INET : AF_INET6, addr, text, INET6_ADDRSTRLEN);
}

static bool
connection_item(const struct ct_view *v, void *arg)
{
	const struct lookup *l = arg;
	const struct tuple *o = &v->entry.orig.tuple, *r = &v->entry.reply.tuple;
	bool source = is_source(l, &v->entry);
	char host[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];

	address_text(source ? o : r, source ? &o->src : &r->src, host);
	address_text(o, source ? &o->dst : &o->src, dst);
	call_item(l->call, json_pack("{s:s, s:s, s:s, s:i, s:s, s:i, s:s, s:s}", "netns",
		v->entry.ns->name, "by", "connection", "address", call_string(l->call, "address"),
		"port", rte_be_to_cpu_16(l->port), "host", host, "sport",
		rte_be_to_cpu_16(source ? o->sport : r->sport), "proto", ct_proto_name(o->proto),
		"dst", dst));
	return !call_full(l->call);
}

/* By the pool that has the address. */
static int
ask_pool(struct call *c, struct lookup *l, const struct nat_pool *pool, uint64_t time_ns)
{
	struct nat_owner owner;

	l->said = true;
	switch (nat_pool_who(pool, &l->address.addr, rte_be_to_cpu_16(l->port), time_ns, &owner)) {
	case NAT_WHO_HOST:
		owner_item(c, l, pool, &owner);
		return 0;
	case NAT_WHO_NOBODY:
		return 0;
	case NAT_WHO_FORGOTTEN:
		return sl_refuse(&c->err, ENOENT,
			"time: pool \"%s\" does not remember its blocks that far back",
			nat_pool_config(pool)->name);
	default:
		l->said = false;
		return 0;
	}
}

static int
ask(struct call *c, struct lookup *l, const struct netns *ns)
{
	const char *time_text = call_string(c, "time");
	const struct nat_pool *pool;
	uint64_t time_ns = 0;
	int ret = 0;

	if (time_text != NULL)
		ret = parse_time(c, time_text, &time_ns);
	for (pool = nat_pool_next(ns, NULL); ret == 0 && pool != NULL;
		pool = nat_pool_next(ns, pool))
		if (nat_pool_has(pool, l->address.family, &l->address.addr))
			ret = ask_pool(c, l, pool, time_ns);
	if (ret == 0 && !l->said && time_text != NULL)
		ret = sl_refuse(&c->err, EINVAL,
			"time: the address is of no blocks of ports, and of connections only the "
			"present is known");
	return ret;
}

static int
lookup_run(struct call *c)
{
	struct lookup *l;
	struct netns *ns;
	int ret = call_netns(c, "netns", &ns);

	if (ret != 0)
		return ret;
	c->state = l = calloc(1, sizeof(*l));
	if (l == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	l->call = c;
	l->id = ns->id;
	l->gen = ns->gen;
	l->port = rte_cpu_to_be_16((uint16_t)call_uint(c, "port"));
	ret = prefix_parse(&l->address, call_string(c, "address"), "address", &c->err);
	if (ret == 0 && strchr(call_string(c, "address"), '/') != NULL)
		ret = sl_refuse(&c->err, EINVAL, "address: give one address, not a prefix");
	if (ret == 0)
		ret = ask(c, l, ns);
	ct_walk_start(c->gw->ct, &l->walk, c->gw->clock(c->gw));
	return ret;
}

static enum task_step
lookup_step(struct call *c)
{
	struct lookup *l = c->state;
	const struct netns *ns = netns_by_id(c->gw->netns, l->id);
	const struct ct_filter filter = {.ns = ns, .match = has_end, .match_arg = l};
	const struct ct_visitor visitor = {.visit = connection_item, .arg = l};

	if (l->said || ns == NULL || ns->gen != l->gen)
		return TASK_DONE;
	return ct_walk_slice(c->gw->ct_control, &l->walk, &filter, WALK_SLICE, c->gw->clock(c->gw),
		       &visitor) ? TASK_MORE : TASK_DONE;
}

static void
end(struct call *c)
{
	free(c->state);
	c->state = NULL;
}

const struct command_handler commands_nat[] = {
	{"nat.list", nat_pool_list_start, list_step, end},
	{"nat.lookup", lookup_run, lookup_step, end},
	{0},
};
