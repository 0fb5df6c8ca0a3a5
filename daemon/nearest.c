/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
	WORD_MAX = 32,
	BEGINNING_MIN = 2, /* letters that may stand for a word that begins so */
};

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* How many letters must be put in, left out, changed or swapped with the next one to make one word the other; of long words the first WORD_MAX
 * letters: the restricted Damerau-Levenshtein distance, by rows. */
static unsigned word_distance(const char *a, const char *b)
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

void nearest_offer(struct nearest *nearest, const char *word)
{
	size_t given = strlen(nearest->word);
	unsigned distance = word_distance(nearest->word, word);

	/* A word that was broken off is as near as one with a letter wrong. */
	if (given >= BEGINNING_MIN && strncmp(nearest->word, word, given) == 0)
		distance = least(distance, 1);
	if (!nearest->found || distance < nearest->distance) {
		nearest->found = word;
		nearest->distance = distance;
	}
}

/* So few letters are a slip of the hand in such a word. */
const char *nearest_word(const struct nearest *nearest)
{
	bool is_near = nearest->found && nearest->distance <= 3 && nearest->distance * 2 < strlen(nearest->word) + 1;

	return is_near ? nearest->found : NULL;
}

void nearest_hint(const struct nearest *nearest, const char *prefix, const char *else_hint, char *hint, size_t room)
{
	const char *word = nearest_word(nearest);

	if (word)
		snprintf(hint, room, "is it %s%s?", prefix, word);
	else
		snprintf(hint, room, "%s", else_hint);
}
