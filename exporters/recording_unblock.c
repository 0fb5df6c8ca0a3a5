/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/recording_unblock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "exporters/crc32c.h"

/* As stored a block may be a little larger than unpacked, where packing gains nothing. */
enum { STORED_MAX_BYTES = BLOCK_MAX_BYTES + 4096 };

static uint32_t get_le(const unsigned char *from, int bytes)
{
	uint32_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint32_t)from[i] << 8 * i;
	return value;
}

bool recording_detect(const unsigned char *head, size_t bytes)
{
	return bytes >= 8 && memcmp(head, RECORDING_MAGIC, 8) == 0;
}

int block_reader_init(struct block_reader *b, struct input *in, struct fault *fault)
{
	unsigned char head[RECORDING_HEAD_BYTES];

	*b = (struct block_reader){.in = in};
	if (!input_read(in, head, sizeof(head)))
		return in->err ? fault_set(fault, in->err, "", "%s", strerror(-in->err))
		               : fault_set(fault, -EPROTO, "", "it is cut off in its head, which has %d bytes",
		                           RECORDING_HEAD_BYTES);
	if (!recording_detect(head, sizeof(head)))
		return fault_set(fault, -EPROTO, "", "it does not begin as a recording does");
	if (get_le(head + 12, 4) != crc32c(0, head, 12))
		return fault_set(fault, -EPROTO, "", "its head is damaged");
	b->format = get_le(head + 8, 2);
	if (b->format < 1 || b->format > RECORDING_VERSION)
		return fault_set(fault, -ENOTSUP, "a later sampled reads it",
		                 "it is a recording of version %u, and versions 1 to %d are known", b->format,
		                 RECORDING_VERSION);
	b->stored = malloc(STORED_MAX_BYTES);
	b->whole = malloc(BLOCK_MAX_BYTES);
	if (b->stored && b->whole)
		return 0;
	block_reader_release(b);
	return fault_set(fault, -ENOMEM, "", "out of memory");
}

void block_reader_release(struct block_reader *b)
{
	free(b->stored);
	free(b->whole);
	b->stored = b->whole = NULL;
#ifdef HAVE_ZSTD
	ZSTD_freeDCtx(b->zstd);
#endif
	b->zstd = NULL;
}

#ifdef HAVE_ZSTD
/* The packed bytes of all blocks are one stream. False: they are damaged, or there is no memory. */
static bool unpack(struct block_reader *b, const unsigned char *data, size_t bytes, size_t unpacked_bytes)
{
	ZSTD_inBuffer from = {.src = data, .size = bytes};
	ZSTD_outBuffer out = {.dst = b->whole, .size = unpacked_bytes};

	if (!b->zstd) {
		b->zstd = ZSTD_createDCtx();
		if (!b->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(b->zstd, ZSTD_d_windowLogMax, BLOCK_WINDOW_LOG)))
			return false;
	}
	while (from.pos < from.size) {
		size_t before = from.pos + out.pos;

		if (ZSTD_isError(ZSTD_decompressStream(b->zstd, &out, &from)) || before == from.pos + out.pos)
			return false;
	}
	return out.pos == out.size;
}
#endif

static enum block_state split(struct block_reader *b, const unsigned char *data, size_t bytes)
{
	struct cursor c = {.at = data, .end = data + bytes};
	uint64_t lengths[COLUMN_COUNT], sum = 0;

	for (int i = 0; i < COLUMN_COUNT; i++) {
		lengths[i] = take_u(&c);
		if (lengths[i] > BLOCK_MAX_BYTES)
			return BLOCK_DAMAGED;
		sum += lengths[i];
	}
	if (c.bad || sum != (uint64_t)(c.end - c.at))
		return BLOCK_DAMAGED;
	for (int i = 0; i < COLUMN_COUNT; i++) {
		b->columns[i] = (struct cursor){.at = c.at, .end = c.at + lengths[i]};
		c.at += lengths[i];
	}
	return BLOCK_GOOD;
}

static enum block_state open_block(struct block_reader *b, unsigned flags, size_t bytes, int *ret_err,
                                   struct fault *fault)
{
	size_t unpacked_bytes;

	if (!(flags & BLOCK_ZSTD))
		return split(b, b->stored, bytes);
	if (bytes < 4)
		return BLOCK_DAMAGED;
	unpacked_bytes = get_le(b->stored, 4);
	if (unpacked_bytes > BLOCK_MAX_BYTES)
		return BLOCK_DAMAGED;
#ifdef HAVE_ZSTD
	(void)ret_err;
	(void)fault;
	return unpack(b, b->stored + 4, bytes - 4, unpacked_bytes) ? split(b, b->whole, unpacked_bytes) : BLOCK_DAMAGED;
#else
	*ret_err = fault_set(fault, -ENOTSUP, "build sampled where libzstd is",
	                     "its blocks are packed with zstd, which this sampled was built without");
	return BLOCK_ERROR;
#endif
}

static enum block_state ended(struct block_reader *b, enum block_state state, int *ret_err, struct fault *fault)
{
	if (!b->in->err)
		return state;
	*ret_err = fault_set(fault, b->in->err, "", "%s", strerror(-b->in->err));
	return BLOCK_ERROR;
}

enum block_state block_next(struct block_reader *b, int *ret_err, struct fault *fault)
{
	unsigned char head[BLOCK_HEAD_BYTES];

	for (;;) {
		const unsigned char *any;
		uint32_t bytes;

		b->number++;
		b->start_byte = b->in->bytes;
		if (input_peek(b->in, &any, 1) == 0)
			return ended(b, BLOCK_NO_MORE, ret_err, fault);
		if (!input_read(b->in, head, sizeof(head)))
			return ended(b, BLOCK_CUT, ret_err, fault);
		bytes = get_le(head + 4, 4);
		if (bytes > STORED_MAX_BYTES)
			return BLOCK_DAMAGED;
		if (!input_read(b->in, b->stored, bytes))
			return ended(b, BLOCK_CUT, ret_err, fault);
		if (get_le(head + 8, 4) != crc32c(crc32c(0, head, 8), b->stored, bytes))
			return BLOCK_DAMAGED;
		if (head[0] == BLOCK_TYPE_RECORDS)
			return open_block(b, head[1], bytes, ret_err, fault);
		/* Another kind, of a later version: passed over. */
	}
}

uint64_t take_long(struct cursor *c)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && c->at < c->end; shift += 7) {
		unsigned char byte = *c->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	c->bad = true;
	return 0;
}

const char *take_text(struct cursor *c, size_t *ret_bytes)
{
	uint64_t bytes = take_u(c);
	const char *text = (const char *)c->at;

	*ret_bytes = 0;
	if (c->bad || bytes > (size_t)(c->end - c->at)) {
		c->bad = true;
		return "";
	}
	c->at += bytes;
	*ret_bytes = (size_t)bytes;
	return text;
}
