/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gateway's numbers as OpenMetrics 1.0 text, written in slices so that tens of thousands of
 * namespaces do not hold the control thread. Control thread only.
 */
#ifndef METRICS_TEXT_H
#define METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct evbuffer;
struct gateway;
struct metrics_text;

#define METRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/*
 * Begins one exposition. Namespaces are those that exist when their list is taken, in the first
 * slices; one deleted since then is left out from there on, and no name is ever listed twice, even
 * if it is given to another namespace meanwhile. NULL: no memory.
 */
struct metrics_text *metrics_text_begin(struct gateway *gw);

/* 1: more is to come; 0: complete, `# EOF` included; -ENOMEM: what was written is of no use. */
int metrics_text_slice(struct metrics_text *t, struct evbuffer *out);

void metrics_text_end(struct metrics_text *t);

/* Writes a label's value with what must be escaped: backslash, quote and newline. Truncated to len,
 * never within an escape. Returns buf. */
const char *metrics_escape(const char *s, char *buf, size_t len);

#endif
