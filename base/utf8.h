/* SPDX-License-Identifier: Apache-2.0 */
/* Text of the target on its way out: decoded without trust, and measured in terminal columns. */
#ifndef SAMPLED_BASE_UTF8_H
#define SAMPLED_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The character at text[0 … bytes), bytes > 0, and how many bytes it takes. What is not valid UTF-8 (overlong forms and
 * surrogates too) is U+FFFD and takes one byte. */
size_t utf8_next(const char *text, size_t bytes, uint32_t *ret_char);

/* Control characters and those that reorder the text around them: a terminal must not be given them. */
bool utf8_is_unsafe(uint32_t character);

/* Columns a terminal uses for a character: 0, 1 or 2. */
unsigned utf8_columns(uint32_t character);

/* Appends the text as valid UTF-8 without NUL: what is neither becomes U+FFFD. */
void utf8_add_valid(struct buf *to, const char *text, size_t bytes);

/* Appends the whole text, made safe for a terminal: what is not valid UTF-8 or unsafe becomes U+FFFD. */
void utf8_add_safe(struct buf *to, const char *text);

/* Appends the text, made safe in the same way, cut to at most `columns`; what was cut off shows as an ellipsis, at the
 * end or, when cut_front, at the front. Returns the columns used. */
unsigned utf8_fit(struct buf *to, const char *text, unsigned columns, bool cut_front);

#endif
