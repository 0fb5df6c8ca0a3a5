/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF file's headers and unwind tables, and as a stack: no read out of bounds, an end, and nothing that takes long. Input: a
 * byte that says what the rest is (a file, tables alone, or a stack of this very program), one for how much of it is stack, the stack, the file. */
#include "sampler/unwind.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/cfi.h"
#include "sampler/elfhead.h"
#include "sampler/epilogue.h"
#include "tests/fuzz/common.h"

enum { BIAS = 0x10000, STACK = 0x7fff0000, ADDRESSES = 64 };

/* The rules of some addresses, and a step by those that are not plain. */
static void walk_tables(const struct unwind_tables *tables, const uint8_t *stack, uint32_t stack_bytes)
{
	struct stack_copy copy = {.bytes = stack, .from = STACK, .count = stack_bytes};

	for (uint32_t i = 0; i < tables->search_count && i < ADDRESSES; i++) {
		struct unwind_regs regs = {0};
		struct unwind_fde fde;
		struct cfi_row row;
		int32_t distance;
		uint64_t addr;

		memcpy(&distance, tables->search + 8 * (size_t)i, sizeof(distance));
		addr = tables->hdr + (uint64_t)(int64_t)distance + i % 16;
		if (unwind_tables_find(tables, addr, &fde) || cfi_row(tables, &fde, addr, &row))
			continue;
		expect(addr >= fde.start && addr < fde.end);
		if (row.kind != CFI_OTHER)
			continue;
		for (unsigned r = 0; r < UNWIND_REGS; r++)
			if (i >> (r % 5) & 1 || r == UNWIND_SP)
				unwind_set(&regs, r, STACK + 8 * r);
		if (cfi_step(tables, &fde, addr, &copy, &regs) == 0)
			expect(unwind_knows(&regs, UNWIND_IP) && unwind_knows(&regs, UNWIND_SP));
	}
}

static void as_tables(const uint8_t *data, size_t bytes, const uint8_t *stack, uint32_t stack_bytes)
{
	struct unwind_tables tables = {.pieces = {{.addr = 0x2000, .bytes = (uint32_t)bytes, .data = data}}};

	if (unwind_tables_init(&tables) == 0)
		walk_tables(&tables, stack, stack_bytes);
}

static void as_file(const uint8_t *data, size_t bytes, const uint8_t *stack, uint32_t stack_bytes)
{
	struct elf_bytes from = {.fd = -1, .data = data, .data_bytes = bytes};
	struct elfhead head;
	uint64_t bias, frames;
	uint8_t *piece;
	size_t piece_bytes;

	if (elfhead_read(&head, &from))
		return;
	expect(head.segments_count <= ELFHEAD_SEGMENTS && head.build_id_bytes <= BUILD_ID_MAX);
	expect(memchr(head.soname, '\0', sizeof(head.soname)) != NULL);
	elfhead_bias(&head, BIAS, 0, &bias);
	if (elfhead_load(&head, &from, head.unwind_addr, 1 << 20, &piece, &piece_bytes))
		return;
	expect(piece_bytes <= bytes);
	unwind_tables_frames(piece, piece_bytes, head.unwind_addr, &frames);
	as_tables(piece, piece_bytes, stack, stack_bytes);
	free(piece);
}

/* The stack alone is the input: it leads through this very program's code. */
static void as_stack(const uint8_t *stack, uint32_t stack_bytes)
{
	static struct remote remote;
	static struct pyproc proc;
	static struct modules *modules;
	static struct unwinder *unwinder;
	static struct symtab *symbols;
	struct unwind_frame frames[64];
	struct unwound unwound = {.frames = frames, .room = 64};
	struct unwind_regs regs = {0};
	uint64_t word;

	if (!unwinder) {
		expect(remote_open(&remote, getpid()) == 0 && symtab_new(&symbols) == 0);
		expect(modules_new(&modules, &remote, &proc, symbols, 1) == 0 && unwinder_new(&unwinder, modules) == 0);
	}
	for (unsigned r = 0; r < UNWIND_REGS && 8 * (r + 1) <= stack_bytes; r++) {
		memcpy(&word, stack + 8 * (size_t)r, sizeof(word));
		unwind_set(&regs, r, STACK + word % 4096);
	}
	unwind_set(&regs, UNWIND_SP, STACK);
	word = 0;
	memcpy(&word, stack, stack_bytes < sizeof(word) ? stack_bytes : sizeof(word));
	unwind_set(&regs, UNWIND_IP, (uint64_t)(uintptr_t)&as_file + word % (1 << 20));
	expect(unwind(unwinder, &regs, stack, STACK, stack_bytes, &unwound) == 0);
	expect(unwound.depth <= unwound.room);
	for (uint32_t i = 0; i < unwound.depth; i++)
		expect(frames[i].pc >= frames[i].module->start && frames[i].pc < frames[i].module->end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint32_t stack_bytes;
	uint8_t *stack, *file;
	struct cfi_row row;

	if (bytes < 2 || bytes > 1 << 16)
		return 0;
	stack_bytes = (uint32_t)((bytes - 2) * data[1] / 255);
	stack = malloc(stack_bytes ? stack_bytes : 1); /* of the exact size, so that one byte too far is seen */
	file = malloc(bytes - 2 - stack_bytes ? bytes - 2 - stack_bytes : 1);
	expect(stack != NULL && file != NULL);
	memcpy(stack, data + 2, stack_bytes);
	memcpy(file, data + 2 + stack_bytes, bytes - 2 - stack_bytes);
	if (data[0] % 3 == 0)
		as_file(file, bytes - 2 - stack_bytes, stack, stack_bytes);
	else if (data[0] % 3 == 1)
		as_tables(file, bytes - 2 - stack_bytes, stack, stack_bytes);
	else
		as_stack(stack, stack_bytes);
	epilogue_row(file, bytes - 2 - stack_bytes, &row);
	epilogue_is_call(file + (bytes - 2 - stack_bytes), bytes - 2 - stack_bytes);
	free(stack);
	free(file);
	return 0;
}
