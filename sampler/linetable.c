/* SPDX-License-Identifier: Apache-2.0 */
/* Line tables: three encodings, decoded into one sorted list of ranges.
 *
 * Each decoder hands its entries to emit() in bytecode order, and emit() joins equal neighbours and counts what does not
 * fit. The bytes are hostile: no entry is read past the end, and a table is at most TABLE_BYTES_MAX long, so that the
 * sums of offsets fit 32 bits and those of lines 64, whatever the entries say. */
#include "sampler/linetable.h"

#include <errno.h>
#include <stdbool.h>

/* The most an entry adds is 255 bytes of bytecode for 2 bytes of table: 2^24 / 2 * 255 < 2^32. */
#define TABLE_BYTES_MAX (UINT32_C(1) << 24)

/* "No line", in the 3.10 table's i8. */
enum { NO_LINE_310 = -128 };

/* Kinds of entries in the 3.11+ table (Objects/locations.md); those below 10 are all the short form. */
enum {
	ENTRY_ONE_LINE_0 = 10,
	ENTRY_ONE_LINE_2 = 12,
	ENTRY_NO_COLUMNS = 13,
	ENTRY_LONG = 14,
	ENTRY_NONE = 15,
};

struct sink {
	struct line_range *ranges;
	size_t room;
	int64_t count;      /* entries so far, including those that found no room */
	uint32_t last_line; /* of the last entry */
};

/* Starts a range; ranges come in rising order of start. A line that no source can have is no line. */
static void emit(struct sink *sink, uint32_t start, int64_t line)
{
	uint32_t shown = line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;

	if (sink->count > 0 && sink->last_line == shown)
		return;
	if ((uint64_t)sink->count < sink->room)
		sink->ranges[sink->count] = (struct line_range){.start = start, .line = shown};
	sink->count++;
	sink->last_line = shown;
}

/* Pairs of (u8 bytes, i8 lines): the line changes after the bytes. What follows the last pair has its line too. */
static int decode_lnotab(struct sink *sink, const uint8_t *table, size_t bytes, int64_t line)
{
	uint32_t start = 0;

	if (bytes % 2 != 0)
		return -EPROTO;
	for (size_t i = 0; i < bytes; i += 2) {
		if (table[i] != 0)
			emit(sink, start, line);
		start += table[i];
		line += (int8_t)table[i + 1];
	}
	emit(sink, start, line);
	return 0;
}

/* Pairs of (u8 bytes, i8 lines): the line changes first, then holds for the bytes; -128 says that they have none, and
 * leaves the sum alone. */
static int decode_310(struct sink *sink, const uint8_t *table, size_t bytes, int64_t line)
{
	uint32_t start = 0;

	if (bytes % 2 != 0)
		return -EPROTO;
	for (size_t i = 0; i < bytes; i += 2) {
		int8_t delta = (int8_t)table[i + 1];

		if (delta != NO_LINE_310)
			line += delta;
		if (table[i] != 0)
			emit(sink, start, delta == NO_LINE_310 ? 0 : line);
		start += table[i];
	}
	return 0;
}

struct cursor {
	const uint8_t *at, *end;
};

static bool skip(struct cursor *c, size_t bytes)
{
	if ((size_t)(c->end - c->at) < bytes)
		return false;
	c->at += bytes;
	return true;
}

/* Six bits a byte, the lowest first; 0x40 says that another follows. At most 32 bits. */
static bool read_varint(struct cursor *c, uint32_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift <= 30; shift += 6) {
		uint8_t byte;

		if (c->at == c->end)
			return false;
		byte = *c->at++;
		value |= (uint64_t)(byte & 0x3f) << shift;
		if ((byte & 0x40) == 0) {
			*ret_value = (uint32_t)value;
			return value <= UINT32_MAX;
		}
	}
	return false;
}

/* The same with the sign in bit 0. */
static bool read_svarint(struct cursor *c, int64_t *ret_value)
{
	uint32_t value;

	if (!read_varint(c, &value))
		return false;
	*ret_value = (value & 1) != 0 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
	return true;
}

/* What follows an entry's first byte: the change of line, and columns that nobody asked for. */
static bool read_entry(struct cursor *c, unsigned kind, int64_t *ret_delta)
{
	uint32_t ignored;

	*ret_delta = 0;
	if (kind < ENTRY_ONE_LINE_0)
		return skip(c, 1);
	if (kind <= ENTRY_ONE_LINE_2) {
		*ret_delta = kind - ENTRY_ONE_LINE_0;
		return skip(c, 2);
	}
	if (kind == ENTRY_NO_COLUMNS)
		return read_svarint(c, ret_delta);
	if (kind == ENTRY_LONG) /* end line, column, end column */
		return read_svarint(c, ret_delta) && read_varint(c, &ignored) && read_varint(c, &ignored) &&
		       read_varint(c, &ignored);
	return true;
}

/* Entries of 1 to 8 units of 2 bytes; only an entry's first byte has its top bit set. */
static int decode_311(struct sink *sink, const uint8_t *table, size_t bytes, int64_t line)
{
	struct cursor c = {.at = table, .end = table + bytes};
	uint32_t start = 0;

	while (c.at != c.end) {
		uint8_t first = *c.at++;
		unsigned kind = (first >> 3) & 15;
		int64_t delta;

		if ((first & 0x80) == 0 || !read_entry(&c, kind, &delta))
			return -EPROTO;
		line += delta;
		emit(sink, start, kind == ENTRY_NONE ? 0 : line);
		start += ((uint32_t)(first & 7) + 1) * 2;
	}
	return 0;
}

int64_t linetable_decode(enum py_lines format, const uint8_t *table, size_t bytes, uint32_t first_line,
                         struct line_range *ret, size_t room)
{
	struct sink sink = {.ranges = ret, .room = room};
	int err = -EPROTO;

	if (bytes > TABLE_BYTES_MAX)
		return -EPROTO;
	switch (format) {
	case LINES_LNOTAB:
		err = decode_lnotab(&sink, table, bytes, first_line);
		break;
	case LINES_310:
		err = decode_310(&sink, table, bytes, first_line);
		break;
	case LINES_311:
		err = decode_311(&sink, table, bytes, first_line);
		break;
	}
	if (err != 0)
		return err;
	if (sink.count == 0)
		emit(&sink, 0, 0);
	return sink.count;
}

uint32_t linetable_find(const struct line_range *ranges, size_t count, int64_t offset, uint32_t first_line)
{
	size_t low = 0, high = count;

	if (offset < 0)
		return first_line;
	while (low < high) { /* the first range that begins behind offset */
		size_t middle = low + (high - low) / 2;

		if (ranges[middle].start > offset)
			high = middle;
		else
			low = middle + 1;
	}
	return low > 0 ? ranges[low - 1].line : 0;
}
