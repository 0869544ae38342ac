/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRACE_JSON_H
#define TRACE_JSON_H

#include <stdint.h>

#include <jansson.h>

#include "trace.h"

/*
 * A record as commands and clients show it: what came in, the packet, what connection tracking made
 * of it, and the verdict; a stage that was not reached is left out. `id` counts the packets of the
 * trace, wall_offset_ns turns the burst's clock into the time since 1970. A new reference.
 */
json_t *trace_json(const struct trace_record *r, uint64_t id, uint64_t wall_offset_ns);

#endif
