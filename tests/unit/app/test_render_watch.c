/* SPDX-License-Identifier: BSD-3-Clause */
/* What sluicectl prints for trace, top and show workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "render_watch.h"

static char *
rendered(void (*fn)(const json_t *, FILE *), const char *json)
{
	json_error_t error;
	json_t *o = json_loads(json, 0, &error);
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (o == NULL)
		fail_msg("%s: %s", error.text, json);
	assert_non_null(f);
	fn(o, f);
	fclose(f);
	json_decref(o);
	return text;
}

#define HEAD                                                                                       \
	"\"trace\": 4, \"time\": 1.25, \"worker\": 1, \"netns\": \"t1\","                          \
	"\"in\": {\"link\": \"in\", \"port\": \"p0\", \"vlan\": 10, \"inner\": 7},"
#define OUT                                                                                        \
	"\"verdict\": \"forward\","                                                                \
	"\"out\": {\"link\": \"out\", \"port\": \"p1\", \"vlan\": 20}"
#define TCP                                                                                        \
	"\"packet\": {\"len\": 60, \"ethertype\": 2048, \"family\": \"ipv4\","                     \
	"\"proto\": \"tcp\", \"protonum\": 6, \"src\": \"10.0.0.1\", \"dst\": \"10.0.0.2\","       \
	"\"ip_len\": 40, \"sport\": 1234, \"dport\": 80, \"flags\": [\"SYN\", \"ACK\"],"           \
	"\"seq\": 1, \"ack\": 2, \"win\": 3},"

#define AT " port=p0 vlan=10.7 worker=1 time=00:00:01.250000\n"

static const struct {
	const char *json, *text;
} traces[] = {
	{"{" HEAD TCP "\"conntrack\": {\"lookup\": \"miss\", \"state\": \"new\","
	 "\"direction\": \"original\", \"from\": \"NONE\", \"to\": \"SYN_SENT\"}," OUT "}",
		"trace id 4 netns=t1 link=in rx tcp 10.0.0.1:1234 > 10.0.0.2:80 [SYN,ACK]"
		" seq 1 ack 2 win 3 len 60" AT
		"trace id 4 netns=t1 link=in lookup miss\n"
		"trace id 4 netns=t1 link=in conntrack new original SYN_SENT\n"
		"trace id 4 netns=t1 link=in out link=out port=p1 vlan=20\n"},
	{"{" HEAD TCP "\"conntrack\": {\"lookup\": \"miss\", \"state\": \"known\","
	 "\"race_lost\": true, \"direction\": \"reply\","
	 "\"from\": \"SYN_SENT\", \"to\": \"SYN_RECV\"},"
	 "\"verdict\": \"drop\", \"reason\": \"no-peer\", \"help\": \"no way\"}",
		"trace id 4 netns=t1 link=in rx tcp 10.0.0.1:1234 > 10.0.0.2:80 [SYN,ACK]"
		" seq 1 ack 2 win 3 len 60" AT
		"trace id 4 netns=t1 link=in lookup miss, and another worker was first\n"
		"trace id 4 netns=t1 link=in conntrack known reply SYN_SENT -> SYN_RECV\n"
		"trace id 4 netns=t1 link=in drop no-peer: no way\n"},
	{"{" HEAD "\"packet\": {\"len\": 90, \"family\": \"ipv6\", \"proto\": \"icmpv6\","
	 "\"protonum\": 58, \"src\": \"2001:db8::1\", \"dst\": \"2001:db8::2\", \"type\": 1,"
	 "\"code\": 4, \"id\": 0}, \"about\": {\"family\": \"ipv6\", \"proto\": \"udp\","
	 "\"protonum\": 17, \"src\": \"2001:db8::2\", \"dst\": \"2001:db8::9\", \"sport\": 53,"
	 "\"dport\": 99}, \"conntrack\": {\"state\": \"invalid\","
	 "\"reason\": \"invalid-icmp-unrelated\"}," OUT "}",
		"trace id 4 netns=t1 link=in rx icmpv6 2001:db8::1 > 2001:db8::2 type 1 code 4 id 0"
		" about udp [2001:db8::2]:53 > [2001:db8::9]:99 len 90" AT
		"trace id 4 netns=t1 link=in conntrack invalid (invalid-icmp-unrelated)\n"
		"trace id 4 netns=t1 link=in out link=out port=p1 vlan=20\n"},
	{"{\"trace\": 5, \"time\": 1.25, \"worker\": 1, \"netns\": null,"
	 "\"in\": {\"link\": null, \"port\": \"p0\"}, \"packet\": {\"len\": 64,"
	 "\"ethertype\": 35020}, \"verdict\": \"drop\", \"reason\": \"no-link\","
	 "\"help\": \"none\"}",
		"trace id 5 netns=- link=- rx ethertype 0x88cc len 64 port=p0 worker=1"
		" time=00:00:01.250000\n"
		"trace id 5 netns=- link=- drop no-link: none\n"},
	{"{\"lost\": 12}", "trace: 12 packets passed over: no room in the ring\n"},
};

static void
test_trace(void **state)
{
	unsigned int i;
	(void)state;

	for (i = 0; i < sizeof(traces) / sizeof(traces[0]); i++) {
		char *text = rendered(render_trace, traces[i].json);

		assert_string_equal(text, traces[i].text);
		free(text);
	}
}

static void
test_si(void **state)
{
	static const struct {
		double v;
		const char *text;
	} cases[] = {
		{0, "0"}, {1, "1"}, {999, "999"}, {1000, "1.00k"}, {1234, "1.23k"},
		{9994, "9.99k"}, {9996, "10.0k"}, {99949, "99.9k"}, {99960, "100k"},
		{999499, "999k"}, {999500, "1.00M"}, {12345678, "12.3M"}, {2.5e9, "2.50G"},
		{1.8e19, "18.0E"}, {5e21, "5000E"},
	};
	unsigned int i;
	char buf[16];
	(void)state;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(render_si(cases[i].v, buf, sizeof(buf)), cases[i].text);
}

static void
test_worker(void **state)
{
	char *text;
	(void)state;

	text = rendered(render_worker, "{\"worker\": 0, \"core\": 1, \"packets\": 9,"
		"\"busy_polls\": 3, \"idle_polls\": 2, \"packets_per_second\": 7,"
		"\"load_percent\": 12.34, \"cycles_per_packet\": 81.25}");
	assert_string_equal(text, "worker 0 core 1: load  12.3 %, 7 packets/s, "
		"81.2 cycles/packet; since the start 9 packets, 3 busy, 2 idle polls\n");
	free(text);
	/* In replay there is nothing to tell of the machine. */
	text = rendered(render_worker, "{\"worker\": 0, \"core\": null, \"packets\": 9,"
		"\"busy_polls\": 3, \"idle_polls\": 2, \"packets_per_second\": null,"
		"\"load_percent\": null, \"cycles_per_packet\": null}");
	assert_string_equal(text, "worker 0 core -: load     - %, - packets/s, - cycles/packet; "
		"since the start 9 packets, 3 busy, 2 idle polls\n");
	free(text);
}

/* ---- the screen ---- */

static json_t *
sample(unsigned int n_netns, unsigned int n_drops)
{
	json_t *netns = json_array(), *drops = json_array();
	unsigned int i;

	for (i = 0; i < n_netns; i++)
		json_array_append_new(netns, json_pack("{s:s, s:i, s:i, s:i}", "netns", "tenant",
			"packets_per_second", 1500, "bytes_per_second", 64000, "entries", 3));
	for (i = 0; i < n_drops; i++)
		json_array_append_new(drops, json_pack("{s:s, s:i}", "reason", "no-peer",
			"packets_per_second", 600));
	return json_pack("{s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:[{s:i, s:f, s:i, s:n}], s:o, s:o}",
		"interval", 1.0, "packets_per_second", 2100, "bytes_per_second", 1000,
		"new_per_second", 5, "entries", 3, "max", 10, "namespaces", 2, "workers",
		"worker", 0, "load_percent", 50.0, "packets_per_second", 2100, "cycles_per_packet",
		"netns", netns, "drops", drops);
}

static unsigned int
count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

/* A screen never scrolls, whatever there is to show, as long as its fixed part has room. */
static void
test_screen_fits(void **state)
{
	static const unsigned int sizes[][2] = {
		{0, 0}, {1, 1}, {10, 0}, {10, 30}, {3, 30}, {0, 30}};
	unsigned int i, rows;
	(void)state;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (rows = 12; rows < 50; rows++) {
			json_t *s = sample(sizes[i][0], sizes[i][1]);
			char *text = NULL;
			size_t len = 0;
			FILE *f = open_memstream(&text, &len);

			assert_true(s != NULL && f != NULL);
			render_top_screen(s, rows, f);
			fclose(f);
			if (count(text, "\n") >= rows)
				fail_msg("%u lines on %u rows", count(text, "\n"), rows);
			if (rows > 24 && sizes[i][0] > 0)
				assert_true(count(text, "tenant") > 0);
			if (rows > 24 && sizes[i][1] > 0)
				assert_true(count(text, "no-peer") > 0);
			free(text);
			json_decref(s);
		}
	}
}

static void
test_top_line(void **state)
{
	json_t *s = sample(2, 2);
	char *json = json_dumps(s, 0), *text = rendered(render_top, json);
	(void)state;

	assert_string_equal(text, "packets/s 2.10k bytes/s 1.00k entries 3 new/s 5 drops/s 1.20k"
		" load 50% cycles/packet - busiest tenant\n");
	free(text);
	free(json);
	json_decref(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_si),
		cmocka_unit_test(test_worker),
		cmocka_unit_test(test_screen_fits),
		cmocka_unit_test(test_top_line),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
