/* SPDX-License-Identifier: Apache-2.0 */
/* A table by address, and the decoding of what it holds. One thing still, above 400 lines: every static function below
 * serves codes_load() or codes_recheck(), and shares the table's lists and bounds. */
#include "sampler/codes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "sampler/bytecode.h"
#include "sampler/frames.h"
#include "sampler/pyobj.h"
#include "sampler/record.h"

#define BYTECODE_MAX    (1u << 28)
#define CODES_MAX       65536
#define LINETABLE_MAX   (1u << 20)
#define FRAME_SLOTS_MAX (1 << 20)
/* Decoding in one tick takes at most this long; the rest waits for the next tick. But not in the beginning, when nothing is known. */
#define DECODE_NS       (200 * NS_PER_US)
#define DECODE_FIRST_NS (2 * NS_PER_MS)
/* An address is not trusted for longer than this without comparing; nor at all while the code object is this young, or
 * another one proved stale so lately. */
#define RECHECK_NS (100 * NS_PER_MS)
#define YOUNG_NS   (1 * NS_PER_S)
#define DYNAMIC_NS (10 * NS_PER_S)
#define CO_COROUTINE 0x80 /* Include/code.h */
#define POOL_BYTES (1u << 16) /* of obmalloc, at most: blocks of one have addresses that differ in lower bits only */
#define NO_CODE_NS (50 * NS_PER_MS) /* so long an address is not tried again */

struct no_code { /* what lately proved to be no code object */
	raddr_t addr;
	uint64_t seen_ns;
};

struct codes {
	const struct pyabi *abi;
	struct symtab *symbols;
	struct code **table; /* open addressing by address; power of two */
	uint32_t room, count;
	raddr_t code_type;     /* the type object of code objects, learnt from the first one that says so; 0: not yet */
	struct code **retired; /* owned; out of the table, but what is held of late samples may still name them */
	uint32_t retired_count, retired_room;
	uint64_t stale;
	uint64_t stale_ns;          /* when the last entry proved stale; 0: none yet */
	uint64_t decode_ns;         /* used up in this tick, … */
	uint64_t decode_first_ns;   /* … and of what is free in the beginning */
	struct no_code no_code[16]; /* by address */
	struct line_range *scratch;
	size_t scratch_room;
	char name[REC_TEXT_MAX + 1], file[REC_TEXT_MAX + 1]; /* of the code object being decoded */
};

int codes_new(struct codes **ret_codes, const struct pyabi *abi, struct symtab *symbols)
{
	struct codes *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->abi = abi;
	c->symbols = symbols;
	c->room = 1024;
	c->table = calloc(c->room, sizeof(*c->table));
	if (!c->table) {
		free(c);
		return -ENOMEM;
	}
	*ret_codes = c;
	return 0;
}

static void code_free(struct code *code)
{
	free(code->lines);
	free(code->leaving);
	free(code->calling);
	free(code->resuming);
	free(code->awaiting);
	free(code->seldom);
	free(code->plain);
	free(code->indirect);
	free(code);
}

void code_mark_indirect(struct code *code, int64_t offset)
{
	if (offset < 0 || offset >= (int64_t)code->bytecode_bytes)
		return;
	if (!code->indirect)
		code->indirect = calloc(code->bytecode_bytes / 16 + 1, 1);
	if (code->indirect)
		code->indirect[offset / 16] |= (uint8_t)(1u << (offset / 2 % 8));
}

void codes_free(struct codes *c)
{
	if (!c)
		return;
	codes_drop_retired(c);
	for (uint32_t i = 0; i < c->room; i++) {
		if (!c->table[i])
			continue;
		symtab_unref(c->symbols, c->table[i]->symbol);
		code_free(c->table[i]);
	}
	free(c->table);
	free(c->retired);
	free(c->scratch);
	free(c);
}

/* Fibonacci hashing (D. Knuth, The Art of Computer Programming 3, 6.4): objects are aligned, so the high bits are taken. */
static uint32_t hash_addr(raddr_t addr)
{
	return (uint32_t)(addr * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static uint32_t place_of(const struct codes *c, raddr_t addr)
{
	uint32_t mask = c->room - 1;
	uint32_t i = hash_addr(addr) & mask;

	while (c->table[i] && c->table[i]->addr != addr)
		i = (i + 1) & mask;
	return i;
}

struct code *codes_find(const struct codes *c, raddr_t addr)
{
	return c->table[place_of(c, addr)];
}

struct code *codes_find_retired(const struct codes *c, raddr_t addr)
{
	for (uint32_t i = 0; i < c->retired_count; i++)
		if (c->retired[i]->addr == addr)
			return c->retired[i];
	return NULL;
}

uint64_t codes_content(const struct codes *c, raddr_t addr)
{
	const struct code *code = codes_find(c, addr);

	return code ? code->content : 0;
}

static bool grow(struct codes *c)
{
	struct code **old = c->table;
	uint32_t old_room = c->room;

	if (c->count + 1 <= c->room / 2)
		return true;
	c->table = calloc(2 * (size_t)old_room, sizeof(*c->table));
	if (!c->table) {
		c->table = old;
		return false;
	}
	c->room = 2 * old_room;
	for (uint32_t i = 0; i < old_room; i++)
		if (old[i])
			c->table[place_of(c, old[i]->addr)] = old[i];
	free(old);
	return true;
}

/* Takes an entry out; its symbol reference waits on the retired list until no run names it any more. */
static bool retire(struct codes *c, struct code *code)
{
	uint32_t mask = c->room - 1;
	uint32_t hole = place_of(c, code->addr);

	if (c->retired_count == c->retired_room) {
		uint32_t room = c->retired_room ? 2 * c->retired_room : 64;
		struct code **list = realloc(c->retired, room * sizeof(*list));

		if (!list)
			return false;
		c->retired = list;
		c->retired_room = room;
	}
	c->retired[c->retired_count++] = code;
	c->table[hole] = NULL;
	for (uint32_t i = (hole + 1) & mask; c->table[i]; i = (i + 1) & mask) {
		uint32_t home = hash_addr(c->table[i]->addr) & mask;

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			c->table[hole] = c->table[i];
			c->table[i] = NULL;
			hole = i;
		}
	}
	c->count--;
	return true;
}

bool codes_any_retired(const struct codes *c)
{
	return c->retired_count > 0;
}

void codes_drop_retired(struct codes *c)
{
	while (c->retired_count > 0) {
		struct code *code = c->retired[--c->retired_count];

		if (code->symbol)
			symtab_unref(c->symbols, code->symbol);
		code_free(code);
	}
}

bool codes_need_recheck(const struct codes *c, const struct code *code, uint64_t generation, uint64_t now_ns)
{
	if (generation)
		return code->generation != generation;
	if (now_ns - code->loaded_ns < YOUNG_NS || (c->stale_ns && now_ns - c->stale_ns < DYNAMIC_NS))
		return true;
	return now_ns - code->checked_ns >= RECHECK_NS;
}

void codes_new_tick(struct codes *c)
{
	c->decode_ns = 0;
}

/* Makes room when the cache is at its bound: the entry longest unused of a few looked at. */
static bool evict_one(struct codes *c, raddr_t near)
{
	uint32_t mask = c->room - 1;
	uint32_t start = (uint32_t)hash_u64(near ^ c->stale ^ c->decode_ns) & mask;
	struct code *oldest = NULL;

	for (uint32_t i = 0, seen = 0; i < c->room && seen < 16; i++) {
		struct code *code = c->table[(start + i) & mask];

		if (!code)
			continue;
		seen++;
		if (!oldest || code->used_ns < oldest->used_ns)
			oldest = code;
	}
	return oldest && retire(c, oldest);
}

/* A code object is known by what it points to; from 3.12 on by a version that no other one ever has, too. */
static uint64_t identity_of(const struct pyabi *abi, const uint8_t *head)
{
	uint64_t id = hash_combine(frame_u64(head, abi->type.type), frame_u64(head, abi->code.name));

	id = hash_combine(id, frame_u64(head, abi->code.filename));
	id = hash_combine(id, frame_u64(head, abi->code.linetable));
	id = hash_combine(id, (uint32_t)frame_i32(head, abi->code.firstlineno));
	if (abi->code.version != ABSENT)
		id = hash_combine(id, (uint32_t)frame_i32(head, abi->code.version));
	if (abi->code.bytecode_is_pointer)
		id = hash_combine(id, frame_u64(head, abi->code.bytecode));
	return id;
}

static bool is_code_type(struct codes *c, const struct remote *r, raddr_t object, raddr_t type)
{
	char name[8];

	if (c->code_type)
		return type == c->code_type;
	if (pyobj_type_name(r, c->abi, object, name, sizeof(name)) < 0 || strcmp(name, "code") != 0)
		return false;
	c->code_type = type;
	return true;
}

/* The extent of the bytecode and of a frame. */
static int read_extent(const struct codes *c, const struct remote *r, const uint8_t *head, struct code *code)
{
	const struct pyabi *abi = c->abi;
	int64_t slots = 0, bytes;

	if (abi->code.bytecode_is_pointer) {
		raddr_t object = frame_u64(head, abi->code.bytecode);
		uint64_t size;

		if (remote_read_u64(r, object + (uint64_t)abi->bytes.size, &size) != 0)
			return -EFAULT;
		code->bytecode = object + (uint64_t)abi->bytes.data;
		bytes = size > BYTECODE_MAX ? -1 : (int64_t)size;
	} else {
		uint64_t units = frame_u64(head, 16); /* ob_size */

		code->bytecode = code->addr + (uint64_t)abi->code.bytecode;
		bytes = units > BYTECODE_MAX / 2 ? -1 : (int64_t)units * 2;
	}
	if (bytes <= 0)
		return -EPROTO;
	code->bytecode_bytes = (uint32_t)bytes;
	if (abi->frames == FRAMES_HEAP)
		return 0;
	if (abi->code.nlocalsplus != ABSENT) {
		int32_t locals = frame_i32(head, abi->code.nlocalsplus);

		if (locals < 0 || locals > FRAME_SLOTS_MAX)
			return -EPROTO;
		code->locals = (uint32_t)locals;
	}
	if (abi->code.framesize != ABSENT)
		slots = frame_i32(head, abi->code.framesize);
	else
		slots = abi->frame.bytes / 8 + (int64_t)frame_i32(head, abi->code.nlocalsplus) +
		        frame_i32(head, abi->code.stacksize);
	if (slots < abi->frame.bytes / 8 || slots > FRAME_SLOTS_MAX)
		return -EPROTO;
	code->frame_bytes = (uint32_t)slots * 8;
	if (abi->code.firsttraceable != ABSENT) {
		int32_t units = frame_i32(head, abi->code.firsttraceable);

		code->traceable_bytes = units > 0 && units < bytes ? (uint32_t)units * 2 : 0;
	}
	return 0;
}

/* The line table. One that cannot be read or makes no sense costs the frame its lines, not the sample. */
static void read_lines(struct codes *c, const struct remote *r, raddr_t table, struct code *code)
{
	uint8_t *bytes;
	int64_t size = pyobj_bytes(r, c->abi, table, NULL, 0);
	int64_t count;

	if (size < 0 || size > LINETABLE_MAX)
		return;
	bytes = malloc((size_t)size + 1);
	if (!bytes)
		return;
	if (size > 0 && pyobj_bytes(r, c->abi, table, bytes, (size_t)size) != size)
		goto out;
	code->content = hash_bytes(code->bytecode_bytes, bytes, (size_t)size);
	count = linetable_decode(c->abi->lines, bytes, (size_t)size, code->first_line, c->scratch, c->scratch_room);
	if (count > (int64_t)c->scratch_room) {
		struct line_range *scratch = realloc(c->scratch, (size_t)count * sizeof(*scratch));

		if (!scratch)
			goto out;
		c->scratch = scratch;
		c->scratch_room = (size_t)count;
		count = linetable_decode(c->abi->lines, bytes, (size_t)size, code->first_line, c->scratch,
		                         c->scratch_room);
	}
	if (count <= 0)
		goto out;
	code->lines = malloc((size_t)count * sizeof(*code->lines));
	if (!code->lines)
		goto out;
	memcpy(code->lines, c->scratch, (size_t)count * sizeof(*code->lines));
	code->line_count = (uint32_t)count;
out:
	free(bytes);
}

static int read_symbol(struct codes *c, const struct remote *r, const uint8_t *head, struct code *code)
{
	const struct pyabi *abi = c->abi;
	char *name = c->name, *file = c->file;
	struct symbol_text text = {.name = name, .file = file, .first_line = code->first_line, .kind = FRAME_PYTHON};
	bool name_cut = false, file_cut = false;
	int name_bytes = -ENOENT, file_bytes;

	if (abi->code.qualname != ABSENT)
		name_bytes = pyobj_str(r, abi, frame_u64(head, abi->code.qualname), name, sizeof(c->name), &name_cut);
	if (name_bytes <= 0)
		name_bytes = pyobj_str(r, abi, frame_u64(head, abi->code.name), name, sizeof(c->name), &name_cut);
	file_bytes = pyobj_str(r, abi, frame_u64(head, abi->code.filename), file, sizeof(c->file), &file_cut);
	if (name_bytes < 0) {
		text.flags |= SYMBOL_UNREADABLE;
		text.name = "<unreadable>";
		name_bytes = (int)strlen(text.name);
	}
	text.name_bytes = (uint32_t)name_bytes;
	text.file_bytes = file_bytes > 0 ? (uint32_t)file_bytes : 0;
	code->content = hash_bytes(code->content ^ code->first_line, text.name, text.name_bytes);
	code->content = hash_bytes(code->content, file, text.file_bytes);
	if (name_cut || file_cut)
		text.flags |= SYMBOL_CUT;
	code->symbol = symtab_intern(c->symbols, &text);
	return code->symbol ? 0 : -ENOMEM;
}

static int read_head(const struct codes *c, const struct remote *r, raddr_t addr, uint8_t *head)
{
	return remote_read(r, addr, head, (size_t)c->abi->code.bytes);
}

/* Reads the head of an entry's object once more; whether it is that of the same one still, or what is left of it. */
static bool read_same(const struct codes *c, const struct remote *r, const struct code *code, uint8_t *head)
{
	return read_head(c, r, code->addr, head) == 0 && identity_of(c->abi, head) == code->identity;
}

/* An object begins with its count of references (Include/object.h): none while what it refers to is given up, and a block that obmalloc
 * has got back begins with the next such one of its pool, or none (Objects/obmalloc.c). malloc writes over the type, too. */
bool codes_is_alive(const struct codes *c, const struct remote *r, const struct code *code)
{
	uint8_t head[PYABI_CODE_MAX];
	uint64_t references;

	if (!read_same(c, r, code, head))
		return false;
	references = frame_u64(head, 0);
	return (uint32_t)references != 0 && (references ^ code->addr) >= POOL_BYTES;
}

static int decode(struct codes *c, const struct remote *r, raddr_t addr, struct code *code)
{
	const struct pyabi *abi = c->abi;
	uint8_t head[PYABI_CODE_MAX];
	int32_t first_line;
	int err;

	err = read_head(c, r, addr, head);
	if (err)
		return err;
	if (!is_code_type(c, r, addr, frame_u64(head, abi->type.type)))
		return -EPROTO;
	code->addr = addr;
	code->identity = identity_of(abi, head);
	if (abi->code.version != ABSENT)
		code->version = (uint32_t)frame_i32(head, abi->code.version);
	if (abi->code.flags != ABSENT) {
		code->is_coroutine = (frame_i32(head, abi->code.flags) & CO_COROUTINE) != 0;
	}
	first_line = frame_i32(head, abi->code.firstlineno);
	code->first_line = first_line > 0 ? (uint32_t)first_line : 0;
	err = read_extent(c, r, head, code);
	if (err)
		return err;
	bytecode_read(c->abi, r, code);
	read_lines(c, r, frame_u64(head, abi->code.linetable), code);
	err = read_symbol(c, r, head, code);
	if (err)
		return err;
	/* The names of one that went meanwhile may be others' by then, while it looks as it did. */
	if (!codes_is_alive(c, r, code)) {
		symtab_unref(c->symbols, code->symbol);
		return -EAGAIN;
	}
	return 0;
}

static bool may_decode(const struct codes *c)
{
	return c->decode_ns <= DECODE_NS || c->decode_first_ns <= DECODE_FIRST_NS;
}

static void decoded(struct codes *c, uint64_t started_ns)
{
	uint64_t took_ns = clock_now_ns() - started_ns;

	c->decode_ns += took_ns;
	c->decode_first_ns += took_ns;
}

int codes_load(struct codes *c, const struct remote *r, raddr_t addr, uint64_t now_ns, struct code **ret_code)
{
	struct no_code *no_code = &c->no_code[hash_u64(addr) % (sizeof(c->no_code) / sizeof(c->no_code[0]))];
	uint64_t started_ns;
	struct code *code;
	int err;

	if (!may_decode(c))
		return -ENOSPC;
	if (no_code->addr == addr && now_ns - no_code->seen_ns < NO_CODE_NS)
		return -EPROTO;
	while (c->count >= CODES_MAX)
		if (!evict_one(c, addr))
			return -ENOMEM;
	if (!grow(c))
		return -ENOMEM;
	code = calloc(1, sizeof(*code));
	if (!code)
		return -ENOMEM;
	started_ns = clock_now_ns();
	err = decode(c, r, addr, code);
	decoded(c, started_ns);
	if (err) {
		code_free(code);
		if (err == -EFAULT)
			err = -EPROTO; /* a wild pointer */
		if (err == -EPROTO) {
			no_code->addr = addr;
			no_code->seen_ns = now_ns;
		}
		return err;
	}
	code->loaded_ns = code->checked_ns = code->used_ns = now_ns;
	c->table[place_of(c, addr)] = code;
	c->count++;
	*ret_code = code;
	return 0;
}

bool codes_is_same(struct codes *c, const struct remote *r, struct code *code, uint64_t generation, uint64_t now_ns)
{
	uint8_t head[PYABI_CODE_MAX];

	if (!read_same(c, r, code, head))
		return false;
	code->checked_ns = now_ns;
	code->generation = generation;
	return true;
}

int codes_recheck(struct codes *c, const struct remote *r, struct code *code, uint64_t generation, uint64_t now_ns)
{
	if (codes_is_same(c, r, code, generation, now_ns))
		return 0;
	c->stale++;
	c->stale_ns = now_ns;
	retire(c, code);
	return -ESTALE;
}
