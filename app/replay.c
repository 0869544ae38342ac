/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The main thread is the one worker and control at once: it takes the next event, a packet of the
 * inputs or a command of --at, whichever is earlier, moves the clock there and carries it out.
 * Packets are fed one by one, each with its own time, so that no grouping can show in the result.
 *
 * The sweep gets what a worker would give it: a share with every packet, and more in the gaps
 * between packets, where a worker polls idly. Deadlines are compared as signed 32-bit differences,
 * so a gap longer than half of that range is crossed in steps, while there are entries to expire.
 */
#include "replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "clock.h"
#include "command.h"
#include "config_file.h"
#include "conntrack.h"
#include "datapath.h"
#include "err.h"
#include "frag.h"
#include "gateway.h"
#include "port.h"
#include "rcu.h"
#include "replay_args.h"
#include "replay_capture.h"
#include "replay_eal.h"
#include "rpc.h"
#include "table_growth.h"
#include "worker.h"

/* A worker that finds nothing polls again at once; this often is enough to keep the sweep going. */
#define IDLE_POLL_NS (SL_NSEC_PER_MSEC / 10)

/* A quarter of the range of 32-bit milliseconds. */
#define STEP_NS ((UINT64_C(1) << 30) * SL_NSEC_PER_MSEC)

/* One packet is under way at a time, of up to 256 KB; a quarter may hold fragments that wait. */
#define BUFFERS 8192

/* Any fixed value: a result must be the same every time. */
#define HASH_SEED UINT64_C(0x736c75696365)

struct input {
	struct capture_in capture;
	struct port *port; /* NULL: the configuration has none of the name (any more) */
};

struct output {
	struct capture_out capture;
	bool bound;
};

static struct replay {
	struct replay_args args;
	struct gateway *gw;
	struct worker *worker;
	struct input *inputs;   /* args.n_rx */
	struct output *outputs; /* args.n_tx */
	struct input *arrived;  /* whose packet rx() gives next */
	struct sl_now now;
	uint64_t start_ns; /* time of the first packet */
	bool refused;      /* a command was */
} replay;

/* ---- ports ---- */

static uint16_t
replay_rx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct input *in = replay.arrived;

	(void)queue;
	if (n == 0 || in == NULL || in->port != port)
		return 0;
	replay.arrived = NULL;
	m[0] = capture_in_frame(&in->capture, replay.gw->pool);
	return m[0] != NULL;
}

static uint16_t
replay_tx(struct port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	struct output *out = port->priv;
	uint16_t i;

	(void)queue;
	for (i = 0; i < n; i++) {
		if (out != NULL)
			capture_out_write(&out->capture, replay.now.ns, m[i]);
		rte_pktmbuf_free(m[i]);
	}
	return n;
}

static void
replay_close(struct port *port)
{
	unsigned int i;

	for (i = 0; i < replay.args.n_rx; i++) {
		if (replay.inputs[i].port == port)
			replay.inputs[i].port = NULL;
	}
}

int
replay_port_open(struct gateway *gw, struct port *port, struct sl_err *err)
{
	static const struct port_ops ops = {
		.rx = replay_rx,
		.tx = replay_tx,
		.close = replay_close,
	};
	unsigned int i;

	(void)gw;
	(void)err;
	port->ops = &ops;
	port->ethdev = UINT16_MAX;
	port->n_queues = 1;
	port->n_txq = 1;
	for (i = 0; i < replay.args.n_rx; i++) {
		if (strcmp(replay.args.rx[i].port, port->name) == 0)
			replay.inputs[i].port = port;
	}
	for (i = 0; i < replay.args.n_tx; i++) {
		if (strcmp(replay.args.tx[i].port, port->name) != 0)
			continue;
		port->priv = &replay.outputs[i];
		replay.outputs[i].bound = true;
	}
	return 0;
}

/* ---- time ---- */

static struct sl_now
capture_clock(struct gateway *gw)
{
	(void)gw;
	return replay.now;
}

/* Sweeps up to `polls` times, or once round the pool when that is less. An idle sweep is wider, but
 * conntrack lets it begin a round only every so often. */
static void
sweep(uint64_t polls, bool idle)
{
	const struct ct *ct = replay.gw->ct;
	struct ct_stats stats;
	struct ct_walk pool;
	uint64_t before, end;

	ct_walk_start(ct, &pool, replay.now);
	ct_stats(ct, replay.worker->index, &stats);
	replay.worker->now = replay.now;
	end = stats.swept + pool.end;
	datapath_sweep_waiting(replay.worker, replay.now);
	for (; polls > 0 && stats.swept < end; polls--) {
		before = stats.swept;
		ct_sweep(replay.worker->ct, idle, replay.now);
		ct_stats(ct, replay.worker->index, &stats);
		if (stats.swept == before)
			break;
	}
}

static bool
something_expires(void)
{
	struct frag_stats held;

	frag_stats(replay.gw->frag, &held);
	return ct_count(replay.gw->ct) > 0 || held.datagrams > 0;
}

static void
advance(uint64_t ns)
{
	uint64_t gap;

	while (ns - replay.now.ns > STEP_NS && something_expires()) {
		replay.now = sl_now_from_ns(replay.now.ns + STEP_NS);
		sweep(UINT64_MAX, false);
	}
	gap = ns - replay.now.ns;
	replay.now = sl_now_from_ns(ns);
	if (gap >= IDLE_POLL_NS)
		sweep(gap / IDLE_POLL_NS, true);
}

/* ---- events ---- */

/* The input whose packet is next: the earliest; of equal ones that of the first --rx. */
static int
next_input(struct input **next, struct sl_err *err)
{
	struct input *in;
	unsigned int i;

	*next = NULL;
	for (i = 0; i < replay.args.n_rx; i++) {
		in = &replay.inputs[i];
		if (capture_in_peek(&in->capture, err) < 0)
			return -EIO;
		if (in->capture.ready &&
			(*next == NULL || in->capture.time_ns < (*next)->capture.time_ns))
			*next = in;
	}
	return 0;
}

static void
grow(void)
{
	sl_rcu_offline();
	table_growth_check(replay.gw);
	sl_rcu_online();
}

static void
feed(struct input *in)
{
	struct worker *w = replay.worker;
	struct port *port = in->port;
	struct rte_mbuf *m;

	if (port != NULL) {
		replay.arrived = in;
		if (port->ops->rx(port, 0, &m, 1) == 1)
			datapath_burst(w, port, &m, 1, replay.now);
		datapath_flush(w);
	}
	in->capture.ready = false;
	datapath_sweep(w, false, replay.now);
	sl_rcu_quiescent();
	if (unlikely(table_growth_due(replay.gw)))
		grow();
}

/* A refused command is part of the result, as any answer is, and shows in the exit status. */
static int
run_command(const char *command, struct sl_err *err)
{
	struct sl_err why;
	json_t *result;
	int ret;

	sweep(UINT64_MAX, false); /* so that what is counted is what is listed */
	sl_rcu_offline();
	ret = command_run_text(replay.gw, command, &result, &why);
	sl_rcu_online();
	if (ret < 0) {
		replay.refused = true;
		result = json_pack("{s:{s:i,s:s}}", "error", "code",
			ret == -ENOTSUP ? RPC_NOT_AVAILABLE : RPC_REFUSED, "message", why.msg);
	}
	if (result == NULL || json_dumpf(result, stdout, JSON_COMPACT) < 0)
		ret = -EIO;
	else
		ret = 0;
	json_decref(result);
	putchar('\n');
	if (ret < 0)
		return sl_refuse(err, EIO, "the answer to '%s' could not be printed", command);
	return 0;
}

/* All events in order of time, commands before packets of their moment. */
static int
run_events(struct sl_err *err)
{
	const struct replay_args *a = &replay.args;
	uint64_t end = a->has_until ? replay.start_ns + a->until_ns : UINT64_MAX;
	unsigned int at = 0;
	struct input *in;

	for (;;) {
		if (next_input(&in, err) < 0)
			return -EIO;
		if (at < a->n_at && (in == NULL ||
			replay.start_ns + a->at[at].ns <= in->capture.time_ns)) {
			advance(replay.start_ns + a->at[at].ns);
			if (run_command(a->at[at++].command, err) < 0)
				return -EIO;
			continue;
		}
		if (in == NULL || in->capture.time_ns > end)
			break;
		advance(in->capture.time_ns);
		feed(in);
	}
	if (a->has_until)
		advance(end);
	return 0;
}

/* ---- start and end ---- */

static int
open_inputs(struct sl_err *err)
{
	struct input *first;
	unsigned int i;

	for (i = 0; i < replay.args.n_rx; i++) {
		if (capture_in_open(&replay.inputs[i].capture, replay.args.rx[i].path, err) < 0)
			return -EINVAL;
	}
	if (next_input(&first, err) < 0)
		return -EIO;
	replay.start_ns = first == NULL ? 0 : first->capture.time_ns;
	replay.now = sl_now_from_ns(replay.start_ns);
	return 0;
}

static int
check_ports(struct sl_err *err)
{
	const struct replay_args *a = &replay.args;
	unsigned int i;

	for (i = 0; i < a->n_rx; i++) {
		if (replay.inputs[i].port == NULL)
			return sl_refuse(err, ENOENT, "--rx %s=%s: %s adds no port of that name",
				a->rx[i].port, a->rx[i].path, a->config);
	}
	for (i = 0; i < a->n_tx; i++) {
		if (!replay.outputs[i].bound)
			return sl_refuse(err, ENOENT, "--tx %s=%s: %s adds no port of that name",
				a->tx[i].port, a->tx[i].path, a->config);
	}
	return 0;
}

/* Whether two paths are the same file, now. Devices and pipes may be shared. */
static bool
same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && S_ISREG(sa.st_mode) &&
	       sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static int
open_output(unsigned int i, struct sl_err *err)
{
	const struct replay_args *a = &replay.args;
	const char *path = a->tx[i].path;
	unsigned int j;

	for (j = 0; j < a->n_rx; j++) {
		if (same_file(path, a->rx[j].path))
			return sl_refuse(err, EINVAL, "--tx %s=%s: that file is an input",
				a->tx[i].port, path);
	}
	for (j = 0; j < i; j++) {
		if (same_file(path, a->tx[j].path))
			return sl_refuse(err, EINVAL, "--tx %s=%s: port %s has that file",
				a->tx[i].port, path, a->tx[j].port);
	}
	return capture_out_open(&replay.outputs[i].capture, path, err);
}

static int
build_gateway(struct sl_err *err)
{
	const struct gateway_config config = {
		.n_workers = 1,
		.buffers = BUFFERS,
		.hash = SL_HASH_SIPHASH,
		.hash_seed = HASH_SEED,
		.replay = true,
		.clock = capture_clock,
	};
	int ret = gateway_create(&config, &replay.gw, err);

	if (ret == 0) {
		replay.worker = replay.gw->workers[0];
		ret = config_file_apply(replay.gw, replay.args.config, err);
	}
	return ret;
}

/* Outputs are opened when nothing is left to refuse, so that a mistake overwrites no file. */
static int
run(struct sl_err *err)
{
	unsigned int i;
	int ret;

	ret = open_inputs(err);
	if (ret == 0)
		ret = build_gateway(err);
	if (ret == 0)
		ret = check_ports(err);
	for (i = 0; ret == 0 && i < replay.args.n_tx; i++)
		ret = open_output(i, err);
	if (ret < 0)
		return ret;
	sl_rcu_register_thread();
	ret = run_events(err);
	sl_rcu_unregister_thread();
	return ret;
}

/* Closes everything; a failure to write is reported unless there is one already. */
static int
finish(int ret, struct sl_err *err)
{
	unsigned int i;

	gateway_destroy(replay.gw);
	for (i = 0; i < replay.args.n_rx; i++) {
		capture_in_report(&replay.inputs[i].capture);
		capture_in_close(&replay.inputs[i].capture);
	}
	for (i = 0; i < replay.args.n_tx; i++) {
		struct sl_err why;

		if (capture_out_close(&replay.outputs[i].capture, &why) < 0 && ret == 0) {
			*err = why;
			ret = -EIO;
		}
	}
	if ((fflush(stdout) != 0 || ferror(stdout)) && ret == 0)
		ret = sl_refuse(err, EIO, "standard output: %s", strerror(errno));
	return ret;
}

static int
run_all(struct sl_err *err)
{
	int ret = replay_eal_init(err);

	if (ret < 0)
		return ret;
	ret = sl_rcu_start(NULL, NULL);
	if (ret < 0) {
		sl_refuse(err, -ret, "no thread can be started: %s", strerror(-ret));
	} else {
		ret = finish(run(err), err);
		sl_rcu_stop();
	}
	rte_eal_cleanup();
	return ret;
}

static int
usage(const struct sl_err *err)
{
	fprintf(stderr, "sluice replay: %s\n%s", err->msg, replay_usage);
	return 2;
}

int
replay_main(int argc, char **argv)
{
	struct sl_err err;
	int ret = replay_args_parse(&replay.args, argc, argv, &err);

	if (ret < 0 || replay.args.help) {
		replay_args_free(&replay.args);
		return ret < 0 ? usage(&err) : (fputs(replay_usage, stdout), 0);
	}
	replay.inputs = calloc(replay.args.n_rx + 1, sizeof(*replay.inputs));
	replay.outputs = calloc(replay.args.n_tx + 1, sizeof(*replay.outputs));
	if (replay.inputs == NULL || replay.outputs == NULL)
		ret = sl_refuse(&err, ENOMEM, "out of memory");
	else
		ret = run_all(&err);
	free(replay.inputs);
	free(replay.outputs);
	replay_args_free(&replay.args);
	if (ret < 0)
		fprintf(stderr, "sluice replay: %s\n", err.msg);
	return ret < 0 || replay.refused;
}
