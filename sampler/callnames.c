/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the bytecode. A call's callable and the NULL, or the object, beside it are pushed before its arguments, so calls nest like brackets,
 * whatever branches there are between: each of them begins with an instruction that pushes the NULL or looks up a method, and ends with CALL or
 * one of its kind. Only a few have no beginning: decorators, the ends of `with`, and assertions, which are statements, with no other call open around
 * them; and generator expressions and comprehensions, whose function is made on the spot. Sources: Python/compile.c and codegen.c, Lib/dis.py. */
#include "sampler/callnames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sampler/frames.h"
#include "sampler/pyobj.h"

#define NAMES_MAX 4096 /* of a code object; one with more has none */
#define OPEN_MAX  64   /* calls within calls */

enum role {
	ROLE_OTHER,
	ROLE_EXTENDED,
	ROLE_HIDDEN,    /* another instruction, which is not seen */
	ROLE_NULL,      /* PUSH_NULL */
	ROLE_NAME,      /* LOAD_NAME */
	ROLE_GLOBAL,
	ROLE_ATTR,
	ROLE_METHOD,    /* 3.11 */
	ROLE_SUPER,     /* LOAD_SUPER_ATTR */
	ROLE_FUNCTION,  /* MAKE_FUNCTION */
	ROLE_PRECALL,   /* 3.11 */
	ROLE_CALL,
	ROLE_CALL_MORE, /* with keywords, or with a tuple of arguments */
	ROLE_ITERATOR,  /* GET_ITER, GET_AWAITABLE and their like: of what was called, itself mostly */
	ROLE_CONSTANT,
	ROLE_COMMON, /* a constant of all code */
	ROLE_RESUME,    /* SEND, FOR_ITER */
};

static const struct { /* the first one that an instruction's name begins with */
	const char *begins;
	enum role role;
} roles[] = {
	{"CALL_INTRINSIC", ROLE_OTHER}, {"CALL_FUNCTION_EX", ROLE_CALL_MORE}, {"CALL_EX", ROLE_CALL_MORE}, {"CALL_KW", ROLE_CALL_MORE},
	{"CALL", ROLE_CALL}, {"EXTENDED_ARG", ROLE_EXTENDED}, {"FOR_ITER", ROLE_RESUME}, {"GET_", ROLE_ITERATOR},
	{"LINE", ROLE_HIDDEN}, {"INSTRUCTION", ROLE_HIDDEN}, {"LOAD_ATTR", ROLE_ATTR}, {"LOAD_COMMON_CONSTANT", ROLE_COMMON},
	{"LOAD_CONST", ROLE_CONSTANT}, {"LOAD_GLOBAL", ROLE_GLOBAL}, {"LOAD_METHOD", ROLE_METHOD}, {"LOAD_NAME", ROLE_NAME},
	{"LOAD_SUPER_ATTR", ROLE_SUPER}, {"MAKE_FUNCTION", ROLE_FUNCTION}, {"PRECALL", ROLE_PRECALL}, {"PUSH_NULL", ROLE_NULL},
	{"SEND", ROLE_RESUME},
};

/* To 3.12 the callable's expression comes behind the NULL: one load, and, where that is a global, attributes of it. */
enum chain { CHAIN_NONE, CHAIN_BEGINS, CHAIN_ATTRIBUTES };

struct scan {
	const struct pyabi *abi;
	const struct remote *r;
	raddr_t *items; /* of co_names */
	uint32_t item_count;
	raddr_t consts; /* co_consts */
	uint32_t owner, super; /* callname_hash() of the class that the code belongs to, and of "super" */
	uint32_t *hashes; /* by index; 0: not read yet */
	struct callname *names;
	uint32_t count;
	struct {
		uint32_t name; /* 0: it is not called by one */
		bool function; /* made on the spot, and perhaps not called; … */
		uint32_t code; /* … by this constant, counted from 1 */
	} open[OPEN_MAX];
	uint32_t depth;
	enum chain chain;
	uint32_t loaded; /* the name of what the instruction before pushed; 0: none */
	uint32_t made;   /* the name of what was called to make what lies on top; 0: none */
	uint32_t constant; /* the one that the instruction before pushed, counted from 1; 0: it pushed none */
	uint32_t code;     /* the constant by which the function was made whose result lies on top, as of a generator expression; 0: none */
	uint32_t precall; /* unit + 1, if that was the instruction before */
	bool null;       /* the instruction before was PUSH_NULL */
	bool awaits;     /* the instruction before was a ROLE_ITERATOR */
};

uint32_t callname_hash(const char *name, size_t bytes)
{
	return (uint32_t)hash_bytes(0, name, bytes) | 1;
}

static enum role role_of(const struct pyabi *abi, uint8_t opcode)
{
	static const char instrumented[] = "INSTRUMENTED_";
	const char *name = abi->opnames[opcode];

	if (!name)
		return ROLE_OTHER;
	if (strncmp(name, instrumented, strlen(instrumented)) == 0)
		name += strlen(instrumented);
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (roles[i].begins[0] == name[0] && strncmp(name, roles[i].begins, strlen(roles[i].begins)) == 0)
			return roles[i].role;
	return ROLE_OTHER;
}

/* "__name" of "_Class__name", where that is the class. */
static const char *unmangled(const char *name, uint32_t owner)
{
	const char *own = name[0] == '_' && name[1] != '_' ? strstr(name + 1, "__") : NULL;

	/* Of a class' name leading underscores are left out. */
	return own && (callname_hash(name + 1, (size_t)(own - name) - 1) == owner || callname_hash(name, (size_t)(own - name)) == owner)
	               ? own
	               : name;
}

/* The hash of a name; 0: it cannot be read. */
static uint32_t name_at(struct scan *s, uint32_t index)
{
	char name[CALLNAME_BYTES];
	const char *own;
	bool cut = true;
	int bytes;

	if (index >= s->item_count || s->hashes[index])
		return index < s->item_count ? s->hashes[index] : 0;
	bytes = pyobj_str(s->r, s->abi, s->items[index], name, sizeof(name), &cut);
	if (bytes <= 0 || cut)
		return 0;
	own = unmangled(name, s->owner);
	s->hashes[index] = callname_hash(own, (size_t)bytes - (size_t)(own - name));
	return s->hashes[index];
}

/* A constant, counted from 1; 0: there is none, or it cannot be read. */
static raddr_t constant_at(const struct scan *s, uint32_t constant)
{
	uint64_t size, object;

	return constant > 0 && remote_read_u64(s->r, s->consts + (uint64_t)s->abi->tuple.size, &size) == 0 && constant <= size &&
	                       remote_read_u64(s->r, s->consts + (uint64_t)s->abi->tuple.items + 8 * (uint64_t)(constant - 1), &object) == 0
	               ? object
	               : 0;
}

static void note(struct scan *s, struct callname name)
{
	if ((name.name || name.argument || name.made) && s->count <= CALLNAMES_MAX)
		s->names[s->count++] = name;
}

/* False: too many. */
static bool begin_call(struct scan *s, uint32_t name, bool function)
{
	if (s->depth == OPEN_MAX)
		return false;
	s->open[s->depth].name = name;
	s->open[s->depth].code = s->constant;
	s->open[s->depth++].function = function;
	return true;
}

/* The name by which it is called. A function that is made on the spot is called without arguments of its own, or not at all. */
static uint32_t end_call(struct scan *s, bool bare)
{
	while (s->depth > 0 && s->open[s->depth - 1].function && !bare)
		s->depth--;
	if (s->depth == 0)
		return 0;
	s->code = s->open[--s->depth].function ? s->open[s->depth].code : 0;
	return s->open[s->depth].name;
}

/* The callable's expression goes on: the call is of what this instruction leaves on top. */
static void follow_chain(struct scan *s, enum role role)
{
	if (s->chain == CHAIN_BEGINS || (s->chain == CHAIN_ATTRIBUTES && role == ROLE_ATTR))
		s->open[s->depth - 1].name = s->loaded;
	if (s->chain == CHAIN_BEGINS || role != ROLE_ATTR)
		s->chain = CHAIN_NONE;
}

/* A global or an attribute is loaded, which may begin a call. */
static bool load(struct scan *s, enum role role, uint32_t unit, uint32_t last, uint32_t arg)
{
	bool packed = role == ROLE_GLOBAL || (role == ROLE_ATTR && s->abi->attr_calls);
	bool begins = role == ROLE_METHOD || ((packed || role == ROLE_SUPER) && (arg & 1) != 0);

	s->loaded = name_at(s, role == ROLE_SUPER ? arg >> 2 : packed ? arg >> 1 : arg);
	if (s->loaded == s->super) /* what is called is its attribute */
		s->loaded = 0;
	if (role == ROLE_ATTR || role == ROLE_METHOD)
		note(s, (struct callname){.first = unit, .last = last, .name = s->loaded, .kind = CALLNAME_ATTRIBUTE});
	if (!begins) {
		follow_chain(s, role);
		return true;
	}
	s->chain = role == ROLE_GLOBAL && !s->abi->null_behind ? CHAIN_ATTRIBUTES : CHAIN_NONE;
	return begin_call(s, s->loaded, false);
}

/* One instruction, from its unit to that of its last cache. False: no more can be told. */
static bool step(struct scan *s, enum role role, uint32_t unit, uint32_t last, uint32_t arg)
{
	uint32_t loaded = s->loaded, made = s->made, precall = s->precall;
	uint32_t code = s->code; /* what is made of it is the last argument of a call, if it has any, or iterated over */
	bool awaits = s->awaits, null = s->null;
	uint32_t name;

	s->loaded = s->made = s->precall = s->code = 0;
	s->awaits = s->null = false;
	switch (role) {
	case ROLE_NULL:
		if (awaits) { /* 3.15: beside what is awaited */
			s->made = made;
			s->awaits = true;
			break;
		}
		if (!begin_call(s, s->abi->null_behind ? loaded : 0, false))
			return false;
		s->chain = s->abi->null_behind ? CHAIN_NONE : CHAIN_BEGINS;
		s->null = true;
		break;
	case ROLE_NAME:
	case ROLE_GLOBAL:
	case ROLE_ATTR:
	case ROLE_METHOD:
	case ROLE_SUPER:
		if (!load(s, role, unit, last, arg))
			return false;
		break;
	default:
		follow_chain(s, role);
	}
	switch (role) {
	case ROLE_HIDDEN:
		return false;
	case ROLE_FUNCTION:
		if (!begin_call(s, 0, true))
			return false;
		break;
	case ROLE_PRECALL:
		s->precall = unit + 1;
		s->made = made;
		s->code = code;
		break;
	case ROLE_CALL:
	case ROLE_CALL_MORE:
		if (null && role == ROLE_CALL_MORE) /* since 3.14 it stands for the keywords, where there are none */
			s->depth--;
		name = end_call(s, role == ROLE_CALL && arg == 0);
		note(s, (struct callname){.first = precall ? precall - 1 : unit,
		                          .last = last,
		                          .name = name,
		                          .argument = arg > 0 ? made : 0,
		                          .made = arg > 0 ? constant_at(s, code) : 0,
		                          .kind = CALLNAME_CALL});
		s->made = name;
		break;
	case ROLE_ITERATOR:
		s->made = made;
		s->code = code;
		s->awaits = true;
		break;
	case ROLE_CONSTANT: /* None, that is sent to what is awaited; or the code of a function */
	case ROLE_COMMON:
		s->made = awaits ? made : 0;
		break;
	case ROLE_RESUME:
		note(s, (struct callname){.first = unit, .last = last, .name = made, .made = constant_at(s, code), .kind = CALLNAME_RESUME});
		break;
	default:
		break;
	}
	s->constant = role == ROLE_CONSTANT ? arg + 1 : 0;
	return true;
}

static void scan(struct scan *s, const uint8_t *bytecode, uint32_t units)
{
	uint32_t arg = 0;

	for (uint32_t unit = 0; unit < units;) {
		uint8_t opcode = bytecode[2 * unit];
		enum role role = role_of(s->abi, opcode);
		uint32_t last = unit + s->abi->caches[opcode];

		arg = arg << 8 | bytecode[2 * unit + 1];
		if (role != ROLE_EXTENDED) {
			if (!step(s, role, unit, last, arg))
				return;
			arg = 0;
		}
		unit = last + 1;
	}
}

/* Whether a generator that a function of this name made can be resumed there. */
static bool is_given(const struct callname *name, uint32_t made)
{
	return name->argument == made || (name->kind == CALLNAME_RESUME && name->name == made);
}

static bool is_argument_single(const struct callname *names, uint32_t count, uint32_t at)
{
	for (uint32_t i = 0; i < count; i++)
		if (i != at && is_given(&names[i], names[at].argument))
			return false;
	return true;
}

static bool is_single(const struct callname *names, uint32_t count, uint32_t at)
{
	for (uint32_t i = 0; i < count; i++) {
		if (i == at)
			continue;
		if (names[i].name == names[at].name &&
		    (names[i].kind == names[at].kind || (names[at].kind == CALLNAME_ATTRIBUTE && names[i].kind == CALLNAME_CALL)))
			return false;
		if (names[at].kind == CALLNAME_RESUME && is_given(&names[i], names[at].name))
			return false;
	}
	return true;
}

int callnames_find_all(const struct pyabi *abi, const struct remote *r, raddr_t names, raddr_t consts, uint32_t owner, const uint8_t *bytecode,
                       uint32_t bytes, struct callname **ret_names)
{
	struct scan s = {.abi = abi, .r = r, .consts = consts, .owner = owner, .super = callname_hash("super", strlen("super"))};
	uint64_t size;
	int err = remote_read_u64(r, names + (uint64_t)abi->tuple.size, &size);

	*ret_names = NULL;
	if (err || size > NAMES_MAX)
		return err;
	s.item_count = (uint32_t)size;
	s.items = malloc((size + 1) * sizeof(*s.items));
	s.hashes = calloc(size + 1, sizeof(*s.hashes));
	s.names = malloc((CALLNAMES_MAX + 1) * sizeof(*s.names));
	if (s.items && s.hashes && s.names &&
	    remote_read(r, names + (uint64_t)abi->tuple.items, s.items, size * sizeof(*s.items)) == 0) {
		scan(&s, bytecode, bytes / 2);
		if (s.count > CALLNAMES_MAX)
			s.count = 0;
		for (uint32_t i = 0; i < s.count; i++) {
			s.names[i].single = is_single(s.names, s.count, i);
			s.names[i].argument_single = is_argument_single(s.names, s.count, i);
		}
		*ret_names = s.count > 0 ? realloc(s.names, s.count * sizeof(*s.names)) : NULL;
	}
	free(s.items);
	free(s.hashes);
	if (!*ret_names)
		free(s.names);
	return *ret_names ? (int)s.count : 0;
}

const struct callname *callnames_at(const struct callname *names, uint32_t count, int64_t offset)
{
	uint32_t low = 0, high = count;
	uint64_t unit = (uint64_t)offset / 2;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (names[middle].last < unit)
			low = middle + 1;
		else
			high = middle;
	}
	return offset >= 0 && low < count && names[low].first <= unit ? &names[low] : NULL;
}
