/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the control socket: accepting, lines, cutting off. Requests are in rpc_request.c. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "rpc_private.h"
#include "rpc_socket.h"

SL_LOG_REGISTER(rpc);

struct rpc_server {
	struct gateway *gw;
	struct event_base *base;
	struct evconnlistener *listener;
	unsigned int n_clients;
	TAILQ_HEAD(, rpc_client) clients;
};

struct gateway *
rpc_client_gateway(const struct rpc_client *c)
{
	return c->server->gw;
}

static void
client_free(struct rpc_client *c)
{
	struct rpc_server *s = c->server;

	rpc_request_drop(c);
	TAILQ_REMOVE(&s->clients, c, link);
	s->n_clients--;
	event_free(c->partial);
	bufferevent_free(c->bev);
	free(c);
	evconnlistener_enable(s->listener);
}

static int
append(const char *buf, size_t len, void *arg)
{
	return evbuffer_add(arg, buf, len);
}

void
rpc_send(struct rpc_client *c, const json_t *line)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);

	if (json_dump_callback(line, append, out, JSON_COMPACT | JSON_ENCODE_ANY) != 0 ||
		evbuffer_add(out, "\n", 1) != 0)
		SL_LOG(ERR, "no memory for an answer");
}

/* Answers what it can, and closes when that is read. */
static void
close_with_error(struct rpc_client *c, int code, const char *message)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	json_t *e = rpc_error(NULL, code, message);

	rpc_send(c, e);
	json_decref(e);
	c->closing = true;
	bufferevent_disable(c->bev, EV_READ);
	evbuffer_drain(in, evbuffer_get_length(in));
}

/* Takes the next line off the input; len is without its end. False: none is complete. */
static bool
next_line(struct rpc_client *c, const char **line, size_t *len, size_t *taken)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct evbuffer_ptr from, at;
	size_t have = evbuffer_get_length(in);

	if (have == 0)
		return false;
	evbuffer_ptr_set(in, &from, c->scanned, EVBUFFER_PTR_SET);
	at = evbuffer_search(in, "\n", 1, &from);
	if (at.pos < 0 && !c->eof) {
		c->scanned = have;
		return false;
	}
	/* At the end of the stream the last line needs no newline. */
	*len = at.pos < 0 ? have : (size_t)at.pos;
	*taken = at.pos < 0 ? have : *len + 1;
	c->scanned = 0;
	*line = *len <= RPC_REQUEST_MAX ? (const char *)evbuffer_pullup(in, (ev_ssize_t)*len)
					: NULL;
	return true;
}

static bool
is_blank(const char *line, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return false;
	return true;
}

static void
refuse_length(struct rpc_client *c)
{
	close_with_error(
		c, RPC_TOO_LONG, "a request has at most 1048576 bytes; the connection is closed");
}

/* The time for a line to become complete runs from its first byte. */
static void
watch_partial(struct rpc_client *c)
{
	static const struct timeval limit = {RPC_PARTIAL_SEC, 0};
	bool partial = c->request == NULL && !c->closing &&
		       evbuffer_get_length(bufferevent_get_input(c->bev)) > 0;

	if (!partial)
		evtimer_del(c->partial);
	else if (!evtimer_pending(c->partial, NULL))
		evtimer_add(c->partial, &limit);
}

/* Takes requests off the input until one is under way; frees the client when nothing can come. */
void
rpc_client_next(struct rpc_client *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	struct evbuffer *out = bufferevent_get_output(c->bev);
	const char *line = NULL;
	size_t len, taken;

	while (c->request == NULL && !c->closing && evbuffer_get_length(out) < RPC_OUTPUT_HIGH &&
		next_line(c, &line, &len, &taken)) {
		if (len > RPC_REQUEST_MAX) {
			refuse_length(c);
			break;
		}
		if (len > 0 && !is_blank(line, len))
			rpc_request_start(c, line, len);
		evbuffer_drain(in, taken);
	}
	if (!c->closing && c->scanned > RPC_REQUEST_MAX)
		refuse_length(c);
	watch_partial(c);
	if (c->request == NULL && evbuffer_get_length(out) == 0 &&
		(c->closing || (c->eof && evbuffer_get_length(in) == 0)))
		client_free(c);
}

static void
on_read(struct bufferevent *bev, void *arg)
{
	(void)bev;
	rpc_client_next(arg);
}

static void
on_drained(struct bufferevent *bev, void *arg)
{
	struct rpc_client *c = arg;

	(void)bev;
	rpc_request_drained(c);
	if (c->request == NULL)
		rpc_client_next(c);
}

/* Whether the other side has closed, rather than only said that it sends no more. */
static bool
hung_up(const struct rpc_client *c)
{
	struct pollfd p = {.fd = bufferevent_getfd(c->bev)};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
	struct rpc_client *c = arg;

	(void)bev;
	if ((what & BEV_EVENT_TIMEOUT) != 0)
		SL_LOG(NOTICE, "a client that reads nothing for %d s is cut off", RPC_STALL_SEC);
	if ((what & BEV_EVENT_EOF) == 0 || hung_up(c)) {
		client_free(c);
		return;
	}
	c->eof = true;
	rpc_client_next(c);
}

static void
on_partial(evutil_socket_t fd, short what, void *arg)
{
	struct rpc_client *c = arg;

	(void)fd;
	(void)what;
	close_with_error(c, RPC_TOO_LONG, "a request must be complete within 60 s");
}

/* Says so, as far as the socket takes it at once. */
static void
turn_away(int fd, int code, const char *message)
{
	json_t *e = rpc_error(NULL, code, message);
	char line[512];
	size_t n = json_dumpb(e, line, sizeof(line) - 1, JSON_COMPACT);

	json_decref(e);
	if (n < sizeof(line)) {
		line[n++] = '\n';
		if (send(fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			SL_LOG(DEBUG, "a client that is turned away is gone");
	}
	close(fd);
}

static struct rpc_client *
client_new(struct rpc_server *s, int fd)
{
	static const struct timeval stall = {RPC_STALL_SEC, 0};
	struct rpc_client *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->server = s;
	c->partial = evtimer_new(s->base, on_partial, c);
	c->bev = bufferevent_socket_new(
		s->base, fd, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (c->partial == NULL || c->bev == NULL) {
		if (c->partial != NULL)
			event_free(c->partial);
		free(c);
		return NULL;
	}
	bufferevent_setcb(c->bev, on_read, on_drained, on_event, c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, RPC_REQUEST_MAX + 2);
	bufferevent_setwatermark(c->bev, EV_WRITE, RPC_OUTPUT_LOW, 0);
	bufferevent_set_timeouts(c->bev, NULL, &stall);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	TAILQ_INSERT_TAIL(&s->clients, c, link);
	s->n_clients++;
	return c;
}

static void
on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *addr, int len, void *arg)
{
	struct rpc_server *s = arg;

	(void)l;
	(void)addr;
	(void)len;
	if (!rpc_socket_peer_allowed(fd))
		turn_away(fd, RPC_REFUSED,
			"not permitted: neither root, the daemon's user nor its group");
	else if (s->n_clients == RPC_CLIENTS_MAX)
		turn_away(fd, RPC_TOO_MANY,
			"there are 64 clients, the most there can be; try again later");
	else if (client_new(s, fd) == NULL)
		turn_away(fd, RPC_REFUSED, "out of memory");
}

/* Out of descriptors: waits until a client leaves, instead of being woken over and over. */
static void
on_accept_error(struct evconnlistener *l, void *arg)
{
	struct rpc_server *s = arg;

	SL_LOG(ERR, "control socket: %s", strerror(errno));
	if (s->n_clients > 0)
		evconnlistener_disable(l);
}

struct rpc_server *
rpc_start(struct gateway *gw, struct event_base *base, int fd, struct sl_err *err)
{
	struct rpc_server *s = calloc(1, sizeof(*s));

	if (s != NULL) {
		s->gw = gw;
		s->base = base;
		TAILQ_INIT(&s->clients);
		s->listener = evconnlistener_new(
			base, on_accept, s, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	}
	if (s == NULL || s->listener == NULL) {
		free(s);
		close(fd);
		sl_refuse(err, ENOMEM, "out of memory");
		return NULL;
	}
	evconnlistener_set_error_cb(s->listener, on_accept_error);
	return s;
}

void
rpc_stop(struct rpc_server *s)
{
	struct rpc_client *c;

	if (s == NULL)
		return;
	while ((c = TAILQ_FIRST(&s->clients)) != NULL)
		client_free(c);
	evconnlistener_free(s->listener);
	free(s);
}
