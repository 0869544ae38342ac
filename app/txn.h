/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A batch of changes: the adds, deletes and knob writes of one request, file or JSON-RPC batch,
 * that are applied together or not at all.
 *
 * Adds and writes are done at once and register how they are undone. Deletes are checked at once
 * and done at commit, when nothing can be refused any more; until then what they delete keeps its
 * name, so a name cannot be given again in the batch that deletes it. Adding namespaces is put off
 * until something else comes, so that those that follow one another are created as one batch.
 *
 *   txn_begin → handlers of the changes … → txn_commit, or txn_abort when one was refused
 */
#ifndef TXN_H
#define TXN_H

#include <stdbool.h>

#include "err.h"
#include "gateway.h"

struct txn;
struct link;

/* A part of a commit that takes long and changes nothing by itself: done before, it is found done
 * by an equal batch as long as it is not freed. */
struct txn_work {
	void (*run)(struct txn_work *w); /* on any thread */
	void (*free)(struct txn_work *w);
	struct txn_work *next;
};

struct txn *txn_begin(struct gateway *gw); /* NULL: no memory */

/* ---- for handlers ---- */

/* What undoes a step, called in reverse order. free_arg is called with it in any case, may be NULL.
 * 0 or -ENOMEM: the caller undoes by itself. */
int txn_on_undo(struct txn *t, void (*undo)(struct gateway *gw, void *arg), void *arg,
	void (*free_arg)(void *arg));

/* Puts a namespace to the batch that is created next; refuses what is known to be refusable. */
int txn_add_netns(struct txn *t, const char *name, const char *parent, struct sl_err *err);

/* What shows changes to the packet path, once for all of a batch: called at commit, in this order,
 * before anything is deleted. When it refuses, all of the batch is undone. 0 or -ENOMEM. */
int txn_on_commit(struct txn *t, int (*fn)(struct gateway *gw, void *arg, struct sl_err *err),
	void *arg);

/* make(arg) tells at the end of the batch what of its commit is to be done before: NULL, nothing.
 * 0 or -ENOMEM. */
int txn_on_work(struct txn *t, struct txn_work *(*make)(void *arg), void *arg);

/* Creates the namespaces put off; called before any other change. */
int txn_flush(struct txn *t, struct sl_err *err);

/*
 * Deletes anything else at commit, before links, namespaces and ports: calls fn(gw, object) in the
 * order of the requests. Refuses with -ENOENT and `what` what is deleted twice.
 */
int txn_delete(struct txn *t, void *object, void (*fn)(struct gateway *gw, void *object),
	const char *what, struct sl_err *err);

/* Deletes at commit: links first, then namespaces, then ports. Refuses what is deleted twice, and a
 * port with links that stay. */
int txn_delete_netns(struct txn *t, struct netns *ns, struct sl_err *err);
int txn_delete_link(struct txn *t, struct link *l, struct sl_err *err);
int txn_delete_port(struct txn *t, struct port *p, struct sl_err *err);

/* Resizes the conntrack table at commit. Refuses a size that cannot be, and more than one at a
 * time. */
int txn_resize(struct txn *t, uint32_t buckets, struct sl_err *err);

/* Whether something is to be deleted by this batch. */
bool txn_deletes(const struct txn *t, const void *object);

/* ---- for front ends ---- */

/* What txn_commit() would have to wait for, as a list that is the caller's; NULL: nothing. */
struct txn_work *txn_work(const struct txn *t);
void txn_work_free(struct txn_work *all);

/*
 * Commits; frees the transaction. `done` is called on the control thread when all of it has
 * happened (deleted namespaces are gone, their entries too): before txn_commit() returns when there
 * is nothing to wait for, or without an event loop. -errno: the last step was refused, and all is
 * undone, and done() is not called.
 */
int txn_commit(struct txn *t, void (*done)(void *arg), void *arg, struct sl_err *err);

/* Undoes all and frees the transaction. What can be seen is undone on return; the memory of undone
 * namespaces follows after a grace period. */
void txn_abort(struct txn *t);

#endif
