/* SPDX-License-Identifier: BSD-3-Clause */
/* The client: one command, a file of commands, or a shell. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "completion.h"
#include "run.h"

#define SOCKET_PATH "/run/sluice/sluice.sock"

static const char usage_text[] =
	"usage: sluicectl [-j] [-s SOCKET] COMMAND...    one command; `sluicectl help` lists them\n"
	"       sluicectl [-j] [-s SOCKET] -f FILE       a file of commands (-: standard input), "
	"one a line,\n"
	"                                                whose changes are applied together or not "
	"at all\n"
	"       sluicectl [-j] [-s SOCKET]               a shell, on a terminal\n"
	"\n"
	"  -s, --socket PATH   control socket (" SOCKET_PATH ")\n"
	"  -j, --json          answers as JSON, one object a line\n"
	"  -f, --file FILE     commands from a file\n"
	"      --completion bash   the completion of bash, to be sourced\n"
	"      --version       print the version\n"
	"  -h, --help          print this\n"
	"\n"
	"Exit status: 0 done, 1 refused (the reason on stderr), 2 usage.\n";

enum { OPT_VERSION = 256, OPT_COMPLETE, OPT_COMPLETION };

static const struct option options[] = {
	{"socket", required_argument, NULL, 's'},
	{"json", no_argument, NULL, 'j'},
	{"file", required_argument, NULL, 'f'},
	{"complete", required_argument, NULL, OPT_COMPLETE},
	{"completion", required_argument, NULL, OPT_COMPLETION},
	{"version", no_argument, NULL, OPT_VERSION},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static bool
needs_quotes(const char *word)
{
	return word[0] == '\0' || word[0] == '#' || strpbrk(word, " \t'\"") != NULL;
}

/* The words as a line; quote: those that are not plain keep their bounds. */
static char *
join(int n, char **words, bool quote)
{
	char *line = NULL;
	size_t len;
	FILE *f = open_memstream(&line, &len);
	int i;

	if (f == NULL)
		return NULL;
	for (i = 0; i < n; i++) {
		const char *q = !quote || !needs_quotes(words[i]) ? ""
				: strchr(words[i], '\'') != NULL  ? "\""
								  : "'";

		fprintf(f, "%s%s%s%s", i > 0 ? " " : "", q, words[i], q);
	}
	fclose(f);
	return line;
}

/* Text that is taken as it stands, such as a rule's, must not get quotes of ours. */
static bool
takes_rest(const char *line)
{
	const struct grammar_command *cmd = NULL;
	const struct grammar_param *p;
	struct grammar_tokens *tok = NULL;
	unsigned int words;
	bool rest = false;

	if (grammar_split(line, true, &tok, NULL) == 0)
		cmd = grammar_match(tok, &words);
	grammar_tokens_free(tok);
	for (p = cmd != NULL ? cmd->params : NULL; p != NULL && p->name != NULL; p++)
		rest = rest || p->type == GRAMMAR_REST;
	return rest;
}

static int
run_words(struct run *r, int n, char **words)
{
	char *line = join(n, words, false);
	int status;

	if (line != NULL && n > 1 && !takes_rest(line)) {
		free(line);
		line = join(n, words, true);
	}
	if (line == NULL) {
		fputs("sluicectl: out of memory\n", stderr);
		return EXIT_REFUSED;
	}
	status = run_line(r, line);
	free(line);
	return status;
}

static int
dispatch(struct run *r, const char *file, int n, char **words)
{
	if (file != NULL && n > 0) {
		fprintf(stderr, "sluicectl: -f FILE and a command at once; see sluicectl --help\n");
		return EXIT_USAGE;
	}
	if (file != NULL)
		return run_file(r, file);
	if (n > 0)
		return run_words(r, n, words);
	if (!isatty(STDIN_FILENO)) {
		fputs("sluicectl: no command; see sluicectl --help\n", stderr);
		return EXIT_USAGE;
	}
	return run_shell(r);
}

int
main(int argc, char **argv)
{
	struct run r = {.client.fd = -1, .socket = SOCKET_PATH};
	const char *file = NULL;
	int opt, status;

	/* "+": what follows the command's first word is the command's. */
	while ((opt = getopt_long(argc, argv, "+s:jf:h", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			r.socket = optarg;
			break;
		case 'j':
			r.json = true;
			break;
		case 'f':
			file = optarg;
			break;
		case OPT_COMPLETE:
			completion_line(optarg);
			return EXIT_SUCCESS;
		case OPT_COMPLETION:
			if (completion_script(optarg) == 0)
				return EXIT_SUCCESS;
			fprintf(stderr, "sluicectl: no completion for %s, only for bash\n", optarg);
			return EXIT_USAGE;
		case OPT_VERSION:
			puts("sluicectl " SLUICE_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			fputs(usage_text, stdout);
			return EXIT_SUCCESS;
		default:
			fputs("see sluicectl --help\n", stderr);
			return EXIT_USAGE;
		}
	}
	status = dispatch(&r, file, argc - optind, argv + optind);
	client_close(&r.client);
	if (fflush(stdout) != 0 && status == 0) {
		fprintf(stderr, "sluicectl: cannot write: %s\n", strerror(errno));
		status = EXIT_REFUSED;
	}
	return status;
}
