/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion in shells: sluicectl prints the words that may follow, and the function that asks
 * it. */
#ifndef COMPLETION_H
#define COMPLETION_H

/* Prints what may follow `line`, whose last word is being typed, one a line. */
void completion_line(const char *line);

/* Prints the function for a shell to source. -1: none for that shell (there is one for bash). */
int completion_script(const char *shell);

#endif
