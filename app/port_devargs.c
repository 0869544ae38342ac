/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_devargs.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <net/if.h>
#include <rte_common.h>
#include <rte_kvargs.h>
#include <rte_mbuf.h>
#include <rte_pci.h>

#include "err.h"
#include "name.h"

enum key_kind { KEY_TEXT, KEY_NUMBER, KEY_BOOL, KEY_IFACE, KEY_FILE };

struct port_key {
	const char *name; /* NULL ends a list */
	enum key_kind kind;
	uint32_t max; /* of a number; 0: any */
};

/* net_null makes packets of any size in one buffer, whatever its room. */
#define NULL_SIZE_MAX RTE_MBUF_DEFAULT_DATAROOM

static const struct port_key af_packet_keys[] = {{"iface", KEY_IFACE}, {"qpairs", KEY_NUMBER},
	{"blocksz", KEY_NUMBER}, {"framesz", KEY_NUMBER}, {"framecnt", KEY_NUMBER},
	{"qdisc_bypass", KEY_BOOL}, {NULL, KEY_TEXT}};

static const struct port_key af_xdp_keys[] = {{"iface", KEY_IFACE}, {"start_queue", KEY_NUMBER},
	{"queue_count", KEY_NUMBER}, {"shared_umem", KEY_BOOL}, {"xdp_prog", KEY_FILE},
	{"busy_budget", KEY_NUMBER}, {"force_copy", KEY_BOOL}, {NULL, KEY_TEXT}};

static const struct port_key memif_keys[] = {{"id", KEY_NUMBER}, {"role", KEY_TEXT},
	{"bsize", KEY_NUMBER}, {"rsize", KEY_NUMBER}, {"socket", KEY_TEXT},
	{"socket-abstract", KEY_TEXT}, {"mac", KEY_TEXT}, {"zero-copy", KEY_TEXT},
	{"secret", KEY_TEXT}, {NULL, KEY_TEXT}};

static const struct port_key null_keys[] = {
	{"size", KEY_NUMBER, NULL_SIZE_MAX}, {"copy", KEY_NUMBER}, {"no-rx", KEY_BOOL},
	{NULL, KEY_TEXT}};

static const struct port_key pcap_keys[] = {{"rx_pcap", KEY_FILE}, {"tx_pcap", KEY_TEXT},
	{"rx_iface", KEY_IFACE}, {"rx_iface_in", KEY_IFACE}, {"tx_iface", KEY_IFACE},
	{"iface", KEY_IFACE}, {"phy_mac", KEY_BOOL}, {"infinite_rx", KEY_BOOL}, {NULL, KEY_TEXT}};

static const struct port_key ring_keys[] = {{"nodeaction", KEY_TEXT}, {NULL, KEY_TEXT}};

static const struct port_key tap_keys[] = {
	{"iface", KEY_TEXT}, {"mac", KEY_TEXT}, {"remote", KEY_IFACE}, {NULL, KEY_TEXT}};

static const struct port_driver drivers[] = {
	{.name = "net_af_packet", .alias = "eth_af_packet", .needs = "iface", .queue_key = "qpairs",
		.queue_per_worker = true, .all_queues = true, .keys = af_packet_keys},
	{.name = "net_af_xdp", .needs = "iface", .queue_key = "queue_count", .all_queues = true,
		.keys = af_xdp_keys},
	{.name = "net_memif", .keys = memif_keys},
	{.name = "net_null", .alias = "eth_null", .keys = null_keys},
	{.name = "net_pcap", .alias = "eth_pcap", .all_queues = true, .keys = pcap_keys},
	{.name = "net_ring", .alias = "eth_ring", .keys = ring_keys},
	{.name = "net_tap", .alias = "eth_tap", .pairs = true, .keys = tap_keys},
};

/* net_null, net_null0 and net_nullx are devices of net_null, as DPDK matches them. */
static const struct port_driver *
find_driver(const char *device)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(drivers); i++) {
		const struct port_driver *d = &drivers[i];

		if (strncmp(device, d->name, strlen(d->name)) == 0)
			return d;
		if (d->alias != NULL && strncmp(device, d->alias, strlen(d->alias)) == 0)
			return d;
	}
	return NULL;
}

/* "a, b, c" of a driver's keys. */
static const char *
list_keys(const struct port_driver *d, char *buf, size_t size)
{
	const struct port_key *k;
	size_t len = 0;

	for (k = d->keys; k->name != NULL && len < size; k++)
		len += (size_t)snprintf(
			buf + len, size - len, "%s%s", len == 0 ? "" : ", ", k->name);
	return buf;
}

static bool
is_number(const char *s, uint32_t max)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	return strtoul(s, &end, 10) <= max && errno == 0 && *end == '\0';
}

static int
check_value(const struct port_key *k, const char *value, struct sl_err *err)
{
	uint32_t max = k->max != 0 ? k->max : INT32_MAX;
	char shown[SL_SHOWN_MAX];

	switch (k->kind) {
	case KEY_TEXT:
		return 0;
	case KEY_NUMBER:
		if (!is_number(value, max))
			return sl_refuse(err, EINVAL, "%s=%s is no number from 0 to %u", k->name,
				sl_shown(value, shown), max);
		return 0;
	case KEY_BOOL:
		if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
			return sl_refuse(err, EINVAL, "%s=%s is neither 0 nor 1", k->name,
				sl_shown(value, shown));
		return 0;
	case KEY_IFACE:
		if (if_nametoindex(value) == 0)
			return sl_refuse(err, ENODEV, "%s=%s: there is no such network interface",
				k->name, sl_shown(value, shown));
		return 0;
	case KEY_FILE:
		if (access(value, R_OK) != 0)
			return sl_refuse(err, errno, "%s=%s: %s", k->name, sl_shown(value, shown),
				strerror(errno));
		return 0;
	}
	return 0;
}

static int
check_pair(const struct port_driver *d, const char *key, const char *value, struct sl_err *err)
{
	char shown[SL_SHOWN_MAX], keys[128];
	const struct port_key *k;

	if (value == NULL || *value == '\0')
		return sl_refuse(err, EINVAL, "devargs have \"%s\" without a value: give KEY=VALUE",
			sl_shown(key, shown));
	if (d == NULL)
		return 0;
	for (k = d->keys; k->name != NULL; k++) {
		if (strcmp(k->name, key) == 0)
			return check_value(k, value, err);
	}
	return sl_refuse(err, EINVAL, "%s has no key \"%s\": it has %s", d->name,
		sl_shown(key, shown), list_keys(d, keys, sizeof(keys)));
}

static const char *
pair_value(const struct rte_kvargs *kv, const char *key)
{
	unsigned int i;

	for (i = 0; i < kv->count; i++) {
		if (strcmp(kv->pairs[i].key, key) == 0)
			return kv->pairs[i].value;
	}
	return NULL;
}

/* Makes the driver's queues as many as asked for; refuses two numbers that do not agree. */
static int
add_queue_key(struct port_devargs *a, const struct rte_kvargs *kv, unsigned int queues,
	unsigned int workers, struct sl_err *err)
{
	const struct port_driver *d = a->driver;
	const char *given = pair_value(kv, d->queue_key);
	size_t len = strlen(a->text);

	if (given != NULL) {
		if (queues != 0 && strtoul(given, NULL, 10) != queues)
			return sl_refuse(err, EINVAL, "queues %u and %s=%s do not agree: give one",
				queues, d->queue_key, given);
		return 0;
	}
	if (queues == 0)
		queues = d->queue_per_worker ? workers : 1;
	snprintf(a->text + len, sizeof(a->text) - len, ",%s=%u", d->queue_key, queues);
	return 0;
}

static int
check_pairs(struct port_devargs *a, const char *args, unsigned int queues, unsigned int workers,
	struct sl_err *err)
{
	const struct port_driver *d = a->driver;
	struct rte_kvargs *kv = rte_kvargs_parse(args, NULL);
	unsigned int i;
	int ret = 0;

	if (kv == NULL)
		return sl_refuse(err, EINVAL, "devargs are malformed: give DRIVER,KEY=VALUE,…");
	for (i = 0; i < kv->count && ret == 0; i++)
		ret = check_pair(d, kv->pairs[i].key, kv->pairs[i].value, err);
	if (ret == 0 && d != NULL && d->needs != NULL && pair_value(kv, d->needs) == NULL)
		ret = sl_refuse(err, EINVAL, "%s needs %s=…", d->name, d->needs);
	if (ret == 0 && d != NULL && d->queue_key != NULL)
		ret = add_queue_key(a, kv, queues, workers, err);
	rte_kvargs_free(kv);
	return ret;
}

static int
check_device(struct port_devargs *a, const char *device, struct sl_err *err)
{
	char path[PORT_DEVICE_MAX + 32], shown[SL_SHOWN_MAX];
	struct rte_pci_addr addr;

	if (rte_pci_addr_parse(device, &addr) == 0) {
		rte_pci_device_name(&addr, a->device, sizeof(a->device));
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", a->device);
		if (access(path, F_OK) != 0)
			return sl_refuse(err, ENODEV, "there is no PCI device %s", a->device);
		return 0;
	}
	a->driver = find_driver(device);
	if (a->driver == NULL)
		return sl_refuse(err, EINVAL,
			"no driver for \"%s\": give a PCI address, gen, net_af_packet, net_af_xdp, "
			"net_memif, net_null, net_pcap, net_ring or net_tap",
			sl_shown(device, shown));
	strcpy(a->device, device);
	return sl_name_valid("device", device, PORT_DEVICE_MAX - 1, err);
}

int
port_devargs_parse(struct port_devargs *out, const char *devargs, unsigned int queues,
	unsigned int workers, struct sl_err *err)
{
	size_t device_len = strcspn(devargs, ",");
	char device[PORT_DEVICE_MAX];
	int ret;

	memset(out, 0, sizeof(*out));
	if (strlen(devargs) >= PORT_DEVARGS_MAX || device_len >= sizeof(device))
		return sl_refuse(err, EINVAL,
			"devargs are too long: at most %u characters, %u of them "
			"for the device's name",
			PORT_DEVARGS_MAX - 1, PORT_DEVICE_MAX - 1);
	memcpy(device, devargs, device_len);
	device[device_len] = '\0';
	ret = check_device(out, device, err);
	if (ret != 0)
		return ret;
	strcpy(out->text, devargs);
	return check_pairs(out, devargs[device_len] == ',' ? devargs + device_len + 1 : "", queues,
		workers, err);
}
