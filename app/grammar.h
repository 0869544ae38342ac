/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command language: one table of all commands, from which come the text form (configuration
 * file, command line, shell), the JSON-RPC form, the checks of both, the usage texts and
 * completion. Daemon and client link it alike; it knows no handler.
 *
 * A command's words joined by dots are its method. In text, what follows the words are values by
 * position and values behind a keyword, which is the parameter's name:
 *
 *   netns add t1 t2 from init
 *   {"method":"netns.add","params":{"names":["t1","t2"],"from":"init"}}
 *
 * A new command is a row of the table in grammar_table.c, and a handler (see command.h).
 */
#ifndef GRAMMAR_H
#define GRAMMAR_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "err.h"

#define GRAMMAR_PARAMS_MAX 20
#define GRAMMAR_LINE_MAX   (256 * 1024) /* bytes of a line of text */
#define GRAMMAR_STRING_MAX 65536        /* bytes of a string value */

enum grammar_type {
	GRAMMAR_NAME,     /* string: 1–63 of A-Za-z0-9._- */
	GRAMMAR_NEW_NAME, /* the same, and no word of the language: a name that is being given */
	GRAMMAR_STRING,   /* string without control characters; its handler knows more */
	GRAMMAR_WORD,     /* string: one of param.words */
	GRAMMAR_UINT,     /* integer, min … max */
	GRAMMAR_VALUE,    /* string or integer: what has a text form of its own (marks, knobs) */
	GRAMMAR_FLAG,     /* true; in text the keyword alone */
	GRAMMAR_REST,     /* string: the rest of the line as it stands */
	GRAMMAR_FILE,     /* in text a file's name ("-": standard input), in JSON its lines */
	GRAMMAR_SETTING,  /* KEY[=VALUE]: a string, and the next parameter, a GRAMMAR_VALUE */
};

/* grammar_param.flags */
#define GRAMMAR_POS     0x01 /* by position, without a keyword */
#define GRAMMAR_LIST    0x02 /* one or more: an array in JSON; by position only */
#define GRAMMAR_OPT     0x04 /* may be left out */
#define GRAMMAR_UNBUILT 0x08 /* known to the language, not to the daemon: answers `not available` */
#define GRAMMAR_HIDDEN  0x10 /* set through the one before it: the value of a GRAMMAR_SETTING */

struct grammar_param {
	const char *name; /* field of the JSON parameters, and the keyword */
	const char *meta; /* what usage shows for the value */
	enum grammar_type type;
	uint8_t flags;
	uint8_t forms; /* bits of the forms of the command that have it; 0: all of them */
	uint32_t min, max;
	const char *const *words; /* of a GRAMMAR_WORD, ends with NULL */
};

/* grammar_command.flags */
#define GRAMMAR_CHANGE  0x01 /* part of a batch: applied together with its other changes or not */
#define GRAMMAR_MISSING 0x02 /* not built: answers `not available` */
#define GRAMMAR_CLIENT  0x04 /* done by sluicectl itself */
#define GRAMMAR_ITEMS   0x08 /* a listing: its answer is items, and their count */

struct grammar_command {
	const char *words; /* separated by one space */
	const char *help;
	unsigned int flags;
	struct grammar_param params[GRAMMAR_PARAMS_MAX]; /* ends with name == NULL */
};

extern const struct grammar_command grammar_table[]; /* ends with words == NULL */

/* By method ("netns.add"); NULL when there is none. */
const struct grammar_command *grammar_find(const char *method);

/* The method of a command; buf of 64 bytes. Returns buf. */
const char *grammar_method(const struct grammar_command *c, char *buf, size_t len);

/*
 * A line of text. 0: *cmd and *params (a new reference) are set; both NULL when the line is empty
 * or a comment. -EINVAL: the line is none of the language; err says what was expected. Values are
 * not checked beyond that: grammar_check() does, in the daemon.
 */
int grammar_parse(
	const char *line, const struct grammar_command **cmd, json_t **params, struct sl_err *err);

/*
 * Checks parameters from anywhere: an object, no unknown field, right types, in range, complete.
 * -EINVAL, and the message begins with the field's name; -ENOTSUP: not available.
 */
int grammar_check(const struct grammar_command *cmd, const json_t *params, struct sl_err *err);

/* Whether a word is one of the language: of a command's words, or a keyword. */
bool grammar_is_word(const char *word);

/* 1–63 of A-Za-z0-9._-; `len` bytes, which need no terminator. */
bool grammar_is_name(const char *s, size_t len);

/* One line for each form, each ended by a newline. Truncated to len. Returns buf. */
char *grammar_usage(const struct grammar_command *c, char *buf, size_t len);

/* Calls each(arg, word) for what may follow `line`, whose last word is being typed (it is empty
 * when the line ends with a space). */
void grammar_complete(const char *line, void (*each)(void *arg, const char *word), void *arg);

/* For messages: at most 40 characters of s, what is not printable ASCII replaced. Returns buf. */
const char *grammar_quote(const char *s, char *buf, size_t len);

/* ---- within the module ---- */

/* The lines of a file as an array of strings; NULL with err filled. */
json_t *grammar_load(const char *param, const char *path, struct sl_err *err);

struct grammar_token {
	const char *raw; /* where it begins in the line */
	char *text;      /* without quotes */
	bool quoted;
};

struct grammar_tokens {
	char *store;
	unsigned int n;
	struct grammar_token t[];
};

/* Splits a line; grammar_tokens_free() in any case. -EINVAL: a quote without end, a control
 * character, bytes that are no UTF-8, too long. `lenient`: an open quote ends with the line. */
int grammar_split(const char *line, bool lenient, struct grammar_tokens **out, struct sl_err *err);
void grammar_tokens_free(struct grammar_tokens *t);

/* The command whose words the tokens begin with, the longest; *n_words is set. */
const struct grammar_command *grammar_match(const struct grammar_tokens *t, unsigned int *n_words);

/* The parameter behind a keyword, or NULL. */
const struct grammar_param *grammar_keyword(const struct grammar_command *c, const char *word);

#endif
