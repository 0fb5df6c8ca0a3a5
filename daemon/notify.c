/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

int notify_send(const char *state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t bytes = path ? strlen(path) : 0, sent;
	int fd, err = 0;

	if (bytes == 0)
		return 0;
	if (bytes >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
		return -EINVAL;
	memcpy(address.sun_path, path, bytes);
	if (path[0] == '@') /* the abstract name space: a NUL instead, and the length alone ends it */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	sent = strlen(state);
	if (sendto(fd, state, sent, MSG_NOSIGNAL, (struct sockaddr *)&address,
	           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes)) != (ssize_t)sent)
		err = -errno;
	close(fd);
	return err;
}

uint64_t notify_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return strtoull(usec, NULL, 10) * NS_PER_US;
}
