/* SPDX-License-Identifier: BSD-3-Clause */
/* A tracked connection as the object that listings and events answer with. */
#ifndef CT_FORMAT_H
#define CT_FORMAT_H

#include <jansson.h>

#include "conntrack.h"
#include "events.h"

/*
 * {"netns","family","proto","protonum","state","timeout","status":[...],"mark","zone","helper",
 * "orig":{"src","dst","sport","dport","packets","bytes"},"reply":{...}}
 *
 * "family" in both directions where they are of different ones (NAT64);
 * `type`, `code`, `id` instead of ports for ICMP; `srckey`, `dstkey` for GRE; neither where the
 * protocol has none. Counters only of what is counted (nf_conntrack_acct), "delta-time"
 * only where it keeps start times (nf_conntrack_timestamp). NULL: no memory.
 */
json_t *ct_format_json(const struct ct_view *v, struct sl_now now);

/*
 * An event of a connection, as the same object with {"event":"NEW"|"UPDATE"|"DESTROY","time"}
 * before, and with "changed":["STATE","STATUS","MARK"] after an UPDATE. Like the kernel, counters
 * and "delta-time" only of a DESTROY, and "timeout" is null when it is over. wall_offset_ns: from
 * the gateway's clock to the time of day.
 */
json_t *ct_format_event(const struct event *ev, const struct ct_view *v, uint64_t wall_offset_ns);

#endif
