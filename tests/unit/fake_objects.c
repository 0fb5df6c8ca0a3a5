/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_objects.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ARENA_BYTES = 8 << 20, STR_SUBCLASS = 1 << 28, INT_SUBCLASS = 1 << 24 };

static _Alignas(4096) unsigned char arena[ARENA_BYTES];
static size_t arena_used;

static const struct pyabi abis[FAKE_LAYOUTS] = {
	[FAKE_38] = {
		.str_layout = STR_TO_311, .attrs = ATTRS_DICTOFFSET, .dict_keys = KEYS_SIZE,
		.interp = {.modules = 56},
		.str = {.length = 16, .state = 32, .ascii_text = 48, .text = 72},
		.bytes = {.size = 16, .data = 32},
		.tuple = {.size = 16, .items = 24},
		.type = {.type = 8, .name = 24, .basicsize = 32, .flags = 168, .dictoffset = 288, .cached_keys = 872},
		.dict = {.keys = 32, .values = 40},
	},
	[FAKE_311] = {
		.str_layout = STR_TO_311, .attrs = ATTRS_311, .dict_keys = KEYS_LOG2,
		.interp = {.modules = 888},
		.str = {.length = 16, .state = 32, .ascii_text = 48, .text = 72},
		.bytes = {.size = 16, .data = 32},
		.tuple = {.size = 16, .items = 24},
		.type = {.type = 8, .name = 24, .basicsize = 32, .flags = 168, .dictoffset = 288, .cached_keys = 872},
		.dict = {.keys = 32, .values = 40},
	},
	[FAKE_312] = {
		.str_layout = STR_312, .attrs = ATTRS_312, .dict_keys = KEYS_LOG2,
		.interp = {.modules = 944},
		.frame = {.code = 0, .bytes = 72},
		.str = {.length = 16, .state = 32, .ascii_text = 40, .text = 56},
		.bytes = {.size = 16, .data = 32},
		.tuple = {.size = 16, .items = 24},
		.type = {.type = 8, .name = 24, .basicsize = 32, .flags = 168, .dictoffset = 288, .cached_keys = 880},
		.dict = {.keys = 32, .values = 40},
	},
	[FAKE_313] = {
		.str_layout = STR_312, .attrs = ATTRS_INLINE, .dict_keys = KEYS_LOG2,
		.interp = {.modules = 1000},
		.str = {.length = 16, .state = 32, .ascii_text = 40, .text = 56},
		.bytes = {.size = 16, .data = 32},
		.tuple = {.size = 16, .items = 24},
		.type = {.type = 8, .name = 24, .basicsize = 32, .flags = 168, .dictoffset = 288, .cached_keys = 880},
		.dict = {.keys = 32, .values = 40},
	},
};

const struct pyabi *fake_abi(enum fake_layout layout)
{
	return &abis[layout];
}

const struct remote *fake_remote(void)
{
	static struct remote remote;

	remote = (struct remote){.pid = getpid(), .mem_fd = -1};
	return &remote;
}

void fake_reset(void)
{
	memset(arena, 0, arena_used);
	arena_used = 0;
}

raddr_t fake_alloc(size_t bytes)
{
	size_t at = arena_used;

	arena_used += (bytes + 15) & ~(size_t)15;
	cr_assert(arena_used <= ARENA_BYTES);
	return (raddr_t)(uintptr_t)(arena + at);
}

void fake_put(raddr_t at, const void *data, size_t bytes)
{
	memcpy((void *)(uintptr_t)at, data, bytes);
}

void fake_put_u64(raddr_t at, uint64_t value)
{
	fake_put(at, &value, sizeof(value));
}

raddr_t fake_unmapped(void)
{
	static void *hole;

	if (hole == NULL)
		hole = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(hole != MAP_FAILED);
	return (raddr_t)(uintptr_t)hole + 4096;
}

raddr_t fake_type(const struct pyabi *abi, const char *name, uint64_t flags)
{
	raddr_t type = fake_alloc(1024), text = fake_alloc(strlen(name) + 1);

	fake_put(text, name, strlen(name) + 1);
	fake_put_u64(type + (raddr_t)abi->type.name, text);
	fake_put_u64(type + (raddr_t)abi->type.flags, flags);
	return type;
}

raddr_t fake_str_of(const struct pyabi *abi, unsigned kind, const void *units, uint64_t count)
{
	bool ascii = kind == 1;
	size_t text;
	raddr_t str;
	uint32_t state;

	for (uint64_t i = 0; ascii && i < count; i++)
		ascii = ((const unsigned char *)units)[i] < 0x80;
	text = (size_t)(ascii ? abi->str.ascii_text : abi->str.text);
	/* Bits 8 and up are rubbish in real ones, too. */
	state = 0xabcdef00 | kind << 2 | 1 << 5 | (uint32_t)ascii << 6;
	str = fake_alloc(text + (size_t)(count + 1) * kind);
	fake_put_u64(str + (raddr_t)abi->type.type, fake_type(abi, "str", STR_SUBCLASS));
	fake_put_u64(str + (raddr_t)abi->str.length, count);
	fake_put(str + (raddr_t)abi->str.state, &state, sizeof(state));
	fake_put(str + text, units, (size_t)count * kind);
	return str;
}

raddr_t fake_str(const struct pyabi *abi, const char *ascii)
{
	return fake_str_of(abi, 1, ascii, strlen(ascii));
}

raddr_t fake_int(const struct pyabi *abi, uint64_t value)
{
	raddr_t object = fake_alloc(40);
	uint64_t count = 0;

	fake_put_u64(object + (raddr_t)abi->type.type, fake_type(abi, "int", INT_SUBCLASS));
	for (uint64_t rest = value; rest != 0; rest >>= 30, count++) {
		uint32_t digit = rest & 0x3fffffff;

		fake_put(object + 24 + 4 * count, &digit, sizeof(digit));
	}
	if (abi->str_layout == STR_312)
		count = count == 0 ? 1 : count << 3;
	fake_put_u64(object + 16, count);
	return object;
}

raddr_t fake_keys(const struct pyabi *abi, enum fake_keys kind, const raddr_t *keys, const raddr_t *values, size_t count)
{
	unsigned log2_size = 3, index_bytes;
	size_t head = abi->dict_keys == KEYS_SIZE ? 40 : 32;
	size_t stride = abi->dict_keys == KEYS_SIZE || kind == FAKE_GENERAL ? 24 : 16;
	raddr_t object, entry;

	while ((UINT64_C(1) << log2_size) * 2 / 3 < count)
		log2_size++;
	index_bytes = log2_size < 8 ? 1 : log2_size < 16 ? 2 : 4;
	object = fake_alloc(head + (index_bytes << log2_size) + count * stride);
	if (abi->dict_keys == KEYS_SIZE) {
		fake_put_u64(object + 8, UINT64_C(1) << log2_size);
		fake_put_u64(object + 32, count);
	} else {
		unsigned char bytes[3] = {(unsigned char)log2_size, (unsigned char)(log2_size + index_bytes / 2), (unsigned char)kind};

		fake_put(object + 8, bytes, sizeof(bytes));
		fake_put_u64(object + 24, count);
	}
	entry = object + head + (index_bytes << log2_size);
	for (size_t i = 0; i < count; i++, entry += stride) {
		if (stride == 24)
			fake_put_u64(entry, UINT64_C(0x5eed5eed5eed5eed) ^ i);
		fake_put_u64(entry + stride - 16, keys[i]);
		fake_put_u64(entry + stride - 8, kind == FAKE_SPLIT ? 0 : values[i]);
	}
	return object;
}

raddr_t fake_dict(const struct pyabi *abi, enum fake_keys kind, const raddr_t *keys, const raddr_t *values, size_t count)
{
	raddr_t dict = fake_alloc(48), array;

	fake_put_u64(dict + (raddr_t)abi->dict.keys, fake_keys(abi, kind, keys, values, count));
	if (kind == FAKE_SPLIT) {
		size_t head = abi->attrs == ATTRS_INLINE ? 8 : 0;

		array = fake_alloc(head + count * sizeof(values[0]));
		fake_put(array + head, values, count * sizeof(values[0]));
		fake_put_u64(dict + (raddr_t)abi->dict.values, array);
	}
	return dict;
}

raddr_t fake_data_stack(struct thread *t, uint32_t bytes, uint32_t copy_bytes)
{
	raddr_t base = fake_alloc(bytes);

	t->chunks = calloc(1, sizeof(*t->chunks));
	cr_assert_not_null(t->chunks);
	t->chunks[0] = (struct chunk){.base = base, .size_bytes = bytes, .copy_bytes = copy_bytes};
	t->chunk_count = 1;
	return base;
}
