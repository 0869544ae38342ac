/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rule_file.h"
#include "rule_parse.h"

bool
rule_file_has_set(const struct rule_file *file, const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < file->n_sets; i++)
		if (strlen(file->set[i]) == len && memcmp(file->set[i], name, len) == 0)
			return true;
	return false;
}
