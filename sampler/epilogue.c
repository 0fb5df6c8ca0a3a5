/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings: Intel 64 Architectures Software Developer's Manual, volume 2; Arm Architecture Reference Manual, C6.2. */
#include "sampler/epilogue.h"

#include <string.h>

#if defined(__x86_64__)

enum { FRAME = 6, STACK = 7, TAKEN_MAX = 1 << 16 };

struct leaving {
	struct cfi_row row;
	int32_t taken; /* bytes off the stack, from the register of the row on */
};

/* x86-64's encoding of a register to DWARF's. */
static const uint8_t dwarf_of[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

static bool pop(struct leaving *l, unsigned number)
{
	uint8_t dwarf = dwarf_of[number];

	if (dwarf == STACK)
		return false;
	for (unsigned i = 0; i < CFI_KEPT; i++) {
		if (cfi_kept_numbers[i] != dwarf)
			continue;
		l->row.saved |= (uint16_t)(1u << i);
		l->row.saved_words[i] =
			(int16_t)(l->taken / 8); /* from the register: made a distance from CFA at the end */
	}
	l->taken += 8;
	return true;
}

static bool to_frame(struct leaving *l)
{
	/* What was popped before came from elsewhere. */
	if (l->row.saved || l->row.cfa_register == FRAME)
		return false;
	l->row.cfa_register = FRAME;
	l->taken = 0;
	return true;
}

static bool add(struct leaving *l, int32_t bytes)
{
	if (bytes < 0 || bytes > TAKEN_MAX || bytes % 8 != 0)
		return false;
	l->taken += bytes;
	return true;
}

/* One instruction; its length, 0: it is none of a function's end. */
static size_t leave_one(struct leaving *l, const uint8_t *code, size_t bytes)
{
	int32_t distance;

	if (bytes >= 4 && memcmp(code, "\x48\x83\xc4", 3) == 0)
		return add(l, (int8_t)code[3]) ? 4 : 0;
	if (bytes >= 7 && memcmp(code, "\x48\x81\xc4", 3) == 0) {
		memcpy(&distance, code + 3, sizeof(distance));
		return add(l, distance) ? 7 : 0;
	}
	if (bytes >= 3 && (memcmp(code, "\x48\x89\xec", 3) == 0 || memcmp(code, "\x48\x8b\xe5", 3) == 0))
		return to_frame(l) ? 3 : 0;
	if (code[0] == 0xc9)
		return to_frame(l) && pop(l, 5) ? 1 : 0;
	if ((code[0] & 0xf8) == 0x58)
		return pop(l, code[0] & 7) ? 1 : 0;
	if (bytes >= 2 && code[0] == 0x41 && (code[1] & 0xf8) == 0x58)
		return pop(l, (code[1] & 7) + 8u) ? 2 : 0;
	if (code[0] == 0x90)
		return 1;
	return 0;
}

bool epilogue_row(const uint8_t *code, size_t bytes, struct cfi_row *ret_row)
{
	struct leaving l = {.row = {.kind = CFI_PLAIN, .cfa_register = STACK, .return_words = -1}};

	for (size_t at = 0; at < bytes && l.taken <= TAKEN_MAX;) {
		size_t length;

		if (code[at] == 0xc3 || (bytes - at >= 2 && code[at] == 0xf3 && code[at + 1] == 0xc3)) {
			l.row.cfa_off = l.taken + 8;
			for (unsigned i = 0; i < CFI_KEPT; i++)
				if (l.row.saved >> i & 1)
					l.row.saved_words[i] = (int16_t)(l.row.saved_words[i] - l.row.cfa_off / 8);
			*ret_row = l.row;
			return true;
		}
		length = leave_one(&l, code + at, bytes - at);
		if (!length)
			return false;
		at += length;
	}
	return false;
}

bool epilogue_is_call(const uint8_t *end, size_t before)
{
	if (before >= 5 && end[-5] == 0xe8)
		return true;
	/* ff /2: a register, or memory by ModRM, SIB and a distance of 0, 1 or 4 bytes. */
	for (size_t bytes = 2; bytes <= 7 && bytes <= before; bytes++)
		if (end[-(ptrdiff_t)bytes] == 0xff && (end[1 - (ptrdiff_t)bytes] & 0x38) == 0x10)
			return true;
	return false;
}

#else

/* A stub of the procedure linkage table, wherever in it, or the return itself: adrp x16; ldr x17, [x16, …]; add x16, x16, …; br x17, among hints. */
bool epilogue_row(const uint8_t *code, size_t bytes, struct cfi_row *ret_row)
{
	uint32_t next;

	for (size_t at = 0; at + sizeof(next) <= bytes; at += sizeof(next)) {
		memcpy(&next, code + at, sizeof(next));
		if (next == 0xd65f03c0 || next == 0xd61f0220) {
			*ret_row = (struct cfi_row){.kind = CFI_LINK};
			return true;
		}
		if ((next & 0x9f00001f) != 0x90000010 && (next & 0xffc003ff) != 0xf9400211 && (next & 0xff8003ff) != 0x91000210 &&
		    (next & 0xfffff01f) != 0xd503201f)
			return false;
	}
	return false;
}

/* BL, BLR, and BLR with authentication. */
bool epilogue_is_call(const uint8_t *end, size_t before)
{
	uint32_t code;

	if (before < sizeof(code))
		return false;
	memcpy(&code, end - sizeof(code), sizeof(code));
	return (code & 0xfc000000) == 0x94000000 || (code & 0xfffffc1f) == 0xd63f0000 || (code & 0xfefff800) == 0xd63f0800;
}

#endif
