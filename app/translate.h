/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Translation in the gateway: what a rule's statement (lib/rules) asks of lib/nat, which does not
 * know rules or links; and what of a connection's end is lib/nat's.
 */
#ifndef TRANSLATE_H
#define TRANSLATE_H

#include <stdbool.h>

#include <rte_branch_prediction.h>

#include "conntrack.h"
#include "gateway.h"
#include "nat.h"
#include "ready.h"
#include "station.h"

struct link;
struct link_address;
struct pkt;
struct rule;
struct rule_item;
struct rule_nat;
struct sl_err;
struct worker;

/* ---- control ---- */

/* Makes gw->nat, beside gw->ct. 0 or -errno. */
int translate_create(struct gateway *gw, const struct gateway_config *config, struct sl_err *err);

/*
 * For rules_ops.attach(): a statement of the namespace that is about to be published. Refuses one
 * that can never do anything: see nat_request_valid(); or that needs a link's address in a
 * namespace that has none. *object is a struct nat_pool_use, where it is to a pool, to be freed
 * with free(). 0 or -errno.
 */
int translate_attach(struct gateway *gw, struct netns *ns, const struct rule *r,
	const struct rule_item *item, void **object, struct sl_err *err);

/* The link has lost that address (a copy of it): what is masqueraded to it ends, in slices from a
 * grace period on. */
void translate_forget(struct gateway *gw, const struct link_address *address);

/* ---- worker ---- */

/* For worker.dp.nat_ahead; freed with free(). NULL: no memory. */
struct nat_ahead *translate_ahead_new(void);

/*
 * For packet i of the burst, in a namespace that translates, if it seems to open a connection:
 * fetches ahead what translate_commit() will touch. Begin after its lookup has matched, some
 * packets before finish.
 */
void translate_ahead_begin(struct worker *w, unsigned int i);
void translate_ahead_finish(struct worker *w, unsigned int i);

/*
 * Prerouting has come to this statement for the embryo p->ct. CT_OK; CT_DROP with pkt.reason when
 * the link that a redirect goes to has no address: then the embryo was given back.
 */
enum ct_verdict translate_dst(struct worker *w, struct pkt *p, const struct rule_nat *n);

/* Prerouting has come to no such statement, in a namespace that translates: see nat_inbound(). The
 * embryo of a host on the same side that is not admitted has CT_REFUSED then. */
enum ct_verdict translate_inbound(struct worker *w, struct pkt *p);

/* An embryo whose destination, on that link, refuses it: true, with CT_REFUSED, when it came from
 * there, too. */
bool translate_refused(struct pkt *p, uint16_t where);

/* The embryo goes to a host that was on that link when it began its mapping (nat_inbound()): out of
 * its ingress link, if that is it. */
void translate_turns_back(struct pkt *p, uint16_t where);

/* What postrouting asks for: the statement (NULL: none), the object of its attach(), and the link
 * that it is for, whose address masquerade takes. */
struct translate_source {
	const struct rule_nat *nat;
	const struct nat_pool_use *use;
	const struct link *out;
};

/* Whether others can reach an embryo with CT_REFUSED by the source that it gets. */
bool translate_reachable(const struct translate_source *src);

/* A packet of a connection with CT_REFUSED is dropped, or admitted anew. */
enum ct_verdict translate_again(struct worker *w, struct pkt *p);

/* The end of an admission: commits the embryo with that source, in a namespace that translates or
 * not. Verdicts as nat_commit() has them. */
enum ct_verdict translate_commit(
	struct worker *w, struct pkt *p, const struct translate_source *src);

static inline uint16_t
translate_status(const struct pkt *p)
{
	return __atomic_load_n(&p->ct->status, __ATOMIC_RELAXED);
}

/* Where a packet of a known connection leaves; what its translation is read from is fetched. */
static inline struct link *
translate_out(const struct pkt *p)
{
	const uint16_t translated = CT_SRC_NAT | CT_DST_NAT;
	uint16_t status = translate_status(p);

	if (unlikely((status & translated) && !(status & CT_NAT_READY)))
		ct_fetch_others(p);
	return station_out(p);
}

/* The stage behind forward: rewrites what is translated of the packets in w->dp.translate. */
void translate_burst(struct worker *w);

/*
 * Most packets: their entry has ready what they become. To whom a packet goes is written when it is
 * an answer, or was sent to the gateway. `status` is the entry's. False: another way must be found,
 * or the entry has gone.
 */
static __rte_always_inline bool
translate_ready(struct pkt *p, uint16_t status)
{
	const struct ct_entry *e = p->ct;
	struct nat_ready r;

	if (unlikely(!(status & CT_NAT_READY) || p->flags & PKT_ICMP_ERROR || p->train != NULL))
		return false;
	r = nat_ready_load(e, p->ct_dir);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (unlikely(__atomic_load_n(&e->gen, __ATOMIC_RELAXED) != p->ct_gen ||
		     !station_write_ready(p, status, r.mac)))
		return false;
	nat_ready_write(p, &r, status);
	return true;
}

/* Whether connections of the namespace may be translated. */
static inline bool
translate_on(const struct netns *ns)
{
	return __builtin_expect(sl_rcu_dereference(&ns->nat) != NULL, 0);
}

#endif
