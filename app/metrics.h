/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The metrics endpoint: HTTP on the control thread's event loop, /metrics answered by GET and HEAD
 * with the text of metrics_text.h. A reply is produced as the client reads it.
 */
#ifndef METRICS_H
#define METRICS_H

struct event_base;
struct gateway;
struct metrics;
struct sl_err;

/*
 * Listens on ADDR:PORT: an IPv4 address, or an IPv6 address in brackets, as numbers. Refuses what
 * is no such thing with -EINVAL, and with what bind() says.
 */
int metrics_start(struct gateway *gw, struct event_base *base, const char *addr_port,
	struct metrics **out, struct sl_err *err);

/* Closes all connections; replies under way are cut. NULL is left alone. */
void metrics_stop(struct metrics *m);

#endif
