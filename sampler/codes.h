/* SPDX-License-Identifier: Apache-2.0 */
/* The code objects of one target, decoded once, at first sight: name, lines and extent. Looked up by address at every
 * frame of every sample; so a hit is a hash and a compare. An address can be freed and used again for another code
 * object: every entry remembers its identity words, and codes_recheck() compares them with the target's memory. */
#ifndef SAMPLED_SAMPLER_CODES_H
#define SAMPLED_SAMPLER_CODES_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/linetable.h"
#include "sampler/pyabi/pyabi.h"
#include "sampler/remote.h"
#include "sampler/symtab.h"

struct code {
	raddr_t addr;
	raddr_t bytecode; /* address of the first instruction */
	uint32_t bytecode_bytes;
	uint32_t frame_bytes;     /* from a frame of it to the end of its value stack; to 3.10 0 until one was met */
	bool is_coroutine;        /* to call them makes a coroutine; false from 3.12 on, too */
	bool given;               /* it calls what it was given, or has computed, not only globals and attributes: 3.11+; true where that is not known */
	uint32_t traceable_bytes; /* a frame before this offset has not begun: 3.11+ */
	uint32_t locals;          /* slots of variables: a stack pointer at or above it is valid */
	uint32_t symbol;          /* one reference held; 0: nothing known, such as a shim's None */
	uint32_t first_line;
	uint32_t line_count;
	struct line_range *lines; /* owned */
	uint8_t *leaving; /* owned; a bit for each unit that returns or yields; NULL where the version needs none */
	uint8_t *
		calling; /* owned; a bit for each unit at which a frame that called a Python function can stand; NULL: not known */
	uint8_t *seldom; /* owned; of the bits of `calling`, those of instructions that mostly call nothing */
	uint8_t *
		resuming; /* owned; a bit for each unit at which a frame that resumed a generator can stand; NULL: not known */
	uint8_t *
		awaiting; /* owned; a bit for each unit at which a frame that awaits through C can stand (3.11); NULL: there is none */
	uint8_t *plain; /* owned; a bit for each unit at which no Python code runs (plain_opcodes); NULL: not known */
	uint8_t *
		indirect; /* owned; a bit for each unit at which C, or a generator's resumption, was seen to lead on to a frame */
	uint32_t version;  /* co_version, which is that of its functions, too: 3.12+; 0: none */
	uint64_t identity; /* hash of the words that tell this code object from the next at its address */
	uint64_t content;  /* hash of what it says: name, file, lines, length: equal for one that is compiled again */
	uint64_t loaded_ns;
	uint64_t checked_ns; /* when identity was last compared */
	uint64_t generation; /* of the interpreter's code objects, when identity was last compared */
	uint64_t used_ns;
};

struct codes;

/* symbols stays the caller's and must outlive it. */
int codes_new(struct codes **ret_codes, const struct pyabi *abi, struct symtab *symbols);
/* Gives all symbol references back. */
void codes_free(struct codes *codes);

/* The code object at addr as it was decoded, or NULL: not seen yet. Valid until the next load or recheck. */
struct code *codes_find(const struct codes *codes, raddr_t addr);
/* What a decoded one says, as a hash (struct code, content); 0: not seen yet. */
uint64_t codes_content(const struct codes *codes, raddr_t addr);
/* Decodes the object at addr. 0, or -EPROTO (no code object can be read there), -EAGAIN (it went while it was read), -ENOMEM, -ENOSPC (not
 * now: the time allowed for decoding in this tick is used up). */
int codes_load(struct codes *codes, const struct remote *r, raddr_t addr, uint64_t now_ns, struct code **ret_code);
/* Whether an entry's object is there still, so that what it refers to is its own. */
bool codes_is_alive(const struct codes *codes, const struct remote *r, const struct code *code);
/* Compares the identity of an entry with the target. */
bool codes_is_same(struct codes *codes, const struct remote *r, struct code *code, uint64_t generation, uint64_t now_ns);
/* The same. 0: the same still; -ESTALE: another object lies there, or none; the entry is retired. */
int codes_recheck(struct codes *codes, const struct remote *r, struct code *code, uint64_t generation, uint64_t now_ns);
/* An entry that went since codes_drop_retired() was called last, or NULL. */
struct code *codes_find_retired(const struct codes *codes, raddr_t addr);
/* Entries that went: true when there are any. Before dropping them the caller closes runs that name them. */
bool codes_any_retired(const struct codes *codes);
void codes_drop_retired(struct codes *codes);
/* Whether an entry must be compared with the target's memory before it is believed. `generation` is the interpreter's count
 * of freed code objects, read after the sample: unchanged, all that was true is true still. 0: the version has none; then
 * what was seen a short while ago, or lies in a process that lately freed code, is compared every time. */
bool codes_need_recheck(const struct codes *codes, const struct code *code, uint64_t generation, uint64_t now_ns);
/* A new tick begins: decoding may again take up to its bound. */
void codes_new_tick(struct codes *codes);

static inline bool code_bit(const uint8_t *bits, int64_t offset)
{
	return offset >= 0 && (bits[offset / 16] >> (offset / 2 % 8) & 1) != 0;
}

/* Whether the instruction at this offset returns, yields, or makes a generator. */
static inline bool code_leaves(const struct code *code, int64_t offset)
{
	return code->leaving && code_bit(code->leaving, offset);
}

/* Whether a frame that stands here may have called a Python function without leaving the interpreter's loop. */
static inline bool code_calls(const struct code *code, int64_t offset)
{
	return !code->calling || code_bit(code->calling, offset);
}

/* Whether it has mostly called none, as where an attribute can be a property. */
static inline bool code_calls_seldom(const struct code *code, int64_t offset)
{
	return code->seldom && code_bit(code->seldom, offset);
}

/* Whether it may have resumed a generator without leaving it. */
static inline bool code_resumes(const struct code *code, int64_t offset)
{
	return !code->resuming || code_bit(code->resuming, offset);
}

/* Whether a frame that stands here may have a callee that only the thread state leads to. */
static inline bool code_is_indirect(const struct code *code, int64_t offset)
{
	return code->indirect && code_bit(code->indirect, offset);
}

/* Notes that it has. Without memory nothing is noted. */
void code_mark_indirect(struct code *code, int64_t offset);

static inline uint32_t code_line(const struct code *code, int64_t offset)
{
	return linetable_find(code->lines, code->line_count, offset, code->first_line);
}

#endif
