/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cursor.h"

#include <string.h>

enum { /* DW_EH_PE_* */
       FORM_ABSOLUTE = 0,
       FORM_ULEB = 1,
       FORM_U16 = 2,
       FORM_U32 = 3,
       FORM_U64 = 4,
       FORM_SLEB = 9,
       FORM_S16 = 10,
       FORM_S32 = 11,
       FORM_S64 = 12,
       BASE_NONE = 0x00,
       BASE_SELF = 0x10,
       BASE_HDR = 0x30,
};

static bool take(struct cursor *at, void *to, size_t bytes)
{
	if (at->bad || bytes > at->left) {
		at->bad = true;
		return false;
	}
	memcpy(to, at->data, bytes);
	at->data += bytes;
	at->addr += bytes;
	at->left -= bytes;
	return true;
}

void cursor_skip(struct cursor *at, uint64_t bytes)
{
	if (at->bad || bytes > at->left) {
		at->bad = true;
		return;
	}
	at->data += bytes;
	at->addr += bytes;
	at->left -= (size_t)bytes;
}

uint8_t cursor_u8(struct cursor *at)
{
	uint8_t value = 0;

	take(at, &value, sizeof(value));
	return value;
}

uint16_t cursor_u16(struct cursor *at)
{
	uint16_t value = 0;

	take(at, &value, sizeof(value));
	return value;
}

uint32_t cursor_u32(struct cursor *at)
{
	uint32_t value = 0;

	take(at, &value, sizeof(value));
	return value;
}

uint64_t cursor_u64(struct cursor *at)
{
	uint64_t value = 0;

	take(at, &value, sizeof(value));
	return value;
}

/* The bits of a LEB128; *ret_bits is how many of them were written, and *ret_last the byte that ended it. */
static uint64_t leb(struct cursor *at, unsigned *ret_bits, uint8_t *ret_last)
{
	uint64_t value = 0;
	unsigned bits = 0;
	uint8_t byte;

	do {
		byte = cursor_u8(at);
		if (bits > 63) {
			at->bad = true;
			return 0;
		}
		value |= (uint64_t)(byte & 0x7f) << bits;
		bits += 7;
	} while (byte & 0x80 && !at->bad);
	*ret_bits = bits;
	*ret_last = byte;
	return value;
}

uint64_t cursor_uleb(struct cursor *at)
{
	unsigned bits;
	uint8_t last;
	uint64_t value = leb(at, &bits, &last);

	return at->bad ? 0 : value;
}

int64_t cursor_sleb(struct cursor *at)
{
	unsigned bits;
	uint8_t last;
	uint64_t value = leb(at, &bits, &last);

	if (at->bad)
		return 0;
	if (last & 0x40 && bits < 64)
		value |= ~UINT64_C(0) << bits;
	return (int64_t)value;
}

static uint64_t form(struct cursor *at, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case FORM_ABSOLUTE:
	case FORM_U64:
	case FORM_S64:
		return cursor_u64(at);
	case FORM_ULEB:
		return cursor_uleb(at);
	case FORM_SLEB:
		return (uint64_t)cursor_sleb(at);
	case FORM_U16:
		return cursor_u16(at);
	case FORM_U32:
		return cursor_u32(at);
	case FORM_S16:
		return (uint64_t)(int64_t)(int16_t)cursor_u16(at);
	case FORM_S32:
		return (uint64_t)(int64_t)(int32_t)cursor_u32(at);
	default:
		at->bad = true;
		return 0;
	}
}

uint64_t cursor_encoded(struct cursor *at, uint8_t encoding, uint64_t hdr)
{
	uint64_t self = at->addr;
	uint64_t value = form(at, encoding);

	switch (encoding & 0xf0) {
	case BASE_NONE:
		break;
	case BASE_SELF:
		value += self;
		break;
	case BASE_HDR:
		value += hdr;
		break;
	default:
		at->bad = true;
	}
	return at->bad ? 0 : value;
}
