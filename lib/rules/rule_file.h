/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of a namespace as an nft file, one table of family inet with a chain for each of ours:
 * what `rule export` prints, and `nft -f` takes. Reading takes what writing prints, and the like of
 * it written by hand. Control side only.
 */
#ifndef RULE_FILE_H
#define RULE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "rule_list.h"
#include "rules.h"

#define RULE_FILE_MAX (16u << 20) /* bytes */

/* What stands above the chains of a file that is being read. */
struct rule_file {
	char (*set)[64]; /* names of dynamic sets */
	unsigned int n_sets;
	size_t counted; /* bytes that have been counted to lines */
	uint32_t lines; /* in them */
};

/* A chain of ours as nft's base chain. */
struct rule_file_chain {
	const char *type, *hook, *priority;
	int number; /* the priority's */
};
extern const struct rule_file_chain rule_file_chains[RULE_CHAINS];

bool rule_file_has_set(const struct rule_file *file, const char *name, size_t len);

/*
 * The list as a file; counters without numbers. Short forms are written out with sets of their own.
 * NULL: out of memory; the caller frees it.
 */
char *rule_file_text(const struct rule_list *l, const char *table);

/* Where a file is wrong. */
struct rule_file_error {
	struct sl_err err;
	unsigned int line, column; /* from 1 */
};

/*
 * Reads a file into a new list, whose handles begin behind `last_handle`. Chains that the file
 * lacks have no rules, and policy accept. 0; or -EINVAL or -ENOMEM with *e filled.
 */
int rule_file_parse(const char *text, size_t len, uint64_t last_handle, struct rule_list **out,
	struct rule_file_error *e);

#endif
