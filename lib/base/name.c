/* SPDX-License-Identifier: BSD-3-Clause */
#include "name.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "err.h"

static bool
name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '.' || c == '_' || c == '-';
}

int
sl_name_valid(const char *what, const char *name, unsigned int max, struct sl_err *err)
{
	size_t i, len = strnlen(name, max + 1u);
	bool good = len > 0 && len <= max;
	char shown[SL_SHOWN_MAX];

	for (i = 0; good && i < len; i++)
		good = name_char(name[i]);
	if (good)
		return 0;
	return sl_refuse(err, EINVAL,
		"\"%s\" is no %s name: it has 1 to %u characters of A-Za-z0-9._-",
		sl_shown(name, shown), what, max);
}

const char *
sl_shown(const char *text, char buf[SL_SHOWN_MAX])
{
	size_t i;

	for (i = 0; i < SL_SHOWN_MAX - 1 && text[i] != '\0'; i++)
		buf[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	buf[i] = '\0';
	if (text[i] != '\0')
		strcpy(&buf[SL_SHOWN_MAX - 4], "...");
	return buf;
}
