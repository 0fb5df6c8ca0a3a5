/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind_tables.h"

#include <errno.h>
#include <string.h>

#include "sampler/cursor.h"

enum {
	ENTRY_BYTES_MAX = 1 << 18, /* of one function; the longest seen have some 20,000 */
	SEARCH_ENTRY = 8,
	SEARCH_ENCODING = 0x3b, /* what all linkers write: signed 32 bits, relative to .eh_frame_hdr */
	OMITTED = 0xff,
};

const uint8_t *unwind_tables_at(const struct unwind_tables *t, uint64_t addr, size_t bytes)
{
	for (unsigned i = 0; i < UNWIND_PIECES; i++) {
		const struct unwind_piece *piece = &t->pieces[i];

		if (piece->data && addr >= piece->addr && addr - piece->addr <= piece->bytes &&
		    bytes <= piece->bytes - (addr - piece->addr))
			return piece->data + (addr - piece->addr);
	}
	return NULL;
}

int unwind_tables_init(struct unwind_tables *t)
{
	struct cursor at = {.data = t->pieces[0].data, .left = t->pieces[0].bytes, .addr = t->pieces[0].addr};
	uint8_t head[4];
	uint64_t frames, count;

	t->hdr = t->pieces[0].addr;
	for (unsigned i = 0; i < sizeof(head); i++)
		head[i] = cursor_u8(&at);
	frames = cursor_encoded(&at, head[1], t->hdr);
	count = cursor_encoded(&at, head[2], t->hdr);
	(void)frames; /* its entries are found by the search table */
	if (at.bad || head[0] != 1 || head[2] == OMITTED || head[3] != SEARCH_ENCODING)
		return -ENOEXEC;
	t->search = at.data;
	t->search_count = (uint32_t)(count < at.left / SEARCH_ENTRY ? count : at.left / SEARCH_ENTRY);
	return 0;
}

int unwind_tables_frames(const uint8_t *hdr, size_t bytes, uint64_t hdr_addr, uint64_t *ret_addr)
{
	struct cursor at = {.data = hdr, .left = bytes, .addr = hdr_addr};
	uint8_t format = cursor_u8(&at);
	uint8_t encoding = cursor_u8(&at);

	cursor_u8(&at);
	cursor_u8(&at);
	*ret_addr = cursor_encoded(&at, encoding, hdr_addr);
	return at.bad || format != 1 ? -ENOEXEC : 0;
}

/* The entry at addr, behind its length; `at` is left at what follows. False: there is none. */
static bool open_entry(const struct unwind_tables *t, uint64_t addr, struct cursor *ret_at)
{
	const uint8_t *data = unwind_tables_at(t, addr, 4);
	uint32_t bytes;

	if (!data)
		return false;
	memcpy(&bytes, data, sizeof(bytes));
	if (bytes < 4 || bytes > ENTRY_BYTES_MAX || !unwind_tables_at(t, addr, (size_t)bytes + 4))
		return false;
	*ret_at = (struct cursor){.data = data + 4, .left = bytes, .addr = addr + 4};
	return true;
}

struct cie {
	uint8_t encoding; /* of addresses in its functions' entries */
	bool sized;       /* they have augmentation data with a length */
};

static int read_cie(const struct unwind_tables *t, uint64_t addr, struct unwind_fde *fde, struct cie *cie)
{
	struct cursor at;
	const char *letters;
	uint8_t format;
	uint64_t bytes;
	size_t count;

	if (!open_entry(t, addr, &at) || cursor_u32(&at) != 0)
		return -ENOEXEC;
	format = cursor_u8(&at);
	letters = (const char *)at.data;
	count = strnlen(letters, at.left);
	if ((format != 1 && format != 3) || count == at.left || count > 8)
		return -ENOEXEC;
	cursor_skip(&at, count + 1);
	fde->code_align = cursor_uleb(&at);
	fde->data_align = cursor_sleb(&at);
	fde->return_register = format == 1 ? cursor_u8(&at) : (uint32_t)cursor_uleb(&at);
	*cie = (struct cie){.sized = letters[0] == 'z'};
	if (cie->sized) {
		struct cursor data = at;

		bytes = cursor_uleb(&data);
		at = data;
		cursor_skip(&at, bytes);
		for (size_t i = 1; i < count && !data.bad; i++) {
			if (letters[i] == 'L')
				cursor_u8(&data);
			else if (letters[i] == 'P')
				cursor_encoded(&data, cursor_u8(&data) & 0x7f, t->hdr);
			else if (letters[i] == 'R')
				cie->encoding = cursor_u8(&data);
			else if (letters[i] == 'S')
				fde->signal = true;
		}
		if (data.bad)
			return -ENOEXEC;
	} else if (count > 0) {
		return -ENOEXEC;
	}
	fde->initial = at.data;
	fde->initial_bytes = (uint32_t)at.left;
	return at.bad || fde->code_align == 0 || fde->code_align > 64 || fde->data_align < -64 || fde->data_align > 64
	               ? -ENOEXEC
	               : 0;
}

int unwind_tables_entry(const struct unwind_tables *t, uint64_t addr, struct unwind_fde *ret_fde)
{
	struct unwind_fde fde = {.addr = addr};
	struct cursor at;
	struct cie cie;
	uint64_t cie_addr;
	uint32_t distance;

	if (!open_entry(t, addr, &at))
		return -ENOEXEC;
	cie_addr = at.addr;
	distance = cursor_u32(&at);
	if (distance == 0 || distance > cie_addr || read_cie(t, cie_addr - distance, &fde, &cie))
		return -ENOEXEC;
	fde.encoding = cie.encoding;
	fde.start = cursor_encoded(&at, cie.encoding, t->hdr);
	fde.end = fde.start + cursor_encoded(&at, cie.encoding & 0x0f, t->hdr);
	if (cie.sized)
		cursor_skip(&at, cursor_uleb(&at));
	if (at.bad || fde.end <= fde.start)
		return -ENOEXEC;
	fde.instructions = at.data;
	fde.instructions_bytes = (uint32_t)at.left;
	fde.instructions_addr = at.addr;
	*ret_fde = fde;
	return 0;
}

static uint64_t search_word(const struct unwind_tables *t, uint32_t index, size_t word)
{
	int32_t distance;

	memcpy(&distance, t->search + (size_t)index * SEARCH_ENTRY + word * sizeof(distance), sizeof(distance));
	return t->hdr + (uint64_t)(int64_t)distance;
}

int unwind_tables_find(const struct unwind_tables *t, uint64_t addr, struct unwind_fde *ret_fde)
{
	uint32_t low = 0, high = t->search_count; /* the last that begins at or before addr is in [low, high) */
	struct unwind_fde fde;
	int err;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (search_word(t, middle, 0) <= addr)
			low = middle;
		else
			high = middle;
	}
	if (high == 0 || search_word(t, low, 0) > addr)
		return -ENOENT;
	err = unwind_tables_entry(t, search_word(t, low, 1), &fde);
	if (err)
		return err;
	if (addr < fde.start || addr >= fde.end)
		return -ENOENT;
	*ret_fde = fde;
	return 0;
}
