/* SPDX-License-Identifier: BSD-3-Clause */
/* The command language: text to method and parameters, checks of parameters, usage, completion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "grammar.h"

/* ---- text to JSON ---- */

static const struct {
	const char *line, *method, *params;
} good_lines[] = {
	{"netns add t1 t2 from init", "netns.add", "{\"from\":\"init\",\"names\":[\"t1\",\"t2\"]}"},
	{"netns add from t1 t2", "netns.add", "{\"from\":\"t1\",\"names\":[\"t2\"]}"},
	{"\tnetns   add prefix t count 1000  # tenants", "netns.add",
		"{\"count\":1000,\"prefix\":\"t\"}"},
	{"netns delete all", "netns.delete", "{\"all\":true}"},
	{"netns list", "netns.list", "{}"},
	{"port add p0 devargs net_null0,size=64 queues 2", "port.add",
		"{\"devargs\":\"net_null0,size=64\",\"name\":\"p0\",\"queues\":2}"},
	{"port add p0 devargs 'net_pcap0,rx_pcap=/tmp/a b'", "port.add",
		"{\"devargs\":\"net_pcap0,rx_pcap=/tmp/a b\",\"name\":\"p0\"}"},
	{"link add l port p0 vlan 10.20 netns t1 peer k", "link.add",
		"{\"name\":\"l\",\"netns\":\"t1\",\"peer\":\"k\",\"port\":\"p0\",\"vlan\":\"10."
		"20\"}"},
	{"sysctl net.netfilter.nf_conntrack_acct", "sysctl",
		"{\"key\":\"net.netfilter.nf_conntrack_acct\"}"},
	{"sysctl netns t1 nf_conntrack_acct=1", "sysctl",
		"{\"key\":\"nf_conntrack_acct\",\"netns\":\"t1\",\"value\":\"1\"}"},
	{"sysctl nf_conntrack_acct = 1", "sysctl",
		"{\"key\":\"nf_conntrack_acct\",\"value\":\"1\"}"},
	{"sysctl nf_conntrack_acct =1", "sysctl",
		"{\"key\":\"nf_conntrack_acct\",\"value\":\"1\"}"},
	{"sysctl nf_conntrack_acct= 1", "sysctl",
		"{\"key\":\"nf_conntrack_acct\",\"value\":\"1\"}"},
	{"sysctl list", "sysctl.list", "{}"},
	{"conntrack list netns t1 proto tcp src 10.0.0.0/8 dport 0x50 mark 1/0xff",
		"conntrack.list",
		"{\"dport\":80,\"mark\":\"1/"
		"0xff\",\"netns\":\"t1\",\"proto\":\"tcp\",\"src\":\"10.0.0.0/8\"}"},
	{"rule add t1 forward tcp dport 80 log prefix \"a  b\" accept", "rule.add",
		"{\"chain\":\"forward\",\"netns\":\"t1\","
		"\"rule\":\"tcp dport 80 log prefix \\\"a  b\\\" accept\"}"},
	{"nat lookup t1 203.0.113.1 4000", "nat.lookup",
		"{\"address\":\"203.0.113.1\",\"netns\":\"t1\",\"port\":4000}"},
	{"show version", "show.version", "{}"},
};

static void
test_lines(void **state)
{
	const struct grammar_command *cmd;
	struct sl_err err;
	char method[64], *text;
	json_t *params;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good_lines) / sizeof(good_lines[0]); i++) {
		assert_int_equal(grammar_parse(good_lines[i].line, &cmd, &params, &err), 0);
		assert_non_null(cmd);
		assert_string_equal(
			grammar_method(cmd, method, sizeof(method)), good_lines[i].method);
		text = json_dumps(params, JSON_SORT_KEYS | JSON_COMPACT);
		assert_string_equal(text, good_lines[i].params);
		assert_ptr_equal(grammar_find(method), cmd);
		free(text);
		json_decref(params);
	}
}

static void
test_empty_lines(void **state)
{
	static const char *const lines[] = {"", "  \t ", "# netns add t1", "   # x"};
	const struct grammar_command *cmd;
	json_t *params;
	struct sl_err err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(grammar_parse(lines[i], &cmd, &params, &err), 0);
		assert_null(cmd);
		assert_null(params);
	}
}

/* The message must name what is wrong. */
static const struct {
	const char *line, *says;
} bad_lines[] = {
	{"nonsense", "nonsense"},
	{"netns", "netns add"},
	{"netns frobnicate t1", "netns add"},
	{"netns add", "names: missing"},
	{"netns add prefix t", "count: missing"},
	{"netns add t1 prefix t count 3", "does not go with"},
	{"netns delete t1 all", "does not go with"},
	{"netns show", "name: missing"},
	{"netns list extra", "\"extra\""},
	{"port add p0 devargs", "\"devargs\" needs a value"},
	{"port add p0 devargs a devargs b", "given twice"},
	{"port add p0 devargs a queues x", "queues: \"x\""},
	{"port add p0 devargs a queues 1.5", "queues: \"1.5\""},
	{"port add p0 devargs a queues -1", "queues: \"-1\""},
	{"port add p0 devargs a queues 18446744073709551616", "queues: \"1844"},
	{"port add p0 devargs 'a", "quote '"},
	{"netns add a\x01", "control character 0x01"},
	{"netns add a\xff", "0xff is not UTF-8"},
	{"netns add \xc0\xaf", "0xc0 is not UTF-8"},
	{"netns add \xed\xa0\x80", "0xed is not UTF-8"},
};

static void
test_bad_lines(void **state)
{
	const struct grammar_command *cmd;
	struct sl_err err;
	json_t *params;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad_lines) / sizeof(bad_lines[0]); i++) {
		if (grammar_parse(bad_lines[i].line, &cmd, &params, &err) == 0)
			fail_msg("accepted: %s", bad_lines[i].line);
		assert_null(params);
		if (strstr(err.msg, bad_lines[i].says) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", bad_lines[i].line, err.msg,
				bad_lines[i].says);
	}
}

static void
test_long_line(void **state)
{
	char *line = malloc(GRAMMAR_LINE_MAX + 2);
	const struct grammar_command *cmd;
	struct sl_err err;
	json_t *params;

	(void)state;
	memset(line, 'x', GRAMMAR_LINE_MAX + 1);
	line[GRAMMAR_LINE_MAX + 1] = '\0';
	assert_int_not_equal(grammar_parse(line, &cmd, &params, &err), 0);
	assert_non_null(strstr(err.msg, "longer than"));
	free(line);
}

/* ---- checks ---- */

static const struct {
	const char *method, *params;
	const char *says; /* NULL: right */
} checks[] = {
	{"netns.add", "{\"names\":[\"t1\"]}", NULL},
	{"netns.add", "{\"prefix\":\"t\",\"count\":65536}", NULL},
	{"netns.add", "{\"prefix\":\"t\",\"count\":65537}", "count: 65537 is out of 1-65536"},
	{"netns.add", "{\"prefix\":\"t\",\"count\":0}", "count: 0 is out of"},
	{"netns.add", "{\"prefix\":\"t\",\"count\":-1}", "count: -1 is out of"},
	{"netns.add", "{\"prefix\":\"t\",\"count\":1.5}", "count: must be an integer"},
	{"netns.add", "{\"prefix\":\"t\",\"count\":1.0}", "count: must be an integer"},
	{"netns.add", "{\"prefix\":\"t\",\"count\":\"5\"}", "count: must be an integer"},
	{"netns.add", "{\"prefix\":\"t\",\"count\":9223372036854775807}",
		"count: 9223372036854775807"},
	{"netns.add", "{\"names\":[]}", "names: must be an array that is not empty"},
	{"netns.add", "{\"names\":\"t1\"}", "names: must be an array"},
	{"netns.add", "{\"names\":[1]}", "names: must be a string"},
	{"netns.add", "{\"names\":[null]}", "names: must be a string"},
	{"netns.add", "{\"names\":[\"\"]}", "names: \"\" is no name"},
	{"netns.add", "{\"names\":[\"a\\\"b\"]}", "names: \"a?b\" is no name"},
	{"netns.add", "{\"names\":[\"a\\\\b\"]}", "is no name"},
	{"netns.add", "{\"names\":[\"a\\nb\"]}", "names: \"a?b\" is no name"},
	{"netns.add", "{\"names\":[\"a\\u0001b\"]}", "names: \"a?b\" is no name"},
	{"netns.add", "{\"names\":[\"\xc3\xa9\"]}", "is no name"},
	{"netns.add", "{\"names\":[\"a/b\"]}", "is no name"},
	{"netns.add", "{\"names\":[\"list\"]}", "word of the command language"},
	{"netns.add", "{\"names\":[\"peer\"]}", "word of the command language"},
	{"netns.add", "{\"names\":[\"t1\"],\"form\":\"init\"}", "form: no such field of netns add"},
	{"netns.add", "{}", "names: missing"},
	{"netns.add", "[]", "params: must be an object"},
	{"netns.add", "{\"names\":[\"t\"],\"count\":3}", "does not go with"},
	{"netns.delete", "{\"all\":true}", NULL},
	{"netns.delete", "{\"all\":false}", "all: must be true"},
	{"netns.delete", "{\"all\":1}", "all: must be true"},
	{"port.add", "{\"name\":\"p\",\"devargs\":\"net_null0\",\"queues\":32}", NULL},
	{"port.add", "{\"name\":\"p\",\"devargs\":\"net_null0\",\"queues\":33}", "queues: 33"},
	{"port.add", "{\"name\":\"p\",\"devargs\":\"\"}", "devargs: is empty"},
	{"port.add", "{\"name\":\"p\",\"devargs\":\"a\\u0007\"}",
		"devargs: has a control character"},
	{"port.add", "{\"name\":\"p\",\"devargs\":true}", "devargs: must be a string"},
	{"link.add", "{\"name\":\"l\",\"port\":\"p\",\"netns\":\"t\",\"vlan\":5}", NULL},
	{"link.add", "{\"name\":\"l\",\"port\":\"p\",\"netns\":\"t\",\"vlan\":5.5}",
		"vlan: must be a string or an integer"},
	{"link.add", "{\"name\":\"l\",\"port\":\"p\",\"netns\":\"t\",\"mtu\":1500}", NULL},
	{"link.add", "{\"name\":\"l\",\"port\":\"p\",\"netns\":\"t\",\"mtu\":67}",
		"mtu: 67 is out of 68-65535"},
	{"sysctl", "{\"key\":\"k\",\"value\":7}", NULL},
	{"sysctl", "{\"key\":\"k\",\"value\":\"7\"}", NULL},
	{"sysctl", "{\"key\":\"k\",\"value\":7.5}", "value: must be a string or an integer"},
	{"sysctl", "{\"value\":7}", "key: missing"},
	{"conntrack.list", "{\"family\":\"ipv4\"}", NULL},
	{"conntrack.list", "{\"family\":\"ipx\"}", "family: must be one of ipv4, ipv6"},
	{"conntrack.list", "{\"dport\":65536}", "dport: 65536 is out of 0-65535"},
	{"rule.add", "{\"netns\":\"t\",\"chain\":\"forward\",\"rule\":\"accept\"}", NULL},
	{"rule.add", "{\"netns\":\"t\",\"chain\":\"input\",\"rule\":\"accept\"}",
		"chain: must be one of raw, prerouting, forward, postrouting"},
	{"rule.replace", "{\"netns\":\"t\",\"file\":[\"table inet x {\",\"\\t}\"]}", NULL},
	{"rule.replace", "{\"netns\":\"t\",\"file\":\"/etc/passwd\"}",
		"file: must be an array of the file's lines"},
	{"rule.replace", "{\"netns\":\"t\",\"file\":[\"a\",\"b\\nc\"]}",
		"file: line 2 is no line of text"},
	{"conntrack.events", "{}", NULL},
	{"expect.list", "{}", "not available"},
	{"link.address.add", "{\"link\":\"l\"}", "address: missing"},
};

static void
test_checks(void **state)
{
	struct sl_err err;
	json_error_t jerr;
	json_t *params;
	size_t i;
	int ret;

	(void)state;
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		params = json_loads(checks[i].params, 0, &jerr);
		assert_non_null(params);
		err.msg[0] = '\0';
		ret = grammar_check(grammar_find(checks[i].method), params, &err);
		json_decref(params);
		if ((ret == 0) != (checks[i].says == NULL))
			fail_msg("%s %s: %s", checks[i].method, checks[i].params, err.msg);
		if (checks[i].says != NULL && strstr(err.msg, checks[i].says) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", checks[i].params, err.msg,
				checks[i].says);
	}
}

static void
test_long_name(void **state)
{
	const struct grammar_command *cmd = grammar_find("netns.add");
	struct sl_err err;
	char name[4097];
	json_t *params;
	size_t len;

	(void)state;
	for (len = 62; len < sizeof(name); len += len < 66 ? 1 : 1000) {
		memset(name, 'n', len);
		name[len] = '\0';
		params = json_pack("{s:[s]}", "names", name);
		assert_int_equal(grammar_check(cmd, params, &err) == 0, len <= 63);
		json_decref(params);
	}
}

/* ---- the table ---- */

/* Every row is sound: unique, has help, and what the parser needs of each parameter. */
static void
test_table(void **state)
{
	const struct grammar_command *c;
	const struct grammar_param *p;
	char method[64], usage[2048];

	(void)state;
	for (c = grammar_table; c->words != NULL; c++) {
		assert_ptr_equal(grammar_find(grammar_method(c, method, sizeof(method))), c);
		assert_non_null(c->help);
		assert_null(c->params[GRAMMAR_PARAMS_MAX - 1].name);
		for (p = c->params; p->name != NULL; p++) {
			assert_non_null(p->meta);
			assert_true(p->type != GRAMMAR_UINT || p->min < p->max);
			assert_true(p->type != GRAMMAR_WORD || p->words != NULL);
			assert_true(
				(p->flags & GRAMMAR_LIST) == 0 || (p->flags & GRAMMAR_POS) != 0);
			assert_true(
				p->type != GRAMMAR_SETTING || (p[1].flags & GRAMMAR_HIDDEN) != 0);
		}
		assert_memory_equal(
			grammar_usage(c, usage, sizeof(usage)), c->words, strlen(c->words));
	}
}

static void
test_usage(void **state)
{
	char usage[2048];

	(void)state;
	assert_string_equal(grammar_usage(grammar_find("netns.delete"), usage, sizeof(usage)),
		"netns delete NAME…\nnetns delete prefix PREFIX count N\nnetns delete all\n");
	assert_string_equal(grammar_usage(grammar_find("port.add"), usage, sizeof(usage)),
		"port add NAME devargs DEVARGS [queues N]\n");
	assert_string_equal(grammar_usage(grammar_find("sysctl"), usage, sizeof(usage)),
		"sysctl [netns NS] KEY[=VALUE]\n");
}

/* ---- completion ---- */

static void
collect(void *arg, const char *word)
{
	strcat(arg, word);
	strcat(arg, " ");
}

static void
test_complete(void **state)
{
	static const struct {
		const char *line, *words;
	} cases[] = {
		{"ne", "netns "},
		{"netns ", "add delete list show "},
		{"netns a", "add "},
		{"netns add t1 ", "prefix count from "},
		{"netns add t1 from x ", "prefix count "},
		{"port add p0 d", "devargs "},
		{"port add p0 devargs ", ""},
		{"conntrack list family ", "ipv4 ipv6 "},
		{"rule policy t1 f", "forward "},
		{"show v", "version "},
		{"nat p", "pool "},
		{"link add l port p m", "mtu mac "},
		{"nonsense ", ""},
	};
	char words[512];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		words[0] = '\0';
		grammar_complete(cases[i].line, collect, words);
		assert_string_equal(words, cases[i].words);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_empty_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_checks),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
