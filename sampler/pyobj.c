/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the target: ints, attributes of instances, and what threading calls a thread. Pointers are followed a fixed
 * number of steps, never around: what is wild or cyclic ends in an error. */
#include "sampler/pyobj.h"

#include <errno.h>
#include <string.h>

#include "sampler/pydict.h"

enum {
	INT_COUNT_OFF = 16, /* to 3.11 the signed count of digits; 3.12+ count << 3 | sign */
	INT_DIGITS_OFF = 24,
	INT_BYTES = 40, /* with the three digits that 64 bits can need */
	INT_DIGIT_BITS = 30,
	MODULE_DICT_OFF = 16,    /* md_dict, in all versions */
	MANAGED_DICT_OFF = 24,   /* before the object, 3.11+ */
	MANAGED_VALUES_OFF = 32, /* before the object, 3.11 */
	VALUES_VALID_OFF = 3,    /* u8 in the head of inline values, 3.13+ */
	VALUES_MAX = 65536,
};

/* Bits of tp_flags (Include/object.h). */
enum {
	TYPE_INLINE_VALUES = 1 << 2,
	TYPE_MANAGED_DICT = 1 << 4,
	TYPE_INT_SUBCLASS = 1 << 24,
	TYPE_STR_SUBCLASS = 1 << 28,
};

static uint64_t word_at(const unsigned char *bytes, size_t off)
{
	uint64_t word;

	memcpy(&word, bytes + off, sizeof(word));
	return word;
}

/* The int in the first INT_BYTES of an object. Its head changed in 3.12, as that of str did. */
static int parse_int(const struct pyabi *abi, const unsigned char *head, uint64_t *ret_value)
{
	uint64_t count = word_at(head, INT_COUNT_OFF), value = 0;

	if (abi->str_layout == STR_312) {
		if ((count & 3) == 2) /* negative; 1: zero */
			return -ERANGE;
		count = (count & 3) == 1 ? 0 : count >> 3;
	}
	if (count > 3)
		return -ERANGE;
	for (size_t i = (size_t)count; i-- > 0;) {
		uint32_t digit;

		memcpy(&digit, head + INT_DIGITS_OFF + i * sizeof(digit), sizeof(digit));
		if (digit >> INT_DIGIT_BITS != 0)
			return -EPROTO;
		if (value >> (64 - INT_DIGIT_BITS) != 0)
			return -ERANGE;
		value = value << INT_DIGIT_BITS | digit;
	}
	*ret_value = value;
	return 0;
}

static int object_type(const struct remote *r, const struct pyabi *abi, raddr_t object, raddr_t *ret_type,
                       uint64_t *ret_flags)
{
	int err = remote_read_u64(r, object + (raddr_t)abi->type.type, ret_type);

	return err != 0 ? err : remote_read_u64(r, *ret_type + (raddr_t)abi->type.flags, ret_flags);
}

int pyobj_u64(const struct remote *r, const struct pyabi *abi, raddr_t object, uint64_t *ret_value)
{
	unsigned char head[INT_BYTES] = {0};
	raddr_t type;
	uint64_t flags;
	ssize_t got;
	int err = object_type(r, abi, object, &type, &flags);

	if (err != 0)
		return err;
	if ((flags & TYPE_INT_SUBCLASS) == 0)
		return -EPROTO;
	/* A small int is shorter than this, and may lie where a mapping ends. */
	got = remote_read_some(r, object, head, sizeof(head));
	if (got < 0)
		return (int)got;
	if (got < INT_DIGITS_OFF + 4)
		return -EFAULT;
	return parse_int(abi, head, ret_value);
}

/* Where an instance's attributes are: shared keys with values of its own, or a dict. */
struct home {
	struct pyvalues values; /* address 0: in the dict */
	raddr_t dict;           /* 0: not made yet, so without attributes */
};

/* Where the object ends, of variable size: as _PyObject_VAR_SIZE() has it, whose count is negative in negative ints (to 3.11). */
static int find_end(const struct remote *r, const struct pyabi *abi, raddr_t object, raddr_t type, uint64_t *ret_bytes)
{
	uint64_t sizes[2], count; /* tp_basicsize, tp_itemsize */
	int err = remote_read(r, type + (raddr_t)abi->type.basicsize, sizes, sizeof(sizes));

	if (err == 0)
		err = remote_read_u64(r, object + INT_COUNT_OFF, &count);
	if (err != 0)
		return err;
	count = (int64_t)count < 0 ? 0 - count : count;
	if (sizes[0] > INT32_MAX || sizes[1] > INT16_MAX || count > INT32_MAX)
		return -EPROTO;
	*ret_bytes = (sizes[0] + count * sizes[1] + 7) & ~UINT64_C(7);
	return 0;
}

/* A dict at tp_dictoffset. A negative one counts from the end of an object of variable size, such as a member of an IntEnum. */
static int find_home_dictoffset(struct home *home, const struct remote *r, const struct pyabi *abi, raddr_t object,
                                raddr_t type)
{
	uint64_t off, bytes;
	int err = remote_read_u64(r, type + (raddr_t)abi->type.dictoffset, &off);

	if (err == 0 && (int64_t)off < 0) {
		err = find_end(r, abi, object, type, &bytes);
		off += bytes;
	}
	if (err != 0)
		return err;
	if (off == 0)
		return -ENOENT;
	if (off > INT64_C(1) << 48)
		return -EPROTO;
	return remote_read_u64(r, object + off, &home->dict);
}

static int find_home_311(struct home *home, const struct remote *r, raddr_t object)
{
	uint64_t words[2]; /* values, dict */
	int err = remote_read(r, object - MANAGED_VALUES_OFF, words, sizeof(words));

	if (err != 0)
		return err;
	home->values.address = words[0];
	home->dict = words[1];
	return 0;
}

static int find_home_312(struct home *home, const struct remote *r, raddr_t object)
{
	uint64_t word;
	int err = remote_read_u64(r, object - MANAGED_DICT_OFF, &word);

	if (err != 0)
		return err;
	if ((word & 1) != 0)
		home->values.address = word + 1;
	else
		home->dict = word;
	return 0;
}

static int find_home_inline(struct home *home, const struct remote *r, const struct pyabi *abi, raddr_t object,
                            raddr_t type, uint64_t flags)
{
	uint64_t size;
	unsigned char head[VALUES_VALID_OFF + 1]; /* capacity, size, embedded, valid */
	int err;

	if ((flags & TYPE_INLINE_VALUES) != 0) {
		err = remote_read_u64(r, type + (raddr_t)abi->type.basicsize, &size);
		if (err != 0)
			return err;
		if (size > INT32_MAX)
			return -EPROTO;
		err = remote_read(r, object + size, head, sizeof(head));
		if (err != 0)
			return err;
		if (head[VALUES_VALID_OFF] != 0) {
			home->values.address = pyvalues_first(abi, object + size);
			home->values.count = head[0];
			return 0;
		}
	}
	return remote_read_u64(r, object - MANAGED_DICT_OFF, &home->dict);
}

static int find_home(struct home *ret_home, const struct remote *r, const struct pyabi *abi, raddr_t object,
                     raddr_t *ret_type)
{
	struct home home = {.values.count = VALUES_MAX};
	uint64_t flags;
	int err = object_type(r, abi, object, ret_type, &flags);

	if (err != 0)
		return err;
	if (abi->attrs == ATTRS_DICTOFFSET || (flags & TYPE_MANAGED_DICT) == 0)
		err = find_home_dictoffset(&home, r, abi, object, *ret_type);
	else if (abi->attrs == ATTRS_311)
		err = find_home_311(&home, r, object);
	else if (abi->attrs == ATTRS_312)
		err = find_home_312(&home, r, object);
	else
		err = find_home_inline(&home, r, abi, object, *ret_type, flags);
	if (err == 0)
		*ret_home = home;
	return err;
}

int pyobj_attr(const struct remote *r, const struct pyabi *abi, raddr_t object, const char *name, raddr_t *ret_value)
{
	struct home home;
	raddr_t type, keys;
	int err = find_home(&home, r, abi, object, &type);

	if (err != 0)
		return err;
	if (home.values.address == 0)
		return home.dict == 0 ? -ENOENT : pyobj_dict_get(r, abi, home.dict, name, ret_value);
	err = remote_read_u64(r, type + (raddr_t)abi->type.cached_keys, &keys);
	return err != 0 ? err : pykeys_get(r, abi, keys, home.values, name, ret_value);
}

int pyobj_attrs_walk(const struct remote *r, const struct pyabi *abi, raddr_t object, pykey_fn *fn, void *context)
{
	struct home home;
	raddr_t type, keys;
	int err = find_home(&home, r, abi, object, &type);

	if (err != 0)
		return err == -ENOENT ? 0 : err;
	if (home.values.address == 0)
		return home.dict == 0 ? 0 : pydict_walk(r, abi, home.dict, fn, context);
	err = remote_read_u64(r, type + (raddr_t)abi->type.cached_keys, &keys);
	return err != 0 ? err : pykeys_walk(r, abi, keys, home.values, fn, context);
}

struct ident_search {
	const struct pyabi *abi;
	const uint64_t *idents;
	raddr_t *threads;
	uint32_t count, found;
};

/* The keys of threading._active are ints, all made by threading itself. */
static int match_ident(void *context, const struct pykey *key)
{
	struct ident_search *search = context;
	uint64_t ident;

	if (key->head == NULL || parse_int(search->abi, key->head, &ident) != 0)
		return 0;
	for (uint32_t i = 0; i < search->count; i++) {
		if (search->idents[i] == ident && search->threads[i] == 0) {
			search->threads[i] = key->value;
			search->found++;
		}
	}
	return search->found == search->count;
}

int pyobj_find_threads(const struct remote *r, const struct pyabi *abi, raddr_t interp, const uint64_t *idents,
                       raddr_t *ret_threads, uint32_t count)
{
	struct ident_search search = {.abi = abi, .idents = idents, .threads = ret_threads, .count = count};
	raddr_t modules, module, globals, active;
	int err = remote_read_u64(r, interp + (raddr_t)abi->interp.modules, &modules);

	memset(ret_threads, 0, count * sizeof(*ret_threads));
	if (err == 0)
		err = pyobj_dict_get(r, abi, modules, "threading", &module);
	if (err == 0)
		err = remote_read_u64(r, module + MODULE_DICT_OFF, &globals);
	if (err == 0)
		err = pyobj_dict_get(r, abi, globals, "_active", &active);
	if (err == 0)
		err = pydict_walk(r, abi, active, match_ident, &search);
	return err < 0 ? err : (int)search.found;
}

int pyobj_thread_name(const struct remote *r, const struct pyabi *abi, raddr_t thread, char *to, size_t room)
{
	raddr_t name, type;
	uint64_t flags;
	int err = pyobj_attr(r, abi, thread, "_name", &name);

	if (err == 0)
		err = object_type(r, abi, name, &type, &flags);
	if (err != 0)
		return err;
	if ((flags & TYPE_STR_SUBCLASS) == 0)
		return -EPROTO;
	return pyobj_str(r, abi, name, to, room, NULL);
}
