/* SPDX-License-Identifier: BSD-3-Clause */
/* A configuration file: commands, one a line, applied as one unit. */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

struct gateway;
struct sl_err;

/*
 * Applies all of the file or nothing. It may hold what makes up a configuration: adds, deletes and
 * knobs. 0 or -errno with "FILE:LINE: reason".
 */
int config_file_apply(struct gateway *gw, const char *path, struct sl_err *err);

#endif
