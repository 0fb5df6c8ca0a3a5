/* SPDX-License-Identifier: Apache-2.0 */
/* Dicts, attributes, ints and thread names of objects laid out by hand, in an old and several newer layouts; then of
 * objects that nobody sane would lay out. */
#include "sampler/pyobj.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler/pydict.h"
#include "tests/unit/fake_objects.h"

enum { MANAGED_DICT = 1 << 4, INLINE_VALUES = 1 << 2 };

static int get(const struct pyabi *abi, raddr_t dict, const char *key, raddr_t *ret_value)
{
	return pyobj_dict_get(fake_remote(), abi, dict, key, ret_value);
}

Test(pyobj, dict_get_in_every_layout, .init = fake_reset)
{
	const uint16_t chinese[] = {0x6f22, 0x5b57};

	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);
		const char *longer = "a key that does not fit the part of it that is read with its entry";
		raddr_t keys[] = {fake_str(abi, "alpha"), fake_str(abi, "omega"), fake_str_of(abi, 2, chinese, 2), fake_str(abi, longer)};
		raddr_t values[] = {0x1000, 0x2000, 0x3000, 0x4000};

		for (int kind = FAKE_GENERAL; kind <= FAKE_SPLIT; kind++) {
			raddr_t dict = fake_dict(abi, (enum fake_keys)kind, keys, values, 4), value = 0;

			cr_assert(get(abi, dict, "alpha", &value) == 0 && value == 0x1000);
			cr_assert(get(abi, dict, "omega", &value) == 0 && value == 0x2000);
			cr_assert(get(abi, dict, "\u6f22\u5b57", &value) == 0 && value == 0x3000);
			cr_assert(get(abi, dict, longer, &value) == 0 && value == 0x4000);
			value = 7;
			cr_assert(get(abi, dict, "alph", &value) == -ENOENT);
			cr_assert(get(abi, dict, "alphb", &value) == -ENOENT);
			cr_assert(get(abi, dict, "", &value) == -ENOENT && value == 7);
		}
	}
}

/* Deleted entries (no key, or no value) are not found, and int keys are no str. */
Test(pyobj, dict_with_holes, .init = fake_reset)
{
	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);
		raddr_t keys[] = {0, fake_str(abi, "gone"), fake_int(abi, 4), fake_str(abi, "here")};
		raddr_t values[] = {0x1000, 0, 0x3000, 0x4000}, value;
		raddr_t dict = fake_dict(abi, FAKE_GENERAL, keys, values, 4);

		cr_assert(get(abi, dict, "gone", &value) == -ENOENT);
		cr_assert(get(abi, dict, "here", &value) == 0 && value == 0x4000);
		/* What has all the bytes of the str but not its type is not the key. */
		fake_put_u64(keys[3] + (raddr_t)abi->type.type, fake_type(abi, "impostor", 0));
		cr_assert(get(abi, dict, "here", &value) == -ENOENT);
	}
}

static int count_entries(void *context, const struct pykey *key)
{
	uint64_t *count = context;

	cr_assert(key->key != 0 && key->value == 0x1000 + *count);
	return ++*count == 777 ? 42 : 0;
}

Test(pyobj, dict_walk_in_many_batches, .init = fake_reset)
{
	enum { MANY = 700 };
	static raddr_t keys[MANY + 100], values[MANY + 100];
	char name[32];

	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);
		uint64_t count = 0;
		raddr_t dict, value;

		fake_reset();
		for (size_t k = 0; k < MANY + 100; k++) {
			snprintf(name, sizeof(name), "k%zu", k);
			keys[k] = fake_str(abi, name);
			values[k] = 0x1000 + k;
		}
		for (size_t size = 1; size < MANY; size += size / 3 + 1) { /* each width of the hash table's slots */
			dict = fake_dict(abi, FAKE_GENERAL, keys, values, size);
			snprintf(name, sizeof(name), "k%zu", size - 1);
			cr_assert(get(abi, dict, name, &value) == 0 && value == values[size - 1], "%zu entries", size);
		}
		dict = fake_dict(abi, FAKE_UNICODE, keys, values, MANY);
		cr_assert(pydict_walk(fake_remote(), abi, dict, count_entries, &count) == 0 && count == MANY);
		cr_assert(get(abi, dict, "k699", &value) == 0 && value == 0x1000 + 699);
		count = 0;
		dict = fake_dict(abi, FAKE_SPLIT, keys, values, MANY + 100);
		cr_assert(pydict_walk(fake_remote(), abi, dict, count_entries, &count) == 42 && count == 777);
	}
}

Test(pyobj, hostile_dicts, .init = fake_reset)
{
	static raddr_t wild[1000];
	raddr_t value = 7, dict, keys_of;

	for (size_t k = 0; k < 1000; k++)
		wild[k] = fake_unmapped() + 8 * k;
	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);
		raddr_t key = fake_str(abi, "key"), count_at = abi->dict_keys == KEYS_SIZE ? 32 : 24;

		cr_assert(get(abi, fake_unmapped(), "key", &value) == -EFAULT);
		cr_assert(get(abi, 0, "key", &value) == -EFAULT);
		dict = fake_alloc(48);
		fake_put_u64(dict + (raddr_t)abi->dict.keys, fake_unmapped());
		cr_assert(get(abi, dict, "key", &value) == -EFAULT);
		/* A dict that is its own keys, its own values, and full of itself. */
		fake_put_u64(dict + (raddr_t)abi->dict.keys, dict);
		fake_put_u64(dict + (raddr_t)abi->dict.values, dict);
		cr_assert(get(abi, dict, "key", &value) < 0);
		dict = fake_dict(abi, FAKE_GENERAL, &key, &key, 1);
		keys_of = *(const uint64_t *)(uintptr_t)(dict + (raddr_t)abi->dict.keys);
		fake_put_u64(keys_of + count_at, UINT64_C(1) << 60);
		cr_assert(get(abi, dict, "key", &value) == -EPROTO);
		fake_put_u64(keys_of + count_at, UINT64_MAX);
		cr_assert(get(abi, dict, "key", &value) == -EPROTO);
		fake_put_u64(keys_of + count_at, 1);
		fake_put_u64(keys_of + 8, UINT64_MAX); /* size; or its logarithms and the kind */
		cr_assert(get(abi, dict, "key", &value) == -EPROTO);
		/* Some keys that cannot be read are passed over; too many are an error. */
		wild[999] = key;
		dict = fake_dict(abi, FAKE_GENERAL, wild + 900, wild, 100);
		cr_assert(get(abi, dict, "key", &value) == 0 && value == wild[99]);
		dict = fake_dict(abi, FAKE_GENERAL, wild, wild, 1000);
		value = 7;
		cr_assert(get(abi, dict, "key", &value) == -EFAULT && value == 7);
	}
}

/* As many entries as are looked at, all of one key that cannot be the one, but has to be looked at on its own. */
Test(pyobj, search_has_a_budget, .init = fake_reset)
{
	static raddr_t keys[70000];
	const struct pyabi *abi = fake_abi(FAKE_311);
	raddr_t value, last = fake_str(abi, "last");

	keys[0] = fake_str(abi, "key");
	fake_put_u64(keys[0] + (raddr_t)abi->type.type, fake_type(abi, "impostor", 0));
	for (size_t k = 0; k < 70000; k++)
		keys[k] = keys[0];
	keys[69999] = last;
	cr_assert(get(abi, fake_dict(abi, FAKE_UNICODE, keys, keys, 70000), "key", &value) == -EPROTO);
	cr_assert(get(abi, fake_dict(abi, FAKE_UNICODE, keys, keys, 70000), "last", &value) == -ENOENT, "behind 65,536 entries");
	keys[65535] = last;
	cr_assert(get(abi, fake_dict(abi, FAKE_UNICODE, keys, keys, 70000), "last", &value) == 0);
}

Test(pyobj, ints, .init = fake_reset)
{
	static const uint64_t values[] = {0, 1, 0x3fffffff, 0x40000000, UINT64_C(139876543210496), UINT64_MAX};

	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);
		uint64_t got;
		raddr_t big = fake_int(abi, UINT64_MAX), negative = fake_int(abi, 5);
		uint32_t digit = 0x10; /* of weight 2^60: bit 64 */

		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			got = ~values[k];
			cr_assert(pyobj_u64(fake_remote(), abi, fake_int(abi, values[k]), &got) == 0 && got == values[k]);
		}
		fake_put(big + 32, &digit, sizeof(digit));
		cr_assert(pyobj_u64(fake_remote(), abi, big, &got) == -ERANGE);
		digit = 0x80000000;
		fake_put(big + 32, &digit, sizeof(digit));
		cr_assert(pyobj_u64(fake_remote(), abi, big, &got) == -EPROTO);
		fake_put_u64(big + 16, UINT64_C(1) << 60);
		cr_assert(pyobj_u64(fake_remote(), abi, big, &got) == -ERANGE);
		fake_put_u64(negative + 16, abi->str_layout == STR_312 ? (1 << 3 | 2) : (uint64_t)-1);
		cr_assert(pyobj_u64(fake_remote(), abi, negative, &got) == -ERANGE);
		cr_assert(pyobj_u64(fake_remote(), abi, fake_str(abi, "1"), &got) == -EPROTO);
		cr_assert(pyobj_u64(fake_remote(), abi, fake_unmapped(), &got) == -EFAULT);
	}
}

/* An instance of a Python class with attributes `names`, in the layout's usual place, or in a dict. */
static raddr_t make_instance(const struct pyabi *abi, bool in_dict, const raddr_t *names, const raddr_t *values, size_t count)
{
	enum { BASIC = 16, BEFORE = 32 };
	uint64_t flags = abi->attrs == ATTRS_DICTOFFSET ? 0 : abi->attrs == ATTRS_INLINE ? MANAGED_DICT | INLINE_VALUES : MANAGED_DICT;
	raddr_t type = fake_type(abi, "Thread", flags), object = fake_alloc(BEFORE + BASIC + 8 + 8 * count) + BEFORE;
	raddr_t dict = in_dict ? fake_dict(abi, FAKE_UNICODE, names, values, count) : 0;
	raddr_t array = fake_alloc(8 * count);
	unsigned char head[4] = {(unsigned char)count, (unsigned char)count, 1, !in_dict}; /* capacity, size, embedded, valid */

	fake_put(array, values, 8 * count);
	fake_put_u64(object + (raddr_t)abi->type.type, type);
	fake_put_u64(type + (raddr_t)abi->type.basicsize, BASIC);
	fake_put_u64(type + (raddr_t)abi->type.cached_keys, fake_keys(abi, FAKE_SPLIT, names, NULL, count));
	switch (abi->attrs) {
	case ATTRS_DICTOFFSET:
		fake_put_u64(type + (raddr_t)abi->type.dictoffset, BASIC);
		fake_put_u64(object + BASIC, in_dict ? dict : fake_dict(abi, FAKE_SPLIT, names, values, count));
		break;
	case ATTRS_311:
		fake_put_u64(object - 32, in_dict ? 0 : array);
		fake_put_u64(object - 24, dict);
		break;
	case ATTRS_312:
		fake_put_u64(object - 24, in_dict ? dict : array - 1);
		break;
	case ATTRS_INLINE:
		fake_put_u64(object - 24, dict);
		fake_put(object + BASIC, head, sizeof(head));
		if (!in_dict)
			fake_put(object + BASIC + 8, values, 8 * count);
		break;
	}
	return object;
}

static int attr(const struct pyabi *abi, raddr_t object, const char *name, raddr_t *ret_value)
{
	return pyobj_attr(fake_remote(), abi, object, name, ret_value);
}

Test(pyobj, attributes, .init = fake_reset)
{
	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);
		raddr_t names[] = {fake_str(abi, "_target"), fake_str(abi, "_unset"), fake_str(abi, "_name")};
		raddr_t values[] = {0x1000, 0, 0x3000}, value, object;

		for (int in_dict = 0; in_dict < 2; in_dict++) {
			object = make_instance(abi, in_dict, names, values, 3);
			cr_assert(attr(abi, object, "_name", &value) == 0 && value == 0x3000, "layout %d", i);
			cr_assert(attr(abi, object, "_target", &value) == 0 && value == 0x1000);
			cr_assert(attr(abi, object, "_unset", &value) == -ENOENT);
			cr_assert(attr(abi, object, "_none", &value) == -ENOENT);
		}
		if (abi->attrs == ATTRS_INLINE) { /* shared keys that grew beyond what this instance has room for */
			object = make_instance(abi, false, names, values, 3);
			fake_put(object + 16, "\2\2\1\1", 4);
			cr_assert(attr(abi, object, "_target", &value) == 0 && attr(abi, object, "_name", &value) == -ENOENT);
		}
		/* No dict at all: a class with __slots__, or written in C. */
		fake_put_u64(object + (raddr_t)abi->type.type, fake_type(abi, "slots", 0));
		cr_assert(attr(abi, object, "_name", &value) == -ENOENT);
		fake_put_u64(object + (raddr_t)abi->type.type, fake_unmapped());
		cr_assert(attr(abi, object, "_name", &value) == -EFAULT);
		cr_assert(attr(abi, fake_unmapped(), "_name", &value) == -EFAULT);
	}
}

Test(pyobj, thread_names, .init = fake_reset)
{
	const uint16_t chinese[] = {0x6f22, 0x5b57};
	const uint64_t wanted[] = {UINT64_C(0x7f0000002000), 77, UINT64_C(0x7f0000001000)};
	raddr_t found[3];
	char to[64];

	for (int i = 0; i < FAKE_LAYOUTS; i++) {
		const struct pyabi *abi = fake_abi((enum fake_layout)i);
		raddr_t name_attr = fake_str(abi, "_name"), names[] = {fake_str(abi, "MainThread"), fake_str_of(abi, 2, chinese, 2), fake_int(abi, 3)};
		raddr_t idents[] = {fake_int(abi, UINT64_C(0x7f0000001000)), fake_int(abi, UINT64_C(0x7f0000002000)), fake_int(abi, 3)};
		raddr_t threads[3], globals, modules, module = fake_alloc(32), interp = fake_alloc(2048), key;

		for (size_t k = 0; k < 3; k++)
			threads[k] = make_instance(abi, k == 1, &name_attr, &names[k], 1);
		cr_assert(pyobj_find_threads(fake_remote(), abi, interp, wanted, found, 3) == -EFAULT, "no modules yet");
		key = fake_str(abi, "_active");
		globals = fake_dict(abi, FAKE_GENERAL, idents, threads, 3);
		globals = fake_dict(abi, FAKE_UNICODE, &key, &globals, 1);
		fake_put_u64(module + 16, globals);
		key = fake_str(abi, "threading");
		modules = fake_dict(abi, FAKE_UNICODE, &key, &module, 1);
		fake_put_u64(interp + (raddr_t)abi->interp.modules, modules);
		cr_assert(pyobj_find_threads(fake_remote(), abi, interp, wanted, found, 3) == 2);
		cr_assert(found[0] == threads[1] && found[1] == 0 && found[2] == threads[0]);
		cr_assert(pyobj_thread_name(fake_remote(), abi, found[2], to, sizeof(to)) == 10);
		cr_assert(strcmp(to, "MainThread") == 0);
		cr_assert(pyobj_thread_name(fake_remote(), abi, found[0], to, sizeof(to)) == 6);
		cr_assert(strcmp(to, "\u6f22\u5b57") == 0);
		cr_assert(pyobj_thread_name(fake_remote(), abi, threads[2], to, sizeof(to)) == -EPROTO, "a name that is no str");
		fake_put_u64(key + (raddr_t)abi->str.length, 8);
		cr_assert(pyobj_find_threads(fake_remote(), abi, interp, wanted, found, 3) == -ENOENT, "without threading");
	}
}
