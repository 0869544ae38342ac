/* SPDX-License-Identifier: BSD-3-Clause */
/* An entry as conntrack(8) prints it. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "render.h"

static json_int_t
number(const json_t *object, const char *field)
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

/* "name=value " when the field is there. */
static void
field(const json_t *object, const char *name, FILE *out)
{
	const json_t *v = json_object_get(object, name);

	if (v == NULL)
		return;
	fprintf(out, "%s=", name);
	render_value(v, out);
	fputc(' ', out);
}

static void
key(const json_t *object, const char *name, FILE *out)
{
	if (json_object_get(object, name) != NULL)
		fprintf(out, "%s=0x%" PRIx64 " ", name, (uint64_t)number(object, name));
}

static void
direction(const json_t *d, FILE *out)
{
	field(d, "src", out);
	field(d, "dst", out);
	field(d, "sport", out);
	field(d, "dport", out);
	field(d, "type", out);
	field(d, "code", out);
	field(d, "id", out);
	key(d, "srckey", out);
	key(d, "dstkey", out);
	field(d, "packets", out);
	field(d, "bytes", out);
}

void
render_entry(const json_t *e, FILE *out)
{
	fprintf(out, "netns=%s %-8s %" JSON_INTEGER_FORMAT " %" JSON_INTEGER_FORMAT " ",
		render_string(e, "netns"), render_string(e, "proto"), number(e, "protonum"),
		number(e, "timeout"));
	if (json_is_string(json_object_get(e, "state")))
		fprintf(out, "%s ", render_string(e, "state"));
	direction(json_object_get(e, "orig"), out);
	if (!has_status(e, "SEEN_REPLY"))
		fputs("[UNREPLIED] ", out);
	direction(json_object_get(e, "reply"), out);
	if (has_status(e, "ASSURED"))
		fputs("[ASSURED] ", out);
	field(e, "mark", out);
	if (number(e, "zone") != 0)
		field(e, "zone", out);
	field(e, "delta-time", out);
	fputs("use=1\n", out);
}
