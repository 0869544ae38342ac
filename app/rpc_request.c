/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a request, one or a batch alike:
 *
 *   prepare all → run the changes in one transaction → commit, which may take several turns
 *     → run the rest in order, each with its items → answer
 *
 * A refused change undoes the transaction and ends the request.
 */
#include "rpc_private.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "txn.h"

/* ---- answers ---- */

/* What came from outside may have been cut within a character. */
static json_t *
text(const char *s)
{
	json_t *v = json_string(s);
	char ascii[sizeof(((struct sl_err *)0)->msg)];
	size_t i;

	if (v != NULL)
		return v;
	for (i = 0; s[i] != '\0' && i < sizeof(ascii) - 1; i++)
		ascii[i] = (unsigned char)s[i] < 0x80 ? s[i] : '?';
	ascii[i] = '\0';
	return json_string(ascii);
}

json_t *
rpc_error(json_t *id, int code, const char *message)
{
	return json_pack("{s:s, s:O, s:{s:i, s:o}}", "jsonrpc", "2.0", "id",
		id != NULL ? id : json_null(), "error", "code", code, "message", text(message));
}

static int
code_of(int ret)
{
	return ret == -ENOTSUP ? RPC_NOT_AVAILABLE : RPC_REFUSED;
}

static void
answer_error(struct rpc_one *o, int code, const char *message)
{
	json_t *id = o->id;

	json_decref(o->answer);
	o->answer = rpc_error(id, code, message);
}

static void
answer_result(struct rpc_one *o)
{
	struct call *c = &o->call;
	json_t *result = c->result;

	if (result == NULL && c->handler->step != NULL)
		result = json_pack("{s:I}", "count", (json_int_t)c->n_items);
	else if (result == NULL)
		result = json_object();
	else
		json_incref(result);
	if (o->id != NULL)
		o->answer = json_pack(
			"{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", o->id, "result", result);
	else
		json_decref(result);
}

/* ---- items ---- */

static void
send_item(struct call *c, json_t *item)
{
	struct rpc_request *r = c->sink_arg;
	struct rpc_one *o = &r->one[r->at];
	json_t *line;

	if (o->id == NULL) {
		json_decref(item);
		return;
	}
	json_object_set(item, "id", o->id);
	line = json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", "item", "params", item);
	if (line == NULL) {
		c->status = sl_refuse(&c->err, ENOMEM, "out of memory");
		return;
	}
	rpc_send(r->client, line);
	json_decref(line);
}

static bool
output_full(const struct call *c)
{
	const struct rpc_request *r = c->sink_arg;

	return evbuffer_get_length(bufferevent_get_output(r->client->bev)) >= RPC_OUTPUT_HIGH;
}

static const struct call_sink socket_sink = {send_item, output_full};

/* ---- preparing ---- */

/* JSON-RPC's own rules for one request object. */
static const char *
check_request(const json_t *q)
{
	const json_t *id = json_object_get(q, "id"), *version = json_object_get(q, "jsonrpc");
	const json_t *params = json_object_get(q, "params");
	json_t *object = json_incref((json_t *)(uintptr_t)q), *v;
	const char *key, *wrong = NULL;

	if (!json_is_object(q))
		wrong = "a request must be an object";
	else if (!json_is_string(version) || strcmp(json_string_value(version), "2.0") != 0)
		wrong = "jsonrpc: must be \"2.0\"";
	else if (!json_is_string(json_object_get(q, "method")))
		wrong = "method: must be a string";
	else if (id != NULL && !json_is_string(id) && !json_is_integer(id) && !json_is_null(id))
		wrong = "id: must be a string or an integer";
	else if (params != NULL && !json_is_object(params))
		wrong = "params: must be an object";
	json_object_foreach(object, key,
		v) if (wrong == NULL && strcmp(key, "jsonrpc") != 0 && strcmp(key, "method") != 0 &&
		       strcmp(key, "id") != 0 && strcmp(key, "params") != 0) wrong =
		"a request has jsonrpc, method, params and id, and no other field";
	json_decref(object);
	return wrong;
}

static void
prepare(struct rpc_request *r, struct rpc_one *o, json_t *q)
{
	const struct grammar_command *cmd;
	const char *wrong = check_request(q);
	json_t *params;
	char msg[128], quoted[48];
	int ret;

	o->id = json_object_get(q, "id");
	if (wrong != NULL) {
		if (!json_is_string(o->id) && !json_is_integer(o->id))
			o->id = json_null();
		answer_error(o, RPC_INVALID, wrong);
		return;
	}
	cmd = grammar_find(json_string_value(json_object_get(q, "method")));
	if (cmd == NULL || (cmd->flags & GRAMMAR_CLIENT) != 0) {
		snprintf(msg, sizeof(msg), "method: there is no \"%s\"",
			grammar_quote(json_string_value(json_object_get(q, "method")), quoted,
				sizeof(quoted)));
		answer_error(o, RPC_NO_METHOD, msg);
		return;
	}
	params = json_object_get(q, "params");
	if (params == NULL) {
		params = json_object();
		json_object_set_new(q, "params", params);
	}
	o->call.sink = &socket_sink;
	o->call.sink_arg = r;
	o->call.task = &r->task;
	ret = call_init(&o->call, r->gw, cmd, params);
	o->valid = ret == 0;
	if (ret != 0)
		answer_error(o, ret == -EINVAL ? RPC_PARAMS : code_of(ret), o->call.err.msg);
}

/* ---- the end ---- */

static void
request_free(struct rpc_request *r)
{
	unsigned int i;

	task_cancel(&r->task);
	for (i = 0; i < r->n; i++) {
		call_end(&r->one[i].call);
		json_decref(r->one[i].answer);
	}
	txn_work_free(r->work);
	json_decref(r->root);
	free(r);
}

static void
finish(struct rpc_request *r)
{
	struct rpc_client *c = r->client;
	json_t *answers = json_array();
	unsigned int i;

	for (i = 0; i < r->n; i++)
		if (r->one[i].answer != NULL && r->one[i].id != NULL)
			json_array_append(answers, r->one[i].answer);
	if (json_array_size(answers) > 0)
		rpc_send(c, r->batch ? answers : json_array_get(answers, 0));
	json_decref(answers);
	c->request = NULL;
	request_free(r);
}

/* ---- changes ---- */

static bool
is_change(const struct rpc_one *o)
{
	return (o->call.cmd->flags & GRAMMAR_CHANGE) != 0;
}

/* Request `which` was refused, and with it all: says so to each that has no answer of its own. */
static void
refuse_all(struct rpc_request *r, unsigned int which)
{
	char msg[64];
	unsigned int i;

	snprintf(msg, sizeof(msg), "not applied: request %u of the batch was refused", which + 1);
	for (i = 0; i < r->n; i++)
		if (i != which && r->one[i].answer == NULL)
			answer_error(&r->one[i], RPC_BATCH_REFUSED, msg);
}

static void
on_committed(void *arg)
{
	struct rpc_request *r = arg;

	r->committing = false;
	if (r->client == NULL)
		request_free(r);
	else
		task_wake(&r->task);
}

/* ---- work that is done aside before the changes ---- */

#define PREPARED_MAX 3u /* times that others may be faster in changing what was prepared */

static void start_changes(struct rpc_request *r);

static void
do_work(void *arg)
{
	const struct rpc_request *r = arg;
	struct txn_work *w;

	for (w = r->work; w != NULL; w = w->next)
		w->run(w);
}

static void
on_prepared(void *arg)
{
	struct rpc_request *r = arg;
	struct rpc_client *c = r->client;

	r->preparing = false;
	if (c == NULL) {
		request_free(r);
		return;
	}
	start_changes(r);
	if (c->request == NULL)
		rpc_client_next(c);
}

/* A port that is opened and closed again would be noticed outside. */
static bool
may_undo(const struct rpc_request *r)
{
	unsigned int i;

	for (i = 0; i < r->n; i++)
		if (strncmp(r->one[i].call.handler->method, "port.", 5) == 0)
			return false;
	return true;
}

/*
 * When the commit would take long, all is undone, and what takes long is done aside, so that others
 * are served meanwhile; then the changes are made again. True: they are put off.
 */
static bool
prepare_aside(struct rpc_request *r, struct txn *txn)
{
	struct txn_work *work;
	unsigned int i;

	if (r->prepared == PREPARED_MAX || !may_undo(r))
		return false;
	work = txn_work(txn);
	if (work == NULL)
		return false;
	txn_work_free(r->work);
	r->work = work;
	r->prepared++;
	r->preparing = task_aside(do_work, on_prepared, r) == 0;
	if (!r->preparing)
		return false;
	txn_abort(txn);
	for (i = 0; i < r->n; i++)
		if (is_change(&r->one[i]))
			call_end(&r->one[i].call);
	return true;
}

/* ---- changes, in order ---- */

/* All changes, each answered only when the commit is done. */
static int
run_changes(struct rpc_request *r)
{
	struct txn *txn = NULL;
	struct sl_err err;
	unsigned int i, last = 0;
	int ret = 0;

	for (i = 0; i < r->n && ret == 0; i++) {
		struct call *c = &r->one[i].call;

		if (!is_change(&r->one[i]))
			continue;
		last = i;
		if (txn == NULL)
			txn = txn_begin(r->gw);
		c->txn = txn;
		ret = txn == NULL ? sl_refuse(&c->err, ENOMEM, "out of memory")
				  : c->handler->run(c);
		err = c->err;
	}
	if (txn == NULL && ret == 0)
		return 0;
	if (ret == 0 && prepare_aside(r, txn))
		return 0;
	if (ret == 0) {
		r->committing = true;
		ret = txn_commit(txn, on_committed, r, &err);
		r->committing = ret == 0 && r->committing;
	} else if (txn != NULL) {
		txn_abort(txn);
	}
	if (ret != 0) {
		answer_error(&r->one[last], code_of(ret), err.msg);
		refuse_all(r, last);
	}
	return ret;
}

/* ---- the rest, in order ---- */

/* Runs request r->at; true when it has its answer. *step says how to go on otherwise. */
static bool
run_one(struct rpc_request *r, struct rpc_one *o, enum task_step *step)
{
	struct call *c = &o->call;
	int ret;

	if (is_change(o)) {
		answer_result(o);
		return true;
	}
	if (!r->begun) {
		r->begun = true;
		ret = c->handler->run(c);
		if (ret != 0) {
			answer_error(o, code_of(ret), c->err.msg);
			return true;
		}
	}
	*step = c->handler->step != NULL ? c->handler->step(c) : TASK_DONE;
	if (c->status != 0)
		answer_error(o, code_of(c->status), c->err.msg);
	else if (*step == TASK_DONE)
		answer_result(o);
	return c->status != 0 || *step == TASK_DONE;
}

static void
arm_wait(struct rpc_request *r)
{
	struct rpc_one *o = &r->one[r->at];

	if (o->call.wait_ms != 0)
		task_wake_after(&r->task, o->call.wait_ms);
}

static enum task_step
request_step(struct task *t)
{
	struct rpc_request *r =
		(struct rpc_request *)((char *)t - offsetof(struct rpc_request, task));
	struct rpc_client *c = r->client;
	enum task_step step = TASK_MORE;

	if (r->committing)
		return TASK_WAIT;
	while (r->at < r->n) {
		/* The first slice of an answer follows its run() in this turn, so it begins with
		 * room. */
		r->wants_room =
			evbuffer_get_length(bufferevent_get_output(c->bev)) >= RPC_OUTPUT_HIGH;
		if (r->wants_room)
			return TASK_WAIT;
		if (!run_one(r, &r->one[r->at], &step)) {
			if (step == TASK_WAIT)
				arm_wait(r);
			return step;
		}
		r->at++;
		r->begun = false;
	}
	finish(r);
	rpc_client_next(c);
	return TASK_DONE;
}

static void
start_changes(struct rpc_request *r)
{
	if (run_changes(r) != 0)
		finish(r);
	else if (!r->committing && !r->preparing)
		task_wake(&r->task);
}

static bool
all_valid(const struct rpc_request *r, unsigned int *which)
{
	for (*which = 0; *which < r->n; ++*which)
		if (!r->one[*which].valid)
			return false;
	return true;
}

static struct rpc_request *
request_new(struct rpc_client *c, json_t *root)
{
	size_t n = json_is_array(root) ? json_array_size(root) : 1, i;
	struct rpc_request *r = calloc(1, sizeof(*r) + n * sizeof(r->one[0]));

	if (r == NULL)
		return NULL;
	r->task.step = request_step;
	r->client = c;
	r->gw = rpc_client_gateway(c);
	r->root = root;
	r->batch = json_is_array(root);
	r->n = (unsigned int)n;
	for (i = 0; i < n; i++)
		prepare(r, &r->one[i], r->batch ? json_array_get(root, i) : root);
	return r;
}

static void
send_error(struct rpc_client *c, int code, const char *message)
{
	json_t *e = rpc_error(NULL, code, message);

	rpc_send(c, e);
	json_decref(e);
}

void
rpc_request_start(struct rpc_client *c, const char *line, size_t len)
{
	struct rpc_request *r;
	struct sl_err err;
	unsigned int which;
	json_t *root = rpc_parse(line, len, &err);

	if (root == NULL) {
		send_error(c, RPC_PARSE, err.msg);
		return;
	}
	if (json_is_array(root) && json_array_size(root) == 0) {
		send_error(c, RPC_INVALID, "a batch must not be empty");
		json_decref(root);
		return;
	}
	r = request_new(c, root);
	if (r == NULL) {
		send_error(c, RPC_REFUSED, "out of memory");
		json_decref(root);
		return;
	}
	c->request = r;
	if (!all_valid(r, &which)) {
		refuse_all(r, which);
		finish(r);
		return;
	}
	start_changes(r);
}

void
rpc_request_drained(struct rpc_client *c)
{
	if (c->request != NULL && c->request->wants_room)
		task_wake(&c->request->task);
}

void
rpc_request_drop(struct rpc_client *c)
{
	struct rpc_request *r = c->request;

	c->request = NULL;
	if (r == NULL)
		return;
	if (r->committing || r->preparing) {
		r->client = NULL;
		return;
	}
	request_free(r);
}
