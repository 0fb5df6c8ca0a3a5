/* SPDX-License-Identifier: Apache-2.0 */
/* What was meant by a word that there is not. */
#ifndef SAMPLED_DAEMON_NEAREST_H
#define SAMPLED_DAEMON_NEAREST_H

#include <stddef.h>

/* The nearest of the words that were offered so far. Begins as {.word = what was given}. */
struct nearest {
	const char *word;
	const char *found;
	unsigned distance;
};

/* The words stay the caller's. */
void nearest_offer(struct nearest *nearest, const char *word);
/* NULL: none of them can have been meant. */
const char *nearest_word(const struct nearest *nearest);
/* Writes "is it WORD?" into hint, or the text `else_hint` where no word is near. */
void nearest_hint(const struct nearest *nearest, const char *prefix, const char *else_hint, char *hint, size_t room);

#endif
