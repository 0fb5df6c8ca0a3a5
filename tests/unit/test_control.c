/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: requests, who makes them, and how many; real sockets. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/control_protocol.h"
#include "daemon/control_state.h"
#include "daemon/error.h"
#include "tests/unit/served.h"

TestSuite(control, .init = served_start, .fini = served_stop, .timeout = 60);

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
	snprintf(other, sizeof(other), "%s/file", served_folder);
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
