/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "exporters/tachyon_file.h"

uint32_t tachyon_u32(const unsigned char *at, bool big_endian)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < 4; i++)
		value = value << 8 | at[big_endian ? i : 3 - i];
	return value;
}

uint64_t tachyon_u64(const unsigned char *at, bool big_endian)
{
	uint64_t first = tachyon_u32(at, big_endian), second = tachyon_u32(at + 4, big_endian);

	return big_endian ? first << 32 | second : second << 32 | first;
}

int tachyon_stream_init(struct tachyon_stream *s, const struct spool *file, uint64_t off, uint64_t end, bool packed)
{
	s->file = file;
	s->zstd = NULL;
	s->open = packed && end > off;
	s->err = 0;
	s->off = off;
	s->end = end;
	s->done_bytes = 0;
	s->at = s->have = s->packed_at = s->packed_end = 0;
	if (!packed)
		return 0;
#ifdef HAVE_ZSTD
	s->zstd = ZSTD_createDStream();
	return s->zstd ? 0 : -ENOMEM;
#else
	return -ENOTSUP;
#endif
}

void tachyon_stream_release(struct tachyon_stream *s)
{
#ifdef HAVE_ZSTD
	ZSTD_freeDStream(s->zstd);
#endif
	s->zstd = NULL;
}

/* The next piece of the file; 0 at the part's end. */
static size_t read_piece(struct tachyon_stream *s, unsigned char *to, size_t room)
{
	uint64_t left = s->end - s->off;
	int64_t got = spool_read_at(s->file, to, left < room ? left : room, s->off);

	if (got < 0)
		s->err = (int)got;
	else if (got == 0 && left > 0)
		s->err = -EPROTO; /* it became shorter */
	else
		s->off += (uint64_t)got;
	return s->err ? 0 : (size_t)got;
}

#ifdef HAVE_ZSTD
static size_t unpack(struct tachyon_stream *s)
{
	while (!s->err) {
		/* What is unpacked may come without a packed byte more, but not once the frame has ended. */
		if (s->open || s->packed_at < s->packed_end) {
			ZSTD_inBuffer from = {.src = s->packed, .size = s->packed_end, .pos = s->packed_at};
			ZSTD_outBuffer to = {.dst = s->data, .size = sizeof(s->data)};
			size_t result = ZSTD_decompressStream(s->zstd, &to, &from);

			s->packed_at = from.pos;
			s->open = result != 0;
			if (ZSTD_isError(result))
				s->err = -EPROTO;
			else if (to.pos > 0)
				return to.pos;
			if (s->err || s->packed_at < s->packed_end)
				continue;
		}
		s->packed_at = 0;
		s->packed_end = read_piece(s, s->packed, sizeof(s->packed));
		if (s->packed_end == 0) {
			if (s->open && !s->err)
				s->err = -EPROTO; /* it is cut off */
			break;
		}
	}
	return 0;
}
#endif

bool tachyon_stream_more(struct tachyon_stream *s)
{
	if (s->at < s->have)
		return true;
	if (s->err)
		return false;
	s->done_bytes += s->have;
	s->at = s->have = 0;
#ifdef HAVE_ZSTD
	if (s->zstd)
		s->have = unpack(s);
	else
#endif
		s->have = read_piece(s, s->data, sizeof(s->data));
	return s->have > 0;
}

bool tachyon_stream_read(struct tachyon_stream *s, void *to, size_t bytes)
{
	unsigned char *out = to;

	while (bytes > 0) {
		size_t part;

		if (!tachyon_stream_more(s))
			return false;
		part = s->have - s->at < bytes ? s->have - s->at : bytes;
		memcpy(out, s->data + s->at, part);
		s->at += part;
		out += part;
		bytes -= part;
	}
	return true;
}

bool tachyon_stream_varint(struct tachyon_stream *s, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		unsigned char byte;

		if (!tachyon_stream_more(s))
			return false;
		byte = s->data[s->at++];
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = value;
			return value <= max;
		}
	}
	return false;
}

uint64_t tachyon_stream_offset(const struct tachyon_stream *s)
{
	return s->done_bytes + s->at;
}
