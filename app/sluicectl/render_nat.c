/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of addresses. */
#include "render.h"

static json_int_t
integer_of(const json_t *object, const char *field)
{
	return json_integer_value(json_object_get(object, field));
}

/* In the words of the command that would add it. */
void
render_pool(const json_t *p, FILE *out)
{
	const json_t *address;
	size_t i;

	fprintf(out, "%s %s", render_string(p, "netns"), render_string(p, "name"));
	json_array_foreach(json_object_get(p, "addresses"), i, address)
		fprintf(out, " %s", json_string_value(address));
	if (json_object_get(p, "ports") != NULL)
		fprintf(out, " ports %s", render_string(p, "ports"));
	fputc('\n', out);
}

void
render_pool_use(const json_t *p, FILE *out)
{
	fprintf(out, "%s %s: ", render_string(p, "netns"), render_string(p, "pool"));
	fprintf(out, "%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " %ss",
		integer_of(p, "used"), integer_of(p, "capacity"), render_string(p, "unit"));
	if (json_object_get(p, "block_size") != NULL)
		fprintf(out, " of %" JSON_INTEGER_FORMAT " ports%s", integer_of(p, "block_size"),
			json_is_true(json_object_get(p, "deterministic")) ? ", deterministic" : "");
	fprintf(out, " (%.1f %%)%s, high %" JSON_INTEGER_FORMAT,
		json_number_value(json_object_get(p, "percent")),
		json_is_true(json_object_get(p, "alarm")) ? " ALARM" : "", integer_of(p, "high"));
	fprintf(out, ", connections %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
		", exhausted %" JSON_INTEGER_FORMAT "\n", integer_of(p, "connections"),
		integer_of(p, "bound"), integer_of(p, "exhausted"));
}
