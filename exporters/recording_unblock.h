/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a recording on their way out of a file: checked, unpacked, and read item by item. Hostile input. */
#ifndef SAMPLED_EXPORTERS_RECORDING_UNBLOCK_H
#define SAMPLED_EXPORTERS_RECORDING_UNBLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/input.h"
#include "exporters/recording.h"

/* Bytes that are read from; what is not there reads as 0 and sets `bad`. */
struct cursor {
	const unsigned char *at, *end;
	bool bad;
};

struct block_reader {
	struct input *in;
	uint32_t format;     /* version of it */
	uint64_t number;     /* of the last block, from 1 */
	uint64_t start_byte; /* where it begins */
	struct cursor columns[COLUMN_COUNT];
	unsigned char *stored, *whole; /* owned: as in the file, and unpacked */
	void *zstd;                    /* owned; made for the first packed block */
};

enum block_state {
	BLOCK_GOOD,    /* columns are to be read */
	BLOCK_NO_MORE, /* the file ends behind a block */
	BLOCK_CUT,     /* it ends within one */
	BLOCK_DAMAGED, /* the bytes are not those that were written, or make no sense */
	BLOCK_ERROR,   /* *ret_err, with *fault filled */
};

/* Reads the file's head. 0 or -errno with *fault filled. */
int block_reader_init(struct block_reader *b, struct input *in, struct fault *fault);
void block_reader_release(struct block_reader *b);
enum block_state block_next(struct block_reader *b, int *ret_err, struct fault *fault);

uint64_t take_long(struct cursor *c);

/* LEB128, of up to ten bytes. */
static inline uint64_t take_u(struct cursor *c)
{
	if (c->at < c->end && *c->at < 0x80)
		return *c->at++;
	return take_long(c);
}

static inline int64_t take_s(struct cursor *c)
{
	return unzigzag(take_u(c));
}

/* A length and so many bytes. */
const char *take_text(struct cursor *c, size_t *ret_bytes);

#endif
