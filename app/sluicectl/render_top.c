/* SPDX-License-Identifier: BSD-3-Clause */
/* show workers, and the samples of top: as one line each, and as a screen. */
#include "render_watch.h"

#include <string.h>

/* Totals, the headings of three lists, and the line below, which is left empty. */
#define FIXED_ROWS 11

static double
number(const json_t *object, const char *field)
{
	return json_number_value(json_object_get(object, field));
}

char *
render_si(double v, char *buf, size_t len)
{
	static const char unit[] = " kMGTPE";
	unsigned int i = 0;

	while (v >= 999.5 && unit[i + 1] != '\0') {
		v /= 1000;
		i++;
	}
	if (i == 0)
		snprintf(buf, len, "%.0f", v);
	else
		snprintf(buf, len, "%.*f%c", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, unit[i]);
	return buf;
}

/* A number that may be null, in a column. */
static void
column(const json_t *object, const char *field, int width, int digits, FILE *out)
{
	if (json_is_number(json_object_get(object, field)))
		fprintf(out, "%*.*f", width, digits, number(object, field));
	else
		fprintf(out, "%*s", width, "-");
}

void
render_worker(const json_t *w, FILE *out)
{
	fprintf(out, "worker %.0f core ", number(w, "worker"));
	render_value(json_object_get(w, "core"), out);
	fputs(": load", out);
	column(w, "load_percent", 6, 1, out);
	fputs(" %, ", out);
	column(w, "packets_per_second", 0, 0, out);
	fputs(" packets/s, ", out);
	column(w, "cycles_per_packet", 0, 1, out);
	fprintf(out, " cycles/packet; since the start %.0f packets, %.0f busy, %.0f idle polls\n",
		number(w, "packets"), number(w, "busy_polls"), number(w, "idle_polls"));
}

static double
all_drops(const json_t *sample)
{
	const json_t *drop;
	double sum = 0;
	size_t i;

	json_array_foreach(json_object_get(sample, "drops"), i, drop)
		sum += number(drop, "packets_per_second");
	return sum;
}

void
render_top(const json_t *s, FILE *out)
{
	const json_t *item;
	char buf[16];
	size_t i;

	fprintf(out, "packets/s %s", render_si(number(s, "packets_per_second"), buf, sizeof(buf)));
	fprintf(out, " bytes/s %s", render_si(number(s, "bytes_per_second"), buf, sizeof(buf)));
	fprintf(out, " entries %.0f", number(s, "entries"));
	fprintf(out, " new/s %s", render_si(number(s, "new_per_second"), buf, sizeof(buf)));
	fprintf(out, " drops/s %s", render_si(all_drops(s), buf, sizeof(buf)));
	fputs(" load", out);
	json_array_foreach(json_object_get(s, "workers"), i, item)
		fprintf(out, " %.0f%%", number(item, "load_percent"));
	fputs(" cycles/packet", out);
	json_array_foreach(json_object_get(s, "workers"), i, item) {
		fputc(' ', out);
		column(item, "cycles_per_packet", 1, 0, out);
	}
	item = json_array_get(json_object_get(s, "netns"), 0);
	if (item != NULL)
		fprintf(out, " busiest %s", render_string(item, "netns"));
	fputc('\n', out);
}

/* ---- the screen; each line is cleared to its end ---- */

#define EOL "\033[K\n"

static void
draw_totals(const json_t *s, FILE *out)
{
	char a[16], b[16], c[16], d[16];

	fprintf(out, "sluice   %.0f namespaces   %.1f s between samples   q: quit" EOL EOL,
		number(s, "namespaces"), number(s, "interval"));
	fprintf(out, "packets/s %s   bytes/s %s   drops/s %s" EOL,
		render_si(number(s, "packets_per_second"), a, sizeof(a)),
		render_si(number(s, "bytes_per_second"), b, sizeof(b)),
		render_si(all_drops(s), c, sizeof(c)));
	fprintf(out, "entries %.0f of %.0f   new/s %s" EOL EOL, number(s, "entries"),
		number(s, "max"), render_si(number(s, "new_per_second"), d, sizeof(d)));
}

static void
draw_workers(const json_t *list, FILE *out)
{
	const json_t *w;
	char buf[16];
	size_t i;

	fputs("worker    load %   packets/s   cycles/packet" EOL, out);
	json_array_foreach(list, i, w) {
		fprintf(out, "%6.0f", number(w, "worker"));
		column(w, "load_percent", 10, 1, out);
		fprintf(out, "%12s",
			render_si(number(w, "packets_per_second"), buf, sizeof(buf)));
		column(w, "cycles_per_packet", 16, 1, out);
		fputs(EOL, out);
	}
}

static void
draw_netns(const json_t *list, unsigned int rows, FILE *out)
{
	const json_t *n;
	char a[16], b[16];
	size_t i;

	fputs(EOL "busiest namespaces            packets/s   bytes/s     entries" EOL, out);
	json_array_foreach(list, i, n) {
		if (i >= rows)
			break;
		fprintf(out, "%-29.29s %9s %9s %11.0f" EOL, render_string(n, "netns"),
			render_si(number(n, "packets_per_second"), a, sizeof(a)),
			render_si(number(n, "bytes_per_second"), b, sizeof(b)),
			number(n, "entries"));
	}
}

static void
draw_drops(const json_t *list, unsigned int rows, FILE *out)
{
	const json_t *d;
	char buf[16];
	size_t i;

	fputs(EOL "drops                         packets/s" EOL, out);
	json_array_foreach(list, i, d) {
		if (i >= rows)
			break;
		fprintf(out, "%-29s %9s" EOL, render_string(d, "reason"),
			render_si(number(d, "packets_per_second"), buf, sizeof(buf)));
	}
}

void
render_top_screen(const json_t *s, unsigned int rows, FILE *out)
{
	const json_t *workers = json_object_get(s, "workers"), *netns = json_object_get(s, "netns");
	unsigned int fixed = FIXED_ROWS + (unsigned int)json_array_size(workers), left, for_netns;

	left = rows > fixed ? rows - fixed : 0;
	for_netns = (unsigned int)json_array_size(netns);
	if (for_netns > left - left / 3)
		for_netns = left - left / 3;
	fputs("\033[H", out);
	draw_totals(s, out);
	draw_workers(workers, out);
	draw_netns(netns, for_netns, out);
	draw_drops(json_object_get(s, "drops"), left - for_netns, out);
	fputs("\033[J", out);
}
