/* SPDX-License-Identifier: Apache-2.0 */
/* Dicts of the target, looked through in the order of insertion.
 *
 * A dict's hash cannot be used from outside (it is keyed with a secret of the target), so a look-up goes through all
 * entries. To be cheap all the same, it reads BATCH entries in one call and the heads of all their key objects in
 * another; what decides most keys is in the head. What costs a read for a single key has a budget of its own.
 * Layouts: Objects/dict-common.h to 3.10, Include/internal/pycore_dict.h since. */
#include "sampler/pydict.h"

#include <errno.h>
#include <string.h>

#include "sampler/pyobj.h"

enum {
	BATCH = 128,         /* entries at a time: 20 KiB of stack */
	ENTRIES_MAX = 65536, /* looked at */
	SINGLE_READS_MAX =
		256, /* in a walk: keys not read in the batch; in a search: keys that their head does not decide */
	ENTRY_BYTES_MAX = 24, /* hash, key, value */
	LOG2_SIZE_MAX = 32,   /* of the slots of a hash table: more than memory holds */
	NAME_BYTES_MAX = 255,
	STR_SUBCLASS_BIT = 28, /* Py_TPFLAGS_UNICODE_SUBCLASS */
	VALUES_HEAD_BYTES = 8, /* capacity, size, embedded, valid: 3.13+ */
};

/* A keys object's array of entries. */
struct entries {
	raddr_t first;
	uint64_t count;
	size_t stride, key_off; /* the value follows the key */
};

static uint64_t word_at(const unsigned char *bytes, size_t off)
{
	uint64_t word;

	memcpy(&word, bytes + off, sizeof(word));
	return word;
}

static int find_entries(struct entries *ret_entries, const struct remote *r, const struct pyabi *abi, raddr_t keys)
{
	unsigned char head[40];
	struct entries e = {.stride = 24, .key_off = 8};
	uint64_t size;
	int err = remote_read(r, keys, head, sizeof(head));

	if (err != 0)
		return err;
	if (abi->dict_keys == KEYS_SIZE) {
		size = word_at(head, 8);
		if (size > UINT64_C(1) << LOG2_SIZE_MAX)
			return -EPROTO;
		e.count = word_at(head, 32);
		e.first = keys + 40 + size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
	} else {
		if (head[8] > LOG2_SIZE_MAX || head[9] > LOG2_SIZE_MAX + 3 || head[10] > 2)
			return -EPROTO;
		size = UINT64_C(1) << head[8];
		e.count = word_at(head, 24);
		e.first = keys + 32 + (UINT64_C(1) << head[9]);
		if (head[10] != 0) { /* all keys are str: no room for the hash, which the str has */
			e.stride = 16;
			e.key_off = 0;
		}
	}
	if (e.count > size)
		return -EPROTO;
	if (e.count > ENTRIES_MAX)
		e.count = ENTRIES_MAX;
	*ret_entries = e;
	return 0;
}

/* Entries at hand, and the heads of their key objects. */
struct batch {
	struct pykey keys[BATCH];
	size_t count;
	unsigned char heads[BATCH][PYKEY_HEAD_BYTES];
};

/* The part of `count` entries from number `from` on that have both key and value. */
static int read_entries(struct batch *batch, const struct remote *r, const struct entries *e, struct pyvalues values,
                        uint64_t from, size_t count)
{
	unsigned char raw[BATCH * ENTRY_BYTES_MAX];
	uint64_t shared[BATCH];
	int err = remote_read(r, e->first + from * e->stride, raw, count * e->stride);

	if (err == 0 && values.address != 0)
		err = remote_read(r, values.address + from * sizeof(shared[0]), shared, count * sizeof(shared[0]));
	if (err != 0)
		return err;
	batch->count = 0;
	for (size_t i = 0; i < count; i++) {
		size_t off = i * e->stride + e->key_off;
		struct pykey key = {.key = word_at(raw, off),
		                    .value = values.address != 0 ? shared[i] : word_at(raw, off + 8)};

		if (key.key != 0 && key.value != 0)
			batch->keys[batch->count++] = key;
	}
	return 0;
}

/* A read stops at the first bad piece: a wild pointer, or an object shorter than a head where the mapping ends. It is read on
 * its own, as far as it goes, and the rest behind it. */
static int read_heads(struct batch *batch, const struct remote *r, unsigned *single_reads)
{
	struct iovec local[BATCH], from[BATCH];
	size_t done = 0;

	for (size_t i = 0; i < batch->count; i++) {
		local[i] = (struct iovec){.iov_base = batch->heads[i], .iov_len = PYKEY_HEAD_BYTES};
		from[i] =
			(struct iovec){.iov_base = (void *)(uintptr_t)batch->keys[i].key, .iov_len = PYKEY_HEAD_BYTES};
	}
	while (done < batch->count) {
		int got = remote_readv(r, local + done, from + done, batch->count - done);

		if (got < 0)
			return got;
		for (int i = 0; i < got; i++, done++)
			batch->keys[done].head = batch->heads[done];
		if (done == batch->count)
			break;
		if (++*single_reads > SINGLE_READS_MAX)
			return -EFAULT;
		memset(batch->heads[done], 0, PYKEY_HEAD_BYTES);
		if (remote_read_some(r, batch->keys[done].key, batch->heads[done], PYKEY_HEAD_BYTES) > 0)
			batch->keys[done].head = batch->heads[done];
		done++;
	}
	return 0;
}

int pykeys_walk(const struct remote *r, const struct pyabi *abi, raddr_t keys, struct pyvalues values, pykey_fn *fn,
                void *context)
{
	struct batch batch;
	struct entries e;
	unsigned single_reads = 0;
	int err = find_entries(&e, r, abi, keys);

	if (err != 0)
		return err;
	if (values.address != 0 && e.count > values.count)
		e.count = values.count;
	for (uint64_t from = 0; from < e.count; from += BATCH) {
		uint64_t left = e.count - from;

		err = read_entries(&batch, r, &e, values, from, left < BATCH ? (size_t)left : BATCH);
		if (err == 0)
			err = read_heads(&batch, r, &single_reads);
		for (size_t i = 0; err == 0 && i < batch.count; i++)
			err = fn(context, &batch.keys[i]);
		if (err != 0)
			return err;
	}
	return 0;
}

/* A dict's own keys and values: 0 in values says that the entries hold the values. */
static int dict_parts(const struct remote *r, const struct pyabi *abi, raddr_t dict, raddr_t *ret_keys,
                      struct pyvalues *ret_values)
{
	uint64_t keys, values;
	int err = remote_read_u64(r, dict + (raddr_t)abi->dict.keys, &keys);

	if (err == 0)
		err = remote_read_u64(r, dict + (raddr_t)abi->dict.values, &values);
	if (err != 0)
		return err;
	*ret_keys = keys;
	*ret_values = (struct pyvalues){.address = values != 0 ? pyvalues_first(abi, values) : 0, .count = ENTRIES_MAX};
	return 0;
}

int pydict_walk(const struct remote *r, const struct pyabi *abi, raddr_t dict, pykey_fn *fn, void *context)
{
	struct pyvalues values;
	raddr_t keys;
	int err = dict_parts(r, abi, dict, &keys, &values);

	return err != 0 ? err : pykeys_walk(r, abi, keys, values, fn, context);
}

raddr_t pyvalues_first(const struct pyabi *abi, raddr_t values)
{
	return abi->attrs == ATTRS_INLINE ? values + VALUES_HEAD_BYTES : values;
}

struct search {
	const struct remote *r;
	const struct pyabi *abi;
	const char *name;
	size_t bytes;
	uint64_t length; /* in code points */
	unsigned single_reads;
	raddr_t value;
};

enum { FOUND = 1 };

/* Can the key be the one, as far as its head tells? */
static bool head_fits(const struct search *s, const unsigned char *head)
{
	size_t text = (size_t)s->abi->str.ascii_text, bytes = PYKEY_HEAD_BYTES - text;
	uint32_t state;
	bool compact, ascii;

	if (word_at(head, (size_t)s->abi->str.length) != s->length)
		return false;
	memcpy(&state, head + s->abi->str.state, sizeof(state));
	compact = (state >> 5 & 1) != 0;
	ascii = (state >> 6 & 1) != 0;
	if (ascii != (s->length == s->bytes))
		return false;
	if (!compact || !ascii)
		return true;
	return memcmp(head + text, s->name, s->bytes < bytes ? s->bytes : bytes) == 0;
}

/* Is the key a str of this text? A key that cannot be read is not the one. */
static int match_key(void *context, const struct pykey *key)
{
	struct search *s = context;
	char text[NAME_BYTES_MAX + 1];
	uint64_t flags;
	bool cut;

	if (key->head == NULL || !head_fits(s, key->head))
		return 0;
	if (++s->single_reads > SINGLE_READS_MAX)
		return -EPROTO;
	if (remote_read_u64(s->r, word_at(key->head, (size_t)s->abi->type.type) + (raddr_t)s->abi->type.flags,
	                    &flags) != 0 ||
	    (flags >> STR_SUBCLASS_BIT & 1) == 0)
		return 0;
	if (pyobj_str(s->r, s->abi, key->key, text, s->bytes + 1, &cut) != (int)s->bytes || cut ||
	    memcmp(text, s->name, s->bytes) != 0)
		return 0;
	s->value = key->value;
	return FOUND;
}

int pykeys_get(const struct remote *r, const struct pyabi *abi, raddr_t keys, struct pyvalues values, const char *name,
               raddr_t *ret_value)
{
	struct search s = {.r = r, .abi = abi, .name = name, .bytes = strlen(name)};
	int err;

	if (s.bytes > NAME_BYTES_MAX)
		return -EINVAL;
	if (abi->str.length > PYKEY_HEAD_BYTES - 8 || abi->str.state > PYKEY_HEAD_BYTES - 8 ||
	    abi->str.ascii_text > PYKEY_HEAD_BYTES || abi->type.type > PYKEY_HEAD_BYTES - 8)
		return -EPROTO;
	for (size_t i = 0; i < s.bytes; i++)
		s.length += (name[i] & 0xc0) != 0x80;
	err = pykeys_walk(r, abi, keys, values, match_key, &s);
	if (err < 0)
		return err;
	if (err != FOUND)
		return -ENOENT;
	*ret_value = s.value;
	return 0;
}

int pyobj_dict_get(const struct remote *r, const struct pyabi *abi, raddr_t dict, const char *key, raddr_t *ret_value)
{
	struct pyvalues values;
	raddr_t keys;
	int err = dict_parts(r, abi, dict, &keys, &values);

	return err != 0 ? err : pykeys_get(r, abi, keys, values, key, ret_value);
}
