/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/base64.h"

#include <stdint.h>

void base64_write(struct writer *to, const void *data, size_t bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = data;

	for (size_t i = 0; i < bytes; i += 3) {
		size_t left = bytes - i;
		uint32_t word =
			(uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0u);
		char four[4] = {digits[word >> 18], digits[word >> 12 & 63], left > 1 ? digits[word >> 6 & 63] : '=',
		                left > 2 ? digits[word & 63] : '='};

		writer_add(to, four, sizeof(four));
	}
}
