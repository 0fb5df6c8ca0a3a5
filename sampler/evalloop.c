/* SPDX-License-Identifier: Apache-2.0 */
/* By the symbols, where they are. A stripped file keeps the function's own name in .dynsym, but not that of the part that the compiler moved away
 * (.cold): that one is found by the jumps that lead there and back, and by having unwind rules of its own. */
#include "sampler/evalloop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/elf.h"

enum { RANGES_MAX = 8192, CODE_BYTES_MAX = 8 << 20, PARTS_MAX = 512 };

struct range {
	uint64_t start, end;
	bool inner;
};

struct evalloop {
	struct range *ranges; /* owned; in rising order */
	size_t count, room;
	uint64_t main_start, main_end;
	bool named_parts; /* the file tells of functions that it does not export */
	int err;
};

static void add_range(struct evalloop *loop, uint64_t start, uint64_t bytes, bool inner)
{
	if (bytes == 0 || start + bytes < start || loop->count == RANGES_MAX)
		return;
	if (loop->count == loop->room) {
		size_t room = loop->room ? loop->room * 2 : 16;
		struct range *ranges = realloc(loop->ranges, room * sizeof(*ranges));

		if (!ranges) {
			loop->err = -ENOMEM;
			return;
		}
		loop->ranges = ranges;
		loop->room = room;
	}
	loop->ranges[loop->count++] = (struct range){.start = start, .end = start + bytes, .inner = inner};
}

static void take_symbol(void *context, const struct elf_function *function)
{
	static const char name[] = "_PyEval_EvalFrameDefault", handler[] = "_TAIL_CALL_";
	struct evalloop *loop = context;

	if (!function->exported)
		loop->named_parts = true;
	if (strncmp(function->name, handler, strlen(handler)) == 0) {
		add_range(loop, function->addr, function->bytes, true);
	} else if (strncmp(function->name, name, strlen(name)) == 0 &&
	           (function->name[strlen(name)] == '\0' || function->name[strlen(name)] == '.')) {
		add_range(loop, function->addr, function->bytes, false);
		if (function->name[strlen(name)] == '\0') {
			loop->main_start = function->addr;
			loop->main_end = function->addr + function->bytes;
		}
	}
}

static int by_start(const void *a, const void *b)
{
	const struct range *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->end < right->end ? -1 : left->end > right->end;
}

struct part { /* of the code, that jumps of the eval loop lead into */
	uint64_t start, end;
	uint64_t target; /* of the first of them */
	bool several;    /* to different places */
	bool back;       /* and it jumps back */
};

struct parts {
	const struct unwind_tables *tables;
	uint64_t from_start, from_end; /* the code that is looked at */
	struct part parts[PARTS_MAX];
	size_t count;
};

static struct part *part_of(struct parts *parts, uint64_t target)
{
	struct unwind_fde fde;

	for (size_t i = 0; i < parts->count; i++)
		if (target >= parts->parts[i].start && target < parts->parts[i].end)
			return &parts->parts[i];
	if (parts->count == PARTS_MAX || unwind_tables_find(parts->tables, target, &fde))
		return NULL;
	parts->parts[parts->count] = (struct part){.start = fde.start, .end = fde.end, .target = target};
	return &parts->parts[parts->count++];
}

/* Where the jump at data leads, which is the code at addr: x86-64's jmp rel32 and jcc rel32. The bytes need not be an instruction's beginning: what
 * is made of others leads nowhere twice, and back, by accident only. */
static bool jump_target(const uint8_t *data, size_t left, uint64_t addr, uint64_t *ret_target)
{
	size_t bytes = 0;
	int32_t distance;

	if (left >= 5 && data[0] == 0xe9)
		bytes = 5;
	else if (left >= 6 && data[0] == 0x0f && (data[1] & 0xf0) == 0x80)
		bytes = 6;
	if (!bytes)
		return false;
	memcpy(&distance, data + bytes - sizeof(distance), sizeof(distance));
	*ret_target = addr + bytes + (uint64_t)(int64_t)distance;
	return true;
}

static int load_code(const struct elfhead *head, const struct elf_bytes *from, uint64_t start, uint64_t end,
                     uint8_t **ret_code)
{
	uint8_t *code;
	int err = -ENOENT;

	if (end <= start || end - start > CODE_BYTES_MAX)
		return -EFBIG;
	code = malloc((size_t)(end - start));
	if (!code)
		return -ENOMEM;
	for (unsigned i = 0; i < head->segments_count; i++) {
		const struct elfhead_segment *segment = &head->segments[i];

		if (start < segment->addr || end - segment->addr > segment->file_bytes)
			continue;
		err = elf_bytes_read(from, segment->file_off + (start - segment->addr), code, (size_t)(end - start));
		break;
	}
	if (err)
		free(code);
	else
		*ret_code = code;
	return err;
}

static void find_exits(struct parts *parts, const uint8_t *code)
{
	size_t bytes = (size_t)(parts->from_end - parts->from_start);
	uint64_t target;

	for (size_t i = 0; i < bytes; i++) {
		struct part *part;

		if (!jump_target(code + i, bytes - i, parts->from_start + i, &target) ||
		    (target >= parts->from_start && target < parts->from_end))
			continue;
		part = part_of(parts, target);
		if (part && part->target != target)
			part->several = true;
	}
}

static bool leads_back(const struct part *part, const struct parts *parts, const struct elfhead *head,
                       const struct elf_bytes *from)
{
	uint64_t target;
	uint8_t *code;
	bool back = false;

	if (load_code(head, from, part->start, part->end, &code))
		return false;
	for (size_t i = 0; i < part->end - part->start && !back; i++)
		back = jump_target(code + i, (size_t)(part->end - part->start) - i, part->start + i, &target) &&
		       target > parts->from_start && target < parts->from_end;
	free(code);
	return back;
}

/* The parts of [main_start, main_end) that lie elsewhere. */
static void find_parts(struct evalloop *loop, const struct elfhead *head, const struct elf_bytes *from,
                       const struct unwind_tables *tables)
{
	struct parts *parts = calloc(1, sizeof(*parts));
	uint8_t *code = NULL;

	if (!parts || load_code(head, from, loop->main_start, loop->main_end, &code)) {
		free(parts);
		return;
	}
	parts->tables = tables;
	parts->from_start = loop->main_start;
	parts->from_end = loop->main_end;
	find_exits(parts, code);
	for (size_t i = 0; i < parts->count; i++)
		if (parts->parts[i].several && leads_back(&parts->parts[i], parts, head, from))
			add_range(loop, parts->parts[i].start, parts->parts[i].end - parts->parts[i].start, false);
	free(code);
	free(parts);
}

int evalloop_find(struct evalloop **ret_loop, int fd, const struct elfhead *head, const struct unwind_tables *tables)
{
	struct elf_bytes from = {.fd = fd};
	struct elf_image *image;
	struct evalloop *loop;
	int err = elf_image_open(&image, fd);

	if (err)
		return err;
	loop = calloc(1, sizeof(*loop));
	if (!loop) {
		elf_image_free(image);
		return -ENOMEM;
	}
	elf_image_functions(image, take_symbol, loop);
	elf_image_free(image);
	if (!loop->err && loop->main_start && !loop->named_parts && tables)
		find_parts(loop, head, &from, tables);
	if (loop->err || !loop->main_start) {
		err = loop->err ? loop->err : -ENOENT;
		evalloop_free(loop);
		return err;
	}
	qsort(loop->ranges, loop->count, sizeof(*loop->ranges), by_start);
	*ret_loop = loop;
	return 0;
}

void evalloop_free(struct evalloop *loop)
{
	if (!loop)
		return;
	free(loop->ranges);
	free(loop);
}

static const struct range *range_at(const struct evalloop *loop, uint64_t addr)
{
	size_t low = 0, high = loop->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (loop->ranges[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	/* The same function may stand there by several names. */
	return low > 0 && addr < loop->ranges[low - 1].end ? &loop->ranges[low - 1] : NULL;
}

bool evalloop_has(const struct evalloop *loop, uint64_t addr)
{
	const struct range *range = loop ? range_at(loop, addr) : NULL;

	return range && !range->inner;
}

bool evalloop_has_inner(const struct evalloop *loop, uint64_t addr)
{
	const struct range *range = loop ? range_at(loop, addr) : NULL;

	return range && range->inner;
}
