/* SPDX-License-Identifier: BSD-3-Clause */
#include "err.h"

#include <stdarg.h>
#include <stdio.h>

int
sl_refuse(struct sl_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (err != NULL) {
		va_start(ap, fmt);
		vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
		va_end(ap);
	}
	return -code;
}
