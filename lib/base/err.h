/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one error idiom of the control side: a function that can refuse returns 0 or a negative errno
 * value and leaves one line for the user in *err, which says what was refused and what to do.
 * Never used in the packet path.
 */
#ifndef SL_ERR_H
#define SL_ERR_H

struct sl_err {
	char msg[512]; /* one line, no newline at its end */
};

/* Fills err->msg (err may be NULL) and returns -code, so that a refusal is one statement. */
int sl_refuse(struct sl_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
