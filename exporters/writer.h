/* SPDX-License-Identifier: Apache-2.0 */
/* Where an exporter writes: a buffered stream with a sticky error, onto a file that appears whole or not at all. */
#ifndef SAMPLED_EXPORTERS_WRITER_H
#define SAMPLED_EXPORTERS_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/fault.h"

struct writer {
	int fd;
	int err;        /* 0 or the first -errno; once set, writes do nothing */
	uint64_t bytes; /* written so far */
	char *path;     /* final name; NULL: a stream such as standard output */
	char *tmp_path; /* while the file is not whole */
	size_t used;
	char buffer[65536];
};

/* Opens PATH for whole-or-nothing writing: a temporary file in the same directory, mode 0600, or the mode and owner of
 * an existing regular PATH. A symbolic link, directory, or device at PATH is refused (-ELOOP, -EISDIR, -EINVAL). */
int writer_open(struct writer *w, const char *path, struct fault *fault);
/* A stream that is the caller's (standard output, a socket). */
void writer_open_fd(struct writer *w, int fd);
/* Flushes, fsyncs and renames into place; on any error removes the temporary file. 0 or the first error. */
int writer_close(struct writer *w, struct fault *fault);
/* Gives up: removes the temporary file. */
void writer_abort(struct writer *w);
/* What an exporter wrote ends, which returned err: closed, or given up where that error is of its own (no memory) and not the writer's.
 * *fault is filled, or holds the exporter's reason already. 0 or the first error. */
int writer_finish(struct writer *w, int err, struct fault *fault);

/* What is written could not be made: err becomes the writer's error, unless it is 0 or there was one before. Returns the writer's error. */
int writer_fail(struct writer *w, int err);

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
