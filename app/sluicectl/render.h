/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sluicectl prints for answers. A command without a row of its own in render_table[] prints
 * its items as "key=value ..." lines and its result as "key value" lines; { "count": N } alone is
 * printed as nothing.
 */
#ifndef RENDER_H
#define RENDER_H

#include <stdio.h>

#include <jansson.h>

struct render {
	const char *method;
	void (*item)(const json_t *item, FILE *out);     /* NULL: as said above */
	void (*result)(const json_t *result, FILE *out); /* NULL: as said above */
};

void render_item(const char *method, const json_t *item, FILE *out);
void render_result(const char *method, const json_t *result, FILE *out);

/* A scalar as text: strings bare. */
void render_value(const json_t *v, FILE *out);

/* The string of a field, "" when there is none. */
const char *render_string(const json_t *object, const char *field);

/* conntrack list: the line that conntrack -L prints, "netns=NAME" before it. */
void render_entry(const json_t *entry, FILE *out);

/* conntrack events: the line that conntrack -E prints, "netns=NAME" before it. */
void render_event(const json_t *event, FILE *out);

/* nat pool list, nat list (render_nat.c). */
void render_pool(const json_t *item, FILE *out);
void render_pool_use(const json_t *item, FILE *out);

/* rule list, rule export (render_rule.c). render_rule_end() ends what rule items began. */
void render_rule(const json_t *item, FILE *out);
void render_rule_end(const json_t *result, FILE *out);
void render_line(const json_t *item, FILE *out);

/* rule events: the line that the kernel logs, "netns=NAME" before it. */
void render_log(const json_t *item, FILE *out);

/* Under a refusal of a rule's text: the text, and carets under what is wrong. Nothing when the
 * message is about something else. */
void render_caret(const char *rule, const char *message, FILE *out);

#endif
