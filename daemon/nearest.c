/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/nearest.h"

#include <string.h>

enum { WORD_MAX = 32 };

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The restricted Damerau-Levenshtein distance, by rows. */
unsigned word_distance(const char *a, const char *b)
{
	size_t bytes_a = strnlen(a, WORD_MAX), bytes_b = strnlen(b, WORD_MAX);
	unsigned rows[3][WORD_MAX + 1];

	for (unsigned j = 0; j <= bytes_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= bytes_a; i++) {
		unsigned *row = rows[i % 3];
		const unsigned *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= bytes_b; j++) {
			row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]), least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], two_above[j - 2] + 1);
		}
	}
	return rows[bytes_a % 3][bytes_b];
}

int word_is_near(const char *word, unsigned distance)
{
	return distance <= 3 && distance * 2 < strlen(word) + 1;
}
