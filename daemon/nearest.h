/* SPDX-License-Identifier: Apache-2.0 */
/* What was meant by a word that there is not. */
#ifndef SAMPLED_DAEMON_NEAREST_H
#define SAMPLED_DAEMON_NEAREST_H

#include <stddef.h>

/* How many letters must be put in, left out, changed or swapped with the next one to make one word the other; of long words the first 32 letters. */
unsigned word_distance(const char *a, const char *b);
/* Whether this few are a slip of the hand in such a word. */
int word_is_near(const char *word, unsigned distance);

#endif
