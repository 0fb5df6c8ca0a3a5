/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ctl_talk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/control_protocol.h"
#include "daemon/control_socket.h"
#include "daemon/error.h"

/* Longer than the service takes to give a request up. */
enum { PATIENCE_S = 45 };

/* 0 or -errno. The descriptor goes with the first byte. */
static int send_request(int fd, const char *words, size_t bytes, int pass_fd)
{
	unsigned char head[CONTROL_HEAD_BYTES];
	struct iovec parts[] = {{.iov_base = head, .iov_len = sizeof(head)},
	                        {.iov_base = (char *)words, .iov_len = bytes}};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

	control_put_u32(head, (uint32_t)bytes);
	if (pass_fd >= 0) {
		control.head = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), &pass_fd, sizeof(pass_fd));
		message.msg_control = control.room;
		message.msg_controllen = sizeof(control.room);
	}
	while (parts[0].iov_len + parts[1].iov_len > 0) {
		ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		message.msg_control = NULL;
		message.msg_controllen = 0;
		for (int i = 0; i < 2; i++) {
			size_t of_this = (size_t)sent < parts[i].iov_len ? (size_t)sent : parts[i].iov_len;

			parts[i].iov_base = (char *)parts[i].iov_base + of_this;
			parts[i].iov_len -= of_this;
			sent -= (ssize_t)of_this;
		}
	}
	return 0;
}

/* All of these bytes. 0, -EPROTO the end came before, -errno. */
static int receive(int fd, void *to, size_t bytes)
{
	for (size_t had = 0; had < bytes;) {
		ssize_t got = recv(fd, (char *)to + had, bytes - had, 0);

		if (got == 0)
			return -EPROTO;
		if (got < 0 && errno != EINTR)
			return -errno;
		had += got > 0 ? (size_t)got : 0;
	}
	return 0;
}

/* Frames up to the end, into *ret_status. 0 or -errno. */
static int receive_reply(int fd, char *room, struct writer *to, int *ret_status)
{
	for (;;) {
		unsigned char head[CONTROL_FRAME_HEAD_BYTES];
		uint32_t bytes;
		int err = receive(fd, head, sizeof(head));

		bytes = err ? 0 : control_get_u32(head + 1);
		if (!err && bytes > CONTROL_FRAME_BYTES_MAX)
			err = -EPROTO;
		if (!err)
			err = receive(fd, room, bytes);
		if (err)
			return err;
		room[bytes] = '\0';
		if (head[0] == CONTROL_OUTPUT) {
			writer_add(to, room, bytes);
		} else if (head[0] == CONTROL_ERROR) {
			error_note("%s", room);
		} else if (head[0] == CONTROL_END && bytes == 1) {
			*ret_status = (unsigned char)room[0];
			return 0;
		} else {
			return -EPROTO;
		}
	}
}

static int talk(int fd, const char *words, size_t bytes, int pass_fd, struct writer *to)
{
	char *room = malloc(CONTROL_FRAME_BYTES_MAX + 1);
	int status = EXIT_FAILED, unsent, err;

	if (!room) {
		error_note("out of memory");
		return EXIT_FAILED;
	}
	/* A service that turns us away does not wait for the request: its reply is there even where ours does not go through. */
	unsent = send_request(fd, words, bytes, pass_fd);
	err = receive_reply(fd, room, to, &status);
	if (err == -EAGAIN)
		error_note("the service does not answer (systemctl status sampled)");
	else if (err && unsent)
		error_note("cannot ask the service: %s", strerror(-unsent));
	else if (err == -EPROTO || err == -ECONNRESET)
		error_note("the service's reply was cut short (systemctl status sampled)");
	else if (err)
		error_note("cannot read the service's reply: %s", strerror(-err));
	free(room);
	return err ? EXIT_FAILED : status;
}

int ctl_talk(const char *path, const char *words, size_t bytes, int pass_fd, struct writer *to)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	int fd = control_socket_connect(path), status;

	if (fd < 0) {
		error_note("cannot reach the service: %s: %s (systemctl status sampled)", path,
		           fd == -EAGAIN ? "it does not answer" : strerror(-fd));
		return EXIT_FAILED;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	status = talk(fd, words, bytes, pass_fd, to);
	close(fd);
	return status;
}
