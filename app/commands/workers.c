/* SPDX-License-Identifier: BSD-3-Clause */
/* show workers: what each does in a short while from the command on. */
#include <errno.h>
#include <stdlib.h>

#include "command.h"
#include "worker_load.h"

#define SAMPLE_MS 250

static int
show_workers(struct call *c)
{
	struct worker_mark *from;

	from = calloc(GW_WORKERS_MAX, sizeof(*from));
	if (from == NULL)
		return sl_refuse(&c->err, ENOMEM, "out of memory");
	if (!c->once)
		worker_marks(c->gw, from);
	c->state = from;
	return 0;
}

static enum task_step
show_workers_step(struct call *c)
{
	const struct worker_mark *from = c->state;
	struct worker_mark to[GW_WORKERS_MAX];
	json_t *list, *o;
	size_t i;

	if (!c->once && c->wait_ms == 0) {
		c->wait_ms = SAMPLE_MS;
		return TASK_WAIT;
	}
	worker_marks(c->gw, to);
	list = worker_loads(c->gw, c->once ? NULL : from, to);
	json_array_foreach(list, i, o)
		call_item(c, json_incref(o));
	json_decref(list);
	return TASK_DONE;
}

static void
show_workers_end(struct call *c)
{
	free(c->state);
}

const struct command_handler commands_workers[] = {
	{"show.workers", show_workers, show_workers_step, show_workers_end},
	{0},
};
