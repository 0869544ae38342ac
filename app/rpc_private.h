/* SPDX-License-Identifier: BSD-3-Clause */
/* Between rpc.c (clients, framing), rpc_request.c (requests) and rpc_parse.c (text to JSON). */
#ifndef RPC_PRIVATE_H
#define RPC_PRIVATE_H

#include <event2/bufferevent.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "command.h"
#include "rpc.h"
#include "task.h"
#include "txn.h"

struct rpc_client {
	struct rpc_server *server;
	struct bufferevent *bev;
	struct event *partial;       /* runs while a line is incomplete */
	size_t scanned;              /* bytes of input known to hold no newline */
	struct rpc_request *request; /* under way, or NULL */
	bool eof;                    /* the client sends no more */
	bool closing;                /* answers what is written already, then closes */
	TAILQ_ENTRY(rpc_client) link;
};

/*
 * One request of a line; a batch has several. The client may go away before the end of a commit:
 * then `client` is NULL and the request lives until it is told of the end.
 */
struct rpc_one {
	struct call call; /* call.params is borrowed from the request's root */
	json_t *id;       /* borrowed; NULL: a notification, which is not answered */
	json_t *answer;   /* owned; NULL: none yet */
	bool valid;       /* call is ready to run */
};

struct rpc_request {
	struct task task;
	struct rpc_client *client;
	struct gateway *gw;
	json_t *root;
	bool batch;
	bool committing;
	struct txn_work *work; /* being done aside, or done, for the changes */
	bool preparing;        /* the former */
	unsigned int prepared; /* how often that was */
	bool wants_room; /* waits for the client to read */
	bool begun;      /* one[at].call.run() has been called */
	unsigned int n, at;
	struct rpc_one one[];
};

/* Begins the request of one line. When it is answered at once, or there is nothing to answer,
 * client->request is NULL on return. */
void rpc_request_start(struct rpc_client *c, const char *line, size_t len);

/* The client is going away: the request ends as soon as it can. */
void rpc_request_drop(struct rpc_client *c);

/* The client's output has drained. */
void rpc_request_drained(struct rpc_client *c);

/* The request is over: the client goes on with its next. */
void rpc_client_next(struct rpc_client *c);

struct gateway *rpc_client_gateway(const struct rpc_client *c);

/* Writes one line. */
void rpc_send(struct rpc_client *c, const json_t *line);

/* An error response; id NULL is JSON's null. */
json_t *rpc_error(json_t *id, int code, const char *message);

/* The JSON value of a line, or NULL with the message in err: not JSON, nested too deeply, a number
 * that no value has, a key twice. */
json_t *rpc_parse(const char *line, size_t len, struct sl_err *err);

#endif
