/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A SYN proxy between hundreds of clients on one port and a server on another, each port with a
 * worker of its own, so that both sides of a connection and its end meet on different threads. The
 * control thread flushes connections meanwhile. Cookies stay on: a client that is given a cookie
 * for one SYN, and is let in directly by the next, knows a number that its server does not. Run it
 * under address and thread sanitizer.
 *
 * Each segment says in its payload how far its sender is, so that its receiver can tell what
 * numbers it must have. What must hold:
 *   - numbers are those of the receiver's side, also where a client has begun anew
 *   - checksums are right
 *   - at the end no connection, no record and no buffer is left over
 *
 *     stress_synproxy [--seconds N] [--seed N]
 */
#include <event2/event.h>
#include <event2/thread.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>

#include "command.h"
#include "err.h"
#include "port.h"
#include "replay_eal.h"
#include "stress.h"
#include "synproxy_pool.h"
#include "task.h"
#include "tcp_limit.h"
#include "worker.h"

#define WORKERS    2u
#define FLOWS      512u
#define BUFFERS    1023u
#define QUEUE      4096u
#define PATIENCE   40u /* sends without an answer, after which a client begins anew */
#define FIRST_PORT 1000u
#define DATA_LEN   16u

enum { CLOSED, OPENING, OPEN };

/* How far a sender is, from the number of its SYN on. */
struct payload {
	uint32_t magic, isn, seq, ack; /* isn: the client's, of either direction */
};

/* A segment that is to be sent, or has come. */
struct segment {
	uint16_t flow;
	uint8_t flags;
	bool data;
	uint32_t seq, ack;
	struct payload load;
};

struct client {
	uint8_t state;
	unsigned int sends;
	uint32_t isn, peer; /* numbers of the SYNs: the client's, and the server's as it was told */
	uint32_t sent, got; /* octets */
};

struct side {
	struct sl_lock lock; /* of all below but the pool */
	struct rte_mempool *pool;
	const struct port_ops *device;
	uint64_t random;
	uint64_t opened, exchanged; /* clients */
	unsigned int head, tail;    /* server: answers that wait */
	struct segment queue[QUEUE];
};

static struct gateway *gw;
static struct event_base *base;
static struct side sides[2];
static struct client clients[FLOWS];
static unsigned int seconds = 2;
static uint64_t seed = 1;

/* ---- frames ---- */

struct frame {
	struct rte_ether_hdr eth;
	struct rte_ipv4_hdr ip;
	struct rte_tcp_hdr tcp;
	struct payload load;
} __attribute__((packed, aligned(2)));

static void
write_frame(struct rte_mbuf *m, unsigned int port, const struct segment *s)
{
	struct frame *f = rte_pktmbuf_mtod(m, struct frame *);
	rte_be16_t client = rte_cpu_to_be_16((uint16_t)(FIRST_PORT + s->flow));
	rte_be32_t near = rte_cpu_to_be_32(0x0a000001u), far = rte_cpu_to_be_32(0xc0000201u);
	uint16_t len = (uint16_t)(sizeof(*f) - (s->data ? 0 : DATA_LEN));

	m->data_len = len;
	m->pkt_len = len;
	memset(f, 0, sizeof(*f));
	f->eth.dst_addr.addr_bytes[5] = 1;
	f->eth.src_addr.addr_bytes[5] = 2;
	f->eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	f->ip.version_ihl = RTE_IPV4_VHL_DEF;
	f->ip.total_length = rte_cpu_to_be_16((uint16_t)(len - sizeof(f->eth)));
	f->ip.time_to_live = 64;
	f->ip.next_proto_id = IPPROTO_TCP;
	f->ip.src_addr = port == 0 ? near : far;
	f->ip.dst_addr = port == 0 ? far : near;
	f->tcp.src_port = port == 0 ? client : RTE_BE16(80);
	f->tcp.dst_port = port == 0 ? RTE_BE16(80) : client;
	f->tcp.sent_seq = rte_cpu_to_be_32(s->seq);
	f->tcp.recv_ack = rte_cpu_to_be_32(s->ack);
	f->tcp.data_off = sizeof(f->tcp) / 4 << 4;
	f->tcp.tcp_flags = s->flags;
	f->tcp.rx_win = RTE_BE16(60000);
	f->load = s->load;
	f->ip.hdr_checksum = rte_ipv4_cksum(&f->ip);
	f->tcp.cksum = rte_ipv4_udptcp_cksum(&f->ip, &f->tcp);
}

static bool
sum_is_right(const struct rte_mbuf *m)
{
	union {
		struct frame f;
		uint8_t bytes[sizeof(struct frame) + 40];
	} copy;
	rte_be16_t sum;

	REQUIRE(m->pkt_len <= sizeof(copy));
	memcpy(&copy, rte_pktmbuf_mtod(m, const void *), m->pkt_len);
	sum = copy.f.tcp.cksum;
	copy.f.tcp.cksum = 0;
	return rte_ipv4_udptcp_cksum(&copy.f.ip, &copy.f.tcp) == sum;
}

/* Options are what the proxy may have added; payload is at the end. */
static struct segment
read_frame(const struct rte_mbuf *m, unsigned int port)
{
	const struct frame *f = rte_pktmbuf_mtod(m, const struct frame *);
	uint32_t len = rte_be_to_cpu_16(f->ip.total_length);
	uint32_t headers = sizeof(f->ip) + (f->tcp.data_off >> 4) * 4u;
	struct segment s = {.flags = f->tcp.tcp_flags,
		.seq = rte_be_to_cpu_32(f->tcp.sent_seq),
		.ack = rte_be_to_cpu_32(f->tcp.recv_ack)};

	REQUIRE(m->pkt_len == sizeof(f->eth) + len && m->nb_segs == 1);
	REQUIRE(rte_ipv4_cksum(&f->ip) == 0 || rte_ipv4_cksum(&f->ip) == 0xffff);
	REQUIRE(sum_is_right(m));
	s.flow = (uint16_t)(rte_be_to_cpu_16(port == 0 ? f->tcp.dst_port : f->tcp.src_port) -
			    FIRST_PORT);
	REQUIRE(s.flow < FLOWS);
	s.data = len > headers;
	REQUIRE(!s.data || len - headers == DATA_LEN);
	if (s.data)
		memcpy(&s.load, (const uint8_t *)&f->ip + headers, sizeof(s.load));
	return s;
}

/*
 * ---- the server: its numbers follow from the client's ----
 *
 * Of a connection it keeps only which SYN it has heard last. What is of another is not answered, as
 * by a host that finds it outside of its windows: the client has begun anew meanwhile, and its
 * segment met the connection that an older one of its segments had opened.
 */

static uint32_t heard[FLOWS]; /* guarded by the side's lock */

static uint32_t
server_isn(uint32_t isn)
{
	uint64_t mixed = isn | UINT64_C(0x9e3779b97f4a7c15) << 32;

	return (uint32_t)next_random(&mixed);
}

static void
put(struct side *s, const struct segment *answer)
{
	s->queue[s->head++ % QUEUE] = *answer;
	if (s->head - s->tail > QUEUE)
		s->tail++;
}

static void
server_hears(struct side *s, const struct segment *in)
{
	struct segment out = {.flow = in->flow, .flags = PKT_TCP_ACK, .ack = in->seq + 1};
	uint32_t isn = in->load.isn, own = server_isn(isn);

	if (in->flags == PKT_TCP_SYN) {
		heard[in->flow] = in->seq;
		out.seq = server_isn(in->seq);
		out.flags |= next_random(&s->random) % 16 == 0 ? PKT_TCP_RST : PKT_TCP_SYN;
		put(s, &out);
	} else if (in->data && isn == heard[in->flow]) {
		REQUIRE(in->seq == isn + 1 + in->load.seq);
		REQUIRE(in->ack == own + 1 + in->load.ack);
		out.data = true;
		out.load = in->load;
		out.load.seq = in->load.ack;
		out.load.ack = in->load.seq + DATA_LEN;
		out.seq = own + 1 + out.load.seq;
		out.ack = isn + 1 + out.load.ack;
		put(s, &out);
	}
}

static bool
server_says(struct side *s, struct segment *out)
{
	if (s->tail == s->head)
		return false;
	*out = s->queue[s->tail++ % QUEUE];
	return true;
}

/* ---- the clients ---- */

static void
client_hears(struct side *s, const struct segment *in)
{
	struct client *c = &clients[in->flow];

	if (c->state == OPENING && in->flags == (PKT_TCP_SYN | PKT_TCP_ACK) &&
		in->ack == c->isn + 1) {
		c->state = OPEN;
		c->peer = in->seq;
		c->sends = c->sent = c->got = 0;
		s->opened++;
	} else if ((in->flags & PKT_TCP_RST) && c->state == OPEN && in->seq == c->peer + 1) {
		c->state = CLOSED;
	} else if (c->state == OPEN && in->data && in->load.isn == c->isn) {
		REQUIRE(in->seq == c->peer + 1 + in->load.seq);
		REQUIRE(in->ack == c->isn + 1 + in->load.ack);
		c->sends = 0;
		if (in->load.seq == c->got)
			c->got += DATA_LEN;
		if (in->load.ack == c->sent + DATA_LEN)
			c->sent += DATA_LEN;
		s->exchanged++;
	}
}

static bool
client_says(struct side *s, struct segment *out)
{
	uint64_t random = next_random(&s->random);
	struct client *c = &clients[random % FLOWS];

	if (c->state == CLOSED || ++c->sends > PATIENCE) {
		c->state = OPENING;
		c->sends = 0;
		c->isn = (uint32_t)(random >> 24);
	}
	*out = (struct segment){.flow = (uint16_t)(c - clients),
		.flags = PKT_TCP_SYN,
		.seq = c->isn};
	if (c->state == OPENING)
		return true;
	out->flags = PKT_TCP_ACK;
	out->seq = c->isn + 1 + c->sent;
	out->ack = c->peer + 1 + c->got;
	if (random >> 60 == 0) {
		out->flags |= PKT_TCP_RST;
		c->state = CLOSED;
	} else if (random >> 60 < 12) {
		out->data = true;
		out->load = (struct payload){0, c->isn, c->sent, c->got};
	}
	return true;
}

/* ---- ports ---- */

static uint16_t
side_rx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct side *s = port->priv;
	struct segment out;
	uint16_t i;

	(void)queue;
	n = RTE_MIN(n, 8);
	for (i = 0; i < n; i++) {
		bool some;

		sl_lock(&s->lock);
		some = port->index == 0 ? client_says(s, &out) : server_says(s, &out);
		sl_unlock(&s->lock);
		if (!some)
			break;
		m[i] = rte_pktmbuf_alloc(s->pool);
		REQUIRE(m[i] != NULL);
		write_frame(m[i], port->index, &out);
	}
	return i;
}

static uint16_t
side_tx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct side *s = port->priv;
	struct segment in;
	uint16_t i;

	(void)queue;
	for (i = 0; i < n; i++) {
		in = read_frame(m[i], port->index);
		rte_pktmbuf_free(m[i]);
		sl_lock(&s->lock);
		if (port->index == 0)
			client_hears(s, &in);
		else
			server_hears(s, &in);
		sl_unlock(&s->lock);
	}
	return n;
}

static void
side_close(struct port *port)
{
	struct side *s = port->priv;

	port->priv = NULL;
	s->device->close(port);
}

static void
open_side(unsigned int i)
{
	static const struct port_ops ops = {.rx = side_rx, .tx = side_tx, .close = side_close};
	char name[] = "p0", devargs[] = "net_null0,no-rx=1", pool[] = "side0";
	struct side *s = &sides[i];
	struct sl_err err;
	struct port *port;

	name[1] = devargs[8] = pool[4] = (char)('0' + i);
	REQUIRE(port_add(gw, name, devargs, 1, &err) == 0);
	port = port_find(gw, name);
	s->device = port->ops;
	s->random = seed * 2 + 77 + i;
	s->pool = rte_pktmbuf_pool_create(pool, BUFFERS, 0, 0, 512, SOCKET_ID_ANY);
	REQUIRE(s->pool != NULL && port->index == i && port->priv == NULL);
	port->priv = s;
	port->ops = &ops;
}

/* ---- start and end ---- */

static void
command(const char *line)
{
	struct sl_err err;
	json_t *result;

	REQUIRE(command_run_text(gw, line, &result, &err) == 0);
	json_decref(result);
}

static void
set_up(void)
{
	static const char *const lines[] = {"netns add t", "sysctl netns t sluice.syncookies=2",
		"sysctl netns t sluice.invalid=drop",
		"sysctl netns t nf_conntrack_tcp_loose=0", "link add a port p0 netns t",
		"link add b port p1 netns t peer a"};
	const struct gateway_config config = {.n_workers = WORKERS,
		.lcores = (const unsigned int[WORKERS]){1, 2},
		.buffers = 1023,
		.max_entries = 65536,
		.buckets = 8192};
	struct sl_err err;
	unsigned int i;

	REQUIRE(replay_eal_init(&err) == 0 && evthread_use_pthreads() == 0);
	base = event_base_new();
	REQUIRE(base != NULL && task_start(base, &err) == 0);
	REQUIRE(gateway_create(&config, &gw, &err) == 0);
	open_side(0);
	open_side(1);
	for (i = 0; i < RTE_DIM(lines); i++)
		command(lines[i]);
}

static void
one_round(void)
{
	static const char *const lines[] = {
		"conntrack flush netns t", "stats netns t", "conntrack count netns t"};

	command(lines[next_random(&seed) % RTE_DIM(lines)]);
	event_base_loop(base, EVLOOP_NONBLOCK);
	sl_rcu_synchronize();
	usleep(2000);
}

static void
check_end(void)
{
	struct tcp_count sum;
	unsigned int i;

	command("conntrack flush netns t");
	REQUIRE(ct_count(gw->ct) == 0);
	tcp_netns_totals(netns_find(gw->netns, "t")->tcp, &sum);
	REQUIRE(sum.proxied == 0 && sum.half_open == 0);
	REQUIRE(synproxy_pool_used(gw->synproxy) == 0);
	for (i = 0; i < 2; i++)
		REQUIRE(rte_mempool_avail_count(sides[i].pool) == BUFFERS);
	REQUIRE(rte_mempool_avail_count(gw->pool) == 1023);
	REQUIRE(sum.cookies_good > 0 && sides[0].exchanged > 0);
	printf("%" PRIu64 " opened, %" PRIu64 " segments exchanged, %" PRIu64 " cookies sent, "
	       "%" PRIu64 " valid, %" PRIu64 " invalid\n",
		sides[0].opened, sides[0].exchanged, sum.cookies_sent, sum.cookies_good,
		sum.cookies_bad);
}

static void
parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"seconds", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'r'},
		{0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			seconds = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == 'r')
			seed = strtoull(optarg, NULL, 10) | 1;
		else
			exit(2);
	}
}

static void *
run_worker(void *arg)
{
	worker_main(arg);
	return NULL;
}

int
main(int argc, char **argv)
{
	pthread_t thread[WORKERS];
	uint64_t end;
	unsigned int i;

	parse_options(argc, argv);
	set_up();
	for (i = 0; i < WORKERS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, run_worker, gw->workers[i]) == 0);
	end = sl_now_monotonic().ns + seconds * SL_NSEC_PER_SEC;
	while (sl_now_monotonic().ns < end)
		one_round();
	worker_stop_all(gw);
	for (i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	check_end();
	gateway_destroy(gw);
	for (i = 0; i < 2; i++)
		rte_mempool_free(sides[i].pool);
	task_stop();
	event_base_free(base);
	rte_eal_cleanup();
	return 0;
}
