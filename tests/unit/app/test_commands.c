/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the language and the handlers: each available command has one, and no other is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "command.h"
#include "eal.h"

static void
test_every_command_has_its_handler(void **state)
{
	const struct grammar_command *c;
	const struct command_handler *h;
	char method[64];

	(void)state;
	for (c = grammar_table; c->words != NULL; c++) {
		h = command_find(grammar_method(c, method, sizeof(method)));
		if ((c->flags & (GRAMMAR_MISSING | GRAMMAR_CLIENT)) != 0) {
			assert_null(h);
			continue;
		}
		if (h == NULL)
			fail_msg("no handler of %s", method);
		if ((c->flags & GRAMMAR_ITEMS) != 0)
			assert_non_null(h->step);
		/* A change is done within the turn: its batch must not be interleaved. */
		if ((c->flags & GRAMMAR_CHANGE) != 0)
			assert_null(h->step);
	}
}

static void
test_every_handler_has_its_command(void **state)
{
	const struct command_handler *const *f;
	const struct command_handler *h;

	(void)state;
	for (f = command_families(); *f != NULL; f++)
		for (h = *f; h->method != NULL; h++) {
			if (grammar_find(h->method) == NULL)
				fail_msg("%s is not in the table", h->method);
			assert_ptr_equal(command_find(h->method), h);
			assert_non_null(h->run);
		}
}

static void
test_core_lists(void **state)
{
	static const struct {
		const char *text;
		int n; /* negative: refused */
		unsigned int cores[4];
	} cases[] = {
		{"0", 1, {0}},
		{"0-1", 2, {0, 1}},
		{"1,3", 2, {1, 3}},
		{"3,0-2", 4, {3, 0, 1, 2}},
		{"", -1, {0}},
		{"-1", -1, {0}},
		{"1-", -1, {0}},
		{"2-1", -1, {0}},
		{"1,,2", -1, {0}},
		{"1,", -1, {0}},
		{"1 2", -1, {0}},
		{"a", -1, {0}},
		{"0-40", -1, {0}},
		{"1,1", -1, {0}},
		{"0-2,1", -1, {0}},
		{"99999999999999999999", -1, {0}},
		{"0-99999999999", -1, {0}},
	};
	unsigned int cores[GW_WORKERS_MAX];
	struct sl_err err;
	size_t i;
	int n, k;

	(void)state;
	for (i = 0; i < RTE_DIM(cases); i++) {
		n = eal_parse_cores(cases[i].text, cores, &err);
		if (n != cases[i].n && (n >= 0 || cases[i].n >= 0))
			fail_msg("%s: %d", cases[i].text, n);
		for (k = 0; k < n; k++)
			assert_int_equal(cores[k], cases[i].cores[k]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_command_has_its_handler),
		cmocka_unit_test(test_every_handler_has_its_command),
		cmocka_unit_test(test_core_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
