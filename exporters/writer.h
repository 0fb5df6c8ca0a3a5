/* SPDX-License-Identifier: Apache-2.0 */
/* Where an exporter writes: a buffer with a sticky error, in front of a file that appears whole or not at all, or of a stream. */
#ifndef SAMPLED_EXPORTERS_WRITER_H
#define SAMPLED_EXPORTERS_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/fault.h"

struct writer {
	int fd;
	int err;        /* 0 or the first -errno; once set, writes do nothing */
	uint64_t bytes; /* written so far */
	char *path;     /* as it was opened by; NULL: a stream that is the caller's */
	char *tmp_path; /* of a file that is not whole yet; NULL: a stream */
	size_t used;
	char buffer[65536];
};

/* Whether PATH is not a file, but "-", one of our own descriptors (/dev/stdout, /dev/fd/63), a FIFO or a character device. */
bool writer_is_stream(const char *path);
/* "-", or another name of our standard output. */
bool writer_is_stdout(const char *path);

/* Opens PATH. A file is written whole or not at all: a temporary file in the same directory, mode 0600, or the mode and owner of an existing regular PATH.
 * A stream is written straight; -EAGAIN: it is a FIFO that nobody reads yet. A symbolic link, a directory, or another device at PATH is refused (-ELOOP, -EISDIR,
 * -EINVAL). */
int writer_open(struct writer *w, const char *path, struct fault *fault);
/* Whether writer_open() would open it, without a trace. 0 or -errno with *fault filled. */
int writer_check(struct writer *w, const char *path, struct fault *fault);
/* A stream that is the caller's (standard output, a socket). */
void writer_open_fd(struct writer *w, int fd);
/* Flushes, and of a file fsyncs and renames it into place; on any error removes the temporary file. 0 or the first error; a stream's reader that has
 * gone away (-EPIPE) is none. */
int writer_close(struct writer *w, struct fault *fault);
/* Gives up: removes the temporary file. */
void writer_abort(struct writer *w);
/* What an exporter wrote ends, which returned err: closed, or given up where that error is of its own (no memory) and not the writer's.
 * *fault is filled, or holds the exporter's reason already. 0 or the first error. */
int writer_finish(struct writer *w, int err, struct fault *fault);

/* What is written could not be made: err becomes the writer's error, unless it is 0 or there was one before. Returns the writer's error. */
int writer_fail(struct writer *w, int err);

/* Writes out what is in the buffer. */
void writer_flush(struct writer *w);
void writer_add(struct writer *w, const void *data, size_t bytes);
void writer_puts(struct writer *w, const char *text);
void writer_putc(struct writer *w, char c);
__attribute__((format(printf, 2, 3))) void writer_printf(struct writer *w, const char *format, ...);
/* A decimal number. */
void writer_u64(struct writer *w, uint64_t value);
/* A JSON string with its quotes; besides what JSON asks for, '<', '>', '&', U+2028 and U+2029 are escaped, so that it may stand in a
 * script element. Invalid UTF-8 becomes U+FFFD. */
void writer_json_string(struct writer *w, const char *text);
/* The same into a buffer, for text that is written many times. */
void json_add_string(struct buf *to, const char *text);

#endif
