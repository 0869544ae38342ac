/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>

#include "csum.h"
#include "err.h"
#include "gateway.h"
#include "generator.h"
#include "packet_read.h"
#include "parse.h"
#include "pkt.h"
#include "port.h"

#define POOL_SIZE 1023u
#define BURST     32u

static struct gateway gw;
static struct port port;

static void
open_generator(const char *devargs, uint16_t queues)
{
	struct sl_err err = {""};

	memset(&port, 0, sizeof(port));
	port.n_queues = queues;
	if (generator_open(&gw, &port, devargs, &err) != 0)
		fail_msg("%s: %s", devargs, err.msg);
	assert_true(port.n_txq >= 1 && !port.tx_shared);
}

static void
close_generator(void)
{
	port.ops->close(&port);
	assert_int_equal(rte_mempool_avail_count(gw.pool), POOL_SIZE);
}

static struct seen
take(struct rte_mbuf *m)
{
	struct seen s = packet_read(m);
	struct pkt p;

	/* The gateway reads the packet alike. */
	assert_int_equal(parse_frame(&p, m), SL_DROP_NONE);
	assert_int_equal(p.flags & (PKT_IP | PKT_L4_BAD), PKT_IP);
	assert_true(csum_l4_good(&p));
	assert_memory_equal(p.tuple.src.b, s.src, 16);
	assert_memory_equal(p.tuple.dst.b, s.dst, 16);
	assert_int_equal(rte_be_to_cpu_16(p.tuple.sport), s.sport);
	assert_int_equal(rte_be_to_cpu_16(p.tuple.dport), s.dport);
	assert_int_equal(p.outer_tci, s.vlan);
	assert_int_equal(port.ops->tx(&port, 0, &m, 1), 1);
	return s;
}

static void
poll_into(uint16_t queue, struct seen *out, unsigned int n)
{
	struct rte_mbuf *m[BURST];
	unsigned int have = 0, i;

	while (have < n) {
		unsigned int got =
			port.ops->rx(&port, queue, m, (uint16_t)RTE_MIN(BURST, n - have));

		assert_in_range(got, 1, BURST);
		for (i = 0; i < got; i++)
			out[have++] = take(m[i]);
	}
}

/* ---- options ---- */

static const struct {
	const char *devargs, *part;
} bad_options[] = {
	{"gen", "synflood, flows, mix or connlimit-probe"},
	{"gen,", "synflood, flows, mix or connlimit-probe"},
	{"gen,connlimit-probe,flows=4", "flows has no meaning for connlimit-probe"},
	{"gen,burst", "\"burst\""},
	{"gen,synflood,speed=1", "unknown option \"speed\""},
	{"gen,synflood,rate", "rate has no value"},
	{"gen,synflood,rate=", "rate has no value"},
	{"gen,synflood,rate=-1", "0 to 1000000000"},
	{"gen,synflood,rate=1000000001", "0 to 1000000000"},
	{"gen,synflood,rate=10k", "rate=10k"},
	{"gen,synflood,rate=99999999999999999999999", "0 to 1000000000"},
	{"gen,synflood,rate=1,rate=1", "rate is given twice"},
	{"gen,synflood,size=63", "64 to 1518"},
	{"gen,synflood,size=1519", "64 to 1518"},
	{"gen,synflood,size=70,dst=2001:db8::9", "84 to 1518"},
	{"gen,synflood,vlans=4095", "1 to 4094"},
	{"gen,synflood,vlans=0-4", "1 to 4094"},
	{"gen,synflood,vlans=9-3", "vlans=9-3"},
	{"gen,synflood,vlans=3-", "vlans=3-"},
	{"gen,synflood,vlans=1-2-3", "vlans=1-2-3"},
	{"gen,synflood,vlans=0000000000000000000000001", "vlans=0000"},
	{"gen,synflood,peer-vlans=4", "peer-vlans has no meaning for synflood"},
	{"gen,synflood,flows=4", "flows has no meaning for synflood"},
	{"gen,flows,ratio=50", "ratio has no meaning for flows"},
	{"gen,flows", "vlans and peer-vlans overlap"},
	{"gen,flows,vlans=1-9,peer-vlans=9-17", "vlans and peer-vlans overlap"},
	{"gen,flows,vlans=1-9,peer-vlans=10-17", "9 vlans but 8 peer-vlans"},
	{"gen,flows,vlans=1,peer-vlans=2,flows=0", "1 to 4194304"},
	{"gen,flows,vlans=1,flows=1", "each of 2 queues needs one"},
	{"gen,flows,vlans=1,prefix=10.0.0.0/32,flows=32769", "has addresses for 32768"},
	{"gen,mix,vlans=1,ratio=0", "1 to 99"},
	{"gen,mix,vlans=1,ratio=100", "1 to 99"},
	{"gen,synflood,prefix=10.0.0.0", "an address and a length"},
	{"gen,synflood,prefix=10.0.0.0/33", "an address and a length"},
	{"gen,synflood,prefix=2001:db8::/129", "an address and a length"},
	{"gen,synflood,prefix=10.0.0/8", "an address and a length"},
	{"gen,synflood,prefix=10.0.0.0/8,dst=2001:db8::1", "must both be IPv4 or both IPv6"},
	{"gen,synflood,prefix=192.0.0.0/8", "dst lies within prefix"},
	{"gen,synflood,prefix=0.0.0.0/0", "dst lies within prefix"},
	{"gen,synflood,prefix=2001:db8::/64,dst=2001:db8::5", "dst lies within prefix"},
	{"gen,synflood,dst=localhost", "an IPv4 or IPv6 address"},
	{"gen,synflood,dport=0", "1 to 65535"},
	{"gen,synflood,dport=65536", "1 to 65535"},
	{"gen,synflood,udp=2", "0 to 1"},
	{"gen,synflood,udp=yes", "0 to 1"},
	{"gen,synflood,,udp=1", "unknown option \"\""},
	{"gen,synflood,seed=18446744073709551616", "seed="},
};

static void
test_bad_options_are_refused_by_name(void **state)
{
	struct sl_err err;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(bad_options); i++) {
		memset(&port, 0, sizeof(port));
		port.n_queues = 2;
		err.msg[0] = '\0';
		if (generator_open(&gw, &port, bad_options[i].devargs, &err) != -EINVAL)
			fail_msg("%s: not refused", bad_options[i].devargs);
		if (strstr(err.msg, bad_options[i].part) == NULL)
			fail_msg("%s: \"%s\" lacks \"%s\"", bad_options[i].devargs, err.msg,
				bad_options[i].part);
		assert_null(port.ops);
	}
}

static void
test_size_beyond_the_buffers_is_refused(void **state)
{
	struct gateway small = gw;
	struct sl_err err = {""};
	(void)state;

	small.pool = rte_pktmbuf_pool_create("small", 63, 0, 0, RTE_PKTMBUF_HEADROOM + 512, 0);
	assert_non_null(small.pool);
	memset(&port, 0, sizeof(port));
	port.n_queues = 1;
	assert_int_equal(generator_open(&small, &port, "gen,synflood,size=513", &err), -EINVAL);
	assert_non_null(strstr(err.msg, "hold 512 bytes"));
	rte_mempool_free(small.pool);
}

/* ---- packets ---- */

static void
test_every_packet_is_well_formed(void **state)
{
	static const struct {
		const char *devargs;
		uint8_t proto, flags; /* flags that the first packet has */
		bool tagged, v4;
		unsigned int payload; /* of the largest */
	} cases[] = {
		{"gen,synflood", IPPROTO_TCP, PKT_TCP_SYN, false, true, 0},
		{"gen,synflood,size=200", IPPROTO_TCP, PKT_TCP_SYN, false, true, 146},
		{"gen,synflood,vlans=7,udp=1", IPPROTO_UDP, 0, true, true, 18},
		{"gen,synflood,dst=2001:db8::9", IPPROTO_TCP, PKT_TCP_SYN, false, false, 0},
		{"gen,synflood,vlans=1-3,prefix=2001:db8:7::/120,udp=1", IPPROTO_UDP, 0, true,
			false, 18},
		{"gen,flows,vlans=5", IPPROTO_TCP, PKT_TCP_SYN, true, true, 10},
		{"gen,flows,vlans=5,peer-vlans=6,size=1518", IPPROTO_TCP, PKT_TCP_SYN, true, true,
			1460},
		{"gen,flows,vlans=5,peer-vlans=6,size=1517", IPPROTO_TCP, PKT_TCP_SYN, true, true,
			1459},
		{"gen,flows,vlans=5,peer-vlans=6,udp=1,size=65", IPPROTO_UDP, 0, true, true, 19},
		{"gen,flows,vlans=5,peer-vlans=6,prefix=2001:db8:1::/48", IPPROTO_TCP, PKT_TCP_SYN,
			true, false, 6},
	};
	static struct seen s[7000];
	unsigned int i, k, payload;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		open_generator(cases[i].devargs, 1);
		poll_into(0, s, RTE_DIM(s));
		for (k = 0, payload = 0; k < RTE_DIM(s); k++) {
			assert_int_equal(s[k].proto, cases[i].proto);
			assert_int_equal(s[k].v4, cases[i].v4);
			payload = RTE_MAX(payload, s[k].payload);
		}
		assert_int_equal(payload, cases[i].payload);
		assert_int_equal(s[0].flags, cases[i].flags);
		assert_int_equal(s[0].tagged, cases[i].tagged);
		close_generator();
	}
}

/* Each client of each tenant opens each of its connections once, and then all over again. */
static void
test_probe_has_each_connection_in_turn(void **state)
{
	static struct seen s[2 * 16 * 61 * 2];
	static unsigned int times[2][16][61];
	unsigned int i, k, n;
	(void)state;

	memset(times, 0, sizeof(times));
	open_generator("gen,connlimit-probe,vlans=10-11", 1);
	poll_into(0, s, RTE_DIM(s));
	for (i = 0; i < RTE_DIM(s); i++) {
		assert_memory_equal(s[i].src, "\xc6\x12\x01", 3);
		assert_in_range(s[i].src[3], 0, 15);
		assert_in_range(s[i].sport, 2000, 2060);
		assert_int_equal(s[i].flags, PKT_TCP_SYN);
		n = ++times[s[i].vlan - 10][s[i].src[3]][s[i].sport - 2000];
		assert_int_equal(n, 1 + i / (2 * 16 * 61));
	}
	for (i = 0; i < 16; i++)
		for (k = 0; k < 61; k++)
			assert_true(times[0][i][k] == 2 && times[1][i][k] == 2);
	close_generator();
}

static void
test_flood_is_random_within_its_prefix(void **state)
{
	static struct seen s[4096];
	unsigned int i, low_half = 0, repeated = 0;
	(void)state;

	open_generator("gen,synflood,vlans=10-12,prefix=10.1.2.77/24,dst=192.0.2.9,dport=443", 1);
	poll_into(0, s, RTE_DIM(s));
	for (i = 0; i < RTE_DIM(s); i++) {
		assert_memory_equal(s[i].src, "\x0a\x01\x02", 3);
		assert_memory_equal(s[i].dst, "\xc0\x00\x02\x09", 4);
		assert_int_equal(s[i].dport, 443);
		assert_in_range(s[i].sport, 1024, 32767);
		assert_int_equal(s[i].vlan, 10 + i % 3);
		low_half += s[i].src[3] < 128;
		repeated += i > 0 && s[i].sport == s[i - 1].sport;
	}
	assert_in_range(low_half, 1792, 2304); /* eight standard deviations */
	assert_in_range(repeated, 0, 4);
	close_generator();
}

/* ---- flows ---- */

struct conversation {
	struct seen last;
	unsigned int packets, payload[2];
	bool used;
};

/* The conversation that a packet of a flow belongs to: client's address and port, and tenant. */
static struct conversation *
find_conversation(struct conversation *c, unsigned int n, const struct seen *s, uint16_t tenant)
{
	bool server = s->sport == 80;
	const uint8_t *client = server ? s->dst : s->src;
	uint16_t port_number = server ? s->dport : s->sport;
	unsigned int i;

	for (i = 0; i < n && c[i].used; i++) {
		const struct seen *l = &c[i].last;
		bool l_server = l->sport == 80;

		if (memcmp(l_server ? l->dst : l->src, client, 16) == 0 &&
			(l_server ? l->dport : l->sport) == port_number &&
			(l->vlan % 100) == tenant)
			return &c[i];
	}
	assert_true(i < n);
	c[i].used = true;
	return &c[i];
}

/* A TCP packet against the one before it in its conversation. */
static void
check_next(struct conversation *c, const struct seen *s)
{
	static const uint8_t flags[] = {PKT_TCP_SYN, PKT_TCP_SYN | PKT_TCP_ACK, PKT_TCP_ACK,
		PKT_TCP_PSH | PKT_TCP_ACK, PKT_TCP_ACK, PKT_TCP_PSH | PKT_TCP_ACK, PKT_TCP_ACK};
	static const bool server[] = {false, true, false, false, true, true, false};
	const struct seen *l = &c->last;
	unsigned int step = c->packets < 3 ? c->packets : 3 + (c->packets - 3) % 4;
	uint32_t end = l->seq + l->payload + ((l->flags & PKT_TCP_SYN) != 0);

	assert_int_equal(s->flags, flags[step]);
	assert_int_equal(s->sport == 80, server[step]);
	assert_int_equal(s->payload > 0, (s->flags & PKT_TCP_PSH) != 0);
	if (c->packets == 0) {
		assert_int_equal(s->ack, 0);
	} else if (server[step] != (l->sport == 80)) {
		assert_int_equal(s->ack, end);
		if (c->packets > 1)
			assert_int_equal(s->seq, l->ack);
	} else {
		assert_int_equal(s->seq, end);
		assert_int_equal(s->ack, l->ack);
	}
	c->payload[s->sport == 80] += s->payload;
	c->packets++;
	c->last = *s;
}

static void
test_flows_talk_as_tcp_does(void **state)
{
	static struct conversation c[60];
	static struct seen s[60 * 41];
	unsigned int i, per_tenant[3] = {0};
	(void)state;

	memset(c, 0, sizeof(c));
	open_generator("gen,flows,vlans=101-103,peer-vlans=201-203,flows=60,size=100", 1);
	poll_into(0, s, RTE_DIM(s));
	for (i = 0; i < RTE_DIM(s); i++) {
		uint16_t tenant = s[i].vlan % 100;

		assert_in_range(tenant, 1, 3);
		assert_int_equal(s[i].vlan / 100, s[i].sport == 80 ? 2 : 1);
		check_next(find_conversation(c, 60, &s[i], tenant), &s[i]);
	}
	for (i = 0; i < 60; i++) {
		assert_int_equal(c[i].packets, 41);
		assert_true(c[i].payload[0] > 0 && c[i].payload[1] > 0);
		per_tenant[c[i].last.vlan % 100 - 1]++;
	}
	for (i = 0; i < 3; i++)
		assert_int_equal(per_tenant[i], 20);
	close_generator();
}

static int
compare_clients(const void *a, const void *b)
{
	return memcmp(a, b, 6);
}

/* A /30 has two addresses: here each is used with 20,000 ports. */
static void
test_flows_are_distinct(void **state)
{
	static struct seen s[40000];
	static uint8_t client[40000][6];
	unsigned int i;
	(void)state;

	open_generator("gen,flows,vlans=1,peer-vlans=2,flows=40000,prefix=10.0.0.4/30,udp=1", 1);
	poll_into(0, s, RTE_DIM(s));
	for (i = 0; i < RTE_DIM(s); i++) {
		assert_in_range(s[i].src[3], 5, 6);
		assert_true(s[i].sport >= 0x8000);
		memcpy(client[i], s[i].src, 4);
		memcpy(client[i] + 4, &s[i].sport, 2);
	}
	qsort(client, RTE_DIM(client), sizeof(client[0]), compare_clients);
	for (i = 1; i < RTE_DIM(client); i++)
		assert_true(memcmp(client[i - 1], client[i], 6) != 0);
	poll_into(0, s, RTE_DIM(s)); /* the answers */
	for (i = 0; i < RTE_DIM(s); i++)
		assert_true(s[i].sport == 80 && s[i].vlan == 2);
	close_generator();
}

static void
test_queues_share_the_flows(void **state)
{
	static struct seen s[2][31];
	unsigned int i, k;
	(void)state;

	open_generator("gen,flows,vlans=1,peer-vlans=2,flows=61,udp=1", 2);
	poll_into(0, s[0], 31);
	poll_into(1, s[1], 30);
	for (i = 0; i < 31; i++)
		for (k = 0; k < 30; k++)
			assert_true(memcmp(s[0][i].src, s[1][k].src, 4) != 0);
	close_generator();
}

static void
test_mix_keeps_its_ratio(void **state)
{
	static struct seen s[10000];
	unsigned int i, flood = 0;
	(void)state;

	open_generator("gen,mix,vlans=1-4,peer-vlans=11-14,flood-vlans=2-3,ratio=30,flows=100", 1);
	poll_into(0, s, RTE_DIM(s));
	for (i = 0; i < RTE_DIM(s); i++) {
		if (s[i].sport == 80 || s[i].sport >= 0x8000)
			continue;
		assert_int_equal(s[i].flags, PKT_TCP_SYN);
		assert_int_equal(s[i].vlan, 2 + flood % 2);
		flood++;
	}
	assert_int_equal(flood, 3000);
	close_generator();
}

/* ---- the port ---- */

static void
test_a_seed_gives_the_same_packets(void **state)
{
	static const char *const seed[] = {"seed=5", "seed=5", "seed=6"};
	static struct seen s[3][500];
	char devargs[128];
	unsigned int i;
	(void)state;

	for (i = 0; i < 3; i++) {
		snprintf(
			devargs, sizeof(devargs), "gen,mix,vlans=1-9,peer-vlans=11-19,%s", seed[i]);
		open_generator(devargs, 1);
		poll_into(0, s[i], 500);
		close_generator();
	}
	assert_memory_equal(s[0], s[1], sizeof(s[0]));
	assert_memory_not_equal(s[0], s[2], sizeof(s[0]));
}

/* With all buffers out there is nothing to receive, and no packet of a flow is skipped. */
static void
test_an_empty_pool_loses_nothing(void **state)
{
	static struct rte_mbuf *held[POOL_SIZE];
	static struct conversation c;
	static struct seen s[100];
	unsigned int i;
	struct rte_mbuf *m[BURST];
	(void)state;

	memset(&c, 0, sizeof(c));
	open_generator("gen,flows,vlans=1,peer-vlans=2,flows=1", 1);
	poll_into(0, s, 50);
	assert_int_equal(rte_pktmbuf_alloc_bulk(gw.pool, held, POOL_SIZE - BURST + 1), 0);
	assert_int_equal(port.ops->rx(&port, 0, m, BURST), 0);
	rte_pktmbuf_free_bulk(held, POOL_SIZE - BURST + 1);
	poll_into(0, s + 50, 50);
	for (i = 0; i < 100; i++)
		check_next(&c, &s[i]);
	close_generator();
}

/*
 * The clock of the test may stand still for long on a busy machine, so what must have come is
 * counted from the gaps between polls, each for at most the 10 ms that a queue catches up with.
 */
static void
test_rate_is_kept(void **state)
{
	const uint64_t hz = rte_get_tsc_hz(), gap_max = hz / 100;
	uint64_t begin, before, now, credit = 0;
	struct rte_mbuf *m[BURST];
	double least, most;
	unsigned int got = 0, n;
	(void)state;

	open_generator("gen,synflood,rate=400000", 2);
	while (port.ops->rx(&port, 1, m, 1) == 1)
		rte_pktmbuf_free(m[0]); /* what has come due since it was opened */
	begin = before = rte_rdtsc();
	do {
		now = rte_rdtsc();
		n = port.ops->rx(&port, 1, m, BURST);
		rte_pktmbuf_free_bulk(m, n);
		got += n;
		credit += RTE_MIN(now - before, gap_max);
		before = now;
	} while (now - begin < hz / 10 || n == BURST); /* ends with nothing left to catch up with */
	least = 200000.0 * (double)credit / (double)hz;
	most = 200000.0 * (double)(rte_rdtsc() - begin) / (double)hz;
	if (got + BURST < least || got > most + 2)
		fail_msg("%u packets, not %.0f to %.0f", got, least, most);
	usleep(100000);
	for (got = 0; (n = port.ops->rx(&port, 0, m, BURST)) == BURST; got += n)
		rte_pktmbuf_free_bulk(m, n);
	rte_pktmbuf_free_bulk(m, n);
	assert_in_range(got, 1000, 15000); /* 10 ms are 2,000; it was away for 100 */
	close_generator();
}

static void
test_checksum_flags(void **state)
{
	struct rte_mbuf *m;
	(void)state;

	open_generator("gen,synflood", 1);
	assert_int_equal(port.ops->rx(&port, 0, &m, 1), 1);
	assert_true(m->ol_flags == (RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD));
	take(m);
	close_generator();
	open_generator("gen,synflood,csum=0", 1);
	assert_int_equal(port.ops->rx(&port, 0, &m, 1), 1);
	assert_true(m->ol_flags == 0);
	take(m);
	close_generator();
}

static int
start_eal(void **state)
{
	/* EAL keeps the strings. */
	static char args[][20] = {"test_generator", "--no-huge", "--no-shconf", "--no-pci",
		"--no-telemetry", "-m", "64", "--lcores", "0@0", "--log-level=*:4"};
	char *argv[RTE_DIM(args) + 1] = {NULL};
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(args); i++)
		argv[i] = args[i];
	if (rte_eal_init(RTE_DIM(args), argv) < 0)
		return -1;
	gw.pool = rte_pktmbuf_pool_create("packets", POOL_SIZE, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	return gw.pool == NULL ? -1 : 0;
}

static int
stop_eal(void **state)
{
	(void)state;
	rte_mempool_free(gw.pool);
	return rte_eal_cleanup();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_options_are_refused_by_name),
		cmocka_unit_test(test_size_beyond_the_buffers_is_refused),
		cmocka_unit_test(test_every_packet_is_well_formed),
		cmocka_unit_test(test_probe_has_each_connection_in_turn),
		cmocka_unit_test(test_flood_is_random_within_its_prefix),
		cmocka_unit_test(test_flows_talk_as_tcp_does),
		cmocka_unit_test(test_flows_are_distinct),
		cmocka_unit_test(test_queues_share_the_flows),
		cmocka_unit_test(test_mix_keeps_its_ratio),
		cmocka_unit_test(test_a_seed_gives_the_same_packets),
		cmocka_unit_test(test_an_empty_pool_loses_nothing),
		cmocka_unit_test(test_rate_is_kept),
		cmocka_unit_test(test_checksum_flags),
	};

	return cmocka_run_group_tests(tests, start_eal, stop_eal);
}
