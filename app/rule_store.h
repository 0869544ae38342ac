/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of namespaces as commands see them: netns->rule_list, edited by a batch of changes and
 * shown to the packet path when it is committed. Control thread only.
 */
#ifndef RULE_STORE_H
#define RULE_STORE_H

#include "gateway.h"
#include "rule_list.h"

struct sl_err;
struct txn;

/*
 * The list of the namespace, to be changed at once: the batch publishes it when it is committed,
 * and puts the old one back when it is aborted. NULL with err filled: no memory, or the batch
 * deletes the namespace.
 */
struct rule_list *rule_store_edit(struct txn *t, struct netns *ns, struct sl_err *err);

/* Puts `l` in the place of the list that is being edited, and takes it. */
void rule_store_replace(struct netns *ns, struct rule_list *l);

/* The list as it is; NULL: none, which is an empty one. */
const struct rule_list *rule_store_list(const struct netns *ns);

/* Frees what the namespace has of it, after its rules have left the packet path. */
void rule_store_free(struct netns *ns);

#endif
