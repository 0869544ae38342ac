/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <rte_common.h>

#include "err.h"
#include "siit.h"

static struct tuple_addr
addr6(const char *text)
{
	struct tuple_addr a;

	assert_int_equal(inet_pton(AF_INET6, text, a.b), 1);
	return a;
}

/* RFC 6052 2.4 */
static void
test_embedded(void **state)
{
	static const struct {
		const char *prefix, *with;
		unsigned int len;
	} cases[] = {
		{"2001:db8::", "2001:db8:c000:221::", 32},
		{"2001:db8:100::", "2001:db8:1c0:2:21::", 40},
		{"2001:db8:122::", "2001:db8:122:c000:2:2100::", 48},
		{"2001:db8:122:300::", "2001:db8:122:3c0:0:221::", 56},
		{"2001:db8:122:344::", "2001:db8:122:344:c0:2:2100::", 64},
		{"2001:db8:122:344::", "2001:db8:122:344::192.0.2.33", 96},
		{"64:ff9b::", "64:ff9b::192.0.2.33", 96},
	};
	rte_be32_t ip4 = inet_addr("192.0.2.33"), got;
	struct tuple_addr a, with;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		a = addr6(cases[i].prefix);
		with = addr6(cases[i].with);
		assert_int_equal(siit_prefix_valid(&a, cases[i].len, NULL), 0);
		siit_embed(&a, cases[i].len, ip4);
		assert_memory_equal(&a, &with, sizeof(a));
		assert_true(siit_extract(&with, cases[i].len, &got));
		assert_int_equal(got, ip4);
		with.b[8] = 1;
		assert_false(siit_extract(&with, cases[i].len, &got));
	}
}

static void
test_refused_prefixes(void **state)
{
	static const struct {
		const char *prefix, *why;
		unsigned int len;
	} cases[] = {
		{"2001:db8::", "has 32, 40, 48, 56, 64 or 96 bits", 33},
		{"2001:db8::", "has 32, 40, 48, 56, 64 or 96 bits", 0},
		{"2001:db8::", "has 32, 40, 48, 56, 64 or 96 bits", 24},
		{"2001:db8::", "has 32, 40, 48, 56, 64 or 96 bits", 72},
		{"2001:db8::", "has 32, 40, 48, 56, 64 or 96 bits", 128},
		{"2001:db8:1::", "bits behind its 32", 32},
		{"2001:db8::1", "bits behind its 96", 96},
		{"2001:db8:0:0:100::", "bits 64 to 71", 96},
		{"ff02::", "multicast", 96},
	};
	struct tuple_addr a;
	struct sl_err err;
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		a = addr6(cases[i].prefix);
		assert_true(siit_prefix_valid(&a, cases[i].len, &err) < 0);
		assert_non_null(strstr(err.msg, cases[i].why));
	}
}

static void
test_hosts(void **state)
{
	static const struct {
		const char *ip4;
		bool own, well_known; /* allowed under a prefix of one's own, the well-known one */
	} cases[] = {
		{"8.8.8.8", true, true}, {"1.0.0.0", true, true}, {"223.255.255.255", true, true},
		{"10.1.2.3", true, false}, {"172.16.0.1", true, false}, {"172.32.0.1", true, true},
		{"192.168.255.255", true, false}, {"100.64.0.1", true, false},
		{"100.128.0.1", true, true}, {"192.0.2.33", true, false},
		{"198.19.255.1", true, false}, {"203.0.113.80", true, false},
		{"0.0.0.0", false, false}, {"0.1.2.3", false, false}, {"127.0.0.1", false, false},
		{"169.254.1.1", false, false}, {"224.0.0.1", false, false},
		{"239.255.255.250", false, false}, {"240.0.0.1", false, false},
		{"255.255.255.255", false, false},
	};
	struct tuple_addr own = addr6("2001:db8:64::"), wkp = addr6("64:ff9b::");
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		assert_int_equal(siit_host(&own, 96, inet_addr(cases[i].ip4)), cases[i].own);
		assert_int_equal(
			siit_host(&wkp, 96, inet_addr(cases[i].ip4)), cases[i].well_known);
		assert_int_equal(siit_host(&wkp, 64, inet_addr(cases[i].ip4)), cases[i].own);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_embedded),
		cmocka_unit_test(test_refused_prefixes),
		cmocka_unit_test(test_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
