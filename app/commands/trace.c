/* SPDX-License-Identifier: BSD-3-Clause */
/* trace: a stream of packets until there are enough, or the client leaves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "filter_sense.h"
#include "link.h"
#include "trace.h"
#include "trace_json.h"

#define POLL_MS    20
#define READ_BATCH 64

struct follow {
	struct trace_session *session;
	uint64_t seen;           /* packets shown */
	uint64_t wanted;         /* 0: no end */
	uint64_t lost;           /* as told */
	uint64_t wall_offset_ns; /* from the gateway's clock to the time of day */
};

static int
reason_filter(struct call *c, struct trace_filter *f)
{
	const char *name = call_string(c, "reason");
	char q[48];
	unsigned int i;

	if (name == NULL)
		return 0;
	for (i = SL_DROP_NONE + 1; i < SL_DROP_COUNT; i++) {
		if (strcmp(sl_drop_name(i), name) == 0) {
			f->fields |= TRACE_BY_REASON;
			f->reason = (uint8_t)i;
			return 0;
		}
	}
	return sl_refuse(&c->err, EINVAL, "reason: \"%s\" is no reason that `drops` knows",
		grammar_quote(name, q, sizeof(q)));
}

static int
address_filter(struct call *c, struct trace_filter *f)
{
	const char *src = call_string(c, "src"), *dst = call_string(c, "dst");
	const char *family = call_string(c, "family");
	int ret = 0;

	if (family != NULL) {
		f->fields |= TRACE_BY_FAMILY;
		f->family = strcmp(family, "ipv6") == 0 ? TUPLE_IPV6 : TUPLE_IPV4;
	}
	if (src != NULL)
		ret = prefix_parse(&f->src, src, "src", &c->err);
	if (ret == 0 && dst != NULL)
		ret = prefix_parse(&f->dst, dst, "dst", &c->err);
	return ret;
}

static uint16_t
by_number(const struct call *c, const char *name, uint8_t field, struct trace_filter *f)
{
	if (call_given(c, name))
		f->fields |= field;
	return (uint16_t)call_uint(c, name);
}

/* A name that no link has would be waited for in vain. */
static int
link_filter(struct call *c, struct trace_filter *f)
{
	const char *name = call_string(c, "link");
	const struct netns *ns;
	const struct link *l;
	uint32_t id = 0;
	char q[48];

	if (name == NULL)
		return 0;
	while ((ns = netns_next(c->gw->netns, &id)) != NULL) {
		if (f->ns != NULL && ns != f->ns)
			continue;
		for (l = link_first(ns); l != NULL; l = l->next) {
			if (strcmp(l->name, name) == 0) {
				snprintf(f->link, sizeof(f->link), "%s", name);
				return 0;
			}
		}
	}
	return sl_refuse(&c->err, ENOENT, "link: there is no \"%s\"%s%s",
		grammar_quote(name, q, sizeof(q)), f->ns != NULL ? " in namespace " : "",
		f->ns != NULL ? f->ns->name : "");
}

static int
check_sense(struct call *c, const struct trace_filter *f)
{
	const struct filter_sense sense = {
		.family = {f->family, f->src.family, f->dst.family},
		.proto = f->proto,
		.by_proto = (f->fields & TRACE_BY_PROTO) != 0,
		.by_port = (f->fields & (TRACE_BY_SPORT | TRACE_BY_DPORT)) != 0,
		.by_icmp = (f->fields & (TRACE_BY_ICMP_TYPE | TRACE_BY_ICMP_CODE)) != 0,
	};

	return filter_sense_check(&sense, &c->err);
}

static int
make_filter(struct call *c, struct trace_filter *f)
{
	const char *proto = call_string(c, "proto");
	struct netns *ns;
	int ret;

	*f = (struct trace_filter){0};
	ret = call_netns(c, "netns", &ns);
	if (ret != 0)
		return ret;
	f->ns = ns;
	f->sport = by_number(c, "sport", TRACE_BY_SPORT, f);
	f->dport = by_number(c, "dport", TRACE_BY_DPORT, f);
	f->icmp_type = (uint8_t)by_number(c, "icmp-type", TRACE_BY_ICMP_TYPE, f);
	f->icmp_code = (uint8_t)by_number(c, "icmp-code", TRACE_BY_ICMP_CODE, f);
	if (call_given(c, "dropped"))
		f->fields |= TRACE_DROPPED;
	ret = link_filter(c, f);
	if (ret != 0)
		return ret;
	if (proto != NULL) {
		f->fields |= TRACE_BY_PROTO;
		ret = proto_parse(&f->proto, proto, "proto", &c->err);
		if (ret != 0)
			return ret;
	}
	ret = address_filter(c, f);
	if (ret == 0)
		ret = reason_filter(c, f);
	return ret == 0 ? check_sense(c, f) : ret;
}

static int
trace_run(struct call *c)
{
	struct trace_filter filter;
	struct follow *f;
	int ret;

	if (c->once)
		return sl_refuse(&c->err, ENOTSUP,
			"trace: not available in replay: it follows a running gateway");
	ret = make_filter(c, &filter);
	if (ret != 0)
		return ret;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	ret = trace_open(c->gw, &filter, &f->session, &c->err);
	if (ret != 0) {
		free(f);
		return ret;
	}
	f->wanted = call_uint(c, "count");
	f->wall_offset_ns = gateway_wall_offset(c->gw);
	c->state = f;
	return 0;
}

/* Tells of packets that were passed over since it was told the last time. */
static void
tell_lost(struct call *c, struct follow *f)
{
	uint64_t lost = trace_lost(f->session);

	if (lost != f->lost)
		call_item(c, json_pack("{s:I}", "lost", (json_int_t)(lost - f->lost)));
	f->lost = lost;
}

static enum task_step
trace_step(struct call *c)
{
	struct trace_record r[READ_BATCH];
	struct follow *f = c->state;
	unsigned int i, n, max = READ_BATCH;

	if (call_full(c))
		return TASK_MORE;
	if (f->wanted != 0)
		max = (unsigned int)RTE_MIN((uint64_t)READ_BATCH, f->wanted - f->seen);
	n = trace_read(f->session, r, max);
	for (i = 0; i < n; i++)
		call_item(c, trace_json(&r[i], ++f->seen, f->wall_offset_ns));
	tell_lost(c, f);
	if (f->wanted != 0 && f->seen == f->wanted) {
		c->result = json_pack("{s:I, s:I}", "count", (json_int_t)f->seen, "lost",
			(json_int_t)f->lost);
		return TASK_DONE;
	}
	c->wait_ms = POLL_MS;
	return n == max ? TASK_MORE : TASK_WAIT;
}

static void
trace_end(struct call *c)
{
	struct follow *f = c->state;

	if (f == NULL)
		return;
	trace_close(c->gw, f->session);
	free(f);
}

const struct command_handler commands_trace[] = {
	{"trace", trace_run, trace_step, trace_end},
	{0},
};
