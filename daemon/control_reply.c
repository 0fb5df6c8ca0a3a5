/* SPDX-License-Identifier: Apache-2.0 */
/* One reply. Those who answer append to it, from whatever thread; the loop sends. They share the lock, which nobody holds while something waits. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tempfile.h"
#include "daemon/control_protocol.h"
#include "daemon/control_state.h"
#include "daemon/error.h"

struct control_reply *control_reply_new(struct control *control, bool http, int pass_fd, bool pass_is_pipe)
{
	struct control_reply *reply = calloc(1, sizeof(*reply));

	if (!reply)
		return NULL;
	atomic_init(&reply->references, 1);
	pthread_mutex_init(&reply->lock, NULL);
	reply->control = control;
	reply->http = http;
	reply->file_fd = -1;
	reply->pass_fd = pass_fd;
	reply->pass_is_pipe = pass_is_pipe;
	reply->t_grown_ns = clock_now_ns();
	return reply;
}

struct control_reply *control_reply_ref(struct control_reply *reply)
{
	/* Relaxed: whoever passes a reply on has one. */
	atomic_fetch_add_explicit(&reply->references, 1, memory_order_relaxed);
	return reply;
}

static void close_files(struct control_reply *reply)
{
	if (reply->file_fd >= 0)
		close(reply->file_fd);
	if (reply->pass_fd >= 0)
		close(reply->pass_fd);
	reply->file_fd = reply->pass_fd = -1;
}

void control_reply_unref(struct control_reply *reply)
{
	unsigned left;

	if (!reply)
		return;
	/* Before the reference goes: behind it the reply may be freed by another. Two that see 2 leave nobody, and it is the client's time limit
	 * that ends the reply. */
	if (atomic_load_explicit(&reply->references, memory_order_relaxed) == 2)
		control_reply_fail(reply, "the service gave the request up");
	/* Release: what we wrote is seen by whoever frees it. Acquire: we see what others wrote before we free. They pair with each other. */
	left = atomic_fetch_sub_explicit(&reply->references, 1, memory_order_acq_rel) - 1;
	if (left > 0)
		return;
	close_files(reply);
	buf_release(&reply->out);
	pthread_mutex_destroy(&reply->lock);
	free(reply);
}

void control_reply_drop(struct control_reply *reply)
{
	pthread_mutex_lock(&reply->lock);
	atomic_fetch_sub_explicit(&reply->control->held_bytes, reply->held_bytes, memory_order_relaxed);
	reply->control = NULL;
	reply->closed = true;
	close_files(reply);
	buf_release(&reply->out);
	pthread_mutex_unlock(&reply->lock);
	control_reply_unref(reply);
}

/* Under the lock: there is something to do for the loop. The counter of an eventfd cannot be full here. */
static void wake(const struct control_reply *reply)
{
	const uint64_t one = 1;

	(void)!write(reply->control->wake_fd, &one, sizeof(one));
}

/* Under the lock: frames, or the bytes themselves of an HTTP answer. 0 or -ENOMEM. */
static int append(struct control_reply *reply, enum control_frame kind, const void *data, size_t bytes)
{
	size_t before = reply->out.bytes, grown;
	const char *at = data;

	if (reply->http) {
		buf_add(&reply->out, at, bytes);
		if (kind == CONTROL_ERROR)
			buf_putc(&reply->out, '\n');
	}
	for (size_t left = bytes; left > 0 && !reply->http;) {
		size_t part = left < CONTROL_FRAME_BYTES_MAX ? left : CONTROL_FRAME_BYTES_MAX;
		unsigned char head[CONTROL_FRAME_HEAD_BYTES] = {(unsigned char)kind};

		control_put_u32(head + 1, (uint32_t)part);
		buf_add(&reply->out, head, sizeof(head));
		buf_add(&reply->out, at, part);
		at += part;
		left -= part;
	}
	grown = reply->out.bytes - before;
	reply->held_bytes += grown;
	atomic_fetch_add_explicit(&reply->control->held_bytes, grown, memory_order_relaxed);
	reply->t_grown_ns = clock_now_ns();
	return reply->out.err;
}

/* Puts the head of an HTTP answer before its body. */
static void head_http(struct control_reply *reply, int http_status)
{
	const char *reason = http_status == 200   ? "OK"
	                     : http_status == 403 ? "Forbidden"
	                     : http_status == 404 ? "Not Found"
	                     : http_status == 405 ? "Method Not Allowed"
	                     : http_status == 400 ? "Bad Request"
	                                          : "Internal Server Error";
	struct buf whole = {0};

	buf_printf(&whole,
	           "HTTP/1.0 %d %s\r\nContent-Type: text/plain; %scharset=utf-8\r\n%sContent-Length: %zu\r\n"
	           "Connection: close\r\n\r\n",
	           http_status, reason, http_status == 200 ? "version=0.0.4; " : "",
	           http_status == 405 ? "Allow: GET\r\n" : "", reply->out.bytes);
	buf_add(&whole, buf_text(&reply->out), reply->out.bytes);
	buf_release(&reply->out);
	reply->out = whole;
}

static int http_status_of(int status)
{
	return status == EXIT_DONE ? 200 : status == EXIT_NOT_PERMITTED ? 403 : status == EXIT_USAGE ? 400 : 500;
}

/* Under the lock. */
static void end(struct control_reply *reply, int http_status)
{
	unsigned char status = (unsigned char)reply->status;

	if (reply->http)
		head_http(reply, http_status);
	else
		append(reply, CONTROL_END, &status, 1);
	reply->closed = reply->ended = true;
	wake(reply);
}

static void fail(struct control_reply *reply, const char *why)
{
	append(reply, CONTROL_ERROR, why, strlen(why));
	reply->status = EXIT_FAILED;
	end(reply, http_status_of(EXIT_FAILED));
}

void control_reply_fail(struct control_reply *reply, const char *why)
{
	pthread_mutex_lock(&reply->lock);
	if (reply->control && !reply->ended && !reply->closed)
		fail(reply, why);
	pthread_mutex_unlock(&reply->lock);
}

void control_reply_finish(struct control_reply *reply, int err)
{
	reply->out.bytes = reply->sent_bytes = 0;
	if (err) {
		const char *why = strerror(-err);

		append(reply, CONTROL_ERROR, why, strlen(why));
		reply->status = EXIT_FAILED;
	}
	end(reply, http_status_of(reply->status));
}

static int write_kind(struct control_reply *reply, enum control_frame kind, const void *data, size_t bytes)
{
	int err = 0;

	pthread_mutex_lock(&reply->lock);
	if (!reply->control || reply->closed) {
		err = -EPIPE;
	} else if (bytes > CONTROL_REPLY_BYTES_MAX || reply->held_bytes + bytes > CONTROL_REPLY_BYTES_MAX ||
	           atomic_load_explicit(&reply->control->held_bytes, memory_order_relaxed) + bytes >
	                   CONTROL_REPLIES_BYTES_MAX) {
		fail(reply, "the reply is too long");
		err = -ENOBUFS;
	} else {
		err = append(reply, kind, data, bytes);
		if (!reply->http)
			wake(reply);
	}
	pthread_mutex_unlock(&reply->lock);
	return err;
}

int control_reply_write(struct control_reply *reply, const void *data, size_t bytes)
{
	return write_kind(reply, CONTROL_OUTPUT, data, bytes);
}

int control_reply_error(struct control_reply *reply, const char *text, ...)
{
	struct buf line = {0};
	char *words;
	va_list args;
	int err;

	va_start(args, text);
	if (vasprintf(&words, text, args) < 0)
		words = NULL;
	va_end(args);
	buf_puts(&line, words ? words : "out of memory");
	free(words);
	err = write_kind(reply, CONTROL_ERROR, buf_text(&line), line.bytes);
	buf_release(&line);
	return err;
}

void control_reply_end(struct control_reply *reply, int status)
{
	pthread_mutex_lock(&reply->lock);
	if (reply->control && !reply->closed) {
		reply->status = status;
		end(reply, http_status_of(status));
	}
	pthread_mutex_unlock(&reply->lock);
}

void control_reply_end_http(struct control_reply *reply, int http_status)
{
	pthread_mutex_lock(&reply->lock);
	if (reply->control && !reply->closed)
		end(reply, http_status);
	pthread_mutex_unlock(&reply->lock);
}

/* Copies a file into the one that was passed, in pieces, for as long as the client is there. */
static int copy_to_passed(struct control_reply *reply, int from, int to)
{
	static const size_t piece = 1 << 18;
	char *data = malloc(piece);
	ssize_t got = 0;
	int err = data ? 0 : -ENOMEM;

	for (off_t at = 0; !err && (got = pread(from, data, piece, at)) > 0; at += got) {
		err = write_all(to, data, (size_t)got);
		pthread_mutex_lock(&reply->lock);
		reply->t_grown_ns = clock_now_ns();
		if (!err && reply->closed)
			err = -EPIPE;
		pthread_mutex_unlock(&reply->lock);
	}
	if (!err && got < 0)
		err = -errno;
	free(data);
	return err;
}

/* Under the lock: how the output in a file is to go on its way. *ret_pass_fd: it is to be copied there, by the caller and without the lock. */
static int begin_file(struct control_reply *reply, int fd, int status, int *ret_pass_fd)
{
	struct stat file;

	if (!reply->control || reply->closed)
		return -EPIPE;
	if (reply->http)
		return -EOPNOTSUPP;
	if (fstat(fd, &file) != 0)
		return -errno;
	if (reply->pass_fd >= 0 && !reply->pass_is_pipe) {
		*ret_pass_fd = fcntl(reply->pass_fd, F_DUPFD_CLOEXEC, 3);
		return *ret_pass_fd < 0 ? -errno : 0;
	}
	reply->file_fd = fd;
	reply->file_at = 0;
	reply->file_bytes = file.st_size;
	reply->status = status;
	reply->closed = true;
	wake(reply);
	return 0;
}

int control_reply_take_file(struct control_reply *reply, int fd, int status)
{
	int pass_fd = -1, err;

	pthread_mutex_lock(&reply->lock);
	err = begin_file(reply, fd, status, &pass_fd);
	pthread_mutex_unlock(&reply->lock);
	if (!err && pass_fd < 0)
		return 0;
	if (!err)
		err = copy_to_passed(reply, fd, pass_fd);
	if (err && err != -EPIPE)
		control_reply_error(reply, "cannot write: %s", strerror(-err));
	control_reply_end(reply, err ? EXIT_FAILED : status);
	if (pass_fd >= 0)
		close(pass_fd);
	close(fd);
	return err;
}
