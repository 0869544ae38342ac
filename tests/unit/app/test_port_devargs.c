/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <rte_common.h>

#include "err.h"
#include "port_devargs.h"

#define X60 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void
test_accepted(void **state)
{
	static const struct {
		const char *devargs;
		unsigned int queues;
		const char *device, *text;
	} cases[] = {
		{"net_null0", 0, "net_null0", "net_null0"},
		{"net_null", 4, "net_null", "net_null"},
		{"eth_null7,size=64,copy=0,no-rx=1", 0, "eth_null7",
			"eth_null7,size=64,copy=0,no-rx=1"},
		{"net_af_packet0,iface=lo", 0, "net_af_packet0",
			"net_af_packet0,iface=lo,qpairs=3"},
		{"net_af_packet0,iface=lo", 2, "net_af_packet0",
			"net_af_packet0,iface=lo,qpairs=2"},
		{"net_af_packet0,iface=lo,qpairs=4", 0, "net_af_packet0",
			"net_af_packet0,iface=lo,qpairs=4"},
		{"net_af_packet0,iface=lo,qpairs=4", 4, "net_af_packet0",
			"net_af_packet0,iface=lo,qpairs=4"},
		/* a network interface need not have as many queues as there are workers */
		{"net_af_xdp0,iface=lo", 0, "net_af_xdp0", "net_af_xdp0,iface=lo,queue_count=1"},
		{"net_af_xdp0,iface=lo", 2, "net_af_xdp0", "net_af_xdp0,iface=lo,queue_count=2"},
		{"net_pcap0,rx_pcap=/dev/null,rx_pcap=/dev/zero,tx_iface=lo,infinite_rx=1", 0,
			"net_pcap0",
			"net_pcap0,rx_pcap=/dev/null,rx_pcap=/dev/zero,tx_iface=lo,infinite_rx=1"},
		{"net_tap0,iface=new0,mac=fixed", 0, "net_tap0", "net_tap0,iface=new0,mac=fixed"},
		{"net_memif0,role=server,id=1", 0, "net_memif0", "net_memif0,role=server,id=1"},
		{"net_ring0", 0, "net_ring0", "net_ring0"},
	};
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		struct port_devargs a;
		struct sl_err err = {""};
		int ret = port_devargs_parse(&a, cases[i].devargs, cases[i].queues, 3, &err);

		assert_string_equal(err.msg, "");
		assert_int_equal(ret, 0);
		assert_non_null(a.driver);
		assert_string_equal(a.device, cases[i].device);
		assert_string_equal(a.text, cases[i].text);
	}
}

static void
test_refused(void **state)
{
	static const struct {
		const char *devargs;
		unsigned int queues;
		int ret;
		const char *msg;
	} cases[] = {
		{"", 0, -EINVAL, "no driver for \"\": give a PCI address, gen, net_af_packet"},
		{"net_foo0", 0, -EINVAL, "no driver for \"net_foo0\""},
		{"veth0", 0, -EINVAL, "no driver for \"veth0\""},
		{"net_nul,size=1", 0, -EINVAL, "no driver for \"net_nul\""},
		{"net_null0\n", 0, -EINVAL, "no device name"},
		{"net_null 0", 0, -EINVAL, "no device name"},
		{"net_null0,sze=64", 0, -EINVAL,
			"net_null has no key \"sze\": it has size, copy, no-rx"},
		{"net_null0,iface=lo", 0, -EINVAL, "net_null has no key \"iface\""},
		{"net_null0,size", 0, -EINVAL, "\"size\" without a value"},
		{"net_null0,size=", 0, -EINVAL, "\"size\" without a value"},
		{"net_null0,size=big", 0, -EINVAL, "size=big is no number from 0 to 2048"},
		{"net_null0,size=2049", 0, -EINVAL, "size=2049 is no number from 0 to 2048"},
		{"net_null0,size=-1", 0, -EINVAL, "size=-1 is no number"},
		{"net_null0,size=99999999999", 0, -EINVAL, "is no number"},
		{"net_null0,no-rx=2", 0, -EINVAL, "no-rx=2 is neither 0 nor 1"},
		{"net_af_packet0", 0, -EINVAL, "net_af_packet needs iface="},
		{"net_af_packet0,iface=nosuch0", 0, -ENODEV,
			"iface=nosuch0: there is no such network interface"},
		{"net_af_packet0,iface=lo,qpairs=2", 3, -EINVAL,
			"queues 3 and qpairs=2 do not agree"},
		{"net_af_xdp0,iface=nosuch0", 0, -ENODEV, "there is no such network interface"},
		{"net_pcap0,rx_pcap=/nonexistent.pcap", 0, -ENOENT,
			"rx_pcap=/nonexistent.pcap: No such file"},
		{"net_pcap0,rx_iface=nosuch0", 0, -ENODEV, "there is no such network interface"},
		{"ffff:ff:1f.7", 0, -ENODEV, "there is no PCI device ffff:ff:1f.7"},
		{"ff:1f.7", 0, -ENODEV, "there is no PCI device 0000:ff:1f.7"},
		{"net_null" X60, 0, -EINVAL, "too long"},
		{"net_null0,size=" X60 X60 X60 X60 "x", 0, -EINVAL, "too long"},
		{"net_null0,size=" X60 X60 X60, 0, -EINVAL, "is no number"},
	};
	unsigned int i;
	(void)state;

	for (i = 0; i < RTE_DIM(cases); i++) {
		struct port_devargs a;
		struct sl_err err = {""};
		int ret = port_devargs_parse(&a, cases[i].devargs, cases[i].queues, 3, &err);

		if (strstr(err.msg, cases[i].msg) == NULL)
			fail_msg("\"%s\" answers \"%s\"", cases[i].devargs, err.msg);
		assert_int_equal(ret, cases[i].ret);
		assert_null(strchr(err.msg, '\n'));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
