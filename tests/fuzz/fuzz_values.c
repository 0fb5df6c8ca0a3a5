/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the memory of a target, read for the variables of a frame: no read or write out of bounds, an end, and text that is bounded.
 * Input: which version, which limits, then the memory, where a word that begins with a magic byte refers to another place in it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/values/locals.h"
#include "tests/fuzz/common.h"

enum { MEMORY_BYTES = 1 << 16, REFERENCE = 0xa5, MINORS = 10 };

/* The frame is the memory's begin, its code object and a list of types' names are in it. */
static _Alignas(4096) unsigned char memory[MEMORY_BYTES + 4096];

static const char *const names[] = {"int", "str", "dict", "list", "tuple", "float", "bytes", "set", "frozenset", "function", "method", "module",
                                    "cell", "range", "slice", "complex", "bytearray", "generator", "dict_items", "types.SimpleNamespace",
                                    "collections.deque", "collections.OrderedDict", "collections.defaultdict", "datetime.datetime",
                                    "datetime.timezone", "decimal.Decimal", "numpy.ndarray", "member_descriptor", "EnumType", "UUID", "PosixPath"};

/* A word with the magic byte on top is a place in the memory, or, with another one below, the name of a type. */
static uint64_t place(uint64_t word)
{
	if (word >> 56 != REFERENCE)
		return word;
	if (word >> 48 & 1)
		return (uint64_t)(uintptr_t)names[(word & 0xffff) % (sizeof(names) / sizeof(names[0]))];
	return (uint64_t)(uintptr_t)memory + (word & (MEMORY_BYTES - 1) & ~UINT64_C(7));
}

static void release(struct frame_locals *locals, uint32_t bytes_max)
{
	for (uint32_t i = 0; i < locals->count; i++) {
		expect(locals->items[i].name && locals->items[i].value && locals->items[i].type);
		expect(strlen(locals->items[i].value) <= bytes_max);
		free(locals->items[i].name);
		free(locals->items[i].value);
		free(locals->items[i].type);
	}
	free(locals->items);
}

/* 3.12's published words are in tables of ours only to that one; 3.13 and later lay their objects out alike, but for these. */
static struct pyabi abi_of(unsigned minor)
{
	struct pyabi abi = *pyabi_table(3, minor < 12 ? minor : 12);

	abi.minor = (uint8_t)minor;
	if (minor > 12)
		abi.attrs = ATTRS_INLINE;
	if (minor > 13)
		abi.tuple.items = 32;
	return abi;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct value_limits limits[] = {
		{.points = 20, .items = 5, .depth = 3, .bytes = 200, .reads = 500, .attributes = false},
		{.points = VALUE_POINTS_MAX, .items = 200, .depth = VALUE_DEPTH_MAX, .bytes = 2000, .reads = 2000, .attributes = true},
	};
	struct remote remote = {.pid = getpid(), .mem_fd = -1};
	struct frame_locals locals = {0};
	struct value_reader reader = {.remote = &remote};
	struct pyabi abi;

	if (bytes < 2)
		return 0;
	abi = abi_of(6 + data[0] % MINORS);
	reader.abi = &abi;
	reader.objects = pyobjects_of(&abi);
	reader.limits = &limits[data[1] & 1];
	reader.secrets = data[1] & 2;
	expect(reader.objects != NULL);
	data += 2;
	bytes -= 2;
	memset(memory, 0, sizeof(memory));
	memcpy(memory, data, bytes < MEMORY_BYTES ? bytes : MEMORY_BYTES);
	for (size_t at = 0; at < MEMORY_BYTES; at += 8) {
		uint64_t word;

		memcpy(&word, memory + at, sizeof(word));
		word = place(word);
		memcpy(memory + at, &word, sizeof(word));
	}
	/* The frame runs the code that lies behind it. */
	memcpy(memory + abi.frame.code, &(uint64_t){(uint64_t)(uintptr_t)memory + 1024}, sizeof(uint64_t));
	(void)locals_read(&reader, (raddr_t)(uintptr_t)memory, (raddr_t)(uintptr_t)memory + 1024, 1 + (data[-1] >> 2 & 1), &locals);
	release(&locals, 64 << 10);
	return 0;
}
