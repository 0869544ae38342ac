/* SPDX-License-Identifier: BSD-3-Clause */
#include "render.h"

#include <stdint.h>
#include <string.h>

#include "render_watch.h"

const char *
render_string(const json_t *object, const char *field)
{
	const char *s = json_string_value(json_object_get(object, field));

	return s != NULL ? s : "";
}

static json_int_t
integer_of(const json_t *object, const char *field)
{
	return json_integer_value(json_object_get(object, field));
}

void
render_value(const json_t *v, FILE *out)
{
	if (json_is_string(v))
		fputs(json_string_value(v), out);
	else if (json_is_null(v))
		fputc('-', out);
	else
		json_dumpf(v, out, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* ---- by default ---- */

static void
pairs(const json_t *object, const char *before, const char *between, const char *after, FILE *out)
{
	void *i = json_object_iter((json_t *)(uintptr_t)object);
	const char *space = "";

	for (; i != NULL; i = json_object_iter_next((json_t *)(uintptr_t)object, i)) {
		fprintf(out, "%s%s%s", space, json_object_iter_key(i), between);
		render_value(json_object_iter_value(i), out);
		fputs(after, out);
		space = before;
	}
}

static void
default_item(const json_t *item, FILE *out)
{
	pairs(item, " ", "=", "", out);
	fputc('\n', out);
}

static void
default_result(const json_t *result, FILE *out)
{
	if (json_object_size(result) == 1 && json_object_get(result, "count") != NULL)
		return;
	pairs(result, "", " ", "\n", out);
}

/* ---- as the tools do that users know ---- */

static void
netns_item(const json_t *n, FILE *out)
{
	fprintf(out, "%s (id: %" JSON_INTEGER_FORMAT ")\n", render_string(n, "name"),
		integer_of(n, "nsid"));
}

/* In the words of the command that would add it. */
static void
link_item(const json_t *l, FILE *out)
{
	const json_t *address;
	size_t i;

	fprintf(out, "%s port %s vlan %s netns %s", render_string(l, "name"),
		render_string(l, "port"), render_string(l, "vlan"), render_string(l, "netns"));
	if (json_is_string(json_object_get(l, "peer")))
		fprintf(out, " peer %s", render_string(l, "peer"));
	fprintf(out, " mtu %" JSON_INTEGER_FORMAT " mac %s\n", integer_of(l, "mtu"),
		render_string(l, "mac"));
	json_array_foreach(json_object_get(l, "addresses"), i, address)
		fprintf(out, "    address %s\n", json_string_value(address));
}

static void
port_item(const json_t *p, FILE *out)
{
	fprintf(out,
		"%s devargs %s queues %" JSON_INTEGER_FORMAT " links %" JSON_INTEGER_FORMAT "\n",
		render_string(p, "name"), render_string(p, "devargs"), integer_of(p, "queues"),
		integer_of(p, "links"));
	fprintf(out,
		"    RX: %" JSON_INTEGER_FORMAT " packets %" JSON_INTEGER_FORMAT " bytes"
		"   TX: %" JSON_INTEGER_FORMAT " packets %" JSON_INTEGER_FORMAT
		" bytes %" JSON_INTEGER_FORMAT " dropped\n",
		integer_of(p, "rx_packets"), integer_of(p, "rx_bytes"), integer_of(p, "tx_packets"),
		integer_of(p, "tx_bytes"), integer_of(p, "tx_dropped"));
}

static void
setting(const json_t *s, FILE *out)
{
	fprintf(out, "%s = ", render_string(s, "key"));
	render_value(json_object_get(s, "value"), out);
	fputc('\n', out);
}

static void
drop_item(const json_t *d, FILE *out)
{
	fprintf(out, "%-24s %12" JSON_INTEGER_FORMAT "  %s\n", render_string(d, "reason"),
		integer_of(d, "packets"), render_string(d, "help"));
}

static void
just_count(const json_t *r, FILE *out)
{
	fprintf(out, "%" JSON_INTEGER_FORMAT "\n", integer_of(r, "count"));
}

static void
count_deleted(const json_t *r, FILE *out)
{
	(void)out;
	fprintf(stderr, "%" JSON_INTEGER_FORMAT " flow entries have been deleted.\n",
		integer_of(r, "count"));
}

static void
count_shown(const json_t *r, FILE *out)
{
	(void)out;
	fprintf(stderr, "%" JSON_INTEGER_FORMAT " flow entries have been shown.\n",
		integer_of(r, "count"));
}

static void
events_shown(const json_t *r, FILE *out)
{
	(void)out;
	fprintf(stderr, "%" JSON_INTEGER_FORMAT " flow events have been shown.\n",
		integer_of(r, "count"));
}

static void
logs_shown(const json_t *r, FILE *out)
{
	(void)out;
	fprintf(stderr, "%" JSON_INTEGER_FORMAT " packets have been shown.\n",
		integer_of(r, "count"));
}

static void
nat_events_shown(const json_t *r, FILE *out)
{
	(void)out;
	fprintf(stderr, "%" JSON_INTEGER_FORMAT " NAT events have been shown.\n",
		integer_of(r, "count"));
}

static const struct render render_table[] = {
	{"netns.list", netns_item, NULL},
	{"link.list", link_item, NULL},
	{"port.list", port_item, NULL},
	{"nat.list", render_pool_use, NULL},
	{"nat.pool.list", render_pool, NULL},
	{"nat.events", NULL, nat_events_shown},
	{"rule.list", render_rule, render_rule_end},
	{"rule.export", render_line, NULL},
	{"rule.events", render_log, logs_shown},
	{"sysctl", NULL, setting},
	{"sysctl.list", setting, NULL},
	{"conntrack.list", render_entry, count_shown},
	{"conntrack.events", render_event, events_shown},
	{"conntrack.count", NULL, just_count},
	{"conntrack.delete", NULL, count_deleted},
	{"conntrack.flush", NULL, count_deleted},
	{"drops", drop_item, NULL},
	{"trace", render_trace, NULL},
	{"top", render_top, NULL},
	{"show.workers", render_worker, NULL},
	{0},
};

static const struct render *
find(const char *method)
{
	const struct render *r = render_table;

	while (r->method != NULL && strcmp(r->method, method) != 0)
		r++;
	return r;
}

void
render_item(const char *method, const json_t *item, FILE *out)
{
	const struct render *r = find(method);

	(r->item != NULL ? r->item : default_item)(item, out);
}

void
render_result(const char *method, const json_t *result, FILE *out)
{
	const struct render *r = find(method);

	(r->result != NULL ? r->result : default_result)(result, out);
}
