/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Evaluation of compiled sets: what single rules match; that a classifier changes nothing; that
 * equal rules are one program, and counters outlive a change of the other rules.
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_mbuf.h>

#include "program.h"
#include "rules.h"
#include "ruleset.h"

static struct rte_mbuf mbuf = {.pkt_len = 60};
static struct pkt pkt;
static struct rules_packet packet;
static struct netns ns;
static unsigned int attached;

static int
attach(void *app, struct netns *of, const struct rule *r, const struct rule_item *item,
	void **object, struct sl_err *err)
{
	(void)app;
	(void)of;
	(void)r;
	if (item->type == RULE_LOG)
		return sl_refuse(err, ENOTSUP, "log: not available");
	*object = &attached;
	attached++;
	return 0;
}

static void
detach(void *app, const struct rule_item *item, void *object)
{
	(void)app;
	(void)item;
	assert_ptr_equal(object, &attached);
	attached--;
}

/* The third packet and all after it are over a limit. */
static enum rules_weight
weigh(void *app, const struct rule_item *item, void *object, struct rules_packet *k)
{
	unsigned int *n = app;
	bool says_over = item->type == RULE_LIMIT ? item->limit.over : item->ct_count.over;

	(void)object;
	if (*n == UINT32_MAX) {
		k->pkt->reason = SL_DROP_CT_NETNS_FULL;
		return RULES_REFUSED;
	}
	return (++*n > 2) == says_over ? RULES_MATCH : RULES_NO_MATCH;
}

static unsigned int weighed;
static const struct rules_ops ops = {
	.app = &weighed, .threads = 2, .attach = attach, .detach = detach, .weigh = weigh};

static void
add(struct rule_list *l, enum rule_chain chain, const char *text)
{
	struct rule_error e;
	struct rule *r;

	if (rule_parse(text, strlen(text), chain, &r, &e) != 0)
		fail_msg("%s: column %u: %s", text, e.column, e.err.msg);
	assert_int_equal(rule_list_add(l, r), 0);
}

static struct ruleset *
compile(const struct rule_list *l)
{
	struct sl_err err;
	struct ruleset *rs = ruleset_create(l, &ns, &ops, &err);

	if (rs == NULL)
		fail_msg("%s", err.msg);
	return rs;
}

/* A TCP SYN from 10.0.0.1:1000 to 192.0.2.1:80, new. */
static void
default_packet(void)
{
	pkt = (struct pkt){.mbuf = &mbuf, .flags = PKT_IP, .ip_bytes = 40};
	packet = (struct rules_packet){.pkt = &pkt, .family = TUPLE_IPV4, .proto = IPPROTO_TCP,
		.state = RULE_STATE_NEW, .has_ports = true, .sport = 1000, .dport = 80,
		.has_flags = true, .tcp_flags = PKT_TCP_SYN, .in_name = "inside\0\0\0\0\0\0\0\0\0"};
	packet.src.w[0] = RTE_BE32(0x0a000001);
	packet.dst.w[0] = RTE_BE32(0xc0000201);
}

/* ---- single rules ---- */

static const struct {
	const char *text;
	bool matches;
} texts[] = {
	{"accept", true},
	{"ip saddr 10.0.0.1 accept", true},
	{"ip saddr 10.0.0.0/8 accept", true},
	{"ip saddr != 10.0.0.0/8 accept", false},
	{"ip saddr { 9.0.0.0/8, 10.0.0.1-10.0.0.3, 11.0.0.0/8 } accept", true},
	{"ip daddr 10.0.0.1 accept", false},
	{"ip6 saddr ::/0 accept", false},
	{"ip6 saddr != ::1 accept", false},
	{"tcp dport 80 accept", true},
	{"tcp dport != 80 accept", false},
	{"tcp dport { 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 80, 90 } accept", true},
	{"tcp dport { 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 81, 90 } accept", false},
	{"tcp sport 1-1000 accept", true},
	{"udp dport 80 accept", false},
	{"udp dport != 80 accept", false},
	{"meta l4proto tcp accept", true},
	{"meta l4proto != tcp accept", false},
	{"tcp flags syn / fin,syn,rst,ack accept", true},
	{"tcp flags ack accept", false},
	{"ct state new accept", true},
	{"ct state established,related accept", false},
	{"iifname \"inside\" accept", true},
	{"iifname \"outside\" accept", false},
	{"iifname != \"outside\" accept", true},
	{"oifname \"inside\" accept", false},
	{"oifname != \"inside\" accept", false}, /* there is none */
	{"meta mark 0 accept", true},
	{"icmp type echo-request accept", false},
};

static void
test_matches(void **state)
{
	struct rule_list *l;
	struct rules_result r;
	struct ruleset *rs;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(texts); i++) {
		l = rule_list_new();
		l->chain[RULE_FORWARD].drop = true;
		add(l, RULE_FORWARD, texts[i].text);
		rs = compile(l);
		default_packet();
		ruleset_eval(rs, RULE_FORWARD, &packet, &r);
		if ((r.verdict == RULES_ACCEPT) != texts[i].matches)
			fail_msg("%s", texts[i].text);
		assert_int_equal(r.policy, !texts[i].matches);
		assert_int_equal(r.handle, texts[i].matches);
		ruleset_free(rs);
		rule_list_free(l);
	}
}

/* Statements act and go on, and only as far as the matches before them hold. */
static void
test_statements(void **state)
{
	struct rule_list *l = rule_list_new();
	struct rules_result r;
	struct ruleset *rs;
	uint64_t packets, bytes;
	(void)state;

	add(l, RULE_FORWARD, "counter packets 10 bytes 100 meta mark set 7 tcp dport 81 "
			     "counter drop");
	add(l, RULE_FORWARD, "meta mark 7 reject with tcp reset");
	rs = compile(l);
	default_packet();
	packet.thread = 1;
	ruleset_eval(rs, RULE_FORWARD, &packet, &r);
	assert_int_equal(r.verdict, RULES_REJECT);
	assert_int_equal(r.handle, 2);
	assert_int_equal(r.item->reject.type, RULE_REJECT_TCP_RESET);
	rule_counter_read(l->chain[RULE_FORWARD].rule[0], 0, &packets, &bytes);
	assert_int_equal(packets, 11);
	assert_int_equal(bytes, 140);
	rule_counter_read(l->chain[RULE_FORWARD].rule[0], 1, &packets, &bytes);
	assert_int_equal(packets, 0);
	/* A reset is for TCP alone: others come to the policy. */
	packet.proto = IPPROTO_UDP;
	ruleset_eval(rs, RULE_FORWARD, &packet, &r);
	assert_true(r.policy && r.verdict == RULES_ACCEPT);
	ruleset_free(rs);
	rule_list_free(l);
}

static void
test_raw(void **state)
{
	struct rule_list *l = rule_list_new();
	struct rules_result r;
	struct ruleset *rs;
	(void)state;

	add(l, RULE_RAW, "ip saddr 10.0.0.1 ct original zone set 5");
	add(l, RULE_RAW, "tcp dport 80 notrack");
	add(l, RULE_RAW, "ip saddr 10.0.0.1 ct zone set 6");
	rs = compile(l);
	assert_true(rs->raw && !rs->forward && !rs->nat);
	default_packet();
	ruleset_eval(rs, RULE_RAW, &packet, &r);
	assert_true(pkt.zone_set && !(pkt.flags & PKT_UNTRACKED));
	assert_int_equal(pkt.tuple.zone, 5);
	assert_int_equal(pkt.zone_reply, 0);
	default_packet();
	packet.src.w[0] = 0;
	ruleset_eval(rs, RULE_RAW, &packet, &r);
	assert_true(!pkt.zone_set && pkt.flags & PKT_UNTRACKED);
	ruleset_free(rs);
	rule_list_free(l);
}

static void
test_limits(void **state)
{
	struct rule_list *l = rule_list_new();
	struct rules_result r;
	struct ruleset *rs;
	unsigned int i;
	(void)state;

	add(l, RULE_FORWARD, "ct count over 2 by ip saddr drop");
	rs = compile(l);
	assert_int_equal(attached, 1);
	default_packet();
	packet.admission = true;
	for (i = weighed = 0; i < 4; i++) {
		ruleset_eval(rs, RULE_FORWARD, &packet, &r);
		assert_int_equal(r.verdict, i < 2 ? RULES_ACCEPT : RULES_DROP);
	}
	packet.family = TUPLE_IPV6;
	ruleset_eval(rs, RULE_FORWARD, &packet, &r);
	assert_int_equal(r.verdict, RULES_ACCEPT);
	/* Behind admission all are within it, and none is weighed. */
	default_packet();
	ruleset_eval(rs, RULE_FORWARD, &packet, &r);
	assert_int_equal(r.verdict, RULES_ACCEPT);
	assert_int_equal(weighed, 4);
	weighed = UINT32_MAX;
	packet.admission = true;
	ruleset_eval(rs, RULE_FORWARD, &packet, &r);
	assert_int_equal(r.verdict, RULES_DROP);
	assert_int_equal(r.reason, SL_DROP_CT_NETNS_FULL);
	ruleset_free(rs);
	assert_int_equal(attached, 1);
	rule_list_free(l);
	assert_int_equal(attached, 0);
}

static void
test_refused(void **state)
{
	struct rule_list *l = rule_list_new();
	struct sl_err err;
	unsigned int programs;
	uint64_t bytes;
	(void)state;

	add(l, RULE_FORWARD, "ct count over 2 drop");
	add(l, RULE_FORWARD, "log");
	assert_null(ruleset_create(l, &ns, &ops, &err));
	assert_string_equal(err.msg, "rule \"log\": log: not available");
	rule_list_free(l);
	assert_int_equal(attached, 0);
	ruleset_memory(&programs, &bytes);
	assert_int_equal(programs, 0);
	assert_int_equal(bytes, 0);
}

/* ---- sharing ---- */

static void
test_shared(void **state)
{
	struct rule_list *a = rule_list_new(), *b = rule_list_new();
	struct ruleset *x, *y, *z;
	struct rules_result r;
	uint64_t packets, bytes;
	unsigned int programs;
	(void)state;

	add(a, RULE_FORWARD, "tcp dport 80 counter accept");
	add(b, RULE_FORWARD, "tcp dport 81 accept");
	assert_int_equal(rule_list_delete(b, 1), 0);
	add(b, RULE_FORWARD, "tcp dport 80 counter accept");
	x = compile(a);
	y = compile(b);
	assert_ptr_equal(x->program, y->program);
	assert_int_not_equal(x->gen, y->gen);
	default_packet();
	ruleset_eval(x, RULE_FORWARD, &packet, &r);
	add(a, RULE_FORWARD, "drop");
	z = compile(a);
	assert_ptr_not_equal(x->program, z->program);
	ruleset_eval(z, RULE_FORWARD, &packet, &r);
	ruleset_free(x);
	rule_counter_read(a->chain[RULE_FORWARD].rule[0], 0, &packets, &bytes);
	assert_int_equal(packets, 2);
	rule_counter_read(b->chain[RULE_FORWARD].rule[0], 0, &packets, &bytes);
	assert_int_equal(packets, 0);
	ruleset_free(y);
	ruleset_free(z);
	rule_list_free(a);
	rule_list_free(b);
	ruleset_memory(&programs, &bytes);
	assert_int_equal(programs, 0);
}

/* ---- the classifier ---- */

static uint64_t seed;

static unsigned int
pick(unsigned int n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned int)(seed >> 33) % n;
}

static void
random_match(FILE *f)
{
	static const char *const not[] = {"", "", "", "!= "};
	const char *n = not[pick(4)];

	switch (pick(9)) {
	case 0:
		fprintf(f, "ip saddr %s10.0.%u.0/%u ", n, pick(8), 22 + pick(3));
		break;
	case 1:
		fprintf(f, "ip daddr %s{ 10.1.0.%u, 10.1.1.%u-10.1.2.%u } ", n, pick(16), pick(16),
			pick(16));
		break;
	case 2:
		fprintf(f, "ip6 saddr %s2001:db8::%x:0/112 ", n, pick(8));
		break;
	case 3:
		fprintf(f, "ip6 daddr %s2001:db8::%x ", n, pick(16));
		break;
	case 4:
		fprintf(f, "%s dport %s%u-%u ", pick(2) ? "tcp" : "udp", n, pick(10),
			10 + pick(10));
		break;
	case 5:
		fprintf(f, "%s sport %s%u ", pick(2) ? "tcp" : "udp", n, pick(20));
		break;
	case 6:
		fprintf(f, "meta l4proto %s%s ", n, pick(2) ? "tcp" : "{ udp, icmp }");
		break;
	case 7:
		fprintf(f, "iifname %s\"link%u\" ", n, pick(4));
		break;
	default:
		fprintf(f, "tcp flags %s ", pick(2) ? "syn" : "ack");
		break;
	}
}

static void
random_rule(struct rule_list *l)
{
	static const char *const verdicts[] = {"", "", "", "accept", "drop", "reject"};
	unsigned int i, n = 1 + pick(3);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	if (pick(8) == 0)
		fprintf(f, "counter ");
	for (i = 0; i < n; i++)
		random_match(f);
	fprintf(f, "counter %s", verdicts[pick(6)]);
	fclose(f);
	{
		struct rule_error e;
		struct rule *r;

		/* Some contradict themselves (tcp dport … udp sport …), and are refused. */
		if (rule_parse(text, strlen(text), RULE_FORWARD, &r, &e) == 0)
			assert_int_equal(rule_list_add(l, r), 0);
	}
	free(text);
}

static void
random_packet(void)
{
	static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_GRE};
	static const char names[4][RULE_NAME_MAX + 1] = {"link0", "link1", "link2", "other"};

	default_packet();
	packet.family = pick(10) == 0 ? 0 : pick(2) ? TUPLE_IPV4 : TUPLE_IPV6;
	packet.proto = protos[pick(4)];
	packet.has_flags = packet.family != 0 && packet.proto == IPPROTO_TCP;
	packet.has_ports = packet.has_flags || (packet.family != 0 && packet.proto == IPPROTO_UDP);
	packet.sport = (uint16_t)pick(20);
	packet.dport = (uint16_t)pick(20);
	packet.in_name = pick(8) == 0 ? NULL : names[pick(4)];
	if (packet.family == TUPLE_IPV4) {
		packet.src.w[0] = rte_cpu_to_be_32(0x0a000000 | pick(8) << 8 | pick(4));
		packet.dst.w[0] = rte_cpu_to_be_32(0x0a010000 | pick(4) << 8 | pick(20));
	} else {
		memset(&packet.src, 0, sizeof(packet.src));
		packet.src.w[0] = packet.dst.w[0] = RTE_BE32(0x20010db8);
		packet.dst.w[1] = packet.dst.w[2] = 0;
		packet.src.w[3] = rte_cpu_to_be_32(pick(8) << 16 | pick(3));
		packet.dst.w[3] = rte_cpu_to_be_32(pick(16));
	}
}

/* All counters of the list, one after the other. */
static void
read_counters(const struct rule_list *l, uint64_t *out)
{
	const struct rule_chain_list *c = &l->chain[RULE_FORWARD];
	uint64_t bytes;
	uint32_t i, k;

	for (i = 0; i < c->n; i++)
		for (k = 0; k < c->rule[i]->n_counters; k++)
			rule_counter_read(c->rule[i], k, out++, &bytes);
}

#define RULES_RANDOM  300u
#define PACKETS       2000u

/* Rule sets of several sizes; each packet by the list and by the classifier. */
static void
test_classifier(void **state)
{
	static uint64_t before[2 * RULES_RANDOM], list[2 * RULES_RANDOM], fast[2 * RULES_RANDOM];
	unsigned int round, i, n, verdicts = 0;
	(void)state;

	for (round = 0; round < 8; round++) {
		struct rule_list *l = rule_list_new();
		struct rules_classifier *c;
		struct rules_result a, b;
		struct ruleset *rs;

		seed = round + 1;
		n = 40 + 36 * round;
		while (l->chain[RULE_FORWARD].n < n)
			random_rule(l);
		rs = compile(l);
		c = rs->program->classifier[RULE_FORWARD];
		assert_non_null(c);
		for (i = 0; i < PACKETS / 8; i++) {
			random_packet();
			read_counters(l, before);
			ruleset_eval(rs, RULE_FORWARD, &packet, &a);
			read_counters(l, fast);
			rs->program->classifier[RULE_FORWARD] = NULL;
			ruleset_eval(rs, RULE_FORWARD, &packet, &b);
			rs->program->classifier[RULE_FORWARD] = c;
			read_counters(l, list);
			assert_int_equal(a.verdict, b.verdict);
			assert_int_equal(a.handle, b.handle);
			for (unsigned int k = 0; k < 2 * RULES_RANDOM; k++)
				assert_int_equal(fast[k] - before[k], list[k] - fast[k]);
			verdicts += a.handle != 0;
		}
		ruleset_free(rs);
		rule_list_free(l);
	}
	assert_in_range(verdicts, PACKETS / 8, PACKETS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_statements),
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_classifier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
