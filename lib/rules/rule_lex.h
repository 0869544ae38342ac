/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tokens of rule text, cut as nft cuts them: `80-http` is three, `http-80` is one word. A lexer is
 * where it stands in the text and the token there; it is copied to look further ahead.
 */
#ifndef RULE_LEX_H
#define RULE_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuple.h"

enum rule_token {
	TOK_END,
	TOK_LINE,   /* end of a line or `;`: of files only, in a rule it is bad */
	TOK_WORD,   /* may end with '*' */
	TOK_STRING, /* quoted; what is between the quotes */
	TOK_NUMBER,
	TOK_ADDR,
	TOK_PUNCT,  /* one of `{ } ( ) [ ] , : / - = ! & | @`, or `==`, `!=` */
	TOK_BAD,    /* `bad` says why */
};

struct rule_lex {
	const char *text;
	size_t len;
	size_t next; /* where the token behind this one begins to be looked for */
	bool lines;  /* of a file: `;`, newlines and comments are allowed */
	/* the token */
	enum rule_token type;
	size_t at, end; /* its bytes in the text, quotes included */
	uint64_t number;
	struct tuple_addr addr;
	uint8_t family; /* of addr */
	const char *bad;
};

/* Sets up to read `len` bytes; the first token is read. */
void rule_lex_init(struct rule_lex *x, const char *text, size_t len, bool lines);

/* Goes on to the next token. */
void rule_lex_next(struct rule_lex *x);

/* Whether the token is this word or punctuation; a quoted string never is. */
bool rule_lex_is(const struct rule_lex *x, const char *word);

/* The text of a word, or what is between quotes: its length, and *s. */
size_t rule_lex_text(const struct rule_lex *x, const char **s);

#endif
