/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "generator.h"
#include "link.h"
#include "name.h"
#include "port_eth.h"
#include "replay.h"
#include "worker.h"

struct port *
port_find(const struct gateway *gw, const char *name)
{
	unsigned int i;

	for (i = 0; i < GW_PORTS_MAX; i++) {
		if (gw->ports[i] != NULL && strcmp(gw->ports[i]->name, name) == 0)
			return gw->ports[i];
	}
	return NULL;
}

static int
port_check(const struct gateway *gw, const char *name, const char *devargs, unsigned int queues,
	struct sl_err *err)
{
	int ret = sl_name_valid("port", name, PORT_NAME_MAX, err);

	if (ret != 0)
		return ret;
	if (port_find(gw, name) != NULL)
		return sl_refuse(err, EEXIST, "port %s exists already", name);
	if (strlen(devargs) >= sizeof(((struct port *)NULL)->devargs))
		return sl_refuse(err, EINVAL, "devargs of port %s are longer than %zu characters",
			name, sizeof(((struct port *)NULL)->devargs) - 1);
	if (queues > PORT_QUEUES_MAX)
		return sl_refuse(err, EINVAL, "queues %u is out of range: 1 to %u", queues,
			PORT_QUEUES_MAX);
	return 0;
}

static int
port_alloc(const struct gateway *gw, const char *name, const char *devargs, struct port **out,
	struct sl_err *err)
{
	unsigned int index = 0;
	struct port *port;

	while (index < GW_PORTS_MAX && gw->ports[index] != NULL)
		index++;
	if (index == GW_PORTS_MAX)
		return sl_refuse(err, ENOSPC,
			"there are %u ports, the most there can be: delete one first",
			GW_PORTS_MAX);
	port = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*port));
	if (port == NULL)
		return sl_refuse(err, ENOMEM, "no memory for port %s", name);
	memset(port, 0, sizeof(*port));
	port->index = (uint16_t)index;
	port->ethdev = UINT16_MAX;
	strcpy(port->name, name);
	strcpy(port->devargs, devargs);
	*out = port;
	return 0;
}

static int
port_open(struct gateway *gw, struct port *port, unsigned int queues, struct sl_err *err)
{
	if (gw->replay)
		return replay_port_open(gw, port, err);
	if (strcmp(port->devargs, "gen") == 0 || strncmp(port->devargs, "gen,", 4) == 0) {
		port->n_queues = (uint16_t)(queues != 0 ? queues : gw->n_workers);
		return generator_open(gw, port, port->devargs, err);
	}
	return port_eth_open(gw, port, port->devargs, queues, err);
}

int
port_add(struct gateway *gw, const char *name, const char *devargs, unsigned int queues,
	struct sl_err *err)
{
	struct port *port = NULL;
	int ret = port_check(gw, name, devargs, queues, err);

	if (ret != 0)
		return ret;
	ret = port_alloc(gw, name, devargs, &port, err);
	if (ret != 0)
		return ret;
	ret = port_open(gw, port, queues, err);
	if (ret != 0)
		goto free_port;
	gw->ports[port->index] = port;
	ret = worker_replan(gw, err);
	if (ret != 0)
		goto close_port;
	return 0;

close_port:
	gw->ports[port->index] = NULL;
	port->ops->close(port);
free_port:
	free(port);
	return ret;
}

int
port_delete(struct gateway *gw, const char *name, struct sl_err *err)
{
	struct port *port = port_find(gw, name);
	char shown[SL_SHOWN_MAX];
	int ret;

	if (port == NULL)
		return sl_refuse(err, ENOENT, "no port %s", sl_shown(name, shown));
	if (port->n_links != 0)
		return sl_refuse(err, EBUSY, "port %s has %u links: delete them first", name,
			port->n_links);
	gw->ports[port->index] = NULL;
	ret = worker_replan(gw, err);
	if (ret != 0) {
		gw->ports[port->index] = port;
		return ret;
	}
	port->ops->close(port);
	link_map_free(port);
	free(port);
	return 0;
}
