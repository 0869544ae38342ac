/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of namespaces, links and ports: 1 to some maximum of the characters A-Za-z0-9._- .
 */
#ifndef SL_NAME_H
#define SL_NAME_H

#define SL_SHOWN_MAX 64

struct sl_err;

/* 0, or refuses with -EINVAL; `what` is the kind of thing that is named, for the message. */
int sl_name_valid(const char *what, const char *name, unsigned int max, struct sl_err *err);

/*
 * What a user sent, fit to be put into a one-line message: '?' for what does not print, "..." at
 * the end when it was longer. Returns buf.
 */
const char *sl_shown(const char *text, char buf[SL_SHOWN_MAX]);

#endif
