/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its reply, from the first byte read to the last one sent. The loop's thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/control_protocol.h"
#include "daemon/control_state.h"
#include "daemon/error.h"

/* A byte more than the longest request, so that one that is too long is seen to be. */
enum { REQUEST_ROOM = CONTROL_HEAD_BYTES + CONTROL_WORDS_BYTES_MAX + 1 };

/* Takes the one descriptor there may be; any more are closed, and refused when the request is whole. */
static void take_descriptors(struct control_client *client, struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
			if (client->pass_fd >= 0 || client->too_many_fds) {
				client->too_many_fds = true;
				close(fd);
			} else {
				client->pass_fd = fd;
			}
		}
	}
	client->too_many_fds |= (message->msg_flags & MSG_CTRUNC) != 0;
}

/* What there is to read, into the request. 1 more may come, 0 no more will, -errno. */
static int receive(struct control_client *client, uint64_t now_ns)
{
	for (;;) {
		char control[CMSG_SPACE(sizeof(int))];
		struct iovec into = {.iov_base = client->request + client->request_bytes,
		                     .iov_len = REQUEST_ROOM - client->request_bytes};
		struct msghdr message = {
			.msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
		ssize_t got;

		if (into.iov_len == 0)
			return 1;
		got = recvmsg(client->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? 1 : -errno;
		take_descriptors(client, &message);
		if (got == 0)
			return 0;
		client->request_bytes += (size_t)got;
		client->t_moved_ns = now_ns;
	}
}

/* A descriptor for output: one that nothing but a write can happen to. It is taken from who may do all, since a write to somebody's own kind of file
 * can be made to wait without end; the output of others comes over the socket. */
static int check_passed(struct control_client *client, bool *ret_is_pipe, struct fault *fault)
{
	struct stat file;
	int flags;

	if (client->too_many_fds)
		return fault_set(fault, -EINVAL, "", "one descriptor may be passed");
	if (client->pass_fd >= 0 && !client->may_all) {
		close(client->pass_fd);
		client->pass_fd = -1;
	}
	if (client->pass_fd < 0)
		return 0;
	flags = fcntl(client->pass_fd, F_GETFL);
	if (flags < 0 || fstat(client->pass_fd, &file) != 0)
		return fault_set(fault, -errno, "", "the passed descriptor: %s", strerror(errno));
	if ((!S_ISREG(file.st_mode) && !S_ISFIFO(file.st_mode)) || flags & O_PATH || (flags & O_ACCMODE) == O_RDONLY)
		return fault_set(fault, -EINVAL, "", "the passed descriptor is no regular file or pipe to write to");
	*ret_is_pipe = S_ISFIFO(file.st_mode);
	return 0;
}

static void handle(struct control *control, struct control_client *client, bool http, struct control_words *words)
{
	struct control_request request = {.uid = client->uid,
	                                  .pid = client->pid,
	                                  .may_all = client->may_all,
	                                  .http = http,
	                                  .argc = words->count,
	                                  .argv = words->words,
	                                  .fd = client->reply->pass_fd};

	/* Held for the handler: if it keeps none and has not ended the reply, giving this one up does. */
	control_reply_ref(client->reply);
	control->handler(control->context, &request, client->reply);
	control_reply_unref(client->reply);
}

/* The request is whole, or is none (err). False: no memory. */
static bool answer(struct control *control, struct control_client *client, int err, enum control_kind kind,
                   struct control_words *words, struct fault *fault)
{
	static char metrics[] = "metrics";
	bool http = kind != CONTROL_COMMAND && kind != CONTROL_PARTIAL, is_pipe = false;

	if (!err)
		err = check_passed(client, &is_pipe, fault);
	client->reply = control_reply_new(control, http, client->pass_fd, is_pipe);
	if (!client->reply)
		return false;
	client->pass_fd = -1;
	client->reads_request = false;
	if (err) {
		control_reply_error(client->reply, "%s", fault->why);
		control_reply_end(client->reply, EXIT_USAGE);
	} else if (kind == CONTROL_NOT_FOUND || kind == CONTROL_NOT_ALLOWED) {
		control_reply_error(client->reply, "GET /metrics is what there is");
		control_reply_end_http(client->reply, kind == CONTROL_NOT_FOUND ? 404 : 405);
	} else {
		if (kind == CONTROL_METRICS)
			*words = (struct control_words){.count = 1, .words = {metrics}};
		handle(control, client, http, words);
	}
	return true;
}

bool control_client_read(struct control *control, struct control_client *client, uint64_t now_ns)
{
	struct control_words words;
	enum control_kind kind = CONTROL_PARTIAL;
	struct fault fault = {0};
	bool go_on;
	int more, err;

	if (!client->request)
		client->request = malloc(REQUEST_ROOM);
	if (!client->request)
		return false;
	more = receive(client, now_ns);
	if (more < 0 || (more == 0 && client->request_bytes == 0))
		return false;
	err = control_parse(client->request, client->request_bytes, more == 0, &kind, &words, &fault);
	if (!err && kind == CONTROL_PARTIAL)
		return true;
	go_on = answer(control, client, err, kind, &words, &fault);
	free(client->request);
	client->request = NULL;
	client->t_moved_ns = now_ns;
	/* What else it sends stays unread. */
	return go_on && control_client_poll(control, client, 0) && control_client_write(control, client, now_ns);
}

/* Under the reply's lock: the next piece of the file that is to come before the end. */
static int fill_from_file(struct control_reply *reply)
{
	off_t left = reply->file_bytes - reply->file_at;
	size_t part = left < CONTROL_FRAME_BYTES_MAX ? (size_t)left : CONTROL_FRAME_BYTES_MAX;
	unsigned char head[CONTROL_FRAME_HEAD_BYTES] = {CONTROL_OUTPUT};
	char *to;
	ssize_t got;

	reply->out.bytes = reply->sent_bytes = 0;
	control_put_u32(head + 1, (uint32_t)part);
	buf_add(&reply->out, head, sizeof(head));
	to = buf_reserve(&reply->out, part);
	if (!to)
		return -ENOMEM;
	got = pread(reply->file_fd, to, part, reply->file_at);
	if (got != (ssize_t)part)
		return got < 0 ? -errno : -EIO;
	reply->out.bytes += part;
	reply->file_at += got;
	return 0;
}

/* Moves what a passed pipe takes. Not to wait is said by each call: whoever has the pipe may change its own flag. 1 more is to go, 0 all
 * is gone, -errno. */
static int move_to_pipe(struct control_reply *reply, uint64_t now_ns)
{
	while (reply->file_at < reply->file_bytes) {
		ssize_t moved = splice(reply->file_fd, &reply->file_at, reply->pass_fd, NULL,
		                       (size_t)(reply->file_bytes - reply->file_at), SPLICE_F_NONBLOCK);

		if (moved < 0 && errno == EAGAIN)
			return 1;
		if (moved <= 0)
			return moved < 0 ? -errno : -EIO;
		reply->t_grown_ns = now_ns;
	}
	return 0;
}

/* Under the lock: `out` is sent, and the end was not in it. True: there is more in it now. */
static bool fill(struct control_reply *reply, uint64_t now_ns)
{
	bool to_client = reply->pass_fd < 0 && reply->file_at < reply->file_bytes;
	int err;

	if (reply->file_fd < 0)
		return false;
	err = to_client ? fill_from_file(reply) : reply->pass_fd >= 0 ? move_to_pipe(reply, now_ns) : 0;
	if (err > 0) /* the pipe is full */
		return false;
	if (err < 0 || !to_client)
		control_reply_finish(reply, err);
	return true;
}

/* Under the lock. 1 all is sent, 0 there is more to come or to send, -errno. */
static int send_all(struct control_client *client, struct control_reply *reply, uint64_t now_ns)
{
	client->waits = false;
	for (;;) {
		ssize_t sent;

		if (reply->out.err)
			return reply->out.err;
		if (reply->http && !reply->ended)
			return 0;
		if (reply->sent_bytes == reply->out.bytes) {
			if (reply->ended)
				return 1;
			if (!fill(reply, now_ns))
				return 0;
		}
		sent = send(client->fd, reply->out.data + reply->sent_bytes, reply->out.bytes - reply->sent_bytes,
		            MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno == EINTR)
			continue;
		client->waits = sent < 0 && errno == EAGAIN;
		if (sent < 0)
			return client->waits ? 0 : -errno;
		reply->sent_bytes += (size_t)sent;
		client->t_moved_ns = now_ns;
	}
}

/* The pipe is polled once it has refused something, for when it will take more: what it can do without being told is nothing to be woken for. */
static bool poll_pipe(struct control *control, struct control_client *client, struct control_reply *reply)
{
	struct epoll_event event = {.events = EPOLLOUT | EPOLLET,
	                            .data.u64 = CONTROL_PIPES + (uint64_t)(client - control->clients)};

	if (client->polls_pipe || !reply->pass_is_pipe || reply->file_fd < 0)
		return true;
	client->polls_pipe = true;
	return epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, reply->pass_fd, &event) == 0;
}

bool control_client_write(struct control *control, struct control_client *client, uint64_t now_ns)
{
	struct control_reply *reply = client->reply;
	int err;

	pthread_mutex_lock(&reply->lock);
	err = send_all(client, reply, now_ns);
	if (err == 0 && !poll_pipe(control, client, reply))
		err = -errno;
	pthread_mutex_unlock(&reply->lock);
	return err == 0 && control_client_poll(control, client, client->waits ? EPOLLOUT : 0);
}

bool control_client_check(struct control_client *client, uint64_t now_ns)
{
	uint64_t still_ns = now_ns - client->t_moved_ns, grown_ns;
	bool ended;

	if (client->reads_request)
		return still_ns < CONTROL_PATIENCE_NS && now_ns - client->t_connected_ns < CONTROL_REQUEST_NS;
	pthread_mutex_lock(&client->reply->lock);
	grown_ns = client->reply->t_grown_ns;
	ended = client->reply->ended;
	pthread_mutex_unlock(&client->reply->lock);
	if (client->waits || ended)
		return still_ns < CONTROL_PATIENCE_NS;
	if (now_ns < grown_ns + CONTROL_MAKING_NS)
		return true;
	control_reply_fail(client->reply, "the service did not answer in time");
	return now_ns < grown_ns + CONTROL_MAKING_NS + CONTROL_PATIENCE_NS;
}

bool control_client_poll(struct control *control, struct control_client *client, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u64 = (uint64_t)(client - control->clients)};

	if (client->events == events)
		return true;
	client->events = events;
	return epoll_ctl(control->epoll_fd, EPOLL_CTL_MOD, client->fd, &event) == 0;
}
