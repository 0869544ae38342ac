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

/* "name=value " when the field is there. */
static void
print_field(const json_t *object, const char *name, FILE *out)
{
	const json_t *v = json_object_get(object, name);

	if (v == NULL)
		return;
	fprintf(out, "%s=", name);
	render_value(v, out);
	fputc(' ', out);
}

static void
print_key(const json_t *object, const char *name, FILE *out)
{
	if (json_object_get(object, name) != NULL)
		fprintf(out, "%s=0x%" PRIx64 " ", name, (uint64_t)integer_of(object, name));
}

static void
print_direction(const json_t *d, FILE *out)
{
	print_field(d, "src", out);
	print_field(d, "dst", out);
	print_field(d, "sport", out);
	print_field(d, "dport", out);
	print_field(d, "type", out);
	print_field(d, "code", out);
	print_field(d, "id", out);
	print_key(d, "srckey", out);
	print_key(d, "dstkey", out);
	print_field(d, "packets", out);
	print_field(d, "bytes", out);
}

void
render_entry(const json_t *e, FILE *out)
{
	fprintf(out, "netns=%s %-8s %" JSON_INTEGER_FORMAT " %" JSON_INTEGER_FORMAT " ",
		render_string(e, "netns"), render_string(e, "proto"), integer_of(e, "protonum"),
		integer_of(e, "timeout"));
	if (json_is_string(json_object_get(e, "state")))
		fprintf(out, "%s ", render_string(e, "state"));
	print_direction(json_object_get(e, "orig"), out);
	if (!has_status(e, "SEEN_REPLY"))
		fputs("[UNREPLIED] ", out);
	print_direction(json_object_get(e, "reply"), out);
	if (has_status(e, "ASSURED"))
		fputs("[ASSURED] ", out);
	print_field(e, "mark", out);
	if (integer_of(e, "zone") != 0)
		print_field(e, "zone", out);
	print_field(e, "delta-time", out);
	fputs("use=1\n", out);
}
