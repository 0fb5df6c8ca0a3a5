/* SPDX-License-Identifier: Apache-2.0 */
/* Text and bytes, as repr() has them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/secrets.h"
#include "base/utf8.h"
#include "sampler/pyobj.h"
#include "sampler/values/value.h"

enum {
	BYTEARRAY_SIZE = 16,
	BYTEARRAY_START = 40,
};

#define BYTES_MAX (UINT64_C(1) << 40)

static void add_point(struct buf *to, uint32_t c)
{
	char bytes[4];
	size_t n = 0;

	if (c < 0x80) {
		bytes[n++] = (char)c;
	} else if (c < 0x800) {
		bytes[n++] = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			bytes[n++] = (char)(0xe0 | c >> 12);
		} else {
			bytes[n++] = (char)(0xf0 | c >> 18);
			bytes[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		}
		bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		bytes[n++] = (char)(0x80 | (c & 0x3f));
	buf_add(to, bytes, n);
}

static bool is_surrogate(uint32_t c)
{
	return c >= 0xd800 && c < 0xe000;
}

/* Ranges that str.isprintable() says no to; those that Unicode has not assigned are shown all the same. */
static bool is_printable(uint32_t c)
{
	static const uint32_t ranges[][2] = {
		{0, 0x1f}, {0x7f, 0xa0}, {0xad, 0xad}, {0x600, 0x605}, {0x61c, 0x61c}, {0x6dd, 0x6dd}, {0x70f, 0x70f},
		{0x1680, 0x1680}, {0x180e, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f}, {0x3000, 0x3000},
		{0xd800, 0xf8ff}, {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0x1d173, 0x1d17a}, {0xe0000, 0x10ffff},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i][0] && c <= ranges[i][1])
			return false;
	return true;
}

static void add_escaped(struct buf *to, uint32_t c, char quote, bool is_bytes)
{
	if (c == (uint32_t)quote || c == '\\')
		buf_printf(to, "\\%c", (char)c);
	else if (c == '\n' || c == '\r' || c == '\t')
		buf_puts(to, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
	else if (is_bytes ? c < 0x20 || c >= 0x7f : !is_printable(c))
		buf_printf(to, c < 0x100 ? "\\x%02" PRIx32 : c < 0x10000 ? "\\u%04" PRIx32 : "\\U%08" PRIx32, c);
	else
		add_point(to, c);
}

/* `count` of `total` are at hand. */
static void add_quoted(struct buf *to, const uint32_t *points, size_t count, uint64_t total, bool is_bytes)
{
	bool single = false, doubled = false;

	for (size_t i = 0; i < count; i++) {
		single |= points[i] == '\'';
		doubled |= points[i] == '"';
	}
	buf_putc(to, single && !doubled ? '"' : '\'');
	for (size_t i = 0; i < count; i++)
		add_escaped(to, points[i], single && !doubled ? '"' : '\'', is_bytes);
	buf_putc(to, single && !doubled ? '"' : '\'');
	if (total > count)
		buf_printf(to, "… %" PRIu64 " more", total - count);
}

/* What looks secret within a text, as the password in a URL, becomes ***. Returns how many points are left. */
static size_t mask(uint32_t *points, size_t count, size_t room, bool is_bytes)
{
	struct buf plain = {0}, masked = {0};
	size_t made = 0;

	for (size_t i = 0; i < count; i++)
		if (is_bytes)
			buf_putc(&plain, (char)points[i]);
		else
			add_point(&plain, is_surrogate(points[i]) || points[i] > 0x10ffff ? '?' : points[i]);
	if (!plain.err && plain.bytes)
		secrets_mask(&masked, plain.data, plain.bytes);
	if (plain.err || masked.err || (masked.bytes == plain.bytes && (!plain.bytes || memcmp(masked.data, plain.data, plain.bytes) == 0))) {
		made = plain.err || masked.err ? 0 : count;
	} else {
		for (size_t at = 0; at < masked.bytes && made < room;) {
			if (is_bytes)
				points[made++] = (unsigned char)masked.data[at++];
			else
				at += utf8_next(masked.data + at, masked.bytes - at, &points[made++]);
		}
	}
	buf_release(&plain);
	buf_release(&masked);
	return made;
}

static void show_points(struct value_reader *v, uint32_t *points, size_t count, size_t room, uint64_t total, bool is_bytes)
{
	size_t left = v->secrets ? count : mask(points, count, room, is_bytes);

	add_quoted(v->to, points, left, total - count + left, is_bytes);
}

int value_show_str(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	uint32_t points[2 * VALUE_POINTS_MAX];
	uint32_t most = v->limits->points;
	int64_t total;

	(void)type;
	if (++v->reads > v->limits->reads)
		return -E2BIG;
	total = pyobj_points(v->remote, v->abi, object, points, most);
	if (total < 0)
		return (int)total;
	most = (uint64_t)total < most ? (uint32_t)total : most;
	for (uint32_t i = 0; i < most; i++)
		if (points[i] > 0x10ffff)
			return -EPROTO;
	v->hash = hash_bytes(v->hash, points, most * sizeof(points[0]));
	show_points(v, points, most, sizeof(points) / sizeof(points[0]), (uint64_t)total, false);
	return 0;
}

static int show_bytes_at(struct value_reader *v, raddr_t from, uint64_t total)
{
	unsigned char bytes[VALUE_POINTS_MAX];
	uint32_t points[2 * VALUE_POINTS_MAX];
	size_t count = total < v->limits->points ? (size_t)total : v->limits->points;
	int err;

	if (total > BYTES_MAX)
		return -EPROTO;
	err = count ? value_read(v, from, bytes, count) : 0;
	if (err)
		return err;
	for (size_t i = 0; i < count; i++)
		points[i] = bytes[i];
	buf_putc(v->to, 'b');
	show_points(v, points, count, sizeof(points) / sizeof(points[0]), total, true);
	return 0;
}

int value_show_bytes(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	uint64_t total;
	int err = value_read_word(v, object + (raddr_t)v->abi->bytes.size, &total);

	(void)type;
	return err ? err : show_bytes_at(v, object + (raddr_t)v->abi->bytes.data, total);
}

int value_show_bytearray(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	uint64_t total, from = 0;
	int err = value_read_word(v, object + BYTEARRAY_SIZE, &total);

	(void)type;
	if (!err)
		err = value_read_word(v, object + BYTEARRAY_START, &from);
	if (err)
		return err;
	buf_puts(v->to, "bytearray(");
	err = show_bytes_at(v, from, total);
	buf_putc(v->to, ')');
	return err;
}

bool value_name(struct value_reader *v, raddr_t str, char *to, size_t room)
{
	struct object_type type;

	if (value_type_of(v, str, &type) != 0 || strcmp(type.name, "str") != 0 || ++v->reads > v->limits->reads ||
	    pyobj_str(v->remote, v->abi, str, to, room, NULL) < 0)
		return false;
	v->hash = hash_bytes(v->hash, to, strlen(to));
	return true;
}

/* By its text: no more is read for it. */
bool value_announces_secret(const struct value_reader *v, size_t from, uint64_t count)
{
	const char *text = v->to->data + from;
	size_t bytes = v->to->bytes - from;

	if (v->to->err || bytes < 3)
		return false;
	if (*text == 'b') {
		text++;
		bytes--;
	}
	return (*text == '\'' || *text == '"') && (count == 2 || text[1] == '-') && !memchr(text, ' ', bytes) &&
	       !memchr(text, '=', bytes) && secrets_is_name(text, bytes);
}
