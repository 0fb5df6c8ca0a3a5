/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, types, modules, exceptions, instances. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/pyobj.h"
#include "sampler/values/value.h"

enum {
	FIRST = 16, /* the first field behind an object's head: a cell's content, a method's function, a module's dict … */
	SECOND = 24,
	THIRD = 32,
	METHOD_DEF_NAME = 0,
	MEMBER_OF_DESCR = 40, /* PyMemberDescrObject.d_member */
	MEMBER_NAME = 0,
	MEMBER_OFFSET = 16,
	QUALNAME_BEFORE_KEYS = 8, /* ht_qualname, right before ht_cached_keys */
	SLOTS_BEFORE_KEYS = 16,
	NAME_BYTES = 256,
	SLOTS_MAX = 64,
};

static void add_at(struct value_reader *v, raddr_t object)
{
	buf_printf(v->to, " at 0x%" PRIx64 ">", object);
}

int value_class_attr(struct value_reader *v, const struct object_type *type, const char *name, raddr_t *ret_value)
{
	struct object_type at = *type;
	int err = -ENOENT;

	for (unsigned i = 0; i < BASES_MAX && at.heap && err == -ENOENT; i++) {
		v->reads += 2;
		err = at.dict ? pyobj_dict_get(v->remote, v->abi, at.dict, name, ret_value) : -ENOENT;
		if (err == -ENOENT && (!at.base || value_read_type(v, at.base, &at) != 0))
			break;
	}
	return err;
}

/* Where a class that has __slots__ keeps one of them, by the descriptor in its dict. */
static int read_slot(struct value_reader *v, raddr_t object, raddr_t descr, raddr_t *ret_value)
{
	struct object_type type;
	raddr_t member;
	uint64_t offset;
	int err = value_type_of(v, descr, &type);

	if (err)
		return err;
	if (strcmp(type.name, "member_descriptor") != 0)
		return -ENOENT;
	err = value_read_word(v, descr + MEMBER_OF_DESCR, &member);
	if (!err)
		err = value_read_word(v, member + MEMBER_OFFSET, &offset);
	if (!err && offset > INT32_MAX)
		err = -EPROTO;
	if (!err)
		err = value_read_word(v, object + offset, ret_value);
	return !err && !*ret_value ? -ENOENT : err;
}

int value_attr(struct value_reader *v, raddr_t object, const char *name, raddr_t *ret_value)
{
	struct object_type type;
	raddr_t descr;
	int err;

	v->reads += 4;
	if (pyobj_attr(v->remote, v->abi, object, name, ret_value) == 0)
		return 0;
	err = value_type_of(v, object, &type);
	if (!err)
		err = value_class_attr(v, &type, name, &descr);
	return err ? err : read_slot(v, object, descr, ret_value);
}

/* A function's, or the like, whose name is a str at `off`. */
static bool add_name_at(struct value_reader *v, raddr_t at)
{
	char name[NAME_BYTES];
	raddr_t str;

	if (value_read_word(v, at, &str) != 0 || !value_name(v, str, name, sizeof(name)))
		return false;
	buf_puts(v->to, name);
	return true;
}

int value_show_function(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	(void)type;
	buf_puts(v->to, "<function ");
	if (!add_name_at(v, object + (raddr_t)v->objects->func.qualname))
		return -EPROTO;
	add_at(v, object);
	return 0;
}

int value_show_generator(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	buf_printf(v->to, "<%s object ", type->name);
	if (!add_name_at(v, object + (raddr_t)v->objects->gen.qualname))
		return -EPROTO;
	add_at(v, object);
	return 0;
}

/* PyCFunctionObject: m_ml, m_self. */
int value_show_builtin(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	char name[NAME_BYTES];
	raddr_t def, at, self;
	struct object_type self_type;
	ssize_t got;
	int err = value_read_word(v, object + FIRST, &def);

	(void)type;
	if (!err)
		err = value_read_word(v, object + SECOND, &self);
	if (!err)
		err = value_read_word(v, def + METHOD_DEF_NAME, &at);
	if (err)
		return err;
	got = remote_read_some(v->remote, at, name, sizeof(name) - 1);
	if (got < 0)
		return (int)got;
	name[got] = '\0';
	if (self && value_type_of(v, self, &self_type) == 0 && strcmp(self_type.name, "module") != 0) {
		buf_printf(v->to, "<built-in method %s of %s object", name, self_type.name);
		add_at(v, self);
	} else {
		buf_printf(v->to, "<built-in function %s>", name);
	}
	return 0;
}

/* PyMethodObject: im_func, im_self. */
int value_show_method(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	raddr_t function, self;
	int err = value_read_word(v, object + FIRST, &function);

	(void)type;
	if (!err)
		err = value_read_word(v, object + SECOND, &self);
	if (err)
		return err;
	buf_puts(v->to, "<bound method ");
	if (!add_name_at(v, function + (raddr_t)v->objects->func.qualname))
		buf_putc(v->to, '?');
	buf_puts(v->to, " of ");
	if (value_enter(v, object, "", ">", 1)) {
		value_show(v, self);
		value_leave(v);
		buf_putc(v->to, '>');
	}
	return 0;
}

int value_show_module(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	char name[NAME_BYTES];
	raddr_t dict, str;
	int err = value_read_word(v, object + FIRST, &dict);

	(void)type;
	if (!err)
		err = pyobj_dict_get(v->remote, v->abi, dict, "__name__", &str);
	if (err)
		return err;
	if (!value_name(v, str, name, sizeof(name)))
		return -EPROTO;
	buf_printf(v->to, "<module '%s'>", name);
	return 0;
}

int value_show_type(struct value_reader *v, raddr_t object, const struct object_type *meta)
{
	char module[NAME_BYTES];
	struct object_type type;
	raddr_t str;
	int err = value_read_type(v, object, &type);

	(void)meta;
	if (err)
		return err;
	buf_puts(v->to, "<class '");
	if (type.heap && !strchr(type.name, '.')) {
		if (type.dict && pyobj_dict_get(v->remote, v->abi, type.dict, "__module__", &str) == 0 &&
		    value_name(v, str, module, sizeof(module)) && strcmp(module, "builtins") != 0)
			buf_printf(v->to, "%s.", module);
		if (!add_name_at(v, object + (raddr_t)v->abi->type.cached_keys - QUALNAME_BEFORE_KEYS))
			buf_puts(v->to, type.name);
	} else {
		buf_puts(v->to, type.name);
	}
	buf_puts(v->to, "'>");
	return 0;
}

int value_show_cell(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	raddr_t content;
	int err = value_read_word(v, object + FIRST, &content);

	(void)type;
	if (err)
		return err;
	if (!content) {
		buf_puts(v->to, "<cell: empty>");
	} else if (value_enter(v, object, "<cell: ", ">", 1)) {
		value_show(v, content);
		value_leave(v);
		buf_putc(v->to, '>');
	}
	return 0;
}

/* PyBaseExceptionObject: dict, args. */
int value_show_exception(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	raddr_t args, item;
	uint64_t count;
	int err = value_read_word(v, object + SECOND, &args);

	if (!err)
		err = value_read_word(v, args + (raddr_t)v->abi->tuple.size, &count);
	if (!err && count > INT32_MAX)
		err = -EPROTO;
	if (err)
		return err;
	buf_puts(v->to, value_type_name(type));
	if (!value_enter(v, object, "(", ")", count))
		return 0;
	for (uint64_t i = 0; !err && i < count && value_has_room(v, i, count); i++) {
		err = value_read_word(v, args + (raddr_t)v->abi->tuple.items + 8 * i, &item);
		if (!err)
			value_show(v, item);
	}
	value_leave(v);
	buf_puts(v->to, count == 1 && !v->objects->lone_argument ? ",)" : ")");
	return err;
}

int value_show_enum(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	char name[NAME_BYTES];
	raddr_t str, value;
	int err = value_attr(v, object, "_value_", &value);

	if (err)
		return err;
	if (!value_enter(v, object, "<", ">", 1))
		return 0;
	buf_puts(v->to, value_type_name(type));
	if (value_attr(v, object, "_name_", &str) == 0 && value_name(v, str, name, sizeof(name)))
		buf_printf(v->to, ".%s", name);
	buf_puts(v->to, ": ");
	value_show(v, value);
	value_leave(v);
	buf_putc(v->to, '>');
	return 0;
}

/* PyPartialObject: fn, args, kw. */
int value_show_partial(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	raddr_t function;
	int err = value_read_word(v, object + FIRST, &function);

	(void)type;
	if (err)
		return err;
	if (value_enter(v, object, "<partial of ", ">", 1)) {
		value_show(v, function);
		value_leave(v);
		buf_putc(v->to, '>');
	}
	return 0;
}

struct attributes {
	struct value_reader *v;
	uint64_t done;
	const char *between; /* name and value */
	bool full;
};

static int show_attribute(struct attributes *a, const char *name, raddr_t value)
{
	if (a->done >= a->v->limits->items || a->v->to->bytes - a->v->began >= a->v->limits->bytes) {
		a->full = true;
		buf_puts(a->v->to, ", …");
		return 1;
	}
	buf_puts(a->v->to, a->done++ ? ", " : "");
	value_show_named(a->v, name, a->between, value);
	return 0;
}

static int show_key(void *context, const struct pykey *key)
{
	struct attributes *a = context;
	char name[NAME_BYTES];

	return value_name(a->v, key->key, name, sizeof(name)) ? show_attribute(a, name, key->value) : 0;
}

/* What __slots__ of the class and those above it names. */
static void show_slots(struct attributes *a, raddr_t object, const struct object_type *type)
{
	struct value_reader *v = a->v;
	struct object_type at = *type;

	for (unsigned i = 0; i < BASES_MAX && at.heap && !a->full; i++) {
		raddr_t slots, str, descr, value;
		uint64_t count = 0;
		char name[NAME_BYTES];

		if (value_read_word(v, at.address + (raddr_t)v->abi->type.cached_keys - SLOTS_BEFORE_KEYS, &slots) == 0 && slots &&
		    value_read_word(v, slots + (raddr_t)v->abi->tuple.size, &count) == 0 && count > SLOTS_MAX)
			count = SLOTS_MAX;
		for (uint64_t k = 0; k < count && !a->full; k++)
			if (value_read_word(v, slots + (raddr_t)v->abi->tuple.items + 8 * k, &str) == 0 &&
			    value_name(v, str, name, sizeof(name)) && value_class_attr(v, &at, name, &descr) == 0 &&
			    read_slot(v, object, descr, &value) == 0)
				(void)show_attribute(a, name, value);
		if (!at.base || value_read_type(v, at.base, &at) != 0)
			break;
	}
}

int value_show_instance(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	struct attributes a = {.v = v, .between = "="};

	buf_printf(v->to, "<%s at 0x%" PRIx64, type->name, object);
	if (v->depth == 0 && v->limits->attributes && type->heap) {
		size_t began = v->to->bytes;

		v->path[v->depth++] = object;
		buf_puts(v->to, ": ");
		(void)pyobj_attrs_walk(v->remote, v->abi, object, show_key, &a);
		show_slots(&a, object, type);
		v->depth--;
		if (a.done == 0)
			v->to->bytes = began;
	}
	buf_putc(v->to, '>');
	return 0;
}

int value_show_namespace(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	struct attributes a = {.v = v, .between = "="};
	raddr_t dict;
	int err = value_read_word(v, object + FIRST, &dict);

	(void)type;
	if (err)
		return err;
	buf_puts(v->to, "namespace");
	if (!value_enter(v, object, "(", ")", 1))
		return 0;
	err = pydict_walk(v->remote, v->abi, dict, show_key, &a);
	value_leave(v);
	buf_putc(v->to, ')');
	return err < 0 ? err : 0;
}
