/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REQUEST_MAX (1024 * 1024)

static int
refuse_connect(const char *path, int e, struct sl_err *err)
{
	if (e == ENOENT || e == ECONNREFUSED)
		return sl_refuse(err, e,
			"%s: no daemon listens there: start sluice, or name its socket by -s",
			path);
	return sl_refuse(err, e, "%s: %s", path, strerror(e));
}

int
client_connect(struct client *c, const char *path, struct sl_err *err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int ret;

	*c = (struct client){.path = path, .fd = -1};
	if (strlen(path) >= sizeof(sa.sun_path))
		return sl_refuse(
			err, EINVAL, "socket path longer than %zu bytes", sizeof(sa.sun_path) - 1);
	strcpy(sa.sun_path, path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
		ret = refuse_connect(path, errno, err);
		client_close(c);
		return ret;
	}
	c->in = fdopen(c->fd, "r");
	if (c->in == NULL) {
		client_close(c);
		return sl_refuse(err, ENOMEM, "out of memory");
	}
	return 0;
}

void
client_close(struct client *c)
{
	if (c->in != NULL)
		fclose(c->in);
	else if (c->fd >= 0)
		close(c->fd);
	c->in = NULL;
	c->fd = -1;
	free(c->line);
	c->line = NULL;
	c->room = 0;
}

static int
send_all(int fd, const char *buf, size_t len)
{
	ssize_t n;

	for (; len > 0; buf += n, len -= (size_t)n) {
		n = send(fd, buf, len, MSG_NOSIGNAL);
		if (n < 0)
			return -errno;
	}
	return 0;
}

int
client_send(struct client *c, const json_t *message, struct sl_err *err)
{
	char *text = json_dumps(message, JSON_COMPACT);
	size_t len;
	int ret;

	if (text == NULL)
		return sl_refuse(err, ENOMEM, "out of memory");
	len = strlen(text);
	text[len] = '\n'; /* in the place of the terminator */
	if (len > REQUEST_MAX)
		ret = sl_refuse(err, EMSGSIZE,
			"%zu bytes are too many for one batch, at most %d: split it", len,
			REQUEST_MAX);
	else
		ret = send_all(c->fd, text, len + 1);
	free(text);
	/* The daemon may have said why before it closed: that is read next. */
	return ret == -EMSGSIZE ? ret : 0;
}

json_t *
client_receive(struct client *c, struct sl_err *err)
{
	json_error_t e;
	ssize_t len;
	json_t *v;

	errno = 0;
	len = getline(&c->line, &c->room, c->in);
	if (len < 0) {
		if (errno == EINTR)
			sl_refuse(err, EINTR, "interrupted");
		else
			sl_refuse(err, EPIPE, "the daemon closed the connection");
		return NULL;
	}
	v = json_loadb(c->line, (size_t)len, 0, &e);
	if (v == NULL)
		sl_refuse(err, EPROTO, "the daemon's answer is not JSON: %.160s", e.text);
	return v;
}
