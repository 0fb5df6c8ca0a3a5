/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a socket in the file system, taken and given back. */
#ifndef SAMPLED_DAEMON_CONTROL_SOCKET_H
#define SAMPLED_DAEMON_CONTROL_SOCKET_H

#include <sys/types.h>

#include "base/fault.h"

struct control_socket {
	int fd;       /* listens; -1: not open */
	char *path;   /* owned; NULL: inherited, with a name that is its maker's */
	dev_t device; /* of the name */
	ino_t inode;
};

/* Listens at path, open for all to connect to, or takes inherited_fd (-1: none). The name of a service that is no more is replaced in one step.
 * 0 or -errno with *fault filled: -EADDRINUSE a service answers there, -EEXIST something that is no socket is there. *ret_socket is as
 * closed then. */
int control_socket_open(struct control_socket *ret_socket, const char *path, int inherited_fd, struct fault *fault);
/* Takes the name away, unless it has become another's. */
void control_socket_close(struct control_socket *socket);

/* Connects to path, without waiting for longer than a moment. A descriptor, or -errno. */
int control_socket_connect(const char *path);

#endif
