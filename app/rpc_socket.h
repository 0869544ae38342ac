/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket in the file system. It never has more permissions than 0660, from the moment
 * it exists: it is bound with none for group and others, then given to its group, then opened to
 * it.
 *
 * Who may talk to the daemon: root, the daemon's own user, and members of the socket's group, which
 * is the daemon's or that of --group. The file's mode says so, and the peer's credentials are
 * checked besides.
 */
#ifndef RPC_SOCKET_H
#define RPC_SOCKET_H

#include <stdbool.h>

struct sl_err;

#define RPC_SOCKET_PATH "/run/sluice/sluice.sock"

/* Whether the path could be listened on: refuses what is no socket (a symbolic link, too), and one
 * on which a live daemon listens. 0 or -errno. */
int rpc_socket_check(const char *path, struct sl_err *err);

/* Listens; a socket left by a dead daemon is replaced. group NULL: the daemon's own. The
 * descriptor, non-blocking, or -errno. */
int rpc_socket_open(const char *path, const char *group, struct sl_err *err);

/* Removes the path, if it still is the socket that was opened. */
void rpc_socket_remove(void);

/* Whether the process at the other end may talk to the daemon. */
bool rpc_socket_peer_allowed(int fd);

#endif
