/* SPDX-License-Identifier: BSD-3-Clause */
/* A tracked connection as the object that listings answer with. */
#ifndef CT_FORMAT_H
#define CT_FORMAT_H

#include <jansson.h>

#include "conntrack.h"

/*
 * {"netns","family","proto","protonum","state","timeout","status":[...],"mark","zone","helper",
 * "orig":{"src","dst","sport","dport","packets","bytes"},"reply":{...}}
 *
 * `type`, `code`, `id` instead of ports for ICMP; `srckey`, `dstkey` for GRE; neither where the
 * protocol has none. Counters only where the namespace counts (nf_conntrack_acct), "delta-time"
 * only where it keeps start times (nf_conntrack_timestamp). NULL: no memory.
 */
json_t *ct_format_json(const struct ct_view *v, struct sl_now now);

#endif
