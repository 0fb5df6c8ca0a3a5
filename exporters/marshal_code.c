/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects in marshal's format, passed over: python -m profile has one as a function's name. Which numbers and objects they are made of
 * differs by version, and nothing says which version it is; the parts themselves do:
 *
 *   2.7         4 numbers, 8 objects, the line, 1 object
 *   3.0 to 3.7  5 numbers, 8 objects, the line, 1 object
 *   3.8 to 3.10 6 numbers, 8 objects, the line, 1 object
 *   from 3.11   5 numbers, 8 objects, the line, 2 objects
 *
 * The first object is the bytecode, bytes; the fifth is bytes from 3.11 on, a tuple before. (CPython: Python/marshal.c, r_object().) */
#include <errno.h>
#include <string.h>

#include "exporters/marshal.h"
#include "exporters/pstats.h"

enum { NESTED_MAX = 256, CODE_OBJECTS = 8, CODE_BYTES_MAX = 1 << 24 };

struct code {
	uint32_t name, file, line;
};

static int skip_code(struct marshal *m, unsigned depth, struct code *ret_code);

static int take(struct marshal *m, size_t bytes, uint32_t *ret_number)
{
	unsigned char data[4] = {0};

	if (!input_read(m->in, data, bytes))
		return marshal_wrong(m, "it ends too early");
	*ret_number = (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
	return 0;
}

static int pass(struct marshal *m, uint64_t bytes)
{
	return input_skip(m->in, bytes) ? 0 : marshal_wrong(m, "it ends too early");
}

static int skip_object(struct marshal *m, unsigned depth, bool is_text, struct marshal_value *ret_value);

static int skip_items(struct marshal *m, unsigned depth, uint64_t count)
{
	struct marshal_value value;
	int err = 0;

	for (uint64_t i = 0; i < count && !err; i++)
		err = skip_object(m, depth, false, &value);
	return err;
}

/* What pstats files have in code objects only. The type byte is taken. */
static int skip_by_type(struct marshal *m, unsigned depth, unsigned type)
{
	uint32_t count = 0, more = 0;
	struct code code;
	int err;

	switch (type) {
	case MARSHAL_STRING:
		err = take(m, 4, &count);
		return err ? err : pass(m, count);
	case MARSHAL_LIST:
	case MARSHAL_SET:
	case MARSHAL_FROZENSET:
		err = take(m, 4, &count);
		return err ? err : skip_items(m, depth, count);
	case MARSHAL_SLICE:
		return skip_items(m, depth, 3);
	case MARSHAL_BINARY_COMPLEX:
		return pass(m, 16);
	case MARSHAL_COMPLEX:
		err = take(m, 1, &count);
		if (!err)
			err = pass(m, count);
		if (!err)
			err = take(m, 1, &more);
		return err ? err : pass(m, more);
	case MARSHAL_CODE:
		return skip_code(m, depth, &code);
	default: /* MARSHAL_ELLIPSIS, MARSHAL_STOP_ITERATION */
		return 0;
	}
}

static bool is_code_only(unsigned type, bool is_text)
{
	return type && (strchr("[<>:yxcS.", (int)type) || (type == MARSHAL_STRING && !is_text));
}

static int skip_reference(struct marshal *m, struct marshal_value *ret_value)
{
	uint32_t index;
	int err = take(m, 4, &index);

	if (err)
		return err;
	if (index >= m->slots.bytes / sizeof(*ret_value))
		return marshal_wrong(m, "a reference leads to nothing");
	memcpy(ret_value, m->slots.data + index * sizeof(*ret_value), sizeof(*ret_value));
	return 0;
}

/* is_text: what Python 2 writes as bytes is a text here. */
static int skip_object(struct marshal *m, unsigned depth, bool is_text, struct marshal_value *ret_value)
{
	const unsigned char *head;
	unsigned type, byte;
	int err;

	if (depth == NESTED_MAX)
		return marshal_wrong(m, "a code object is nested too deep");
	if (input_peek(m->in, &head, 1) == 0)
		return marshal_wrong(m, "it ends too early");
	byte = head[0];
	type = byte & ~(unsigned)MARSHAL_FLAG_REF;
	*ret_value = (struct marshal_value){.kind = MARSHAL_IS_OTHER, .slot = MARSHAL_NO_SLOT};
	if (type == MARSHAL_REF || is_code_only(type, is_text)) {
		err = pass(m, 1);
		if (err)
			return err;
		if (type == MARSHAL_REF)
			return skip_reference(m, ret_value);
		if (byte & MARSHAL_FLAG_REF)
			err = marshal_add_slot(m, ret_value);
		return err ? err : skip_by_type(m, depth + 1, type);
	}
	err = marshal_next(m, ret_value);
	if (!err && ret_value->kind == MARSHAL_IS_TUPLE)
		err = skip_items(m, depth + 1, ret_value->index);
	else if (!err && ret_value->kind == MARSHAL_IS_DICT)
		err = marshal_wrong(m, "a code object holds a dictionary");
	else if (!err && ret_value->kind == MARSHAL_IS_NULL)
		err = marshal_wrong(m, "a code object has a hole");
	return err;
}

/* How many numbers a code object begins with, by where the bytecode stands behind them. 0: nowhere. */
static unsigned count_numbers(struct marshal *m)
{
	const unsigned char *head;
	size_t bytes = input_peek(m->in, &head, 4 * 6 + 5);

	for (unsigned count = 6; count >= 4; count--) {
		const unsigned char *at = head + (size_t)4 * count;

		if (bytes >= (size_t)4 * count + 5 && (at[0] & ~MARSHAL_FLAG_REF) == MARSHAL_STRING && at[4] == 0 &&
		    ((uint32_t)at[1] | (uint32_t)at[2] << 8 | (uint32_t)at[3] << 16) < CODE_BYTES_MAX)
			return count;
	}
	return 0;
}

static int skip_code(struct marshal *m, unsigned depth, struct code *ret_code)
{
	struct marshal_value objects[CODE_OBJECTS], more;
	unsigned numbers = count_numbers(m);
	bool is_new;
	int err;

	if (numbers == 0)
		return marshal_wrong(m, "a code object is of no Python that is known");
	err = pass(m, (uint64_t)4 * numbers);
	for (unsigned i = 0; i < CODE_OBJECTS && !err; i++)
		err = skip_object(m, depth, i >= 5, &objects[i]);
	if (!err)
		err = take(m, 4, &ret_code->line);
	if (err)
		return err;
	is_new = numbers == 5 && objects[4].kind != MARSHAL_IS_TUPLE;
	for (int i = 0; i < 1 + is_new && !err; i++)
		err = skip_object(m, depth, false, &more);
	if (err)
		return err;
	if (objects[is_new ? 5 : 6].kind != MARSHAL_IS_TEXT || objects[is_new ? 6 : 7].kind != MARSHAL_IS_TEXT)
		return marshal_wrong(m, "a code object has no name");
	ret_code->file = objects[is_new ? 5 : 6].index;
	ret_code->name = objects[is_new ? 6 : 7].index;
	return 0;
}

int marshal_skip_code(struct marshal *m, uint32_t *ret_name, uint32_t *ret_file, uint32_t *ret_line)
{
	struct code code;
	int err = skip_code(m, 0, &code);

	if (err)
		return err;
	*ret_name = code.name;
	*ret_file = code.file;
	*ret_line = code.line;
	return 0;
}
