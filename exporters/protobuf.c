/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/protobuf.h"

#include <errno.h>
#include <string.h>

enum { VARINT_BYTES_MAX = 10, FIELD_MAX = (1 << 29) - 1 };

/* --- encoding --- */

void pb_varint(struct buf *to, uint64_t value)
{
	unsigned char bytes[VARINT_BYTES_MAX];
	size_t count = 0;

	while (value >= 0x80) {
		bytes[count++] = (unsigned char)(value | 0x80);
		value >>= 7;
	}
	bytes[count++] = (unsigned char)value;
	buf_add(to, bytes, count);
}

static uint64_t tag_of(uint32_t field, enum pb_wire wire)
{
	return (uint64_t)field << 3 | wire;
}

void pb_uint(struct buf *to, uint32_t field, uint64_t value)
{
	if (value == 0)
		return;
	pb_varint(to, tag_of(field, PB_VARINT));
	pb_varint(to, value);
}

void pb_int(struct buf *to, uint32_t field, int64_t value)
{
	pb_uint(to, field, (uint64_t)value);
}

void pb_fixed64(struct buf *to, uint32_t field, uint64_t value)
{
	unsigned char bytes[8];

	if (value == 0)
		return;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(value >> 8 * i);
	pb_varint(to, tag_of(field, PB_FIXED64));
	buf_add(to, bytes, sizeof(bytes));
}

void pb_head(struct buf *to, uint32_t field, uint64_t bytes)
{
	pb_varint(to, tag_of(field, PB_BYTES));
	pb_varint(to, bytes);
}

void pb_bytes(struct buf *to, uint32_t field, const void *data, size_t bytes)
{
	pb_head(to, field, bytes);
	buf_add(to, data, bytes);
}

void pb_message(struct buf *to, uint32_t field, struct buf *message)
{
	if (message->err && !to->err)
		to->err = message->err;
	pb_bytes(to, field, message->data, message->bytes);
	message->bytes = 0;
}

size_t pb_varint_bytes(uint64_t value)
{
	size_t bytes = 1;

	for (; value >= 0x80; value >>= 7)
		bytes++;
	return bytes;
}

uint64_t pb_field_bytes(uint32_t field, uint64_t bytes)
{
	return pb_varint_bytes(tag_of(field, PB_BYTES)) + pb_varint_bytes(bytes) + bytes;
}

/* --- decoding --- */

/* Takes a varint off [*at, end). False: it ends before, or is longer than 64 bits. */
static bool take_varint(const unsigned char **at, const unsigned char *end, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; *at < end; shift += 7) {
		unsigned char byte = *(*at)++;

		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

/* Splits a tag. False: no such field number, or a wire type that is not (groups, 3 and 4, were given up long before profiles). */
static bool split_tag(uint64_t tag, struct pb_field *field)
{
	unsigned wire = tag & 7;

	if (tag >> 3 == 0 || tag >> 3 > FIELD_MAX ||
	    (wire != PB_VARINT && wire != PB_FIXED64 && wire != PB_BYTES && wire != PB_FIXED32))
		return false;
	field->number = (uint32_t)(tag >> 3);
	field->wire = (enum pb_wire)wire;
	field->data = NULL;
	return true;
}

static uint64_t little_endian(const unsigned char *bytes, size_t count)
{
	uint64_t value = 0;

	while (count-- > 0)
		value = value << 8 | bytes[count];
	return value;
}

struct pb_message pb_message_of(const struct pb_field *field)
{
	return (struct pb_message){.at = field->data, .end = field->data + field->value};
}

struct pb_message pb_message_in(const struct buf *bytes)
{
	static const unsigned char nothing;
	const unsigned char *data = bytes->data ? (const unsigned char *)bytes->data : &nothing;

	return (struct pb_message){.at = data, .end = data + bytes->bytes};
}

static bool take_value(struct pb_message *m, struct pb_field *field)
{
	size_t fixed = field->wire == PB_FIXED64 ? 8 : 4;

	if (field->wire == PB_VARINT)
		return take_varint(&m->at, m->end, &field->value);
	if (field->wire == PB_BYTES) {
		if (!take_varint(&m->at, m->end, &field->value) || field->value > (uint64_t)(m->end - m->at))
			return false;
		field->data = m->at;
		m->at += field->value;
		return true;
	}
	if ((size_t)(m->end - m->at) < fixed)
		return false;
	field->value = little_endian(m->at, fixed);
	m->at += fixed;
	return true;
}

bool pb_next(struct pb_message *m, struct pb_field *ret_field)
{
	uint64_t tag;

	if (m->malformed || m->at == m->end)
		return false;
	m->malformed = !take_varint(&m->at, m->end, &tag) || !split_tag(tag, ret_field) || !take_value(m, ret_field);
	return !m->malformed;
}

bool pb_next_packed(struct pb_message *packed, uint64_t *ret_value)
{
	if (packed->malformed || packed->at == packed->end)
		return false;
	packed->malformed = !take_varint(&packed->at, packed->end, ret_value);
	return !packed->malformed;
}

static bool stream_fails(struct pb_stream *s)
{
	if (!s->err)
		s->err = s->in->err ? s->in->err : -EPROTO;
	return false;
}

static bool stream_varint(struct pb_stream *s, uint64_t *ret_value)
{
	const unsigned char *head, *at;
	size_t bytes = input_peek(s->in, &head, VARINT_BYTES_MAX);

	at = head;
	if (!take_varint(&at, head + bytes, ret_value))
		return stream_fails(s);
	return input_skip(s->in, (uint64_t)(at - head)) || stream_fails(s);
}

bool pb_stream_next(struct pb_stream *s, struct pb_field *ret_field)
{
	const unsigned char *head;
	unsigned char fixed[8];
	uint64_t tag;
	size_t bytes;

	if (s->err)
		return false;
	s->field_off = s->in->bytes;
	if (input_peek(s->in, &head, 1) == 0) {
		s->err = s->in->err;
		return false;
	}
	if (!stream_varint(s, &tag))
		return false;
	if (!split_tag(tag, ret_field))
		return stream_fails(s);
	if (ret_field->wire == PB_VARINT || ret_field->wire == PB_BYTES)
		return stream_varint(s, &ret_field->value);
	bytes = ret_field->wire == PB_FIXED64 ? 8 : 4;
	if (!input_read(s->in, fixed, bytes))
		return stream_fails(s);
	ret_field->value = little_endian(fixed, bytes);
	return true;
}

bool pb_stream_take(struct pb_stream *s, const struct pb_field *field, struct buf *to, size_t max_bytes)
{
	uint64_t left = field->value < max_bytes ? field->value : max_bytes, rest = field->value - left;

	to->bytes = 0;
	while (left > 0) {
		const unsigned char *data;
		size_t got = input_next(s->in, &data, (size_t)left);

		if (got == 0)
			return stream_fails(s);
		buf_add(to, data, got);
		left -= got;
	}
	if (to->err) {
		s->err = to->err;
		return false;
	}
	return input_skip(s->in, rest) || stream_fails(s);
}

bool pb_stream_skip(struct pb_stream *s, const struct pb_field *field)
{
	if (field->wire != PB_BYTES)
		return true;
	return input_skip(s->in, field->value) || stream_fails(s);
}
