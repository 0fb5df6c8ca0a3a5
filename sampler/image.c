/* SPDX-License-Identifier: Apache-2.0 */
/* In order of trust: the symbol _PyRuntime, the section .PyRuntime, the cookie that 3.13+ writes at its start, and the
 * variables of 3.6. Nothing here is believed yet: discover() checks the contents. */
#include "sampler/image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sampler/elf.h"
#include "sampler/elfmem.h"
#include "sampler/host.h"

enum { PIECE_BYTES = 64 * 1024 };
#define SEARCH_BYTES_MAX (UINT64_C(64) << 20)

int image_search(const struct image *image, const struct remote *r, bool writable, size_t overlap,
                 int (*fn)(void *context, raddr_t addr, const char *piece, size_t bytes), void *context)
{
	static _Thread_local char piece[PIECE_BYTES];
	uint64_t searched = 0;

	for (size_t i = 0; i < image->ranges_count; i++) {
		const struct image_range *range = &image->ranges[i];
		uint64_t done = 0;

		if (range->writable != writable)
			continue;
		while (done < range->bytes && searched < SEARCH_BYTES_MAX) {
			uint64_t ask = range->bytes - done < PIECE_BYTES ? range->bytes - done : PIECE_BYTES;
			ssize_t got = remote_read_some(r, range->addr + done, piece, ask);
			int stop;

			if (got <= 0)
				break;
			stop = fn(context, range->addr + done, piece, (size_t)got);
			if (stop)
				return stop;
			searched += (uint64_t)got;
			if ((uint64_t)got <= overlap || done + (uint64_t)got >= range->bytes)
				break;
			done += (uint64_t)got - overlap;
		}
	}
	return 0;
}

struct cookie_search {
	raddr_t found;
};

static int find_cookie(void *context, raddr_t addr, const char *piece, size_t bytes)
{
	struct cookie_search *search = context;
	const char *at = memmem(piece, bytes, "xdebugpy", 8);

	if (!at || (addr + (raddr_t)(at - piece)) % 8)
		return 0;
	search->found = addr + (raddr_t)(at - piece);
	return 1;
}

/* What PyInterpreterState_Head() loads before it returns: the address of interp_head, for stripped builds of 3.6. */
static raddr_t head_variable(const struct remote *r, raddr_t function)
{
#if defined(__x86_64__)
	static const unsigned char endbr[] = {0xf3, 0x0f, 0x1e, 0xfa}, load[] = {0x48, 0x8b, 0x05};
	unsigned char code[12];
	size_t at = 0;
	int32_t distance;

	if (remote_read(r, function, code, sizeof(code)))
		return 0;
	if (memcmp(code, endbr, sizeof(endbr)) == 0)
		at = sizeof(endbr);
	/* mov rax, [rip + distance]; ret */
	if (memcmp(code + at, load, sizeof(load)) != 0 || code[at + 7] != 0xc3)
		return 0;
	memcpy(&distance, code + at + 3, sizeof(distance));
	return function + at + 7 + (raddr_t)(int64_t)distance;
#elif defined(__aarch64__)
	uint32_t code[3];
	int64_t pages;

	if (remote_read(r, function, code, sizeof(code)))
		return 0;
	/* adrp x0, page; ldr x0, [x0, #offset]; ret */
	if ((code[0] & 0x9f00001f) != 0x90000000 || (code[1] & 0xffc003ff) != 0xf9400000 || code[2] != 0xd65f03c0)
		return 0;
	pages = (int64_t)((((code[0] >> 5) & 0x7ffff) << 2) | ((code[0] >> 29) & 3));
	pages = (pages ^ (1 << 20)) - (1 << 20);
	return (function & ~(raddr_t)0xfff) + (raddr_t)(pages * 4096) + ((code[1] >> 10) & 0xfff) * 8;
#endif
}

/* The address of a symbol in the process, or 0. */
static raddr_t symbol_at(const struct elf_image *elf, uint64_t bias, const char *name, const char **ret_where)
{
	struct elf_range range;

	if (elf_image_symbol(elf, name, &range))
		return 0;
	if (ret_where)
		*ret_where = range.where;
	return range.addr + bias;
}

static void note(struct image *image, const char *what, const char *where, const char *path)
{
	snprintf(image->found_by, sizeof(image->found_by), "%s in %.160s (%s)", what, path, where);
}

static void find_runtime(struct image *image, const struct elf_image *elf, uint64_t bias, const char *path)
{
	struct elf_range range;
	const char *where;

	image->runtime = symbol_at(elf, bias, "_PyRuntime", &where);
	if (image->runtime) {
		note(image, "symbol _PyRuntime", where, path);
	} else if (elf_image_section(elf, ".PyRuntime", &range) == 0) {
		image->runtime = range.addr + bias;
		note(image, "section .PyRuntime", "no symbol", path);
	}
	if (image->runtime)
		image->version_word = symbol_at(elf, bias, "Py_Version", NULL);
}

/* The variables of 3.6; older Pythons have the first two as well, and are told by their version. */
static void find_variables(struct image *image, const struct remote *r, const struct elf_image *elf, uint64_t bias,
                           const char *path)
{
	const char *where;
	raddr_t head = symbol_at(elf, bias, "PyInterpreterState_Head", NULL);

	image->tstate_current = symbol_at(elf, bias, "_PyThreadState_Current", NULL);
	if (!head || !image->tstate_current)
		return;
	image->old_python = true;
	image->interp_head = symbol_at(elf, bias, "interp_head", &where);
	if (image->interp_head) {
		note(image, "symbol interp_head", where, path);
		image->collecting = symbol_at(elf, bias, "collecting", NULL);
		image->gil_cond = symbol_at(elf, bias, "gil_cond", NULL);
	} else {
		image->interp_head = head_variable(r, head);
		note(image, "the load in PyInterpreterState_Head", ".dynsym", path);
	}
}

static void add_range(struct image *image, raddr_t addr, uint64_t bytes, bool writable)
{
	if (image->ranges_count < IMAGE_RANGES && bytes)
		image->ranges[image->ranges_count++] =
			(struct image_range){.addr = addr, .bytes = bytes, .writable = writable};
}

/* The memory of the segments, .bss included. */
static void take_segments(struct image *image, const struct elf_image *elf, uint64_t bias)
{
	struct elf_range range;
	bool writable;

	for (unsigned i = 0; elf_image_segment(elf, i, &range, &writable); i++)
		add_range(image, range.addr + bias, range.bytes, writable);
}

/* Opens the file, by any of its mappings, and finds the bias, by the first that is the start of a segment. */
static int open_candidate(const struct remote *r, const struct candidate *candidate, int *ret_fd,
                          struct elf_image **ret_elf, uint64_t *ret_bias)
{
	struct elf_image *elf;
	int err = -ENOENT, fd = -ENOENT;

	for (size_t i = 0; i < candidate->maps_count && fd < 0; i++)
		fd = host_of(r)->open_mapped(r, &candidate->maps[i]);
	if (fd < 0)
		return fd;
	err = elf_image_open(&elf, fd);
	if (err) {
		close(fd);
		return err;
	}
	err = -ENOENT;
	for (size_t i = 0; i < candidate->maps_count && err; i++)
		err = elf_image_bias(elf, candidate->maps[i].start, candidate->maps[i].file_off, ret_bias);
	if (err) {
		elf_image_free(elf);
		close(fd);
		return err;
	}
	*ret_fd = fd;
	*ret_elf = elf;
	return 0;
}

/* The same marks by the symbols in memory. The ranges are set anew: the file gave none, or the same. */
static void find_in_memory(struct image *image, const struct remote *r, const struct candidate *candidate)
{
	struct elfmem elf;

	if (candidate->maps[0].file_off != 0 || elfmem_init(&elf, r, candidate->maps[0].start))
		return;
	image->ranges_count = 0;
	for (size_t i = 0; i < elf.segments_count; i++)
		add_range(image, elf.segments[i].addr, elf.segments[i].bytes, elf.segments[i].writable);
	image->runtime = elfmem_symbol(&elf, "_PyRuntime");
	if (image->runtime) {
		image->version_word = elfmem_symbol(&elf, "Py_Version");
		note(image, "symbol _PyRuntime", "memory", candidate->path);
	} else {
		raddr_t head = elfmem_symbol(&elf, "PyInterpreterState_Head");

		image->tstate_current = elfmem_symbol(&elf, "_PyThreadState_Current");
		image->old_python = head && image->tstate_current;
		if (image->old_python) {
			image->interp_head = head_variable(r, head);
			note(image, "the load in PyInterpreterState_Head", "memory", candidate->path);
		}
	}
	elfmem_release(&elf);
}

int image_examine(struct image *ret_image, const struct remote *r, const struct candidate *candidate, bool thorough)
{
	struct image image = {0};
	struct cookie_search search = {0};
	struct elf_image *elf;
	uint64_t bias;
	int fd;
	int err = open_candidate(r, candidate, &fd, &elf, &bias);

	if (err == 0) {
		take_segments(&image, elf, bias);
		find_runtime(&image, elf, bias, candidate->path);
		if (!image.runtime)
			find_variables(&image, r, elf, bias, candidate->path);
		image.waits_for_python = elf_image_needs(elf, "libpython");
		elf_image_free(elf);
		close(fd);
	} else {
		/* Not to be opened (deleted, and we lack the capability to follow the mapping's link): what is mapped remains. */
		for (size_t i = 0; i < candidate->maps_count; i++)
			add_range(&image, candidate->maps[i].start, candidate->maps[i].end - candidate->maps[i].start,
			          candidate->maps[i].writable);
	}
	if (!image.runtime && !image.old_python && thorough)
		find_in_memory(&image, r, candidate);
	if (!image.runtime && !image.old_python && thorough &&
	    image_search(&image, r, true, 8, find_cookie, &search) > 0) {
		image.runtime = search.found;
		note(&image, "cookie xdebugpy", "memory", candidate->path);
		err = 0;
	}
	if (!image.runtime && !image.old_python && !image.waits_for_python)
		return err ? err : -ENOENT;
	*ret_image = image;
	return 0;
}
