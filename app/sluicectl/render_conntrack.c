/* SPDX-License-Identifier: BSD-3-Clause */
/* An entry as conntrack(8) prints it. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "render.h"

static json_int_t
integer_of(const json_t *object, const char *field)
{
	return json_integer_value(json_object_get(object, field));
}

static bool
has_status(const json_t *entry, const char *name)
{
	const json_t *list = json_object_get(entry, "status");
	size_t i;

	for (i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)), name) == 0)
			return true;
	return false;
}

/* " name=value" when the field is there. */
static void
print_field(const json_t *object, const char *name, FILE *out)
{
	const json_t *v = json_object_get(object, name);

	if (v == NULL)
		return;
	fprintf(out, " %s=", name);
	render_value(v, out);
}

static void
print_key(const json_t *object, const char *name, FILE *out)
{
	if (json_object_get(object, name) != NULL)
		fprintf(out, " %s=0x%" PRIx64, name, (uint64_t)integer_of(object, name));
}

static void
print_direction(const json_t *e, const char *name, FILE *out)
{
	const json_t *d = json_object_get(e, name);

	print_field(d, "src", out);
	print_field(d, "dst", out);
	print_field(d, "sport", out);
	print_field(d, "dport", out);
	print_field(d, "type", out);
	print_field(d, "code", out);
	print_field(d, "id", out);
	print_key(d, "srckey", out);
	print_key(d, "dstkey", out);
	if (json_object_get(d, "zone") != NULL)
		fprintf(out, " zone-%s=%" JSON_INTEGER_FORMAT, name, integer_of(d, "zone"));
	print_field(d, "packets", out);
	print_field(d, "bytes", out);
}

static void
print_entry(const json_t *e, bool state, FILE *out)
{
	fprintf(out, "%-8s %" JSON_INTEGER_FORMAT, render_string(e, "proto"),
		integer_of(e, "protonum"));
	if (json_is_integer(json_object_get(e, "timeout")))
		fprintf(out, " %" JSON_INTEGER_FORMAT, integer_of(e, "timeout"));
	if (state && json_is_string(json_object_get(e, "state")))
		fprintf(out, " %s", render_string(e, "state"));
	print_direction(e, "orig", out);
	if (!has_status(e, "SEEN_REPLY"))
		fputs(" [UNREPLIED]", out);
	print_direction(e, "reply", out);
	if (has_status(e, "ASSURED"))
		fputs(" [ASSURED]", out);
}

void
render_entry(const json_t *e, FILE *out)
{
	fprintf(out, "netns=%s ", render_string(e, "netns"));
	print_entry(e, true, out);
	print_field(e, "mark", out);
	if (integer_of(e, "zone") != 0)
		print_field(e, "zone", out);
	print_field(e, "delta-time", out);
	fputs(" use=1\n", out);
}

/* An update tells the state only when that is what has changed. */
static bool
tells_state(const json_t *event)
{
	const json_t *list = json_object_get(event, "changed"), *v;
	bool found = list == NULL;
	size_t i;

	json_array_foreach(list, i, v) found |= strcmp(json_string_value(v), "STATE") == 0;
	return found;
}

void
render_event(const json_t *e, FILE *out)
{
	char tag[16];

	if (json_object_get(e, "lost") != NULL) {
		fprintf(out, "conntrack events: %" JSON_INTEGER_FORMAT
			     " lost: no room in the ring\n", integer_of(e, "lost"));
		return;
	}
	snprintf(tag, sizeof(tag), "[%s]", render_string(e, "event"));
	fprintf(out, "netns=%s %9s ", render_string(e, "netns"), tag);
	print_entry(e, tells_state(e), out);
	if (integer_of(e, "mark") != 0)
		print_field(e, "mark", out);
	if (integer_of(e, "zone") != 0)
		print_field(e, "zone", out);
	print_field(e, "delta-time", out);
	fputc('\n', out);
}
