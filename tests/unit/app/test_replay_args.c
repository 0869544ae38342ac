/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "replay_args.h"

#define ARGS_MAX 16

static int
parse(struct replay_args *a, const char *const words[], struct sl_err *err, char *argv[])
{
	int argc = 1, ret;

	argv[0] = strdup("replay");
	for (; words[argc - 1] != NULL; argc++)
		argv[argc] = strdup(words[argc - 1]);
	argv[argc] = NULL;
	ret = replay_args_parse(a, argc, argv, err);
	return ret;
}

static void
drop(struct replay_args *a, char *argv[])
{
	replay_args_free(a);
	for (; *argv != NULL; argv++)
		free(*argv);
}

static void
test_seconds(void **state)
{
	static const struct {
		const char *text;
		int ret;
		uint64_t ns;
	} cases[] = {
		{"0", 0, 0},
		{"1", 0, 1000000000},
		{"0.5", 0, 500000000},
		{"3.", 0, 3000000000},
		{"0.000000001", 0, 1},
		{"1.123456789", 0, 1123456789},
		{"4294967295.999999999", 0, 4294967295999999999},
		{"4294967296", -EINVAL, 0},
		{"99999999999999999999999", -EINVAL, 0},
		{"0.1234567890", -EINVAL, 0},
		{"", -EINVAL, 0},
		{".5", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"1s", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"1.5.5", -EINVAL, 0},
		{"nan", -EINVAL, 0},
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = 0;

		assert_int_equal(replay_parse_seconds(cases[i].text, &ns), cases[i].ret);
		assert_true(ns == cases[i].ns);
	}
}

static void
test_at_is_sorted_and_stable(void **state)
{
	static const char *const words[] = {"-c", "f", "--at", "2", "c", "--at", "1", "a",
		"--at", "2.0", "d", "--at=1", "b", NULL};
	struct replay_args a;
	char *argv[ARGS_MAX];
	unsigned int i;

	(void)state;
	assert_int_equal(parse(&a, words, NULL, argv), 0);
	assert_int_equal(a.n_at, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(a.at[i].command[0], 'a' + (int)i);
	drop(&a, argv);
}

static void
test_binds(void **state)
{
	static const char *const words[] = {"-c", "f", "--rx", "in=a=b.pcap", "--rx=in=c",
		"--tx", "out=d", "--until", "7", NULL};
	struct replay_args a;
	char *argv[ARGS_MAX];

	(void)state;
	assert_int_equal(parse(&a, words, NULL, argv), 0);
	assert_int_equal(a.n_rx, 2);
	assert_string_equal(a.rx[0].port, "in");
	assert_string_equal(a.rx[0].path, "a=b.pcap");
	assert_string_equal(a.rx[1].path, "c");
	assert_int_equal(a.n_tx, 1);
	assert_string_equal(a.tx[0].port, "out");
	assert_true(a.has_until && a.until_ns == 7000000000);
	drop(&a, argv);
}

static void
test_refused(void **state)
{
	static const struct {
		const char *says;
		const char *words[ARGS_MAX];
	} cases[] = {
		{"-c FILE", {NULL}},
		{"needs a value", {"-c", NULL}},
		{"no such option", {"--nosuch", NULL}},
		{"stray", {"-c", "f", "stray", NULL}},
		{"PORT=CAPTURE", {"-c", "f", "--rx", "in", NULL}},
		{"PORT=CAPTURE", {"-c", "f", "--rx", "=f", NULL}},
		{"PORT=CAPTURE", {"-c", "f", "--tx", "in=", NULL}},
		{"twice", {"-c", "f", "--tx", "a=1", "--tx", "a=2", NULL}},
		{"twice", {"-c", "f", "--rx", "a=-", "--rx", "b=-", NULL}},
		{"command is missing", {"-c", "f", "--at", "1", NULL}},
		{"seconds", {"-c", "f", "--at", "x", "stats", NULL}},
		{"seconds", {"-c", "f", "--until", "-1", NULL}},
		{"after --until", {"-c", "f", "--at", "2", "stats", "--until", "1", NULL}},
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct replay_args a;
		struct sl_err err = {""};
		char *argv[ARGS_MAX];

		assert_int_equal(parse(&a, cases[i].words, &err, argv), -EINVAL);
		if (strstr(err.msg, cases[i].says) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", err.msg, cases[i].says);
		drop(&a, argv);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_at_is_sorted_and_stable),
		cmocka_unit_test(test_binds),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
