/* SPDX-License-Identifier: Apache-2.0 */
/* Where a frame's variables are. To 3.10 three arrays follow each other (locals, cells, free ones), and an argument that a function inside uses lies in its
 * cell only; since 3.11 there is one array, with a byte for each that says what it is. Bodies of classes have a dict.
 *
 * While a frame runs, a variable can be bound anew between two reads, and its object be freed. So all that a value is made of is read several times
 * from the frame on, and a value that is not made of the same bytes each time is "<changed>". */
#include "sampler/values/locals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/secrets.h"
#include "sampler/frames.h"
#include "sampler/pydict.h"

enum {
	CELL_CONTENT = 16,
	NAME_BYTES = 256,
	TAG_INT = 3, /* _PyStackRef of a small int: the low two bits; its value above */
	ATTEMPTS = 3, /* to read a value alike */
};

struct variables {
	const struct value_reader *reader;
	raddr_t frame, code;
	unsigned passes;
	struct frame_locals *to;
	uint64_t reads;
	int32_t arguments;
};

/* One of them. */
struct variable {
	char name[NAME_BYTES];
	raddr_t slot;   /* where the word lies that refers to the object; 0: … */
	raddr_t object; /* … this one */
	bool cell;      /* what that word refers to can be a cell, with the object in it */
	bool argument;
};

enum outcome { BOUND, UNBOUND, GONE };

/* What one pass over a variable found. */
struct found {
	enum outcome outcome;
	struct buf text;
	char type[TYPE_NAME_BYTES];
	uint64_t hash;
};

static struct value_reader reader_of(const struct variables *vars, struct buf *to)
{
	struct value_reader v = *vars->reader;

	v.to = to;
	v.began = to->bytes;
	v.hash = v.reads = v.depth = 0;
	return v;
}

static bool runs_code(struct value_reader *v, const struct variables *vars)
{
	uint64_t code;

	return value_read_word(v, vars->frame + (raddr_t)v->abi->frame.code, &code) == 0 && (code & ~UINT64_C(3)) == vars->code;
}

/* A small int in place of an object: 3.14+. */
static void show_tagged(struct found *found, uint64_t word)
{
	buf_printf(&found->text, "%" PRId64, (int64_t)word >> 2);
	strcpy(found->type, "int");
}

static void show_object(struct value_reader *v, const struct variable *var, raddr_t object, struct found *found)
{
	struct object_type type;

	if (value_type_of(v, object, &type) != 0) {
		value_show_unreadable(v);
		return;
	}
	memcpy(found->type, type.name, sizeof(found->type));
	if (!v->secrets && secrets_is_name(var->name, strlen(var->name)))
		buf_puts(v->to, VALUE_HIDDEN);
	else
		value_show(v, object);
}

static bool open_cell(struct value_reader *v, raddr_t *object)
{
	struct object_type type;

	if (value_type_of(v, *object, &type) == 0 && strcmp(type.name, "cell") == 0)
		return value_read_word(v, *object + CELL_CONTENT, object) == 0 && *object != 0;
	return true;
}

static void look(struct variables *vars, const struct variable *var, struct found *found)
{
	struct value_reader v;
	uint64_t word = var->object;

	found->text.bytes = 0;
	v = reader_of(vars, &found->text);
	found->outcome = GONE;
	found->type[0] = '\0';
	if (runs_code(&v, vars) && (!var->slot || value_read_word(&v, var->slot, &word) == 0)) {
		bool tagged = v.objects->frame.tagged && var->slot;

		found->outcome = BOUND;
		if (tagged && (word & TAG_INT) == TAG_INT) {
			show_tagged(found, word);
		} else {
			word = tagged ? word & ~UINT64_C(3) : word;
			if (!word || (var->cell && !open_cell(&v, &word)))
				found->outcome = UNBOUND;
			else
				show_object(&v, var, word, found);
		}
	}
	found->hash = hash_combine(v.hash, word);
	vars->reads += v.reads;
}

static bool is_alike(const struct found *a, const struct found *b)
{
	return a->outcome == b->outcome && a->hash == b->hash && a->text.bytes == b->text.bytes &&
	       (a->text.bytes == 0 || memcmp(a->text.data, b->text.data, a->text.bytes) == 0);
}

/* Reads until so many passes in a row were alike. False: they never were. */
static bool look_until_alike(struct variables *vars, const struct variable *var, struct found *found)
{
	struct found again = {0};
	unsigned alike = 1;

	look(vars, var, found);
	for (unsigned i = 1; alike < vars->passes && i < ATTEMPTS * vars->passes; i++) {
		struct found swap = *found;

		look(vars, var, &again);
		alike = is_alike(found, &again) ? alike + 1 : 1;
		*found = again;
		again = swap;
	}
	buf_release(&again.text);
	/* Of one that moves, what cannot be read was freed. */
	return alike == vars->passes && (vars->passes == 1 || !strstr(buf_text(&found->text), VALUE_UNREADABLE));
}

static struct local *add_local(struct frame_locals *to)
{
	if (to->count == to->room) {
		uint32_t room = to->room ? 2 * to->room : 16;
		struct local *items = realloc(to->items, room * sizeof(*items));

		if (!items)
			return NULL;
		to->items = items;
		to->room = room;
	}
	to->items[to->count] = (struct local){0};
	return &to->items[to->count];
}

/* 0, or -ENOMEM; -EAGAIN: the frame is gone. */
static int add_variable(struct variables *vars, const struct variable *var)
{
	struct found found = {0};
	bool alike = look_until_alike(vars, var, &found);
	struct local *local;
	int err = 0;

	if (alike && found.outcome == GONE) {
		err = -EAGAIN;
	} else if (!alike || found.outcome == BOUND) {
		local = add_local(vars->to);
		if (local) {
			local->name = strdup(var->name);
			local->value = strdup(alike ? buf_text(&found.text) : "<changed>");
			local->type = strdup(alike ? found.type : "");
			local->argument = var->argument;
			vars->to->count++;
		}
		err = local && !found.text.err && local->name && local->value && local->type ? 0 : -ENOMEM;
	}
	buf_release(&found.text);
	return err;
}

static int tuple_item(struct value_reader *v, raddr_t tuple, uint64_t index, char *to, size_t room)
{
	raddr_t str;
	int err = value_read_word(v, tuple + (raddr_t)v->abi->tuple.items + 8 * index, &str);

	return err ? err : value_name(v, str, to, room) ? 0 : -EPROTO;
}

static int tuple_size(struct value_reader *v, raddr_t tuple, uint64_t *ret_size)
{
	int err = tuple ? value_read_word(v, tuple + (raddr_t)v->abi->tuple.size, ret_size) : -ENOENT;

	return err ? err : *ret_size > INT32_MAX ? -EPROTO : 0;
}

static raddr_t first_slot(const struct variables *vars)
{
	const struct value_reader *r = vars->reader;

	return vars->frame + (raddr_t)(r->objects->frame.first == ABSENT ? r->abi->frame.bytes : r->objects->frame.first);
}

/* 3.11 and later. */
static int read_array(struct variables *vars, struct value_reader *v)
{
	uint8_t kinds[LOCALS_MAX];
	uint64_t count, kind_count;
	raddr_t names, bytes;
	int err = value_read_word(v, vars->code + (raddr_t)v->objects->code.localsplusnames, &names);

	if (!err)
		err = value_read_word(v, vars->code + (raddr_t)v->objects->code.localspluskinds, &bytes);
	if (!err)
		err = tuple_size(v, names, &count);
	if (!err)
		err = value_read_word(v, bytes + (raddr_t)v->abi->bytes.size, &kind_count);
	if (!err && kind_count != count)
		err = -EPROTO;
	if (err)
		return err;
	if (count > LOCALS_MAX) {
		vars->to->left_out = (uint32_t)(count - LOCALS_MAX);
		count = LOCALS_MAX;
	}
	err = count ? value_read(v, bytes + (raddr_t)v->abi->bytes.data, kinds, (size_t)count) : 0;
	for (uint64_t i = 0; !err && i < count; i++) {
		struct variable var = {.slot = first_slot(vars) + 8 * i, .argument = (int32_t)i < vars->arguments};

		v->reads = 0;
		var.cell = (kinds[i] & (LOCAL_CELL | LOCAL_FREE)) != 0;
		err = tuple_item(v, names, i, var.name, sizeof(var.name));
		if (!err)
			err = add_variable(vars, &var);
	}
	return err;
}

/* To 3.10: where in the cells, which follow the locals, is the one of this name? */
static bool find_cell(struct value_reader *v, raddr_t cells, uint64_t count, const char *name, uint64_t *ret_index)
{
	char text[NAME_BYTES];

	for (uint64_t i = 0; i < count; i++) {
		v->reads = 0;
		if (tuple_item(v, cells, i, text, sizeof(text)) == 0 && strcmp(text, name) == 0) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

/* To 3.10. An argument that lies in its cell is shown among the arguments. */
static int read_arrays(struct variables *vars, struct value_reader *v)
{
	const int32_t offsets[] = {v->objects->code.varnames, v->objects->code.cellvars, v->objects->code.freevars};
	raddr_t names[3], slot = first_slot(vars);
	uint64_t counts[3], index;
	int err = 0;

	for (int k = 0; !err && k < 3; k++) {
		err = value_read_word(v, vars->code + (raddr_t)offsets[k], &names[k]);
		if (!err)
			err = tuple_size(v, names[k], &counts[k]);
		if (!err && counts[k] > LOCALS_MAX)
			err = -E2BIG;
	}
	for (int k = 0; !err && k < 3; k++)
		for (uint64_t i = 0; !err && i < counts[k]; i++, slot += 8) {
			struct variable var = {.slot = slot, .cell = k > 0, .argument = k == 0 && (int32_t)i < vars->arguments};

			v->reads = 0;
			err = tuple_item(v, names[k], i, var.name, sizeof(var.name));
			if (err)
				break;
			if (k == 1 && find_cell(v, names[0], counts[0], var.name, &index) && (int32_t)index < vars->arguments)
				continue; /* it was shown */
			if (var.argument && find_cell(v, names[1], counts[1], var.name, &index)) {
				var.slot = first_slot(vars) + 8 * (counts[0] + index);
				var.cell = true;
			}
			err = add_variable(vars, &var);
		}
	return err;
}

static int add_entry(void *context, const struct pykey *key)
{
	struct variables *vars = context;
	struct variable var = {.object = key->value};
	struct buf none = {0};
	struct value_reader v = reader_of(vars, &none);

	if (!value_name(&v, key->key, var.name, sizeof(var.name)))
		return 0;
	if (vars->to->count >= LOCALS_MAX) {
		vars->to->left_out++;
		return 0;
	}
	return add_variable(vars, &var);
}

/* The body of a class, or what exec() runs with a dict of its own; a module's variables are its globals, and not shown. */
static int read_dict(struct variables *vars, struct value_reader *v)
{
	raddr_t locals, globals;
	struct object_type type;
	int err = value_read_word(v, vars->frame + (raddr_t)v->objects->frame.locals, &locals);

	if (!err)
		err = value_read_word(v, vars->frame + (raddr_t)v->objects->frame.globals, &globals);
	if (err || !locals || locals == globals)
		return err;
	err = value_type_of(v, locals, &type);
	if (err || strcmp(type.name, "dict") != 0)
		return err;
	return pydict_walk(v->remote, v->abi, locals, add_entry, vars);
}

static int count_arguments(struct variables *vars, struct value_reader *v, int32_t *ret_flags)
{
	int32_t plain, named, flags;
	int err = value_read(v, vars->code + (raddr_t)v->objects->code.flags, &flags, sizeof(flags));

	if (!err)
		err = value_read(v, vars->code + (raddr_t)v->objects->code.argcount, &plain, sizeof(plain));
	if (!err)
		err = value_read(v, vars->code + (raddr_t)v->objects->code.kwonlyargcount, &named, sizeof(named));
	if (!err && (plain < 0 || named < 0 || plain > LOCALS_MAX || named > LOCALS_MAX))
		err = -EPROTO;
	if (err)
		return err;
	vars->arguments = plain + named + ((flags & CODE_VARARGS) != 0) + ((flags & CODE_VARKEYWORDS) != 0);
	*ret_flags = flags;
	return 0;
}

uint64_t locals_read(const struct value_reader *reader, raddr_t frame, raddr_t code, unsigned passes, struct frame_locals *to)
{
	struct variables vars = {.reader = reader, .frame = frame, .code = code, .passes = passes, .to = to};
	struct buf none = {0};
	struct value_reader v = reader_of(&vars, &none);
	int32_t flags;
	int err = runs_code(&v, &vars) ? count_arguments(&vars, &v, &flags) : -EAGAIN;

	if (!err && !(flags & CODE_OPTIMIZED))
		err = read_dict(&vars, &v);
	else if (!err)
		err = v.objects->code.localsplusnames != ABSENT ? read_array(&vars, &v) : read_arrays(&vars, &v);
	to->gone = err < 0;
	return vars.reads;
}
