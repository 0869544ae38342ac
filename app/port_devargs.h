/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device arguments, checked before DPDK sees them: it accepts a name that exists and a key that no
 * driver knows without a word, and says of a missing interface or file only that it failed.
 */
#ifndef PORT_DEVARGS_H
#define PORT_DEVARGS_H

#include <stdbool.h>

#define PORT_DEVICE_MAX  64
#define PORT_DEVARGS_MAX 256

struct sl_err;

struct port_driver {
	const char *name;      /* its devices have this name and something behind it */
	const char *alias;     /* DPDK's older name, or NULL */
	const char *needs;     /* a key without which the driver does nothing, or NULL */
	const char *queue_key; /* the key that makes its queues, or NULL */
	bool queue_per_worker; /* queues may be made as many as there are workers */
	bool all_queues;       /* a queue that is not polled loses its packets */
	bool pairs;            /* wants as many transmit as receive queues */
	const struct port_key *keys;
};

struct port_devargs {
	char device[PORT_DEVICE_MAX];         /* as DPDK will name it */
	char text[PORT_DEVARGS_MAX + 32];     /* what rte_dev_probe() gets */
	const struct port_driver *driver;     /* NULL: a PCI device, whose driver DPDK finds */
};

/*
 * Checks devargs DRIVER…[,KEY=VALUE…] or PCI-ADDRESS[,KEY=VALUE…]: that the driver is known and has
 * each key, that values are of the key's kind, and that interfaces and files to read exist. The
 * driver's queue key is added as `queues` (0: as many as `workers`, where the driver can) asks for.
 * 0, -EINVAL, -ENOENT or -ENODEV with what to do in err.
 */
int port_devargs_parse(struct port_devargs *out, const char *devargs, unsigned int queues,
	unsigned int workers, struct sl_err *err);

#endif
