/* SPDX-License-Identifier: Apache-2.0 */
/* Expected bytes are those of https://protobuf.dev/programming-guides/encoding/, or worked out from its rules. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/protobuf.h"

static struct input in;

static void expect_bytes(struct buf *have, const char *bytes, size_t count)
{
	cr_assert_eq(have->err, 0);
	cr_assert_eq(have->bytes, count, "%zu bytes, not %zu", have->bytes, count);
	cr_assert(memcmp(have->data, bytes, count) == 0);
	buf_release(have);
}

#define EXPECT(buf, text) expect_bytes(buf, text, sizeof(text) - 1)

Test(protobuf, encodes_as_the_guide_says)
{
	struct buf b = {0}, inner = {0};

	pb_uint(&b, 1, 150);
	pb_bytes(&b, 2, "testing", 7);
	pb_uint(&inner, 1, 150);
	pb_message(&b, 3, &inner);
	cr_assert_eq(inner.bytes, 0);
	EXPECT(&b, "\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01");
	buf_release(&inner);
}

Test(protobuf, defaults_take_no_place_and_extremes_fit)
{
	struct buf b = {0};

	pb_uint(&b, 1, 0);
	pb_int(&b, 1, 0);
	pb_fixed64(&b, 1, 0);
	cr_assert_eq(b.bytes, 0);
	pb_int(&b, 1, -2);
	pb_uint(&b, 16, UINT64_MAX);
	pb_fixed64(&b, 3, 0x0102030405060708);
	pb_bytes(&b, 4, NULL, 0);
	EXPECT(&b, "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	           "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	           "\x19\x08\x07\x06\x05\x04\x03\x02\x01"
	           "\x22\x00");
}

Test(protobuf, sizes_are_those_of_what_is_written)
{
	static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct buf b = {0};

		pb_varint(&b, values[i]);
		cr_assert_eq(b.bytes, pb_varint_bytes(values[i]));
		b.bytes = 0;
		pb_head(&b, 16, values[i] >> 8);
		cr_assert_eq(b.bytes + (values[i] >> 8), pb_field_bytes(16, values[i] >> 8));
		buf_release(&b);
	}
}

static struct pb_message message(const char *bytes, size_t count)
{
	return (struct pb_message){.at = (const unsigned char *)bytes, .end = (const unsigned char *)bytes + count};
}

Test(protobuf, decodes_every_wire_type)
{
	static const char bytes[] = "\x08\x96\x01\x11\x01\0\0\0\0\0\0\x80\x1a\x03\x03\x8e\x02\x25\x04\x03\x02\x01";
	struct pb_message m = message(bytes, sizeof(bytes) - 1), packed;
	struct pb_field field;
	uint64_t value;

	cr_assert(pb_next(&m, &field));
	cr_assert(field.number == 1 && field.wire == PB_VARINT && field.value == 150);
	cr_assert(pb_next(&m, &field));
	cr_assert(field.number == 2 && field.wire == PB_FIXED64 && field.value == 0x8000000000000001);
	cr_assert(pb_next(&m, &field));
	cr_assert(field.number == 3 && field.wire == PB_BYTES && field.value == 3);
	packed = pb_message_of(&field);
	cr_assert(pb_next_packed(&packed, &value) && value == 3);
	cr_assert(pb_next_packed(&packed, &value) && value == 270);
	cr_assert(!pb_next_packed(&packed, &value) && !packed.malformed);
	cr_assert(pb_next(&m, &field));
	cr_assert(field.number == 4 && field.wire == PB_FIXED32 && field.value == 0x01020304);
	cr_assert(!pb_next(&m, &field) && !m.malformed);
}

Test(protobuf, malformed_messages_are_told)
{
	static const struct {
		const char *bytes;
		size_t count;
	} bad[] = {
		{"\x08", 1},                                              /* no value */
		{"\x08\x80", 2},                                          /* half a varint */
		{"\x00\x01", 2},                                          /* field 0 */
		{"\x0b", 1},                                              /* a group */
		{"\x0f", 1},                                              /* wire type 7 */
		{"\x0a\x02x", 3},                                         /* longer than the message */
		{"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},     /* as long as can be */
		{"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11},     /* 65 bits */
		{"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* eleven bytes */
		{"\x80\x80\x80\x80\x10\x01", 6},                          /* field 2^29 */
		{"\x09\0\0\0\0\0\0\0", 8},                                /* seven bytes of eight */
		{"\x0d\0\0\0", 4},                                        /* three of four */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct pb_message m = message(bad[i].bytes, bad[i].count);
		struct pb_stream stream = {.in = &in};
		struct pb_field field;
		struct buf content = {0};

		cr_assert(!pb_next(&m, &field) && m.malformed, "case %zu", i);
		cr_assert(!pb_next(&m, &field));
		cr_assert_eq(input_open_bytes(&in, bad[i].bytes, bad[i].count), 0);
		if (pb_stream_next(&stream, &field))
			cr_assert(!pb_stream_take(&stream, &field, &content, 100), "case %zu", i);
		cr_assert_eq(stream.err, -EPROTO, "case %zu", i);
		input_close(&in);
		buf_release(&content);
	}
}

Test(protobuf, streams_are_taken_skipped_and_cut)
{
	static const char bytes[] = "\x08\x96\x01\x12\x07testing\x1a\x05other\x22\x03" "end\x29\x01\0\0\0\0\0\0\0";
	struct pb_stream stream = {.in = &in};
	struct pb_field field;
	struct buf content = {0};

	cr_assert_eq(input_open_bytes(&in, bytes, sizeof(bytes) - 1), 0);
	cr_assert(pb_stream_next(&stream, &field) && field.number == 1 && field.value == 150);
	cr_assert(pb_stream_skip(&stream, &field));
	cr_assert(pb_stream_next(&stream, &field) && field.number == 2 && field.value == 7);
	cr_assert(pb_stream_take(&stream, &field, &content, 4));
	cr_assert_str_eq(buf_text(&content), "test");
	cr_assert(pb_stream_next(&stream, &field) && field.number == 3 && stream.field_off == 12);
	cr_assert(pb_stream_skip(&stream, &field));
	cr_assert(pb_stream_next(&stream, &field) && pb_stream_take(&stream, &field, &content, 100));
	cr_assert_str_eq(buf_text(&content), "end");
	cr_assert(pb_stream_next(&stream, &field) && field.wire == PB_FIXED64 && field.value == 1);
	cr_assert(!pb_stream_next(&stream, &field) && stream.err == 0);
	input_close(&in);
	buf_release(&content);
}
