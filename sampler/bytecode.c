/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/bytecode.h"

#include <stdlib.h>
#include <string.h>

#include "sampler/frames.h"

#define CACHES_MAX 9 /* units behind an instruction that calls */
/* struct _PyCallCache (Include/internal/pycore_code.h): a counter, then the version, both behind the instruction. */
#define VERSION_AT 4
#define SOUGHT_MAX 4096 /* bytes */

static void set_bits(uint8_t *bits, uint32_t first, uint32_t last, uint32_t units)
{
	for (uint32_t unit = first; unit <= last && unit < units; unit++)
		bits[unit / 8] |= (uint8_t)(1u << unit % 8);
}

static void set_call(struct code *code, uint32_t unit, uint8_t calling, uint32_t units)
{
	uint32_t at = unit + (calling & CALLING_UNITS) - 1;

	set_bits(code->calling, at, at, units);
	if (calling & CALLING_SELDOM)
		set_bits(code->seldom, at, at, units);
}

static bool is_plain(const struct pyabi *abi, uint8_t opcode)
{
	return memchr(abi->plain_opcodes, opcode, strlen((const char *)abi->plain_opcodes)) != NULL;
}

/* Whether a PUSH_NULL at this unit goes with a callable that is neither a global nor an attribute. From 3.13 on that lies before it, to 3.12 behind. */
static bool is_given(const struct pyabi *abi, const uint8_t *bytes, uint32_t units, uint32_t unit, uint8_t before)
{
	uint8_t callable = abi->null_behind ? before : unit + 1 < units ? bytes[2 * unit + 2] : 0;

	return bytes[2 * unit] == abi->push_null && (callable == 0 || !memchr(abi->fixed_opcodes, callable, strlen((const char *)abi->fixed_opcodes)));
}

/* At SEND, or, where an exception is thrown into what is awaited, at the YIELD_VALUE behind it or the instruction behind that. */
static void set_awaiting(struct code *code, uint32_t at, uint32_t units)
{
	if (!code->awaiting)
		code->awaiting = calloc(units / 8 + 1, 1);
	if (code->awaiting)
		set_bits(code->awaiting, at, at + 2, units);
}

void bytecode_read(const struct pyabi *abi, const struct remote *r, struct code *code)
{
	uint32_t units = code->bytecode_bytes / 2;
	bool whole, told = true; /* told: where instructions begin */
	uint8_t *bytes, before = 0;

	code->given = true;
	if (abi->frames != FRAMES_STACK || code->bytecode_bytes > SCANNED_MAX)
		return;
	bytes = malloc(code->bytecode_bytes);
	if (!bytes || remote_read(r, code->bytecode, bytes, code->bytecode_bytes) != 0)
		goto out;
	code->leaving = calloc(units / 8 + 1, 1);
	code->calling = calloc(units / 8 + 1, 1);
	code->resuming = calloc(units / 8 + 1, 1);
	code->seldom = calloc(units / 8 + 1, 1);
	code->plain = calloc(units / 8 + 1, 1);
	whole = code->leaving && code->calling && code->resuming && code->seldom && code->plain;
	code->given = !whole;
	for (uint32_t i = 0, caches; whole && i < units; i += 1 + (told ? caches : 0)) {
		uint8_t opcode = bytes[2 * i], calling = abi->calling[opcode];

		/* How much is cached behind what is hidden is not known: from there on caches are taken for instructions, too, and a caller can
		 * stand at a call's last one. */
		told &= calling != CALLING_HIDDEN;
		caches = abi->caches[opcode];
		code->given |= !told || is_given(abi, bytes, units, i, before);
		before = opcode;
		if (is_plain(abi, opcode) && !code_bit(code->calling, 2 * i) && !code_bit(code->resuming, 2 * i))
			set_bits(code->plain, i, i, units);
		if (memchr(abi->leaving_opcodes, opcode, strlen((const char *)abi->leaving_opcodes)))
			set_bits(code->leaving, i, i, units);
		if (opcode != 0 && opcode == abi->send_opcode)
			set_awaiting(code, i, units);
		if (calling == CALLING_SUBSCRIPT || calling == CALLING_QUIET_SUBSCRIPT)
			calling = bytes[2 * i + 1] == NB_SUBSCR ? CALLING_SELDOM + 1 : 0;
		if (!calling)
			continue;
		if (calling == CALLING_HIDDEN)
			set_bits(code->calling, i, i + CACHES_MAX, units);
		else if (calling > CALLING_RESUMES)
			set_bits(code->resuming, i, i + (calling & CALLING_UNITS) - 1, units);
		else
			set_call(code, i, calling, units);
	}
out:
	free(bytes);
}

bool bytecode_has_call(const struct pyabi *abi, const struct remote *r, const struct code *code, int64_t offset,
                       enum called called)
{
	uint8_t opcode;

	if (code->traceable_bytes >= code->bytecode_bytes) /* the interpreter's own */
		return true;
	/* A short coroutine can be awaited again at the same address before both ends of a proof are read: what its caller does between is no await. */
	if (called == AWAITED_BY_C && code->awaiting)
		return code_bit(code->awaiting, offset);
	if (called >= CALLED_DIRECTLY)
		return code_calls(code, offset) ||
		       (called == RESUMED_DIRECTLY && !frame_sends_through_c(abi) && code_resumes(code, offset));
	if (!code->plain || offset >= (int64_t)code->bytecode_bytes || !code_bit(code->plain, offset))
		return true;
	return r && remote_read(r, code->bytecode + (uint64_t)offset, &opcode, 1) == 0 && !is_plain(abi, opcode);
}

bool bytecode_may_call(const struct pyabi *abi, const struct remote *r, const struct code *code, int64_t offset)
{
	uint8_t bytes[2 * (CACHES_MAX + 1)];
	int64_t first = offset - 2 * CACHES_MAX;

	if (first < 0)
		first = 0;
	if (!r || abi->frames != FRAMES_STACK || offset < 0 || offset + 2 > (int64_t)code->bytecode_bytes ||
	    remote_read(r, code->bytecode + (uint64_t)first, bytes, (size_t)(offset + 2 - first)) != 0)
		return true;
	for (int64_t at = offset; at >= first; at -= 2) {
		uint8_t calling = abi->calling[bytes[at - first]];

		if (calling >= CALLING_QUIET_SUBSCRIPT)
			return at != offset || calling == CALLING_HIDDEN;
		if ((calling & CALLING_UNITS) == (offset - at) / 2 + 1)
			return (calling & CALLING_SELDOM) != 0 ? (calling & CALLING_PUSHES) != 0
			                                       : (calling & CALLING_QUIET) == 0;
	}
	return true;
}

/* Whether such an instruction is a call that was specialised for one function. */
static bool is_for_one(uint8_t calling)
{
	return calling < CALLING_QUIET_SUBSCRIPT && (calling & CALLING_PUSHES) &&
	       !(calling & (CALLING_RESUMES | CALLING_SELDOM));
}

uint32_t bytecode_find_calls(const struct pyabi *abi, const struct remote *r, const struct code *code, uint32_t version,
                             int64_t *ret_offset)
{
	uint8_t bytes[SOUGHT_MAX];
	uint32_t found = 0;

	if (!r || version == 0 || code->bytecode_bytes > sizeof(bytes) ||
	    remote_read(r, code->bytecode, bytes, code->bytecode_bytes) != 0)
		return 0;
	for (uint32_t at = 0; at + VERSION_AT + sizeof(version) <= code->bytecode_bytes; at += 2) {
		uint8_t calling = abi->calling[bytes[at]];

		if (!is_for_one(calling) || memcmp(bytes + at + VERSION_AT, &version, sizeof(version)) != 0)
			continue;
		*ret_offset = (int64_t)at + 2 * ((calling & CALLING_UNITS) - 1);
		found++;
	}
	return found;
}

uint32_t bytecode_specialised_for(const struct pyabi *abi, const struct remote *r, const struct code *code, int64_t offset)
{
	uint32_t version;
	uint8_t bytes[2 * CACHES_MAX + VERSION_AT + sizeof(version)];
	int64_t first = offset < 2 * CACHES_MAX ? 0 : offset - 2 * CACHES_MAX;
	int64_t end = offset + VERSION_AT + (int64_t)sizeof(version);

	if (!r || offset < 0 || end > (int64_t)code->bytecode_bytes ||
	    remote_read(r, code->bytecode + (uint64_t)first, bytes, (size_t)(end - first)) != 0)
		return 0;
	for (int64_t at = offset; at >= first; at -= 2) {
		uint8_t calling = abi->calling[bytes[at - first]];

		if (calling >= CALLING_QUIET_SUBSCRIPT)
			return 0;
		if ((calling & CALLING_UNITS) == (offset - at) / 2 + 1) {
			memcpy(&version, bytes + (at - first) + VERSION_AT, sizeof(version));
			return is_for_one(calling) ? version : 0;
		}
	}
	return 0;
}
