/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}

void *buf_reserve(struct buf *b, size_t bytes)
{
	size_t room = b->room ? b->room : 256;
	char *data;

	if (b->err)
		return NULL;
	if (bytes <= b->room - b->bytes && b->data)
		return b->data + b->bytes;
	while (room - b->bytes < bytes) {
		if (room > SIZE_MAX / 2) {
			b->err = -ENOMEM;
			return NULL;
		}
		room *= 2;
	}
	data = realloc(b->data, room);
	if (!data) {
		b->err = -ENOMEM;
		return NULL;
	}
	b->data = data;
	b->room = room;
	return data + b->bytes;
}

void buf_add(struct buf *b, const void *data, size_t bytes)
{
	void *to = buf_reserve(b, bytes);

	if (!to || bytes == 0)
		return;
	memcpy(to, data, bytes);
	b->bytes += bytes;
}

void buf_puts(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_putc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	char *to;
	int bytes;

	va_start(args, format);
	bytes = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (bytes < 0) {
		b->err = b->err ? b->err : -EINVAL;
		return;
	}
	to = buf_reserve(b, (size_t)bytes + 1);
	if (!to)
		return;
	va_start(args, format);
	vsnprintf(to, (size_t)bytes + 1, format, args);
	va_end(args);
	b->bytes += (size_t)bytes;
}

const char *buf_text(struct buf *b)
{
	char *end = buf_reserve(b, 1);

	if (!end)
		return "";
	*end = '\0';
	return b->data;
}
