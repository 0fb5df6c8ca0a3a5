/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file of the spool (spool_write.h), item by item. Who wrote it is not trusted: every size is bounded, and what does not make sense is refused. */
#ifndef SAMPLED_DAEMON_SPOOL_READ_H
#define SAMPLED_DAEMON_SPOOL_READ_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/fault.h"
#include "exporters/label.h"

enum {
	SPOOL_LABELS_MAX = 64,
	SPOOL_LABEL_NAME_MAX = 100,   /* bytes */
	SPOOL_LABEL_VALUE_MAX = 2048, /* bytes */
	SPOOL_LINE_MAX = 1 << 18,     /* bytes of an item's line */
	SPOOL_PACKED_MAX = 8 << 20,   /* bytes of a packed profile */
};

struct spool_reader {
	int fd;            /* owned */
	uint64_t at, size; /* bytes */
	struct buf line, texts;
	struct buf packed;
	struct label labels[SPOOL_LABELS_MAX];
};

/* What spool_reader_next() hands out; valid until it is called again. */
struct spool_read_item {
	struct labels labels; /* no name twice */
	uint64_t from_ns, until_ns;
	const void *packed; /* begins as gzip does; what is in it is not looked at */
	size_t packed_bytes;
};

/* A regular file, no symbolic link. 0 or -errno with *fault filled, -EPROTO: it is none of ours. */
int spool_reader_open(struct spool_reader *ret_reader, int dir_fd, const char *name, struct fault *fault);
/* The same of a descriptor, which becomes the reader's where it succeeds. */
int spool_reader_open_fd(struct spool_reader *ret_reader, int fd, struct fault *fault);
void spool_reader_close(struct spool_reader *reader);

/* 1: an item; 0: the end; -errno with *fault filled: -EPROTO malformed. */
int spool_reader_next(struct spool_reader *reader, struct spool_read_item *ret_item, struct fault *fault);

#endif
