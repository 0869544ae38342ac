/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: JSON-RPC 2.0 on a UNIX stream, one object (or batch array) a line each way.
 *
 * A client's requests are answered in order. A streamed answer is item notifications, whose params
 * are the item with the request's "id" beside its fields, and the result at their end; it is
 * produced as the client reads it. A client that sends without reading, or reads nothing for a
 * time, is cut off. A batch is one transaction: its changes (adds, deletes, knobs) are applied
 * together or not at all, the rest follows in order once they are.
 */
#ifndef RPC_H
#define RPC_H

#include <stddef.h>

#include "gateway.h"

struct event_base;
struct rpc_server;
struct sl_err;

#define RPC_REQUEST_MAX (1024 * 1024) /* bytes of a line */
#define RPC_DEPTH_MAX   16            /* of arrays and objects within another */
#define RPC_CLIENTS_MAX 64
#define RPC_OUTPUT_HIGH (256 * 1024) /* bytes not yet read by the client: no more is produced */
#define RPC_OUTPUT_LOW  (64 * 1024)  /* … until it has come down to this */
#define RPC_STALL_SEC   10           /* without the client reading anything: cut off */
#define RPC_PARTIAL_SEC 60           /* for a line to become complete */

/* Error codes; those below -32099 are JSON-RPC's own. */
#define RPC_REFUSED       (-32000)
#define RPC_NOT_AVAILABLE (-32001)
#define RPC_TOO_MANY      (-32002)
#define RPC_TOO_LONG      (-32003)
#define RPC_BATCH_REFUSED (-32004) /* another request of the batch was refused */
#define RPC_PARSE         (-32700)
#define RPC_INVALID       (-32600)
#define RPC_NO_METHOD     (-32601)
#define RPC_PARAMS        (-32602)

/* Serves a listening socket, which is the server's from now on. NULL: no memory. */
struct rpc_server *rpc_start(
	struct gateway *gw, struct event_base *base, int fd, struct sl_err *err);

/* Cuts all clients off. NULL is left alone. */
void rpc_stop(struct rpc_server *s);

#endif
