/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

int writer_fail(struct writer *w, int err)
{
	if (!w->err)
		w->err = err;
	return w->err;
}

static void write_out(struct writer *w, const char *data, size_t bytes)
{
	while (bytes > 0 && !w->err) {
		ssize_t done = write(w->fd, data, bytes);

		if (done >= 0) {
			data += done;
			bytes -= (size_t)done;
		} else if (errno == EAGAIN) { /* a stream that somebody made non-blocking */
			struct pollfd ready = {.fd = w->fd, .events = POLLOUT};

			if (poll(&ready, 1, -1) < 0 && errno != EINTR)
				w->err = -errno;
		} else if (errno != EINTR) {
			w->err = -errno;
		}
	}
}

void writer_flush(struct writer *w)
{
	write_out(w, w->buffer, w->used);
	w->used = 0;
}

void writer_add(struct writer *w, const void *data, size_t bytes)
{
	if (w->err)
		return;
	w->bytes += bytes;
	if (bytes > sizeof(w->buffer) - w->used)
		writer_flush(w);
	if (bytes >= sizeof(w->buffer)) {
		write_out(w, data, bytes);
		return;
	}
	memcpy(w->buffer + w->used, data, bytes);
	w->used += bytes;
}

void writer_puts(struct writer *w, const char *text)
{
	writer_add(w, text, strlen(text));
}

void writer_putc(struct writer *w, char c)
{
	if (w->err)
		return;
	if (w->used == sizeof(w->buffer))
		writer_flush(w);
	w->buffer[w->used++] = c;
	w->bytes++;
}

void writer_printf(struct writer *w, const char *format, ...)
{
	char line[512], *text = line;
	va_list args;
	int bytes;

	if (w->err)
		return;
	va_start(args, format);
	bytes = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (bytes >= (int)sizeof(line)) {
		va_start(args, format);
		bytes = vasprintf(&text, format, args);
		va_end(args);
	}
	if (bytes < 0) {
		w->err = -ENOMEM;
		return;
	}
	writer_add(w, text, (size_t)bytes);
	if (text != line)
		free(text);
}

static size_t digit_count(uint64_t value)
{
	size_t count = 1;

	for (; value >= 10000; value /= 10000)
		count += 4;
	return count + (value >= 10) + (value >= 100) + (value >= 1000);
}

/* Into the buffer itself: numbers are most of what many formats are made of. */
void writer_u64(struct writer *w, uint64_t value)
{
	size_t count = digit_count(value);

	if (w->err)
		return;
	if (count > sizeof(w->buffer) - w->used)
		writer_flush(w);
	for (char *at = w->buffer + w->used + count; at > w->buffer + w->used; value /= 10)
		*--at = (char)('0' + value % 10);
	w->used += count;
	w->bytes += count;
}

/* How many bytes stand for themselves in a JSON string, without a look at what they mean. */
static size_t plain_bytes(const char *text, size_t bytes)
{
	size_t at = 0;

	while (at < bytes && text[at] >= ' ' && text[at] < 0x7f && text[at] != '"' && text[at] != '\\' &&
	       text[at] != '<' && text[at] != '>' && text[at] != '&')
		at++;
	return at;
}

/* A text on its way into a JSON string, piece by piece. */
struct json_text {
	const char *text; /* the rest */
	size_t left;
	const char *piece; /* the next piece, of the text or in `escape` */
	size_t bytes;
	char escape[8];
};

static struct json_text json_begin(const char *text)
{
	return (struct json_text){.text = text, .left = strlen(text)};
}

/* Finds the next piece; false: there is none. */
static bool json_next(struct json_text *t)
{
	size_t length = plain_bytes(t->text, t->left);
	uint32_t c;

	if (t->left == 0)
		return false;
	t->piece = t->text;
	t->bytes = length;
	if (length == 0) {
		t->bytes = length = utf8_next(t->text, t->left, &c);
		if (c == '"' || c == '\\') {
			t->escape[0] = '\\';
			t->escape[1] = (char)c;
			t->piece = t->escape;
			t->bytes = 2;
		} else if (c == '<' || c == '>' || c == '&' || c == 0xfffd || utf8_is_unsafe(c)) {
			t->piece = t->escape;
			t->bytes = (size_t)snprintf(t->escape, sizeof(t->escape), "\\u%04" PRIx32, c & 0xffff);
		}
	}
	t->text += length;
	t->left -= length;
	return true;
}

void writer_json_string(struct writer *w, const char *text)
{
	struct json_text t = json_begin(text);

	writer_putc(w, '"');
	while (json_next(&t))
		writer_add(w, t.piece, t.bytes);
	writer_putc(w, '"');
}

void json_add_string(struct buf *to, const char *text)
{
	struct json_text t = json_begin(text);

	buf_putc(to, '"');
	while (json_next(&t))
		buf_add(to, t.piece, t.bytes);
	buf_putc(to, '"');
}
