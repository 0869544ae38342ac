/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion for the shells outside: the words come from the command table, as in our own. */
#include "completion.h"

#include <stdio.h>
#include <string.h>

#include "grammar.h"

/* The words before the command are sluicectl and its options; what is left is the line. */
static const char bash_text[] =
	"_sluicectl()\n"
	"{\n"
	"\tlocal line=${COMP_LINE:0:COMP_POINT}\n"
	"\tlocal options='^[^ ]+ +((-j|--json|-s +[^ ]+|--socket[= ]+[^ ]+) +)*'\n"
	"\n"
	"\tif [[ $line =~ $options ]]; then\n"
	"\t\tline=${line:${#BASH_REMATCH[0]}}\n"
	"\t\tif [[ $line == -* ]]; then\n"
	"\t\t\tmapfile -t COMPREPLY < <(compgen -W '-s -j -f -h --version' -- \"$line\")\n"
	"\t\t\treturn\n"
	"\t\tfi\n"
	"\t\tmapfile -t COMPREPLY < <(\"$1\" --complete \"$line\")\n"
	"\tfi\n"
	"}\n"
	"complete -o default -F _sluicectl sluicectl\n";

static void
print_word(void *arg, const char *word)
{
	(void)arg;
	puts(word);
}

void
completion_line(const char *line)
{
	grammar_complete(line, print_word, NULL);
}

int
completion_script(const char *shell)
{
	if (strcmp(shell, "bash") != 0)
		return -1;
	fputs(bash_text, stdout);
	return 0;
}
