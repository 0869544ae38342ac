/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reply is a scrape: each turn of the event loop writes one slice of the text, and the next is
 * written when the client has read the last. A scrape ends when its text is complete, or when the
 * connection is closed under it, of which evhttp tells by the close callback; from then on a
 * request that has lost its connection is ours to free.
 */
#include "metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/util.h>

#include "err.h"
#include "metrics_text.h"

#define SCRAPES_MAX     4
#define TIMEOUT_SECONDS 30    /* for a request to come, and for a reply to be read */
#define REQUEST_MAX     8192  /* bytes of headers, and of a body, which nobody reads */
#define LISTEN_BACKLOG  16

struct scrape {
	struct metrics *m;
	struct evhttp_request *req;
	struct metrics_text *text;
	struct evbuffer *buf;
	struct event *turn; /* for slices that wrote nothing */
	LIST_ENTRY(scrape) link;
};

struct metrics {
	struct gateway *gw;
	struct event_base *base;
	struct evhttp *http;
	unsigned int n_scrapes;
	LIST_HEAD(, scrape) scrapes;
};

static void
scrape_free(struct scrape *s)
{
	if (s->text != NULL)
		metrics_text_end(s->text);
	if (s->buf != NULL)
		evbuffer_free(s->buf);
	if (s->turn != NULL)
		event_free(s->turn);
	LIST_REMOVE(s, link);
	s->m->n_scrapes--;
	free(s);
}

/* The connection goes away under the scrape: the client left or was too slow, or we stop. */
static void
connection_closed(struct evhttp_connection *conn, void *arg)
{
	struct scrape *s = arg;

	(void)conn;
	if (evhttp_request_get_connection(s->req) == NULL)
		evhttp_send_reply_end(s->req); /* which frees it */
	scrape_free(s);
}

static void
scrape_finish(struct scrape *s)
{
	struct evhttp_connection *conn = evhttp_request_get_connection(s->req);
	struct evhttp_request *req = s->req;

	evhttp_connection_set_closecb(conn, NULL, NULL);
	bufferevent_setwatermark(evhttp_connection_get_bufferevent(conn), EV_READ, 0, 0);
	scrape_free(s);
	evhttp_send_reply_end(req);
}

static void next_slice(struct evhttp_connection *conn, void *arg);

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct scrape *s = arg;

	(void)fd;
	(void)what;
	next_slice(evhttp_request_get_connection(s->req), s);
}

static void
next_slice(struct evhttp_connection *conn, void *arg)
{
	static const struct timeval soon = {0};
	struct scrape *s = arg;
	int more = metrics_text_slice(s->text, s->buf);

	if (more < 0) {
		/* Cut, and without its end marker: no client takes it for complete. */
		evhttp_connection_free(conn);
	} else if (more == 0) {
		evhttp_send_reply_chunk(s->req, s->buf);
		scrape_finish(s);
	} else if (evbuffer_get_length(s->buf) > 0) {
		evhttp_send_reply_chunk_with_cb(s->req, s->buf, next_slice, s);
	} else {
		event_add(s->turn, &soon);
	}
}

static struct scrape *
scrape_new(struct metrics *m, struct evhttp_request *req)
{
	struct scrape *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->m = m;
	s->req = req;
	m->n_scrapes++;
	LIST_INSERT_HEAD(&m->scrapes, s, link);
	s->text = metrics_text_begin(m->gw);
	s->buf = evbuffer_new();
	s->turn = event_new(m->base, -1, 0, on_turn, s);
	if (s->text == NULL || s->buf == NULL || s->turn == NULL) {
		scrape_free(s);
		return NULL;
	}
	return s;
}

static void
reply_line(struct evhttp_request *req, int code, const char *reason, const char *line)
{
	struct evbuffer *body = evbuffer_new();

	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type",
		"text/plain; charset=utf-8");
	if (body != NULL)
		evbuffer_add_printf(body, "%s\n", line);
	evhttp_send_reply(req, code, reason, body);
	if (body != NULL)
		evbuffer_free(body);
}

static void
start_scrape(struct metrics *m, struct evhttp_request *req)
{
	struct evhttp_connection *conn = evhttp_request_get_connection(req);
	struct scrape *s;

	if (m->n_scrapes >= SCRAPES_MAX) {
		reply_line(req, HTTP_SERVUNAVAIL, "Service Unavailable",
			"too many scrapes at once: try again");
		return;
	}
	s = scrape_new(m, req);
	if (s == NULL) {
		reply_line(req, HTTP_SERVUNAVAIL, "Service Unavailable", "out of memory");
		return;
	}
	evhttp_connection_set_closecb(conn, connection_closed, s);
	/* What the client sends meanwhile waits in the socket. */
	bufferevent_setwatermark(evhttp_connection_get_bufferevent(conn), EV_READ, 0, REQUEST_MAX);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type",
		METRICS_CONTENT_TYPE);
	evhttp_send_reply_start(req, HTTP_OK, "OK");
	next_slice(conn, s);
}

static void
on_request(struct evhttp_request *req, void *arg)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	enum evhttp_cmd_type method = evhttp_request_get_command(req);

	if (path == NULL || strcmp(path, "/metrics") != 0) {
		reply_line(req, HTTP_NOTFOUND, "Not Found", "there is only /metrics");
	} else if (method == EVHTTP_REQ_HEAD) {
		evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type",
			METRICS_CONTENT_TYPE);
		evhttp_send_reply(req, HTTP_OK, "OK", NULL);
	} else if (method != EVHTTP_REQ_GET) {
		evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", "GET, HEAD");
		reply_line(req, HTTP_BADMETHOD, "Method Not Allowed", "GET or HEAD only");
	} else {
		start_scrape(arg, req);
	}
}

/* ---- start and stop ---- */

static int
listen_on(const char *addr_port, struct sl_err *err)
{
	const char *digits = strrchr(addr_port, ':');
	struct sockaddr_storage ss;
	int len = sizeof(ss), fd, one = 1, code;
	in_port_t port;

	/* libevent reads a port as far as there are digits. */
	if ((digits != NULL && digits[1 + strspn(digits + 1, "0123456789")] != '\0') ||
		evutil_parse_sockaddr_port(addr_port, (struct sockaddr *)&ss, &len) != 0)
		return sl_refuse(err, EINVAL, "metrics: \"%s\" is no ADDR:PORT, such as "
			"127.0.0.1:9100 or [::1]:9100", addr_port);
	port = ss.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&ss)->sin6_port
					: ((struct sockaddr_in *)&ss)->sin_port;
	if (port == 0)
		return sl_refuse(err, EINVAL, "metrics: \"%s\" has no port of 1-65535", addr_port);
	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return sl_refuse(err, errno, "metrics: no socket: %s", strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
		bind(fd, (struct sockaddr *)&ss, (socklen_t)len) == 0 &&
		listen(fd, LISTEN_BACKLOG) == 0)
		return fd;
	code = errno;
	close(fd);
	return sl_refuse(err, code, "metrics: cannot listen on %s: %s", addr_port, strerror(code));
}

static struct evhttp *
http_new(struct metrics *m)
{
	struct evhttp *http = evhttp_new(m->base);

	if (http == NULL)
		return NULL;
	evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
		EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
	evhttp_set_max_headers_size(http, REQUEST_MAX);
	evhttp_set_max_body_size(http, REQUEST_MAX);
	evhttp_set_timeout(http, TIMEOUT_SECONDS);
	evhttp_set_gencb(http, on_request, m);
	return http;
}

int
metrics_start(struct gateway *gw, struct event_base *base, const char *addr_port,
	struct metrics **out, struct sl_err *err)
{
	struct metrics *m;
	int fd;

	fd = listen_on(addr_port, err);
	if (fd < 0)
		return fd;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		goto no_memory;
	m->gw = gw;
	m->base = base;
	LIST_INIT(&m->scrapes);
	m->http = http_new(m);
	if (m->http == NULL || evhttp_accept_socket_with_handle(m->http, fd) == NULL)
		goto no_memory;
	*out = m;
	return 0;

no_memory:
	close(fd);
	if (m != NULL && m->http != NULL)
		evhttp_free(m->http);
	free(m);
	return sl_refuse(err, ENOMEM, "metrics: out of memory");
}

void
metrics_stop(struct metrics *m)
{
	if (m == NULL)
		return;
	evhttp_free(m->http); /* ends the scrapes through their close callback */
	free(m);
}
