/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/marshal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/pstats.h"

/* Bounds of what is kept; real files stay far below. */
enum {
	TEXT_MAX_BYTES = 1 << 20,
	TEXTS_MAX_BYTES = 1 << 30,
	SLOTS_MAX = 1 << 24,
	DIGITS_MAX = 1 << 16 /* of a number, passed over where it is beyond all counts */
};

void marshal_release(struct marshal *m)
{
	text_set_release(&m->texts);
	buf_release(&m->slots);
	buf_release(&m->interned);
	buf_release(&m->text);
}

int marshal_wrong(const struct marshal *m, const char *what)
{
	return fault_set(m->fault, -EPROTO, "", "it is no whole pstats file: %s, at byte %" PRIu64, what, m->in->bytes);
}

static int no_memory(const struct marshal *m)
{
	return fault_set(m->fault, -ENOMEM, "", "out of memory");
}

/* Why nothing comes any more. */
static int ended(const struct marshal *m)
{
	if (m->in->err == -EPROTO)
		return marshal_wrong(m, "its compressed data is damaged");
	if (m->in->err)
		return fault_set(m->fault, m->in->err, "", "%s", strerror(-m->in->err));
	return marshal_wrong(m, "it ends too early");
}

static int take(struct marshal *m, void *to, size_t bytes)
{
	return input_read(m->in, to, bytes) ? 0 : ended(m);
}

static int take_number(struct marshal *m, size_t bytes, uint64_t *ret_number)
{
	unsigned char data[8];
	int err = take(m, data, bytes);

	if (err)
		return err;
	*ret_number = 0;
	for (size_t i = bytes; i > 0; i--)
		*ret_number = *ret_number << 8 | data[i - 1];
	return 0;
}

static int take_int(struct marshal *m, size_t bytes, struct marshal_value *value)
{
	uint64_t number = 0;
	int err = take_number(m, bytes, &number);

	value->kind = MARSHAL_IS_NUMBER;
	value->number = bytes == 4 ? (int64_t)(int32_t)(uint32_t)number : (int64_t)number;
	return err;
}

static int take_long(struct marshal *m, struct marshal_value *value)
{
	uint64_t head = 0, digit, sum = 0;
	int err = take_number(m, 4, &head);
	int64_t count = (int32_t)(uint32_t)head;
	bool negative = count < 0, beyond = false;

	count = negative ? -count : count;
	if (!err && count > DIGITS_MAX)
		err = marshal_wrong(m, "a number is too long");
	for (int64_t i = 0; i < count && !err; i++) {
		err = take_number(m, 2, &digit);
		if (!err && digit > 0x7fff)
			err = marshal_wrong(m, "a number's digit is out of range");
		if (err)
			break;
		if (digit > 0 && (i > 4 || (i == 4 && digit > 7))) /* 15 × 4 bits, and three more */
			beyond = true;
		else if (digit > 0)
			sum |= digit << (15 * i);
	}
	value->kind = MARSHAL_IS_NUMBER;
	value->number = beyond ? INT64_MAX : (int64_t)sum;
	if (negative)
		value->number = -value->number;
	return err;
}

static int take_binary_float(struct marshal *m, struct marshal_value *value)
{
	uint64_t bits = 0;
	int err = take_number(m, 8, &bits);

	value->kind = MARSHAL_IS_FLOAT;
	memcpy(&value->real, &bits, sizeof(bits));
	return err;
}

static int take_float(struct marshal *m, struct marshal_value *value)
{
	uint64_t bytes = 0;
	char text[256], *end;
	int err = take_number(m, 1, &bytes);

	if (!err)
		err = take(m, text, (size_t)bytes);
	if (err)
		return err;
	text[bytes] = '\0';
	value->kind = MARSHAL_IS_FLOAT;
	value->real = strtod(text, &end);
	return end == text + bytes && bytes > 0 ? 0 : marshal_wrong(m, "a number cannot be read");
}

/* A text goes into the set piece by piece, so that a length without bytes behind it costs nothing. */
static int take_text(struct marshal *m, size_t length_bytes, struct marshal_value *value)
{
	uint64_t left = 0;
	int err = take_number(m, length_bytes, &left);

	if (err)
		return err;
	if (left > TEXT_MAX_BYTES)
		return marshal_wrong(m, "a text is too long");
	m->text.bytes = 0;
	while (left > 0) {
		const unsigned char *data;
		size_t got = input_next(m->in, &data, (size_t)left);

		if (got == 0)
			return ended(m);
		buf_add(&m->text, data, got);
		left -= got;
	}
	if (m->texts.texts.bytes > TEXTS_MAX_BYTES)
		return marshal_wrong(m, "its texts are too many");
	value->kind = MARSHAL_IS_TEXT;
	value->index =
		m->text.err ? INTERN_FAILED : text_set_add(&m->texts, m->text.data ? m->text.data : "", m->text.bytes);
	return value->index == INTERN_FAILED ? no_memory(m) : 0;
}

static int intern(struct marshal *m, const struct marshal_value *value)
{
	if (m->interned.bytes / sizeof(value->index) >= SLOTS_MAX)
		return marshal_wrong(m, "its texts are too many");
	buf_add(&m->interned, &value->index, sizeof(value->index));
	return m->interned.err ? no_memory(m) : 0;
}

static int take_string_reference(struct marshal *m, struct marshal_value *value)
{
	uint64_t index = 0;
	int err = take_number(m, 4, &index);

	if (err)
		return err;
	if (index >= m->interned.bytes / sizeof(value->index))
		return marshal_wrong(m, "a reference leads to nothing");
	value->kind = MARSHAL_IS_TEXT;
	memcpy(&value->index, m->interned.data + index * sizeof(value->index), sizeof(value->index));
	return 0;
}

static int take_reference(struct marshal *m, struct marshal_value *value)
{
	uint64_t index = 0;
	int err = take_number(m, 4, &index);

	if (err)
		return err;
	if (index >= m->slots.bytes / sizeof(*value))
		return marshal_wrong(m, "a reference leads to nothing");
	memcpy(value, m->slots.data + index * sizeof(*value), sizeof(*value));
	/* Its items are not there a second time, and a tuple may not be in itself. */
	if (value->kind == MARSHAL_IS_TUPLE || value->kind == MARSHAL_IS_DICT)
		return marshal_wrong(m, "a reference leads to what cannot be shared");
	return 0;
}

static int take_tuple(struct marshal *m, size_t length_bytes, struct marshal_value *value)
{
	uint64_t count = 0;
	int err = take_number(m, length_bytes, &count);

	value->kind = MARSHAL_IS_TUPLE;
	value->index = (uint32_t)count;
	return err;
}

static int take_by_type(struct marshal *m, unsigned type, struct marshal_value *value)
{
	int err;

	switch (type) {
	case MARSHAL_NULL:
		value->kind = MARSHAL_IS_NULL;
		return 0;
	case MARSHAL_NONE:
	case MARSHAL_FALSE:
	case MARSHAL_TRUE:
		value->kind = MARSHAL_IS_OTHER;
		return 0;
	case MARSHAL_INT:
		return take_int(m, 4, value);
	case MARSHAL_INT64:
		return take_int(m, 8, value);
	case MARSHAL_LONG:
		return take_long(m, value);
	case MARSHAL_FLOAT:
		return take_float(m, value);
	case MARSHAL_BINARY_FLOAT:
		return take_binary_float(m, value);
	case MARSHAL_INTERNED:
		err = take_text(m, 4, value);
		return err ? err : intern(m, value);
	case MARSHAL_STRING:
	case MARSHAL_UNICODE:
	case MARSHAL_ASCII:
	case MARSHAL_ASCII_INTERNED:
		return take_text(m, 4, value);
	case MARSHAL_SHORT_ASCII:
	case MARSHAL_SHORT_ASCII_INTERNED:
		return take_text(m, 1, value);
	case MARSHAL_STRINGREF:
		return take_string_reference(m, value);
	case MARSHAL_REF:
		return take_reference(m, value);
	case MARSHAL_TUPLE:
		return take_tuple(m, 4, value);
	case MARSHAL_SMALL_TUPLE:
		return take_tuple(m, 1, value);
	case MARSHAL_DICT:
		value->kind = MARSHAL_IS_DICT;
		return 0;
	case MARSHAL_CODE:
		value->kind = MARSHAL_IS_CODE;
		return 0;
	default:
		return marshal_wrong(m, "a value is of a type that such files do not have");
	}
}

int marshal_add_slot(struct marshal *m, struct marshal_value *value)
{
	value->slot = (uint32_t)(m->slots.bytes / sizeof(*value));
	if (value->slot >= SLOTS_MAX)
		return marshal_wrong(m, "too many values are referred to");
	buf_add(&m->slots, value, sizeof(*value));
	return m->slots.err ? no_memory(m) : 0;
}

int marshal_next(struct marshal *m, struct marshal_value *ret_value)
{
	struct marshal_value value = {.slot = MARSHAL_NO_SLOT};
	uint64_t byte = 0;
	int err = take_number(m, 1, &byte);
	unsigned type = (unsigned)byte & ~(unsigned)MARSHAL_FLAG_REF;

	if (!err)
		err = take_by_type(m, type, &value);
	if (err)
		return err;
	if (byte & MARSHAL_FLAG_REF && type != MARSHAL_REF && type != MARSHAL_NULL)
		err = marshal_add_slot(m, &value);
	if (!err)
		*ret_value = value;
	return err;
}

void marshal_remember(struct marshal *m, uint32_t slot, uint32_t index)
{
	struct marshal_value value = {.kind = MARSHAL_IS_KNOWN, .index = index, .slot = MARSHAL_NO_SLOT};

	if (slot != MARSHAL_NO_SLOT)
		memcpy(m->slots.data + (size_t)slot * sizeof(value), &value, sizeof(value));
}
