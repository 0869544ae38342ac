/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet is a copy of a template with a few fields set: VLAN, client address and port, sequence
 * numbers. A template carries the unfolded sums of all its other bytes, so that a checksum is the
 * stored sum plus the fields set, folded.
 *
 * All state is a queue's own and a queue is polled by one worker, so nothing is shared but the
 * templates, which are constant.
 */
#include "generator.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>
#include <rte_prefetch.h>
#include <rte_tcp.h>

#include "err.h"
#include "generator_options.h"
#include "generator_template.h"
#include "mem.h"
#include "pkt.h"
#include "port.h"

#define BURST   32u
#define STRIDES 16u

/* As pktgen-scripts/connlimit-probe.pkt has them. */
#define PROBE_PORT  2000u
#define PROBE_PORTS 61u
#define PROBE_SEQ   0x12345678u

/* A queue that was not polled for a while catches up with this much of its rate. */
#define CATCH_UP_MS 10u

/* Bits of fraction of a time in cycles. */
#define FRACTION 16u

enum step {
	STEP_SYN,
	STEP_SYN_ACK,
	STEP_ACK,
	STEP_REQUEST,
	STEP_REQUEST_ACK,
	STEP_RESPONSE,
	STEP_RESPONSE_ACK,
	STEP_FLOOD,
	STEPS,
};

static const struct gen_segment tcp_segments[STEPS] = {
	[STEP_SYN] = {PKT_TCP_SYN, GEN_CLIENT, false, STEP_SYN_ACK},
	[STEP_SYN_ACK] = {PKT_TCP_SYN | PKT_TCP_ACK, GEN_SERVER, false, STEP_ACK},
	[STEP_ACK] = {PKT_TCP_ACK, GEN_CLIENT, false, STEP_REQUEST},
	[STEP_REQUEST] = {PKT_TCP_PSH | PKT_TCP_ACK, GEN_CLIENT, true, STEP_REQUEST_ACK},
	[STEP_REQUEST_ACK] = {PKT_TCP_ACK, GEN_SERVER, false, STEP_RESPONSE},
	[STEP_RESPONSE] = {PKT_TCP_PSH | PKT_TCP_ACK, GEN_SERVER, true, STEP_RESPONSE_ACK},
	[STEP_RESPONSE_ACK] = {PKT_TCP_ACK, GEN_CLIENT, false, STEP_REQUEST},
	[STEP_FLOOD] = {PKT_TCP_SYN, GEN_CLIENT, false, STEP_FLOOD},
};

static const struct gen_segment udp_segments[STEPS] = {
	[STEP_REQUEST] = {0, GEN_CLIENT, true, STEP_RESPONSE},
	[STEP_RESPONSE] = {0, GEN_SERVER, true, STEP_REQUEST},
	[STEP_FLOOD] = {0, GEN_CLIENT, true, STEP_FLOOD},
};

/* What a step does to a flow, beside its template. */
struct action {
	uint32_t ack_mask; /* 0: no acknowledgement number */
	uint32_t advance;  /* sequence numbers that the segment takes */
	uint16_t vlan;     /* of the first tenant */
	uint8_t from;
	uint8_t next;
};

struct flow {
	rte_be32_t addr;
	rte_be16_t port;
	uint16_t tenant : 12;
	uint16_t step : 4;
	uint32_t seq[2]; /* next one of each side */
};

struct queue {
	struct flow *flows;
	uint32_t n_flows;
	uint32_t at;   /* the flow that was visited last */
	uint32_t left; /* visits left of this round, in which each flow has one */
	uint32_t round;
	uint32_t stride[STRIDES]; /* coprime with n_flows: rounds visit in different orders */
	uint32_t flood_tenant;
	uint32_t probed; /* of each tenant */
	uint32_t ratio_sum;
	uint64_t random;
	uint64_t due; /* when the next packet is due: TSC cycles << FRACTION */
} __rte_cache_aligned;

struct generator {
	bool tcp;
	bool probe;      /* the flood counts on instead of being random */
	uint32_t ratio;  /* percent of the packets that are flood */
	uint32_t prefix; /* last 32 bits, host order */
	uint32_t host_mask;
	uint32_t flood_tenants;
	uint64_t mbuf_flags;
	uint64_t cost;     /* cycles << FRACTION from packet to packet of a queue; 0: no limit */
	uint64_t catch_up; /* cycles << FRACTION */
	struct rte_mempool *pool;
	struct sl_region memory; /* flows of all queues */
	struct action action[STEPS];
	struct gen_template tmpl[STEPS];
	struct queue queue[];
};

/* The values of one packet, in network order. */
struct fields {
	rte_be32_t addr;
	rte_be32_t seq, ack;
	rte_be16_t port;
	rte_be16_t tci;
};

/* ---- packets ---- */

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t
next_random(uint64_t *s)
{
	uint64_t z = (*s += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint16_t
fold(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)~sum;
}

static inline void
put16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void
put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void
write_packet(const struct generator *g, enum step step, const struct fields *f, struct rte_mbuf *m)
{
	const struct gen_template *t = &g->tmpl[step];
	uint8_t *d = rte_pktmbuf_mtod(m, uint8_t *);
	uint64_t sum = (uint64_t)t->l4_sum + f->addr + f->port;
	uint16_t csum;

	m->data_len = t->len;
	m->pkt_len = t->len;
	m->ol_flags = g->mbuf_flags;
	rte_memcpy(d, t->frame, t->len);
	if (t->tagged)
		put16(d + sizeof(struct rte_ether_hdr), f->tci);
	put32(d + t->addr_off, f->addr);
	put16(d + t->port_off, f->port);
	if (t->ip_csum_off != 0)
		put16(d + t->ip_csum_off, fold((uint64_t)t->ip_sum + f->addr));
	if (g->tcp) {
		put32(d + t->l4_off + offsetof(struct rte_tcp_hdr, sent_seq), f->seq);
		put32(d + t->l4_off + offsetof(struct rte_tcp_hdr, recv_ack), f->ack);
		csum = fold(sum + f->seq + f->ack);
	} else {
		csum = fold(sum);
		if (csum == 0)
			csum = UINT16_MAX; /* 0 would mean that there is none (RFC 768) */
	}
	put16(d + t->csum_off, csum);
}

/* Clients and ports count on together: 61 is prime and there are 2^n clients, so each client comes
 * with each port. A connection's SYN is always the same, as if it were sent again. */
static void
set_probe(const struct generator *g, const struct queue *q, struct fields *f)
{
	f->addr = rte_cpu_to_be_32(g->prefix | (q->probed & g->host_mask));
	f->port = rte_cpu_to_be_16((uint16_t)(PROBE_PORT + q->probed % PROBE_PORTS));
	f->seq = rte_cpu_to_be_32(PROBE_SEQ);
}

static inline void
write_flood(struct generator *g, struct queue *q, struct rte_mbuf *m)
{
	uint64_t r = next_random(&q->random);
	uint16_t port = ((r >> 32) & (GEN_FLOW_PORT - 1)) | 1024;
	struct fields f = {
		.addr = rte_cpu_to_be_32(g->prefix | ((uint32_t)r & g->host_mask)),
		.seq = (uint32_t)(r >> 16),
		.port = rte_cpu_to_be_16(port),
		.tci = rte_cpu_to_be_16((uint16_t)(g->action[STEP_FLOOD].vlan + q->flood_tenant)),
	};

	if (unlikely(g->probe))
		set_probe(g, q, &f);
	if (++q->flood_tenant == g->flood_tenants) {
		q->flood_tenant = 0;
		q->probed++;
	}
	write_packet(g, STEP_FLOOD, &f, m);
}

static inline void
write_segment(struct generator *g, struct flow *flow, struct rte_mbuf *m)
{
	const struct action *a = &g->action[flow->step];
	struct fields f = {
		.addr = flow->addr,
		.seq = rte_cpu_to_be_32(flow->seq[a->from]),
		.ack = rte_cpu_to_be_32(flow->seq[a->from ^ 1] & a->ack_mask),
		.port = flow->port,
		.tci = rte_cpu_to_be_16((uint16_t)(a->vlan + flow->tenant)),
	};

	write_packet(g, flow->step, &f, m);
	flow->seq[a->from] += a->advance;
	flow->step = a->next & 0xf;
}

static inline struct flow *
next_flow(struct queue *q)
{
	if (q->left == 0) {
		q->left = q->n_flows;
		q->round++;
	}
	q->left--;
	q->at += q->stride[q->round % STRIDES];
	if (q->at >= q->n_flows)
		q->at -= q->n_flows;
	return &q->flows[q->at];
}

/* Spreads the flood's share evenly. */
static inline bool
flood_is_next(const struct generator *g, struct queue *q)
{
	q->ratio_sum += g->ratio;
	if (q->ratio_sum < 100)
		return false;
	q->ratio_sum -= 100;
	return true;
}

/* ---- port_ops ---- */

/* How many of n packets are due. */
static inline uint16_t
count_due(const struct generator *g, struct queue *q, uint16_t n)
{
	uint64_t now, due;
	uint16_t i;

	if (g->cost == 0)
		return n;
	now = rte_rdtsc() << FRACTION;
	if ((int64_t)(now - q->due) > (int64_t)g->catch_up)
		q->due = now - g->catch_up;
	for (i = 0, due = q->due; i < n && (int64_t)(now - due) >= 0; i++)
		due += g->cost;
	return i;
}

static uint16_t
generator_rx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct generator *g = port->priv;
	struct queue *q = &g->queue[queue];
	struct flow *flow[BURST];
	uint16_t i;

	n = count_due(g, q, RTE_MIN(n, BURST));
	if (n == 0 || rte_pktmbuf_alloc_bulk(g->pool, m, n) != 0)
		return 0;
	q->due += n * g->cost;
	for (i = 0; i < n; i++) {
		flow[i] = flood_is_next(g, q) ? NULL : next_flow(q);
		rte_prefetch0(flow[i]);
	}
	for (i = 0; i < n; i++) {
		if (flow[i] == NULL)
			write_flood(g, q, m[i]);
		else
			write_segment(g, flow[i], m[i]);
	}
	return n;
}

static uint16_t
generator_tx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	(void)port;
	(void)queue;
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static void
generator_close(struct port *port)
{
	struct generator *g = port->priv;

	sl_region_release(&g->memory);
	free(g);
	port->priv = NULL;
}

static const struct port_ops generator_ops = {
	.rx = generator_rx,
	.tx = generator_tx,
	.close = generator_close,
};

/* ---- steps ---- */

static void
build_steps(struct generator *g, const struct gen_options *o)
{
	const struct gen_segment *segments = o->udp ? udp_segments : tcp_segments;
	const struct gen_vlans *vlans;
	unsigned int i;

	for (i = 0; i < STEPS; i++) {
		struct gen_segment s = segments[i];
		struct action *a = &g->action[i];

		vlans = s.from == GEN_CLIENT ? &o->vlans : &o->peer_vlans;
		if (i == STEP_FLOOD) {
			vlans = &o->flood_vlans;
			s.payload |= gen_only_opens(o) && o->size > gen_size_min(o);
		}
		a->advance = gen_template_build(&g->tmpl[i], o, &s, vlans->first != 0);
		a->advance += (s.flags & PKT_TCP_SYN) != 0;
		a->ack_mask = s.flags & PKT_TCP_ACK ? UINT32_MAX : 0;
		a->vlan = vlans->first;
		a->from = s.from;
		a->next = (uint8_t)s.next;
	}
}

/* ---- queues and flows ---- */

static uint32_t
gcd(uint32_t a, uint32_t b)
{
	while (b != 0) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Flow number k of a tenant: addresses are used up first, then each gets one port more. */
static void
init_flow(struct flow *f, const struct gen_options *o, struct queue *q, uint32_t number)
{
	uint32_t tenants = gen_vlan_count(&o->vlans), k = number / tenants;
	uint64_t hosts = gen_hosts(o), host = k % hosts, r = next_random(&q->random), mix = host;
	uint32_t port = (uint32_t)(k / hosts + next_random(&mix)) & (GEN_FLOW_PORT - 1);

	*f = (struct flow){
		.addr = rte_cpu_to_be_32(gen_first_host(o) + (uint32_t)host),
		.port = rte_cpu_to_be_16((uint16_t)(GEN_FLOW_PORT | port)),
		.tenant = number % tenants & 0xfff,
		.step = o->udp ? STEP_REQUEST : STEP_SYN,
		.seq = {(uint32_t)r, (uint32_t)(r >> 32)},
	};
}

static void
init_queue(struct queue *q, const struct gen_options *o, unsigned int index, unsigned int n_queues)
{
	uint32_t i;

	q->random = o->seed;
	for (i = 0; i <= index; i++)
		q->random = next_random(&q->random);
	q->due = rte_rdtsc() << FRACTION;
	for (i = 0; i < q->n_flows; i++)
		init_flow(&q->flows[i], o, q, index + i * n_queues);
	for (i = 0; i < STRIDES && q->n_flows != 0; i++) {
		q->stride[i] = (uint32_t)(next_random(&q->random) % q->n_flows);
		while (gcd(q->stride[i], q->n_flows) != 1)
			q->stride[i]++;
	}
}

static int
init_queues(struct generator *g, const struct gen_options *o, unsigned int n, struct sl_err *err)
{
	uint32_t flows = gen_only_opens(o) ? 0 : (uint32_t)o->flows;
	size_t bytes = flows * sizeof(struct flow);
	struct flow *next;
	unsigned int i;
	int ret;

	if (flows != 0 && flows < n)
		return sl_refuse(
			err, EINVAL, "generator: flows=%u: each of %u queues needs one", flows, n);
	if (flows != 0) {
		ret = sl_region_reserve(&g->memory, bytes, err);
		if (ret == 0)
			ret = sl_region_grow(&g->memory, bytes, err);
		if (ret < 0)
			return ret;
	}
	next = (struct flow *)(void *)g->memory.base;
	for (i = 0; i < n; i++) {
		g->queue[i].flows = next;
		g->queue[i].n_flows = flows / n + (i < flows % n);
		init_queue(&g->queue[i], o, i, n);
		if (next != NULL)
			next += g->queue[i].n_flows;
	}
	return 0;
}

static void
init_generator(struct generator *g, const struct gen_options *o, unsigned int n_queues)
{
	g->tcp = !o->udp;
	g->ratio = gen_only_opens(o) ? 100 : o->kind == GEN_FLOWS ? 0 : (uint32_t)o->ratio;
	g->probe = o->kind == GEN_PROBE;
	g->prefix = gen_prefix_low(o);
	g->host_mask = o->host_mask;
	g->flood_tenants = gen_vlan_count(&o->flood_vlans);
	g->mbuf_flags = o->csum ? RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD : 0;
	g->catch_up = (rte_get_tsc_hz() * CATCH_UP_MS / 1000) << FRACTION;
	if (o->rate != 0)
		g->cost = (rte_get_tsc_hz() << FRACTION) * n_queues / o->rate;
	build_steps(g, o);
}

int
generator_open(struct gateway *gw, struct port *port, const char *devargs, struct sl_err *err)
{
	uint16_t room = rte_pktmbuf_data_room_size(gw->pool) - RTE_PKTMBUF_HEADROOM;
	struct gen_options o;
	struct generator *g;
	size_t bytes;
	int ret;

	ret = gen_options_parse(&o, devargs, err);
	if (ret < 0)
		return ret;
	if (o.size > room)
		return sl_refuse(err, EINVAL,
			"generator: size=%" PRIu64 ": packet buffers hold %u bytes", o.size, room);
	bytes = RTE_CACHE_LINE_ROUNDUP(sizeof(*g) + port->n_queues * sizeof(g->queue[0]));
	g = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
	if (g == NULL)
		return sl_refuse(err, ENOMEM, "generator: no memory");
	memset(g, 0, bytes);
	g->pool = gw->pool;
	init_generator(g, &o, port->n_queues);
	ret = init_queues(g, &o, port->n_queues, err);
	if (ret < 0) {
		sl_region_release(&g->memory);
		free(g);
		return ret;
	}
	port->ops = &generator_ops;
	port->priv = g;
	port->n_txq = 1; /* sending keeps no state: any number of workers at once */
	port->tx_shared = false;
	return 0;
}
