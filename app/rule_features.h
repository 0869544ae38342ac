/* SPDX-License-Identifier: BSD-3-Clause */
/* Which statements of the rule language this version can carry out. */
#ifndef RULE_FEATURES_H
#define RULE_FEATURES_H

#include "rule.h"

struct sl_err;

/* 0, or -ENOTSUP with the statement's name in err: "…: not available". */
int rule_available(const struct rule *r, struct sl_err *err);

#endif
