/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in as few bytes as they need: 7 bits a byte, low ones first, the high bit where more follow (LEB128, as in DWARF and protobuf). Of our
 * own memory only: nothing is checked. */
#ifndef SAMPLED_AGGREGATOR_VARINT_H
#define SAMPLED_AGGREGATOR_VARINT_H

#include <stdint.h>

enum { VARINT_BYTES_MAX = 10 };

/* Writes up to VARINT_BYTES_MAX bytes; returns where they end. */
static inline uint8_t *varint_put(uint8_t *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
	return at;
}

/* Moves *at on. */
static inline uint64_t varint_get(const uint8_t **at)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
}

/* Differences modulo 2^64: small ones of either sign become small numbers. */
static inline uint64_t varint_zigzag(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t varint_unzigzag(uint64_t number)
{
	return number >> 1 ^ (0 - (number & 1));
}

#endif
