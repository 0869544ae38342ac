/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top on a terminal. The terminal gives single keys and no signals for the time, and a thread waits
 * for one that means the end; it then shuts the connection down, which ends the loop over samples.
 */
#include "top.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "render_watch.h"

#define CTRL_C 3
#define CTRL_D 4
#define ROWS   24 /* when the terminal does not say */

struct keys {
	struct termios before;
	pthread_t thread;
	int connection;
	int stop[2]; /* a pipe: its other end is closed when the thread is to end */
	bool quit;   /* written by the thread; read when it has ended */
};

static void *
wait_for_key(void *arg)
{
	struct keys *k = arg;
	struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = k->stop[0], .events = POLLIN}};
	char key;

	while (poll(fds, 2, -1) >= 0 && fds[1].revents == 0) {
		if (fds[0].revents == 0)
			continue;
		if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == CTRL_C ||
			key == CTRL_D) {
			k->quit = true;
			shutdown(k->connection, SHUT_RDWR);
			break;
		}
	}
	return NULL;
}

static bool
keys_begin(struct keys *k, int connection)
{
	struct termios raw;

	*k = (struct keys){.connection = connection};
	if (tcgetattr(STDIN_FILENO, &k->before) != 0 || pipe(k->stop) != 0)
		return false;
	raw = k->before;
	raw.c_lflag &= (tcflag_t)~(ICANON | ECHO | ISIG);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	if (pthread_create(&k->thread, NULL, wait_for_key, k) == 0)
		return true;
	tcsetattr(STDIN_FILENO, TCSANOW, &k->before);
	close(k->stop[0]);
	close(k->stop[1]);
	return false;
}

/* Whether it was a key that ended it. */
static bool
keys_end(struct keys *k)
{
	close(k->stop[1]);
	pthread_join(k->thread, NULL);
	close(k->stop[0]);
	tcsetattr(STDIN_FILENO, TCSANOW, &k->before);
	return k->quit;
}

static unsigned int
screen_rows(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : ROWS;
}

/* Draws samples until the answer, which is returned (a new reference), or NULL with err. */
static json_t *
draw_samples(struct client *c, struct sl_err *err)
{
	json_t *line, *sample;

	while ((line = client_receive(c, err)) != NULL) {
		sample = json_object_get(line, "params");
		if (sample == NULL)
			break;
		render_top_screen(sample, screen_rows(), stdout);
		fflush(stdout);
		json_decref(line);
	}
	return line;
}

bool
top_wants_screen(const struct run *r, const struct grammar_command *cmd)
{
	return !r->json && strcmp(cmd->words, "top") == 0 && isatty(STDIN_FILENO) &&
	       isatty(STDOUT_FILENO);
}

int
top_screen(struct run *r, const struct grammar_command *cmd, json_t *params)
{
	json_t *request = run_request(cmd, params, 1), *answer, *error;
	struct sl_err err = {""};
	struct keys keys;
	int status = run_connect(r);
	bool quit;

	if (status == 0 && (client_send(&r->client, request, &err) != 0 ||
				   !keys_begin(&keys, r->client.fd))) {
		fprintf(stderr, "sluicectl: %s\n", err.msg[0] != '\0' ? err.msg : "no terminal");
		client_close(&r->client);
		status = EXIT_REFUSED;
	}
	json_decref(request);
	if (status != 0)
		return status;
	fputs("\033[?1049h\033[?25l", stdout); /* the other screen, no cursor */
	answer = draw_samples(&r->client, &err);
	quit = keys_end(&keys);
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	if (answer == NULL || quit)
		client_close(&r->client);
	error = json_object_get(answer, "error");
	if (!quit && (answer == NULL || error != NULL)) {
		fprintf(stderr, "sluicectl: %s\n",
			error != NULL ? render_string(error, "message") : err.msg);
		status = EXIT_REFUSED;
	}
	json_decref(answer);
	return status;
}
