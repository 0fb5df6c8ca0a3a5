/* SPDX-License-Identifier: Apache-2.0 */
/* Reads numbers out of unwind tables, and never beyond their end: then, and where a number makes no sense, it is 0 and `bad` is set. */
#ifndef SAMPLED_SAMPLER_CURSOR_H
#define SAMPLED_SAMPLER_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
	const uint8_t *data;
	size_t left;
	uint64_t addr; /* of data[0], as the file speaks of it */
	bool bad;
};

void cursor_skip(struct cursor *at, uint64_t bytes);
uint8_t cursor_u8(struct cursor *at);
uint16_t cursor_u16(struct cursor *at);
uint32_t cursor_u32(struct cursor *at);
uint64_t cursor_u64(struct cursor *at);
/* LEB128 (DWARF 5, 7.6) of at most 64 bits. */
uint64_t cursor_uleb(struct cursor *at);
int64_t cursor_sleb(struct cursor *at);
/* DW_EH_PE_* (Linux Standard Base Core, "DWARF Exception Header Encoding"): absolute, relative to itself, or to hdr. Others are bad. */
uint64_t cursor_encoded(struct cursor *at, uint8_t encoding, uint64_t hdr);

#endif
