/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/recording_block.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "exporters/crc32c.h"

/* What a second of samples is packed with; more costs time and gains a few per cent. */
enum { ZSTD_LEVEL = 3 };

void put_u(struct buf *to, uint64_t value)
{
	unsigned char bytes[10];
	size_t count = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[count++] = (unsigned char)(value | 0x80);
	bytes[count++] = (unsigned char)value;
	buf_add(to, bytes, count);
}

void put_s(struct buf *to, int64_t value)
{
	put_u(to, zigzag(value));
}

static void put_le(unsigned char *to, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

/* What was not written whole is taken back, so that nothing half stands where a later block might be appended. */
static void write_out(struct block_writer *b, const char *data, size_t bytes)
{
	size_t done = 0;

	while (done < bytes && !b->err) {
		ssize_t wrote = write(b->fd, data + done, bytes - done);

		if (wrote > 0)
			done += (size_t)wrote;
		else if (wrote == 0)
			b->err = -EIO;
		else if (errno != EINTR)
			b->err = -errno;
	}
	if (!b->err)
		b->bytes += bytes;
	else if (done > 0)
		(void)!ftruncate(b->fd, (off_t)b->bytes);
}

static int start_packing(struct block_writer *b)
{
#ifdef HAVE_ZSTD
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	if (!zstd)
		return -ENOMEM;
	b->zstd = zstd;
	if (ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, BLOCK_WINDOW_LOG)))
		return -ENOMEM;
#else
	(void)b;
#endif
	return 0;
}

int block_writer_init(struct block_writer *b, int fd, bool pack)
{
	unsigned char head[RECORDING_HEAD_BYTES] = RECORDING_MAGIC;
	int err;

	*b = (struct block_writer){.fd = fd};
	err = pack ? start_packing(b) : 0;
	if (err) {
		block_writer_release(b);
		return err;
	}
	put_le(head + 8, RECORDING_VERSION, 2);
	put_le(head + 10, 0, 2);
	put_le(head + 12, crc32c(0, head, 12), 4);
	write_out(b, (const char *)head, sizeof(head));
	return b->err;
}

void block_writer_release(struct block_writer *b)
{
	for (int i = 0; i < COLUMN_COUNT; i++)
		buf_release(&b->columns[i]);
	buf_release(&b->whole);
	buf_release(&b->packed);
#ifdef HAVE_ZSTD
	ZSTD_freeCCtx(b->zstd);
#endif
	b->zstd = NULL;
}

/* Packs `whole` into `packed`, behind room for the head and the length unpacked. Whether it is packed now. */
static bool pack(struct block_writer *b)
{
#ifdef HAVE_ZSTD
	ZSTD_inBuffer from = {.src = b->whole.data + BLOCK_HEAD_BYTES, .size = b->whole.bytes - BLOCK_HEAD_BYTES};
	unsigned char length[4];

	if (!b->zstd)
		return false;
	b->packed.bytes = 0;
	buf_add(&b->packed, b->whole.data, BLOCK_HEAD_BYTES);
	put_le(length, from.size, sizeof(length));
	buf_add(&b->packed, length, sizeof(length));
	for (size_t left = 1; left > 0;) {
		ZSTD_outBuffer out = {.dst = buf_reserve(&b->packed, ZSTD_CStreamOutSize()),
		                      .size = ZSTD_CStreamOutSize()};

		left = out.dst ? ZSTD_compressStream2(b->zstd, &out, &from, ZSTD_e_flush) : 0;
		if (!out.dst || ZSTD_isError(left)) {
			b->err = -ENOMEM;
			break;
		}
		b->packed.bytes += out.pos;
	}
	return true;
#else
	(void)b;
	return false;
#endif
}

void block_close(struct block_writer *b)
{
	struct buf *out = &b->whole;
	unsigned char head[BLOCK_HEAD_BYTES] = {BLOCK_TYPE_RECORDS};

	if (b->opened_ns == 0)
		return;
	b->opened_ns = 0;
	b->whole.bytes = 0;
	buf_add(&b->whole, head, sizeof(head));
	for (int i = 0; i < COLUMN_COUNT; i++)
		put_u(&b->whole, b->columns[i].bytes);
	for (int i = 0; i < COLUMN_COUNT; i++) {
		buf_add(&b->whole, b->columns[i].data, b->columns[i].bytes);
		if (b->columns[i].err)
			b->err = b->err ? b->err : b->columns[i].err;
		b->columns[i].bytes = 0;
	}
	if (!b->err && !b->whole.err && pack(b)) {
		out = &b->packed;
		head[1] = BLOCK_ZSTD;
	}
	if (!b->err && out->err)
		b->err = out->err;
	if (b->err)
		return;
	put_le(head + 4, out->bytes - BLOCK_HEAD_BYTES, 4);
	put_le(head + 8, crc32c(crc32c(0, head, 8), out->data + BLOCK_HEAD_BYTES, out->bytes - BLOCK_HEAD_BYTES), 4);
	memcpy(out->data, head, sizeof(head));
	write_out(b, out->data, out->bytes);
}

void block_begin_item(struct block_writer *b)
{
	size_t bytes = 0;

	for (int i = 0; i < COLUMN_COUNT; i++)
		bytes += b->columns[i].bytes;
	if (bytes >= BLOCK_CLOSE_BYTES)
		block_close(b);
	if (b->opened_ns == 0)
		b->opened_ns = clock_now_ns();
}

void block_close_if_due(struct block_writer *b)
{
	if (b->opened_ns && clock_now_ns() - b->opened_ns >= BLOCK_CLOSE_NS)
		block_close(b);
}
