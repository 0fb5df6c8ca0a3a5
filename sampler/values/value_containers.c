/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, tuples, sets and deques: what is in them, up to a bound on each and on all together; one that lies within itself is "[...]". */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/secrets.h"
#include "sampler/values/value.h"

enum {
	VAR_SIZE = 16, /* of list, deque; tuple's is in struct pyabi */
	LIST_ITEMS = 24,
	SET_USED = 24,
	SET_MASK = 32,
	SET_TABLE = 40,
	SET_BATCH = 64,
	SET_SLOTS_MAX = 1 << 16, /* that are looked at */
	DEQUE_LEFT = 24,
	DEQUE_LEFT_INDEX = 40,
	DEQUE_MAXLEN = 64,
	DEQUE_BLOCK_ITEMS = 64,
	DEQUE_BLOCK_FIRST = 8,
	DEQUE_BLOCK_NEXT = 8 + 8 * DEQUE_BLOCK_ITEMS,
	ITEMS_MAX = 256, /* of a container, whatever the limits say */
};

bool value_enter(struct value_reader *v, raddr_t object, const char *open, const char *close, uint64_t count)
{
	buf_puts(v->to, open);
	for (uint32_t i = 0; i < v->depth; i++)
		if (v->path[i] == object) {
			buf_printf(v->to, "...%s", close);
			return false;
		}
	if (count > 0 && (v->depth >= v->limits->depth || v->depth >= VALUE_DEPTH_MAX)) {
		buf_printf(v->to, "… %" PRIu64 " more%s", count, close);
		return false;
	}
	if (count == 0) {
		buf_puts(v->to, close);
		return false;
	}
	v->path[v->depth++] = object;
	return true;
}

void value_leave(struct value_reader *v)
{
	v->depth--;
}

bool value_has_room(struct value_reader *v, uint64_t done, uint64_t count)
{
	if (done < v->limits->items && v->to->bytes - v->began < v->limits->bytes && v->reads < v->limits->reads) {
		if (done > 0)
			buf_puts(v->to, ", ");
		return true;
	}
	buf_printf(v->to, "%s… %" PRIu64 " more", done > 0 ? ", " : "", count - done);
	return false;
}

void value_show_named(struct value_reader *v, const char *name, const char *between, raddr_t object)
{
	buf_puts(v->to, name);
	buf_puts(v->to, between);
	if (!v->secrets && secrets_is_name(name, strlen(name)))
		buf_puts(v->to, VALUE_HIDDEN);
	else
		value_show(v, object);
}

/* `count` objects whose addresses lie in a row. */
static int show_row(struct value_reader *v, raddr_t from, uint64_t count)
{
	raddr_t items[ITEMS_MAX];
	uint64_t most = count < v->limits->items ? count : v->limits->items;
	bool secret = false;
	int err;

	if (most > ITEMS_MAX)
		most = ITEMS_MAX;
	err = most ? value_read(v, from, items, most * sizeof(items[0])) : 0;
	for (uint64_t i = 0; !err && i < count && value_has_room(v, i, count); i++) {
		size_t begins = v->to->bytes;

		if (secret)
			buf_puts(v->to, VALUE_HIDDEN);
		else
			value_show(v, items[i]);
		secret = !secret && !v->secrets && value_announces_secret(v, begins, count);
	}
	return err;
}

int value_show_list(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	uint64_t words[2]; /* size, array */
	int err = value_read(v, object + VAR_SIZE, words, sizeof(words));

	(void)type;
	if (!err && words[0] > VALUE_COUNT_MAX)
		err = -EPROTO;
	if (err)
		return err;
	if (!value_enter(v, object, "[", "]", words[0]))
		return 0;
	err = show_row(v, words[1], words[0]);
	value_leave(v);
	buf_putc(v->to, ']');
	return err;
}

static int tuple_size(struct value_reader *v, raddr_t object, uint64_t *ret_size)
{
	int err = value_read_word(v, object + (raddr_t)v->abi->tuple.size, ret_size);

	return !err && *ret_size > VALUE_COUNT_MAX ? -EPROTO : err;
}

int value_show_tuple(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	uint64_t size;
	int err = tuple_size(v, object, &size);

	(void)type;
	if (err)
		return err;
	if (!value_enter(v, object, "(", ")", size))
		return 0;
	err = show_row(v, object + (raddr_t)v->abi->tuple.items, size);
	value_leave(v);
	buf_puts(v->to, size == 1 ? ",)" : ")");
	return err;
}

int value_show_namedtuple(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	raddr_t fields, name, item;
	uint64_t size, names;
	char text[VALUE_KEY_BYTES];
	int err = value_class_attr(v, type, "_fields", &fields);

	if (!err)
		err = tuple_size(v, object, &size);
	if (!err)
		err = tuple_size(v, fields, &names);
	if (err)
		return err;
	buf_puts(v->to, value_type_name(type));
	if (!value_enter(v, object, "(", ")", size))
		return 0;
	for (uint64_t i = 0; !err && i < size && value_has_room(v, i, size); i++) {
		err = value_read_word(v, object + (raddr_t)v->abi->tuple.items + 8 * i, &item);
		if (!err && i < names && value_read_word(v, fields + (raddr_t)v->abi->tuple.items + 8 * i, &name) == 0 &&
		    value_name(v, name, text, sizeof(text)))
			value_show_named(v, text, "=", item);
		else if (!err)
			value_show(v, item);
	}
	value_leave(v);
	buf_putc(v->to, ')');
	return err;
}

/* The items lie in a hash table; a free slot has no key, a deleted one the hash -1. */
static int show_set_items(struct value_reader *v, raddr_t table, uint64_t slots, uint64_t count)
{
	uint64_t words[SET_BATCH][2]; /* key, hash */
	uint64_t done = 0;

	for (uint64_t at = 0; at < slots && done < count; at += SET_BATCH) {
		uint64_t batch = slots - at < SET_BATCH ? slots - at : SET_BATCH;
		int err = at < SET_SLOTS_MAX ? value_read(v, table + at * sizeof(words[0]), words, batch * sizeof(words[0])) : -E2BIG;

		if (err)
			return err;
		for (uint64_t i = 0; i < batch && done < count; i++) {
			if (words[i][0] == 0 || words[i][1] == UINT64_MAX)
				continue;
			if (!value_has_room(v, done, count))
				return 0;
			value_show(v, words[i][0]);
			done++;
		}
	}
	return 0;
}

static int show_set(struct value_reader *v, raddr_t object, const char *open, const char *close, const char *empty)
{
	uint64_t words[3]; /* used, mask, table */
	int err = value_read(v, object + SET_USED, words, sizeof(words));

	if (!err && (words[0] > VALUE_COUNT_MAX || words[1] > VALUE_COUNT_MAX || words[0] > words[1]))
		err = -EPROTO;
	if (err)
		return err;
	if (words[0] == 0) {
		buf_puts(v->to, empty);
		return 0;
	}
	if (!value_enter(v, object, open, close, words[0]))
		return 0;
	err = show_set_items(v, words[2], words[1] + 1, words[0]);
	value_leave(v);
	buf_puts(v->to, close);
	return err;
}

int value_show_set(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	(void)type;
	return show_set(v, object, "{", "}", "set()");
}

int value_show_frozenset(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	(void)type;
	return show_set(v, object, "frozenset({", "})", "frozenset()");
}

static int show_deque_items(struct value_reader *v, raddr_t object, uint64_t count)
{
	uint64_t block, index, item;
	int err = value_read_word(v, object + DEQUE_LEFT, &block);

	if (!err)
		err = value_read_word(v, object + DEQUE_LEFT_INDEX, &index);
	if (!err && index >= DEQUE_BLOCK_ITEMS)
		err = -EPROTO;
	for (uint64_t i = 0; !err && i < count && value_has_room(v, i, count); i++) {
		err = value_read_word(v, block + DEQUE_BLOCK_FIRST + 8 * index, &item);
		if (!err)
			value_show(v, item);
		if (!err && ++index == DEQUE_BLOCK_ITEMS) {
			index = 0;
			err = i + 1 < count ? value_read_word(v, block + DEQUE_BLOCK_NEXT, &block) : 0;
		}
	}
	return err;
}

int value_show_deque(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	uint64_t count, maxlen;
	int err = value_read_word(v, object + VAR_SIZE, &count);

	(void)type;
	if (!err)
		err = value_read_word(v, object + DEQUE_MAXLEN, &maxlen);
	if (!err && count > VALUE_COUNT_MAX)
		err = -EPROTO;
	if (err)
		return err;
	buf_puts(v->to, "deque(");
	if (value_enter(v, object, "[", "]", count)) {
		err = show_deque_items(v, object, count);
		value_leave(v);
		buf_putc(v->to, ']');
	}
	if ((int64_t)maxlen >= 0)
		buf_printf(v->to, ", maxlen=%" PRIu64, maxlen);
	buf_putc(v->to, ')');
	return err;
}
