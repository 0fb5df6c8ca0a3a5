/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of a text that is read, not terminated. */
#ifndef SAMPLED_EXPORTERS_SPAN_H
#define SAMPLED_EXPORTERS_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
	const char *at;
	size_t bytes;
};

static inline bool span_begins(struct span text, const char *with)
{
	size_t bytes = strlen(with);

	return text.bytes >= bytes && memcmp(text.at, with, bytes) == 0;
}

/* What is left without the first `bytes`. */
static inline struct span span_behind(struct span text, size_t bytes)
{
	return (struct span){.at = text.at + bytes, .bytes = text.bytes - bytes};
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Takes the next word, without the blanks before it; empty at the end. */
static inline struct span span_word(struct span *text)
{
	struct span word;

	while (text->bytes > 0 && is_blank(text->at[0]))
		*text = span_behind(*text, 1);
	word = *text;
	while (text->bytes > 0 && !is_blank(text->at[0]))
		*text = span_behind(*text, 1);
	word.bytes -= text->bytes;
	return word;
}

/* Without the blanks at both ends. */
static inline struct span span_trim(struct span text)
{
	while (text.bytes > 0 && is_blank(text.at[0]))
		text = span_behind(text, 1);
	while (text.bytes > 0 && is_blank(text.at[text.bytes - 1]))
		text.bytes--;
	return text;
}

#endif
