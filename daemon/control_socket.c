/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 128 };

/* 0 or -ENAMETOOLONG. */
static int make_address(struct sockaddr_un *ret_address, const char *path, const char *suffix)
{
	int bytes;

	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	bytes = snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "%s%s", path, suffix);
	return bytes <= 0 || (size_t)bytes >= sizeof(ret_address->sun_path) ? -ENAMETOOLONG : 0;
}

int control_socket_connect(const char *path)
{
	struct sockaddr_un address;
	int err = make_address(&address, path, ""), fd;
	const struct timeval moment = {.tv_sec = 5};

	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Where the queue of a service that hangs is full, connect(2) waits for as long as a send may. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof(moment));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* Whether the name may be taken: nothing is there, or what a service left behind that is no more. */
static int check_name(const char *path, struct fault *fault)
{
	struct stat there;
	int fd;

	if (lstat(path, &there) != 0)
		return errno == ENOENT ? 0 : fault_set(fault, -errno, "", "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(there.st_mode))
		return fault_set(fault, -EEXIST, "move it away, or name another place", "%s: it is no socket", path);
	fd = control_socket_connect(path);
	if (fd >= 0)
		close(fd);
	/* EAGAIN: it is there, and has many to answer. */
	if (fd >= 0 || fd == -EAGAIN)
		return fault_set(fault, -EADDRINUSE, "one service a socket", "%s: another service answers there", path);
	if (fd != -ECONNREFUSED && fd != -ENOENT)
		return fault_set(fault, fd, "", "%s: %s", path, strerror(-fd));
	return 0;
}

/* By hand there is no service manager that makes /run/sampled. */
static int no_bind(const char *path, int number, struct fault *fault)
{
	const char *slash = strrchr(path, '/');
	char hint[128] = "";

	if (number == ENOENT && slash && slash > path)
		snprintf(hint, sizeof(hint), "mkdir %.*s, or name another place by --socket",
		         (int)(slash - path < 80 ? slash - path : 80), path);
	return fault_set(fault, -number, hint, "%s: %s", path, strerror(number));
}

/* Binds beside the name and moves it there, so that the name is never without a socket that listens. */
static int bind_name(struct control_socket *s, struct fault *fault)
{
	struct sockaddr_un beside;
	struct stat made;
	int err = make_address(&beside, s->path, ".new");

	if (err)
		return fault_set(fault, err, "", "%s: the path of a socket has %zu bytes at most", s->path,
		                 sizeof(beside.sun_path) - sizeof(".new"));
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return fault_set(fault, -errno, "", "%s", strerror(errno));
	if (lstat(beside.sun_path, &made) == 0 && S_ISSOCK(made.st_mode))
		unlink(beside.sun_path);
	if (bind(s->fd, (const struct sockaddr *)&beside, sizeof(beside)) != 0)
		return no_bind(s->path, errno, fault);
	if (chmod(beside.sun_path, 0666) != 0 || listen(s->fd, BACKLOG) != 0 || lstat(beside.sun_path, &made) != 0 ||
	    rename(beside.sun_path, s->path) != 0) {
		err = fault_set(fault, -errno, "", "%s: %s", s->path, strerror(errno));
		unlink(beside.sun_path);
		return err;
	}
	s->device = made.st_dev;
	s->inode = made.st_ino;
	return 0;
}

static int adopt(struct control_socket *s, int fd, struct fault *fault)
{
	int domain = 0, type = 0, listens = 0, flags = fcntl(fd, F_GETFL);
	socklen_t bytes = sizeof(int);

	if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) != 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0)
		return fault_set(fault, -errno, "", "the inherited socket: %s", strerror(errno));
	if (domain != AF_UNIX || type != SOCK_STREAM || !listens)
		return fault_set(fault, -EINVAL, "ListenStream= with a path",
		                 "the inherited socket is none of AF_UNIX that listens for streams");
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		return fault_set(fault, -errno, "", "the inherited socket: %s", strerror(errno));
	s->fd = fd;
	return 0;
}

int control_socket_open(struct control_socket *ret_socket, const char *path, int inherited_fd, struct fault *fault)
{
	struct control_socket *s = ret_socket;
	int err;

	*s = (struct control_socket){.fd = -1};
	if (inherited_fd >= 0)
		return adopt(s, inherited_fd, fault);
	err = check_name(path, fault);
	if (err)
		return err;
	s->path = strdup(path);
	err = s->path ? bind_name(s, fault) : fault_set(fault, -ENOMEM, "", "out of memory");
	if (err) {
		if (s->fd >= 0)
			close(s->fd);
		free(s->path);
		*s = (struct control_socket){.fd = -1};
	}
	return err;
}

void control_socket_close(struct control_socket *s)
{
	struct stat there;

	if (s->path && lstat(s->path, &there) == 0 && there.st_dev == s->device && there.st_ino == s->inode)
		unlink(s->path);
	if (s->fd >= 0)
		close(s->fd);
	free(s->path);
	*s = (struct control_socket){.fd = -1};
}
