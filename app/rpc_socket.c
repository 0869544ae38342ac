/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "err.h"

#define BACKLOG    128
#define GROUPS_MAX 256

/* The socket that rpc_socket_open() made. */
static struct {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t dev;
	ino_t ino;
	gid_t gid;
} opened;

static int
make_address(const char *path, struct sockaddr_un *sa, struct sl_err *err)
{
	*sa = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (path[0] == '\0' || strlen(path) >= sizeof(sa->sun_path))
		return sl_refuse(err, EINVAL, "socket path must have 1-%zu bytes: %.80s",
			sizeof(sa->sun_path) - 1, path);
	strcpy(sa->sun_path, path);
	return 0;
}

/* 0: nobody listens there. -EADDRINUSE: somebody does, or it cannot be told. */
static int
probe(const struct sockaddr_un *sa, struct sl_err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), e;

	if (fd < 0)
		return sl_refuse(err, errno, "socket: %s", strerror(errno));
	e = connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 ? 0 : errno;
	close(fd);
	if (e == ECONNREFUSED || e == ENOENT)
		return 0;
	if (e == 0 || e == EAGAIN)
		return sl_refuse(err, EADDRINUSE,
			"%s: a daemon listens there already; stop it or choose "
			"another socket by -s",
			sa->sun_path);
	return sl_refuse(err, e, "%s: cannot tell whether a daemon listens there: %s", sa->sun_path,
		strerror(e));
}

int
rpc_socket_check(const char *path, struct sl_err *err)
{
	struct sockaddr_un sa;
	struct stat st;
	int ret;

	ret = make_address(path, &sa, err);
	if (ret != 0)
		return ret;
	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : sl_refuse(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return sl_refuse(err, EEXIST,
			"%s: exists and is no socket; remove it or choose another by -s", path);
	return probe(&sa, err);
}

static int
find_group(const char *name, gid_t *gid, struct sl_err *err)
{
	const struct group *g;
	unsigned long n;
	char *end;

	*gid = getegid();
	if (name == NULL)
		return 0;
	g = getgrnam(name);
	if (g != NULL) {
		*gid = g->gr_gid;
		return 0;
	}
	errno = 0;
	n = strtoul(name, &end, 10);
	if (name[0] < '0' || name[0] > '9' || *end != '\0' || errno != 0 || n >= UINT32_MAX)
		return sl_refuse(err, ENOENT, "there is no group \"%.64s\"", name);
	*gid = (gid_t)n;
	return 0;
}

/* The directory of the socket, locked so that two daemons cannot both find a dead one's socket. */
static int
lock_directory(const char *path, struct sl_err *err)
{
	char copy[sizeof(opened.path)], *dir;
	int fd;

	snprintf(copy, sizeof(copy), "%s", path);
	dir = dirname(copy);
	if (strcmp(dir, "/run/sluice") == 0 && mkdir(dir, 0755) != 0 && errno != EEXIST)
		return sl_refuse(err, errno, "%s: %s", dir, strerror(errno));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return sl_refuse(err, errno, "%s: %s; make it or choose another socket by -s", dir,
			strerror(errno));
	if (flock(fd, LOCK_EX) != 0) {
		close(fd);
		return sl_refuse(err, errno, "%s: cannot lock: %s", dir, strerror(errno));
	}
	return fd;
}

static int
bind_private(int fd, const struct sockaddr_un *sa, gid_t gid, struct sl_err *err)
{
	mode_t mask = umask(0177);
	int ret = bind(fd, (const struct sockaddr *)sa, sizeof(*sa));
	struct stat st;

	umask(mask);
	if (ret != 0)
		return sl_refuse(err, errno, "%s: %s", sa->sun_path, strerror(errno));
	if ((gid != getegid() && lchown(sa->sun_path, (uid_t)-1, gid) != 0) ||
		chmod(sa->sun_path, 0660) != 0 || lstat(sa->sun_path, &st) != 0 ||
		listen(fd, BACKLOG) != 0) {
		ret = sl_refuse(err, errno, "%s: %s", sa->sun_path, strerror(errno));
		unlink(sa->sun_path);
		return ret;
	}
	strcpy(opened.path, sa->sun_path);
	opened.dev = st.st_dev;
	opened.ino = st.st_ino;
	opened.gid = gid;
	return 0;
}

int
rpc_socket_open(const char *path, const char *group, struct sl_err *err)
{
	struct sockaddr_un sa;
	int fd = -1, dir, ret;
	gid_t gid;

	ret = make_address(path, &sa, err);
	if (ret == 0)
		ret = find_group(group, &gid, err);
	if (ret != 0)
		return ret;
	dir = lock_directory(path, err);
	if (dir < 0)
		return dir;
	ret = rpc_socket_check(path, err);
	if (ret != 0)
		goto out;
	if (unlink(path) != 0 && errno != ENOENT) {
		ret = sl_refuse(err, errno, "%s: cannot remove what a dead daemon left: %s", path,
			strerror(errno));
		goto out;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ret = fd < 0 ? sl_refuse(err, errno, "socket: %s", strerror(errno))
		     : bind_private(fd, &sa, gid, err);
out:
	close(dir);
	if (ret != 0 && fd >= 0)
		close(fd);
	return ret != 0 ? ret : fd;
}

void
rpc_socket_remove(void)
{
	struct stat st;

	if (opened.path[0] == '\0')
		return;
	if (lstat(opened.path, &st) == 0 && st.st_dev == opened.dev && st.st_ino == opened.ino)
		unlink(opened.path);
	opened.path[0] = '\0';
}

bool
rpc_socket_peer_allowed(int fd)
{
	gid_t groups[GROUPS_MAX];
	socklen_t len = sizeof(groups);
	struct ucred peer;
	socklen_t peer_len = sizeof(peer);
	unsigned int i;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) != 0)
		return false;
	if (peer.uid == 0 || peer.uid == geteuid() || peer.gid == opened.gid)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) != 0)
		return false;
	for (i = 0; i < len / sizeof(groups[0]); i++)
		if (groups[i] == opened.gid)
			return true;
	return false;
}
