/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_eth.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include "err.h"
#include "log.h"
#include "port.h"
#include "port_devargs.h"

SL_LOG_REGISTER(port);

#define RX_DESC 512
#define TX_DESC 512

#define RX_CHECKSUM                                                                                \
	(RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM |                            \
		RTE_ETH_RX_OFFLOAD_TCP_CKSUM)

static uint16_t
eth_rx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	return rte_eth_rx_burst(port->ethdev, queue, m, n);
}

static uint16_t
eth_tx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	return rte_eth_tx_burst(port->ethdev, queue, m, n);
}

/* Takes a device that is not started out of DPDK. */
static void
eth_detach(uint16_t id)
{
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(id, &info);

	if (ret == 0)
		ret = rte_eth_dev_close(id);
	if (ret == 0)
		ret = rte_dev_remove(info.device);
	if (ret != 0)
		SL_LOG(WARNING, "a device of DPDK (number %u) cannot be detached: %s", id,
			rte_strerror(-ret));
}

static void
eth_stop(const struct port *port)
{
	int ret = rte_eth_dev_stop(port->ethdev);

	if (ret != 0)
		SL_LOG(WARNING, "port %s does not stop: %s", port->name, rte_strerror(-ret));
}

static void
eth_close(struct port *port)
{
	eth_stop(port);
	eth_detach(port->ethdev);
}

static const struct port_ops eth_ops = {.rx = eth_rx, .tx = eth_tx, .close = eth_close};

static int
eth_attach(const struct port_devargs *a, uint16_t *id, struct sl_err *err)
{
	int ret;

	if (rte_eth_dev_get_port_by_name(a->device, id) == 0)
		return sl_refuse(err, EEXIST,
			"device %s is in use by another port: give this one another name",
			a->device);
	if (rte_eth_dev_count_total() >= RTE_MAX_ETHPORTS)
		return sl_refuse(err, ENOSPC, "DPDK has no room for more than %u devices",
			RTE_MAX_ETHPORTS);
	ret = rte_dev_probe(a->text);
	if (ret != 0)
		return sl_refuse(err, ENODEV,
			"DPDK cannot attach %s: the reason is on the daemon's log", a->device);
	if (rte_eth_dev_get_port_by_name(a->device, id) != 0)
		return sl_refuse(err, ENODEV,
			"no driver of DPDK took device %s: bind it to vfio-pci, or see the log",
			a->device);
	return 0;
}

/* How many queues of each kind; both within what the device has. */
static int
eth_size(struct port *port, const struct port_devargs *a, const struct rte_eth_dev_info *info,
	unsigned int workers, unsigned int queues)
{
	const struct port_driver *d = a->driver;
	bool all = d != NULL && d->all_queues;
	unsigned int rx = info->max_rx_queues, tx = RTE_MIN(info->max_tx_queues, workers);

	if (queues != 0 && (queues > rx || (all && queues != rx)))
		return -ERANGE;
	if (!all)
		rx = queues != 0 ? queues : RTE_MIN(rx, workers);
	if (rx > PORT_QUEUES_MAX)
		return -E2BIG;
	if (d != NULL && d->pairs)
		tx = rx;
	if (tx == 0)
		return -ENOTSUP;
	port->n_queues = (uint16_t)rx;
	port->n_txq = (uint16_t)RTE_MIN(tx, (unsigned int)PORT_QUEUES_MAX);
	port->tx_shared = workers > port->n_txq;
	return 0;
}

static int
eth_configure(struct port *port, const struct rte_eth_dev_info *info)
{
	struct rte_eth_conf conf = {0};

	/* What the port has verified need not be read again; all else is done in software, so that
	 * every port behaves alike. MBUF_FAST_FREE stays off: a generator's buffers are shared. */
	conf.rxmode.offloads = info->rx_offload_capa & RX_CHECKSUM;
	conf.txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (port->n_queues > 1 && info->flow_type_rss_offloads != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads &
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP);
	}
	return rte_eth_dev_configure(port->ethdev, port->n_queues, port->n_txq, &conf);
}

static int
eth_setup_queues(struct port *port, const struct rte_eth_dev_info *info, struct rte_mempool *pool)
{
	int socket = rte_eth_dev_socket_id(port->ethdev);
	uint16_t rx_desc = RX_DESC, tx_desc = TX_DESC, q;
	int ret = rte_eth_dev_adjust_nb_rx_tx_desc(port->ethdev, &rx_desc, &tx_desc);

	for (q = 0; q < port->n_queues && ret == 0; q++)
		ret = rte_eth_rx_queue_setup(port->ethdev, q, rx_desc, (unsigned int)socket,
			&info->default_rxconf, pool);
	for (q = 0; q < port->n_txq && ret == 0; q++)
		ret = rte_eth_tx_queue_setup(port->ethdev, q, tx_desc, (unsigned int)socket,
			&info->default_txconf);
	return ret;
}

static int
eth_start(struct port *port, struct sl_err *err)
{
	int ret = rte_eth_dev_start(port->ethdev);

	if (ret != 0)
		return sl_refuse(err, -ret, "port %s does not start: %s", port->name,
			rte_strerror(-ret));
	ret = rte_eth_promiscuous_enable(port->ethdev);
	if (ret != 0 && ret != -ENOTSUP) {
		eth_stop(port);
		return sl_refuse(err, -ret, "port %s cannot be promiscuous: %s", port->name,
			rte_strerror(-ret));
	}
	return 0;
}

static int
eth_bring_up(struct gateway *gw, struct port *port, const struct port_devargs *a,
	unsigned int queues, struct sl_err *err)
{
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port->ethdev, &info);

	if (ret == 0)
		ret = eth_size(port, a, &info, gw->n_workers, queues);
	if (ret == -ERANGE)
		return sl_refuse(err, EINVAL,
			"port %s has %u receive queues, not %u: leave out queues", port->name,
			info.max_rx_queues, queues);
	if (ret == -E2BIG)
		return sl_refuse(err, EINVAL, "port %s has more than %u receive queues", port->name,
			PORT_QUEUES_MAX);
	if (ret == -ENOTSUP)
		return sl_refuse(err, ENOTSUP, "port %s cannot send", port->name);
	if (ret == 0)
		ret = eth_configure(port, &info);
	if (ret != 0)
		return sl_refuse(err, -ret, "port %s does not take its configuration: %s",
			port->name, rte_strerror(-ret));
	ret = eth_setup_queues(port, &info, gw->pool);
	if (ret != 0)
		return sl_refuse(err, -ret, "port %s cannot have its queues: %s%s", port->name,
			rte_strerror(-ret),
			ret == -ENOMEM ? "; raise --memory" : " (see the daemon's log)");
	return eth_start(port, err);
}

int
port_eth_open(struct gateway *gw, struct port *port, const char *devargs, unsigned int queues,
	struct sl_err *err)
{
	struct port_devargs a;
	int ret = port_devargs_parse(&a, devargs, queues, gw->n_workers, err);

	if (ret == 0)
		ret = eth_attach(&a, &port->ethdev, err);
	if (ret != 0)
		return ret;
	port->ops = &eth_ops;
	ret = eth_bring_up(gw, port, &a, queues, err);
	if (ret != 0)
		eth_detach(port->ethdev);
	else if (rte_eth_macaddr_get(port->ethdev, &port->mac) != 0)
		memset(&port->mac, 0, sizeof(port->mac));
	return ret;
}
