/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: real sockets, both ends in one process; the server is stepped by hand. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tempfile.h"
#include "daemon/control.h"
#include "daemon/control_protocol.h"
#include "daemon/control_state.h"
#include "daemon/ctl_talk.h"
#include "daemon/error.h"

static char folder[] = "/tmp/sampled-control-XXXXXX", path[64];
static struct control *control;
static struct control_reply *kept; /* by "later" */
static uint64_t requests;
static uid_t seen_uid;
static bool seen_may_all;
static int seen_fd;

/* A file without a name that holds so many bytes, all different from their neighbours. */
static int make_file(size_t bytes)
{
	int fd = tempfile_open(NULL);
	char *data = malloc(bytes + 1);

	for (size_t i = 0; i < bytes; i++)
		data[i] = (char)('a' + i % 23);
	cr_assert_eq(write_all(fd, data, bytes), 0);
	free(data);
	return fd;
}

static bool is_of_file(const char *data, size_t bytes)
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

static struct control_options options_of(const char *of)
{
	return (struct control_options){.path = of, .inherited_fd = -1, .handler = handle, .context = &control};
}

static void start(void)
{
	struct control_options options;
	struct fault fault = {0};

	signal(SIGPIPE, SIG_IGN);
	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(chmod(folder, 0755), 0);
	snprintf(path, sizeof(path), "%s/control.sock", folder);
	options = options_of(path);
	cr_assert_eq(control_open(&control, &options, &fault), 0, "%s", fault.why);
}

static void stop(void)
{
	control_reply_unref(kept);
	control_free(control);
	cr_assert_eq(rmdir(folder), 0, "a name was left behind");
}

TestSuite(control, .init = start, .fini = stop, .timeout = 60);

/* Steps until there is nothing to do. */
static void settle(void)
{
	struct pollfd ready = {.fd = control_fd(control), .events = POLLIN};

	for (int i = 0; poll(&ready, 1, 0) > 0; i++) {
		cr_assert_lt(i, 10000, "it spins");
		control_step(control);
	}
}

static int connect_client(void)
{
	int fd = control_socket_connect(path);

	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

/* A request as it is sent, of words divided by blanks. */
static size_t pack(char *to, const char *words)
{
	size_t bytes = strlen(words) + 1;

	control_put_u32((unsigned char *)to, (uint32_t)bytes);
	for (size_t i = 0; i < bytes; i++)
		to[CONTROL_HEAD_BYTES + i] = words[i] == ' ' ? '\0' : words[i];
	return CONTROL_HEAD_BYTES + bytes;
}

static void send_words(int fd, const char *words)
{
	char request[256];
	size_t bytes = pack(request, words);

	cr_assert_eq(send(fd, request, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
}

static void send_words_with(int fd, const char *words, const int *fds, size_t count)
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

struct reply {
	char output[1 << 17];
	size_t bytes;
	char errors[512];
	int status;    /* -1: no end came */
	bool is_whole; /* the connection ended behind it */
};

/* All that comes, with the server stepped whenever nothing does. */
static const struct reply *read_reply(int fd)
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

static const struct reply *ask(const char *words)
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

static void expect_reply(const struct reply *reply, const char *output, const char *errors, int status)
{
	cr_assert_str_eq(reply->output, output);
	cr_assert_str_eq(reply->errors, errors);
	cr_assert_eq(reply->status, status);
	cr_assert(reply->is_whole);
}

Test(control, words_come_and_output_goes)
{
	struct stat name;

	cr_assert_eq(stat(path, &name), 0);
	cr_assert_eq(name.st_mode & 0777, 0666);
	expect_reply(ask("echo one two"), "one\ntwo\n", "", EXIT_DONE);
	expect_reply(ask("refuse"), "", "not yours", EXIT_NOT_PERMITTED);
	expect_reply(ask("forget"), "", "the service gave the request up", EXIT_FAILED);
	expect_reply(ask("echo"), "", "", EXIT_DONE);
	cr_assert_eq(control_clients(control), 0);
	cr_assert_eq(seen_uid, geteuid());
}

Test(control, a_request_may_come_byte_by_byte)
{
	char request[64];
	size_t bytes = pack(request, "echo x");
	int fd = connect_client();

	for (size_t i = 0; i < bytes; i++) {
		cr_assert_eq(requests, 0);
		cr_assert_eq(send(fd, request + i, 1, 0), 1);
		settle();
	}
	expect_reply(read_reply(fd), "x\n", "", EXIT_DONE);
	close(fd);
}

Test(control, what_is_no_request_is_refused)
{
	static const struct {
		const char *bytes;
		size_t count;
		const char *why;
	} cases[] = {
		{"\x05\0\0\0hello", 9, "not a request: its last word has no end"},
		{"\0\0\0\0", 4, "not a request: its last word has no end"},
		{"\x01\0\0\0\0", 5, "not a request: it names no command"},
		{"\x01\0\x01\0", 4, "a request of more than 65536 bytes"},
		{"\xff\xff\xff\xff", 4, "a request of more than 65536 bytes"},
		{"\x05\0\0\0he", 6, "the request was cut short"},
		{"\x05\0", 2, "the request was cut short"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = connect_client();

		send(fd, cases[i].bytes, cases[i].count, 0);
		shutdown(fd, SHUT_WR);
		settle();
		expect_reply(read_reply(fd), "", cases[i].why, EXIT_USAGE);
		close(fd);
	}
	cr_assert_eq(requests, 0);
	settle();
	cr_assert_eq(control_clients(control), 0);
}

Test(control, words_are_bounded)
{
	static char request[CONTROL_HEAD_BYTES + CONTROL_WORDS_BYTES_MAX],
		many[2 * (CONTROL_WORDS_MAX + 1) + 16] = "echo";
	int fd = connect_client();

	memset(request, 'a', sizeof(request));
	control_put_u32((unsigned char *)request, CONTROL_WORDS_BYTES_MAX);
	memcpy(request + CONTROL_HEAD_BYTES, "echo", 5);
	request[sizeof(request) - 1] = '\0';
	for (size_t at = 0; at < sizeof(request);) {
		ssize_t sent = send(fd, request + at, sizeof(request) - at, 0);

		at += sent > 0 ? (size_t)sent : 0;
		settle();
	}
	cr_assert_eq(read_reply(fd)->bytes, CONTROL_WORDS_BYTES_MAX - 5);
	close(fd);
	for (int i = 1; i < CONTROL_WORDS_MAX; i++)
		strcat(many, " x");
	cr_assert_lt(strlen(many) + 5, 1024);
	fd = connect_client();
	pack(request, many);
	send(fd, request, strlen(many) + 5, 0);
	settle();
	cr_assert_eq(read_reply(fd)->bytes, 2 * (CONTROL_WORDS_MAX - 1));
	close(fd);
	strcat(many, " x");
	fd = connect_client();
	pack(request, many);
	send(fd, request, strlen(many) + 5, 0);
	settle();
	expect_reply(read_reply(fd), "", "more than 256 words", EXIT_USAGE);
	close(fd);
}

/* What HTTP answers. */
static const char *ask_http(const char *request)
{
	static char answer[1024];
	int fd = connect_client();
	ssize_t got;

	send(fd, request, strlen(request), 0);
	settle();
	got = recv(fd, answer, sizeof(answer) - 1, 0);
	answer[got > 0 ? got : 0] = '\0';
	close(fd);
	settle();
	return answer;
}

Test(control, http_is_answered)
{
	cr_assert_str_eq(ask_http("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	                 "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
	                 "Content-Length: 5\r\nConnection: close\r\n\r\nup 1\n");
	cr_assert_not_null(strstr(ask_http("GET /metrics?x=y HTTP/1.0\n\n"), "\r\n\r\nup 1\n"));
	cr_assert_not_null(strstr(ask_http("GET /metric HTTP/1.0\r\n\r\n"), " 404 Not Found\r\n"));
	cr_assert_not_null(strstr(ask_http("GET /metricsx HTTP/1.0\r\n\r\n"), " 404 Not Found\r\n"));
	cr_assert_not_null(strstr(ask_http("GET / HTTP/1.0\r\n\r\n"), " 404 Not Found\r\n"));
	cr_assert_not_null(strstr(ask_http("POST /metrics HTTP/1.0\r\n\r\n"), " 405 Method Not Allowed\r\n"));
	cr_assert_not_null(strstr(ask_http("POST /metrics HTTP/1.0\r\n\r\n"), "Allow: GET\r\n"));
	cr_assert_str_eq(ask_http("GET /metrics HTTP/1.0\r\n"), "", "more is to come");
	cr_assert_eq(requests, 2);
}

Test(control, a_long_head_of_http_is_refused)
{
	static char request[CONTROL_HTTP_BYTES_MAX + 1] = "GET /metrics HTTP/1.1\r\n";

	memset(request + 23, 'x', sizeof(request) - 24);
	cr_assert_not_null(strstr(ask_http(request), " 400 Bad Request\r\n"));
	request[sizeof(request) - 2] = '\0';
	cr_assert_str_eq(ask_http(request), "", "more is to come");
}

Test(control, a_reply_may_come_later_and_its_client_go_first)
{
	int fd = connect_client();

	send_words(fd, "later");
	settle();
	cr_assert_not_null(kept);
	cr_assert_eq(recv(fd, &(char){0}, 1, 0), -1);
	cr_assert_eq(control_reply_write(kept, "x", 1), 0);
	control_reply_end(kept, 7);
	cr_assert_eq(control_reply_write(kept, "x", 1), -EPIPE, "behind the end");
	settle();
	expect_reply(read_reply(fd), "x", "", 7);
	close(fd);
	control_reply_unref(kept);

	fd = connect_client();
	send_words(fd, "later");
	settle();
	close(fd);
	settle();
	cr_assert_eq(control_clients(control), 0);
	cr_assert_eq(control_reply_write(kept, "x", 1), -EPIPE);
	cr_assert_eq(control_reply_error(kept, "x"), -EPIPE);
	cr_assert_eq(control_reply_take_file(kept, make_file(10), 0), -EPIPE);
	control_reply_end(kept, 0);
}

Test(control, a_reply_that_is_given_up_ends)
{
	int fd = connect_client();

	send_words(fd, "later");
	settle();
	control_reply_unref(kept);
	kept = NULL;
	settle();
	expect_reply(read_reply(fd), "", "the service gave the request up", EXIT_FAILED);
	close(fd);
}

Test(control, replies_are_bounded)
{
	const struct reply *reply = ask("flood");
	static int fds[CONTROL_CLIENTS_MAX];

	cr_assert_eq(reply->status, EXIT_FAILED);
	cr_assert_str_eq(reply->errors, "the reply is too long");
	for (int i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		fds[i] = connect_client();
		send_words(fds[i], "file 5000000"); /* of which a frame is held at a time */
		settle();
	}
	cr_assert_leq(atomic_load(&control->held_bytes), 64 * 1024);
	for (int i = 0; i < CONTROL_CLIENTS_MAX; i++)
		close(fds[i]);
	settle();
	cr_assert_eq(atomic_load(&control->held_bytes), 0);
}

Test(control, files_are_streamed)
{
	static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 100000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char words[32];
		const struct reply *reply;

		snprintf(words, sizeof(words), "file %zu", sizes[i]);
		reply = ask(words);
		cr_assert_eq(reply->bytes, sizes[i]);
		cr_assert(is_of_file(reply->output, reply->bytes));
		cr_assert_eq(reply->status, EXIT_DONE);
	}
}

Test(control, a_passed_file_is_written)
{
	int file = tempfile_open(NULL), fd = connect_client();
	char *data = malloc(300001);

	cr_assert_eq(write(file, "ab", 2), 2);
	send_words_with(fd, "file 300000", &file, 1);
	settle();
	if (geteuid() == 0) {
		cr_assert_geq(seen_fd, 0);
		expect_reply(read_reply(fd), "", "", EXIT_DONE);
		cr_assert_eq(pread(file, data, 300001, 2), 300000, "behind what was there");
		cr_assert(is_of_file(data, 300000));
	}
	close(fd);
	close(file);
	free(data);
}

Test(control, a_passed_pipe_is_filled_as_it_is_emptied)
{
	int ends[2], fd = connect_client();
	static char data[300000];
	size_t bytes = 0;

	if (geteuid() != 0)
		cr_skip_test("only root may pass descriptors");
	cr_assert_eq(pipe(ends), 0);
	send_words_with(fd, "file 300000", &ends[1], 1);
	close(ends[1]);
	settle();
	cr_assert_eq(control_clients(control), 1);
	while (bytes < sizeof(data)) {
		ssize_t got = read(ends[0], data + bytes, 5000);

		cr_assert_gt(got, 0);
		bytes += (size_t)got;
		settle();
	}
	cr_assert(is_of_file(data, bytes));
	expect_reply(read_reply(fd), "", "", EXIT_DONE);
	close(fd);
	cr_assert_eq(read(ends[0], data, 1), 0, "it is closed");
	close(ends[0]);

	cr_assert_eq(pipe(ends), 0);
	fd = connect_client();
	send_words_with(fd, "file 300000", &ends[1], 1);
	close(ends[1]);
	settle();
	close(ends[0]);
	settle();
	expect_reply(read_reply(fd), "", "Broken pipe", EXIT_FAILED);
	close(fd);
}

static void expect_refused(const int *fds, size_t count, const char *why)
{
	int fd = connect_client();

	send_words_with(fd, "file 10", fds, count);
	settle();
	expect_reply(read_reply(fd), "", why, EXIT_USAGE);
	close(fd);
	settle();
}

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

Test(control, other_kinds_of_descriptors_are_refused)
{
	static const char kind[] = "the passed descriptor is no regular file or pipe to write to";
	int ends[2], both[3], before = count_descriptors(), wrong[6];

	if (geteuid() != 0)
		cr_skip_test("only root may pass descriptors");
	cr_assert_eq(pipe(ends), 0);
	wrong[0] = open("/dev/null", O_WRONLY);
	wrong[1] = open("/proc/self/exe", O_RDONLY);
	wrong[2] = open("/tmp", O_RDONLY | O_DIRECTORY);
	wrong[3] = ends[0];
	wrong[4] = socket(AF_INET, SOCK_STREAM, 0);
	wrong[5] = open("/proc/self/exe", O_PATH);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		expect_refused(&wrong[i], 1, kind);
	both[0] = both[1] = both[2] = ends[1];
	expect_refused(both, 2, "one descriptor may be passed");
	expect_refused(both, 3, "one descriptor may be passed");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		close(wrong[i]);
	close(ends[1]);
	cr_assert_eq(count_descriptors(), before, "one was left open");
	cr_assert_eq(requests, 0);
}

Test(control, a_slow_reader_gets_all_and_one_that_stands_still_is_dropped)
{
	int fd = connect_client();
	struct control_client *client = &control->clients[0];
	static char data[5000];
	size_t bytes = 0;
	ssize_t got;

	send_words(fd, "file 3000000");
	settle();
	cr_assert(client->waits);
	cr_assert(control_client_check(client, client->t_moved_ns + 4 * NS_PER_S));
	cr_assert_not(control_client_check(client, client->t_moved_ns + 6 * NS_PER_S));
	while ((got = recv(fd, data, sizeof(data), 0)) > 0) {
		bytes += (size_t)got;
		settle();
	}
	cr_assert_eq(got, 0);
	cr_assert_eq(bytes, 3000000 + (3000000 + 65535) / 65536 * 5 + 6);
	close(fd);
}

Test(control, who_says_nothing_is_dropped)
{
	int fd = connect_client();
	struct control_client *client = &control->clients[0];
	uint64_t now_ns;

	settle();
	now_ns = client->t_connected_ns;
	cr_assert(control_client_check(client, now_ns + 4 * NS_PER_S));
	cr_assert_not(control_client_check(client, now_ns + 5 * NS_PER_S));
	client->t_moved_ns += 9 * NS_PER_S; /* a byte came now and then */
	cr_assert(control_client_check(client, now_ns + 9 * NS_PER_S));
	cr_assert_not(control_client_check(client, now_ns + 10 * NS_PER_S));
	send_words(fd, "later");
	settle();
	now_ns = clock_now_ns();
	cr_assert(control_client_check(client, now_ns + 29 * NS_PER_S), "its reply is being made");
	cr_assert(control_client_check(client, now_ns + 31 * NS_PER_S), "it is told");
	cr_assert_eq(control_reply_write(kept, "x", 1), -EPIPE);
	settle();
	expect_reply(read_reply(fd), "", "the service did not answer in time", EXIT_FAILED);
	close(fd);
}

Test(control, a_thousand_clients)
{
	struct rlimit files = {.rlim_cur = 4096, .rlim_max = 4096};
	static int fds[1000];
	size_t served = 0;

	setrlimit(RLIMIT_NOFILE, &files);
	/* Nobody waits in connect(2) for more than the queue holds, so they come in groups; 64 stay and say nothing. */
	for (size_t i = 0; i < 1000; i++) {
		fds[i] = connect_client();
		if (i >= CONTROL_CLIENTS_MAX)
			send_words(fds[i], "echo a");
		if (i == CONTROL_CLIENTS_MAX - 1) {
			settle();
			cr_assert_eq(control_clients(control), CONTROL_CLIENTS_MAX);
			for (size_t k = 0; k < CONTROL_CLIENTS_MAX - 1; k++)
				close(fds[k]);
		}
		if (i % 100 == 99)
			settle();
	}
	settle();
	for (size_t i = CONTROL_CLIENTS_MAX; i < 1000; i++) {
		served += read_reply(fds[i])->status == EXIT_DONE;
		close(fds[i]);
	}
	cr_assert_eq(served, 1000 - CONTROL_CLIENTS_MAX);
	cr_assert_eq(control_clients(control), 1);
	close(fds[CONTROL_CLIENTS_MAX - 1]);
	settle();
}

/* As another user: connects `count` times, asks with the last one, and exits with its status. */
static pid_t start_other(uid_t uid, int count, const char *words, bool stays)
{
	pid_t child = fork();
	int fd = -1;
	static char reply[256];
	ssize_t got;

	if (child != 0)
		return child;
	if (setresuid(uid, uid, uid) != 0)
		_exit(99);
	for (int i = 0; i < count; i++)
		fd = control_socket_connect(path);
	if (fd < 0)
		_exit(98);
	send_words(fd, words);
	got = recv(fd, reply, sizeof(reply), MSG_WAITALL);
	if (stays)
		pause();
	_exit(got > 0 ? (unsigned char)reply[got - 1] : 97);
}

static int wait_other(pid_t child)
{
	int status;

	while (waitpid(child, &status, WNOHANG) == 0) {
		control_step(control);
		usleep(1000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(control, other_users_are_known_and_bounded)
{
	const struct control_request mine = {.uid = 1000}, roots = {.uid = 0, .may_all = true};
	enum { OTHERS = 4 };
	pid_t children[OTHERS];

	cr_assert(control_may(&roots, 1000) && control_may(&mine, 1000));
	cr_assert_not(control_may(&mine, 0));
	cr_assert_not(control_may(&mine, 1001));
	if (geteuid() != 0)
		cr_skip_test("only root can become another user");
	cr_assert_eq(wait_other(start_other(12345, 1, "refuse", false)), EXIT_NOT_PERMITTED);
	cr_assert_eq(seen_uid, 12345);
	cr_assert_not(seen_may_all);
	cr_assert_eq(wait_other(start_other(12345, 16, "refuse", false)), EXIT_NOT_PERMITTED);
	cr_assert_eq(wait_other(start_other(12345, 17, "refuse", false)), EXIT_FAILED, "turned away");
	settle();
	control->owner = 12345;
	cr_assert_eq(wait_other(start_other(12345, 17, "refuse", false)), EXIT_NOT_PERMITTED, "the owner is not");
	cr_assert(seen_may_all);
	control->owner = 0;
	/* Others together leave room for root. */
	for (uid_t i = 0; i < OTHERS; i++)
		children[i] = start_other(20000 + i, CONTROL_CLIENTS_USER_MAX, "later", true);
	for (int i = 0; i < 2000 && control_clients(control) < CONTROL_CLIENTS_OTHERS_MAX; i++) {
		control_step(control);
		usleep(1000);
	}
	expect_reply(ask("echo a"), "a\n", "", EXIT_DONE);
	cr_assert_eq(control_clients(control), CONTROL_CLIENTS_OTHERS_MAX);
	for (uid_t i = 0; i < OTHERS; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
}

Test(control, sockets_left_behind_are_replaced_and_others_are_not)
{
	struct control_options options = options_of(path);
	struct control *second;
	struct fault fault = {0};
	char other[96];
	int fd;

	cr_assert_eq(control_open(&second, &options, &fault), -EADDRINUSE);
	snprintf(other, sizeof(other), "%s/file", folder);
	fd = open(other, O_CREAT | O_WRONLY, 0600);
	options.path = other;
	cr_assert_eq(control_open(&second, &options, &fault), -EEXIST);
	close(fd);
	unlink(other);
	cr_assert_eq(symlink("nowhere", other), 0);
	cr_assert_eq(control_open(&second, &options, &fault), -EEXIST);
	unlink(other);

	/* One whose service is no more. */
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	{
		struct sockaddr_un address = {.sun_family = AF_UNIX};

		snprintf(address.sun_path, sizeof(address.sun_path), "%s", other);
		cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	}
	close(fd);
	cr_assert_eq(control_open(&second, &options, &fault), 0, "%s", fault.why);
	/* A name that has become another's stays. */
	unlink(other);
	fd = open(other, O_CREAT | O_WRONLY, 0600);
	close(fd);
	control_free(second);
	cr_assert_eq(unlink(other), 0);
	options.path =
		"/tmp/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
		"4567890.sock";
	cr_assert_eq(control_open(&second, &options, &fault), -ENAMETOOLONG);
	options.path = "/nonexistent/folder/x.sock";
	cr_assert_eq(control_open(&second, &options, &fault), -ENOENT);
}

Test(control, an_inherited_socket_is_adopted)
{
	struct control_options options = options_of(NULL);
	struct fault fault = {0};
	struct control *mine = control;
	int fd = fcntl(control->socket.fd, F_DUPFD, 3), pair[2];

	options.inherited_fd = fd;
	cr_assert_eq(control_open(&control, &options, &fault), 0, "%s", fault.why);
	expect_reply(ask("echo a"), "a\n", "", EXIT_DONE);
	control_free(control);
	control = mine;
	cr_assert_eq(access(path, F_OK), 0, "its name is its maker's");
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	options.inherited_fd = pair[0];
	cr_assert_eq(control_open(&mine, &options, &fault), -EINVAL);
	options.inherited_fd = 200;
	cr_assert_eq(control_open(&mine, &options, &fault), -EBADF);
	close(pair[1]);
}

/* The client's side: asks, and the status. */
struct talker {
	const char *words;
	size_t bytes;
	int pass_fd, out_fd, status;
	atomic_bool done;
};

static void *talk(void *data)
{
	struct talker *t = data;
	struct writer *to = malloc(sizeof(*to));

	writer_open_fd(to, t->out_fd);
	t->status = ctl_talk(path, t->words, t->bytes, t->pass_fd, to);
	writer_close(to, NULL);
	free(to);
	atomic_store(&t->done, true);
	return NULL;
}

static int talk_with(struct talker *t)
{
	pthread_t thread;

	pthread_create(&thread, NULL, talk, t);
	while (!atomic_load(&t->done)) {
		control_step(control);
		usleep(100);
	}
	pthread_join(thread, NULL);
	return t->status;
}

Test(control, the_client_understands)
{
	int out = tempfile_open(NULL), passed = tempfile_open(NULL);
	struct talker echo = {.words = "echo\0a", .bytes = 7, .pass_fd = -1, .out_fd = out};
	struct talker refuse = {.words = "refuse", .bytes = 7, .pass_fd = -1, .out_fd = out};
	struct talker file = {.words = "file\0"
	                               "2000000",
	                      .bytes = 13,
	                      .pass_fd = -1,
	                      .out_fd = out};
	struct stat size;

	cr_assert_eq(talk_with(&echo), EXIT_DONE);
	cr_assert_eq(fstat(out, &size), 0);
	cr_assert_eq(size.st_size, 2);
	cr_assert_eq(talk_with(&refuse), EXIT_NOT_PERMITTED);
	cr_assert_eq(talk_with(&file), EXIT_DONE);
	cr_assert_eq(fstat(out, &size), 0);
	cr_assert_eq(size.st_size, 2000002);
	file.pass_fd = passed;
	file.done = false;
	cr_assert_eq(talk_with(&file), EXIT_DONE);
	cr_assert_eq(fstat(geteuid() == 0 ? passed : out, &size), 0);
	cr_assert_geq(size.st_size, 2000000);
	close(out);
	close(passed);
}

static void *cut_short(void *data)
{
	char request[64];
	int fd = accept(*(int *)data, NULL, NULL);

	(void)!read(fd, request, sizeof(request));
	(void)!write(fd, "o\5\0\0\0hel", 8);
	close(fd);
	return NULL;
}

Test(control, the_client_knows_a_reply_that_was_cut)
{
	int out = tempfile_open(NULL), listener = dup(control->socket.fd);
	struct talker echo = {.words = "echo\0a", .bytes = 7, .pass_fd = -1, .out_fd = out};
	pthread_t thread;

	fcntl(listener, F_SETFL, 0);
	pthread_create(&thread, NULL, cut_short, &listener);
	talk(&echo);
	pthread_join(thread, NULL);
	cr_assert_eq(echo.status, EXIT_FAILED);
	fcntl(listener, F_SETFL, O_NONBLOCK);
	close(listener);
	close(out);
}
