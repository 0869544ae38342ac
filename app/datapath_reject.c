/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `reject`: the answers to refused packets. Each is built in a buffer of the pool and leaves on the
 * link on which the packet came, with its tags. How many there are in a second is limited for each
 * namespace and worker; what exceeds that, may not be answered or finds no buffer is dropped as it
 * were by `drop`, and counted apart.
 */
#include "datapath_rules.h"
#include "datapath_synproxy.h"

#include <rte_mbuf.h>

#include "answer.h"
#include "icmp_error.h"
#include "link_address.h"
#include "siit.h"
#include "tcp_reset.h"

/* Codes of a destination unreachable, by enum rule_icmpx. */
static const uint8_t icmpx_code[][2] = {
	[RULE_ICMPX_NO_ROUTE] = {0, 0},
	[RULE_ICMPX_PORT_UNREACHABLE] = {3, 4},
	[RULE_ICMPX_HOST_UNREACHABLE] = {1, 3},
	[RULE_ICMPX_ADMIN_PROHIBITED] = {13, 1},
};

/* So much of a second's answers may come at once. */
#define BURST_SHARE 20u

/*
 * One more answer now? The next one is due a fixed time after the last (the generic cell rate
 * algorithm), and may be early by a burst.
 */
static bool
within_rate(struct worker *w, const struct netns *ns)
{
	uint64_t *due = &ns->counters[w->index].answer_due;
	uint32_t rate = netns_knobs(ns)->reject_rate;
	uint64_t step, now = w->now.ns;

	if (rate == 0)
		return false;
	step = SL_NSEC_PER_SEC / rate;
	if ((int64_t)(*due - now) > (int64_t)(SL_NSEC_PER_SEC / BURST_SHARE))
		return false;
	*due = ((int64_t)(*due - now) > 0 ? *due : now) + step;
	return true;
}

/* Of the link's addresses that which its packets are sent from; without one, the address that the
 * packet was for. */
static struct tuple_addr
source(const struct pkt *p)
{
	struct tuple_addr to = answer_src(p);
	const struct link_address *a = link_address(p->in, p->tuple.family, &to);

	return a != NULL ? a->addr : answer_dst(p);
}

/* An IPv4 packet of a NAT64 connection, which the rules see as one of IPv6. */
static void
as_ip4(struct icmp_error *e)
{
	e->type = ICMP6_UNREACHABLE;
	if (siit_error_type(TUPLE_IPV6, &e->type, &e->code))
		return;
	e->type = ICMP_UNREACHABLE;
	e->code = icmpx_code[RULE_ICMPX_ADMIN_PROHIBITED][0];
}

static struct icmp_error
unreachable(const struct pkt *p, const struct rule_reject *reject)
{
	bool ip6 = p->tuple.family == TUPLE_IPV6;
	struct icmp_error e = {.type = ip6 ? ICMP6_UNREACHABLE : ICMP_UNREACHABLE,
		.code = reject->code};

	if (reject->type == RULE_REJECT_ICMPX)
		e.code = icmpx_code[reject->code][ip6];
	else if (reject->type == RULE_REJECT_ICMPV6 && !ip6)
		as_ip4(&e);
	return e;
}

/* Who was answered by a cookie takes a RST only with the number that it has acknowledged, which the
 * SYN that was made of its ACK still has. */
static struct pkt
as_it_came(const struct worker *w, const struct pkt *p)
{
	struct pkt came = *p;

	if (datapath_synproxy_proved(w, p))
		came.tcp_flags = PKT_TCP_ACK;
	return came;
}

bool
datapath_reset(struct worker *w, const struct pkt *p)
{
	const struct pkt came = as_it_came(w, p);
	struct rte_mbuf *m;

	if (!tcp_reset_allowed(&came) || !within_rate(w, p->ns))
		return false;
	m = rte_pktmbuf_alloc(w->gw->pool);
	if (m == NULL)
		return false;
	if (tcp_reset_write(m, &came)) {
		datapath_send(w, p->ns, p->in, m);
		return true;
	}
	rte_pktmbuf_free(m);
	return false;
}

/* The whole frame. NULL: no buffer for it. */
static struct rte_mbuf *
write_error(struct worker *w, const struct pkt *p, const struct icmp_error *e)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->gw->pool);

	if (m == NULL || icmp_error_write(m, p, e))
		return m;
	rte_pktmbuf_free(m);
	return NULL;
}

bool
datapath_icmp_error(struct worker *w, const struct pkt *p, struct icmp_error *e)
{
	struct rte_mbuf *m;

	e->src = source(p);
	if (!icmp_error_allowed(p, e) || !within_rate(w, p->ns))
		return false;
	m = write_error(w, p, e);
	if (m != NULL)
		datapath_send(w, p->ns, p->in, m);
	return m != NULL;
}

struct rte_mbuf *
datapath_unreachable(struct worker *w, const struct pkt *p)
{
	static const struct rule_reject host = {
		.type = RULE_REJECT_ICMPX, .code = RULE_ICMPX_HOST_UNREACHABLE};
	struct icmp_error e = unreachable(p, &host);

	e.src = source(p);
	return icmp_error_allowed(p, &e) ? write_error(w, p, &e) : NULL;
}

void
datapath_send_error(
	struct worker *w, struct netns *ns, const struct link *link, struct rte_mbuf *m)
{
	if (within_rate(w, ns))
		datapath_send(w, ns, link, m);
	else
		rte_pktmbuf_free(m);
}

void
datapath_no_route(struct worker *w, const struct pkt *p)
{
	static const struct rule_reject network = {
		.type = RULE_REJECT_ICMPX, .code = RULE_ICMPX_NO_ROUTE};
	struct icmp_error e = unreachable(p, &network);

	datapath_icmp_error(w, p, &e);
}

#define ICMP6_CODE_ADDRESS 3

void
datapath_exhausted(struct worker *w, const struct pkt *p, bool nat64)
{
	static const struct rule_reject prohibited = {
		.type = RULE_REJECT_ICMPX, .code = RULE_ICMPX_ADMIN_PROHIBITED};
	struct icmp_error e = unreachable(p, &prohibited);

	if (nat64) /* RFC 6146 3.5.1 */
		e.code = ICMP6_CODE_ADDRESS;
	datapath_icmp_error(w, p, &e);
}

enum sl_drop
datapath_reject(struct worker *w, struct pkt *p, const struct rule_reject *reject)
{
	struct icmp_error e;
	bool sent;

	if (reject->type == RULE_REJECT_TCP_RESET) {
		sent = datapath_reset(w, p);
	} else {
		e = unreachable(p, reject);
		sent = datapath_icmp_error(w, p, &e);
	}
	return sent ? SL_DROP_RULE_REJECT : SL_DROP_RULE_REJECT_SILENT;
}
