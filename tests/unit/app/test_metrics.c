/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text and the HTTP server around it. Connection tracking is a fake with known numbers. With
 * "--print N" the program writes the exposition of N namespaces, for a strict reader to check.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>

#include "connlimit.h"
#include "err.h"
#include "events.h"
#include "metrics.h"
#include "metrics_text.h"
#include "pool.h"
#include "port.h"
#include "worker.h"

#define MANY 20000u /* namespaces: a reply larger than any socket buffer */

static struct worker workers[2];
static struct port ports[1] = {
	{.name = "p\"0\\", .counters = {{.rx_packets = 3}, {.rx_packets = 4}}},
};

uint64_t
ct_count(const struct ct *ct)
{
	(void)ct;
	return 42;
}

uint32_t
ct_max(const struct ct *ct)
{
	(void)ct;
	return 262144;
}

uint32_t
ct_buckets(const struct ct *ct)
{
	(void)ct;
	return 8192;
}

void
ct_stats(const struct ct *ct, unsigned int thread, struct ct_stats *out)
{
	(void)ct;
	*out = (struct ct_stats){.lookups = 100 + thread, .race_lost = UINT64_MAX};
}

void
ct_memory_sizes(const struct ct *ct, struct ct_memory *out)
{
	(void)ct;
	*out = (struct ct_memory){.pool_present = 1, .lines_present = 2, .walk_present = 3};
}

/* Namespace t1 has a pool; what it is, is not looked at. */
struct nat_pool *
nat_pool_next(const struct netns *ns, const struct nat_pool *before)
{
	static char pool;

	return before == NULL && strcmp(ns->name, "t1") == 0 ? (struct nat_pool *)(void *)&pool
								: NULL;
}

const struct nat_pool_config *
nat_pool_config(const struct nat_pool *pool)
{
	static const struct nat_pool_config config = {.name = "public"};
	(void)pool;

	return &config;
}

void
nat_pool_stats(const struct nat_pool *pool, struct nat_pool_stats *out)
{
	(void)pool;
	*out = (struct nat_pool_stats){.used = 5, .high = 7, .capacity = 10, .exhausted = 3};
}

void
connlimit_stats(const struct connlimit *cl, unsigned int thread, struct connlimit_stats *out)
{
	(void)cl;
	*out = (struct connlimit_stats){.weighed = 10 + thread, .over = 1};
}

void
connlimit_memory(const struct connlimit *cl, struct connlimit_memory *out)
{
	(void)cl;
	*out = (struct connlimit_memory){.present = 4096, .keys = 5};
}

void
events_stats(const struct events *e, unsigned int thread, struct events_stats *out)
{
	(void)e;
	*out = (struct events_stats){.emitted = 7, .lost = thread};
}

uint64_t
events_memory(const struct events *e)
{
	(void)e;
	return 640;
}

static void
add_netns(struct gateway *gw, const char *prefix, unsigned int n)
{
	const char **names = calloc(n, sizeof(*names));
	char *text = calloc(n, 16);
	unsigned int i;

	assert_true(names != NULL && text != NULL);
	for (i = 0; i < n; i++) {
		snprintf(text + 16 * (size_t)i, 16, "%s%u", prefix, i + 1);
		names[i] = text + 16 * (size_t)i;
	}
	assert_int_equal(
		netns_create_batch(gw->netns, names, n, netns_init_ns(gw->netns), NULL, NULL), 0);
	free(names);
	free(text);
}

static struct gateway *
gateway_new(unsigned int n_netns)
{
	struct gateway *gw = calloc(1, sizeof(*gw));
	struct sl_err err;

	assert_non_null(gw);
	gw->n_workers = 2;
	gw->workers[0] = &workers[0];
	gw->workers[1] = &workers[1];
	workers[1].index = 1;
	workers[1].stats.busy_polls = 9;
	gw->ports[0] = &ports[0];
	gw->netns = netns_registry_create(gw_threads(gw), 8, &err);
	assert_non_null(gw->netns);
	if (n_netns > 0)
		add_netns(gw, "t", n_netns);
	return gw;
}

static void
gateway_free(struct gateway *gw)
{
	netns_registry_destroy(gw->netns);
	free(gw);
}

static void
delete_netns(struct gateway *gw, const char *name)
{
	struct netns *ns = netns_find(gw->netns, name);

	assert_non_null(ns);
	netns_kill_batch(gw->netns, &ns, 1);
	netns_free_batch(gw->netns, &ns, 1);
}

/* All slices; the number of them. The text is the caller's. */
static unsigned int
whole_text(struct gateway *gw, char **text, size_t *longest)
{
	struct metrics_text *t = metrics_text_begin(gw);
	struct evbuffer *all = evbuffer_new(), *slice = evbuffer_new();
	unsigned int n = 0;
	int more;

	assert_true(t != NULL && all != NULL && slice != NULL);
	*longest = 0;
	do {
		more = metrics_text_slice(t, slice);
		assert_true(more >= 0);
		*longest = RTE_MAX(*longest, evbuffer_get_length(slice));
		evbuffer_add_buffer(all, slice);
		n++;
	} while (more);
	metrics_text_end(t);
	evbuffer_add(all, "", 1);
	*text = strdup((const char *)evbuffer_pullup(all, -1));
	evbuffer_free(all);
	evbuffer_free(slice);
	assert_non_null(*text);
	return n;
}

static void
test_escape(void **state)
{
	static const struct {
		const char *in, *out;
		size_t len;
	} cases[] = {
		{"plain", "plain", 32},
		{"", "", 32},
		{"a\"b\\c\nd", "a\\\"b\\\\c\\nd", 32},
		{"abcdef", "abc", 4},
		{"ab\\", "ab", 4}, /* no half of an escape */
		{"a\\", "a\\\\", 4},
		{"x", "", 1},
	};
	char buf[32];
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++)
		assert_string_equal(metrics_escape(cases[i].in, buf, cases[i].len), cases[i].out);
}

static void
test_text_has_the_numbers(void **state)
{
	static const char *const lines[] = {
		"# TYPE sluice_netns_packets counter\n",
		"# UNIT sluice_netns_bytes bytes\n",
		"\nsluice_netns_packets_total{netns=\"t2\"} 12\n",
		"\nsluice_netns_entries{netns=\"t1\"} 0\n", /* below zero for a moment */
		"\nsluice_netns_entries{netns=\"t2\"} 2\n",
		"\nsluice_netns_drops_total{netns=\"t2\",reason=\"no-peer\"} 2\n",
		"\nsluice_nat_pool_used{netns=\"t1\",pool=\"public\"} 5\n",
		"\nsluice_nat_pool_exhausted_total{netns=\"t1\",pool=\"public\"} 3\n",
		"\nsluice_port_rx_packets_total{port=\"p\\\"0\\\\\"} 7\n",
		"\nsluice_worker_busy_polls_total{worker=\"1\"} 9\n",
		"\nsluice_conntrack_entries 42\n",
		"\nsluice_conntrack_lookups_total{thread=\"1\"} 101\n",
		"\nsluice_conntrack_lookups_total{thread=\"control\"} 102\n",
		"\nsluice_conntrack_race_lost_total{thread=\"0\"} 18446744073709551615\n",
		"\nsluice_conntrack_memory_bytes{part=\"walk\"} 3\n",
		"\nsluice_connlimit_weighed_total 33\n",
		"\nsluice_connlimit_over_total 3\n",
		"\nsluice_connlimit_keys 5\n",
		"\nsluice_connlimit_bytes 4096\n",
		"\nsluice_events_total 21\n",
		"\nsluice_events_lost_total 3\n",
		"\nsluice_events_bytes 640\n",
		"\n# EOF\n",
	};
	struct gateway *gw = gateway_new(2);
	struct netns *t1 = netns_find(gw->netns, "t1"), *t2 = netns_find(gw->netns, "t2");
	size_t longest;
	unsigned int i;
	char *text;
	(void)state;

	t1->counters[0].entries = -1;
	t2->counters[0].entries = 3;
	t2->counters[2].entries = -1;
	t2->counters[0].packets = 5;
	t2->counters[1].packets = 7;
	netns_count_drop(gw->netns, t2, 0, SL_DROP_NO_PEER);
	netns_count_drop(gw->netns, t2, 1, SL_DROP_NO_PEER);
	whole_text(gw, &text, &longest);
	for (i = 0; i < RTE_DIM(lines); i++)
		if (strstr(text, lines[i]) == NULL)
			fail_msg("missing: %s\nfrom:\n%s", lines[i], text);
	/* Reasons that never happened are left out. */
	assert_null(strstr(text, "reason=\"runt\""));
	free(text);
	gateway_free(gw);
}

static void
test_slices_are_bounded(void **state)
{
	struct gateway *gw = gateway_new(MANY);
	size_t longest;
	char *text;
	(void)state;

	assert_true(whole_text(gw, &text, &longest) > 4 * MANY / 512);
	assert_true(longest < 160 * 1024);
	assert_non_null(strstr(text, "\nsluice_netns_bytes_total{netns=\"t20000\"} 0\n"));
	free(text);
	gateway_free(gw);
}

/* A name that moves to another namespace while the text is written is not listed twice. */
static void
test_name_given_again_meanwhile(void **state)
{
	struct gateway *gw = gateway_new(1000);
	struct metrics_text *t = metrics_text_begin(gw);
	struct evbuffer *out = evbuffer_new();
	const char *first, *text;
	int more;
	(void)state;

	assert_true(t != NULL && out != NULL);
	while ((more = metrics_text_slice(t, out)) == 1 && evbuffer_get_length(out) == 0)
		;
	delete_netns(gw, "t1");
	add_netns(gw, "x", 1); /* takes the id */
	add_netns(gw, "t", 1);
	while (more == 1)
		more = metrics_text_slice(t, out);
	evbuffer_add(out, "", 1);
	text = (const char *)evbuffer_pullup(out, -1);
	first = strstr(text, "sluice_netns_packets_total{netns=\"t1\"}");
	assert_non_null(first);
	assert_null(strstr(first + 1, "sluice_netns_packets_total{netns=\"t1\"}"));
	assert_null(strstr(text, "sluice_netns_entries{netns=\"t1\"}"));
	metrics_text_end(t);
	evbuffer_free(out);
	gateway_free(gw);
}

/* ---- HTTP ---- */

struct server {
	struct gateway *gw;
	struct event_base *base;
	struct metrics *m;
	uint16_t port;
};

static uint16_t
free_port(void)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	close(fd);
	return ntohs(sin.sin_port);
}

static void
server_start(struct server *s, unsigned int n_netns)
{
	char address[32];
	struct sl_err err = {""};

	s->gw = gateway_new(n_netns);
	s->base = event_base_new();
	s->port = free_port();
	snprintf(address, sizeof(address), "127.0.0.1:%u", s->port);
	if (metrics_start(s->gw, s->base, address, &s->m, &err) != 0)
		fail_msg("%s", err.msg);
}

static void
server_stop(struct server *s)
{
	metrics_stop(s->m);
	event_base_free(s->base);
	gateway_free(s->gw);
}

static int
request(const struct server *s, const char *text)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(s->port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	return fd;
}

static void
turn(struct server *s, unsigned int n)
{
	while (n-- > 0)
		event_base_loop(s->base, EVLOOP_NONBLOCK);
}

/* What comes until the server closes; the caller's. */
static char *
answer(struct server *s, int fd)
{
	struct evbuffer *all = evbuffer_new();
	char buf[65536], *text;
	ssize_t n;

	for (;;) {
		turn(s, 1);
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n == 0)
			break;
		if (n < 0 && errno != EAGAIN)
			fail_msg("recv: %s", strerror(errno));
		if (n > 0)
			evbuffer_add(all, buf, (size_t)n);
	}
	close(fd);
	evbuffer_add(all, "", 1);
	text = strdup((const char *)evbuffer_pullup(all, -1));
	evbuffer_free(all);
	return text;
}

#define ONCE " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static void
test_http_answers(void **state)
{
	static const struct {
		const char *request, *status, *has, *has_not;
	} cases[] = {
		{"GET /metrics" ONCE, "HTTP/1.1 200 ", METRICS_CONTENT_TYPE "\r\n",
			"Content-Length"},
		{"GET /metrics?x=1" ONCE, "HTTP/1.1 200 ", "# EOF\n\r\n0\r\n\r\n",
			"Content-Length"},
		{"GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.0 200 ", "\n# EOF\n", "chunked"},
		{"HEAD /metrics" ONCE, "HTTP/1.1 200 ", METRICS_CONTENT_TYPE, "sluice_"},
		{"GET /" ONCE, "HTTP/1.1 404 ", "/metrics", "sluice_"},
		{"GET /metrics/x" ONCE, "HTTP/1.1 404 ", "/metrics", "sluice_"},
		{"HEAD /x" ONCE, "HTTP/1.1 404 ", "", "sluice_"},
		{"DELETE /metrics" ONCE, "HTTP/1.1 405 ", "Allow: GET, HEAD\r\n", "sluice_"},
		{"POST /metrics HTTP/1.1\r\nContent-Length: 9999\r\nConnection: close\r\n\r\n",
			"HTTP/1.1 413 ", "", "sluice_"},
		{"\001\002 nonsense\r\n\r\n", "HTTP/1.1 400 ", "", "sluice_"},
	};
	struct server s;
	unsigned int i;
	(void)state;

	server_start(&s, 3);
	for (i = 0; i < RTE_DIM(cases); i++) {
		char *text = answer(&s, request(&s, cases[i].request));

		if (strncmp(text, cases[i].status, strlen(cases[i].status)) != 0 ||
			strstr(text, cases[i].has) == NULL ||
			strstr(text, cases[i].has_not) != NULL)
			fail_msg("%s\nis answered by\n%s", cases[i].request, text);
		free(text);
	}
	server_stop(&s);
}

/* A reply of many slices arrives whole, and the loop turns between them. */
static void
test_http_long_reply(void **state)
{
	struct server s;
	char *text;
	(void)state;

	server_start(&s, MANY);
	text = answer(&s, request(&s, "GET /metrics" ONCE));
	assert_non_null(strstr(text, "sluice_netns_entries{netns=\"t20000\"} 0\n"));
	assert_non_null(strstr(text, "\n# EOF\n\r\n0\r\n\r\n"));
	free(text);
	server_stop(&s);
}

/* Clients that leave in the middle, or never read, take nothing with them. */
static void
test_http_clients_that_leave(void **state)
{
	struct server s;
	int fd[5];
	unsigned int i, round;
	char *text;
	(void)state;

	server_start(&s, MANY);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 4; i++) {
			fd[i] = request(&s, "GET /metrics" ONCE);
			turn(&s, round * 30 + 3);
		}
		/* A fifth is told to come again. */
		text = answer(&s, request(&s, "GET /metrics" ONCE));
		assert_int_equal(strncmp(text, "HTTP/1.1 503 ", 13), 0);
		free(text);
		for (i = 0; i < 4; i++)
			close(fd[i]);
		turn(&s, 300);
	}
	text = answer(&s, request(&s, "GET /metrics" ONCE));
	assert_non_null(strstr(text, "\n# EOF\n"));
	free(text);
	fd[0] = request(&s, "GET /metrics" ONCE);
	turn(&s, 60);
	server_stop(&s); /* with one under way */
	close(fd[0]);
}

static void
test_start_refuses(void **state)
{
	static const struct {
		const char *address;
		int ret;
		const char *says;
	} cases[] = {
		{"", -EINVAL, "no ADDR:PORT"},
		{"9100", -EINVAL, "no ADDR:PORT"},
		{"localhost:9100", -EINVAL, "no ADDR:PORT"},
		{"127.0.0.1", -EINVAL, "no port"},
		{"127.0.0.1:0", -EINVAL, "no ADDR:PORT"},
		{"127.0.0.1:65536", -EINVAL, "no ADDR:PORT"},
		{"127.0.0.1:x", -EINVAL, "no ADDR:PORT"},
		{"127.0.0.1:22x", -EINVAL, "no ADDR:PORT"},
		{"[::1]:9100/", -EINVAL, "no ADDR:PORT"},
		{"203.0.113.1:9100", -EADDRNOTAVAIL, "cannot listen on 203.0.113.1:9100"},
	};
	struct event_base *base = event_base_new();
	struct metrics *m;
	struct server s;
	struct sl_err err;
	char address[32];
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		int ret = metrics_start(NULL, base, cases[i].address, &m, &err);

		if (ret != cases[i].ret || strstr(err.msg, cases[i].says) == NULL)
			fail_msg("\"%s\": %d, %s", cases[i].address, ret, err.msg);
	}
	server_start(&s, 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", s.port);
	assert_int_equal(metrics_start(s.gw, base, address, &m, &err), -EADDRINUSE);
	server_stop(&s);
	event_base_free(base);
}

static int
print_text(const char *count)
{
	struct gateway *gw = gateway_new((unsigned int)atoi(count));
	struct netns *ns = netns_init_ns(gw->netns);
	size_t longest;
	char *text;
	unsigned int i;

	for (i = 1; i < SL_DROP_COUNT; i++) {
		netns_count_drop(gw->netns, ns, 0, i);
		netns_count_drop(gw->netns, NULL, 1, i);
	}
	whole_text(gw, &text, &longest);
	fputs(text, stdout);
	free(text);
	gateway_free(gw);
	return 0;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_text_has_the_numbers),
		cmocka_unit_test(test_slices_are_bounded),
		cmocka_unit_test(test_name_given_again_meanwhile),
		cmocka_unit_test(test_http_answers),
		cmocka_unit_test(test_http_long_reply),
		cmocka_unit_test(test_http_clients_that_leave),
		cmocka_unit_test(test_start_refuses),
	};

	if (argc == 3 && strcmp(argv[1], "--print") == 0)
		return print_text(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
