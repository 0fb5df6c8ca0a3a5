/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer with a sticky error: append freely, check `err` once at the end. */
#ifndef SAMPLED_BASE_BUF_H
#define SAMPLED_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data; /* owned; not NUL-terminated unless buf_text() was called */
	size_t bytes;
	size_t room;
	int err; /* 0 or the first -errno (-ENOMEM); once set, appends do nothing */
};

void buf_release(struct buf *b);
void buf_add(struct buf *b, const void *data, size_t bytes);
void buf_puts(struct buf *b, const char *text);
void buf_putc(struct buf *b, char c);
__attribute__((format(printf, 2, 3))) void buf_printf(struct buf *b, const char *format, ...);
/* The contents as a C string, valid until the next append; "" on error. */
const char *buf_text(struct buf *b);
/* Makes room for `bytes` more and returns where to write them, or NULL; the caller then adds to b->bytes. */
void *buf_reserve(struct buf *b, size_t bytes);

#endif
