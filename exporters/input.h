/* SPDX-License-Identifier: Apache-2.0 */
/* A file, or standard input, on its way into a reader of a format: read in pieces, so that memory does not grow with it; gzip (RFC 1952), and
 * zstd where we are built with it, are unpacked on the way, and a byte order mark of UTF-8 is passed over. */
#ifndef SAMPLED_EXPORTERS_INPUT_H
#define SAMPLED_EXPORTERS_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/fault.h"

struct input {
	const char *path; /* the caller's; "-": standard input */
	int fd;
	bool is_file; /* plain and seekable: path may be opened again by a library */
	int err; /* 0 or the first -errno; -EPROTO: the packed data is damaged, -ENOTSUP: packed in a way we cannot unpack */
	uint64_t bytes;          /* handed out so far, unpacked */
	size_t at, end;          /* of what is in `data` */
	bool over;               /* nothing comes behind it */
	off_t start_off;         /* where it begins in fd; -1: fd cannot be read again */
	bool kept;               /* fd is input_keep()'s file, which holds it unpacked */
	struct packing *packing; /* owned; NULL: it is not packed */
	unsigned char data[65536];
};

/* Regular files, pipes, and standard input. 0 or -errno with *fault filled. */
int input_open(struct input *in, const char *path, struct fault *fault);
/* On bytes in memory, for tests and fuzzers. 0 or -errno. */
int input_open_bytes(struct input *in, const void *data, size_t bytes);
void input_close(struct input *in);

/* For readers that go over it twice. input_keep(), before anything was taken, makes sure that input_rewind() can be called: what is no file, such
 * as a pipe, is copied, unpacked, into a temporary file without a name, at most max_bytes of it (-EFBIG). Both: 0 or -errno. */
int input_keep(struct input *in, uint64_t max_bytes);
/* Back to the first byte. */
int input_rewind(struct input *in);

/* What comes next, without taking it: up to `bytes`, at most 64 KiB; fewer at the end. */
size_t input_peek(struct input *in, const unsigned char **ret_data, size_t bytes);
/* The next piece of any length, at most `bytes`; it is good until the next call. 0: the end, or an error (in->err). */
size_t input_next(struct input *in, const unsigned char **ret_data, size_t bytes);
/* Exactly `bytes` into `to`. False: the input ends before, or an error. */
bool input_read(struct input *in, void *to, size_t bytes);
bool input_skip(struct input *in, uint64_t bytes);
/* The next line into *line, without its end (LF or CR LF), and at most max_bytes of it; the rest is passed over and *ret_cut set (NULL: not
 * asked). False: there is none, or an error. */
bool input_line(struct input *in, struct buf *line, size_t max_bytes, bool *ret_cut);
/* Says in *fault why reading failed; err, which is returned, is in->err or another. */
int input_fault(int err, struct fault *fault);
/* All that is left, at most max_bytes (-EFBIG), appended. 0 or -errno. */
int input_rest(struct input *in, struct buf *to, size_t max_bytes);

#endif
