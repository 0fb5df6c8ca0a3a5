/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/names_starts.h"

#include <errno.h>
#include <stdlib.h>

#include "sampler/elfhead.h"
#include "sampler/unwind_tables.h"

enum { TABLES_BYTES_MAX = 256 << 20 };

struct function_starts {
	uint8_t *pieces[UNWIND_PIECES]; /* owned */
	struct unwind_tables tables;
};

static int load(struct function_starts *s, const struct elf_bytes *from)
{
	size_t bytes[UNWIND_PIECES] = {0};
	struct elfhead head;
	uint64_t hdr, frames;
	int err = elfhead_read(&head, from);

	if (err)
		return err;
	hdr = head.unwind_addr;
	if (hdr == 0)
		return -ENOEXEC;
	err = elfhead_load(&head, from, hdr, TABLES_BYTES_MAX, &s->pieces[0], &bytes[0]);
	if (!err)
		err = unwind_tables_frames(s->pieces[0], bytes[0], hdr, &frames);
	if (!err && (frames < hdr || frames - hdr >= bytes[0]))
		err = elfhead_load(&head, from, frames, TABLES_BYTES_MAX - bytes[0], &s->pieces[1], &bytes[1]);
	if (err)
		return err;
	s->tables = (struct unwind_tables){
		.pieces = {{.addr = hdr, .bytes = (uint32_t)bytes[0], .data = s->pieces[0]},
	                   {.addr = frames, .bytes = (uint32_t)bytes[1], .data = s->pieces[1]}},
	};
	return unwind_tables_init(&s->tables);
}

int function_starts_new(struct function_starts **ret_starts, Elf *elf)
{
	size_t bytes = 0;
	const char *data = elf_rawfile(elf, &bytes);
	struct elf_bytes from = {.fd = -1, .data = (const uint8_t *)data, .data_bytes = bytes};
	struct function_starts *s;
	int err;

	if (!data)
		return -ENOEXEC;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	err = load(s, &from);
	if (err) {
		function_starts_free(s);
		return err;
	}
	*ret_starts = s;
	return 0;
}

void function_starts_free(struct function_starts *starts)
{
	if (!starts)
		return;
	for (unsigned i = 0; i < UNWIND_PIECES; i++)
		free(starts->pieces[i]);
	free(starts);
}

bool function_starts_find(const struct function_starts *starts, uint64_t address, uint64_t *ret_start)
{
	struct unwind_fde fde;

	if (!starts || unwind_tables_find(&starts->tables, address, &fde))
		return false;
	*ret_start = fde.start;
	return true;
}
