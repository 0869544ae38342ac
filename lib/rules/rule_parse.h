/* SPDX-License-Identifier: BSD-3-Clause */
/* Private to lib/rules: what the parts of the parser share. */
#ifndef RULE_PARSE_H
#define RULE_PARSE_H

#include "rule_lex.h"
#include "rules.h"

#define PARSE_NO_PROTO (-1) /* no transport protocol is settled */
#define PARSE_PROTOS   (-2) /* a set of them is */

struct rule_parse {
	struct rule_lex x;
	enum rule_chain chain;
	const struct rule_file *file; /* the file the rule stands in, or NULL */
	struct rule *rule;
	uint32_t room;
	/* What the matches so far have settled; later ones must agree with it, as in nft. */
	uint8_t family;    /* 0: open */
	int16_t proto;     /* or PARSE_… */
	bool ports;        /* the protocols settled have ports */
	bool statement;    /* there was a statement */
	bool stop;         /* a verdict has ended the rule */
	struct rule_error *e;
};

/* Refuses the present token, or the bytes from..to; -EINVAL. */
int parse_refuse(struct rule_parse *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int parse_refuse_at(struct rule_parse *p, size_t from, size_t to, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int parse_no_memory(struct rule_parse *p);

/* The present token is not what was expected: says so, or what the lexer has to say. */
int parse_unexpected(struct rule_parse *p, const char *expected);

/* Goes on over `word`; expect refuses another token, accept returns whether it was there. */
int parse_expect(struct rule_parse *p, const char *word);
bool parse_accept(struct rule_parse *p, const char *word);

/* A number of min … max; goes on over it. */
int parse_number(struct rule_parse *p, uint64_t min, uint64_t max, uint64_t *v);

/* A name, quoted or not, of at most `max` bytes of A-Za-z0-9._-; goes on over it. */
int parse_name(struct rule_parse *p, const char *what, unsigned int max, char *out);

/* A new item at the end, zeroed but for its type; NULL with the error set. */
struct rule_item *parse_add(struct rule_parse *p, enum rule_item_type type);

/* Puts `FIELD value` before all others, as nft does for what a statement needs. */
int parse_insert_first(struct rule_parse *p, enum rule_field field, uint32_t value);

/* Takes the nearest match `FIELD value` away again, if only matches stand behind it: what follows
 * says the same. */
void parse_drop_implied(struct rule_parse *p, enum rule_field field, uint32_t value);

/* A match or statement that is for one family or transport protocol: refuses at from..to when
 * another is settled, settles it, and drops what it implies. */
int parse_settle_family(struct rule_parse *p, uint8_t family, size_t from, size_t to);
int parse_settle_proto(struct rule_parse *p, uint8_t proto, size_t from, size_t to);

/* ---- values (parse_value.c) ---- */

struct value_list {
	struct rule_range *range;
	uint32_t n, room;
	bool interval; /* an element is a range or a prefix */
	bool as_range; /* the last element was written as a range */
};

/* One value of the field: a single one, LO-HI, or VALUE/LEN. */
int parse_element(struct rule_parse *p, enum rule_field field, struct value_list *list);

/* A value or { … }, into m->range, m->n and m->form. */
int parse_values(struct rule_parse *p, enum rule_field field, struct rule_match *m);

/* A port by number or service name. */
int parse_port(struct rule_parse *p, uint32_t min, uint32_t *port);

/* One word of a table; goes on over it. `what` for the message. */
struct rule_word;
int parse_word(
	struct rule_parse *p, const struct rule_word *words, const char *what, uint32_t *value);

/* ---- matches (parse_match.c, parse_bits.c) ---- */

/* The match that begins with the present token; 1: it begins none. */
int parse_match(struct rule_parse *p);

/* What follows `tcp flags` and `ct state`. */
int parse_tcp_flags(struct rule_parse *p, struct rule_match *m);
int parse_ct_state(struct rule_parse *p, struct rule_match *m);

/* ---- statements (parse_stmt.c, parse_limit.c, parse_nat.c) ---- */

/* The statement or verdict that begins with the present token; 1: it begins none. */
int parse_statement(struct rule_parse *p);

int parse_limit(struct rule_parse *p);    /* the token is `limit` */
int parse_ct_count(struct rule_parse *p); /* behind `ct count` */
int parse_dynset(struct rule_parse *p);   /* `add` or `update`, of files */
int parse_snat(struct rule_parse *p);
int parse_dnat(struct rule_parse *p);
int parse_masquerade(struct rule_parse *p);
int parse_redirect(struct rule_parse *p);
int parse_nat64(struct rule_parse *p);

/* Parses one rule at the lexer's present token, to the end of its line; the lexer then stands at
 * the TOK_LINE or TOK_END, or in a file at the `}` that ends the chain. */
int parse_rule(struct rule_parse *p, struct rule **out);

#endif
