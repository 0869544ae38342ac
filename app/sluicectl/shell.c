/* SPDX-License-Identifier: BSD-3-Clause */
/* The interactive shell: editing and history by libedit, completion from the command table. */
#include <errno.h>
#include <histedit.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

#define HISTORY_SIZE 1000
#define WORDS_MAX    256

static char *
prompt(EditLine *el)
{
	static char text[] = "sluice> ";

	(void)el;
	return text;
}

/* ---- completion ---- */

struct words {
	char *word[WORDS_MAX];
	size_t n;
};

static void
collect(void *arg, const char *word)
{
	struct words *w = arg;

	if (w->n < WORDS_MAX && (w->word[w->n] = strdup(word)) != NULL)
		w->n++;
}

static size_t
common_prefix(const struct words *w)
{
	size_t len = strlen(w->word[0]), i, k;

	for (i = 1; i < w->n; i++) {
		for (k = 0; k < len && w->word[i][k] == w->word[0][k];)
			k++;
		len = k;
	}
	return len;
}

static void
print_words(const struct words *w)
{
	size_t i;

	putchar('\n');
	for (i = 0; i < w->n; i++)
		printf("%s%s", w->word[i], i + 1 < w->n ? "  " : "\n");
	fflush(stdout);
}

/* Inserts what all candidates have in common behind `typed` bytes of the word. */
static unsigned char
complete_with(EditLine *el, const struct words *w, size_t typed)
{
	size_t len = common_prefix(w);
	char insert[128];

	if (w->n > 1 && len <= typed) {
		print_words(w);
		return CC_REDISPLAY;
	}
	snprintf(insert, sizeof(insert), "%.*s%s", (int)(len - typed), w->word[0] + typed,
		w->n == 1 ? " " : "");
	return el_insertstr(el, insert) == 0 ? CC_REFRESH : CC_ERROR;
}

static unsigned char
complete(EditLine *el, int ch)
{
	const LineInfo *info = el_line(el);
	struct words w = {.n = 0};
	const char *at;
	unsigned char ret = CC_ERROR;
	char *line;
	size_t i;

	(void)ch;
	line = strndup(info->buffer, (size_t)(info->cursor - info->buffer));
	if (line == NULL)
		return CC_ERROR;
	grammar_complete(line, collect, &w);
	for (at = info->cursor; at > info->buffer && at[-1] != ' ' && at[-1] != '\t';)
		at--;
	if (w.n > 0)
		ret = complete_with(el, &w, (size_t)(info->cursor - at));
	for (i = 0; i < w.n; i++)
		free(w.word[i]);
	free(line);
	return ret;
}

/* ---- history ---- */

static char *
history_path(void)
{
	const char *home = getenv("HOME");
	char *path = NULL;

	if (home == NULL || asprintf(&path, "%s/.sluicectl_history", home) < 0)
		return NULL;
	return path;
}

static void
remember(History *h, const char *line)
{
	HistEvent ev;

	if (line[strspn(line, " \t\n")] != '\0')
		history(h, &ev, H_ENTER, line);
}

/* ---- the loop ---- */

static void
on_interrupt(int sig)
{
	(void)sig; /* the read of an endless answer returns with EINTR */
}

static void
catch_interrupt(void)
{
	struct sigaction sa = {.sa_handler = on_interrupt};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
}

static bool
wants_out(const char *line)
{
	return strcmp(line, "quit") == 0 || strcmp(line, "exit") == 0;
}

static void
loop(struct run *r, EditLine *el, History *h)
{
	const char *text;
	char *line;
	int n;

	for (;;) {
		errno = 0;
		text = el_gets(el, &n);
		if (text == NULL && n < 0 && errno == EINTR) {
			putchar('\n');
			continue;
		}
		if (text == NULL || n <= 0)
			break;
		remember(h, text);
		line = strndup(text, strcspn(text, "\n"));
		if (line == NULL || wants_out(line)) {
			free(line);
			return;
		}
		run_line(r, line);
		free(line);
	}
	putchar('\n');
}

int
run_shell(struct run *r)
{
	History *h = history_init();
	EditLine *el = el_init("sluicectl", stdin, stdout, stderr);
	char *path = history_path();
	HistEvent ev;

	if (h == NULL || el == NULL) {
		fputs("sluicectl: cannot use this terminal\n", stderr);
		free(path);
		return EXIT_REFUSED;
	}
	history(h, &ev, H_SETSIZE, HISTORY_SIZE);
	history(h, &ev, H_SETUNIQUE, 1);
	if (path != NULL)
		history(h, &ev, H_LOAD, path);
	el_set(el, EL_PROMPT, prompt);
	el_set(el, EL_EDITOR, "emacs");
	el_set(el, EL_HIST, history, h);
	el_set(el, EL_ADDFN, "sluice-complete", "complete a word", complete);
	el_set(el, EL_BIND, "^I", "sluice-complete", NULL);
	el_source(el, NULL);
	catch_interrupt();
	if (run_connect(r) == 0)
		puts("help lists the commands, Tab completes, quit or Ctrl-D leaves.");
	loop(r, el, h);
	if (path != NULL)
		history(h, &ev, H_SAVE, path);
	free(path);
	el_end(el);
	history_end(h);
	return 0;
}
