/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a recording on their way into a file: columns of bytes, packed, summed and written as one. */
#ifndef SAMPLED_EXPORTERS_RECORDING_BLOCK_H
#define SAMPLED_EXPORTERS_RECORDING_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "exporters/recording.h"

struct block_writer {
	int fd; /* the caller's */
	int err;
	uint64_t bytes;     /* of the file, all closed */
	uint64_t opened_ns; /* when the open block got its first item; 0: it is empty */
	struct buf columns[COLUMN_COUNT];
	struct buf whole, packed; /* scratch */
	void *zstd; /* owned; one stream for all blocks, so that each is packed with what was before it. NULL: not packed */
};

/* Writes the file's head. 0 or -errno. */
int block_writer_init(struct block_writer *b, int fd, bool pack);
void block_writer_release(struct block_writer *b);
/* Closes the block that is open, if it has anything in it. Errors stick. */
void block_close(struct block_writer *b);
/* Closes it when it is full. Before each item. */
void block_begin_item(struct block_writer *b);
/* Closes it when it is old. */
void block_close_if_due(struct block_writer *b);

/* LEB128. */
void put_u(struct buf *to, uint64_t value);
void put_s(struct buf *to, int64_t value);

#endif
