/* SPDX-License-Identifier: BSD-3-Clause */
#include "drop.h"

static const struct {
	const char *name, *help;
} reasons[SL_DROP_COUNT] = {
#define X(id, name, help) {name, help},
	SL_DROP_REASONS(X)
#undef X
};

const char *
sl_drop_name(enum sl_drop reason)
{
	return reason < SL_DROP_COUNT ? reasons[reason].name : "unknown";
}

const char *
sl_drop_help(enum sl_drop reason)
{
	return reason < SL_DROP_COUNT ? reasons[reason].help : "unknown";
}
