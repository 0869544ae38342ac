/* SPDX-License-Identifier: BSD-3-Clause */
#include "event_nat.h"

#include <arpa/inet.h>
#include <string.h>

#include "events.h"
#include "gateway.h"
#include "worker.h"

static struct sl_now
now_of(struct gateway *gw, unsigned int thread)
{
	return thread < gw->n_workers ? gw->workers[thread]->now : gw->clock(gw);
}

uint64_t
event_nat_clock(void *app, unsigned int thread)
{
	return now_of(app, thread).ns;
}

void
event_nat_report(void *app, unsigned int thread, const struct nat_report *r)
{
	const struct nat_pool_config *config = nat_pool_config(r->pool);
	struct gateway *gw = app;
	struct event ev;

	if (!events_wanted(gw->events, EVENT_NAT))
		return;
	event_init(&ev, EVENT_NAT, sizeof(ev.nat));
	ev.nat = (struct event_nat){
		.used = r->used,
		.capacity = r->capacity,
		.host = r->host,
		.addr = r->addr,
		.port_lo = r->port_lo,
		.port_hi = r->port_hi,
		.type = (uint8_t)r->type,
		.host_family = r->host_family,
		.family = config->family,
	};
	memcpy(ev.nat.pool, config->name, strlen(config->name) + 1);
	events_emit(gw->events, thread, nat_pool_netns(r->pool), now_of(gw, thread), &ev);
}

static const char *const names[] = {
	[NAT_BLOCK_ALLOCATED] = "block-allocated",
	[NAT_BLOCK_RELEASED] = "block-released",
	[NAT_POOL_ALARM] = "pool-alarm",
	[NAT_POOL_CLEAR] = "pool-clear",
	[NAT_POOL_EXHAUSTED] = "pool-exhausted",
};

json_t *
event_nat_json(const struct event *ev, uint64_t wall_offset_ns)
{
	const struct event_nat *n = &ev->nat;
	char host[INET6_ADDRSTRLEN], addr[INET6_ADDRSTRLEN];
	json_t *o = json_pack("{s:s, s:f, s:s, s:s}", "netns", ev->netns, "time",
		(double)((ev->ns + wall_offset_ns) / 1000) / 1000000, "event", names[n->type],
		"pool", n->pool);

	if (o == NULL)
		return NULL;
	if (n->type != NAT_BLOCK_ALLOCATED && n->type != NAT_BLOCK_RELEASED) {
		json_object_set_new(o, "used", json_integer((json_int_t)n->used));
		json_object_set_new(o, "capacity", json_integer((json_int_t)n->capacity));
		return o;
	}
	inet_ntop(n->host_family == TUPLE_IPV4 ? AF_INET : AF_INET6, &n->host, host, sizeof(host));
	inet_ntop(n->family == TUPLE_IPV4 ? AF_INET : AF_INET6, &n->addr, addr, sizeof(addr));
	json_object_set_new(o, "host", json_string(host));
	json_object_set_new(o, "address", json_string(addr));
	json_object_set_new(o, "ports", json_sprintf("%u-%u", n->port_lo, n->port_hi));
	return o;
}
