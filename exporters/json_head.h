/* SPDX-License-Identifier: Apache-2.0 */
/* By what a file in JSON is told from those of other formats: its keys, as far as its head shows them. A name or another text of it that reads like a
 * key is none. */
#ifndef SAMPLED_EXPORTERS_JSON_HEAD_H
#define SAMPLED_EXPORTERS_JSON_HEAD_H

#include <stdbool.h>
#include <stddef.h>

/* Whether bytes begin a JSON text: behind blanks and a mark of UTF-8 this character ('{', and then a key or its end, or '['). */
bool json_begins(const unsigned char *head, size_t bytes, char with);
/* Whether there is such a key, at any depth. */
bool json_has_key(const unsigned char *head, size_t bytes, const char *key);

#endif
