/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: replies, in pieces, late, as files, into passed descriptors; and the client that reads them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tempfile.h"
#include "daemon/control_state.h"
#include "daemon/ctl_talk.h"
#include "daemon/error.h"
#include "tests/unit/served.h"

TestSuite(control_replies, .init = served_start, .fini = served_stop, .timeout = 60);

Test(control_replies, a_reply_may_come_later_and_its_client_go_first)
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

Test(control_replies, a_reply_that_is_given_up_ends)
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

Test(control_replies, replies_are_bounded)
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

Test(control_replies, files_are_streamed)
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

Test(control_replies, a_passed_file_is_written)
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

Test(control_replies, a_passed_pipe_is_filled_as_it_is_emptied)
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

Test(control_replies, other_kinds_of_descriptors_are_refused)
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

Test(control_replies, a_slow_reader_gets_all_and_one_that_stands_still_is_dropped)
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

Test(control_replies, who_says_nothing_is_dropped)
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

Test(control_replies, the_client_understands)
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

Test(control_replies, the_client_knows_a_reply_that_was_cut)
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
