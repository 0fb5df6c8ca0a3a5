/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a process that left a core. The notes keep 80 bytes of it at most; the whole of it is where the kernel put it
 * when the program began: at the top of the main stack, from low to high, are the count of arguments, pointers to them, a null,
 * pointers to the environment, a null, the auxiliary vector, and after it the bytes that AT_RANDOM names (create_elf_tables() in
 * fs/binfmt_elf.c of Linux). The vector is in the notes as well, so it is known when it is seen. */
#include <string.h>

#include "sampler/core_state.h"

enum {
	LOOK_BYTES = 16384,     /* the vector lies this near to the bytes of AT_RANDOM */
	KNOWN_BY_BYTES = 32,    /* its first two entries tell it */
	POINTERS_MAX = 1 << 16, /* to arguments, and to the environment */
	ARGUMENTS_BYTES_MAX = 64 * 1024,
	PIECE_BYTES = 4096,
};

static bool read_word(const struct core *core, raddr_t addr, uint64_t *ret_word)
{
	return core_read_own(core, addr, ret_word, sizeof(*ret_word)) == sizeof(*ret_word);
}

/* 0: not found. */
static raddr_t find_vector(const struct core *core)
{
	raddr_t top = core_auxv(core, AT_RANDOM) & ~UINT64_C(7);
	uint8_t seen[KNOWN_BY_BYTES];

	if (core->auxv_count * sizeof(core->auxv[0]) < sizeof(seen) || top < LOOK_BYTES)
		return 0;
	for (raddr_t at = top - sizeof(seen); at > top - LOOK_BYTES; at -= 8)
		if (core_read_own(core, at, seen, sizeof(seen)) == sizeof(seen) &&
		    memcmp(seen, core->auxv, sizeof(seen)) == 0)
			return at;
	return 0;
}

/* The first and the last pointer to an argument, of those below the vector. */
static bool find_pointers(const struct core *core, raddr_t vector, uint64_t *ret_first, uint64_t *ret_last)
{
	uint64_t word = 0, last;
	raddr_t at = vector - 8;

	if (!read_word(core, at, &word) || word != 0)
		return false;
	for (unsigned i = 0; i < POINTERS_MAX && (i == 0 || word); i++)
		if (!read_word(core, at -= 8, &word))
			return false;
	if (word != 0 || !read_word(core, at -= 8, &last) || last == 0)
		return false;
	word = last;
	for (uint64_t count = 1; count < POINTERS_MAX; count++) {
		uint64_t below;

		if (!read_word(core, at -= 8, &below))
			return false;
		if (below == count) { /* pointers are above any such number */
			*ret_first = word;
			*ret_last = last;
			return true;
		}
		word = below;
	}
	return false;
}

/* The bytes from an address up to and without the next NUL; false: there is none within the bound. */
static bool find_end(const struct core *core, raddr_t addr, raddr_t *ret_end)
{
	char piece[PIECE_BYTES];

	for (unsigned done = 0; done < ARGUMENTS_BYTES_MAX;) {
		size_t got = core_read_own(core, addr + done, piece, sizeof(piece));
		const char *nul = got ? memchr(piece, '\0', got) : NULL;

		if (got == 0)
			return false;
		if (nul) {
			*ret_end = addr + done + (raddr_t)(nul - piece);
			return true;
		}
		done += (unsigned)got;
	}
	return false;
}

bool core_command_line(struct core *core, enum command_line how, char *to, size_t room)
{
	static _Thread_local char text[ARGUMENTS_BYTES_MAX];
	raddr_t vector = find_vector(core), end;
	uint64_t first, last;
	size_t bytes;

	if (room == 0 || vector == 0 || !find_pointers(core, vector, &first, &last) || !find_end(core, last, &end) ||
	    first >= end)
		return false;
	bytes = end - first < sizeof(text) ? (size_t)(end - first) : sizeof(text);
	if (core_read_own(core, first, text, bytes) != bytes)
		return false;
	return command_line_show(to, room, text, bytes, how) > 0;
}
