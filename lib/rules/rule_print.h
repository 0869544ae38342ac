/* SPDX-License-Identifier: BSD-3-Clause */
/* Private to lib/rules: the parts of the printer. */
#ifndef RULE_PRINT_H
#define RULE_PRINT_H

#include <stdio.h>

#include "rules.h"

/* The set of a short form, which an nft file declares above its chains; called in the order of the
 * rules. NULL as a whole: short forms are printed as such. */
struct print_nft {
	unsigned int sets; /* number of the next */
};

void print_match(FILE *f, const struct rule_match *m);
void print_nat(FILE *f, const struct rule_nat *nat);
void print_addr(FILE *f, uint8_t family, const struct tuple_addr *addr);

/* One rule, without a newline. */
void print_rule(FILE *f, const struct rule *r, unsigned int flags, struct print_nft *nft);

#endif
