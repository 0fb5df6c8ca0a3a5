/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/served.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tempfile.h"
#include "daemon/control_protocol.h"
#include "daemon/control_socket.h"
#include "daemon/error.h"

char served_folder[] = "/tmp/sampled-control-XXXXXX";
char path[64];
struct control *control;
struct control_reply *kept;
uint64_t requests;
uid_t seen_uid;
bool seen_may_all;
int seen_fd;

/* A file without a name that holds so many bytes, all different from their neighbours. */
int make_file(size_t bytes)
{
	int fd = tempfile_open(NULL);
	char *data = malloc(bytes + 1);

	for (size_t i = 0; i < bytes; i++)
		data[i] = (char)('a' + i % 23);
	cr_assert_eq(write_all(fd, data, bytes), 0);
	free(data);
	return fd;
}

bool is_of_file(const char *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (data[i] != (char)('a' + i % 23))
			return false;
	return true;
}

static void handle(void *context, const struct control_request *request, struct control_reply *reply)
{
	cr_assert_eq(context, &control);
	requests++;
	seen_uid = request->uid;
	seen_may_all = request->may_all;
	seen_fd = request->fd;
	cr_assert_null(request->argv[request->argc]);
	if (strcmp(request->argv[0], "echo") == 0) {
		for (int i = 1; i < request->argc; i++) {
			control_reply_write(reply, request->argv[i], strlen(request->argv[i]));
			control_reply_write(reply, "\n", 1);
		}
		control_reply_end(reply, EXIT_DONE);
	} else if (strcmp(request->argv[0], "metrics") == 0) {
		control_reply_write(reply, "up 1\n", 5);
		control_reply_end(reply, EXIT_DONE);
	} else if (strcmp(request->argv[0], "refuse") == 0) {
		control_reply_error(reply, "not %s", "yours");
		control_reply_end(reply, EXIT_NOT_PERMITTED);
	} else if (strcmp(request->argv[0], "file") == 0) {
		control_reply_take_file(reply, make_file((size_t)atol(request->argv[1])), EXIT_DONE);
	} else if (strcmp(request->argv[0], "later") == 0) {
		kept = control_reply_ref(reply);
	} else if (strcmp(request->argv[0], "flood") == 0) {
		char *data = calloc(1, CONTROL_REPLY_BYTES_MAX / 2);

		cr_assert_eq(control_reply_write(reply, data, CONTROL_REPLY_BYTES_MAX / 2), 0);
		cr_assert_eq(control_reply_write(reply, data, CONTROL_REPLY_BYTES_MAX / 2), -ENOBUFS);
		cr_assert_eq(control_reply_write(reply, data, 1), -EPIPE);
		control_reply_end(reply, EXIT_DONE);
		free(data);
	}
}

struct control_options options_of(const char *of)
{
	return (struct control_options){.path = of, .inherited_fd = -1, .handler = handle, .context = &control};
}

void served_start(void)
{
	struct control_options options;
	struct fault fault = {0};

	signal(SIGPIPE, SIG_IGN);
	cr_assert_not_null(mkdtemp(served_folder));
	cr_assert_eq(chmod(served_folder, 0755), 0);
	snprintf(path, sizeof(path), "%s/control.sock", served_folder);
	options = options_of(path);
	cr_assert_eq(control_open(&control, &options, &fault), 0, "%s", fault.why);
}

void served_stop(void)
{
	control_reply_unref(kept);
	control_free(control);
	cr_assert_eq(rmdir(served_folder), 0, "a name was left behind");
}

/* Steps until there is nothing to do. */
void settle(void)
{
	struct pollfd ready = {.fd = control_fd(control), .events = POLLIN};

	for (int i = 0; poll(&ready, 1, 0) > 0; i++) {
		cr_assert_lt(i, 10000, "it spins");
		control_step(control);
	}
}

int connect_client(void)
{
	int fd = control_socket_connect(path);

	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

/* A request as it is sent, of words divided by blanks. */
size_t pack(char *to, const char *words)
{
	size_t bytes = strlen(words) + 1;

	control_put_u32((unsigned char *)to, (uint32_t)bytes);
	for (size_t i = 0; i < bytes; i++)
		to[CONTROL_HEAD_BYTES + i] = words[i] == ' ' ? '\0' : words[i];
	return CONTROL_HEAD_BYTES + bytes;
}

void send_words(int fd, const char *words)
{
	char request[256];
	size_t bytes = pack(request, words);

	cr_assert_eq(send(fd, request, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

void send_words_with(int fd, const char *words, const int *fds, size_t count)
{
	char request[256], room[CMSG_SPACE(8 * sizeof(int))] = {0};
	struct iovec part = {.iov_base = request, .iov_len = pack(request, words)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room};
	struct cmsghdr *head = (struct cmsghdr *)room;

	message.msg_controllen = CMSG_SPACE(count * sizeof(int));
	*head = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(head), fds, count * sizeof(int));
	cr_assert_eq(sendmsg(fd, &message, MSG_NOSIGNAL), (ssize_t)part.iov_len);
}

/* All that comes, with the server stepped whenever nothing does. */
const struct reply *read_reply(int fd)
{
	static struct reply reply;
	static char data[1 << 22];
	size_t bytes = 0, at = 0;
	ssize_t got;

	reply = (struct reply){.status = -1};
	for (int idle = 0; idle < 3;) {
		got = recv(fd, data + bytes, sizeof(data) - bytes, 0);
		if (got == 0)
			reply.is_whole = true;
		if (got == 0 || (got < 0 && errno != EAGAIN))
			break;
		idle = got < 0 ? idle + 1 : 0;
		bytes += got > 0 ? (size_t)got : 0;
		settle();
	}
	while (bytes - at >= CONTROL_FRAME_HEAD_BYTES) {
		uint32_t length = control_get_u32((unsigned char *)data + at + 1);
		const char *body = data + at + CONTROL_FRAME_HEAD_BYTES;

		cr_assert_leq(length, bytes - at - CONTROL_FRAME_HEAD_BYTES);
		if (data[at] == CONTROL_OUTPUT && reply.bytes + length < sizeof(reply.output)) {
			memcpy(reply.output + reply.bytes, body, length);
			reply.bytes += length;
		} else if (data[at] == CONTROL_ERROR) {
			snprintf(reply.errors, sizeof(reply.errors), "%.*s", (int)length, body);
		} else if (data[at] == CONTROL_END) {
			reply.status = (unsigned char)*body;
		}
		at += CONTROL_FRAME_HEAD_BYTES + length;
	}
	cr_assert_eq(at, bytes);
	reply.output[reply.bytes] = '\0';
	return &reply;
}

const struct reply *ask(const char *words)
{
	int fd = connect_client();
	const struct reply *reply;

	send_words(fd, words);
	settle();
	reply = read_reply(fd);
	close(fd);
	settle();
	return reply;
}

void expect_reply(const struct reply *reply, const char *output, const char *errors, int status)
{
	cr_assert_str_eq(reply->output, output);
	cr_assert_str_eq(reply->errors, errors);
	cr_assert_eq(reply->status, status);
	cr_assert(reply->is_whole);
}
