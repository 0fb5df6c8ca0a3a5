/* SPDX-License-Identifier: Apache-2.0 */
/* One object of the target as text. The files value_*.c know its kinds; for these and locals.c alone. */
#ifndef SAMPLED_SAMPLER_VALUES_VALUE_H
#define SAMPLED_SAMPLER_VALUES_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "sampler/pyabi/objects.h"
#include "sampler/pyabi/pyabi.h"
#include "sampler/remote.h"

#define VALUE_HIDDEN     "<hidden>"
#define VALUE_UNREADABLE "<unreadable>"

enum {
	VALUE_DEPTH_MAX = 6,
	VALUE_POINTS_MAX = 2000,
	VALUE_KEY_BYTES = 128, /* of the name of a field or a key */
	TYPE_NAME_BYTES = 128,
	OBJECT_HEAD = 16, /* reference count and type */
	BASES_MAX = 16,   /* types above a type */
};

/* Items of a container; more are not believed. */
#define VALUE_COUNT_MAX (UINT64_C(1) << 40)

struct value_limits { /* of one variable */
	uint32_t points;  /* characters of a text, bytes of bytes */
	uint32_t items;   /* of a container */
	uint32_t depth;   /* containers in containers */
	uint32_t bytes;   /* of the whole; no item begins behind */
	uint32_t reads;   /* system calls, about */
	bool attributes;  /* of an instance that is the variable itself */
};

struct value_reader {
	const struct remote *remote;
	const struct pyabi *abi;
	const struct pyobjects *objects;
	const struct value_limits *limits;
	bool secrets;
	struct buf *to;
	size_t began;   /* where in `to` the value begins */
	uint64_t hash;  /* of what was read */
	uint32_t reads; /* of this value */
	uint32_t depth;
	raddr_t path[VALUE_DEPTH_MAX]; /* the containers around */
};

/* What is known of a type object. */
struct object_type {
	raddr_t address, base, dict, repr;
	uint64_t flags;
	int64_t basicsize;
	bool heap;                  /* made at run time: by Python, or by a C module */
	char name[TYPE_NAME_BYTES]; /* tp_name: of C's types with the module */
};

/* Bits of tp_flags (Include/object.h). */
enum { TYPE_HEAP = 1 << 9, TYPE_IS_TYPE = 1u << 31, TYPE_IS_EXCEPTION = 1 << 30 };

/* 0, or -errno: then what is shown of it is up to the caller; -E2BIG: the value has cost too much already. */
int value_read(struct value_reader *v, raddr_t from, void *to, size_t bytes);
int value_read_word(struct value_reader *v, raddr_t from, uint64_t *ret_word);
int value_type_of(struct value_reader *v, raddr_t object, struct object_type *ret_type);
int value_read_type(struct value_reader *v, raddr_t type, struct object_type *ret_type);
/* The last part of its name: "deque". */
const char *value_type_name(const struct object_type *type);

/* Appends the object's text. Never fails: what cannot be read is <unreadable>. */
void value_show(struct value_reader *v, raddr_t object);
/* The same behind an error. */
void value_show_unreadable(struct value_reader *v);

/* How an object of a kind is shown. 0, or -errno: it could not be read, and nothing or a part of it was written. */
typedef int value_show_fn(struct value_reader *v, raddr_t object, const struct object_type *type);

/* value_numbers.c */
value_show_fn value_show_int, value_show_bool, value_show_float, value_show_complex, value_show_decimal;
/* An int of at most 64 bits; -ERANGE. */
int value_int64(struct value_reader *v, raddr_t object, int64_t *ret_value);
/* value_text.c */
value_show_fn value_show_str, value_show_bytes, value_show_bytearray;
/* A str as it is, without quotes and escapes, for names. False: it is none, or cannot be read. */
bool value_name(struct value_reader *v, raddr_t str, char *to, size_t room);
/* Whether the item whose text begins at `from` says that the next one is a secret, in a row of `count`: (b'authorization', b'Basic …') as
 * headers have it, ['--password', '…'] as a command line has it. */
bool value_announces_secret(const struct value_reader *v, size_t from, uint64_t count);
/* value_containers.c */
value_show_fn value_show_list, value_show_tuple, value_show_namedtuple, value_show_set, value_show_frozenset, value_show_deque;
/* A container begins: false where it is shown as "[...]" (it lies within itself) or as cut (too deep); then it has ended already. */
bool value_enter(struct value_reader *v, raddr_t object, const char *open, const char *close, uint64_t count);
void value_leave(struct value_reader *v);
/* Whether one more item has room, after `done` of `count`; else "… N more" is written. */
bool value_has_room(struct value_reader *v, uint64_t done, uint64_t count);
/* NAME=VALUE or NAME: VALUE, with secrets hidden. */
void value_show_named(struct value_reader *v, const char *name, const char *between, raddr_t object);
/* value_mappings.c */
value_show_fn value_show_dict, value_show_defaultdict, value_show_ordereddict, value_show_mappingproxy, value_show_dictview;
/* value_objects.c */
value_show_fn value_show_instance, value_show_function, value_show_builtin, value_show_method, value_show_module, value_show_type,
	value_show_exception, value_show_cell, value_show_generator, value_show_namespace, value_show_enum, value_show_partial;
/* An attribute of an instance, from its dict or its slots. */
int value_attr(struct value_reader *v, raddr_t object, const char *name, raddr_t *ret_value);
/* An attribute of a class or of those above it. */
int value_class_attr(struct value_reader *v, const struct object_type *type, const char *name, raddr_t *ret_value);
/* value_std.c */
value_show_fn value_show_range, value_show_slice, value_show_date, value_show_datetime, value_show_time, value_show_timedelta,
	value_show_timezone, value_show_ndarray, value_show_uuid, value_show_path;

#endif
