/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/json_head.h"

#include <string.h>

static size_t skip_blanks(const unsigned char *head, size_t bytes, size_t at)
{
	while (at < bytes && head[at] && strchr(" \t\r\n", head[at]))
		at++;
	return at;
}

bool json_begins(const unsigned char *head, size_t bytes, char with)
{
	size_t at = skip_blanks(head, bytes, bytes >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);

	if (at == bytes || head[at] != (unsigned char)with)
		return false;
	at = skip_blanks(head, bytes, at + 1);
	return with != '{' || at == bytes || head[at] == '"' || head[at] == '}';
}

/* A quote in a text is escaped, so that "KEY" stands nowhere but as a whole text; with a colon behind it, it is a key. */
bool json_has_key(const unsigned char *head, size_t bytes, const char *key)
{
	size_t key_bytes = strlen(key), at = 0;
	const unsigned char *found;

	while ((found = memmem(head + at, bytes - at, key, key_bytes)) != NULL) {
		size_t from = (size_t)(found - head), behind = from + key_bytes;

		at = from + 1;
		if (from == 0 || head[from - 1] != '"' || behind == bytes || head[behind] != '"')
			continue;
		behind = skip_blanks(head, bytes, behind + 1);
		if (behind < bytes && head[behind] == ':')
			return true;
	}
	return false;
}
