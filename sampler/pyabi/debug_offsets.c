/* SPDX-License-Identifier: Apache-2.0 */
/* 3.13 and later publish where things lie as 8-byte words at _PyRuntime: struct _Py_DebugOffsets. That structure itself
 * changes with each minor version, so that a table says which word means what in which. The words are read from the
 * target's memory: they are hostile until each lies inside its structure and the whole has passed pyabi_validate().
 *
 * Source: Include/internal/pycore_debug_offsets.h of 3.14 and 3.15, pycore_runtime.h of 3.13. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sampler/pyabi/pyabi.h"
#include "sampler/pyabi/tables.h"

static const char cookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};

enum { WORD_COOKIE, WORD_VERSION, WORD_FREE_THREADED, WORDS_HEAD };
enum { LAYOUTS = 3, WORDS_MAX = 111 };

static const struct layout {
	const struct pyabi *own; /* features, and what is not published */
	uint8_t words;           /* in the whole structure */
} layouts[LAYOUTS] = {
	{&pyabi_3_13, 73},
	{&pyabi_3_14, 95},
	{&pyabi_3_15, WORDS_MAX},
};

/* Numbers of words by layout; 0: not published in that one. */
struct words {
	uint8_t number[LAYOUTS];
};

static const struct words runtime_size = {{3, 3, 3}};
static const struct words interp_size = {{6, 6, 6}};
static const struct words tstate_size = {{19, 22, 22}};
static const struct words frame_size = {{28, 31, 39}};
static const struct words code_size = {{34, 39, 47}};
static const struct words object_size = {{44, 50, 58}};
static const struct words type_size = {{46, 52, 60}};
static const struct words heap_type_size = {{0, 0, 66}};
static const struct words dict_size = {{56, 66, 78}};
static const struct words bytes_size = {{64, 74, 86}};
static const struct words str_size = {{67, 77, 89}};
static const struct words gen_size = {{0, 83, 99}};

static const struct published {
	const char *name;
	size_t at; /* of the int32_t in struct pyabi */
	const struct words *within; /* sizes of its structure; NULL: not to be compared */
	struct words word;
} published[] = {
	{"finalizing", offsetof(struct pyabi, runtime.finalizing), &runtime_size, {{4, 4, 4}}},
	{"interpreters", offsetof(struct pyabi, runtime.interpreters), &runtime_size, {{5, 5, 5}}},
	{"interpreter id", offsetof(struct pyabi, interp.id), &interp_size, {{7, 7, 7}}},
	{"next interpreter", offsetof(struct pyabi, interp.next), &interp_size, {{8, 8, 8}}},
	{"threads", offsetof(struct pyabi, interp.threads), &interp_size, {{9, 9, 9}}},
	{"modules", offsetof(struct pyabi, interp.modules), &interp_size, {{11, 12, 12}}},
	{"GIL", offsetof(struct pyabi, interp.gil), &interp_size, {{14, 15, 15}}},
	{"code generation", offsetof(struct pyabi, interp.code_generation), &interp_size, {{0, 20, 20}}},
	{"next thread", offsetof(struct pyabi, tstate.next), &tstate_size, {{21, 24, 24}}},
	{"thread's interpreter", offsetof(struct pyabi, tstate.interp), &tstate_size, {{22, 25, 25}}},
	{"current frame", offsetof(struct pyabi, tstate.frame), &tstate_size, {{23, 26, 26}}},
	{"base frame", offsetof(struct pyabi, tstate.base_frame), &tstate_size, {{0, 0, 27}}},
	{"thread id", offsetof(struct pyabi, tstate.thread_id), &tstate_size, {{24, 27, 30}}},
	{"native thread id", offsetof(struct pyabi, tstate.native_thread_id), &tstate_size, {{25, 28, 31}}},
	{"data stack chunk", offsetof(struct pyabi, tstate.chunk), &tstate_size, {{26, 29, 32}}},
	{"thread status", offsetof(struct pyabi, tstate.status), &tstate_size, {{27, 30, 33}}},
	{"holds_gil", offsetof(struct pyabi, tstate.holds_gil), &tstate_size, {{0, 0, 34}}},
	{"gil_requested", offsetof(struct pyabi, tstate.gil_requested), &tstate_size, {{0, 0, 35}}},
	{"current exception", offsetof(struct pyabi, tstate.raised), &tstate_size, {{0, 0, 36}}},
	{"previous frame", offsetof(struct pyabi, frame.previous), &frame_size, {{29, 32, 40}}},
	{"executable", offsetof(struct pyabi, frame.code), &frame_size, {{30, 33, 41}}},
	{"instr_ptr", offsetof(struct pyabi, frame.instr), &frame_size, {{31, 34, 42}}},
	{"localsplus", offsetof(struct pyabi, frame.bytes), &frame_size, {{32, 35, 43}}},
	{"frame owner", offsetof(struct pyabi, frame.owner), &frame_size, {{33, 36, 44}}},
	{"stackpointer", offsetof(struct pyabi, frame.stackpointer), &frame_size, {{0, 37, 45}}},
	{"co_filename", offsetof(struct pyabi, code.filename), &code_size, {{35, 40, 48}}},
	{"co_name", offsetof(struct pyabi, code.name), &code_size, {{36, 41, 49}}},
	{"co_qualname", offsetof(struct pyabi, code.qualname), &code_size, {{37, 42, 50}}},
	{"co_linetable", offsetof(struct pyabi, code.linetable), &code_size, {{38, 43, 51}}},
	{"co_firstlineno", offsetof(struct pyabi, code.firstlineno), &code_size, {{39, 44, 52}}},
	{"co_code_adaptive", offsetof(struct pyabi, code.bytecode), NULL, {{43, 48, 56}}},
	{"ob_type", offsetof(struct pyabi, type.type), &object_size, {{45, 51, 59}}},
	{"tp_name", offsetof(struct pyabi, type.name), &type_size, {{47, 53, 61}}},
	{"tp_flags", offsetof(struct pyabi, type.flags), &type_size, {{49, 55, 63}}},
	{"tp_basicsize", offsetof(struct pyabi, type.basicsize), &type_size, {{0, 0, 64}}},
	{"tp_dictoffset", offsetof(struct pyabi, type.dictoffset), &type_size, {{0, 0, 65}}},
	{"ht_cached_keys", offsetof(struct pyabi, type.cached_keys), &heap_type_size, {{0, 0, 67}}},
	{"ma_keys", offsetof(struct pyabi, dict.keys), &dict_size, {{57, 67, 79}}},
	{"ma_values", offsetof(struct pyabi, dict.values), &dict_size, {{58, 68, 80}}},
	{"bytes length", offsetof(struct pyabi, bytes.size), &bytes_size, {{65, 75, 87}}},
	{"bytes data", offsetof(struct pyabi, bytes.data), &bytes_size, {{66, 76, 88}}},
	{"str state", offsetof(struct pyabi, str.state), &str_size, {{68, 78, 90}}},
	{"str length", offsetof(struct pyabi, str.length), &str_size, {{69, 79, 91}}},
	{"ASCII str size", offsetof(struct pyabi, str.ascii_text), NULL, {{70, 80, 92}}},
	{"compact str size", offsetof(struct pyabi, str.text), NULL, {{0, 0, 93}}},
	{"generator's frame", offsetof(struct pyabi, gen.iframe), &gen_size, {{0, 85, 101}}},
	{"generator's state", offsetof(struct pyabi, gen.state), &gen_size, {{0, 86, 102}}},
};

/* These are sums and differences of published words. */
static const struct words gc_word = {{10, 11, 11}}, collecting_word = {{72, 82, 95}}, gc_frame_word = {{0, 0, 96}};
static const struct words own_gil_word = {{15, 16, 16}}, locked_word = {{17, 18, 18}}, holder_word = {{18, 19, 19}};

enum { OFFSET_MAX = 4 << 20 }; /* the largest structure, the interpreter's, has 384 KB */

/* A word as an offset inside the structure of the given size; -EPROTO otherwise. */
static int take(const uint64_t *words, unsigned number, unsigned size_number, int32_t *ret_value)
{
	uint64_t end = size_number ? words[size_number] : OFFSET_MAX;

	if (end > OFFSET_MAX || words[number] >= end)
		return -EPROTO;
	*ret_value = (int32_t)words[number];
	return 0;
}

static int bad_word(struct fault *fault, const struct pyabi *abi, const char *name)
{
	return fault_set(fault, -EPROTO, "its memory may be damaged, or it is a modified build",
	                 "Python %s publishes a nonsensical offset: %s", abi->name, name);
}

static int take_published(struct pyabi *abi, unsigned layout, const uint64_t *words, struct fault *fault)
{
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		const struct published *p = &published[i];
		unsigned size_number = p->within ? p->within->number[layout] : 0;
		int32_t value;

		if (p->word.number[layout] == 0)
			continue;
		if (take(words, p->word.number[layout], size_number, &value))
			return bad_word(fault, abi, p->name);
		memcpy((char *)abi + p->at, &value, sizeof(value));
	}
	return 0;
}

static int take_derived(struct pyabi *abi, unsigned layout, const uint64_t *words, struct fault *fault)
{
	unsigned whole = interp_size.number[layout];
	int32_t gc, collecting, gc_frame = ABSENT, own_gil, locked, holder;

	if (take(words, gc_word.number[layout], whole, &gc) || take(words, collecting_word.number[layout], 0, &collecting) ||
	    (gc_frame_word.number[layout] && take(words, gc_frame_word.number[layout], 0, &gc_frame)))
		return bad_word(fault, abi, "garbage collector");
	if (take(words, own_gil_word.number[layout], whole, &own_gil) || take(words, locked_word.number[layout], whole, &locked) ||
	    take(words, holder_word.number[layout], whole, &holder) || locked < own_gil || holder < own_gil)
		return bad_word(fault, abi, "GIL");
	abi->interp.collecting = gc + collecting;
	abi->interp.gc_frame = gc_frame == ABSENT ? ABSENT : gc + gc_frame;
	abi->gil_state.locked = locked - own_gil;
	abi->gil_state.last_holder = holder - own_gil;
	return 0;
}

static int32_t at_least(int32_t bytes, int32_t field, int32_t width)
{
	return field != ABSENT && field + width > bytes ? field + width : bytes;
}

/* How much of a thread state holds all that a sample reads. */
static int32_t tstate_head_bytes(const struct pyabi *abi)
{
	int32_t bytes = at_least(0, abi->tstate.chunk, 24); /* chunk, top, limit */

	bytes = at_least(bytes, abi->tstate.frame, 8);
	bytes = at_least(bytes, abi->tstate.base_frame, 8);
	bytes = at_least(bytes, abi->tstate.native_thread_id, 8);
	bytes = at_least(bytes, abi->tstate.thread_id, 8);
	bytes = at_least(bytes, abi->tstate.status, 4);
	bytes = at_least(bytes, abi->tstate.holds_gil, 4);
	bytes = at_least(bytes, abi->tstate.gil_requested, 4);
	bytes = at_least(bytes, abi->tstate.exc_info, 8);
	bytes = at_least(bytes, abi->tstate.raised, 8);
	bytes = at_least(bytes, abi->tstate.next, 8);
	return at_least(bytes, abi->tstate.interp, 8);
}

int pyabi_from_debug_offsets(struct pyabi *ret_abi, const uint64_t *words, size_t count, struct fault *fault)
{
	struct pyabi abi;
	unsigned layout, major, minor, patch;
	int err;

	if (count < WORDS_HEAD || memcmp(&words[WORD_COOKIE], cookie, sizeof(cookie)) != 0)
		return fault_set(fault, -EPROTO, "", "no debug offsets at _PyRuntime");
	major = (unsigned)(words[WORD_VERSION] >> 24) & 0xff;
	minor = (unsigned)(words[WORD_VERSION] >> 16) & 0xff;
	patch = (unsigned)(words[WORD_VERSION] >> 8) & 0xff;
	for (layout = 0; layout < LAYOUTS; layout++)
		if (layouts[layout].own->major == major && layouts[layout].own->minor == minor)
			break;
	if (words[WORD_VERSION] >> 32 || layout == LAYOUTS)
		return fault_set(fault, -ENOTSUP, "a newer sampled may support it", "Python %u.%u.%u is not supported (%s are)",
		                 major, minor, patch, pyabi_supported());
	if (words[WORD_FREE_THREADED] != 0)
		return fault_set(fault, -ENOTSUP, "use a build with the GIL",
		                 "a free-threaded build of Python %u.%u.%u is not supported", major, minor, patch);
	if (count < layouts[layout].words)
		return fault_set(fault, -EPROTO, "", "the debug offsets of Python %u.%u.%u are cut short", major, minor, patch);
	abi = *layouts[layout].own;
	err = take_published(&abi, layout, words, fault);
	if (err == 0)
		err = take_derived(&abi, layout, words, fault);
	if (err)
		return err;
	abi.tstate.bytes = tstate_head_bytes(&abi);
	abi.code.bytes = abi.code.bytecode;
	err = pyabi_validate(&abi, fault);
	if (err == 0)
		*ret_abi = abi;
	return err;
}
