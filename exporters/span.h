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

#endif
