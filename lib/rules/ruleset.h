/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What workers evaluate: the rules of one namespace, immutable, published in netns->rules by RCU.
 *
 * A set has two parts. The program (program.h) is the matches of all chains, and with many rules a
 * classifier; it knows rules by number, links by name and nothing of the namespace, so that all
 * namespaces with equal rules share one. The set itself is the namespace's: a reference to each
 * rule, and through it the rule's counters and the objects of its limits and translations. Those
 * live as long as the rule, not as long as the set, and so survive a change of the other rules.
 *
 * Every set has a generation, unique in the process. A verdict that is constant over a flow's
 * direction is kept in the entry with the generation of the set that gave it (conntrack.h).
 *
 * What must be known of limits, NAT and logs is asked of the application, by struct rules_ops.
 */
#ifndef RULESET_H
#define RULESET_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "conntrack.h"
#include "pkt.h"
#include "rcu.h"
#include "rule.h"
#include "rule_list.h"

struct sl_err;
struct rules_packet;

/* What a limit says: whether the rule goes on behind it, `over` or not as it is written. REFUSED:
 * it cannot be counted; the packet is dropped for pkt.reason, which is set. */
enum rules_weight { RULES_MATCH, RULES_NO_MATCH, RULES_REFUSED };

/* What the application does for rules. Constant while there are rules. */
struct rules_ops {
	void *app;
	unsigned int threads; /* that count: the workers and control */

	/*
	 * Control: called once for each item of type RULE_LIMIT, RULE_CT_COUNT, RULE_NAT, RULE_LOG
	 * or RULE_HELPER_SET when its rule is compiled for the first time, in namespace `ns`.
	 * *object (NULL before) is what the calls below get; it belongs to the rule and goes by
	 * detach() a grace period after the last set with the rule. 0, or -errno with err filled:
	 * the whole set is refused, e.g. with -ENOTSUP "… not available".
	 */
	int (*attach)(void *app, struct netns *ns, const struct rule *r,
		const struct rule_item *item, void **object, struct sl_err *err);
	void (*detach)(void *app, const struct rule_item *item, void *object);

	/*
	 * Worker: weighs a packet by a RULE_LIMIT or RULE_CT_COUNT item, and counts it. Called at
	 * admission, when k->pkt->ct is the embryo, with k->again, and for a RULE_LIMIT without key
	 * on every packet that comes to it. Of items with a key, a packet of the other family never
	 * comes here. Everywhere else a connection counts as within its limits, since it was
	 * admitted.
	 */
	enum rules_weight (*weigh)(void *app, const struct rule_item *item, void *object,
		struct rules_packet *k);

	/* Worker: a packet came to a log statement. May be NULL. */
	void (*log)(void *app, const struct rule *r, const struct rule_log *log,
		const struct rules_packet *k);
};

enum rules_verdict { RULES_ACCEPT, RULES_DROP, RULES_REJECT, RULES_NAT };

/* What a chain said. */
struct rules_result {
	uint8_t verdict; /* enum rules_verdict */
	uint8_t reason;  /* RULES_DROP: enum sl_drop */
	bool policy;     /* no rule had a verdict: it is the policy */
	uint64_t handle; /* of the rule whose verdict it is, else 0 */
	const struct rule_item *item; /* RULES_REJECT, RULES_NAT: the statement */
	void *object;                 /* RULES_NAT: of attach() */
};

/*
 * A packet as rules see it. The caller fills the first part; rules_view() the second, from the
 * packet and its entry, and it must be called anew when the entry's tuples have changed.
 */
struct rules_packet {
	struct pkt *pkt;
	struct ct_thread *ct;
	/* link names, RULE_NAME_MAX + 1 bytes with zeros behind; NULL: none */
	const char *in_name, *out_name;
	struct sl_now now;
	unsigned int thread;   /* index of its counters */
	bool admission;        /* pkt->ct is an embryo, the caller's */
	bool again;            /* to be weighed though it is not: it may open a closed connection */

	uint8_t family; /* TUPLE_…; 0: not IP */
	uint8_t proto;
	uint8_t state;  /* one of RULE_STATE_… */
	bool has_ports; /* and sport and dport, host order; of TCP, UDP, UDP-Lite, SCTP */
	bool has_flags; /* tcp_flags */
	bool has_type;  /* icmp_type */
	uint8_t tcp_flags, icmp_type;
	uint16_t sport, dport;
	struct tuple_addr src, dst;
};

struct rules_program;

#define RULES_COUNTS 2u

struct ruleset {
	/* constant; the first line is what an established packet needs */
	uint32_t gen; /* 31 bits, not 0 */
	bool raw, nat; /* the chains that there are: nat is prerouting or postrouting */
	bool forward;  /* forward has rules, or drops all */
	bool varies;   /* forward must be evaluated for each packet */
	bool shared;   /* control only: the program is a registered one */
	uint8_t n_counts; /* in forward, when there are few: objects of all its RULE_CT_COUNT */
	struct rules_program *program;
	const struct rules_ops *ops;
	struct rule **rule; /* [n], in the order of chains and rules; a reference each */
	uint32_t n;
	uint32_t first[RULE_CHAINS + 1]; /* rule[first[c]] … rule[first[c + 1] - 1] are chain c */
	void *count[RULES_COUNTS];       /* for who fetches ahead what will be weighed */
	const struct rule_item *source;  /* the first RULE_NAT of postrouting, or NULL: likewise */
	void *source_object;
};

/* ---- control ---- */

/*
 * A set of the rules in the list, which may be changed afterwards. Two steps, so that the second,
 * which may take long with many rules, can be done by another thread:
 *
 *   ruleset_new()      on the control thread: takes references, counters and objects of new rules
 *   ruleset_compile()  on any thread, one at a time for a set
 *
 * NULL, or -errno, with err filled: no memory, or refused by rules_ops.attach().
 */
struct ruleset *ruleset_new(const struct rule_list *l, struct netns *ns,
	const struct rules_ops *ops, struct sl_err *err);
int ruleset_compile(struct ruleset *rs, struct sl_err *err);

/*
 * Of a list whose compilation takes long, RULES_LONG rules or more, the program, if there is none
 * of its kind: rules_program_share() compiles it, on any thread, and as long as the caller has
 * that, ruleset_compile() of an equal list only looks it up. NULL: there is nothing to be gained.
 */
#define RULES_LONG 512u
struct rules_program *ruleset_uncompiled(const struct rule_list *l);

/* Both in one. */
struct ruleset *ruleset_create(const struct rule_list *l, struct netns *ns,
	const struct rules_ops *ops, struct sl_err *err);

/* For attach(): the object of the same item of the rule whose counts this one goes on with, or
 * NULL. */
void *rule_object_before(const struct rule *r, const struct rule_item *item);

/* Frees a set that no worker can see any more; on the control thread. NULL is allowed. */
void ruleset_free(struct ruleset *rs);

/* Shows a compiled set to the workers in place of the one there is (NULL: none), and returns that;
 * the caller frees it a grace period later. */
struct ruleset *ruleset_publish(struct netns *ns, struct ruleset *rs);

/* How many programs there are, and bytes of all: what sharing saves can be seen by. */
void ruleset_memory(unsigned int *programs, uint64_t *bytes);

/* ---- worker ---- */

/* Fills the second part of *k. */
void rules_view(struct rules_packet *k);

/* Evaluates a chain. Statements act: counters, marks, zones, notrack, logs. */
void ruleset_eval(const struct ruleset *rs, enum rule_chain chain, struct rules_packet *k,
	struct rules_result *out);

/* A verdict as it is kept in an entry: the generation of its set, and whether it is to drop. */
static inline uint32_t
ruleset_stamp(const struct ruleset *rs, bool drop)
{
	return rs->gen << 1 | drop;
}

static inline bool
ruleset_stamp_current(const struct ruleset *rs, uint32_t stamp)
{
	return stamp >> 1 == rs->gen;
}

#endif
