/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of rules are replaced while workers evaluate them. Run it under thread and address
 * sanitizer. What must hold:
 *   - what a worker sees is one set, whole: two rules in it say the opposite of each other
 *   - the objects of its rules live as long as it is seen
 *   - the counter of a rule that stays in all sets has counted each packet at the end
 *
 *     stress_rules [--seconds N] [--seed N]
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "err.h"
#include "rcu.h"
#include "rules.h"
#include "ruleset.h"
#include "stress.h"

#define WORKERS    2u
#define FILLER_MAX 100u /* more than go without a classifier */
#define BETWEEN    64u  /* turns between two quiescent states */
#define ALIVE      0x600dc0deu

static struct netns ns;
static bool stop;
static uint64_t evaluated[WORKERS];
static uint32_t objects; /* control only */

/* ---- what the application is to rules ---- */

struct object {
	uint32_t alive;
};

static int
attach(void *app, struct netns *of, const struct rule *r, const struct rule_item *item,
	void **object, struct sl_err *err)
{
	struct object *o = malloc(sizeof(*o));

	(void)app;
	(void)of;
	(void)r;
	(void)item;
	if (o == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	o->alive = ALIVE;
	objects++;
	*object = o;
	return 0;
}

static void
detach(void *app, const struct rule_item *item, void *object)
{
	struct object *o = object;

	(void)app;
	(void)item;
	o->alive = 0;
	objects--;
	free(o);
}

static enum rules_weight
weigh(void *app, const struct rule_item *item, void *object, struct rules_packet *k)
{
	const struct object *o = object;

	(void)app;
	(void)item;
	(void)k;
	REQUIRE(o->alive == ALIVE);
	return RULES_MATCH;
}

static const struct rules_ops ops = {
	.threads = WORKERS, .attach = attach, .detach = detach, .weigh = weigh};

/* ---- workers ---- */

static uint8_t
verdict(const struct ruleset *rs, unsigned int thread, uint16_t dport, uint64_t *handle)
{
	struct pkt p = {.flags = PKT_IP, .ip_bytes = 40};
	struct rules_packet k = {.pkt = &p,
		.family = TUPLE_IPV4,
		.proto = IPPROTO_TCP,
		.state = RULE_STATE_NEW,
		.has_ports = true,
		.sport = 1000,
		.dport = dport,
		.thread = thread};
	struct rules_result r;

	ruleset_eval(rs, RULE_FORWARD, &k, &r);
	REQUIRE(!r.policy);
	*handle = r.handle;
	return r.verdict;
}

static void *
worker(void *arg)
{
	unsigned int thread = (unsigned int)(uintptr_t)arg, turn;
	const struct ruleset *rs;
	uint64_t handle[3];
	uint8_t one, two;

	sl_rcu_register_thread();
	for (turn = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); turn++) {
		rs = sl_rcu_dereference(&ns.rules);
		one = verdict(rs, thread, 1, &handle[0]);
		two = verdict(rs, thread, 2, &handle[1]);
		REQUIRE(one != two && handle[1] == handle[0] + 1);
		REQUIRE(verdict(rs, thread, 3, &handle[2]) == RULES_DROP);
		REQUIRE(handle[2] == handle[0] + 2);
		evaluated[thread] += 3;
		if (turn % BETWEEN == 0)
			sl_rcu_quiescent();
	}
	sl_rcu_unregister_thread();
	return NULL;
}

/* ---- control ---- */

static void
add(struct rule_list *l, const char *text)
{
	struct rule_error e;
	struct rule *r;

	REQUIRE(rule_parse(text, strlen(text), RULE_FORWARD, &r, &e) == 0);
	REQUIRE(rule_list_add(l, r) == 0);
}

/* The rules of `stays`, and others behind them. */
static struct ruleset *
make(const struct rule_list *stays, unsigned int turn, uint64_t rnd)
{
	struct rule_list *l = rule_list_copy(stays);
	unsigned int n = (unsigned int)(rnd >> 32) % FILLER_MAX, i;
	struct ruleset *rs;
	struct sl_err err;
	char text[64];

	REQUIRE(l != NULL);
	for (i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "ip saddr 10.0.%u.0/24 tcp dport %u accept", i, i % 5);
		add(l, text);
	}
	add(l, turn % 2 == 0 ? "tcp dport 1 accept" : "tcp dport 1 drop");
	add(l, turn % 2 == 0 ? "tcp dport 2 drop" : "tcp dport 2 accept");
	add(l, "tcp dport 3 limit rate 1/second drop");
	rs = ruleset_create(l, &ns, &ops, &err);
	REQUIRE(rs != NULL);
	rule_list_free(l);
	return rs;
}

static void
replace(const struct rule_list *stays, unsigned int turn, uint64_t *rnd)
{
	struct ruleset *old = ruleset_publish(&ns, make(stays, turn, next_random(rnd)));

	if (old == NULL)
		return;
	sl_rcu_synchronize();
	ruleset_free(old);
}

static void
finish(struct rule_list *stays, unsigned int turns)
{
	uint64_t packets, bytes, sum = 0;
	unsigned int i;

	ruleset_free(ruleset_publish(&ns, NULL));
	for (i = 0; i < WORKERS; i++)
		sum += evaluated[i];
	rule_counter_read(stays->chain[RULE_FORWARD].rule[0], 0, &packets, &bytes);
	REQUIRE(packets == sum && bytes == 40 * sum && sum > 0);
	rule_list_free(stays);
	REQUIRE(objects == 0);
	printf("%u sets, %" PRIu64 " packets\n", turns, sum);
}

int
main(int argc, char **argv)
{
	static const struct option known[] = {{"seconds", required_argument, NULL, 's'},
		{"seed", required_argument, NULL, 'r'}, {0}};
	struct rule_list *stays = rule_list_new();
	uint64_t rnd = 88172645463325252, seconds = 3, end;
	unsigned int i, turn = 0;
	pthread_t thread[WORKERS];
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 's')
			seconds = strtoull(optarg, NULL, 10);
		else if (c == 'r')
			rnd += strtoull(optarg, NULL, 10);
		else
			return 2;
	}
	REQUIRE(stays != NULL);
	add(stays, "counter");
	replace(stays, turn++, &rnd);
	end = sl_now_monotonic().ns + seconds * SL_NSEC_PER_SEC;
	for (i = 0; i < WORKERS; i++)
		REQUIRE(pthread_create(&thread[i], NULL, worker, (void *)(uintptr_t)i) == 0);
	while (sl_now_monotonic().ns < end)
		replace(stays, turn++, &rnd);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	finish(stays, turn);
	return 0;
}
