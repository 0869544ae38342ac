/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of the commands that watch the gateway. */
#ifndef RENDER_WATCH_H
#define RENDER_WATCH_H

#include "render.h"

/* A packet of trace: a line for each stage. */
void render_trace(const json_t *packet, FILE *out);

/* A worker of show workers: one line. */
void render_worker(const json_t *worker, FILE *out);

/* A sample of top as one line. */
void render_top(const json_t *sample, FILE *out);

/* The same as a whole screen of `rows` lines, which overwrites the one before. */
void render_top_screen(const json_t *sample, unsigned int rows, FILE *out);

/* A number with three digits and k, M, G. Returns buf. */
char *render_si(double v, char *buf, size_t len);

#endif
