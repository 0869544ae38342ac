/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOP_H
#define TOP_H

#include <stdbool.h>

#include "run.h"

/* Whether the command is top, and there is a terminal to draw it on. */
bool top_wants_screen(const struct run *r, const struct grammar_command *cmd);

/* Draws top until q or Ctrl-C, or its last sample. Takes the reference. The exit status. */
int top_screen(struct run *r, const struct grammar_command *cmd, json_t *params);

#endif
