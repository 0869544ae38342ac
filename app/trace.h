/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace: the way of chosen packets through the stages. After each burst the packet path looks
 * once whether the worker has a trace; only then are the burst's packets matched and what each stage
 * left in struct pkt is copied to the trace's ring, which the control side prints from. The ring is
 * bounded; what does not fit is counted.
 */
#ifndef TRACE_H
#define TRACE_H

#include "pkt.h"

struct worker;

/* Worker: records the packets of a burst that the trace selects. Called with w->trace != NULL,
 * while the mbufs still belong to the burst. */
void trace_burst(struct worker *w, const struct pkt *p, unsigned int n);

#endif
