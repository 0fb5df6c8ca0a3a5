/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/crc32c.h"

#include <pthread.h>

/* Four bytes a step ("slicing by 4"): table[k][b] is the sum of byte b with k zero bytes behind it. */
static uint32_t table[4][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
	for (uint32_t b = 0; b < 256; b++) {
		uint32_t crc = b;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ UINT32_C(0x82f63b78) : crc >> 1;
		table[0][b] = crc;
	}
	for (int k = 1; k < 4; k++)
		for (uint32_t b = 0; b < 256; b++)
			table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xff];
}

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
	const unsigned char *p = data;

	pthread_once(&once, fill_table);
	crc = ~crc;
	for (; bytes >= 4; bytes -= 4, p += 4) {
		crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
		crc = table[3][crc & 0xff] ^ table[2][crc >> 8 & 0xff] ^ table[1][crc >> 16 & 0xff] ^
		      table[0][crc >> 24];
	}
	for (; bytes > 0; bytes--, p++)
		crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
	return ~crc;
}
