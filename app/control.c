/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One thread with an event loop that sleeps when there is nothing to do. The order of starting:
 * what can be refused without side effects, then EAL, tables and ports, then the workers, and at
 * last the socket, so that who can connect sees a gateway that is complete.
 */
#include "control.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <signal.h>
#include <string.h>

#include <rte_eal.h>

#include "config_file.h"
#include "err.h"
#include "log.h"
#include "metrics.h"
#include "rpc.h"
#include "rpc_socket.h"
#include "table_growth.h"
#include "task.h"
#include "telemetry.h"
#include "worker.h"

SL_LOG_REGISTER(control);

struct control {
	struct event_base *base;
	struct event *on_term, *on_int;
	struct gateway *gw;
	struct metrics *metrics;
	struct rpc_server *rpc;
	bool eal, tasks, telemetry;
};

static void
on_signal(evutil_socket_t sig, short what, void *arg)
{
	(void)what;
	SL_LOG(NOTICE, "stopping (%s)", strsignal(sig));
	event_base_loopbreak(arg);
}

static int
start_loop(struct control *c, struct sl_err *err)
{
	if (evthread_use_pthreads() != 0)
		return sl_refuse(err, ENOMEM, "out of memory");
	c->base = event_base_new();
	if (c->base == NULL)
		return sl_refuse(err, errno, "cannot make an event loop: %s", strerror(errno));
	c->on_term = evsignal_new(c->base, SIGTERM, on_signal, c->base);
	c->on_int = evsignal_new(c->base, SIGINT, on_signal, c->base);
	if (c->on_term == NULL || c->on_int == NULL || event_add(c->on_term, NULL) != 0 ||
		event_add(c->on_int, NULL) != 0)
		return sl_refuse(err, ENOMEM, "out of memory");
	return 0;
}

static int
build_gateway(struct control *c, const struct control_options *o, struct sl_err *err)
{
	struct gateway_config config = {0};
	unsigned int lcores[GW_WORKERS_MAX];
	int ret;

	ret = eal_start(&o->eal, lcores, &config.n_workers, err);
	c->eal = ret == 0;
	if (ret != 0)
		return ret;
	config.lcores = lcores;
	config.buffers = eal_buffers(&o->eal);
	ret = task_start(c->base, err);
	c->tasks = ret == 0;
	return ret == 0 ? gateway_create(&config, &c->gw, err) : ret;
}

static int
open_doors(struct control *c, const struct control_options *o, struct sl_err *err)
{
	int fd, ret;

	ret = telemetry_start(c->gw, c->base, err);
	c->telemetry = ret == 0;
	if (ret == 0 && o->metrics != NULL)
		ret = metrics_start(c->gw, c->base, o->metrics, &c->metrics, err);
	if (ret != 0)
		return ret;
	fd = rpc_socket_open(o->socket, o->group, err);
	if (fd < 0)
		return fd;
	table_growth_start(c->gw);
	c->rpc = rpc_start(c->gw, c->base, fd, err);
	return c->rpc != NULL ? 0 : -ENOMEM;
}

/* In the reverse order; of what was not started nothing is done. */
static void
stop_all(struct control *c)
{
	rpc_stop(c->rpc);
	rpc_socket_remove();
	metrics_stop(c->metrics);
	if (c->telemetry)
		telemetry_stop();
	if (c->gw != NULL)
		table_growth_stop(c->gw);
	if (c->tasks)
		task_drain();
	if (c->gw != NULL)
		worker_stop_all(c->gw);
	if (c->tasks)
		task_stop();
	gateway_destroy(c->gw);
	if (c->on_term != NULL)
		event_free(c->on_term);
	if (c->on_int != NULL)
		event_free(c->on_int);
	if (c->base != NULL)
		event_base_free(c->base);
	if (c->eal)
		rte_eal_cleanup();
}

static int
start_all(struct control *c, const struct control_options *o, struct sl_err *err)
{
	int ret;

	ret = rpc_socket_check(o->socket, err);
	if (ret == 0)
		ret = start_loop(c, err);
	if (ret == 0)
		ret = build_gateway(c, o, err);
	if (ret == 0)
		ret = config_file_apply(c->gw, o->config, err);
	if (ret == 0)
		ret = worker_start_all(c->gw, err);
	return ret == 0 ? open_doors(c, o, err) : ret;
}

int
control_run(const struct control_options *o, struct sl_err *err)
{
	struct control c = {0};
	int ret;

	signal(SIGPIPE, SIG_IGN);
	ret = start_all(&c, o, err);
	if (ret == 0) {
		SL_LOG(NOTICE, "%u worker%s, listening on %s", c.gw->n_workers,
			c.gw->n_workers == 1 ? "" : "s", o->socket);
		event_base_dispatch(c.base);
	}
	stop_all(&c);
	return ret;
}
