/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits in the gateway: what a rule's `ct count` and `limit rate` (lib/rules) ask of
 * lib/connlimit, which does not know rules; and what of a connection's end is lib/connlimit's.
 */
#ifndef RULE_LIMITS_H
#define RULE_LIMITS_H

#include "gateway.h"
#include "ruleset.h"

struct ct_entry;
struct ct_thread;
struct limits_ahead;
struct worker;
struct sl_err;

/* ---- control ---- */

/* Makes gw->limits, beside gw->ct. 0 or -errno. */
int limits_create(struct gateway *gw, const struct gateway_config *config, struct sl_err *err);

/* rules_ops.attach and detach of RULE_CT_COUNT and RULE_LIMIT. A count begins at 0 with its rule,
 * and a rate with full buckets, if that takes no other's place (rule.before): connections from
 * before are not in it, and are never subtracted. */
int limits_attach(struct gateway *gw, struct netns *ns, const struct rule *r,
	const struct rule_item *item, void **object, struct sl_err *err);
void limits_detach(struct gateway *gw, const struct rule_item *item, void *object);

/* init's sluice.connlimit_max is about to be this. 0 or -errno. */
int limits_set_max(struct gateway *gw, uint32_t keys, struct sl_err *err);

/* ---- worker ---- */

/* For worker.dp.ahead; freed with free(). NULL: no memory. */
struct limits_ahead *limits_ahead_new(void);

/* Fetches ahead what limits_weigh() will touch of packet i of the burst, when that seems to open a
 * connection: after its lookup has matched. For each packet whose rules count (ruleset.n_counts),
 * every burst. */
void limits_ahead(struct worker *w, unsigned int i);

/* rules_ops.weigh; app: struct gateway. */
enum rules_weight limits_weigh(
	void *app, const struct rule_item *item, void *object, struct rules_packet *k);

/*
 * A SYN that may open a closed connection anew (PKT_CT_AGAIN) is weighed as that of a new one, and
 * once, however often it is repeated: whether it is to be now. What it was charged is given back
 * when the rules refuse it.
 */
bool limits_weigh_again(const struct pkt *p);
void limits_refused(struct gateway *gw, struct ct_thread *t, const struct pkt *p);

/* For ct_ops of the same names; app: struct gateway. */
void limits_destroyed(void *app, struct ct_thread *t, struct ct_entry *const e[], unsigned int n);
void limits_aborted(void *app, struct ct_thread *t, struct ct_entry *e);

#endif
