/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_common.h>

#include "clock.h"
#include "err.h"
#include "knobs.h"

/* Defaults as the kernel documents them in nf_conntrack-sysctl, and Sluice's own. */
static const struct {
	const char *key, *value;
} defaults[] = {
	{"net.ipv4.ipfrag_high_thresh", "4194304"},
	{"net.ipv4.ipfrag_time", "30"},
	{"net.ipv4.tcp_child_ehash_entries", "0"},
	{"net.ipv4.tcp_max_syn_backlog", "auto"},
	{"net.ipv4.tcp_max_tw_buckets", "auto"},
	{"net.netfilter.nf_conntrack_acct", "0"},
	{"net.netfilter.nf_conntrack_checksum", "1"},
	{"net.netfilter.nf_conntrack_events", "2"},
	{"net.netfilter.nf_conntrack_frag6_high_thresh", "4194304"},
	{"net.netfilter.nf_conntrack_frag6_timeout", "60"},
	{"net.netfilter.nf_conntrack_generic_timeout", "600"},
	{"net.netfilter.nf_conntrack_gre_timeout", "30"},
	{"net.netfilter.nf_conntrack_gre_timeout_stream", "180"},
	{"net.netfilter.nf_conntrack_icmp_timeout", "30"},
	{"net.netfilter.nf_conntrack_icmpv6_timeout", "30"},
	{"net.netfilter.nf_conntrack_max", "262144"},
	{"net.netfilter.nf_conntrack_sctp_timeout_closed", "10"},
	{"net.netfilter.nf_conntrack_sctp_timeout_cookie_echoed", "3"},
	{"net.netfilter.nf_conntrack_sctp_timeout_cookie_wait", "3"},
	{"net.netfilter.nf_conntrack_sctp_timeout_established", "210"},
	{"net.netfilter.nf_conntrack_sctp_timeout_heartbeat_sent", "30"},
	{"net.netfilter.nf_conntrack_sctp_timeout_shutdown_ack_sent", "3"},
	{"net.netfilter.nf_conntrack_sctp_timeout_shutdown_recd", "3"},
	{"net.netfilter.nf_conntrack_sctp_timeout_shutdown_sent", "3"},
	{"net.netfilter.nf_conntrack_tcp_be_liberal", "0"},
	{"net.netfilter.nf_conntrack_tcp_ignore_invalid_rst", "0"},
	{"net.netfilter.nf_conntrack_tcp_loose", "1"},
	{"net.netfilter.nf_conntrack_tcp_max_retrans", "3"},
	{"net.netfilter.nf_conntrack_tcp_timeout_close", "10"},
	{"net.netfilter.nf_conntrack_tcp_timeout_close_wait", "60"},
	{"net.netfilter.nf_conntrack_tcp_timeout_established", "432000"},
	{"net.netfilter.nf_conntrack_tcp_timeout_fin_wait", "120"},
	{"net.netfilter.nf_conntrack_tcp_timeout_last_ack", "30"},
	{"net.netfilter.nf_conntrack_tcp_timeout_max_retrans", "300"},
	{"net.netfilter.nf_conntrack_tcp_timeout_syn_recv", "60"},
	{"net.netfilter.nf_conntrack_tcp_timeout_syn_sent", "120"},
	{"net.netfilter.nf_conntrack_tcp_timeout_time_wait", "120"},
	{"net.netfilter.nf_conntrack_tcp_timeout_unacknowledged", "300"},
	{"net.netfilter.nf_conntrack_timestamp", "0"},
	{"net.netfilter.nf_conntrack_udp_timeout", "30"},
	{"net.netfilter.nf_conntrack_udp_timeout_stream", "120"},
	{"sluice.connlimit_max", "262144"},
	{"sluice.conntrack_reserve", "0"},
	{"sluice.icmp_inner_checksum", "1"},
	{"sluice.invalid", "auto"},
	{"sluice.nat_exhaustion_icmp", "1"},
	{"sluice.nat_pool_alarm", "80"},
	{"sluice.ratelimit_keys", "4096"},
	{"sluice.reject_rate", "1000"},
	{"sluice.syncookies", "0"},
	{"sluice.synproxy_max", "262144"},
	{"sluice.synproxy_mss", "1460"},
	{"sluice.synproxy_sack", "1"},
	{"sluice.synproxy_timestamp", "1"},
	{"sluice.synproxy_wscale", "7"},
	{"sluice.table_growth", "1"},
};

static void
test_defaults(void **state)
{
	struct knobs k;
	char buf[16];
	unsigned int i;
	(void)state;

	memset(&k, 0xff, sizeof(k));
	knobs_default(&k);
	assert_int_equal(knob_count, RTE_DIM(defaults));
	for (i = 0; i < RTE_DIM(defaults); i++) {
		const struct knob *knob = knob_find(defaults[i].key);

		assert_ptr_equal(knob, &knob_list[i]);
		knob_format(&k, knob, buf, sizeof(buf));
		assert_string_equal(buf, defaults[i].value);
		assert_true(strlen(knob->help) > 0);
	}
	assert_int_equal(k.tcp_timeout[CT_TCP_ESTABLISHED], 432000000);
	assert_int_equal(k.tcp_timeout[CT_TCP_SYN_SENT2], 120000);
	assert_int_equal(k.refs, 0);
}

static void
test_find(void **state)
{
	(void)state;
	assert_ptr_equal(knob_find("nf_conntrack_udp_timeout"),
		knob_find("net.netfilter.nf_conntrack_udp_timeout"));
	assert_non_null(knob_find("nf_conntrack_udp_timeout"));
	assert_null(knob_find("udp_timeout"));
	assert_null(knob_find("invalid"));
	assert_null(knob_find("net.netfilter."));
	assert_null(knob_find("nf_conntrack_udp_timeout "));
	assert_null(knob_find(""));
	/* read-only, or of a part that does not exist: for the command layer to answer */
	assert_null(knob_find("nf_conntrack_count"));
	assert_null(knob_find("nf_conntrack_helper"));
}

/* Each knob writes its own field and no other. */
static void
test_fields_are_apart(void **state)
{
	struct knobs k, before;
	char now[16], was[16];
	unsigned int i, j;
	(void)state;

	knobs_default(&k);
	for (i = 0; i < knob_count; i++) {
		const char *text = knob_list[i].type == KNOB_INVALID ? "drop" :
			knob_list[i].max < 64			     ? "1" : "64";

		before = k;
		if (knob_list[i].type == KNOB_BOOL)
			assert_int_equal(knob_parse(&before, &knob_list[i], "0", NULL), 0);
		k = before;
		assert_int_equal(knob_parse(&k, &knob_list[i], text, NULL), 0);
		assert_memory_not_equal(&k, &before, sizeof(k));
		for (j = 0; j < knob_count; j++) {
			knob_format(&k, &knob_list[j], now, sizeof(now));
			knob_format(&before, &knob_list[j], was, sizeof(was));
			assert_string_equal(now, j == i ? text : was);
		}
	}
}

static const struct {
	const char *key, *text, *out; /* out NULL: refused */
} cases[] = {
	{"nf_conntrack_udp_timeout", "0", "0"},
	{"nf_conntrack_udp_timeout", "2147000", "2147000"},
	{"nf_conntrack_udp_timeout", "2147001", NULL},
	{"nf_conntrack_udp_timeout", "4294967296", NULL},
	{"nf_conntrack_udp_timeout", "18446744073709551616", NULL},
	{"nf_conntrack_udp_timeout", "-1", NULL},
	{"nf_conntrack_udp_timeout", "-18446744073709551615", NULL},
	{"nf_conntrack_udp_timeout", "+1", NULL},
	{"nf_conntrack_udp_timeout", "", NULL},
	{"nf_conntrack_udp_timeout", " ", NULL},
	{"nf_conntrack_udp_timeout", "30s", NULL},
	{"nf_conntrack_udp_timeout", "3.5", NULL},
	{"nf_conntrack_udp_timeout", "1 2", NULL},
	{"nf_conntrack_udp_timeout", "abc", NULL},
	{"nf_conntrack_udp_timeout", "0x", NULL},
	{"nf_conntrack_udp_timeout", " 45\n", "45"},
	{"nf_conntrack_udp_timeout", "0x1f", "31"},
	{"nf_conntrack_udp_timeout", "010", "8"},
	{"nf_conntrack_acct", "1", "1"},
	{"nf_conntrack_acct", "2", NULL},
	{"nf_conntrack_acct", "yes", NULL},
	{"nf_conntrack_tcp_max_retrans", "255", "255"},
	{"nf_conntrack_tcp_max_retrans", "256", NULL},
	{"nf_conntrack_max", "1", "1"},
	{"nf_conntrack_max", "33554432", "33554432"},
	{"nf_conntrack_max", "33554433", NULL},
	{"nf_conntrack_max", "0", NULL},
	{"net.ipv4.tcp_child_ehash_entries", "0", "0"},
	{"net.ipv4.tcp_child_ehash_entries", "1", "1"},
	{"net.ipv4.tcp_child_ehash_entries", "100", "128"},
	{"net.ipv4.tcp_child_ehash_entries", "128", "128"},
	{"net.ipv4.tcp_child_ehash_entries", "8388609", "16777216"},
	{"net.ipv4.tcp_child_ehash_entries", "16777216", "16777216"},
	{"net.ipv4.tcp_child_ehash_entries", "16777217", NULL},
	{"net.ipv4.tcp_child_ehash_entries", "auto", NULL},
	{"net.ipv4.tcp_max_tw_buckets", "0", "0"},
	{"net.ipv4.tcp_max_tw_buckets", "2147483647", "2147483647"},
	{"net.ipv4.tcp_max_tw_buckets", "4294967295", NULL},
	{"net.ipv4.tcp_max_syn_backlog", "auto", NULL},
	{"sluice.invalid", "kernel", "kernel"},
	{"sluice.invalid", "drop", "drop"},
	{"sluice.invalid", "auto", "auto"},
	{"sluice.invalid", "1", NULL},
	{"sluice.invalid", "", NULL},
	{"sluice.icmp_inner_checksum", "0", "0"},
};

static void
test_parse(void **state)
{

	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		const struct knob *knob = knob_find(cases[i].key);
		struct knobs k, before;
		struct sl_err err = {""};
		char buf[16];

		knobs_default(&k);
		before = k;
		if (cases[i].out == NULL) {
			assert_int_equal(knob_parse(&k, knob, cases[i].text, &err), -EINVAL);
			assert_memory_equal(&k, &before, sizeof(k));
			assert_non_null(strstr(err.msg, knob->key));
			continue;
		}
		assert_int_equal(knob_parse(&k, knob, cases[i].text, &err), 0);
		knob_format(&k, knob, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].out);
		assert_string_equal(err.msg, "");
	}
}

static void
test_refusal_names_the_range(void **state)
{
	struct knobs k;
	struct sl_err err;
	(void)state;

	knobs_default(&k);
	assert_int_equal(knob_parse(&k, knob_find("nf_conntrack_tcp_timeout_close"), "x", &err),
		-EINVAL);
	assert_string_equal(err.msg,
		"net.netfilter.nf_conntrack_tcp_timeout_close takes a number of "
		"seconds from 0 to 2147000");
	assert_int_equal(knob_parse(&k, knob_find("nf_conntrack_max"), "0", &err), -EINVAL);
	assert_string_equal(
		err.msg, "net.netfilter.nf_conntrack_max takes a number from 1 to 33554432");
	assert_int_equal(knob_parse(&k, knob_find("sluice.invalid"), "x", &err), -EINVAL);
	assert_string_equal(err.msg, "sluice.invalid takes auto, kernel or drop");
}

static void
test_timeouts_stay_below_half_the_clock(void **state)
{
	struct knobs k;
	(void)state;

	knobs_default(&k);
	assert_int_equal(knob_parse(&k, knob_find("nf_conntrack_udp_timeout"), "2147000", NULL), 0);
	assert_true(sl_ms_left(7u + k.udp_timeout, 7) > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_fields_are_apart),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_refusal_names_the_range),
		cmocka_unit_test(test_timeouts_stay_below_half_the_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
