/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind an object is of, by the names of its type and of those above it. What a type's repr() is decides how a subclass is shown: as what it is
 * derived from where it inherits that one's (tp_repr is the same), else with its name around. */
#include "sampler/values/value.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"

enum { /* Include/cpython/object.h; the same in all versions */
	TYPE_NAME = 24,
	TYPE_BASICSIZE = 32,
	TYPE_REPR = 88,
	TYPE_FLAGS = 168,
	TYPE_BASE = 256,
	TYPE_DICT = 264,
	TYPE_END = 272,
};

static const struct kind {
	const char *name; /* tp_name */
	value_show_fn *show;
} kinds[] = {
	{"int", value_show_int},
	{"str", value_show_str},
	{"dict", value_show_dict},
	{"list", value_show_list},
	{"tuple", value_show_tuple},
	{"float", value_show_float},
	{"bool", value_show_bool},
	{"bytes", value_show_bytes},
	{"set", value_show_set},
	{"frozenset", value_show_frozenset},
	{"function", value_show_function},
	{"method", value_show_method},
	{"builtin_function_or_method", value_show_builtin},
	{"module", value_show_module},
	{"cell", value_show_cell},
	{"range", value_show_range},
	{"slice", value_show_slice},
	{"complex", value_show_complex},
	{"bytearray", value_show_bytearray},
	{"generator", value_show_generator},
	{"coroutine", value_show_generator},
	{"async_generator", value_show_generator},
	{"dict_keys", value_show_dictview},
	{"dict_values", value_show_dictview},
	{"dict_items", value_show_dictview},
	{"mappingproxy", value_show_mappingproxy},
	{"types.SimpleNamespace", value_show_namespace},
	{"collections.deque", value_show_deque},
	{"collections.defaultdict", value_show_defaultdict},
	{"collections.OrderedDict", value_show_ordereddict},
	{"functools.partial", value_show_partial},
	{"datetime.date", value_show_date},
	{"datetime.datetime", value_show_datetime},
	{"datetime.time", value_show_time},
	{"datetime.timedelta", value_show_timedelta},
	{"datetime.timezone", value_show_timezone},
	{"decimal.Decimal", value_show_decimal},
	{"numpy.ndarray", value_show_ndarray},
};

static const struct {
	const char *type, *text;
} singles[] = {
	{"NoneType", "None"},
	{"ellipsis", "Ellipsis"},
	{"NotImplementedType", "NotImplemented"},
};

int value_read(struct value_reader *v, raddr_t from, void *to, size_t bytes)
{
	int err;

	if (++v->reads > v->limits->reads)
		return -E2BIG;
	err = remote_read(v->remote, from, to, bytes);
	v->hash = err ? hash_combine(v->hash, from) : hash_bytes(hash_combine(v->hash, from), to, bytes);
	return err;
}

int value_read_word(struct value_reader *v, raddr_t from, uint64_t *ret_word)
{
	return value_read(v, from, ret_word, sizeof(*ret_word));
}

static uint64_t word_at(const unsigned char *bytes, size_t off)
{
	uint64_t word;

	memcpy(&word, bytes + off, sizeof(word));
	return word;
}

/* Reads up to a NUL, which may stand right before the end of what is mapped. */
static int read_name(struct value_reader *v, raddr_t from, char *to, size_t room)
{
	ssize_t got;
	size_t bytes;

	if (++v->reads > v->limits->reads)
		return -E2BIG;
	got = remote_read_some(v->remote, from, to, room - 1);
	if (got < 0)
		return (int)got;
	to[got] = '\0';
	bytes = strlen(to);
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)to[i] < ' ')
			to[i] = '?';
	v->hash = hash_bytes(v->hash, to, bytes);
	return 0;
}

int value_read_type(struct value_reader *v, raddr_t type, struct object_type *ret_type)
{
	unsigned char head[TYPE_END];
	/* Not the reference count, which changes all the time. */
	int err = value_read(v, type + TYPE_NAME, head + TYPE_NAME, sizeof(head) - TYPE_NAME);

	if (err)
		return err;
	*ret_type = (struct object_type){
		.address = type,
		.base = word_at(head, TYPE_BASE),
		.dict = word_at(head, TYPE_DICT),
		.repr = word_at(head, TYPE_REPR),
		.flags = word_at(head, TYPE_FLAGS),
		.basicsize = (int64_t)word_at(head, TYPE_BASICSIZE),
	};
	ret_type->heap = (ret_type->flags & TYPE_HEAP) != 0;
	return read_name(v, word_at(head, TYPE_NAME), ret_type->name, sizeof(ret_type->name));
}

int value_type_of(struct value_reader *v, raddr_t object, struct object_type *ret_type)
{
	raddr_t type;
	int err = value_read_word(v, object + (raddr_t)v->abi->type.type, &type);

	return err ? err : value_read_type(v, type, ret_type);
}

const char *value_type_name(const struct object_type *type)
{
	const char *dot = strrchr(type->name, '.');

	return dot ? dot + 1 : type->name;
}

/* A class made by Python has a name without dots; one that happens to be called like a kind of C's is none. */
static const struct kind *kind_of(const struct object_type *type)
{
	if (type->heap && !strchr(type->name, '.'))
		return NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, type->name) == 0)
			return &kinds[i];
	return NULL;
}

static bool is_enum(struct value_reader *v, const struct object_type *type)
{
	struct object_type meta;

	return type->heap && value_type_of(v, type->address, &meta) == 0 &&
	       (strcmp(meta.name, "EnumMeta") == 0 || strcmp(meta.name, "EnumType") == 0);
}

static bool is_of_module(struct value_reader *v, const struct object_type *type, const char *module)
{
	char name[32];
	raddr_t str;

	return value_class_attr(v, type, "__module__", &str) == 0 && value_name(v, str, name, sizeof(name)) &&
	       strncmp(name, module, strlen(module)) == 0;
}

/* Classes of the standard library that Python makes. */
static value_show_fn *python_kind_of(struct value_reader *v, const struct object_type *type)
{
	if (!type->heap)
		return NULL;
	if (strcmp(type->name, "UUID") == 0 && is_of_module(v, type, "uuid"))
		return value_show_uuid;
	if ((strcmp(type->name, "PosixPath") == 0 || strcmp(type->name, "PurePosixPath") == 0) &&
	    is_of_module(v, type, "pathlib"))
		return value_show_path;
	return NULL;
}

static int show_derived(struct value_reader *v, raddr_t object, const struct object_type *type, const struct kind *kind,
                        const struct object_type *base)
{
	raddr_t fields;
	int err;

	if (kind->show == value_show_tuple && value_class_attr(v, type, "_fields", &fields) == 0)
		return value_show_namedtuple(v, object, type);
	if (type->repr == base->repr)
		return kind->show(v, object, base);
	buf_puts(v->to, value_type_name(type));
	buf_putc(v->to, '(');
	err = kind->show(v, object, base);
	buf_putc(v->to, ')');
	return err;
}

static int show_by_type(struct value_reader *v, raddr_t object, const struct object_type *type)
{
	struct object_type above = *type;
	value_show_fn *python_kind = NULL;

	for (size_t i = 0; i < sizeof(singles) / sizeof(singles[0]); i++)
		if (!type->heap && strcmp(type->name, singles[i].type) == 0) {
			buf_puts(v->to, singles[i].text);
			return 0;
		}
	if (type->flags & TYPE_IS_TYPE)
		return value_show_type(v, object, type);
	if (type->flags & TYPE_IS_EXCEPTION)
		return value_show_exception(v, object, type);
	if (is_enum(v, type))
		return value_show_enum(v, object, type);
	for (unsigned i = 0; i < BASES_MAX; i++) {
		const struct kind *kind = kind_of(&above);

		if (kind)
			return i == 0 ? kind->show(v, object, type) : show_derived(v, object, type, kind, &above);
		python_kind = python_kind_of(v, &above);
		if (python_kind || !above.base || value_read_type(v, above.base, &above) != 0)
			break;
	}
	return python_kind ? python_kind(v, object, type) : value_show_instance(v, object, type);
}

void value_show_unreadable(struct value_reader *v)
{
	buf_puts(v->to, VALUE_UNREADABLE);
}

void value_show(struct value_reader *v, raddr_t object)
{
	size_t began = v->to->bytes;
	uint32_t depth = v->depth;
	struct object_type type;
	int err = value_type_of(v, object, &type);

	v->hash = hash_combine(v->hash, object);
	if (!err)
		err = show_by_type(v, object, &type);
	if (!err || v->to->err)
		return;
	v->to->bytes = began;
	v->depth = depth;
	v->hash = hash_combine(v->hash, (uint64_t)(int64_t)err);
	value_show_unreadable(v);
}
