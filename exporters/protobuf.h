/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf wire format (https://protobuf.dev/programming-guides/encoding/), as much as profiles need of it: messages are encoded into a buffer
 * each, and decoded from memory or field by field from an input of any length. No descriptors: who calls knows the fields' numbers. */
#ifndef SAMPLED_EXPORTERS_PROTOBUF_H
#define SAMPLED_EXPORTERS_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "exporters/input.h"

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

/* --- encoding: appended to a buffer, whose error sticks --- */

void pb_varint(struct buf *to, uint64_t value);
/* Numbers. 0 is the default and takes no place: proto3 leaves it out. Negative ones take ten bytes (int32, int64). */
void pb_uint(struct buf *to, uint32_t field, uint64_t value);
void pb_int(struct buf *to, uint32_t field, int64_t value);
void pb_fixed64(struct buf *to, uint32_t field, uint64_t value);
/* A string, bytes or an embedded message; also when empty. */
void pb_bytes(struct buf *to, uint32_t field, const void *data, size_t bytes);
/* The same of what was encoded into another buffer, which is emptied and whose error is taken over. */
void pb_message(struct buf *to, uint32_t field, struct buf *message);
/* The beginning of a field of that many bytes, which the caller appends. */
void pb_head(struct buf *to, uint32_t field, uint64_t bytes);

/* How many bytes pb_varint() and a field of `bytes` (pb_bytes(), pb_head() and what follows) take. */
size_t pb_varint_bytes(uint64_t value);
uint64_t pb_field_bytes(uint32_t field, uint64_t bytes);

/* --- decoding --- */

struct pb_field {
	uint32_t number; /* from 1 */
	enum pb_wire wire;
	uint64_t value;            /* PB_VARINT, PB_FIXED64, PB_FIXED32; PB_BYTES: the length */
	const unsigned char *data; /* PB_BYTES in memory (pb_next()): `value` bytes */
};

/* A message in memory; not owned. */
struct pb_message {
	const unsigned char *at, *end;
	bool malformed; /* it ends within a field, or has a field that cannot be */
};

struct pb_message pb_message_of(const struct pb_field *field);
struct pb_message pb_message_in(const struct buf *bytes);
/* The next field. False: the end, or malformed. */
bool pb_next(struct pb_message *message, struct pb_field *ret_field);
/* The next number of a packed field (PB_BYTES), as varints. False: the end, or malformed. */
bool pb_next_packed(struct pb_message *packed, uint64_t *ret_value);

/* A message that comes from an input: only the fields' heads are read, what is in a field of bytes is the caller's to take. */
struct pb_stream {
	struct input *in;
	uint64_t field_off; /* where the field began that pb_stream_next() gave last */
	int err;            /* 0, or -EPROTO: cut off, or not protobuf; or the input's error */
};

/* The next field's head. What was left of the one before must have been taken or skipped. False: the end, or an error. */
bool pb_stream_next(struct pb_stream *stream, struct pb_field *ret_field);
/* The bytes of a field of bytes, into *to (emptied first): the first max_bytes of them; the rest is passed over. Memory grows with what comes,
 * not with what the head says. False: an error. */
bool pb_stream_take(struct pb_stream *stream, const struct pb_field *field, struct buf *to, size_t max_bytes);
bool pb_stream_skip(struct pb_stream *stream, const struct pb_field *field);

#endif
