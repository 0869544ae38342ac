/* SPDX-License-Identifier: BSD-3-Clause */
/* port add, list, delete. */
#include "port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "txn.h"

static void
undo_add(struct gateway *gw, void *arg)
{
	port_delete(gw, arg, NULL);
}

static int
cmd_port_add(struct call *c)
{
	const char *name = call_string(c, "name");
	char *copy;
	int ret;

	ret = txn_flush(c->txn, &c->err);
	if (ret != 0)
		return ret;
	copy = strdup(name);
	if (copy == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	ret = port_add(c->gw, name, call_string(c, "devargs"), call_uint(c, "queues"), &c->err);
	if (ret == 0 && txn_on_undo(c->txn, undo_add, copy, free) != 0) {
		port_delete(c->gw, name, NULL);
		ret = sl_refuse(&c->err, ENOMEM, "out of memory");
	}
	if (ret != 0)
		free(copy);
	return ret;
}

static int
cmd_port_delete(struct call *c)
{
	const char *name = call_string(c, "name");
	struct port *p = port_find(c->gw, name);

	if (p == NULL)
		return sl_refuse(&c->err, ENOENT, "there is no port \"%s\"", name);
	return txn_delete_port(c->txn, p, &c->err);
}

static json_t *
port_object(const struct port *p, unsigned int workers)
{
	struct port_counters sum = {0};
	const struct port_counters *k;
	unsigned int w;

	for (w = 0; w < workers; w++) {
		k = &p->counters[w];
		sum.rx_packets += __atomic_load_n(&k->rx_packets, __ATOMIC_RELAXED);
		sum.rx_bytes += __atomic_load_n(&k->rx_bytes, __ATOMIC_RELAXED);
		sum.tx_packets += __atomic_load_n(&k->tx_packets, __ATOMIC_RELAXED);
		sum.tx_bytes += __atomic_load_n(&k->tx_bytes, __ATOMIC_RELAXED);
		sum.tx_dropped += __atomic_load_n(&k->tx_dropped, __ATOMIC_RELAXED);
	}
	return json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I}", "name", p->name,
		"devargs", p->devargs, "queues", (int)p->n_queues, "links", (json_int_t)p->n_links,
		"rx_packets", (json_int_t)sum.rx_packets, "rx_bytes", (json_int_t)sum.rx_bytes,
		"tx_packets", (json_int_t)sum.tx_packets, "tx_bytes", (json_int_t)sum.tx_bytes,
		"tx_dropped", (json_int_t)sum.tx_dropped);
}

static int
cmd_port_list(struct call *c)
{
	(void)c;
	return 0;
}

/* There are so few that they are one slice. */
static enum task_step
cmd_port_list_step(struct call *c)
{
	unsigned int i;

	for (i = 0; i < GW_PORTS_MAX; i++)
		if (c->gw->ports[i] != NULL)
			call_item(c, port_object(c->gw->ports[i], c->gw->n_workers));
	return TASK_DONE;
}

const struct command_handler commands_port[] = {
	{"port.add", cmd_port_add, NULL, NULL},
	{"port.delete", cmd_port_delete, NULL, NULL},
	{"port.list", cmd_port_list, cmd_port_list_step, NULL},
	{0},
};
