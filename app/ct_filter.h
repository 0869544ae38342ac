/* SPDX-License-Identifier: BSD-3-Clause */
/* The filters of conntrack list, count, delete and flush, as conntrack(8) has them. */
#ifndef CT_FILTER_H
#define CT_FILTER_H

#include <jansson.h>

#include "conntrack.h"
#include "prefix.h"

struct ct_match {
	uint16_t fields; /* what is compared, CT_MATCH_… of ct_filter.c; 0: everything matches */
	uint8_t family, proto;
	struct prefix src, dst, reply_src, reply_dst; /* of the original and the reply direction */
	uint16_t sport, dport, zone;
	uint16_t icmp_id;
	uint8_t icmp_type, icmp_code;
	uint16_t status_set, status_clear;
	uint32_t mark, mark_mask;
	char state[24];
};

/* From the parameters of a request; "netns" is not looked at. 0 or -EINVAL: the message begins with
 * the parameter's name. */
int ct_match_parse(struct ct_match *m, const json_t *params, struct sl_err *err);

/* Whether it matches everything. */
bool ct_match_any(const struct ct_match *m);

/* For struct ct_filter; arg: a struct ct_match. */
bool ct_match(const struct ct_view *v, const void *arg);

#endif
