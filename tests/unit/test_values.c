/* SPDX-License-Identifier: Apache-2.0 */
/* Objects laid out by hand, as text; then such that nobody sane would lay out. */
#include "sampler/values/value.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/values/locals.h"
#include "tests/unit/fake_objects.h"

static const struct value_limits limits = {.points = 10, .items = 5, .depth = 3, .bytes = 400, .reads = 4000};
static struct buf shown;

/* The version whose objects are like those of the layout. */
static const struct pyobjects *objects_of(enum fake_layout layout)
{
	static const uint8_t minors[] = {[FAKE_38] = 8, [FAKE_311] = 11, [FAKE_312] = 12, [FAKE_313] = 13};
	const struct pyobjects *objects = pyobjects_of(&(struct pyabi){.major = 3, .minor = minors[layout]});

	cr_assert_not_null(objects);
	return objects;
}

static struct value_reader reader_in(enum fake_layout layout)
{
	return (struct value_reader){.remote = fake_remote(), .abi = fake_abi(layout), .objects = objects_of(layout), .limits = &limits};
}

static const char *show(enum fake_layout layout, raddr_t object)
{
	struct value_reader v = reader_in(layout);

	shown.bytes = 0;
	v.to = &shown;
	value_show(&v, object);
	cr_assert(v.depth == 0);
	return buf_text(&shown);
}

static raddr_t object(enum fake_layout layout, const char *type, size_t bytes)
{
	raddr_t at = fake_alloc(bytes);

	fake_put_u64(at + 8, fake_type(fake_abi(layout), type, 0));
	return at;
}

static raddr_t list(enum fake_layout layout, const raddr_t *items, uint64_t count)
{
	raddr_t at = object(layout, "list", 40), array = fake_alloc((size_t)count * 8 + 8);

	fake_put(array, items, (size_t)count * sizeof(*items));
	fake_put_u64(at + 16, count);
	fake_put_u64(at + 24, array);
	return at;
}

static raddr_t tuple(enum fake_layout layout, const raddr_t *items, uint64_t count)
{
	raddr_t at = object(layout, "tuple", 24 + (size_t)count * 8);

	fake_put_u64(at + 16, count);
	fake_put(at + 24, items, (size_t)count * sizeof(*items));
	return at;
}

/* Of `count` digits, each the largest. */
static raddr_t large(enum fake_layout layout, uint64_t count, bool negative)
{
	raddr_t at = object(layout, "int", 24 + (size_t)count * 4);

	if (objects_of(layout)->int_tag)
		fake_put_u64(at + 16, count << 3 | (negative ? 2 : 0));
	else
		fake_put_u64(at + 16, negative ? 0 - count : count);
	for (uint64_t i = 0; i < count; i++)
		fake_put(at + 24 + 4 * i, &(uint32_t){0x3fffffff}, 4);
	return at;
}

static raddr_t number(enum fake_layout layout, double value)
{
	raddr_t at = object(layout, "float", 24);

	fake_put(at + 16, &value, sizeof(value));
	return at;
}

Test(values, ints, .init = fake_reset)
{
	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);

		cr_assert_str_eq(show(i, fake_int(abi, 0)), "0");
		cr_assert_str_eq(show(i, fake_int(abi, 1000000000)), "1000000000");
		cr_assert_str_eq(show(i, fake_int(abi, UINT64_MAX)), "18446744073709551615");
		cr_assert_str_eq(show(i, large(i, 1, true)), "-1073741823");
		cr_assert_str_eq(show(i, large(i, 4, true)), "-1329227995784915872903807060280344575");
		cr_assert(strlen(show(i, large(i, 476, false))) == 4299);
		cr_assert_str_eq(show(i, large(i, 477, false)), "<int of 4308 digits>");
		cr_assert_str_eq(show(i, large(i, 478, false)), "<int of 14340 bits>");
	}
}

Test(values, floats, .init = fake_reset)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0, "0.0"}, {-0.0, "-0.0"}, {1, "1.0"}, {0.1, "0.1"}, {1.0 / 3, "0.3333333333333333"}, {1e16, "1e+16"}, {1e15, "1000000000000000.0"},
		{123456789012345680.0, "1.2345678901234568e+17"}, {0.0001, "0.0001"}, {0.00001, "1e-05"}, {5e-324, "5e-324"}, {1.7976931348623157e308, "1.7976931348623157e+308"},
		{-1234.5, "-1234.5"}, {1e100, "1e+100"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_str_eq(show(FAKE_312, number(FAKE_312, cases[i].value)), cases[i].text);
}

Test(values, text, .init = fake_reset)
{
	const struct pyabi *abi = fake_abi(FAKE_312);
	const uint16_t wide[] = {0x3b1, 0xd800, 0x2028, '\n'};

	cr_assert_str_eq(show(FAKE_312, fake_str(abi, "")), "''");
	cr_assert_str_eq(show(FAKE_312, fake_str(abi, "it's")), "\"it's\"");
	cr_assert_str_eq(show(FAKE_312, fake_str(abi, "'\"\\\x01")), "'\\'\"\\\\\\x01'");
	cr_assert_str_eq(show(FAKE_312, fake_str_of(abi, 2, wide, 4)), "'α\\ud800\\u2028\\n'");
	cr_assert_str_eq(show(FAKE_312, fake_str(abi, "0123456789abc")), "'0123456789'… 3 more");
	cr_assert_str_eq(show(FAKE_312, fake_str(abi, "x://u:pw@h")), "'x://u:***@h'");
}

Test(values, containers_are_bounded, .init = fake_reset)
{
	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);
		raddr_t one = fake_int(abi, 1), ones[] = {one, one, one, one, one, one, one}, deep = list(i, ones, 1);
		raddr_t keys[] = {fake_str(abi, "a"), fake_str(abi, "password")}, values[] = {one, one}, dict, cycle;

		cr_assert_str_eq(show(i, list(i, ones, 0)), "[]");
		cr_assert_str_eq(show(i, list(i, ones, 3)), "[1, 1, 1]");
		cr_assert_str_eq(show(i, list(i, ones, 7)), "[1, 1, 1, 1, 1, … 2 more]");
		cr_assert_str_eq(show(i, tuple(i, ones, 1)), "(1,)");
		for (int k = 0; k < 10; k++)
			deep = list(i, &deep, 1);
		cr_assert_str_eq(show(i, deep), "[[[[… 1 more]]]]");
		dict = fake_dict(abi, FAKE_GENERAL, keys, values, 2);
		fake_put_u64(dict + 8, fake_type(abi, "dict", 0));
		fake_put_u64(dict + 16, 2);
		cr_assert_str_eq(show(i, dict), "{'a': 1, 'password': <hidden>}");
		cycle = list(i, ones, 2);
		fake_put_u64(*(raddr_t *)(uintptr_t)(cycle + 24), cycle);
		cr_assert_str_eq(show(i, cycle), "[[...], 1]");
	}
}

/* Each pointer and length of a value is made nonsense of, in turn. */
Test(values, hostile, .init = fake_reset)
{
	const uint64_t nonsense[] = {0, 1, fake_unmapped(), UINT64_MAX, UINT64_MAX / 8, INT64_MAX, UINT64_C(1) << 40, UINT32_MAX};
	static const char *const types[] = {"int", "str", "bytes", "list", "tuple", "dict", "set", "frozenset", "function", "method", "cell", "range",
	                                    "slice", "bytearray", "collections.deque", "datetime.datetime", "decimal.Decimal", "numpy.ndarray", "module",
	                                    "generator", "dict_items", "types.SimpleNamespace", "functools.partial", "datetime.timezone"};

	for (int i = 0; i < FAKE_LAYOUTS; i++)
		for (size_t type = 0; type < sizeof(types) / sizeof(types[0]); type++)
			for (size_t k = 0; k < 64; k++) {
				raddr_t at;

				fake_reset();
				at = object(i, types[type], 128);
				for (size_t word = 0; word < 14; word++)
					fake_put_u64(at + 16 + 8 * word, nonsense[(k + word * (1 + k / 8)) % 8]);
				cr_assert(strlen(show(i, at)) < 1000);
			}
	cr_assert_str_eq(show(FAKE_312, fake_unmapped()), "<unreadable>");
	cr_assert_str_eq(show(FAKE_312, 0), "<unreadable>");
}

/* A code object with these variables, and a frame of it. */
static raddr_t frame_with(const char *const *names, const uint8_t *kinds, const raddr_t *slots, uint64_t count, raddr_t *ret_code)
{
	const struct pyobjects *objects = objects_of(FAKE_312);
	const struct pyabi *abi = fake_abi(FAKE_312);
	raddr_t code = fake_alloc(256), frame = fake_alloc(512), strs[8], bytes = fake_alloc(64);

	for (uint64_t i = 0; i < count; i++)
		strs[i] = fake_str(abi, names[i]);
	fake_put_u64(bytes + 16, count);
	fake_put(bytes + 32, kinds, (size_t)count);
	fake_put_u64(code + (raddr_t)objects->code.localsplusnames, tuple(FAKE_312, strs, count));
	fake_put_u64(code + (raddr_t)objects->code.localspluskinds, bytes);
	fake_put(code + (raddr_t)objects->code.flags, &(int32_t){CODE_OPTIMIZED | CODE_VARARGS}, 4);
	fake_put(code + (raddr_t)objects->code.argcount, &(int32_t){1}, 4);
	fake_put_u64(frame + (raddr_t)abi->frame.code, code);
	fake_put(frame + (raddr_t)abi->frame.bytes, slots, (size_t)count * sizeof(*slots));
	*ret_code = code;
	return frame;
}

static void release(struct frame_locals *locals)
{
	for (uint32_t i = 0; i < locals->count; i++) {
		free(locals->items[i].name);
		free(locals->items[i].value);
		free(locals->items[i].type);
	}
	free(locals->items);
}

Test(values, locals_of_a_frame, .init = fake_reset)
{
	const struct pyabi *abi = fake_abi(FAKE_312);
	const char *const names[] = {"a", "args", "unset", "shared", "empty", "api_key"};
	const uint8_t kinds[] = {0x20, 0x20, 0x20, 0x60, 0x80, 0x20};
	raddr_t one = fake_int(abi, 1), cell = object(FAKE_312, "cell", 24), empty = object(FAKE_312, "cell", 24), code;
	raddr_t slots[] = {one, tuple(FAKE_312, &one, 1), 0, cell, empty, one};
	raddr_t frame = frame_with(names, kinds, slots, 6, &code);
	struct value_reader reader = reader_in(FAKE_312);
	struct frame_locals locals = {0}, other = {0};

	fake_put_u64(cell + 16, fake_int(abi, 7));
	locals_read(&reader, frame, code, 3, &locals);
	cr_assert(!locals.gone && locals.count == 4);
	cr_assert_str_eq(locals.items[0].name, "a");
	cr_assert_str_eq(locals.items[0].value, "1");
	cr_assert(locals.items[0].argument && locals.items[1].argument && !locals.items[2].argument);
	cr_assert_str_eq(locals.items[1].value, "(1,)");
	cr_assert_str_eq(locals.items[2].name, "shared");
	cr_assert_str_eq(locals.items[2].value, "7");
	cr_assert_str_eq(locals.items[3].value, "<hidden>");
	cr_assert_str_eq(locals.items[3].type, "int");
	release(&locals);
	locals_read(&reader, frame, one, 3, &other);
	cr_assert(other.gone && other.count == 0);
	release(&other);
}

/* A variable that another thread binds anew all the time is one of its values, or "<changed>". */
struct binder {
	raddr_t slot, values[2];
	bool stop;
};

static void *bind(void *context)
{
	struct binder *binder = context;

	for (unsigned i = 0; !__atomic_load_n(&binder->stop, __ATOMIC_RELAXED); i++)
		__atomic_store_n((uint64_t *)(uintptr_t)binder->slot, binder->values[i % 2], __ATOMIC_RELAXED);
	return NULL;
}

Test(values, changing, .init = fake_reset)
{
	const struct pyabi *abi = fake_abi(FAKE_312);
	const char *const names[] = {"x"};
	const uint8_t kinds[] = {0x20};
	raddr_t one = fake_int(abi, 1), twos[] = {fake_int(abi, 2), fake_int(abi, 2)}, code, frame = frame_with(names, kinds, &one, 1, &code);
	struct binder binder = {.slot = frame + (raddr_t)abi->frame.bytes, .values = {one, list(FAKE_312, twos, 2)}};
	struct value_reader reader = reader_in(FAKE_312);
	pthread_t thread;

	cr_assert(pthread_create(&thread, NULL, bind, &binder) == 0);
	for (int i = 0; i < 500; i++) {
		struct frame_locals locals = {0};

		locals_read(&reader, frame, code, 3, &locals);
		cr_assert(!locals.gone && locals.count == 1);
		cr_assert(strcmp(locals.items[0].value, "1") == 0 || strcmp(locals.items[0].value, "[2, 2]") == 0 ||
		          strcmp(locals.items[0].value, "<changed>") == 0, "%s", locals.items[0].value);
		release(&locals);
	}
	__atomic_store_n(&binder.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}
