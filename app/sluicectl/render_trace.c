/* SPDX-License-Identifier: BSD-3-Clause */
/* trace: a packet as lines, one for each stage that it came to. */
#include "render_watch.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

static json_int_t
number(const json_t *object, const char *field)
{
	return json_integer_value(json_object_get(object, field));
}

static bool
has(const json_t *object, const char *field)
{
	const json_t *v = json_object_get(object, field);

	return v != NULL && !json_is_null(v);
}

static void
stage(const json_t *t, const char *name, FILE *out)
{
	const json_t *netns = json_object_get(t, "netns");
	const json_t *link = json_object_get(json_object_get(t, "in"), "link");

	fprintf(out, "trace id %" JSON_INTEGER_FORMAT " netns=", number(t, "trace"));
	render_value(netns, out);
	fputs(" link=", out);
	render_value(link, out);
	fprintf(out, " %s", name);
}

/* An address with what stands for its port, IPv6 in brackets where there is one. */
static void
end_point(const json_t *p, const char *addr, const char *port, FILE *out)
{
	const char *text = render_string(p, addr);

	if (!has(p, port))
		fputs(text, out);
	else if (strchr(text, ':') != NULL)
		fprintf(out, "[%s]:%" JSON_INTEGER_FORMAT, text, number(p, port));
	else
		fprintf(out, "%s:%" JSON_INTEGER_FORMAT, text, number(p, port));
}

static void
addresses(const json_t *p, FILE *out)
{
	if (strcmp(render_string(p, "proto"), "unknown") == 0)
		fprintf(out, " proto %" JSON_INTEGER_FORMAT " ", number(p, "protonum"));
	else
		fprintf(out, " %s ", render_string(p, "proto"));
	end_point(p, "src", "sport", out);
	fputs(" > ", out);
	end_point(p, "dst", "dport", out);
	if (has(p, "type"))
		fprintf(out, " type %" JSON_INTEGER_FORMAT " code %" JSON_INTEGER_FORMAT
			     " id %" JSON_INTEGER_FORMAT,
			number(p, "type"), number(p, "code"), number(p, "id"));
}

static void
tcp_header(const json_t *p, FILE *out)
{
	const json_t *flags = json_object_get(p, "flags"), *flag;
	size_t i;

	fputs(" [", out);
	json_array_foreach(flags, i, flag)
		fprintf(out, "%s%s", i > 0 ? "," : "", json_string_value(flag));
	fprintf(out, "] seq %" JSON_INTEGER_FORMAT " ack %" JSON_INTEGER_FORMAT
		     " win %" JSON_INTEGER_FORMAT,
		number(p, "seq"), number(p, "ack"), number(p, "win"));
}

static void
port_and_tags(const json_t *way, FILE *out)
{
	fprintf(out, " port=%s", render_string(way, "port"));
	if (has(way, "vlan"))
		fprintf(out, " vlan=%" JSON_INTEGER_FORMAT, number(way, "vlan"));
	if (has(way, "inner"))
		fprintf(out, ".%" JSON_INTEGER_FORMAT, number(way, "inner"));
}

static void
received(const json_t *t, FILE *out)
{
	const json_t *p = json_object_get(t, "packet");
	double when = json_real_value(json_object_get(t, "time"));
	time_t seconds = (time_t)when;
	char clock[16] = "";
	struct tm tm;

	stage(t, "rx", out);
	if (has(p, "src"))
		addresses(p, out);
	else
		fprintf(out, " ethertype 0x%04x", (unsigned int)number(p, "ethertype"));
	if (has(p, "flags"))
		tcp_header(p, out);
	if (has(t, "about")) {
		fputs(" about", out);
		addresses(json_object_get(t, "about"), out);
	}
	fprintf(out, " len %" JSON_INTEGER_FORMAT, number(p, "len"));
	port_and_tags(json_object_get(t, "in"), out);
	if (localtime_r(&seconds, &tm) != NULL)
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	fprintf(out, " worker=%" JSON_INTEGER_FORMAT " time=%s.%06u\n", number(t, "worker"), clock,
		(unsigned int)((when - (double)seconds) * 1e6));
}

static void
conntrack(const json_t *t, FILE *out)
{
	const json_t *ct = json_object_get(t, "conntrack");
	const char *from = render_string(ct, "from"), *to = render_string(ct, "to");

	if (has(ct, "lookup")) {
		stage(t, "lookup", out);
		fprintf(out, " %s%s\n", render_string(ct, "lookup"),
			has(ct, "race_lost") ? ", and another worker was first" : "");
	}
	stage(t, "conntrack", out);
	fprintf(out, " %s", render_string(ct, "state"));
	if (has(ct, "direction"))
		fprintf(out, " %s", render_string(ct, "direction"));
	if (has(ct, "to") && strcmp(from, to) != 0 && strcmp(from, "NONE") != 0)
		fprintf(out, " %s ->", from);
	if (has(ct, "to"))
		fprintf(out, " %s", to);
	if (has(ct, "reason"))
		fprintf(out, " (%s)", render_string(ct, "reason"));
	fputc('\n', out);
}

static void
rules(const json_t *t, FILE *out)
{
	const json_t *list = json_object_get(t, "rules"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		stage(t, "rule", out);
		fprintf(out, " %s %s", render_string(one, "chain"), render_string(one, "verdict"));
		if (has(one, "handle"))
			fprintf(out, " handle %" JSON_INTEGER_FORMAT, number(one, "handle"));
		else
			fputs(has(one, "policy") ? " policy" : " kept", out);
		fputc('\n', out);
	}
}

void
render_trace(const json_t *t, FILE *out)
{
	const json_t *way = json_object_get(t, "out");

	if (has(t, "lost")) {
		fprintf(out, "trace: %" JSON_INTEGER_FORMAT
			     " packets passed over: no room in the ring\n", number(t, "lost"));
		return;
	}
	received(t, out);
	if (has(t, "conntrack"))
		conntrack(t, out);
	rules(t, out);
	if (has(t, "synproxy")) {
		stage(t, "synproxy", out);
		fprintf(out, " %s\n", render_string(t, "synproxy"));
	}
	if (has(t, "reason")) {
		stage(t, "drop", out);
		fprintf(out, " %s: %s\n", render_string(t, "reason"), render_string(t, "help"));
	} else {
		stage(t, "out", out);
		fprintf(out, " link=%s", render_string(way, "link"));
		port_and_tags(way, out);
		fputc('\n', out);
	}
}
